//! A sandbox that root launched has its own user on the host.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use automaton_sandbox::{Bind, Feature, Probe, RunHandle, SandboxSpec, plan, probe_with};
use automaton_testkit::unprivileged::is_root;

use crate::support::{attempt, launcher, machine, run_on, shell};

const LONG: Duration = Duration::from_secs(20);
/// The signals that a command queues.
const SIGNALS: usize = 1000;

/// Returns true if this machine assigns users. A machine under full control of root does.
fn gives() -> bool {
    let found = &machine().own_user;
    println!("a user of its own: {found:?}");
    assert!(is_root() || !found.is_available(), "only root can give one");
    found.is_available()
}

/// Returns the machine without separate users.
fn machine_without_users() -> Probe {
    Probe { own_user: Feature::Missing("left out by a test".to_owned()), ..machine().clone() }
}

/// Starts a program, and waits until it reports that it is ready.
fn ready(spec: &SandboxSpec, machine: &Probe) -> RunHandle {
    let running = launcher().launch(&plan(spec, machine).unwrap()).unwrap();
    let deadline = Instant::now() + LONG;
    while !running.output().0.text_lossy().contains("ready") {
        assert!(Instant::now() < deadline && !running.is_over(), "{:?}", running.output());
        thread::sleep(Duration::from_millis(5));
    }
    running
}

/// Returns the user and group ids (real, effective, saved, file system) of every host process
/// with this word in its arguments.
fn users_of(word: &str) -> Vec<[Vec<u32>; 2]> {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let of = |path: &Path| {
        let words = fs::read_to_string(path.join("cmdline")).ok()?;
        let status = fs::read_to_string(path.join("status")).ok()?;
        let ids = |key| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.split_whitespace().map(|id| id.parse().unwrap()).collect()
        };
        words.contains(word).then(|| ["Uid:", "Gid:"].map(ids))
    };
    processes.filter_map(|path| of(&path)).collect()
}

#[test]
fn a_command_is_nobody_to_the_host_and_its_files_are_the_launchers() {
    if !gives() {
        return;
    }
    let mut users = Vec::new();
    for _ in 0..2 {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join("workspace");
        let secret = home.path().join("secret");
        fs::create_dir(&workspace).unwrap();
        for (path, mode) in [(&secret, 0o600), (&workspace.join("given"), 0o600)] {
            fs::write(path, "words").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let word = format!("word-{}", workspace.display());
        let line = format!(
            ": {word}; set -e; id -u; stat -c %u:%g . given; cat given /opt/secret; echo more >> given; \
             mkdir -m 700 d; echo a > d/b; ln -s d l; ln d/b h; mv d/b c; echo said > /dev/stdout; \
             echo said | cat /dev/stdin; echo ready; sleep 600; :"
        );
        let mut spec = shell(&line, &workspace);
        let inside = "/opt/secret".into();
        spec.read_only.push(Bind { host: secret, inside });
        let running = ready(&spec, machine());
        let text = running.output().0.text_lossy();
        assert_eq!(text, "0\n0:0\n0:0\nwordswordssaid\nsaid\nready\n");
        // The helper stays root's, and its command line names nothing.
        let found = users_of(&word);
        assert!(!found.is_empty());
        for [user, group] in found {
            assert!(user.iter().chain(&group).all(|id| *id == user[0]), "{user:?} {group:?}");
            assert!((0x7800_0000..0x7c00_0000).contains(&user[0]), "{user:?}");
            users.push(user[0]);
        }
        for name in ["given", "d", "l", "h", "c"] {
            let about = workspace.join(name).symlink_metadata().unwrap();
            assert_eq!((about.uid(), about.gid()), (0, 0), "{name}");
        }
    }
    users.dedup();
    assert_eq!(users.len(), 2, "each workspace has a user: {users:?}");
}

/// Returns the pending signals that the kernel counts for the user of this process.
fn queued() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("SigQ:\t")).unwrap();
    line.split('/').next().unwrap().parse().unwrap()
}

