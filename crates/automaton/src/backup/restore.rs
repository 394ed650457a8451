//! Brings a life back from its backup: whole, or not at all.
//!
//! All of a file is verified before anything is written. It is unpacked into a folder beside
//! the home, which is marked when it is complete; then its parts are renamed into their
//! places, the home last. Whoever is killed before the mark leaves a folder that the next
//! restore removes; after it, one that the next restore of the same file finishes. What is in
//! a place already is never replaced.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use automaton_core::faults::NoFaults;
use automaton_core::secret::Secret;
use automaton_core::time::SystemClock;
use automaton_core::wire::x402::ChainId;
use automaton_sandbox::SystemBootClock;
use automaton_sandbox::process::lock;
use automaton_signer::{SealedReader, SignerDeps, SignerHome, mark_ceilings_used};
use automaton_sqlite::check_database;

use super::archive::{self, ArchiveTally, Manifest};
use super::{beside, failed, folders_of, is_database, remove_all, sync_folder};
use crate::error::CliError;
use crate::home::{self, make_directory, write_atomically};

/// Marks a folder as one of ours, and is held by who restores.
const MARK: &str = "restoring.lock";
/// Says that all is there, and of which backup, by its digest.
const READY: &str = "ready";
/// Mark after the digest if the signer counts its ceilings as used.
const USED: &str = "used";

/// Result of a restore.
#[derive(Debug)]
pub(crate) struct RestoredLife {
    /// Automaton of the backup.
    pub(crate) manifest: Manifest,
    /// Counts of the backup.
    pub(crate) tally: ArchiveTally,
    /// Its folders.
    pub(crate) places: Vec<PathBuf>,
    /// True if its signer counts its ceilings as used.
    pub(crate) ceilings_used: bool,
}

/// Checks that nobody lives in a home and that nothing is in its places, unless a restore of
/// before has still to be finished.
///
/// # Errors
/// When somebody lives there, or something is in the way.
pub(crate) fn check_free(home: &Path) -> Result<(), CliError> {
    drop(home::lock_if_made(home)?);
    let staging = beside(home, ".restoring");
    if staging.join(READY).exists() { Ok(()) } else { check_vacant(home, |_| true) }
}

/// Brings a life back.
///
/// # Errors
/// When the file is damaged or opens by another passphrase, or somebody lives there.
pub(crate) fn restore(
    home: &Path,
    file: &Path,
    passphrase: &Secret,
) -> Result<RestoredLife, CliError> {
    drop(home::lock_if_made(home)?);
    let parent = home.parent().unwrap_or(Path::new("/"));
    let staging = beside(home, ".restoring");
    let ready = fs::read_to_string(staging.join(READY)).ok();
    if ready.is_none() {
        check_vacant(home, |_| true)?;
    }
    let (manifest, tally) = read(file, passphrase, None)?;
    fs::create_dir_all(parent).map_err(failed("make", parent))?;
    let _lock = make_staging(&staging, ready.is_some())?;
    let ceilings_used = match ready.as_deref().map(|ready| ready.split_once(' ')) {
        Some(Some((digest, used))) if digest == tally.digest => used == USED,
        Some(_) => return Err(unfinished(&staging)),
        None => {
            let (_, unpacked) = read(file, passphrase, Some(&staging))?;
            if unpacked != tally {
                let what = format!("{} was changed while it was read", file.display());
                return Err(CliError::user(what).hint("run the same again"));
            }
            complete(&staging, &manifest, &tally)?
        }
    };
    let places = put_in_place(home, &staging, &manifest)?;
    remove_all(&staging)?;
    Ok(RestoredLife { manifest, tally, places, ceilings_used })
}

fn read(
    file: &Path,
    passphrase: &Secret,
    into: Option<&Path>,
) -> Result<(Manifest, ArchiveTally), CliError> {
    let opened = File::open(file).map_err(|error| {
        CliError::user(format!("cannot read the backup {}", file.display())).because(&error)
    })?;
    archive::read(SealedReader::new(opened, file, passphrase)?, into)
}

