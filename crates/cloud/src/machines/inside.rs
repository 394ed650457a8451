//! The programs that run inside of machines to work on their files, and their answers.
//!
//! They read and write the files that are in none of our folders: all files of containers, and
//! the files that other machines have in memory.

use automaton_core::wire::cloud::{FileEntry, FileEntryKind};

use super::driver::{DriverError, DriverResult, ENTRIES_MAX};

/// The script that starts them.
pub(super) const INSIDE: &str = include_str!("inside.sh");
/// Bytes of a listing that are read: the most entries with the longest names.
pub(super) const LIST_BYTES_MAX: usize = ENTRIES_MAX * 300;

/// Reads the script's one-line answer about a path, which errors name `shown`. If the script gave
/// no answer, its words may be in `elsewhere`.
pub(super) fn answered(
    line: &str,
    shown: &str,
    elsewhere: impl FnOnce() -> String,
) -> DriverResult<String> {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("ok", told) => Ok(told.to_owned()),
        ("path", why) => Err(DriverError::Path(format!("{shown} {why}"))),
        ("missing", why) => Err(DriverError::Missing(format!("{shown} {why}"))),
        _ => Err(DriverError::Failed { what: "use the machine's files", why: elsewhere() }),
    }
}

/// Reads the entries of a folder, sorted by name, and whether there are more. No name has a slash
/// in it, so a slash before the end of a line ends a name.
pub(super) fn entries(text: &str, folder: &str) -> (Vec<FileEntry>, bool) {
    let read = |record: &str| {
        let (status, name) = record.split_once(" ./")?;
        let (mode, size) = status.split_once(' ')?;
        let kind = match u32::from_str_radix(mode, 16).ok()? & 0o170_000 {
            0o100_000 => FileEntryKind::File,
            0o040_000 => FileEntryKind::Directory,
            0o120_000 => FileEntryKind::Link,
            _ => FileEntryKind::Special,
        };
        let path = format!("{folder}/{name}");
        Some(FileEntry { name: name.to_owned(), path, kind, size: size.parse().ok()? })
    };
    let mut records = text.split("/\n").filter_map(read);
    let mut files: Vec<FileEntry> = records.by_ref().take(ENTRIES_MAX).collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    (files, records.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_in_order_whatever_names_have_in_them() {
        let text =
            "81a4 3 ./b c/\n41ed 4096 ./a\nx/\na1ff 1 ./l/\n11b4 0 ./p/\nx ./y/\n81a4 -1 ./z";
        let (files, is_cut) = entries(text, "/root");
        let told: Vec<_> = files.iter().map(|it| (it.name.as_str(), it.kind, it.size)).collect();
        let expected = [
            ("a\nx", FileEntryKind::Directory, 4096),
            ("b c", FileEntryKind::File, 3),
            ("l", FileEntryKind::Link, 1),
            ("p", FileEntryKind::Special, 0),
        ];
        assert_eq!((told, is_cut), (expected.to_vec(), false));
        assert_eq!(files[1].path, "/root/b c");
        let many: String = (0..=ENTRIES_MAX).map(|n| format!("81a4 0 ./{n}/\n")).collect();
        let (files, is_cut) = entries(&many, "/root");
        assert_eq!((files.len(), is_cut), (ENTRIES_MAX, true));
    }
}
