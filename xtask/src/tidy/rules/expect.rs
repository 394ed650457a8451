//! Pure: a lint is lifted by `#[expect]`, which says why and ends when it is needless.

use crate::tidy::Finding;
use crate::tidy::items;
use crate::tidy::source::Source;

/// A finding for each `allow` in an attribute.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let tokens = source.tokens();
    let mut findings = Vec::new();
    for at in 0..tokens.len() {
        let Some((inner, _)) = items::attribute(&tokens, at) else { continue };
        let lifted = inner.windows(2).find(|pair| pair[0].text == "allow" && pair[1].text == "(");
        if let Some(pair) = lifted {
            let sentence =
                "The attribute silences a lint for ever. Use #[expect(…, reason = \"…\")].";
            findings.push(Finding::new(&source.path, pair[0].line, sentence));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::{NOTHING, lines_found};

    #[test]
    fn only_expect_lifts_a_lint() {
        let check_at = |text: &str| lines_found(check, "crates/core/src/a.rs", text);
        assert_eq!(
            check_at("#[expect(dead_code, reason = \"allow(x)\")]\nfn allow(x: u8) {}"),
            NOTHING
        );
        assert_eq!(check_at("\n#[allow(dead_code)]\nfn a() {}"), [2]);
        assert_eq!(check_at("#![allow(dead_code)]"), [1]);
        assert_eq!(check_at("#[cfg_attr(test,\n allow(dead_code))]"), [2]);
    }
}