#[test]
fn what_a_command_uses_up_is_not_the_launchers() {
    if !gives() {
        return;
    }
    let workspace = tempfile::tempdir().unwrap();
    let spec = attempt(&["hold-signals", &SIGNALS.to_string()], workspace.path());
    for (machine, is_own) in [(machine().clone(), true), (machine_without_users(), false)] {
        let running = ready(&spec, &machine);
        // Others of this user may have some, too, and far fewer.
        let counted = queued();
        assert_eq!(counted < SIGNALS, is_own, "{counted}");
        drop(running);
    }
}

#[test]
fn without_users_to_give_all_else_is_the_same() {
    let workspace = tempfile::tempdir().unwrap();
    let line = "cat /proc/self/uid_map; echo said > /dev/stdout; touch file; stat -c %u file";
    let outcome = run_on(&shell(line, workspace.path()), &machine_without_users());
    let text = outcome.stdout.text_lossy();
    let words: Vec<&str> = text.split_whitespace().collect();
    let user = nix::unistd::geteuid().to_string();
    assert_eq!(words, ["0", &user, "1", "said", "0"], "{outcome:?}");
}

#[test]
#[ignore = "the next test starts it, where this folder is on a file system that lends nothing"]
fn a_place_that_lends_nothing() {
    let workspace = tempfile::tempdir().unwrap();
    let found = probe_with(&launcher(), Some(workspace.path())).own_user;
    let Feature::Missing(why) = found else { panic!("it lends files after all") };
    assert!(why.starts_with(&format!("lend files of {}", workspace.path().display())), "{why}");
    let outcome = run_on(&shell("cat /proc/self/uid_map; touch file", workspace.path()), machine());
    assert!(outcome.status.is_success(), "{outcome:?}");
    let map: Vec<String> =
        outcome.stdout.text_lossy().split_whitespace().map(str::to_owned).collect();
    assert_eq!(map, ["0", "0", "1"], "commands are as they were before");
    assert_eq!(workspace.path().join("file").metadata().unwrap().uid(), 0);
}

#[test]
fn files_that_cannot_be_lent_are_told_and_keep_nothing_from_running() {
    if !gives() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let mounted = "cd \"$0\" && mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged \
                   && TMPDIR=$0/merged exec \"$@\"";
    let output = Command::new("/usr/bin/unshare")
        .args(["--mount", "/bin/sh", "-c", mounted])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "own_user::a_place_that_lends_nothing", "--ignored"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

#[test]
#[ignore = "the next test starts it, where the configuration has files of root's alone"]
fn a_machine_with_private_configuration() {
    let workspace = tempfile::tempdir().unwrap();
    let line = "cat /etc/fonts/public /etc/fonts/private; ls /etc/fonts /etc/fonts/closed; \
                cat /etc/java-test/public";
    let outcome = run_on(&shell(line, workspace.path()), &machine_without_users());
    let said = outcome.stdout.text_lossy();
    let complained = outcome.stderr.text_lossy();
    let listed = "/etc/fonts:\nclosed\nprivate\npublic\n\n/etc/fonts/closed:\n";
    assert_eq!(said, format!("for all\n{listed}a member\n"), "{complained}");
    // With a user of its own the kernel refuses instead.
    let refused = run_on(&shell("cat /etc/fonts/private", workspace.path()), machine());
    assert_eq!(refused.stdout.text_lossy(), "");
}

#[test]
fn of_the_configuration_root_reads_no_more_than_others() {
    if !gives() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // In a copy of this machine's mounts, with configuration that is there for this test.
    let mounted = "mkdir \"$0\"/etc \"$0\"/work && mount -t overlay overlay \
                   -o lowerdir=/etc,upperdir=\"$0\"/etc,workdir=\"$0\"/work /etc \
                   && mkdir -p /etc/fonts /etc/java-test \
                   && mount -t tmpfs -o mode=755 tmpfs /etc/fonts && cd /etc/fonts \
                   && echo for all > public && echo a secret > private && chmod 600 private \
                   && mkdir -m 700 closed && echo a secret > closed/file \
                   && echo a member > /etc/java-test/public && cd / && exec \"$@\"";
    let output = Command::new("/usr/bin/unshare")
        .args(["--mount", "/bin/sh", "-c", mounted])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "own_user::a_machine_with_private_configuration", "--ignored"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}{complained}");
}
