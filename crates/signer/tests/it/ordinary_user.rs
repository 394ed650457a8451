//! Everything again as a user without any privilege, who may lock 8 pages.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::support::{PROGRAMS, program};

/// The user and group `nobody`.
const NOBODY: u32 = 65534;

pub(crate) fn is_root() -> bool {
    automaton_sandbox::process::effective_user() == 0
}

#[test]
fn everything_holds_for_an_ordinary_user() {
    if !is_root() {
        println!("skipped: the other tests are this test already");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tests = std::env::current_exe().unwrap();
    for program in [&tests, &program()] {
        let copy = folder.path().join(program.file_name().unwrap());
        fs::copy(program, &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let home = folder.path().join("tmp");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    assert_eq!(fs::metadata(&home).unwrap().uid(), NOBODY);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // The shell lowers its limit while it still may, and becomes the tests.
    let output = Command::new("/bin/sh")
        .args(["-c", "ulimit -l 32 && exec \"$0\" --test-threads 2"])
        .arg(folder.path().join(tests.file_name().unwrap()))
        .env(PROGRAMS, folder.path())
        .env("TMPDIR", &home)
        .current_dir(&home)
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    assert!(text.contains("everything_holds_for_an_ordinary_user ... ok"), "nothing was run");
}
