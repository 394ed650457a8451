//! A life in one sealed file, and out of it again.
//!
//! An automaton is three folders: its home, its signer's beside it, and that of its dev stack
//! where it has one. `make` copies them while they are in use, `restore` brings them back
//! whole or not at all. Nothing here may follow a link, or keep a secret in the clear
//! outside of the folders that it came from.

mod archive;
mod make;
mod restore;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::CliError;
use crate::role::signer::home_of;
use crate::stack;

pub(crate) use archive::{ArchiveTally, Manifest};
pub(crate) use make::{BackupRequest, MadeBackup, make, names_of};
pub(crate) use restore::{check_free, restore};

/// Tells when a home was backed up last, in the home.
pub(crate) const STAMP: &str = "backed-up";

/// Advice where money is real.
pub(crate) const OFFER: &str =
    "`automaton backup FILE` keeps its life and its key in one encrypted file";

/// The names of the folders in an archive: the parts of a life.
const PARTS: [&str; 3] = ["home", "signer", "dev"];
/// The folder in an archive that belongs to the automaton, which may hold links.
const WORKSPACE: &str = "home/workspace";

/// The names of the folders in an archive, with their places beside a home. The order in
/// which their databases are copied: a signer's ledger that is newer than the record counts
/// too much, and one that is older too little.
fn folders_of(home: &Path) -> [(&'static str, PathBuf); 3] {
    let [own, signer, dev] = PARTS;
    [(own, home.to_owned()), (signer, home_of(home)), (dev, stack::folder_of(home))]
}

/// A place beside a file or a folder, by what is appended to its name.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Returns true if an entry is one of our databases: none in the workspace is.
fn is_database(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "db") && !path.starts_with(WORKSPACE)
}

fn failed<'a>(verb: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> CliError + 'a {
    move |error| {
        let failure = CliError::internal(format!("cannot {verb} {}", path.display()), &error);
        match error.kind() {
            io::ErrorKind::StorageFull => failure.hint("make room on the disk and try again"),
            _ => failure,
        }
    }
}

/// Has the names in a folder on the disk.
fn sync_folder(path: &Path) -> Result<(), CliError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(failed("write", path))
}

fn remove_all(path: &Path) -> Result<(), CliError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
