//! File handles beneath the workspace, also while links are exchanged.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use automaton_sandbox::{FolderEntry, FsError, ListOptions, WorkspaceDir, WorkspacePath};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

/// A workspace beside a secret, and a handle for each way of looking up.
fn world() -> (tempfile::TempDir, [WorkspaceDir; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    fs::create_dir_all(&workspace).unwrap();
    fs::create_dir(folder.path().join("outside")).unwrap();
    fs::write(folder.path().join("outside/secret"), "planted").unwrap();
    let both =
        [WorkspaceDir::open(&workspace).unwrap(), WorkspaceDir::open_walking(&workspace).unwrap()];
    (folder, both)
}

#[test]
fn what_is_written_can_be_read() {
    let (folder, both) = world();
    for (beneath, name) in both.iter().zip(["one", "two"]) {
        let deep = path(&format!("~/{name}/deep/er/file.txt"));
        beneath.write(&deep, b"hello", 100).unwrap();
        let read = beneath.read(&deep, 100).unwrap();
        assert_eq!((read.bytes.as_slice(), read.total), (&b"hello"[..], 5));
        let read = beneath.read(&deep, 2).unwrap();
        assert_eq!((read.bytes.as_slice(), read.total), (&b"he"[..], 5));
        // A replaced file keeps its permissions, and no draft stays behind.
        let host = folder.path().join("workspace").join(deep.relative());
        assert_eq!(fs::metadata(&host).unwrap().permissions().mode() & 0o777, 0o644);
        fs::set_permissions(&host, fs::Permissions::from_mode(0o755)).unwrap();
        beneath.write(&deep, b"", 100).unwrap();
        assert_eq!(fs::metadata(&host).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(host.parent().unwrap()).unwrap().count(), 1);
        assert_eq!(beneath.read(&deep, 100).unwrap().total, 0);
    }
}

#[test]
fn only_regular_files_are_files() {
    let (folder, both) = world();
    let workspace = folder.path().join("workspace");
    fs::create_dir(workspace.join("folder")).unwrap();
    symlink("target", workspace.join("link")).unwrap();
    nix::unistd::mkfifo(&workspace.join("pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(workspace.join("socket")).unwrap();
    for beneath in &both {
        for name in ["folder", "pipe", "socket", "~"] {
            let read = beneath.read(&path(name), 10).unwrap_err();
            assert!(matches!(read, FsError::NotAFile { .. }), "{name}: {read}");
            let written = beneath.write(&path(name), b"x", 10).unwrap_err();
            assert!(matches!(written, FsError::NotAFile { .. }), "{name}: {written}");
        }
        let written = beneath.write(&path("link"), b"x", 10).unwrap_err();
        assert!(matches!(written, FsError::NotAFile { .. }), "{written}");
        let missing = beneath.read(&path("nothing/here"), 10).unwrap_err();
        assert!(matches!(missing, FsError::Missing { .. }), "{missing}");
        let large = beneath.write(&path("large"), b"12345", 4).unwrap_err();
        assert!(matches!(large, FsError::TooLarge { bytes: 5, bytes_max: 4, .. }), "{large}");
    }
}

#[test]
fn links_lead_nowhere_outside() {
    let (folder, both) = world();
    let workspace = folder.path().join("workspace");
    let outside = folder.path().join("outside");
    symlink(&outside, workspace.join("absolute")).unwrap();
    symlink("../outside", workspace.join("relative")).unwrap();
    symlink("../outside/secret", workspace.join("file")).unwrap();
    symlink("/proc/self/root", workspace.join("magic")).unwrap();
    symlink("loop", workspace.join("loop")).unwrap();
    for beneath in &both {
        for name in ["absolute/secret", "relative/secret", "file", "magic/etc/passwd", "loop"] {
            let error = beneath.read(&path(name), 100).unwrap_err();
            assert!(matches!(error, FsError::Escapes { .. }), "{name}: {error}");
        }
        for name in ["absolute/new", "relative/new", "relative/new/deeper", "magic/tmp/new"] {
            let error = beneath.write(&path(name), b"x", 100).unwrap_err();
            assert!(matches!(error, FsError::Escapes { .. }), "{name}: {error}");
        }
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "planted");
}

/// The judged file must be the opened file, and a link is another name.
#[test]
fn no_link_is_followed_even_where_it_stays_inside() {
    let (folder, both) = world();
    let workspace = folder.path().join("workspace");
    fs::create_dir_all(workspace.join("real/.git")).unwrap();
    fs::write(workspace.join("real/.env"), "TOKEN=1").unwrap();
    for (target, name) in [("real", "alias"), ("real/.git", "hooks"), ("real/.env", "note.txt")] {
        symlink(target, workspace.join(name)).unwrap();
    }
    for beneath in &both {
        for name in ["alias/.env", "note.txt", "hooks"] {
            let error = beneath.read(&path(name), 10).unwrap_err();
            assert!(matches!(error, FsError::Escapes { .. }), "{name}: {error}");
        }
        for name in ["alias/file", "hooks/pre-commit"] {
            let error = beneath.write(&path(name), b"x", 10).unwrap_err();
            assert!(matches!(error, FsError::Escapes { .. }), "{name}: {error}");
        }
        assert_eq!(beneath.read(&path("real/.env"), 10).unwrap().bytes, b"TOKEN=1");
    }
    assert_eq!(fs::read_dir(workspace.join("real/.git")).unwrap().count(), 0);
}

/// Writing over a planted hard link of an outside file only removes the link.
#[test]
fn writing_over_a_hard_link_leaves_the_other_name_alone() {
    let (folder, both) = world();
    let secret = folder.path().join("outside/secret");
    for (beneath, name) in both.iter().zip(["one", "two"]) {
        fs::hard_link(&secret, folder.path().join("workspace").join(name)).unwrap();
        beneath.write(&path(name), b"mine", 10).unwrap();
        assert_eq!(beneath.read(&path(name), 10).unwrap().bytes, b"mine");
        assert_eq!(fs::read_to_string(&secret).unwrap(), "planted");
    }
}

#[test]
fn devices_and_ways_through_proc_are_no_files() {
    use nix::sys::stat::{Mode, SFlag, makedev, mknod};
    let (folder, both) = world();
    let workspace = folder.path().join("workspace");
    for (target, name) in
        [("/proc/self/fd", "fd"), ("/dev/stdin", "stdin"), ("/proc/self/cwd", "cwd")]
    {
        symlink(target, workspace.join(name)).unwrap();
    }
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    let device = mknod(&workspace.join("zero"), SFlag::S_IFCHR, mode, makedev(1, 5));
    for beneath in &both {
        for name in ["fd/0", "stdin", "cwd/Cargo.toml"] {
            let error = beneath.read(&path(name), 10).unwrap_err();
            assert!(matches!(error, FsError::Escapes { .. }), "{name}: {error}");
        }
        // Only root makes devices.
        if device.is_ok() {
            for error in [
                beneath.read(&path("zero"), 10).unwrap_err(),
                beneath.write(&path("zero"), b"x", 10).unwrap_err(),
            ] {
                assert!(
                    matches!(error, FsError::NotAFile { .. } | FsError::Read { .. }),
                    "{error}"
                );
            }
        }
    }
}

/// The file itself is exchanged for a link out, between looking and opening.
#[test]
fn a_file_that_is_replaced_leads_nowhere() {
    let (folder, both) = world();
    let workspace = folder.path().join("workspace");
    let outside = folder.path().join("outside");
    fs::write(workspace.join("spot"), "harmless").unwrap();
    symlink("../outside/secret", workspace.join("lure")).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
            let spot = workspace.join("spot");
            let lure = workspace.join("lure");
            while !done.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, &spot, AT_FDCWD, &lure, RenameFlags::RENAME_EXCHANGE).unwrap();
            }
        });
        for round in 0..4000 {
            let beneath = &both[round % 2];
            if let Ok(read) = beneath.read(&path("spot"), 100) {
                assert_ne!(read.bytes, b"planted");
            }
            if round % 7 == 0 {
                drop(beneath.write(&path("spot"), b"harmless", 100));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "planted");
}

