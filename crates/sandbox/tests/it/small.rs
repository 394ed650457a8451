//! Tests of the small program beside the large one, and of the conditions for using it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use automaton_sandbox::{Feature, Launcher, probe};
use automaton_testkit::unprivileged::is_root;

use crate::support::{copy_program, helper, run_on, shell};

/// The bytes before the build id in a program.
const MARK: &[u8] = b"Automaton\0\0\0";

/// A folder with a large program that works or does not, and a small one.
struct Folder {
    folder: tempfile::TempDir,
    large: PathBuf,
}

impl Folder {
    fn with(large: &Path, small: &[u8], mode: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        copy_program(large, &path);
        let made = Self { folder, large: path };
        let bytes = made.folder.path().join("bytes");
        fs::write(&bytes, small).unwrap();
        copy_program(&bytes, &made.small());
        fs::set_permissions(made.small(), fs::Permissions::from_mode(mode)).unwrap();
        made
    }

    fn small(&self) -> PathBuf {
        self.folder.path().join("automaton-sandbox")
    }

    fn launcher(&self) -> Launcher {
        Launcher::new(self.large.clone())
    }

    /// Returns the reason why the small program is not used. Commands must run anyway.
    #[track_caller]
    fn refused(&self) -> String {
        let launcher = self.launcher();
        let large = probe(&launcher).user_namespace;
        assert!(large.is_available(), "the large one was to do it: {large:?}");
        match launcher.small_program_status() {
            Feature::Missing(why) => why,
            Feature::Available(()) => panic!("it is used"),
        }
    }
}

/// Returns a file that is accepted as the helper and fails when it is started.
fn broken() -> Vec<u8> {
    fs::read(helper()).unwrap()[..8 << 10].to_vec()
}

fn works(launcher: &Launcher) -> bool {
    probe(launcher).user_namespace.is_available()
}

#[test]
fn it_is_used_where_it_is_of_the_same_build_as_it_was_when_it_was_found() {
    let found = Folder::with(Path::new("/bin/false"), &fs::read(helper()).unwrap(), 0o755);
    let launcher = found.launcher();
    assert_eq!(launcher.small_program_status(), Feature::Available(()));
    let spec = shell("cat /proc/1/comm", found.folder.path());
    assert!(works(&launcher));
    // It is opened once, so a file that is placed there later is not started.
    fs::remove_file(found.small()).unwrap();
    copy_program(Path::new("/bin/false"), &found.small());
    assert!(works(&launcher) && !works(&found.launcher()));
    assert_eq!(run_on(&spec, &probe(&launcher)).stdout.text_lossy(), "automaton-sandb\n");
    let broken = Folder::with(&helper(), &broken(), 0o755);
    assert_eq!(broken.launcher().small_program_status(), Feature::Available(()));
    assert!(!works(&broken.launcher()), "what the other tests refuse would be started");
}

#[test]
fn one_of_another_build_is_not_used_and_that_is_told() {
    let mut other = broken();
    let at = other.windows(MARK.len()).position(|bytes| bytes == MARK).unwrap() + MARK.len();
    other[at] = if other[at] == b'0' { b'1' } else { b'0' };
    let why = Folder::with(&helper(), &other, 0o755).refused();
    assert!(why.contains("/automaton-sandbox is not of the same build"), "{why}");
    assert!(why.contains("cargo build"), "{why}");
}

#[test]
fn one_that_others_can_change_is_not_used_and_that_is_told() {
    for mode in [0o775, 0o757] {
        let why = Folder::with(&helper(), &broken(), mode).refused();
        assert!(why.contains("others can write to") && why.contains("chmod go-w"), "{why}");
    }
    if is_root() {
        let foreign = Folder::with(&helper(), &broken(), 0o755);
        chown(foreign.small(), Some(65534), None).unwrap();
        let why = foreign.refused();
        assert!(why.contains("others can write to"), "{why}");
    }
    assert!(Folder::with(&helper(), &broken(), 0o644).refused().contains("chmod +x"));
}

#[test]
fn without_one_the_large_one_does_its_work_and_that_is_told() {
    let alone = Folder::with(&helper(), b"", 0o755);
    fs::remove_file(alone.small()).unwrap();
    let why = alone.refused();
    assert!(why.contains("No such file") && why.contains("cargo build"), "{why}");
    fs::create_dir(alone.small()).unwrap();
    assert!(alone.refused().contains("is not of the same build"));
    // It is never looked for where this process happens to stand.
    let nowhere = Launcher::new(PathBuf::from("large")).small_program_status();
    assert!(matches!(&nowhere, Feature::Missing(why) if why.contains("full path")), "{nowhere:?}");
}
