//! Pure: no code tells tools apart by their names.
//!
//! A tool describes itself in its own file. Code elsewhere that compares a name with a literal
//! compiles when a new tool is left out of it, so it reads the tool's profile instead. Where a
//! text only looks like a tool's name, `// tool-name-ok: reason` on its line or above says so.

use std::collections::BTreeMap;

use crate::lexer::Class;

use super::Finding;
use super::source::Source;

/// The folder in which each tool has its file.
const TOOLS: &str = "crates/tools/src/";

/// The packages that know tools: in these no literal may be a tool's name, compared or not.
const STRICT: [&str; 3] = ["agent", "automaton", "tools"];

const EXCUSE: &str = "// tool-name-ok:";

/// Returns a finding for each literal outside a tool's file that its name is compared with, or,
/// in packages that know tools, that is its name.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let names: BTreeMap<String, &str> = sources.iter().filter_map(tool_of).collect();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_shipped()) {
        for piece in source.pieces.iter().filter(|piece| piece.class == Class::Text) {
            let text = source.text[piece.start..piece.end].trim_matches('"');
            let Some(own_file) = names.get(text) else { continue };
            let line = source.line_of(piece.start);
            if source.path == *own_file || source.is_test_line(line) || is_excused(source, line) {
                continue;
            }
            let is_strict = STRICT.contains(&source.package.as_str());
            if is_strict || is_compared(&source.text, piece.start, piece.end) {
                let sentence = format!(
                    "This is the name of a tool. Read the tool's profile in place of its name \
                     (`{own_file}`), or say why it is no tool here: `{EXCUSE} reason`."
                );
                findings.push(Finding::new(&source.path, line, sentence));
            }
        }
    }
    findings
}

/// Returns the name of the tool that a file describes, with the file's path.
fn tool_of(source: &Source) -> Option<(String, &str)> {
    if !source.path.starts_with(TOOLS) || source.is_test() {
        return None;
    }
    let (_, metadata) = source.text.split_once("ToolMetadata {\n")?;
    let (_, name) = metadata.trim_start().split_once("name: \"")?;
    let (name, _) = name.split_once('"')?;
    Some((name.to_owned(), &source.path))
}

/// Returns whether a literal stands beside an operator of comparison or in a pattern.
fn is_compared(text: &str, start: usize, end: usize) -> bool {
    let before = text[..start].trim_end();
    let after = text[end..].trim_start();
    ["==", "!=", "|"].iter().any(|mark| before.ends_with(mark))
        || ["==", "!=", "|", "=>"].iter().any(|mark| after.starts_with(mark))
}

fn is_excused(source: &Source, line: usize) -> bool {
    let says = |line: usize| {
        let reason = source.line(line).split_once(EXCUSE).map(|(_, reason)| reason.trim());
        reason.is_some_and(|reason| !reason.is_empty())
    };
    says(line) || (line > 1 && says(line - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = "//! T.\npub(crate) static TOOL: B = B::new(ToolMetadata {\n    name: \"exec\",\n});\nfn a(b: &str) -> bool { b == \"exec\" }\n";

    fn lines_in(path: &str, body: &str) -> Vec<usize> {
        let tool = Source::sample("crates/tools/src/vm/exec.rs", TOOL);
        let user = Source::sample(path, &format!("//! U.\n{body}\n"));
        check(&[tool, user]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_comparison_with_a_tools_name_is_found_everywhere_but_in_its_own_file() {
        for body in [
            "fn a(b: &str) -> bool { b == \"exec\" }",
            "fn a(b: &str) -> bool { \"exec\" != b }",
            "fn a(b: &str) { match b { \"exec\" => {} _ => {} } }",
            "fn a(b: &str) -> bool { matches!(b, \"other\" | \"exec\") }",
        ] {
            for package in ["agent", "policy", "store"] {
                assert_eq!(lines_in(&format!("crates/{package}/src/a.rs"), body), [2], "{body}");
            }
        }
    }

    #[test]
    fn packages_that_know_tools_do_not_even_list_their_names() {
        let list = "const A: [&str; 1] = [\"exec\"];";
        assert_eq!(lines_in("crates/agent/src/a.rs", list), [2]);
        assert_eq!(lines_in("crates/tools/src/list.rs", list), [2]);
        assert_eq!(lines_in("crates/policy/src/a.rs", list), [0; 0]);
    }

    #[test]
    fn tests_the_laboratory_other_words_and_excuses_pass() {
        let compared = "fn a(b: &str) -> bool { b == \"exec\" }";
        assert_eq!(lines_in("crates/lab/src/a.rs", compared), [0; 0]);
        assert_eq!(lines_in("crates/agent/tests/it/a.rs", compared), [0; 0]);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{compared}\n}}");
        assert_eq!(lines_in("crates/agent/src/a.rs", &tests), [0; 0]);
        for body in [
            "const A: &str = \"executor\";",
            "const A: &str = \"exec\"; // tool-name-ok: a route of the cloud",
            "// tool-name-ok: a route of the cloud\nconst A: &str = \"exec\";",
        ] {
            assert_eq!(lines_in("crates/agent/src/a.rs", body), [0; 0], "{body}");
        }
        let unexplained = "const A: &str = \"exec\"; // tool-name-ok:";
        assert_eq!(lines_in("crates/agent/src/a.rs", unexplained), [2]);
    }
}
