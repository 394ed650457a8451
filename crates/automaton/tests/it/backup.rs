//! A life in one file, and back: while it runs, when it is killed, and when the file is bad.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::event::Event;
use automaton_testkit::world::{ProcessOutput, World};
use serde_json::Value;

use super::livelihood::check_books;
use super::{paying_world, world};

/// Long enough for key derivations on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);
/// How often, at most, something is looked for that another process makes.
const LOOKS_MAX: u32 = 20_000;

/// Thinks once and sleeps.
const SLEEPS: &str = "title = \"t\"\n[[step]]\nsay = \"I rest.\"\n[[step.call]]\n\
    tool = \"sleep\"\narguments = { duration_seconds = 3600, reason = \"all is well\" }\n\
    [[step]]\nsay = \"I am awake.\"\n";
const ANSWERS: &str =
    "title = \"t\"\n[[step]]\nexpect.news = \"Are you there?\"\nsay = \"I am.\"\n";

fn secret(world: &World, name: &str, words: &str) -> String {
    let path = world.dir().join(name);
    fs::write(&path, words).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path.display().to_string()
}

fn run(world: &World, arguments: &[&str]) -> ProcessOutput {
    world.start(arguments).unwrap().finish_within(LIMIT).unwrap()
}

fn done(finished: &ProcessOutput) -> Value {
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// A world with words for its backups.
struct Keeper {
    world: World,
    words: String,
}

impl Keeper {
    fn new(world: World) -> Self {
        let words = secret(&world, "words", "correct horse\n");
        Self { world, words }
    }

    fn path(&self, name: &str) -> String {
        self.world.dir().join(name).display().to_string()
    }

    fn backup(&self, home: &Path, file: &str) -> ProcessOutput {
        let home = home.display().to_string();
        let words = ["--passphrase-file", &self.words];
        run(&self.world, &[&["backup", file, "--home", &home, "--json"], &words[..]].concat())
    }

    fn restore(&self, file: &str, home: &str) -> ProcessOutput {
        let words = ["--passphrase-file", &self.words];
        run(&self.world, &[&["restore", file, "--home", home, "--json"], &words[..]].concat())
    }
}

fn beside(home: &str, end: &str) -> PathBuf {
    format!("{home}{end}").into()
}

/// Waits for a file of another process.
fn wait_for(path: &Path) {
    let there = (0..LOOKS_MAX).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        path.exists()
    });
    assert!(there, "{}", path.display());
}

