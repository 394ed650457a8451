//! Pure: whether what a model begins to say is a call of a tool.
//!
//! Many models write a call as text, bare or in a fence, whatever marks they were taught. Only an
//! answer that begins with one is taken for one: what is quoted behind words must never become a
//! call, and JSON that is none stays an answer.

/// What may stand before a call that is written as text.
const OPENINGS: [&str; 4] = ["", "```json", "```", "<tool_call>"];

/// Keys of the arguments, as models of several families call them.
const ARGUMENTS: [&str; 2] = [",\"arguments\":", ",\"parameters\":"];

/// Longest name of a tool, and most characters that are looked at.
const NAME_CHARS_MAX: usize = 64;
const CHARS_MAX: usize = 128;

/// What an answer begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spotted {
    /// A call.
    Call,
    /// What may become one.
    Maybe,
    /// Something else, whatever comes.
    Text,
}

/// What an answer begins with, of which there is this much yet.
#[must_use]
pub fn spot(text: &str) -> Spotted {
    let begin: String = text.chars().filter(|c| !c.is_whitespace()).take(CHARS_MAX).collect();
    let read = OPENINGS.map(|opening| match behind(&begin, opening) {
        Ok(rest) => call(rest),
        Err(other) => other,
    });
    let found = |wanted| read.contains(&wanted);
    [Spotted::Call, Spotted::Maybe].into_iter().find(|it| found(*it)).unwrap_or(Spotted::Text)
}

/// Whether a text without whitespace begins a call in JSON.
fn call(text: &str) -> Spotted {
    let name = match behind(text, "{\"name\":\"") {
        Ok(name) => name,
        Err(other) => return other,
    };
    let Some((_, rest)) = name.split_once('"') else {
        let may_end = name.chars().count() <= NAME_CHARS_MAX;
        return if may_end { Spotted::Maybe } else { Spotted::Text };
    };
    let keys = ARGUMENTS.map(|key| behind(rest, key).map_or_else(|it| it, |_| Spotted::Call));
    keys.into_iter().find(|it| *it != Spotted::Text).unwrap_or(Spotted::Text)
}

/// What stands behind the expected beginning of a text; else what the text is then.
fn behind<'a>(text: &'a str, expected: &str) -> Result<&'a str, Spotted> {
    let other = if expected.starts_with(text) { Spotted::Maybe } else { Spotted::Text };
    text.strip_prefix(expected).ok_or(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_by_its_key_for_arguments_however_it_is_written_and_no_sooner() {
        for call in [
            "{\"name\": \"exec\", \"arguments\":",
            "```json\n{\n  \"name\": \"exec\",\n  \"arguments\":",
            "```\n{\"name\": \"exec\", \"parameters\":",
            "<tool_call>\n{\"name\": \"write_file\", \"arguments\":",
        ] {
            for (end, _) in call.char_indices() {
                assert_eq!(spot(&call[..end]), Spotted::Maybe, "{}", &call[..end]);
            }
            assert_eq!(spot(call), Spotted::Call, "{call}");
            assert_eq!(spot(&format!("{call} {{\"command\": \"ls\"}}}}")), Spotted::Call);
        }
    }

    #[test]
    fn json_that_is_no_call_and_a_call_behind_words_are_an_answer() {
        let call = "{\"name\": \"exec\", \"arguments\": {}}";
        for text in [
            "{\"name\": \"Ada\", \"age\": 36}",
            "{\"id\": 1",
            "```json\n[1]\n```",
            "```rust\nfn main()",
            "It is done.",
            &format!("The file says:\n{call}"),
            &format!("The file says:\n```json\n{call}\n```"),
            &format!("{{\"name\": \"{}", "x".repeat(70)),
        ] {
            assert_eq!(spot(text), Spotted::Text, "{text}");
        }
    }
}
