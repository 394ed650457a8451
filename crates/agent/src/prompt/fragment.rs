//! Pure: filling a fragment of the prompt, and keeping it within its cap.
//!
//! Placeholders are replaced in one pass, so that a value which looks like a
//! placeholder stays what it is. A fragment must never grow beyond its cap,
//! whatever its values are.

use automaton_memory::tokens;

/// Mark of cut text.
pub(super) const CUT_MARK: &str = " […]";

/// Replaces `{{key}}` by its value. A key without a value stays as it is.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template.trim_end();
    while let Some(open) = rest.find("{{") {
        let (before, after) = rest.split_at(open);
        filled.push_str(before);
        let value = after[2..].find("}}").and_then(|close| {
            let key = &after[2..2 + close];
            values.iter().find(|(name, _)| *name == key).map(|(_, value)| (close + 4, *value))
        });
        let (taken, text) = value.unwrap_or((2, "{{"));
        filled.push_str(text);
        rest = &after[taken..];
    }
    filled.push_str(rest);
    filled
}

/// The text, cut at a character so that it has at most `cap` tokens.
pub(crate) fn cap(text: &str, cap: u32) -> String {
    if tokens::estimate(text) <= cap {
        return text.to_owned();
    }
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let fits =
        |kept: usize| tokens::estimate(&text[..ends[kept]]) + tokens::estimate(CUT_MARK) <= cap;
    let mut low = 0;
    let mut high = ends.len().saturating_sub(1);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let kept = ends.get(low).map_or("", |end| &text[..*end]);
    format!("{}{CUT_MARK}", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_that_looks_like_a_placeholder_stays_what_it_is() {
        let values = [("name", "{{creator}}"), ("creator", "Ada")];
        assert_eq!(fill("{{name}} of {{creator}}\n", &values), "{{creator}} of Ada");
        assert_eq!(fill("{{who}} {{", &values), "{{who}} {{");
    }

    proptest! {
        #[test]
        fn a_capped_text_fits_and_a_short_one_is_left_alone(text in "\\PC{0,400}", limit in 4_u32..60) {
            let capped = cap(&text, limit);
            prop_assert!(tokens::estimate(&capped) <= limit, "{capped}");
            if tokens::estimate(&text) <= limit {
                prop_assert_eq!(capped, text);
            }
        }
    }
}
