//! Content of a sealed file: folders, files and links, one after the other.
//!
//! ```text
//! length(4) manifest as JSON
//! kind(1) mode(4) length(4) path     1 a folder, 2 a file, 3 a link, 4 a file that is there
//!                                    already under another name; parents come first
//!   a file: length(4) bytes, or 2^32 - 1(4) length(8) of a hole, as often as it takes; 0(4);
//!           SHA-256(32) of the bytes, and of what stands for each hole
//!   a link: length(4) where it leads
//!   another name: length(4) the path of the first
//! 0(1)                               the end
//! ```
//!
//! Numbers are big-endian. A path has plain names alone, is there once, and its parent is a
//! folder of the archive: so nothing can be written through a link, or anywhere else. Each part
//! of a life is a folder, and so is the workspace: links and second names are for what lies
//! beneath it alone, since whoever wrote the archive says where they lead.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use alloy_primitives::Address;
use automaton_core::time::Timestamp;
use automaton_core::wire::sign_in::parse_rfc3339;
use automaton_sandbox::next_data;
use automaton_signer::{SealedReader, SealedWriter};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::{PARTS, WORKSPACE, failed};
use crate::error::CliError;

/// The form of the manifest and of what follows.
const VERSION: u32 = 1;
const END: u8 = 0;
const FOLDER: u8 = 1;
const FILE: u8 = 2;
const LINK: u8 = 3;
const SAME: u8 = 4;
/// Stands in the place of a piece's length: a hole follows, with its length.
const HOLE: u32 = u32::MAX;
/// Bytes of a file that are held at once.
const PIECE_BYTES: usize = 64 * 1024;
/// The hint where an archive has what `backup` never writes.
const MADE_OTHERWISE: &str = "nothing was restored: make it with `automaton backup`";
/// The longest manifest, path or target of a link that is read, in bytes.
const TEXT_BYTES_MAX: u32 = 64 * 1024;

/// Automaton of the backup.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    /// The automaton's name.
    pub(crate) name: String,
    /// Time of the copy. Read as a time and never as a text, which a terminal might obey.
    #[serde(serialize_with = "write_time", deserialize_with = "read_time")]
    pub(crate) made_at: Timestamp,
    /// Its wallet.
    pub(crate) wallet: Option<Address>,
    /// The folders that are in it.
    pub(crate) folders: Vec<String>,
}

fn write_time<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(time)
}

fn read_time<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(from)?;
    parse_rfc3339(&text).ok_or_else(|| serde::de::Error::custom("made_at is no time"))
}

impl Manifest {
    /// The manifest of a life.
    pub(crate) const fn new(
        name: String,
        made_at: Timestamp,
        wallet: Option<Address>,
        folders: Vec<String>,
    ) -> Self {
        Self { version: VERSION, name, made_at, wallet, folders }
    }
}

/// Counts and digest of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ArchiveTally {
    /// Files.
    pub(crate) files: u64,
    /// Their bytes, without holes.
    pub(crate) bytes: u64,
    /// SHA-256 over each entry with its digest.
    pub(crate) digest: String,
}

/// Counts entries, and hashes what each of them is.
#[derive(Default)]
struct Tallying {
    files: u64,
    bytes: u64,
    all: Sha256,
}

impl Tallying {
    fn entry(&mut self, kind: u8, mode: u32, path: &[u8], content: &[u8]) {
        self.all.update([kind]);
        self.all.update(mode.to_be_bytes());
        for part in [path, content] {
            self.all.update((part.len() as u64).to_be_bytes());
            self.all.update(part);
        }
    }

    fn end(self) -> ArchiveTally {
        let digest = hex::encode(self.all.finalize());
        ArchiveTally { files: self.files, bytes: self.bytes, digest }
    }
}

/// Reason for which a part of a file is not in an archive.
enum DataError {
    /// It cannot be read.
    Read(io::Error),
    /// It cannot be written.
    Written(CliError),
}

impl DataError {
    /// Names the file.
    fn into_cli_error(self, from: &Path) -> CliError {
        match self {
            Self::Read(error) => failed("read", from)(error),
            Self::Written(error) => error,
        }
    }
}

