//! The file of one snapshot: its record, and an entry for each file, folder and link.
//!
//! The first line is the record, so that a list of snapshots reads nothing else. One line an
//! entry follows, parents before their children, and a last line that shows that none is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use automaton_core::snapshot::SnapshotRecord;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::path_text::{decode, encode};

/// The format of the files that this program writes and reads.
const FORMAT: u32 = 1;
/// The last line.
const END: &str = "end";
/// The longest first line, in bytes: a record, and the labels of files.
const HEAD_BYTES_MAX: u64 = 64 << 20;
/// The longest line of an entry, in bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// A path, written as [`encode`] does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredPath(pub(super) PathBuf);

impl Serialize for StoredPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for StoredPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let path = decode(&text).ok_or_else(|| serde::de::Error::custom("that is no path"))?;
        Ok(Self(path))
    }
}

/// A moment, in seconds and nanoseconds since the epoch.
pub(super) type FileTime = (i64, i64);

/// One file, folder or link of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeEntry {
    /// Its path in the workspace.
    pub(super) path: StoredPath,
    /// Its permissions, without the bits that change the user of a program.
    pub(super) mode: u32,
    /// When it was written last, as it says itself.
    pub(super) modified: FileTime,
    /// The kind, with what it holds.
    pub(super) node: TreeNode,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TreeNode {
    /// A folder.
    Folder,
    /// A regular file.
    File {
        /// Its size.
        bytes: u64,
        /// The SHA-256 of its content, in hexadecimal: the name of the object.
        hash: String,
        /// The file as the system knows it; none where it may have changed unseen.
        identity: Option<FileIdentity>,
    },
    /// A symbolic link.
    Link {
        /// What it names, which is never followed.
        target: StoredPath,
    },
}

/// A file that was not changed is the same by all of these: no program can set the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileIdentity {
    pub(super) device: u64,
    pub(super) number: u64,
    pub(super) changed: FileTime,
}

/// A snapshot with all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeManifest {
    pub(super) record: SnapshotRecord,
    /// Labels of paths, as the caller gave them.
    pub(super) labels: BTreeMap<String, String>,
    /// Sorted by path.
    pub(super) entries: Vec<TreeEntry>,
}

#[derive(Serialize, Deserialize)]
struct ManifestHead {
    format: u32,
    entries: usize,
    record: SnapshotRecord,
    labels: BTreeMap<String, String>,
}

impl TreeManifest {
    /// Returns the objects that it needs, by name, with their sizes.
    pub(super) fn objects(&self) -> BTreeSet<(&str, u64)> {
        let files = self.entries.iter().filter_map(|entry| match &entry.node {
            TreeNode::File { hash, bytes, .. } => Some((hash.as_str(), *bytes)),
            TreeNode::Folder | TreeNode::Link { .. } => None,
        });
        files.collect()
    }

    /// Writes it to a file that is not there yet, down to the disk.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let partial = path.with_extension("partial");
        // silent-ok: there is one only where a process died over it.
        fs::remove_file(&partial).ok();
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&partial)?;
        let mut out = BufWriter::new(file);
        let head = ManifestHead {
            format: FORMAT,
            entries: self.entries.len(),
            record: self.record.clone(),
            labels: self.labels.clone(),
        };
        serde_json::to_writer(&mut out, &head)?;
        for entry in &self.entries {
            out.write_all(b"\n")?;
            serde_json::to_writer(&mut out, entry)?;
        }
        writeln!(out, "\n{END}")?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }

    /// Reads a whole one.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut input = BufReader::new(File::open(path)?);
        let head = read_head(&mut input)?;
        let mut entries = Vec::with_capacity(head.entries.min(1 << 20));
        for _ in 0..head.entries {
            let line = read_line(&mut input, LINE_BYTES_MAX)?;
            let entry: TreeEntry = serde_json::from_str(&line)?;
            check(&entry)?;
            entries.push(entry);
        }
        if read_line(&mut input, LINE_BYTES_MAX)? != END {
            return Err(damaged("its last line is missing"));
        }
        Ok(Self { record: head.record, labels: head.labels, entries })
    }
}

/// Reads the record of a snapshot alone.
pub(super) fn read_record(path: &Path) -> io::Result<SnapshotRecord> {
    Ok(read_head(&mut BufReader::new(File::open(path)?))?.record)
}

fn read_head(input: &mut BufReader<File>) -> io::Result<ManifestHead> {
    let head: ManifestHead = serde_json::from_str(&read_line(input, HEAD_BYTES_MAX)?)?;
    if head.format != FORMAT {
        let what = "a newer program wrote it";
        return Err(io::Error::new(io::ErrorKind::Unsupported, what));
    }
    Ok(head)
}

fn read_line(input: &mut BufReader<File>, bytes_max: u64) -> io::Result<String> {
    let mut line = String::new();
    input.take(bytes_max).read_line(&mut line)?;
    if line.pop() != Some('\n') {
        return Err(damaged("a line is cut"));
    }
    Ok(line)
}

/// Refuses an entry that no snapshot has: a restore must not leave its folder.
fn check(entry: &TreeEntry) -> io::Result<()> {
    use std::path::Component;
    let path = &entry.path.0;
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_object = match &entry.node {
        TreeNode::File { hash, .. } => is_object_name(hash),
        TreeNode::Folder | TreeNode::Link { .. } => true,
    };
    let is_named = !path.as_os_str().is_empty();
    if is_inside && is_named && is_object {
        Ok(())
    } else {
        Err(damaged("it names a file outside of the workspace"))
    }
}

/// Returns true if a text is the name of an object.
pub(super) fn is_object_name(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