/// One that was made and lives nowhere, with odd things in its workspace.
fn odd() -> Keeper {
    let keeper = Keeper::new(world());
    done(&keeper.world.command(&["init", "--json"]).unwrap());
    let workspace = keeper.world.home().join("workspace");
    fs::write(keeper.world.dir().join("outside"), "not its own").unwrap();
    symlink(keeper.world.dir().join("outside"), workspace.join("link")).unwrap();
    symlink("..", workspace.join("up")).unwrap();
    fs::create_dir(workspace.join("shut")).unwrap();
    fs::write(workspace.join("shut/run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(workspace.join("shut/run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(workspace.join("shut"), PermissionsExt::from_mode(0o500)).unwrap();
    fs::write(workspace.join("Cargo.lock"), "its own").unwrap();
    std::os::unix::net::UnixListener::bind(workspace.join("socket")).unwrap();
    keeper
}

#[test]
fn a_life_goes_on_elsewhere_from_what_was_copied_while_it_ran() {
    let keeper = Keeper::new(paying_world());
    let world = &keeper.world;
    fs::write(world.dir().join("sleeps.toml"), SLEEPS).unwrap();
    fs::write(world.dir().join("answers.toml"), ANSWERS).unwrap();
    let mut lives = world.up(&["--brain", "script:sleeps.toml"]).unwrap();
    lives.wait_for(|event| matches!(event, Event::TopupSettled { .. }), LIMIT).unwrap();
    lives.wait_for(|event| matches!(event, Event::SleepStarted { .. }), LIMIT).unwrap();
    let file = keeper.path("life.backup");
    let made = done(&keeper.backup(world.home(), &file));
    assert_eq!(made["folders"], serde_json::json!(["home", "signer", "dev"]));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let other = keeper.path("other");
    let refused = keeper.restore(&file, &world.home().display().to_string());
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("already runs: process "), "{}", refused.stderr);
    lives.signal("INT").unwrap();
    lives.finish_within(LIMIT).unwrap();

    let restored = keeper.restore(&file, &other);
    assert!(restored.stderr.contains("must not run any more"), "{}", restored.stderr);
    assert_eq!(done(&restored)["ceilings_used"], false, "its chain came with it");
    let told = |home: &str, words: &[&str]| {
        let told = run(world, &[words, &["--home", home, "--json"]].concat());
        assert_eq!(told.code, Some(0), "{words:?}: {}", told.stderr);
        told.stdout
    };
    let home = world.home().display().to_string();
    assert_eq!(told(&other, &["wallet", "show"]), told(&home, &["wallet", "show"]));
    told(&other, &["audit", "verify"]);
    let brain = ["--brain", "script:answers.toml", "--ask", "Are you there?"];
    let lived = run(world, &[&["up", "--json", "--home", &other], &brain[..]].concat());
    assert_eq!(lived.code, Some(0), "{}\n{}", lived.stdout, lived.stderr);
    check_books(&lived.events, "after a restore");

    // At rest nothing differs but the place.
    let (file, third) = (keeper.path("rest.backup"), keeper.path("third"));
    done(&keeper.backup(Path::new(&other), &file));
    done(&keeper.restore(&file, &third));
    for words in [&["wallet", "show"][..], &["audit", "verify"], &["audit", "head"], &["turns"]] {
        assert_eq!(told(&third, words), told(&other, words), "{words:?}");
    }
    let record = |home| {
        let status: Value = serde_json::from_str(&told(home, &["status"])).unwrap();
        status["record"].clone()
    };
    assert_eq!(record(&third), record(&other));
}

#[test]
fn links_stay_links_modes_stay_and_what_is_no_file_is_counted() {
    let keeper = odd();
    let file = keeper.path("odd.backup");
    let made = done(&keeper.backup(keeper.world.home(), &file));
    assert_eq!(made["skipped"], 1, "a socket of the workspace: {made}");
    let other = keeper.path("other");
    done(&keeper.restore(&file, &other));
    let workspace = Path::new(&other).join("workspace");
    assert_eq!(fs::read_link(workspace.join("up")).unwrap(), Path::new(".."));
    assert!(workspace.join("link").symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(workspace.join("Cargo.lock")).unwrap(), "its own");
    let mode = |name| fs::metadata(workspace.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("shut"), mode("shut/run.sh")), (0o500, 0o755));
    assert!(!workspace.join("socket").exists());
    assert!(!Path::new(&other).join(".backup").exists());
    assert!(!beside(&other, "-signer").exists(), "it had no wallet");
    let sealed = fs::read(&file).unwrap();
    assert!(!sealed.windows(7).any(|part| part == b"its own"), "it is encrypted");
}

#[test]
fn every_bad_file_is_refused_in_a_sentence_and_nothing_is_written() {
    let keeper = odd();
    let file = keeper.path("life.backup");
    done(&keeper.backup(keeper.world.home(), &file));
    let bytes = fs::read(&file).unwrap();
    let other = keeper.path("other");
    let check = |what: &[u8], words: &str, expected: &str| {
        let bad = keeper.path("bad.backup");
        fs::write(&bad, what).unwrap();
        let words = secret(&keeper.world, "given", words);
        let arguments = ["restore", &bad, "--home", &other, "--passphrase-file", &words];
        let refused = run(&keeper.world, &arguments);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{expected}: {}", refused.stderr);
        assert!(!Path::new(&other).exists() && !beside(&other, ".restoring").exists());
    };
    let right = "correct horse";
    check(&bytes, "wrong", "the passphrase does not open ");
    check(b"", right, "is no backup of an automaton");
    check(&bytes[..40], right, "is damaged or cut off");
    check(&bytes[..bytes.len() - 1], right, "is damaged or cut off");
    for at in [30, bytes.len() / 2, bytes.len() - 1] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        check(&changed, right, "is damaged or cut off");
    }
    let missing = keeper.restore(&keeper.path("none"), &other);
    assert!(missing.code == Some(1) && missing.stderr.contains("cannot read the backup"));
}

