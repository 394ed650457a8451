//! Pure: nothing is left for later in the text of the repository.

use crate::tidy::Finding;
use crate::tidy::source::Source;
use crate::tree::TextFile;

/// Words that promise work; in two parts, since this file is checked too.
const WORDS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
/// Macros that stand for code that is not there, or for a look at code that is.
const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// A finding for each line with a word that promises work.
pub(crate) fn check_words(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(word) = WORDS.iter().find(|word| has_word(line, word)) {
            findings.push(Finding::new(
                &file.path,
                index + 1,
                format!(
                    "{word} promises what nobody tracks. Do it now, or say in prose what is so."
                ),
            ));
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    let boundary = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        boundary(line[..at].chars().next_back()) && boundary(line[at + word.len()..].chars().next())
    })
}

/// A finding for each macro that stands for missing code, in tests too.
pub(crate) fn check_macros(source: &Source) -> Vec<Finding> {
    let tokens = source.tokens();
    let uses =
        tokens.windows(2).filter(|pair| MACROS.contains(&pair[0].text) && pair[1].text == "!");
    uses.map(|pair| {
        let sentence = format!("`{}!` is no code. Write what belongs there.", pair[0].text);
        Finding::new(&source.path, pair[0].line, sentence)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::{NOTHING, lines_found};

    #[test]
    fn words_that_promise_work_are_found_in_any_text() {
        let file = |text: String| TextFile { path: "README.md".to_owned(), text };
        for word in WORDS {
            assert_eq!(check_words(&file(format!("a\n<!-- {word}: b -->")))[0].line, 2);
            assert!(check_words(&file(format!("MAS{word} {word}S {word}_LIST"))).is_empty());
        }
    }

    #[test]
    fn macros_that_stand_for_code_are_found() {
        for name in MACROS {
            let dirty = format!("fn a() {{\n    {name}!()\n}}");
            assert_eq!(lines_found(check_macros, "crates/core/src/tests.rs", &dirty), [2]);
            let clean = format!("// {name}!()\nfn {name}() {{ \"{name}!\"; }}");
            assert_eq!(lines_found(check_macros, "crates/core/src/a.rs", &clean), NOTHING);
        }
    }
}
