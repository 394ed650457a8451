//! Pure: transcripts of the documentation, for comparison with the program's output.
//!
//! The comparison ignores line wrapping and values that differ between runs. It must never ignore
//! a word, or outdated documentation would pass.

/// A command of a transcript, and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCommand {
    /// The text after the prompt.
    pub command: String,
    /// The text below, up to the next command.
    pub told: String,
}

/// Returns the commands of the first transcript below a heading. Empty if there is none.
#[must_use]
pub fn commands_below(document: &str, heading: &str) -> Vec<ShownCommand> {
    let below = document.split_once(heading).map_or("", |(_, below)| below);
    let fenced = below.split_once("```text\n").map_or("", |(_, fenced)| fenced);
    let fenced = fenced.split_once("\n```").map_or("", |(fenced, _)| fenced);
    let parts = fenced.split("$ ").filter(|part| !part.is_empty());
    parts.map(parse_command).collect()
}

/// Parses a command with its output. A command may continue over several lines in single quotes.
fn parse_command(part: &str) -> ShownCommand {
    let mut ends = part.match_indices('\n').map(|(at, _)| at);
    let is_whole = |at: &usize| part[..*at].matches('\'').count().is_multiple_of(2);
    let end = ends.find(is_whole).unwrap_or(part.len());
    let told = part[end..].trim_start_matches('\n').to_owned();
    ShownCommand { command: part[..end].to_owned(), told }
}

/// Returns the words of a text without values that differ between runs: addresses and hashes,
/// ids, and numbers, such as times in seconds or milliseconds and amounts.
#[must_use]
pub fn words(text: &str) -> String {
    text.split_whitespace()
        .map(normalized_word)
        .collect::<Vec<_>>()
        .join(" ")
        .replace("# ms", "# s")
}

fn normalized_word(word: &str) -> String {
    let is_id = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    if bare.starts_with("0x") || bare.len() == 26 && bare.chars().all(is_id) {
        return word.replace(bare, "…");
    }
    let mut told = String::new();
    for c in word.chars() {
        match c.is_ascii_digit() {
            // Separators between digits belong to the number.
            true => {
                let number = told.trim_end_matches(['.', ',']);
                if number.ends_with('#') {
                    told.truncate(number.len());
                } else {
                    told.push('#');
                }
            }
            false => told.push(c),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_taken_out_and_nothing_else() {
        let text = "2026-11-22 In 12.5 ms paid $5,000.12 to\n  0xAb12, (01M88GNVDJPK5XX8DVHPJ2H2RG). At http://127.0.0.1:80/v1!";
        assert_eq!(words(text), "#-#-# In # s paid $# to …, (…). At http://#:#/v#!");
    }

    #[test]
    fn commands_are_found_with_what_they_printed() {
        let document = "## A\n```text\n$ no\n```\n## B\nWords.\n\n```text\n$ one 'two\n  too'\nthree\n  $0.5\n$ four\n```\n";
        let shown = commands_below(document, "## B");
        let pairs: Vec<_> =
            shown.iter().map(|one| (one.command.as_str(), one.told.as_str())).collect();
        assert_eq!(pairs, [("one 'two\n  too'", "three\n  $0.5\n"), ("four", "")]);
        assert_eq!(commands_below(document, "## C"), []);
    }
}
