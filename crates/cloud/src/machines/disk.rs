//! The folders of machines on our disk: their paths, sizes and removal.
//!
//! Strangers' programs made their content, so nothing here follows a link, depends on the depth of
//! a tree or trusts its permissions. A folder is removed by moving it aside first: after a crash a
//! machine has all of its files or none.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use automaton_core::id::MachineId;
use automaton_sandbox::{Bind, HOME_INSIDE, WorkspacePath};

use super::driver::DriverError;
use super::template::copy_folder;

/// The folder for folders that are being removed.
const TRASH: &str = ".trash";
/// The folder being made for a machine, beside the one being removed.
const DRAFT: &str = "new";
/// The folder for folders of machines that are not recorded.
const LOST: &str = "lost";
/// The folder that is `/root` inside.
const ROOT: &str = "root";
/// Folders that a machine can write besides `/root`, and where they are inside.
const KEPT: [(&str, &str); 5] = [
    ("usr-local", "/usr/local"),
    ("opt", "/opt"),
    ("srv", "/srv"),
    ("home", "/home"),
    ("var-lib", "/var/lib"),
];
/// A folder besides, which is in memory unless the machine is a container.
pub(super) const TMP: &str = "/tmp";
/// The most files of a machine that are counted. A machine with more has too many.
const FILES_MAX: usize = 1_000_000;
/// The size that a count takes each file for, at least, in bytes: names take room, too.
const FILE_BYTES_MIN: u64 = 512;

/// The folder of all machines.
#[derive(Debug, Clone)]
pub(super) struct MachineDisks(pub(super) PathBuf);

impl MachineDisks {
    fn machine_folder(&self, id: MachineId) -> PathBuf {
        self.0.join(id.to_string())
    }

    /// The workspace of a machine.
    pub(super) fn root(&self, id: MachineId) -> PathBuf {
        self.machine_folder(id).join(ROOT)
    }

    /// Returns the other folders that the machine can write.
    pub(super) fn writable_binds(&self, id: MachineId) -> Vec<Bind> {
        let folder = self.machine_folder(id);
        KEPT.map(|(host, inside)| Bind { host: folder.join(host), inside: inside.into() }).to_vec()
    }

    /// Makes the folders of a machine; those of one that is not new have to be there.
    pub(super) fn make(&self, id: MachineId, is_new: bool) -> Result<(), DriverError> {
        if !is_new && !self.root(id).is_dir() {
            return Err(DriverError::Gone);
        }
        let make = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
        let made = make(&self.0).and_then(|()| make(&self.root(id)));
        let made = made.and_then(|()| {
            KEPT.iter().try_for_each(|(name, _)| make(&self.machine_folder(id).join(name)))
        });
        made.map_err(failed("make the machine's folders"))
    }

