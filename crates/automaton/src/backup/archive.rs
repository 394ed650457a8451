//! What is inside of a sealed file: folders, files and links, one after the other.
//!
//! ```text
//! length(4) manifest as JSON
//! kind(1) mode(4) length(4) path     1 a folder, 2 a file, 3 a link; parents come first
//!   a file: length(4) bytes, as often as it takes; 0(4); SHA-256(32)
//!   a link: length(4) where it leads
//! 0(1)                               the end
//! ```
//!
//! Numbers are big-endian. A path has plain names alone, is there once, and its parent is a
//! folder of the archive: so nothing can be written through a link, or anywhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{Read, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use alloy_primitives::Address;
use automaton_signer::{SealedReader, SealedWriter};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::failed;
use crate::error::CliError;

/// The form of the manifest and of what follows.
const VERSION: u32 = 1;
const END: u8 = 0;
const FOLDER: u8 = 1;
const FILE: u8 = 2;
const LINK: u8 = 3;
/// Bytes of a file that are held at once.
const PIECE_BYTES: usize = 64 * 1024;
/// The longest manifest, path or target of a link that is read, in bytes.
const TEXT_BYTES_MAX: u32 = 64 * 1024;

/// Whose life it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    /// The automaton's name.
    pub(crate) name: String,
    /// When it was copied.
    pub(crate) made_at: String,
    /// Its wallet.
    pub(crate) wallet: Option<Address>,
    /// The folders that are in it.
    pub(crate) folders: Vec<String>,
}

impl Manifest {
    /// The manifest of a life.
    pub(crate) const fn new(
        name: String,
        made_at: String,
        wallet: Option<Address>,
        folders: Vec<String>,
    ) -> Self {
        Self { version: VERSION, name, made_at, wallet, folders }
    }
}

/// What was written or read, and the digest of all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ArchiveTally {
    /// Files.
    pub(crate) files: u64,
    /// Their bytes.
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

    /// Writes what a file holds, which was opened at `from`; no more than it held when it was
    /// looked at, since others may write to it.
    pub(super) fn file(
        &mut self,
        path: &Path,
        mode: u32,
        (file, from): (File, &Path),
    ) -> Result<(), CliError> {
        self.head(FILE, mode, path)?;
        let length = file.metadata().map_err(failed("read", from))?.len();
        let (mut file, mut hash) = (file.take(length), Sha256::new());
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = file.read(&mut piece).map_err(failed("read", from))?;
            self.text(&piece[..read])?;
            hash.update(&piece[..read]);
            self.tally.bytes += read as u64;
            if read == 0 {
                break;
            }
        }
        let digest = hash.finalize();
        self.sealed.write_all(&digest)?;
        self.tally.files += 1;
        self.tally.entry(FILE, mode, path.as_os_str().as_bytes(), &digest);
        Ok(())
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
        folders: BTreeMap::new(),
    };
    let text = reader.text()?;
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|_| reader.sealed.damage())?;
    if manifest.version != VERSION {
        let what = format!("the backup is of form {}, not {VERSION}", manifest.version);
        return Err(CliError::user(what).hint("use the automaton that wrote it, or a newer one"));
    }
    while reader.entry(&manifest)? {}
    reader.close_folders()?;
    let ArchiveReader { sealed, tally, .. } = reader;
    sealed.finish()?;
    Ok((manifest, tally.end()))
}

struct ArchiveReader<'a> {
    sealed: SealedReader,
    into: Option<&'a Path>,
    tally: Tallying,
    seen: BTreeSet<PathBuf>,
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
        let content = match kind {
            FOLDER => self.folder(&path, mode)?,
            FILE => self.file(&path, mode)?,
            LINK => self.link(&path)?,
            _ => return Err(self.sealed.damage().into()),
        };
        self.tally.entry(kind, mode, path.as_os_str().as_bytes(), &content);
        Ok(true)
    }

    fn check(&mut self, path: &Path, manifest: &Manifest) -> Result<(), CliError> {
        let refused = |why: &str| {
            let what = format!("the backup has the path {path:?}, which {why}");
            Err(CliError::user(what).hint("nothing was restored: make it with `automaton backup`"))
        };
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
        loop {
            let piece = self.text()?;
            if piece.is_empty() {
                break;
            }
            hash.update(&piece);
            self.tally.bytes += piece.len() as u64;
            if let (Some(file), Some(place)) = (&mut file, &place) {
                file.write_all(&piece).map_err(failed("write", place))?;
            }
        }
        self.tally.files += 1;
        let digest: [u8; 32] = self.bytes()?;
        if hash.finalize()[..] != digest {
            return Err(self.sealed.damage().into());
        }
        if let (Some(file), Some(place)) = (&file, &place) {
            file.set_permissions(Permissions::from_mode(mode))
                .and_then(|()| file.sync_all())
                .map_err(failed("write", place))?;
        }
        Ok(digest.to_vec())
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
        let length = u32::from_be_bytes(self.bytes()?);
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

    /// What becomes of an archive with these folders, links and files.
    fn refused(entries: &[(u8, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let (path, words) = (folder.path().join("file"), Secret::new("words".to_owned()));
        let file = File::create(&path).unwrap();
        let sealed = SealedWriter::new(file, &path, &words, &SystemEntropy).unwrap();
        let folders = vec!["home".to_owned()];
        let manifest = Manifest::new("Ada".to_owned(), String::new(), None, folders);
        let mut archive = ArchiveWriter::begin(sealed, &manifest).unwrap();
        for (kind, name) in entries {
            let name = Path::new(name);
            let empty = File::create(folder.path().join("empty")).unwrap();
            match *kind {
                FOLDER => archive.folder(name, 0o700),
                FILE => archive.file(name, 0o600, (empty, name)),
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
            ("signer", "is in no folder of it"),
            ("home/none/x", "is in no folder of it"),
        ] {
            let told = refused(&[(FOLDER, "home"), (FILE, path)]);
            assert!(told.contains(why), "{path}: {told}");
        }
        let twice = refused(&[(FOLDER, "home"), (FILE, "home/x"), (LINK, "home/x")]);
        assert!(twice.contains("is there twice"), "{twice}");
        let through = refused(&[(FOLDER, "home"), (LINK, "home/l"), (FILE, "home/l/x")]);
        assert!(through.contains("is in no folder of it"), "{through}");
    }
}
