//! Folders of the workspace that programs can only read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use automaton_sandbox::{
    FsError, LaunchError, Program, RunLimits, SandboxSpec, SessionProgram, WorkspaceDir,
    WorkspacePath, plan,
};

use crate::support::{launcher, machine, run, shell};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

/// A workspace with a log, and what sees it as commands do.
fn world() -> (tempfile::TempDir, WorkspaceDir) {
    let folder = tempfile::tempdir().unwrap();
    let beneath = WorkspaceDir::open(folder.path()).unwrap();
    beneath.write(&path("logs/1.log"), b"kept\n", 100).unwrap();
    (folder, beneath)
}

fn sealed(line: &str, workspace: &Path) -> SandboxSpec {
    SandboxSpec { sealed: vec!["logs".to_owned()], ..shell(line, workspace) }
}

/// Ways to change what is sealed, each of which fails on a file system that is read-only.
const CHANGES: [&str; 9] = [
    "echo x > logs/1.log",
    "echo x >> logs/1.log",
    "echo x > logs/2.log",
    "rm -f logs/1.log",
    "mv logs/1.log logs/2.log",
    "cp /etc/hostname new && mv new logs/1.log",
    "mkdir logs/folder",
    "chmod 777 logs/1.log",
    "touch logs/1.log",
];

#[test]
fn commands_read_what_is_sealed_and_change_nothing_of_it() {
    let (folder, beneath) = world();
    let said = run(&sealed("cat logs/1.log && echo fine > other", folder.path()));
    assert!(said.status.is_success(), "{said:?}");
    assert_eq!(said.stdout.text_lossy(), "kept\n");
    for line in CHANGES {
        let outcome = run(&sealed(line, folder.path()));
        let said = outcome.stderr.text_lossy();
        assert!(!outcome.status.is_success(), "{line}");
        assert!(said.contains("Read-only file system"), "{line}: {said}");
    }
    // Neither it nor what it is mounted on can be had by another name.
    for line in ["mv logs old", "rmdir logs", "rm -rf logs", "ln logs/1.log mine", "umount logs"] {
        let outcome = run(&sealed(line, folder.path()));
        assert!(!outcome.status.is_success(), "{line}: {outcome:?}");
    }
    assert_eq!(beneath.read(&path("logs/1.log"), 100).unwrap().bytes, b"kept\n");
    assert_eq!(fs::read_dir(folder.path().join("logs")).unwrap().count(), 1);
}

#[test]
fn what_is_written_outside_is_seen_in_a_session_that_cannot_change_it() {
    let (folder, beneath) = world();
    let spec = SandboxSpec { limits: RunLimits::service(), ..sealed("", folder.path()) };
    let spec = SandboxSpec { program: Program::Later, ..spec };
    let session = launcher().open(&plan(&spec, machine()).unwrap()).unwrap();
    let told = |line: &str| {
        let task = SessionProgram::new(Program::Shell(line.to_owned()));
        let outcome = session.run(&task).unwrap().wait().unwrap();
        (outcome.status.is_success(), outcome.stdout.text_lossy() + &outcome.stderr.text_lossy())
    };
    beneath.write(&path("logs/2.log"), b"new\n", 100).unwrap();
    assert_eq!(told("cat logs/2.log"), (true, "new\n".to_owned()));
    for line in CHANGES {
        let (succeeded, said) = told(line);
        assert!(!succeeded && said.contains("Read-only file system"), "{line}: {said}");
    }
    beneath.remove(&path("logs/2.log")).unwrap();
    assert_eq!(told("ls logs"), (true, "1.log\n".to_owned()));
}

#[test]
fn a_folder_that_is_missing_is_made_and_a_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = run(&sealed("echo x > logs/new", folder.path()));
    assert!(outcome.stderr.text_lossy().contains("Read-only file system"), "{outcome:?}");
    assert!(folder.path().join("logs").is_dir());

    fs::remove_dir(folder.path().join("logs")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "planted").unwrap();
    for target in [outside.path(), Path::new("/etc"), Path::new("nowhere")] {
        symlink(target, folder.path().join("logs")).unwrap();
        let plan = plan(&sealed("cat logs/*", folder.path()), machine()).unwrap();
        let error = launcher().launch(&plan).map(drop).unwrap_err();
        assert!(matches!(error, LaunchError::Setup { .. }), "{error:?}");
        fs::remove_file(folder.path().join("logs")).unwrap();
    }
    fs::write(folder.path().join("logs"), "a file").unwrap();
    let plan = plan(&sealed("true", folder.path()), machine()).unwrap();
    assert!(launcher().launch(&plan).is_err());
}

#[test]
fn what_is_no_folder_makes_way_for_one() {
    let (folder, beneath) = world();
    beneath.free_folder_name("logs").unwrap();
    assert!(folder.path().join("logs/1.log").exists(), "a folder stays as it is");
    symlink("/etc", folder.path().join("messages")).unwrap();
    fs::write(folder.path().join("messages.1"), "another").unwrap();
    for _ in 0..2 {
        beneath.free_folder_name("messages").unwrap();
    }
    assert!(!folder.path().join("messages").is_symlink());
    assert!(folder.path().join("messages.2").is_symlink());
    assert_eq!(fs::read_to_string(folder.path().join("messages.1")).unwrap(), "another");
    assert!(run(&sealed("cat logs/1.log", folder.path())).status.is_success());
}

#[test]
fn only_files_that_are_there_can_be_removed() {
    let (folder, beneath) = world();
    symlink("/etc", folder.path().join("out")).unwrap();
    for name in ["logs", "~", "nothing", "logs/nothing", "out/hostname", "logs/1.log/x"] {
        let error = beneath.remove(&path(name)).unwrap_err();
        assert!(!matches!(error, FsError::TooLarge { .. }), "{name}: {error}");
    }
    // A link is a name like others, and what it leads to is not touched.
    beneath.remove(&path("out")).unwrap();
    beneath.remove(&path("logs/1.log")).unwrap();
    assert!(Path::new("/etc/hostname").exists());
    assert_eq!(fs::read_dir(folder.path().join("logs")).unwrap().count(), 0);
}