    /// Gives a machine that has no folders yet those of a template, laid out as inside of it. After
    /// a crash it has all of them or none.
    pub(super) fn fill(&self, id: MachineId, template: &Path) -> Result<(), DriverError> {
        if self.machine_folder(id).exists() {
            return Ok(());
        }
        let what = "copy the template of machines";
        let trash = self.0.join(TRASH).join(id.to_string());
        let draft = trash.join(DRAFT);
        match fs::remove_dir_all(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(what)(error));
            }
            _ => {}
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&draft).map_err(failed(what))?;
        for (host, inside) in [(ROOT, HOME_INSIDE)].into_iter().chain(KEPT) {
            let from = template.join(inside.trim_start_matches('/'));
            if from.is_dir() {
                copy_folder(&from, &draft.join(host)).map_err(failed(what))?;
            }
        }
        let moved =
            fs::rename(&draft, self.machine_folder(id)).and_then(|()| fs::remove_dir(&trash));
        moved.map_err(failed(what))
    }

    /// The folder on our disk that is kept for one inside; none for what is in memory.
    pub(super) fn folder(&self, id: MachineId, inside: &str) -> Option<PathBuf> {
        let mut kept = [(ROOT, HOME_INSIDE)].into_iter().chain(KEPT);
        kept.find(|(_, kept)| *kept == inside).map(|(host, _)| self.machine_folder(id).join(host))
    }

    /// The machines that have a folder, or whose folder is half removed.
    pub(super) fn existing(&self) -> Result<Vec<MachineId>, DriverError> {
        let mut found: Vec<MachineId> = Vec::new();
        for folder in [self.0.clone(), self.0.join(TRASH)] {
            let entries = match fs::read_dir(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(failed("list the machines"))?,
            };
            for entry in entries.flatten() {
                // silent-ok: what is no machine's folder is nobody's business here.
                let id: Option<MachineId> =
                    entry.file_name().to_str().and_then(|name| name.parse().ok());
                found.extend(id);
            }
        }
        Ok(found)
    }

    /// Counts what a machine's files take, in bytes; what cannot be counted is too much.
    pub(super) fn count(&self, id: MachineId) -> u64 {
        let mut open = vec![self.machine_folder(id)];
        let mut sum = 0_u64;
        let mut seen = 0;
        while let Some(folder) = open.pop() {
            let entries = match fs::read_dir(&folder) {
                Err(error) if is_gone(&error) => continue,
                // Anybody's program can shut a folder, or make a path that is too long.
                Err(_) => return u64::MAX,
                Ok(entries) => entries,
            };
            for entry in entries {
                seen += 1;
                if seen > FILES_MAX {
                    return u64::MAX;
                }
                // It does not follow links.
                let (status, path) = match entry.and_then(|it| Ok((it.metadata()?, it.path()))) {
                    Err(error) if is_gone(&error) => continue,
                    Err(_) => return u64::MAX,
                    Ok(found) => found,
                };
                sum = sum.saturating_add((status.blocks() * 512).max(FILE_BYTES_MIN));
                if status.is_dir() {
                    open.push(path);
                }
            }
        }
        sum
    }

    /// Returns the free and the total bytes of the machines' file system.
    pub(super) fn read_room(&self) -> Result<(u64, u64), DriverError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        let told = made.and_then(|()| automaton_sandbox::fs::disk_space(&self.0));
        told.map_err(failed("ask for the room on the disk"))
    }

    /// Puts a machine's folder aside, if it has one; where it is then.
    pub(super) fn set_aside(&self, id: MachineId) -> Result<Option<PathBuf>, DriverError> {
        let what = "put the machine's files aside";
        let lost = self.0.join(LOST);
        DirBuilder::new().recursive(true).mode(0o700).create(&lost).map_err(failed(what))?;
        let to = lost.join(id.to_string());
        match fs::rename(self.machine_folder(id), &to) {
            Ok(()) => Ok(Some(to)),
            // The rest of what was being removed goes on to be.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.erase(id).map(|()| None),
            Err(error) => Err(failed(what)(error)),
        }
    }

    /// Removes a machine's folder, if it has one.
    pub(super) fn erase(&self, id: MachineId) -> Result<(), DriverError> {
        let what = "remove the machine's files";
        let trash = self.0.join(TRASH).join(id.to_string());
        DirBuilder::new().recursive(true).mode(0o700).create(&trash).map_err(failed(what))?;
        match fs::rename(self.machine_folder(id), free(&trash)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(what)(error));
            }
            _ => {}
        }
        empty(&trash).and_then(|()| fs::remove_dir(&trash)).map_err(failed(what))
    }
}

/// The path within one of a machine's own folders, and that folder, of what a client calls a file.
pub(super) fn resolve_path(path: &str) -> Result<(WorkspacePath, &'static str), DriverError> {
    for inside in KEPT.map(|it| it.1).into_iter().chain([TMP]) {
        if let Some(rest) = path.strip_prefix(inside)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            // Never a `~` of its own.
            let within = WorkspacePath::parse(&format!(".{rest}"));
            let within = within.map_err(|error| refused(path, &error.to_string()))?;
            return Ok((within, inside));
        }
    }
    let within = WorkspacePath::parse(path).map_err(|error| {
        let kept = KEPT.map(|it| it.1).join(", ");
        refused(path, &format!("{error}; besides there are {kept} and {TMP}"))
    })?;
    Ok((within, HOME_INSIDE))
}

/// A path as the machine sees it.
pub(super) fn display_path(path: &WorkspacePath, inside: &str) -> String {
    let names: Vec<&str> = path.names().collect();
    if names.is_empty() { inside.to_owned() } else { format!("{inside}/{}", names.join("/")) }
}