#[test]
fn nothing_that_is_there_is_replaced_without_being_asked_to() {
    let keeper = odd();
    let home = keeper.world.home();
    let file = keeper.path("life.backup");
    done(&keeper.backup(home, &file));
    let again = keeper.backup(home, &file);
    assert!(again.code == Some(1) && again.stderr.contains("--force"), "{}", again.stderr);
    let forced = ["backup", &file, "--force", "--passphrase-file", &keeper.words, "--json"];
    done(&run(&keeper.world, &forced));
    let within = home.join("workspace/life.backup").display().to_string();
    let inside = keeper.backup(home, &within);
    assert!(inside.stderr.contains("would be a part of"), "{}", inside.stderr);

    let over = keeper.restore(&file, &home.display().to_string());
    assert!(over.code == Some(1) && over.stderr.contains("is not empty"), "{}", over.stderr);
    let other = keeper.path("other");
    for end in ["-signer", "-dev", ".restoring"] {
        let place = beside(&other, end);
        fs::create_dir(&place).unwrap();
        fs::write(place.join("precious"), "x").unwrap();
        let refused = keeper.restore(&file, &other);
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains(&place.display().to_string()), "{}", refused.stderr);
        assert!(!Path::new(&other).exists());
        fs::remove_dir_all(&place).unwrap();
    }
    fs::create_dir(&other).unwrap();
    done(&keeper.restore(&file, &other));
}

#[test]
fn a_backup_that_is_killed_leaves_no_file_of_its_name() {
    let keeper = odd();
    let file = keeper.path("life.backup");
    let large = File::create(keeper.world.home().join("workspace/large")).unwrap();
    large.set_len(20_000_000).unwrap();
    let arguments = ["backup", &file, "--passphrase-file", &keeper.words];
    let mut begun = keeper.world.start(&arguments).unwrap();
    wait_for(&beside(&file, ".partial"));
    begun.kill().unwrap();
    assert!(!Path::new(&file).exists());
    done(&keeper.backup(keeper.world.home(), &file));
    assert!(!beside(&file, ".partial").exists());
    assert!(!keeper.world.home().join(".backup").exists());
}

#[test]
fn a_restore_that_is_killed_is_begun_anew_or_finished() {
    let keeper = odd();
    secret(&keeper.world, "key", "the key's own words\n");
    let key = keeper.path("key");
    done(&run(&keeper.world, &["wallet", "new", "--passphrase-file", &key, "--json"]));
    done(&run(&keeper.world, &["limits", "show", "--json"]));
    let file = keeper.path("life.backup");
    done(&keeper.backup(keeper.world.home(), &file));
    let other = keeper.path("other");
    let arguments = ["restore", &file, "--home", &other, "--passphrase-file", &keeper.words];
    let mut begun = keeper.world.start(&arguments).unwrap();
    wait_for(&beside(&other, ".restoring"));
    begun.kill().unwrap();
    assert!(!Path::new(&other).exists() && !beside(&other, "-signer").exists());
    let restored = done(&keeper.restore(&file, &other));
    assert_eq!(restored["ceilings_used"], true);
    assert!(!beside(&other, ".restoring").exists());
    let limits = done(&run(&keeper.world, &["limits", "show", "--home", &other, "--json"]));
    assert_eq!(limits["spent"]["hour"], limits["limits"]["per_hour"], "{limits}");
    assert_eq!(limits["spent"]["day"], limits["limits"]["per_day"], "{limits}");
    assert_eq!((&limits["spent"]["ever"], &limits["spent"]["payments"]), (&0.into(), &0.into()));

    // Killed between the renames: its signer is in place, its home is not.
    let staging = beside(&other, ".restoring");
    let half = |digest: &str| {
        fs::create_dir(&staging).unwrap();
        fs::write(staging.join("restoring.lock"), "").unwrap();
        fs::write(staging.join("ready"), digest).unwrap();
        fs::rename(&other, staging.join("home")).unwrap();
    };
    let digest = restored["content"]["digest"].as_str().unwrap();
    half(&format!("{digest} used"));
    assert_eq!(done(&keeper.restore(&file, &other))["ceilings_used"], true);
    assert!(!staging.exists() && Path::new(&other).join("state.db").exists());
    half("of-another used");
    let refused = keeper.restore(&file, &other);
    assert_eq!(refused.code, Some(1));
    let told = format!("not restored to its end: {}", staging.display());
    assert!(refused.stderr.contains(&told), "{}", refused.stderr);
    assert!(staging.join("home/state.db").exists());
}

