//! Pure: an error is dropped only with a reason.
//!
//! `let _ = …`, `_ = …` and a statement that ends with `.ok();` drop what may be
//! an error. Each needs `// silent-ok: reason` on its line or in the comment above.

use crate::lexer::Token;
use crate::tidy::Finding;
use crate::tidy::items;
use crate::tidy::source::{Area, Source};

const EXCUSE: &str = "// silent-ok:";

/// A finding for each drop without a reason. Tests are free.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    if source.area != Area::Src {
        return Vec::new();
    }
    let tokens = source.tokens();
    let drops = (0..tokens.len()).filter_map(|at| dropped_at(&tokens, at));
    drops
        .filter(|line| !source.is_test_line(*line) && !is_excused(source, *line))
        .map(|line| {
            let sentence = "An error may be dropped here unseen. Handle it, or say why not with \
                            `// silent-ok: reason`.";
            Finding::new(&source.path, line, sentence)
        })
        .collect()
}

/// The line of the drop whose last telling token is at `at`.
fn dropped_at(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let text = |index: usize| tokens.get(index).map(|token| token.text);
    let begins = at == 0 || matches!(text(at - 1), Some(";" | "{" | "}" | "let"));
    if text(at) == Some("_") && begins && matches!(text(at + 1), Some("=" | ":")) {
        let binds = at > 0 && text(at - 1) == Some("let");
        return (binds || is_statement(&tokens[at..])).then(|| tokens[at].line);
    }
    let tail = [".", "ok", "(", ")", ";"];
    let is_tail = tail.iter().enumerate().all(|(offset, part)| text(at + offset) == Some(part));
    (is_tail && !is_used(&tokens[..at])).then(|| tokens[at + 1].line)
}

/// Whether a semicolon ends this, and not the arrow or comma of an arm of `select!`.
fn is_statement(rest: &[Token<'_>]) -> bool {
    let mut at = 0;
    while let Some(token) = rest.get(at) {
        match token.text {
            ";" => return true,
            "=>" | "," => return false,
            "(" | "[" | "{" => at = items::after_group(rest, at),
            _ => at += 1,
        }
    }
    false
}

/// Whether the statement that these tokens end binds, assigns or returns its value.
fn is_used(before: &[Token<'_>]) -> bool {
    let mut depth = 0_usize;
    for token in before.iter().rev() {
        match token.text {
            ")" | "]" => depth += 1,
            "(" | "[" if depth == 0 => return true,
            "(" | "[" => depth -= 1,
            "}" if depth > 0 => depth += 1,
            "{" if depth > 0 => depth -= 1,
            ";" | "{" | "}" if depth == 0 => return false,
            // After a comma or a bar it is an argument of a macro or the body of a closure.
            "=" | "return" | "break" | "," | "|" if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

fn is_excused(source: &Source, line: usize) -> bool {
    let says = |line: usize| {
        let reason = source.line(line).split_once(EXCUSE).map(|(_, reason)| reason.trim());
        reason.is_some_and(|reason| !reason.is_empty())
    };
    let comments = (1..line).rev().take_while(|above| source.line(*above).trim().starts_with("//"));
    says(line) || comments.into_iter().any(says)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::{NOTHING, lines_found};

    fn check_body(body: &str) -> Vec<usize> {
        lines_found(check, "crates/net/src/a.rs", &format!("fn a() {{\n{body}\n}}"))
    }

    #[test]
    fn used_values_and_excused_drops_pass() {
        for clean in [
            "let a = b().ok();",
            "a = b().ok();",
            "return b().ok();",
            "let a = b(|c| { d; c.e() }).ok();",
            "if let Some(_) = b { c }",
            "match a { _ => b, }",
            "let _a = b();",
            "let (_, a) = b();",
            "b(c.ok());",
            "m! { A: |a| a.b(), |c| c.d().ok(); }",
            "select! { a = b => {} _ = c(), if d => {} _ = e => {} }",
            "let _ = b(); // silent-ok: the peer is gone",
            "// silent-ok: the peer is gone,\n// and nobody waits.\nb().ok();",
        ] {
            assert_eq!(check_body(clean), NOTHING, "{clean:?}");
        }
    }

    #[test]
    fn drops_without_a_reason_are_found() {
        for (dirty, line) in [
            ("let _ = b();", 2),
            ("let _: Result<(), E> = b();", 2),
            ("_ = b();", 2),
            ("_ = match b { c => d, };", 2),
            ("b().ok();", 2),
            ("a = 1;\nb(|c| c = 2)\n    .ok();", 4),
            ("if a { c() }\nb(x[1]).ok();", 3),
            ("let _ = b(); // silent-ok:", 2),
            ("// silent-ok: another line\n\nlet _ = b();", 4),
        ] {
            assert_eq!(check_body(dirty), [line], "{dirty:?}");
        }
    }

    #[test]
    fn tests_are_free() {
        let text = "#[cfg(test)]\nmod tests {\n    fn a() { let _ = b(); }\n}";
        assert_eq!(lines_found(check, "crates/net/src/a.rs", text), NOTHING);
    }
}