/// Returns whether a file that was seen is no longer there, so that it takes no room.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A name that nothing has in a folder.
fn free(folder: &Path) -> PathBuf {
    let mut names = (0_u64..).map(|n| folder.join(n.to_string()));
    names.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| folder.join("0"))
}

/// Removes all that is in a folder, however deep it is: each folder in it is emptied by moving
/// the folders that it has up here. No program runs in it any more.
fn empty(trash: &Path) -> io::Result<()> {
    let mut next = 0_u64;
    loop {
        let mut found = false;
        for entry in fs::read_dir(trash)? {
            let entry = entry?;
            found = true;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            let folder = entry.path();
            fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
            for inner in fs::read_dir(&folder)? {
                let inner = inner?;
                if !inner.file_type()?.is_dir() {
                    fs::remove_file(inner.path())?;
                    continue;
                }
                // What cannot be written cannot be moved.
                fs::set_permissions(inner.path(), Permissions::from_mode(0o700))?;
                let mut to = trash.join(format!("x{next}"));
                while to.symlink_metadata().is_ok() {
                    next += 1;
                    to = trash.join(format!("x{next}"));
                }
                fs::rename(inner.path(), to)?;
            }
            fs::remove_dir(folder)?;
        }
        if !found {
            return Ok(());
        }
    }
}

fn refused(path: &str, why: &str) -> DriverError {
    let shown: String = path.chars().take(100).collect();
    DriverError::Path(format!("{shown:?} cannot be used: {why}"))
}

