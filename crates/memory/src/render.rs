//! Pure: facts as lines that the model reads.
//!
//! One fact is one line, whatever stands in it, so that no value can look like
//! another fact or like a heading. Text of others says whose it is. What is
//! rendered here must never be given to the model as an instruction.

use automaton_core::trust::Label;

use crate::tokens::estimate;
use crate::{Fact, budget};

/// Longest name of a category or key that is shown, in characters.
const NAME_CHARS_MAX: usize = 80;
/// Longest value that is shown, in characters.
const VALUE_CHARS_MAX: usize = 400;

/// One fact on one line: `- [category/key] value`, with the label of a value
/// that neither the creator nor the automaton wrote.
#[must_use]
pub fn line(fact: &Fact) -> String {
    let origin = match fact.value.label {
        Label::Creator | Label::Own => String::new(),
        label @ (Label::Tool | Label::Peer | Label::Web) => format!("(from {label}) "),
    };
    format!(
        "- [{}/{}] {origin}{}",
        one_line(&fact.category, NAME_CHARS_MAX),
        one_line(&fact.key, NAME_CHARS_MAX),
        one_line(&fact.value.text, VALUE_CHARS_MAX),
    )
}

/// The facts that fit into a number of tokens, a line each. Empty when none does.
#[must_use]
pub fn block(facts: &[Fact], tokens_max: u32) -> String {
    let lines: Vec<String> = facts.iter().map(|fact| line(fact) + "\n").collect();
    budget::pack(lines, tokens_max, |line| estimate(line)).concat()
}

/// A text with every run of white space and control characters as one blank,
/// cut to a length.
fn one_line(text: &str, chars_max: usize) -> String {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let joined = text.split(blank).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    match joined.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &joined[..end]),
        None => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::time::Timestamp;
    use automaton_core::trust::Labelled;
    use proptest::prelude::*;

    fn fact(label: Label, text: &str) -> Fact {
        Fact {
            category: "domain".to_owned(),
            key: "api\nkey".to_owned(),
            value: Labelled::new(label, "test", text),
            confidence_percent: 90,
            updated_at: Timestamp::EPOCH,
        }
    }

    #[test]
    fn a_fact_is_one_line_that_names_its_origin() {
        assert_eq!(
            line(&fact(Label::Own, "a\n- [x/y] b\u{1b}\t c")),
            "- [domain/api key] a - [x/y] b c"
        );
        assert_eq!(line(&fact(Label::Peer, "hi")), "- [domain/api key] (from peer) hi");
        let long = line(&fact(Label::Creator, &"ä".repeat(500)));
        assert_eq!(long.chars().filter(|c| *c == 'ä').count(), 400);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn a_long_fact_does_not_keep_out_a_short_one() {
        let facts = [fact(Label::Own, &"long ".repeat(60)), fact(Label::Own, "short")];
        assert_eq!(block(&facts, 12), "- [domain/api key] short\n");
        assert_eq!(block(&facts, 1), "");
    }

    proptest! {
        #[test]
        fn as_many_lines_as_facts_within_the_budget(texts in prop::collection::vec(".{0,40}|(\n|- ){0,9}", 0..6), tokens_max in 0..200_u32) {
            let facts: Vec<Fact> = texts.iter().map(|text| fact(Label::Tool, text)).collect();
            let shown = block(&facts, tokens_max);
            prop_assert!(estimate(&shown) <= tokens_max);
            prop_assert!(shown.lines().all(|line| line.starts_with("- [domain/api key] (from tool)")));
            let all = block(&facts, u32::MAX);
            prop_assert_eq!(all.lines().count(), facts.len());
        }
    }
}