#[test]
fn what_is_out_of_reach_in_the_workspace_is_counted_and_named() {
    let keeper = Keeper::new(world());
    done(&keeper.world.command(&["init", "--json"]).unwrap());
    let workspace = keeper.world.home().join("workspace");
    // Deeper than any path of the system: each folder is made from the one above it.
    let deep = "d=$(printf 'd%.0s' $(seq 200)); for i in $(seq 25); do mkdir $d; cd $d; done; echo x > precious";
    #[expect(clippy::disallowed_methods, reason = "a shell makes what no path can name")]
    let made =
        std::process::Command::new("sh").arg("-c").arg(deep).current_dir(&workspace).status();
    assert!(made.unwrap().success());
    fs::write(workspace.join("kept"), "kept").unwrap();
    let file = keeper.path("deep.backup");
    let told = keeper.backup(keeper.world.home(), &file);
    assert_eq!(done(&told)["skipped"], 1);
    let said = "left out of its workspace: 1 file, out of reach or of another kind, as pipes: ddd";
    assert!(told.stderr.contains(said), "{}", told.stderr);
    let other = keeper.path("other");
    done(&keeper.restore(&file, &other));
    assert_eq!(fs::read_to_string(beside(&other, "/workspace/kept")).unwrap(), "kept");
}

#[test]
fn a_file_with_many_names_is_kept_once_and_a_hole_for_nothing() {
    use std::os::unix::fs::MetadataExt as _;
    let keeper = Keeper::new(world());
    done(&keeper.world.command(&["init", "--json"]).unwrap());
    let workspace = keeper.world.home().join("workspace");
    fs::write(workspace.join("a"), vec![7; 1 << 20]).unwrap();
    for nth in 0..40 {
        fs::hard_link(workspace.join("a"), workspace.join(format!("name{nth}"))).unwrap();
    }
    File::create(workspace.join("hole")).unwrap().set_len(1 << 36).unwrap();
    let file = keeper.path("names.backup");
    done(&keeper.backup(keeper.world.home(), &file));
    assert!(fs::metadata(&file).unwrap().len() < 4 << 20);
    let other = keeper.path("other");
    done(&keeper.restore(&file, &other));
    let found = |name: &str| fs::metadata(beside(&other, "/workspace").join(name)).unwrap();
    assert_eq!((found("a").nlink(), found("a").ino()), (41, found("name39").ino()));
    assert_eq!((found("hole").len(), found("a").len()), (1 << 36, 1 << 20));
    assert!(found("hole").blocks() < 1000);
}

#[test]
fn a_link_in_the_place_of_the_workspace_is_refused_wherever_it_would_be_used() {
    let keeper = Keeper::new(world());
    done(&keeper.world.command(&["init", "--json"]).unwrap());
    let (home, person) = (keeper.world.home(), keeper.world.dir().join("person"));
    fs::create_dir(&person).unwrap();
    fs::set_permissions(&person, PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(person.join("id"), "PRIVATE").unwrap();
    fs::remove_dir_all(home.join("workspace")).unwrap();
    symlink(&person, home.join("workspace")).unwrap();
    fs::write(keeper.world.dir().join("sleeps.toml"), SLEEPS).unwrap();
    let (home, file) = (home.display().to_string(), keeper.path("link.backup"));
    for words in [
        &["up", "--brain", "script:sleeps.toml"][..],
        &["sandbox", "run", "cat /root/id; echo evil > /root/evil"],
        &["backup", &file, "--passphrase-file", &keeper.words],
        &["init"],
    ] {
        let told = run(&keeper.world, &[words, &["--home", &home]].concat());
        assert_ne!(told.code, Some(0), "{words:?}: {}", told.stdout);
        assert!(told.stderr.contains("workspace is a link"), "{words:?}: {}", told.stderr);
        assert!(!told.stdout.contains("PRIVATE"));
    }
    assert!(!person.join("evil").exists() && !Path::new(&file).exists());
    assert_eq!(fs::metadata(&person).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_link_elsewhere_in_a_home_makes_no_backup() {
    let keeper = Keeper::new(world());
    done(&keeper.world.command(&["init", "--json"]).unwrap());
    symlink("/etc/hostname", keeper.world.home().join("policy.txt")).unwrap();
    let file = keeper.path("link.backup");
    let told = keeper.backup(keeper.world.home(), &file);
    assert_eq!(told.code, Some(1));
    assert!(
        told.stderr.contains("policy.txt is a link, and a backup follows none"),
        "{}",
        told.stderr
    );
    assert!(!Path::new(&file).exists());
}