/// A folder moves up and down while files in it are read and written, so that whoever
/// went by `..` or by a remembered place would end up elsewhere.
#[test]
fn a_folder_that_moves_takes_nobody_out() {
    let (folder, both) = world();
    let workspace = folder.path().join("workspace");
    let low = workspace.join("a/b/c/deep");
    let high = workspace.join("deep");
    for folder in [&low, &high] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("secret"), "harmless").unwrap();
        symlink("../../../../outside/secret", folder.join("up")).unwrap();
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
            while !done.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, &low, AT_FDCWD, &high, RenameFlags::RENAME_EXCHANGE).unwrap();
            }
        });
        for round in 0..1000 {
            let beneath = &both[round % 2];
            for name in ["deep/secret", "a/b/c/deep/secret", "a/b/c/deep/up", "deep/up"] {
                if let Ok(read) = beneath.read(&path(name), 100) {
                    assert_eq!(read.bytes, b"harmless", "{name}");
                }
            }
            drop(beneath.write(&path("a/b/c/deep/new"), b"x", 100));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_dir(folder.path().join("outside")).unwrap().count(), 1);
}

/// A directory and a link out of the workspace change places as fast as they
/// can while files are read and written through them.
#[test]
fn no_race_leads_outside() {
    let (folder, both) = world();
    let workspace = folder.path().join("workspace");
    let outside = folder.path().join("outside");
    fs::create_dir(workspace.join("spot")).unwrap();
    fs::write(workspace.join("spot/secret"), "harmless").unwrap();
    symlink("../outside", workspace.join("lure")).unwrap();
    let done = AtomicBool::new(false);
    let mut seen = [0u32; 2];
    thread::scope(|scope| {
        scope.spawn(|| {
            use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
            let spot = workspace.join("spot");
            let lure = workspace.join("lure");
            while !done.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, &spot, AT_FDCWD, &lure, RenameFlags::RENAME_EXCHANGE).unwrap();
            }
        });
        for round in 0..6000 {
            let beneath = &both[round % 2];
            match beneath.read(&path("spot/secret"), 100) {
                Ok(read) => {
                    assert_eq!(read.bytes, b"harmless");
                    seen[0] += 1;
                }
                Err(_) => seen[1] += 1,
            }
            // Written or refused, the file is never outside.
            drop(beneath.write(&path("spot/new/file"), b"x", 100));
        }
        done.store(true, Ordering::Relaxed);
    });
    println!("{} reads inside, {} refused", seen[0], seen[1]);
    assert!(seen[0] > 0 && seen[1] > 0, "there was no race: {seen:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "planted");
}

