//! Pure: which names come next to one that is not there.

use automaton_sandbox::WorkspacePath;

/// Names that are told at most.
const TOLD_MAX: usize = 3;
/// Characters of a name that are compared.
const COMPARED_MAX: usize = 64;

/// The files whose names are most like the one that was meant, best first.
pub(super) fn nearest<'a>(
    meant: &WorkspacePath,
    there: impl Iterator<Item = &'a WorkspacePath>,
) -> Vec<&'a WorkspacePath> {
    let name = last(meant);
    let most = (name.len() / 3).max(2);
    let distances = there.filter_map(|path| {
        let found = last(path);
        let within = found.len() > 2 && name.contains(found.as_str());
        let apart = distance(&name, &found);
        let apart = if within { apart.min(most) } else { apart };
        let elsewhere = above(path) != above(meant);
        (apart <= most).then_some(((apart, elsewhere), path))
    });
    let mut found: Vec<_> = distances.collect();
    found.sort();
    found.into_iter().take(TOLD_MAX).map(|(_, path)| path).collect()
}

/// The last name of a path, small.
fn last(path: &WorkspacePath) -> String {
    let name = path.names().last().unwrap_or_default().chars();
    name.take(COMPARED_MAX).flat_map(char::to_lowercase).collect()
}

fn above(path: &WorkspacePath) -> Option<&std::path::Path> {
    path.relative().parent()
}

/// Returns the number of characters to insert, delete or replace to get from one to the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (nth, a) in one.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], nth + 1);
        for (at, b) in other.iter().enumerate() {
            let exchanged = before + usize::from(a != *b);
            before = row[at + 1];
            row[at + 1] = exchanged.min(before + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_and_misplaced_files_are_found() {
        let path = |text: &str| WorkspacePath::parse(text).unwrap();
        let names = ["src/main.rs", "src/mian.rs", "docs/main.rs", "notes.txt", "README.md", "a"];
        let there = names.map(path);
        let near = |meant: &str| -> Vec<String> {
            nearest(&path(meant), there.iter()).into_iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            near("src/Main.rs"),
            ["/root/src/main.rs", "/root/docs/main.rs", "/root/src/mian.rs"]
        );
        assert_eq!(near("note.txt"), ["/root/notes.txt"]);
        assert_eq!(
            near("main.rs"),
            ["/root/docs/main.rs", "/root/src/main.rs", "/root/src/mian.rs"]
        );
        assert!(near("Cargo.toml").is_empty());
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "ab"), 2);
    }
}
