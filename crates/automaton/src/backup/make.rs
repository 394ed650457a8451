//! Makes a backup of a life, which may be lived meanwhile.
//!
//! Databases are copied first, each at one moment; then everything is sealed into a file
//! beside the one that is wanted, read back, compared, and only then given its name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use automaton_core::entropy::SystemEntropy;
use automaton_core::secret::Secret;
use automaton_sandbox::fs::WorkspaceDir;
use automaton_sandbox::process::lock;
use automaton_signer::{SealedReader, SealedWriter};
use automaton_sqlite::copy_database;

use super::archive::{self, ArchiveTally, ArchiveWriter, Manifest};
use super::{STAMP, WORKSPACE, beside, failed, folders_of, is_database, remove_all, sync_folder};
use crate::error::CliError;
use crate::home::{make_directory, write_atomically};

/// Folder of the home for copies of databases.
const COPIES: &str = ".backup";
/// Held by who makes a backup.
const LOCK: &str = "backup.lock";
/// Folders with our databases, in the order of copying. A cloud's signer comes before the cloud,
/// and the cloud before its chain, which is an ordinary file.
const WITH_DATABASES: [&str; 4] = ["home", "signer", "dev/gas", "dev/cloud"];
/// The longest path of the workspace that is kept, in bytes: a restore puts it beneath another
/// folder, and no system takes a path of more than 4096 bytes at once.
const PATH_BYTES_MAX: usize = 3072;
/// The snapshots of the workspace, which are copies of what it was.
const SNAPSHOTS: &str = "home/snapshots";
/// The disks of rented machines, which may be of any size.
const MACHINES: &str = "dev/cloud/machines";

/// Input of a backup.
pub(crate) struct BackupRequest<'a> {
    /// The home.
    pub(crate) home: &'a Path,
    /// Destination.
    pub(crate) file: &'a Path,
    /// Passphrase that seals it.
    pub(crate) passphrase: &'a Secret,
    /// Automaton of the backup.
    pub(crate) manifest: Manifest,
}

/// Result of a backup.
#[derive(Debug)]
pub(crate) struct MadeBackup {
    /// Counts.
    pub(crate) tally: ArchiveTally,
    /// Entries of the workspace that are not in it: out of reach, or of no kind that can be
    /// kept, such as pipes.
    pub(crate) skipped: u64,
    /// The first of them.
    pub(crate) skipped_first: Option<PathBuf>,
    /// True if disks of rented machines were left out.
    pub(crate) without_machines: bool,
}

/// Returns the names of the folders of a life that are there.
///
/// # Errors
/// When the system does not say whether one is.
pub(crate) fn names_of(home: &Path) -> Result<Vec<String>, CliError> {
    let mut names = Vec::new();
    for (name, path) in folders_of(home) {
        match path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", &path)(error)),
            Ok(found) => names.extend(found.is_dir().then(|| name.to_owned())),
        }
    }
    Ok(names)
}

/// Makes a backup.
///
/// # Errors
/// When something cannot be read or written, or a database is damaged; then there is no file
/// of that name that was not there before.
pub(crate) fn make(request: &BackupRequest<'_>) -> Result<MadeBackup, CliError> {
    let BackupRequest { home, file, passphrase, manifest } = request;
    let _lock = lock(&home.join(LOCK))?;
    let partial = beside(file, ".partial");
    let copies = Copies(home.join(COPIES));
    let done = seal(request, &partial, &copies).and_then(|made| {
        let opened = File::open(&partial).map_err(failed("read", &partial))?;
        let (_, read) = archive::read(SealedReader::new(opened, &partial, passphrase)?, None)?;
        if read != made.tally {
            let what = format!("what was written to {} is not what is read", partial.display());
            return Err(CliError::user(what).hint("try another disk"));
        }
        fs::rename(&partial, file).map_err(failed("write", file))?;
        sync_folder(file.parent().unwrap_or(Path::new("/")))?;
        Ok(made)
    });
    if done.is_err() {
        // silent-ok: it may not be there, and why it failed is told.
        fs::remove_file(&partial).ok();
    }
    let made = done?;
    write_atomically(&home.join(STAMP), manifest.made_at.to_string().as_bytes(), 0o600)?;
    Ok(made)
}