impl From<io::Error> for DataError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl From<CliError> for DataError {
    fn from(error: CliError) -> Self {
        Self::Written(error)
    }
}

/// Writes an archive.
pub(super) struct ArchiveWriter {
    sealed: SealedWriter,
    tally: Tallying,
}

impl ArchiveWriter {
    pub(super) fn begin(sealed: SealedWriter, manifest: &Manifest) -> Result<Self, CliError> {
        let mut archive = Self { sealed, tally: Tallying::default() };
        let text = serde_json::to_vec(manifest)
            .map_err(|error| CliError::internal("cannot write the manifest", &error))?;
        archive.text(&text)?;
        Ok(archive)
    }

    pub(super) fn folder(&mut self, path: &Path, mode: u32) -> Result<(), CliError> {
        self.head(FOLDER, mode, path)?;
        self.tally.entry(FOLDER, mode, path.as_os_str().as_bytes(), &[]);
        Ok(())
    }

    pub(super) fn link(&mut self, path: &Path, target: &Path) -> Result<(), CliError> {
        self.head(LINK, 0, path)?;
        self.text(target.as_os_str().as_bytes())?;
        let target = target.as_os_str().as_bytes();
        self.tally.entry(LINK, 0, path.as_os_str().as_bytes(), target);
        Ok(())
    }

    /// Writes that a file is the one that was written before, under another name.
    pub(super) fn same(&mut self, path: &Path, first: &Path) -> Result<(), CliError> {
        self.head(SAME, 0, path)?;
        let first = first.as_os_str().as_bytes();
        self.text(first)?;
        self.tally.entry(SAME, 0, path.as_os_str().as_bytes(), first);
        Ok(())
    }

    /// Writes what a file holds, which was opened at `from`; no more than it held when it was
    /// looked at, since others may write to it. A hole costs its length alone: a sparse file of
    /// any size is made in no time.
    pub(super) fn file(
        &mut self,
        path: &Path,
        mode: u32,
        (file, from): (File, &Path),
    ) -> Result<(), CliError> {
        self.head(FILE, mode, path)?;
        let length = file.metadata().map_err(failed("read", from))?.len();
        let mut hash = Sha256::new();
        let mut at = 0;
        while at < length {
            let next = next_data(&file, at).map_err(failed("read", from))?;
            let (begin, end) = next.unwrap_or((length, length));
            let begin = begin.min(length);
            let end = end.min(length);
            if begin > at {
                self.hole(begin - at, &mut hash)?;
            }
            if self
                .data(&file, (begin, end), &mut hash)
                .map_err(|error| error.into_cli_error(from))?
            {
                at = end;
            } else {
                break;
            }
        }
        self.text(&[])?;
        let digest = hash.finalize();
        self.sealed.write_all(&digest)?;
        self.tally.files += 1;
        self.tally.entry(FILE, mode, path.as_os_str().as_bytes(), &digest);
        Ok(())
    }

    fn hole(&mut self, length: u64, hash: &mut Sha256) -> Result<(), CliError> {
        for part in [&HOLE.to_be_bytes()[..], &length.to_be_bytes()] {
            self.sealed.write_all(part)?;
            hash.update(part);
        }
        Ok(())
    }

    /// Writes a part of a file; false where the file ends before it.
    fn data(
        &mut self,
        mut file: &File,
        (begin, end): (u64, u64),
        hash: &mut Sha256,
    ) -> Result<bool, DataError> {
        file.seek(SeekFrom::Start(begin))?;
        let mut part = file.take(end - begin);
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = part.read(&mut piece)?;
            if read == 0 {
                return Ok(part.limit() == 0);
            }
            self.text(&piece[..read])?;
            hash.update(&piece[..read]);
            self.tally.bytes += read as u64;
        }
    }

    pub(super) fn finish(mut self) -> Result<ArchiveTally, CliError> {
        self.sealed.write_all(&[END])?;
        self.sealed.finish()?;
        Ok(self.tally.end())
    }

    fn head(&mut self, kind: u8, mode: u32, path: &Path) -> Result<(), CliError> {
        self.sealed.write_all(&[kind])?;
        self.sealed.write_all(&mode.to_be_bytes())?;
        self.text(path.as_os_str().as_bytes())
    }

    fn text(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        // No path of the system is as long, and no piece.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.sealed.write_all(&length.to_be_bytes())?;
        Ok(self.sealed.write_all(bytes)?)
    }
}