pub(super) fn failed<E: std::error::Error>(what: &'static str) -> impl Fn(E) -> DriverError {
    move |error| DriverError::Failed { what, why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    use automaton_core::id::IdGenerator;
    use automaton_testkit::clock::FakeClock;
    use automaton_testkit::entropy::SeededEntropy;

    use super::*;

    fn new_disk() -> (tempfile::TempDir, MachineDisks, MachineId) {
        let home = tempfile::tempdir().unwrap();
        let clock = FakeClock::at(automaton_core::time::Timestamp::EPOCH);
        let id = IdGenerator::new(Arc::new(clock), Arc::new(SeededEntropy::new(1))).id();
        let disk = MachineDisks(home.path().join("machines"));
        disk.make(id, true).unwrap();
        (home, disk, id)
    }

    #[test]
    fn a_path_is_beneath_one_of_the_machines_own_folders_or_nothing() {
        let (_home, disk, id) = new_disk();
        for (path, folder, within) in [
            ("~/a", "root", "a"),
            ("a/b", "root", "a/b"),
            ("/root", "root", "."),
            ("/usr/local/bin/x", "usr-local", "bin/x"),
            ("/opt", "opt", "."),
            ("/opt/~x", "opt", "~x"),
            ("/var/lib/a/../b", "var-lib", "b"),
        ] {
            let (path, inside) = resolve_path(path).unwrap();
            let host = disk.folder(id, inside).unwrap();
            assert_eq!(
                (host, path.relative()),
                (disk.machine_folder(id).join(folder), Path::new(within))
            );
        }
        let (path, inside) = resolve_path("/tmp/a").unwrap();
        assert_eq!((path.relative(), inside), (Path::new("a"), TMP));
        assert_eq!(disk.folder(id, inside), None, "what is in memory is in no folder of ours");
        for path in [
            "/etc/passwd",
            "/",
            "",
            "../x",
            "/opt/../etc",
            "/tmp/../etc",
            "~root/x",
            "/tmpx",
            "/optx",
        ] {
            assert!(matches!(resolve_path(path), Err(DriverError::Path(_))), "{path}");
        }
    }

    #[test]
    fn a_new_machine_begins_with_the_template_and_one_that_has_folders_keeps_them() {
        let (home, disk, id) = new_disk();
        let template = home.path().join("template");
        fs::create_dir_all(template.join("usr/local/bin")).unwrap();
        fs::create_dir_all(template.join("root")).unwrap();
        fs::create_dir_all(template.join("etc")).unwrap();
        fs::write(template.join("usr/local/bin/tool"), "x").unwrap();
        fs::write(template.join("root/notes.md"), "y").unwrap();
        disk.fill(id, &template).unwrap();
        assert!(!disk.root(id).join("notes.md").exists(), "it had its folders already");
        disk.erase(id).unwrap();
        // What a crash left half made is made anew.
        let half = disk.0.join(TRASH).join(id.to_string()).join(DRAFT).join("root");
        fs::create_dir_all(&half).unwrap();
        fs::write(half.join("half"), "z").unwrap();
        disk.fill(id, &template).unwrap();
        disk.make(id, true).unwrap();
        assert_eq!(fs::read_to_string(disk.root(id).join("notes.md")).unwrap(), "y");
        assert!(disk.machine_folder(id).join("usr-local/bin/tool").is_file());
        assert!(
            disk.machine_folder(id).join("opt").is_dir() && !disk.root(id).join("half").exists()
        );
        assert_eq!(disk.existing().unwrap(), [id]);
    }

    #[test]
    fn whatever_a_machine_left_is_counted_and_goes() {
        let (home, disk, id) = new_disk();
        let root = disk.root(id);
        fs::write(home.path().join("precious"), "x").unwrap();
        symlink(home.path(), root.join("out")).unwrap();
        fs::write(root.join("big"), vec![1; 300_000]).unwrap();
        let counted = disk.count(id);
        assert!((300_000..400_000).contains(&counted), "{counted}");
        let shut = root.join("shut");
        fs::create_dir_all(shut.join("in/inner")).unwrap();
        fs::write(shut.join("in/file"), "x").unwrap();
        fs::set_permissions(shut.join("in"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(&shut, Permissions::from_mode(0o000)).unwrap();
        // Root is kept out of no folder.
        let is_counted = fs::read_dir(&shut).is_ok();
        assert_eq!(disk.count(id) == u64::MAX, !is_counted, "what cannot be counted is too much");
        // Deeper than any path can say.
        let mut deep = root.clone();
        for _ in 0..18 {
            deep.push("d".repeat(200));
        }
        fs::create_dir_all(&deep).unwrap();
        let aside = disk.0.join("aside");
        for _ in 0..3 {
            fs::rename(root.join("d".repeat(200)), &aside).unwrap();
            let mut again = root.clone();
            for _ in 0..16 {
                again.push("d".repeat(200));
            }
            fs::create_dir_all(&again).unwrap();
            fs::rename(&aside, again.join("e")).unwrap();
        }
        assert_eq!(disk.count(id), u64::MAX, "deeper than can be counted");
        assert_eq!(disk.existing().unwrap(), [id]);
        disk.erase(id).unwrap();
        assert_eq!(disk.existing().unwrap(), []);
        assert_eq!(fs::read_dir(disk.0.join(TRASH)).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(home.path().join("precious")).unwrap(), "x");
        disk.erase(id).unwrap();
        fs::create_dir_all(disk.0.join(TRASH).join(id.to_string()).join("0/half")).unwrap();
        assert_eq!(disk.existing().unwrap(), [id], "a crash was there first");
        disk.erase(id).unwrap();
        assert_eq!(disk.existing().unwrap(), []);
        assert!(matches!(disk.make(id, false), Err(DriverError::Gone)));
    }

    #[test]
    fn the_disk_has_room_before_there_is_a_machine() {
        let home = tempfile::tempdir().unwrap();
        let (free, whole) = MachineDisks(home.path().join("machines")).read_room().unwrap();
        assert!(free > 0 && free <= whole, "{free} {whole}");
    }

    #[test]
    fn only_what_is_gone_is_left_out_of_a_count() {
        for (errno, is_left_out) in [(2, true), (20, true), (13, false), (5, false), (36, false)] {
            assert_eq!(is_gone(&io::Error::from_raw_os_error(errno)), is_left_out, "{errno}");
        }
    }

    #[test]
    fn what_is_put_aside_is_kept_and_nothing_is_put_over_it() {
        let (_home, disk, id) = new_disk();
        fs::write(disk.root(id).join("file"), "x").unwrap();
        let aside = disk.set_aside(id).unwrap().unwrap();
        assert_eq!(fs::read_to_string(aside.join("root/file")).unwrap(), "x");
        assert_eq!(disk.existing().unwrap(), []);
        assert_eq!(disk.set_aside(id).unwrap(), None);
        disk.make(id, true).unwrap();
        assert!(disk.set_aside(id).is_err());
        assert_eq!(disk.existing().unwrap(), [id]);
        assert_eq!(fs::read_to_string(aside.join("root/file")).unwrap(), "x");
    }
}