fn reach(depth: u32, entries_max: usize) -> ListOptions {
    ListOptions { depth, entries_max, is_closed: |_, name| name == "closed" }
}

#[test]
fn a_folder_is_listed_by_name_and_no_link_is_followed() {
    let (folder, both) = world();
    let workspace = folder.path().join("workspace");
    fs::create_dir_all(workspace.join("b/deep/er")).unwrap();
    fs::create_dir_all(workspace.join("closed")).unwrap();
    for (name, text) in [("a", "12"), ("b/f", "123"), ("b/deep/er/g", ""), ("closed/h", "")] {
        fs::write(workspace.join(name), text).unwrap();
    }
    symlink(folder.path().join("outside"), workspace.join("link")).unwrap();
    for beneath in &both {
        let told = |depth, most| {
            let listing = beneath.list(&path("~"), reach(depth, most)).unwrap();
            let line = |entry: &FolderEntry| match entry.kind {
                None => format!("{} {}", entry.path, entry.bytes),
                Some(kind) => format!("{} {kind}", entry.path),
            };
            (listing.entries.iter().map(line).collect::<Vec<_>>(), listing.cut)
        };
        let (one, cut) = told(1, 99);
        let expected = [
            "/root/a 2",
            "/root/b a directory",
            "/root/closed a directory",
            "/root/link a symbolic link",
        ];
        assert_eq!((one.as_slice(), cut), (&expected.map(str::to_owned)[..], false));
        let (all, _) = told(9, 99);
        let below = ["/root/b/deep a directory", "/root/b/f 3", "/root/b/deep/er a directory"];
        assert_eq!(all[4..7], below.map(str::to_owned));
        assert_eq!(all[7..], ["/root/b/deep/er/g 0".to_owned()]);
        let (few, cut) = told(9, 3);
        assert!(few.len() == 3 && cut);
        let file = beneath.list(&path("b/f"), reach(1, 9)).unwrap();
        assert_eq!((file.entries.len(), file.entries[0].bytes), (1, 3));
        let through = beneath.list(&path("link"), reach(1, 9)).unwrap_err();
        assert!(matches!(through, FsError::Escapes { .. }), "{through}");
        let through = beneath.list(&path("link/secret"), reach(1, 9)).unwrap_err();
        assert!(matches!(through, FsError::Escapes { .. }), "{through}");
        let missing = beneath.list(&path("nothing"), reach(1, 9)).unwrap_err();
        assert!(matches!(missing, FsError::Missing { .. }), "{missing}");
    }
}

#[test]
fn names_that_are_no_text_are_left_out_and_that_is_said() {
    use std::os::unix::ffi::OsStrExt as _;
    let (folder, both) = world();
    let name = std::ffi::OsStr::from_bytes(b"bad\xff");
    fs::write(folder.path().join("workspace").join(name), "").unwrap();
    for beneath in &both {
        let listing = beneath.list(&path("~"), reach(1, 9)).unwrap();
        assert!(listing.entries.is_empty() && listing.cut);
    }
}