/// Reads an archive to its end. Without a folder to unpack it into, all of it is verified and
/// nothing is written.
///
/// # Errors
/// When it is damaged, has a path that it must not have, or cannot be written.
pub(super) fn read(
    sealed: SealedReader,
    into: Option<&Path>,
) -> Result<(Manifest, ArchiveTally), CliError> {
    let mut reader = ArchiveReader {
        sealed,
        into,
        tally: Tallying::default(),
        seen: BTreeSet::new(),
        files: BTreeSet::new(),
        folders: BTreeMap::new(),
    };
    let text = reader.text()?;
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|_| reader.sealed.damage())?;
    if manifest.version != VERSION {
        let what = format!("the backup is of form {}, not {VERSION}", manifest.version);
        return Err(CliError::user(what).hint("use the automaton that wrote it, or a newer one"));
    }
    if let Some(other) = manifest.folders.iter().find(|name| !PARTS.contains(&name.as_str())) {
        let what = format!("the backup has the folder {other:?}, which no automaton has");
        return Err(CliError::user(what).hint(MADE_OTHERWISE));
    }
    while reader.entry(&manifest)? {}
    reader.close_folders()?;
    let ArchiveReader { sealed, tally, .. } = reader;
    sealed.finish()?;
    Ok((manifest, tally.end()))
}

/// The refusal of a path.
fn refused(path: &Path, why: &str) -> CliError {
    CliError::user(format!("the backup has the path {path:?}, which {why}")).hint(MADE_OTHERWISE)
}

/// A piece of a file.
enum FilePiece {
    Bytes(Vec<u8>),
    /// So many zeros that take no room.
    Hole(u64),
}

struct ArchiveReader<'a> {
    sealed: SealedReader,
    into: Option<&'a Path>,
    tally: Tallying,
    seen: BTreeSet<PathBuf>,
    /// Files of the workspace, which may have more names.
    files: BTreeSet<PathBuf>,
    folders: BTreeMap<PathBuf, u32>,
}