/// Copies of databases, which are gone with the value.
struct Copies(PathBuf);

impl Copies {
    fn copy_of(&self, path: &Path) -> PathBuf {
        self.0.join(path.display().to_string().replace('/', "-"))
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        if let Err(error) = remove_all(&self.0) {
            error.print();
        }
    }
}

fn seal(
    request: &BackupRequest<'_>,
    partial: &Path,
    copies: &Copies,
) -> Result<MadeBackup, CliError> {
    let places = folders_of(request.home);
    remove_all(&copies.0)?;
    make_directory(&copies.0).map_err(failed("make", &copies.0))?;
    for folder in WITH_DATABASES {
        let (top, inner) = folder.split_once('/').unwrap_or((folder, ""));
        let place = places.iter().find(|(name, _)| *name == top).map(|(_, path)| path.join(inner));
        copy_databases(folder, &place.unwrap_or_default(), copies)?;
    }
    // silent-ok: what is left of a backup that was killed, if there is anything.
    fs::remove_file(partial).ok();
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let file = options.open(partial).map_err(failed("make", partial))?;
    let sealed = SealedWriter::new(file, partial, request.passphrase, &SystemEntropy)?;
    let archive = ArchiveWriter::begin(sealed, &request.manifest)?;
    let mut walk = FolderWalk {
        archive,
        copies,
        skipped: 0,
        skipped_first: None,
        names: BTreeMap::new(),
        without_machines: false,
    };
    for (name, place) in &places {
        if request.manifest.folders.iter().any(|folder| folder == name) {
            walk.write_folder(name, place)?;
        }
    }
    let FolderWalk { archive, skipped, skipped_first, without_machines, .. } = walk;
    Ok(MadeBackup { tally: archive.finish()?, skipped, skipped_first, without_machines })
}

fn copy_databases(folder: &str, place: &Path, copies: &Copies) -> Result<(), CliError> {
    let entries = match fs::read_dir(place) {
        // Not every life has each of them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed("read", place))?,
    };
    for entry in entries {
        let name = entry.map_err(failed("read", place))?.file_name();
        let path = Path::new(folder).join(&name);
        if is_database(&path) {
            copy_database(&place.join(&name), &copies.copy_of(&path))?;
        }
    }
    Ok(())
}

/// Returns true for a file that a running process makes anew: a lock, a log of a database, a
/// half-written file.
fn is_remade(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let ends: [&[u8]; 5] = [b"lock", b"-wal", b"-shm", b"-journal", b".new"];
    path == Path::new("home").join(COPIES) || ends.iter().any(|end| name.ends_with(end))
}

/// Walks the folders, and writes what they hold.
struct FolderWalk<'a> {
    archive: ArchiveWriter,
    copies: &'a Copies,
    skipped: u64,
    skipped_first: Option<PathBuf>,
    /// The first name of each file of the workspace that has several, by its device and number.
    names: BTreeMap<(u64, u64), PathBuf>,
    without_machines: bool,
}

/// The parts of a walk that an entry is reached by.
struct WalkedPart<'a> {
    /// A handle of the folder.
    root: &'a WorkspaceDir,
    /// The folder.
    place: &'a Path,
    /// Paths in the folder that are still to be visited.
    waiting: Vec<PathBuf>,
}

