//! The creator's hand on the wallet: ceilings, with and without a signer that runs,
//! and the key itself.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use automaton_lab::world::{Finished, World};
use serde_json::{Value, json};

use super::world;

/// A keystore that Foundry's `cast` wrote, with weak parameters, and its key.
const KEYSTORE: &str = include_str!("../../../signer/tests/it/keystore.json");
const KEY: &str = "0xc368b7de812ea1f17069dac1b55bf4ddb7dcbdf940b816ff000cac5c194836c5";

/// An automaton with a wallet that was made elsewhere.
struct Wallet {
    world: World,
    signer: PathBuf,
}

impl Wallet {
    fn new() -> Self {
        let world = world();
        let signer = world.dir().join("home-signer");
        DirBuilder::new().mode(0o700).create(&signer).unwrap();
        fs::write(signer.join("keystore.json"), KEYSTORE).unwrap();
        for (name, words) in [("right", "correct horse\n"), ("wrong", "wrong horse\n")] {
            let mut options = OpenOptions::new();
            let path = world.dir().join(name);
            let mut file = options.write(true).create_new(true).mode(0o600).open(path).unwrap();
            file.write_all(words.as_bytes()).unwrap();
        }
        Self { world, signer }
    }

    /// Runs a command with the passphrase in one of the two files.
    fn command(&self, words: &[&str], passphrase: &str) -> Finished {
        let words = [words, &["--passphrase-file", passphrase]].concat();
        self.world.command(&words).unwrap()
    }

    fn json(&self, words: &[&str]) -> Value {
        let finished = self.command(&[words, &["--json"]].concat(), "right");
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        serde_json::from_str(&finished.stdout).unwrap()
    }

    fn refused(&self, words: &[&str], passphrase: &str, sentence: &str) {
        let finished = self.command(words, passphrase);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{words:?}");
        assert!(finished.stderr.contains(sentence), "{words:?}: {}", finished.stderr);
    }
}

#[test]
fn ceilings_are_shown_and_set_with_and_without_a_signer() {
    let wallet = Wallet::new();
    let shown = wallet.command(&["limits", "show"], "right");
    assert_eq!(
        shown.stdout,
        "a payment: at most 25.00 USDC\n\
         in 24 hours: 0.00 USDC of 50.00 USDC\n\
         ever: 0 of 10000 payments, 0.00 USDC together",
        "{}",
        shown.stderr
    );
    let at_rest = wallet.json(&["limits", "set", "--per-day", "1.5", "--per-payment", "0"]);
    let none = json!({ "day": 0, "ever": 0, "payments": 0 });
    let limits = json!({ "per_payment": 0, "per_day": 1_500_000, "payments_max": 10_000 });
    assert_eq!(at_rest, json!({ "limits": limits, "spent": none }));
    wallet.refused(&["limits", "show"], "wrong", "the passphrase does not open");

    // A cloud that never answers keeps whoever signs in, and his signer, waiting.
    let cloud = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", cloud.local_addr().unwrap());
    assert_eq!(wallet.world.command(&["init"]).unwrap().code, Some(0));
    let provision = ["provision", "--cloud", &url, "--passphrase-file", "right"];
    let signs_in = wallet.world.start(&provision).unwrap();
    let (_waits, _) = cloud.accept().unwrap();

    assert_eq!(wallet.json(&["limits", "show"]), at_rest);
    wallet.refused(&["limits", "set", "--payments", "9"], "wrong", "the passphrase is wrong");
    let limits = json!({ "per_payment": 0, "per_day": 1_500_000, "payments_max": 3 });
    let running = wallet.json(&["limits", "set", "--payments", "3"]);
    assert_eq!(running, json!({ "limits": limits, "spent": none }));

    drop(signs_in);
    let socket = wallet.signer.join("creator.sock");
    let ended = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        UnixStream::connect(&socket).is_err()
    });
    assert!(ended, "the signer goes on");
    assert_eq!(wallet.json(&["limits", "show"]), running);
}

#[test]
fn the_key_goes_where_its_creator_sends_it_and_to_no_screen() {
    let wallet = Wallet::new();
    let exported = wallet.command(&["export-key"], "right");
    assert_eq!((exported.code, exported.stdout.as_str()), (Some(0), KEY), "{}", exported.stderr);
    assert!(exported.stderr.starts_with("warning: ") && !exported.stderr.contains(&KEY[2..]));
    let document = wallet.json(&["export-key"]);
    assert_eq!(document["private_key"], KEY);
    assert!(document["address"].as_str().unwrap().starts_with("0x"), "{document}");
    wallet.refused(&["export-key"], "wrong", "the passphrase does not open");

    for (flag, code) in [(None, 1), (Some("--show"), 0)] {
        // This end of a terminal is one, too.
        let terminal: File = OpenOptions::new().read(true).write(true).open("/dev/ptmx").unwrap();
        #[expect(clippy::disallowed_methods, reason = "as a person at a terminal starts it")]
        let mut command = Command::new(env!("CARGO_BIN_EXE_automaton"));
        let words = ["export-key", "--passphrase-file", "right"];
        command.args(words).args(flag).env("AUTOMATON_HOME", wallet.world.home());
        let told = command.current_dir(wallet.world.dir()).stdout(Stdio::from(terminal));
        let told = told.stdin(Stdio::null()).output().unwrap();
        let error = String::from_utf8(told.stderr).unwrap();
        assert_eq!(told.status.code(), Some(code), "{flag:?}: {error}");
        assert_eq!(error.contains("stay on the screen, and is not shown"), code == 1, "{error}");
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let wallet = Wallet::new();
    let set = |words: &[&'static str]| [&["limits", "set"], words].concat();
    for (words, sentence) in [
        (set(&[]), "required"),
        (set(&["--per-day", "-1"]), "--per-day"),
        (set(&["--per-payment", "0.0000001"]), "--per-payment"),
        (set(&["--payments", "many"]), "--payments"),
    ] {
        wallet.refused(&words, "right", sentence);
    }
    wallet.refused(&["limits", "show"], "nowhere", "cannot take the passphrase from nowhere");
    fs::remove_dir_all(&wallet.signer).unwrap();
    for words in [&["limits", "show"][..], &["export-key"]] {
        wallet.refused(words, "right", "make one with `automaton wallet new`");
    }
}