/// Makes the folder to unpack into, and holds it. What is left of an earlier attempt that
/// came to no end goes away.
fn make_staging(
    staging: &Path,
    is_ready: bool,
) -> Result<automaton_sandbox::process::LockGuard, CliError> {
    let mark = staging.join(MARK);
    let is_empty = || fs::read_dir(staging).is_ok_and(|mut entries| entries.next().is_none());
    if staging.symlink_metadata().is_ok() && !mark.exists() && !is_empty() {
        let what = format!("{} is in the way, and no restore made it", staging.display());
        return Err(CliError::user(what).hint("move it away, or name another place with --home"));
    }
    make_directory(staging).map_err(failed("make", staging))?;
    let held = lock(&mark)?;
    if !is_ready {
        for (name, _) in folders_of(staging) {
            make_removable(&staging.join(name))?;
            remove_all(&staging.join(name))?;
        }
    }
    Ok(held)
}

/// A folder that was unpacked may have been closed to its owner already.
fn make_removable(folder: &Path) -> Result<(), CliError> {
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        if !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        make_directory(&path).map_err(failed("remove", &path))?;
        let entries = fs::read_dir(&path).map_err(failed("remove", &path))?;
        for entry in entries {
            waiting.push(entry.map_err(failed("remove", &path))?.path());
        }
    }
    Ok(())
}

/// Checks that nothing is in the places of these folders.
fn check_vacant(home: &Path, is_meant: impl Fn(&str) -> bool) -> Result<(), CliError> {
    for (name, place) in folders_of(home) {
        let taken = match place.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(failed("read", &place)(error)),
            Ok(found) if !found.is_dir() => true,
            Ok(_) => fs::read_dir(&place).map_err(failed("read", &place))?.next().is_some(),
        };
        if taken && is_meant(name) {
            let what = format!("{} is not empty: nothing is restored over it", place.display());
            return Err(CliError::user(what)
                .hint("move it away if it is not needed, or name another place with --home DIR"));
        }
    }
    Ok(())
}

fn unfinished(staging: &Path) -> CliError {
    let what = format!("another backup was not restored to its end: {}", staging.display());
    CliError::user(what).hint(
        "restore that file again, which finishes it; or remove this folder, and what it has put \
         in place beside it",
    )
}

/// Checks what was unpacked, has the signer count its ceilings as used, and marks it. Whether
/// it counts so: a chain that comes back with a life has nothing that its ledger does not know.
fn complete(staging: &Path, manifest: &Manifest, tally: &ArchiveTally) -> Result<bool, CliError> {
    for folder in ["home", "signer", "dev/gas", "dev/cloud"] {
        let place = staging.join(folder);
        let entries = match fs::read_dir(&place) {
            // Not every life has each of them.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(failed("read", &place))?,
        };
        for entry in entries {
            let entry = entry.map_err(failed("read", &place))?;
            if is_database(&Path::new(folder).join(entry.file_name())) {
                check_database(&entry.path())?;
            }
        }
    }
    let signer = staging.join("signer");
    let has_chain = manifest.folders.iter().any(|folder| folder == "dev");
    let chain = has_chain.then_some(ChainId::DEV.0);
    let clock = Arc::new(SystemClock);
    let boot = Arc::new(SystemBootClock);
    let deps = SignerDeps { clock, boot, faults: Arc::new(NoFaults) };
    let used = match signer.exists() {
        true => mark_ceilings_used(&SignerHome::open(&signer)?, chain, deps)?,
        false => false,
    };
    sync_folder(staging)?;
    let ready = format!("{} {}", tally.digest, if used { USED } else { "not used" });
    write_atomically(&staging.join(READY), ready.as_bytes(), 0o600)?;
    Ok(used)
}

/// Renames the parts into their places, the home last.
fn put_in_place(
    home: &Path,
    staging: &Path,
    manifest: &Manifest,
) -> Result<Vec<PathBuf>, CliError> {
    let waits = |name: &str| staging.join(name).symlink_metadata().is_ok();
    check_vacant(home, waits)?;
    let mut places = Vec::new();
    for (name, place) in folders_of(home).into_iter().rev() {
        if waits(name) {
            fs::rename(staging.join(name), &place).map_err(failed("make", &place))?;
            sync_folder(place.parent().unwrap_or(Path::new("/")))?;
        }
        if manifest.folders.iter().any(|folder| folder == name) {
            places.push(place);
        }
    }
    places.reverse();
    Ok(places)
}
