//! Pure: the working directory of a script, and the resolution of words to paths.
//!
//! Paths are resolved by their text only. A word whose beginning is known only at run time, such
//! as `$unknown/x`, has no path.

/// The workspace's path in the sandbox, where each script begins.
pub(crate) const WORKSPACE: &str = "/root";
/// The workspace's only name.
const WORKSPACE_NAME: &str = "root";
/// The longest path that is resolved, in bytes: the kernel's `PATH_MAX` without its NUL.
const PATH_BYTES_MAX: usize = 4095;

/// Resolves a word to the names from the root of the file system, with `~`, `.` and `..`
/// resolved. `folder` is the working directory.
pub(crate) fn resolve<'a>(word: &'a str, folder: Option<&'a str>) -> Option<Vec<&'a str>> {
    if word.is_empty() || word.len() > PATH_BYTES_MAX {
        return None;
    }
    let (start, rest) = match word.strip_prefix('~') {
        Some(rest) => tilde(rest, folder)?,
        None if word.starts_with('/') => ("", word),
        None if word.starts_with('$') => return None,
        None => (folder?, word),
    };
    let mut names = Vec::new();
    for name in start.split('/').chain(rest.split('/')) {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    Some(names)
}

/// Returns the folder that a word with a tilde starts in, and the rest of the word.
fn tilde<'a>(rest: &'a str, folder: Option<&'a str>) -> Option<(&'a str, &'a str)> {
    let (user, rest) = rest.split_once('/').unwrap_or((rest, ""));
    match user {
        "" | "root" => Some((WORKSPACE, rest)),
        "+" => Some((folder?, rest)),
        _ => None,
    }
}

/// Resolves a word to a path as text.
pub(crate) fn resolve_path(word: &str, folder: Option<&str>) -> Option<String> {
    let names = resolve(word, folder)?;
    let path = format!("/{}", names.join("/"));
    (path.len() <= PATH_BYTES_MAX).then_some(path)
}

/// Returns true if names from the root lead to the whole workspace: itself, a folder around it,
/// or every entry in it.
pub(crate) fn is_whole(names: &[&str]) -> bool {
    match names.split_first() {
        None => true,
        Some((top, inside)) => {
            matches_glob(top, WORKSPACE_NAME) && inside.iter().all(|name| is_any(name))
        }
    }
}

/// Returns true if a pattern matches every entry of a folder, or every hidden one.
fn is_any(name: &str) -> bool {
    let visible = name.strip_prefix('.').unwrap_or(name);
    let mut rest = visible;
    let mut stars = 0;
    while let Some(c) = rest.chars().next() {
        rest = match c {
            '*' => {
                stars += 1;
                rest.get(1..).unwrap_or("")
            }
            '?' => rest.get(1..).unwrap_or(""),
            // An inverted set, as in `.[!.]*`.
            '[' if rest.starts_with("[!") || rest.starts_with("[^") => {
                rest.split_once(']').map_or("", |(_, after)| after)
            }
            _ => return false,
        };
    }
    stars > 0
}

/// Returns true if a shell pattern matches a name. A set in brackets matches any character, so it
/// may match too much.
pub(crate) fn matches_glob(pattern: &str, name: &str) -> bool {
    // Many stars cost exponentially many steps, and match nearly anything anyway.
    const STARS_MAX: usize = 4;
    let stars = pattern.bytes().filter(|b| *b == b'*').count();
    let hidden = name.starts_with('.');
    (!hidden || pattern.starts_with('.'))
        && (stars > STARS_MAX || matches_from(pattern.as_bytes(), name.as_bytes(), false))
}

/// Returns true if a pattern matches some name with this beginning.
pub(crate) fn may_begin(pattern: &str, beginning: &str) -> bool {
    const STARS_MAX: usize = 4;
    let stars = pattern.bytes().filter(|b| *b == b'*').count();
    stars > STARS_MAX || matches_from(pattern.as_bytes(), beginning.as_bytes(), true)
}

/// Matches byte by byte. If `open` is true, the name may continue.
fn matches_from(pattern: &[u8], name: &[u8], open: bool) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (_, []) if open => true,
        ([b'*', rest @ ..], []) => matches_from(rest, name, open),
        ([b'*', rest @ ..], [_, tail @ ..]) => {
            matches_from(rest, name, open) || matches_from(pattern, tail, open)
        }
        ([b'?', rest @ ..], [_, tail @ ..]) => matches_from(rest, tail, open),
        ([b'[', set @ ..], [_, tail @ ..]) => {
            let end = set.iter().position(|b| *b == b']').map_or(set.len(), |at| at + 1);
            matches_from(set.get(end..).unwrap_or(&[]), tail, open)
        }
        ([one, rest @ ..], [other, tail @ ..]) => one == other && matches_from(rest, tail, open),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_resolved_from_where_the_script_is() {
        for (word, folder, path) in [
            ("x", Some("/root"), Some("/root/x")),
            (".", Some("/root/a"), Some("/root/a")),
            ("../b", Some("/root/a"), Some("/root/b")),
            ("../../..", Some("/root"), Some("/")),
            ("~", None, Some("/root")),
            ("~root/x", None, Some("/root/x")),
            ("~+/x", Some("/tmp"), Some("/tmp/x")),
            ("/srv/../root", None, Some("/root")),
            ("~ann/x", Some("/root"), None),
            ("x", None, None),
            ("$d/x", Some("/root"), None),
            ("", Some("/root"), None),
        ] {
            assert_eq!(resolve_path(word, folder).as_deref(), path, "{word} in {folder:?}");
        }
    }

    #[test]
    fn the_whole_is_told_from_its_parts() {
        let whole = |word: &str| is_whole(&resolve(word, Some(WORKSPACE)).unwrap());
        for word in [
            "~",
            "/",
            "*",
            "./*",
            ".",
            "..",
            "/*",
            "/r*",
            "/ro?t",
            "~/*/",
            "**",
            ".[!.]*",
            "?*",
            "a/..",
            "../root",
            "../root/*",
            "[!x]*",
            ".?*",
        ] {
            assert!(whole(word), "{word}");
        }
        for word in ["a", "*.o", "a*", "/tmp", "/tmp/*", "build/*", "*/x", "/t*", "?", "..x", "{}"]
        {
            assert!(!whole(word), "{word}");
        }
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for pattern in [".automaton", ".auto*", ".*", ".?utomaton", ".*n", ".*a*o*"] {
            assert!(matches_glob(pattern, ".automaton"), "{pattern}");
        }
        for pattern in ["*", "automaton", ".auto", ".b*", "?automaton", ".automaton?", ""] {
            assert!(!matches_glob(pattern, ".automaton"), "{pattern}");
        }
        assert!(matches_glob(&format!(".{}x", "*".repeat(200)), ".automaton"));
        for pattern in [".env*", ".env.*", ".e*", ".env.p*", ".env?production", ".env.[a-z]*"] {
            assert!(may_begin(pattern, ".env."), "{pattern}");
        }
        for pattern in [".environment*", ".envrc", ".env", "env*"] {
            assert!(!may_begin(pattern, ".env."), "{pattern}");
        }
    }
}
