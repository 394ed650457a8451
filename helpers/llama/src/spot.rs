//! Pure: where in its answer a model begins to call a tool.
//!
//! Many models write a call as text, in a fence or bare, whatever marks they were taught. A
//! fence of JSON that is no call must stay what it is: an answer.

/// How calls begin, at the beginning of a line, whitespace left out.
const OPENINGS: [&str; 4] = ["<tool_call>", "```json{\"name\":", "```{\"name\":", "{\"name\":"];

/// Characters that tell.
const CHARS_MAX: usize = 24;

/// What is behind a place in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spotted {
    /// A call begins here.
    Call(usize),
    /// A call may begin here; what comes next tells.
    Maybe(usize),
    /// There is no call.
    Text,
}

/// Whether a call begins in a text, behind what was said of it already.
#[must_use]
pub fn spot(text: &str, said: usize) -> Spotted {
    let lines = text.match_indices('\n').map(|(at, _)| at + 1);
    for at in std::iter::once(0).chain(lines).filter(|at| *at >= said) {
        let begin: String =
            text[at..].chars().filter(|c| !c.is_whitespace()).take(CHARS_MAX).collect();
        if OPENINGS.iter().any(|opening| begin.starts_with(opening)) {
            return Spotted::Call(at);
        }
        if OPENINGS.iter().any(|opening| opening.starts_with(&begin)) {
            return Spotted::Maybe(at);
        }
    }
    Spotted::Text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_however_it_is_written_and_json_is_none() {
        for call in [
            "<tool_call>\n{",
            "```json\n{\n  \"name\": \"exec\"",
            "```\n{\"name\":",
            " {\"name\": \"exec\"",
        ] {
            assert_eq!(spot(call, 0), Spotted::Call(0), "{call}");
            assert_eq!(spot(&format!("I look.\n{call}"), 4), Spotted::Call(8), "{call}");
        }
        assert_eq!(spot("{\"id\": 1, \"name\": 2}", 0), Spotted::Text);
        assert_eq!(spot("```json\n[1]\n```\nDone.", 0), Spotted::Text);
        assert_eq!(spot("It is {\"name\": 1}.", 0), Spotted::Text);
    }

    #[test]
    fn what_may_become_a_call_is_held_until_it_is_told() {
        for start in ["", "`", "```json\n{\n", "<tool", "{"] {
            assert_eq!(spot(start, 0), Spotted::Maybe(0), "{start}");
            assert_eq!(spot(&format!("Yes.\n{start}"), 3), Spotted::Maybe(5), "{start}");
        }
        // What was said is said.
        assert_eq!(spot("Yes {", 2), Spotted::Text);
    }

    #[test]
    fn nothing_is_found_within_a_line_and_each_place_is_the_beginning_of_one() {
        for (text, said) in [("a\n\nb", 0), ("ä\nö{", 0), ("x\n", 2)] {
            if let Spotted::Call(at) | Spotted::Maybe(at) = spot(text, said) {
                assert!(at == 0 || text.as_bytes()[at - 1] == b'\n', "{text}");
            }
        }
    }
}