impl ArchiveReader<'_> {
    /// Reads one entry; false at the end.
    fn entry(&mut self, manifest: &Manifest) -> Result<bool, CliError> {
        let [kind] = self.bytes()?;
        if kind == END {
            return Ok(false);
        }
        let mode = u32::from_be_bytes(self.bytes()?) & 0o777;
        let path = PathBuf::from(OsString::from_vec(self.text()?));
        self.check(&path, manifest)?;
        Self::check_kind(&path, kind)?;
        let content = match kind {
            FOLDER => self.folder(&path, mode)?,
            FILE => self.file(&path, mode)?,
            LINK => self.link(&path)?,
            SAME => self.same(&path)?,
            _ => return Err(self.sealed.damage().into()),
        };
        self.tally.entry(kind, mode, path.as_os_str().as_bytes(), &content);
        Ok(true)
    }

    fn check(&mut self, path: &Path, manifest: &Manifest) -> Result<(), CliError> {
        let refused = |why: &str| Err(refused(path, why));
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let again: PathBuf = path.components().collect();
        if !plain || path.as_os_str().is_empty() || again.as_os_str() != path.as_os_str() {
            return refused("leaves its folder");
        }
        if path.as_os_str().as_bytes().contains(&0) {
            return refused("no system has");
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let known = match parent {
            Some(parent) => self.folders.contains_key(parent),
            None => manifest.folders.iter().any(|name| Path::new(name) == path),
        };
        if !known {
            return refused("is in no folder of it");
        }
        if self.seen.insert(path.to_owned()) { Ok(()) } else { refused("is there twice") }
    }

    /// Checks that a path may be of this kind.
    fn check_kind(path: &Path, kind: u8) -> Result<(), CliError> {
        let is_inside = path.starts_with(WORKSPACE) && path != Path::new(WORKSPACE);
        let is_place = path.parent().is_none_or(|parent| parent.as_os_str().is_empty())
            || path == Path::new(WORKSPACE);
        match kind {
            LINK if !is_inside => Err(refused(path, "is a link outside of the workspace")),
            SAME if !is_inside => Err(refused(path, "is another's name outside of the workspace")),
            FILE if is_place => Err(refused(path, "is a file in the place of a folder")),
            _ => Ok(()),
        }
    }

    fn same(&mut self, path: &Path) -> Result<Vec<u8>, CliError> {
        let first = PathBuf::from(OsString::from_vec(self.text()?));
        if !self.files.contains(&first) {
            return Err(refused(path, "is another name of a file that is not there"));
        }
        if let Some(root) = self.into {
            let first = root.join(&first);
            let place = root.join(path);
            // Some file systems give a file one name alone.
            fs::hard_link(&first, &place)
                .or_else(|_| fs::copy(&first, &place).map(drop))
                .map_err(failed("make", &place))?;
        }
        Ok(first.into_os_string().into_vec())
    }

    fn folder(&mut self, path: &Path, mode: u32) -> Result<Vec<u8>, CliError> {
        if let Some(root) = self.into {
            let place = root.join(path);
            DirBuilder::new().mode(0o700).create(&place).map_err(failed("make", &place))?;
        }
        self.folders.insert(path.to_owned(), mode);
        Ok(Vec::new())
    }

    fn link(&mut self, path: &Path) -> Result<Vec<u8>, CliError> {
        let target = self.text()?;
        if let Some(root) = self.into {
            let place = root.join(path);
            symlink(OsString::from_vec(target.clone()), &place).map_err(failed("make", &place))?;
        }
        Ok(target)
    }

    fn file(&mut self, path: &Path, mode: u32) -> Result<Vec<u8>, CliError> {
        let place = self.into.map(|root| root.join(path));
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let open = |place: &PathBuf| options.open(place).map_err(failed("make", place));
        let mut file = place.as_ref().map(open).transpose()?;
        let mut hash = Sha256::new();
        let mut length: u64 = 0;
        while let Some(piece) = self.piece(&mut hash)? {
            length = match &piece {
                FilePiece::Bytes(bytes) => length.checked_add(bytes.len() as u64),
                FilePiece::Hole(hole) => length.checked_add(*hole),
            }
            .ok_or_else(|| self.sealed.damage())?;
            let (Some(file), Some(place)) = (&mut file, &place) else { continue };
            match piece {
                FilePiece::Bytes(bytes) => file.write_all(&bytes),
                FilePiece::Hole(_) => file.seek(SeekFrom::Start(length)).map(drop),
            }
            .map_err(failed("write", place))?;
        }
        self.tally.files += 1;
        let digest: [u8; 32] = self.bytes()?;
        if hash.finalize()[..] != digest {
            return Err(self.sealed.damage().into());
        }
        if let (Some(file), Some(place)) = (&file, &place) {
            // A hole at the end was not written.
            file.set_len(length)
                .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
                .and_then(|()| file.sync_all())
                .map_err(failed("write", place))?;
        }
        if path.starts_with(WORKSPACE) {
            self.files.insert(path.to_owned());
        }
        Ok(digest.to_vec())
    }

    /// Reads the next piece of a file; none at its end.
    fn piece(&mut self, hash: &mut Sha256) -> Result<Option<FilePiece>, CliError> {
        let head = self.bytes()?;
        if u32::from_be_bytes(head) == HOLE {
            let length = self.bytes()?;
            hash.update(head);
            hash.update(length);
            return Ok(Some(FilePiece::Hole(u64::from_be_bytes(length))));
        }
        let bytes = self.rest_of_text(head)?;
        hash.update(&bytes);
        self.tally.bytes += bytes.len() as u64;
        Ok(Some(FilePiece::Bytes(bytes)).filter(|_| head != [0; 4]))
    }

    /// Gives the folders their modes, now that nothing more is written into them: the inner
    /// ones first.
    fn close_folders(&self) -> Result<(), CliError> {
        let Some(root) = self.into else { return Ok(()) };
        for (path, mode) in self.folders.iter().rev() {
            let place = root.join(path);
            super::sync_folder(&place)?;
            fs::set_permissions(&place, Permissions::from_mode(*mode))
                .map_err(failed("write", &place))?;
        }
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], CliError> {
        let mut bytes = [0; N];
        self.sealed.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<Vec<u8>, CliError> {
        let length = self.bytes()?;
        self.rest_of_text(length)
    }

    fn rest_of_text(&mut self, length: [u8; 4]) -> Result<Vec<u8>, CliError> {
        let length = u32::from_be_bytes(length);
        if length > TEXT_BYTES_MAX {
            return Err(self.sealed.damage().into());
        }
        let mut bytes = vec![0; length as usize];
        self.sealed.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use automaton_core::entropy::SystemEntropy;
    use automaton_core::secret::Secret;

    use super::*;

    /// Returns the refusal of an archive with these folders, links and files.
    fn refused(entries: &[(u8, &str)]) -> String {
        refused_in(&["home"], entries)
    }

    /// The same, of an archive whose manifest names these parts.
    fn refused_in(folders: &[&str], entries: &[(u8, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let words = Secret::new("words".to_owned());
        let file = File::create(&path).unwrap();
        let sealed = SealedWriter::new(file, &path, &words, &SystemEntropy).unwrap();
        let folders = folders.iter().map(ToString::to_string).collect();
        let manifest = Manifest::new("Ada".to_owned(), Timestamp::EPOCH, None, folders);
        let mut archive = ArchiveWriter::begin(sealed, &manifest).unwrap();
        for (kind, name) in entries {
            let name = Path::new(name);
            let empty = File::create(folder.path().join("empty")).unwrap();
            match *kind {
                FOLDER => archive.folder(name, 0o700),
                FILE => archive.file(name, 0o600, (empty, name)),
                SAME => archive.same(name, Path::new("home/x")),
                _ => archive.link(name, Path::new("/etc")),
            }
            .unwrap();
        }
        archive.finish().unwrap();
        let into = folder.path().join("into");
        fs::create_dir(&into).unwrap();
        let sealed = SealedReader::new(File::open(&path).unwrap(), &path, &words).unwrap();
        read(sealed, Some(&into)).unwrap_err().line()
    }

    #[test]
    fn no_path_leaves_its_folder_or_is_there_twice() {
        for (path, why) in [
            ("/etc/passwd", "leaves its folder"),
            ("home/../../x", "leaves its folder"),
            ("home//x", "leaves its folder"),
            ("signer/x", "is in no folder of it"),
            ("signer", "is in no folder of it"),
            ("home/none/x", "is in no folder of it"),
        ] {
            let told = refused(&[(FOLDER, "home"), (FILE, path)]);
            assert!(told.contains(why), "{path}: {told}");
        }
        let twice = refused(&[(FOLDER, "home"), (FILE, "home/x"), (LINK, "home/x")]);
        assert!(twice.contains("is there twice"), "{twice}");
        let inside = "home/workspace";
        let through = [(FOLDER, "home"), (FOLDER, inside), (LINK, "home/workspace/l")];
        let through = refused(&[&through[..], &[(FILE, "home/workspace/l/x")]].concat());
        assert!(through.contains("is in no folder of it"), "{through}");
    }

    #[test]
    fn only_beneath_the_workspace_are_links_and_second_names() {
        for (kind, path, why) in [
            (LINK, "home", "is a link outside of the workspace"),
            (LINK, "home/workspace", "is a link outside of the workspace"),
            (LINK, "home/automaton.json", "is a link outside of the workspace"),
            (LINK, "home/workspaces", "is a link outside of the workspace"),
            (FILE, "home", "is a file in the place of a folder"),
            (FILE, "home/workspace", "is a file in the place of a folder"),
            (SAME, "home", "is another's name outside of the workspace"),
            (SAME, "home/y", "is another's name outside of the workspace"),
            (SAME, "home/workspace", "is another's name outside of the workspace"),
            (SAME, "signer/ledger.db", "is another's name outside of the workspace"),
        ] {
            let told = ArchiveReader::check_kind(Path::new(path), kind).unwrap_err().line();
            assert!(told.contains(why), "{kind} {path}: {told}");
        }
        for kind in [FOLDER, FILE, LINK, SAME] {
            let path = Path::new("home/workspace/a/b");
            assert!(ArchiveReader::check_kind(path, kind).is_ok(), "{kind}");
        }
        for part in ["home", "signer", "dev", "home/workspace"] {
            assert!(ArchiveReader::check_kind(Path::new(part), FOLDER).is_ok(), "{part}");
        }
        let linked = refused(&[(FOLDER, "home"), (LINK, "home/workspace")]);
        assert!(linked.contains("is a link outside of the workspace"), "{linked}");
        // Nor has the record of a life another name in there.
        let outside = [(FOLDER, "home"), (FILE, "home/x"), (FOLDER, "home/workspace")];
        let told = refused(&[&outside[..], &[(SAME, "home/workspace/x")]].concat());
        assert!(told.contains("is another name of a file that is not there"), "{told}");
    }

    #[test]
    fn what_is_no_part_of_a_life_is_none_whatever_a_manifest_says() {
        for name in ["ready", "home/workspace"] {
            let told = refused_in(&["home", name], &[(FOLDER, "home")]);
            assert!(told.contains("which no automaton has"), "{name}: {told}");
        }
    }

    #[test]
    fn a_manifest_has_a_time_or_is_damaged() {
        let read = |made_at: &str| {
            let text = format!(
                r#"{{"version":1,"name":"E","made_at":{made_at},"wallet":null,"folders":[]}}"#
            );
            serde_json::from_str::<Manifest>(&text).map(|manifest| manifest.made_at).ok()
        };
        assert_eq!(read(r#""1970-01-01T00:00:01.500Z""#), Some(Timestamp::from_millis(1500)));
        for bad in [r#""\u001b]0;title\u0007now""#, r#""soon""#, "7", "null"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        let made = Manifest::new(String::new(), Timestamp::from_millis(1500), None, Vec::new());
        let text = serde_json::to_string(&made).unwrap();
        assert!(text.contains(r#""made_at":"1970-01-01T00:00:01.500Z""#), "{text}");
    }

    #[test]
    fn a_hole_costs_its_length_and_comes_back_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let words = Secret::new("words".to_owned());
        let sealed = File::create(&path).unwrap();
        let sealed = SealedWriter::new(sealed, &path, &words, &SystemEntropy).unwrap();
        let folders = vec!["home".to_owned()];
        let manifest = Manifest::new("Ada".to_owned(), Timestamp::EPOCH, None, folders);
        let mut archive = ArchiveWriter::begin(sealed, &manifest).unwrap();
        for part in ["home", "home/workspace"] {
            archive.folder(Path::new(part), 0o700).unwrap();
        }
        // A terabyte, with some bytes in the middle.
        let from = folder.path().join("sparse");
        let length = 1 << 40;
        let mut sparse = File::create_new(&from).unwrap();
        sparse.set_len(length).unwrap();
        sparse.seek(SeekFrom::Start(1 << 30)).unwrap();
        sparse.write_all(b"precious").unwrap();
        let opened = File::open(&from).unwrap();
        let name = Path::new("home/workspace/sparse");
        archive.file(name, 0o640, (opened, &from)).unwrap();
        archive.same(Path::new("home/workspace/again"), name).unwrap();
        let written = archive.finish().unwrap();
        assert!(written.bytes < 1 << 20, "{written:?}");
        assert!(fs::metadata(&path).unwrap().len() < 1 << 21);
        let into = folder.path().join("into");
        fs::create_dir(&into).unwrap();
        let sealed = SealedReader::new(File::open(&path).unwrap(), &path, &words).unwrap();
        assert_eq!(read(sealed, Some(&into)).unwrap().1, written);
        let mut back = File::open(into.join(name)).unwrap();
        let found = back.metadata().unwrap();
        assert_eq!((found.len(), found.permissions().mode() & 0o777), (length, 0o640));
        let mut bytes = [1; 12];
        back.seek(SeekFrom::Start((1 << 30) - 2)).unwrap();
        back.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"\0\0precious\0\0");
        assert_eq!(fs::metadata(into.join("home/workspace/again")).unwrap().len(), length);
    }
}
