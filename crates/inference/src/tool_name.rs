//! Pure: the name of a tool out of what its format and its server put around it.
//!
//! A name that is near to that of a tool is never taken for it.

/// Names that formats give to the place of tools.
const NAMESPACES: [&str; 8] = [
    "functions",
    "function",
    "default_api",
    "tools",
    "tool",
    "tool_calls",
    "multi_tool_use",
    "api",
];

/// Separators between such a place and a name.
const SEPARATORS: [&str; 4] = [".", ":", "/", "::"];

/// The tool that a name means: the name as it is, or the one tool that it names once a known wrapping is taken
/// off. Nothing where it names none, or more than one.
pub(crate) fn unwrap_tool_name(name: &str, is_known: impl Fn(&str) -> bool) -> Option<&str> {
    if is_known(name) {
        return Some(name);
    }
    let mut found: Option<&str> = None;
    for candidate in names_within(name) {
        if is_known(candidate) {
            if found.is_some_and(|known| known != candidate) {
                return None;
            }
            found = Some(candidate);
        }
    }
    found
}

/// The names within a name, the outermost first.
fn names_within(name: &str) -> [&str; 4] {
    let is_wrap = |it: char| it.is_whitespace() || matches!(it, '`' | '"' | '\'');
    let bare = name.trim_matches(is_wrap);
    // The mark of a chat template, which a parser left behind the name.
    let unmarked = bare.split("<|").next().unwrap_or(bare).trim_matches(is_wrap);
    let called = unmarked.strip_suffix("()").unwrap_or(unmarked);
    let placed = NAMESPACES.iter().find_map(|place| {
        let rest = called.strip_prefix(place)?;
        SEPARATORS.iter().rev().find_map(|separator| rest.strip_prefix(separator))
    });
    let placed = placed.unwrap_or(called);
    // The number of the call.
    let numbered = placed
        .rsplit_once(':')
        .filter(|(_, number)| !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit()));
    [unmarked, called, placed, numbered.map_or(placed, |(name, _)| name)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_wrapping_is_taken_off_and_nothing_is_guessed() {
        let tools = ["write_file", "exec", "tool", "functions.exec"];
        let find = |name| unwrap_tool_name(name, |it| tools.contains(&it));
        for name in [
            "write_file",
            "functions.write_file",
            "default_api.write_file",
            "tools/write_file",
            " write_file ",
            "`write_file`",
            "\"write_file\"",
            "write_file()",
            "functions.write_file:0",
            "functions::write_file",
            "write_file<|channel|>commentary",
            "functions.write_file <|constrain|>json",
        ] {
            assert_eq!(find(name), Some("write_file"), "{name}");
        }
        assert_eq!(find("functions.exec"), Some("functions.exec"));
        assert_eq!(find(" functions.exec "), None, "two tools");
        for name in [
            "write_files",
            "Write_File",
            "write-file",
            "write file",
            "file",
            "evil.write_file",
            "write_file.exec",
            "functions.",
            "",
            ":0",
            "functions.write_file:x",
            "writefile()",
        ] {
            assert_eq!(find(name), None, "{name}");
        }
    }
}