impl FolderWalk<'_> {
    /// Writes one of the folders with all that is in it, each folder before what it holds.
    fn write_folder(&mut self, name: &str, place: &Path) -> Result<(), CliError> {
        let root = &WorkspaceDir::open(place)?;
        let mut part = WalkedPart { root, place, waiting: vec![PathBuf::new()] };
        while let Some(inner) = part.waiting.pop() {
            let path = match inner.as_os_str().is_empty() {
                true => PathBuf::from(name),
                false => Path::new(name).join(&inner),
            };
            self.entry(&mut part, &inner, &path)?;
        }
        Ok(())
    }

    /// Notes that an entry of the workspace is left out.
    fn skip(&mut self, path: &Path) {
        self.skipped += 1;
        let inner = || path.strip_prefix(WORKSPACE).unwrap_or(path).to_owned();
        self.skipped_first.get_or_insert_with(inner);
    }

    fn entry(
        &mut self,
        part: &mut WalkedPart<'_>,
        inner: &Path,
        path: &Path,
    ) -> Result<(), CliError> {
        // The automaton's own: what it has shut or hidden there must not keep its life from
        // being kept.
        let ours = !path.starts_with(WORKSPACE) || path == Path::new(WORKSPACE);
        let from = part.place.join(inner);
        if ours && is_remade(path) {
            return Ok(());
        }
        if path == Path::new(SNAPSHOTS) {
            return Ok(());
        }
        if path == Path::new(MACHINES) {
            self.without_machines = true;
            return Ok(());
        }
        let copy = self.copies.copy_of(path);
        if is_database(path) && copy.try_exists().map_err(failed("read", &copy))? {
            let file = File::open(&copy).map_err(failed("read", &copy))?;
            return self.archive.file(path, 0o600, (file, &copy));
        }
        if !ours && path.as_os_str().len() > PATH_BYTES_MAX {
            self.skip(path);
            return Ok(());
        }
        let found = match from.symlink_metadata() {
            Ok(found) => found,
            Err(error) => return self.absent(ours, path, failed("read", &from), error),
        };
        let kind = found.file_type();
        if kind.is_symlink() {
            return self.link(ours, path, &from);
        }
        if !kind.is_dir() && !kind.is_file() {
            if !(ours && kind.is_socket()) {
                self.skip(path);
            }
            return Ok(());
        }
        let name = if inner.as_os_str().is_empty() { Path::new(".") } else { inner };
        // Through a handle of the root: nobody can put a link in the way of it.
        let file = match part.root.open_for_copy(name) {
            Ok(file) => file,
            Err(error) => return self.absent(ours, path, failed("read", &from), error),
        };
        let found = file.metadata().map_err(failed("read", &from))?;
        let mode = found.mode() & 0o777;
        if found.is_file() {
            let id = (found.dev(), found.ino());
            if !ours && found.nlink() > 1 {
                if let Some(first) = self.names.get(&id) {
                    return self.archive.same(path, first);
                }
                self.names.insert(id, path.to_owned());
            }
            return self.archive.file(path, mode, (file, &from));
        }
        if !found.is_dir() {
            self.skip(path);
            return Ok(());
        }
        self.archive.folder(path, mode)?;
        let names = names_in(&file).map_err(failed("read", &from))?;
        part.waiting.extend(names.into_iter().map(|name| inner.join(name)));
        Ok(())
    }

    /// Decides about an entry that was listed and cannot be looked at. One that is gone since
    /// then is not in the backup, and nothing else passes for that: of the workspace it is left
    /// out and told, elsewhere there is no backup without it.
    fn absent(
        &mut self,
        ours: bool,
        path: &Path,
        fail: impl FnOnce(io::Error) -> CliError,
        error: io::Error,
    ) -> Result<(), CliError> {
        match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ if ours => Err(fail(error)),
            _ => {
                self.skip(path);
                Ok(())
            }
        }
    }

    fn link(&mut self, ours: bool, path: &Path, from: &Path) -> Result<(), CliError> {
        if ours {
            let what = format!("{} is a link, and a backup follows none", from.display());
            let hint = "put what it leads to in its place, or take the link away, and run the \
                        same again";
            return Err(CliError::user(what).hint(hint));
        }
        match fs::read_link(from) {
            Ok(target) => self.archive.link(path, &target),
            Err(error) => self.absent(ours, path, failed("read", from), error),
        }
    }
}

/// Returns the names in a folder, in their order: the last one is taken first, of a stack its
/// cloud before its chain.
fn names_in(folder: &File) -> io::Result<Vec<OsString>> {
    let listed = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let names = fs::read_dir(listed)?.map(|entry| Ok(entry?.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}
