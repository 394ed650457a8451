//! Runs the tests of a crate again, as a user without privileges.
//!
//! Root is refused little, so rules for other users must be tested as another user. It works on
//! copies of the tests and of the programs that they start. No other file may ever be opened to
//! that user.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::{env, fs, io};

use crate::world::TempDir;

/// The user and group `nobody`.
const NOBODY: u32 = 65534;

/// Returns true if this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0)
}

/// Runs the current tests again as `nobody`, if they run as root. They find copies of `programs`
/// in the folder that `variable` names. The shell that starts them runs `first`, which ends with
/// `&&`, before.
///
/// # Errors
/// Returns the tests' output if one fails or none is run.
pub fn run_again(variable: &str, programs: &[PathBuf], first: &str) -> io::Result<()> {
    if !is_root() {
        return Ok(());
    }
    let Output { status, stdout, stderr } = as_nobody(variable, programs, first)?;
    let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let ran = status.success() && text.contains("test result: ok.") && !text.contains(" 0 passed");
    if ran { Ok(()) } else { Err(io::Error::other(text)) }
}

#[expect(clippy::disallowed_methods, reason = "tests start tests")]
fn as_nobody(variable: &str, programs: &[PathBuf], first: &str) -> io::Result<Output> {
    let folder = TempDir::new().map_err(io::Error::other)?;
    let open = |path: &PathBuf| fs::set_permissions(path, fs::Permissions::from_mode(0o755));
    let copy = |program: &PathBuf| {
        let copy = folder.path().join(program.file_name().unwrap_or_default());
        fs::copy(program, &copy).and_then(|_| open(&copy)).map(|()| copy)
    };
    let tests = copy(&env::current_exe()?)?;
    programs.iter().try_for_each(|program| copy(program).map(drop))?;
    open(&folder.path().to_owned())?;
    let home = folder.path().join("tmp");
    fs::create_dir(&home)?;
    chown(&home, Some(NOBODY), Some(NOBODY))?;
    Command::new("/bin/sh")
        .args(["-c", &format!("{first} exec \"$0\" --test-threads 2")])
        .arg(tests)
        .env(variable, folder.path())
        .env("TMPDIR", &home)
        .current_dir(&home)
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
}
