//! Pure: no file names a folder of the machine that it was written on.

use crate::tidy::Finding;
use crate::tree::TextFile;

/// Folders that exist on one machine only; in two parts, since this file is checked too.
const FOLDERS: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/root/", ".cargo"),
    concat!("/root/", ".pyenv"),
    concat!("/tmp/", "bash"),
];

/// A finding for each line that names such a folder.
pub(crate) fn check(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(folder) = FOLDERS.iter().find(|folder| names(line, folder)) {
            findings.push(Finding::new(
                &file.path,
                index + 1,
                format!(
                    "`{folder}` is a folder of one machine. Make the path relative, or a parameter."
                ),
            ));
        }
    }
    findings
}

/// Whether a line names a folder from the root: nothing of a path stands before it.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~$}>*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::NOTHING;

    #[test]
    fn folders_of_this_machine_are_named() {
        let lines = |text: &str| {
            let file = TextFile { path: "up".to_owned(), text: text.to_owned() };
            check(&file).iter().map(|finding| finding.line).collect::<Vec<_>>()
        };
        let folder = FOLDERS[0];
        assert_eq!(lines(&format!("a\n  \"{folder}main\"\nfile://{folder}x")), [2, 3]);
        assert_eq!(
            lines(&format!("home{folder}x ~{folder}x $HOME{folder}x /root/SOUL.md")),
            NOTHING
        );
    }
}
