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

use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use automaton_testkit::world::{ProcessOutput, World};
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
    fn command(&self, words: &[&str], passphrase: &str) -> ProcessOutput {
        let words = [words, &["--passphrase-file", passphrase]].concat();
        self.world.command(&words).unwrap()
    }

    /// Has the key opened once, by a sign-in to a cloud that is not there.
    fn unlock(&self) {
        assert_eq!(self.bare(&["init"]).code, Some(0));
        let provision = ["provision", "--cloud", "http://127.0.0.1:9"];
        assert_eq!(self.command(&provision, "right").code, Some(2));
    }

    /// Runs a command without any secret.
    fn bare(&self, words: &[&str]) -> ProcessOutput {
        self.world.command(words).unwrap()
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
    let shown = wallet.bare(&["limits", "show"]);
    let start = "One payment: at most 25.00 USDC\n\
                 In an hour: 0.00 USDC of 50.00 USDC spent\n\
                 In 24 hours: 0.00 USDC of 50.00 USDC spent\n\
                 To one payee in 24 hours: 0.00 USDC of 50.00 USDC spent\n\
                 In all: 0.00 USDC of 250000.00 USDC spent, 0 of 10000 payments made\n\
                 Your address: none\nFingerprint: 0x";
    assert!(shown.stdout.starts_with(start), "{}{}", shown.stdout, shown.stderr);
    let lowered =
        wallet.bare(&["limits", "set", "--per-day", "1.5", "--per-payment", "0", "--json"]);
    let at_rest: Value = serde_json::from_str(&lowered.stdout).unwrap();
    let limits = json!({
        "per_payment": 0, "per_hour": 50_000_000, "per_day": 1_500_000, "per_payee": 50_000_000,
        "lifetime": 250_000_000_000_u64, "payments_max": 10_000,
    });
    let none = json!({ "hour": 0, "day": 0, "payee": 0, "ever": 0, "payments": 0 });
    assert_eq!((&at_rest["limits"], &at_rest["spent"]), (&limits, &none));
    let raise = ["limits", "set", "--per-day", "20"];
    wallet.refused(&raise, "wrong", "the passphrase does not open");
    let secretless = wallet.bare(&raise);
    assert_eq!(secretless.code, Some(1));
    assert!(secretless.stderr.contains("to raise a ceiling needs the passphrase"));
    assert!(secretless.stderr.contains("--signature"), "{}", secretless.stderr);

    // A cloud that never answers keeps whoever signs in, and his signer, waiting.
    let cloud = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", cloud.local_addr().unwrap());
    assert_eq!(wallet.world.command(&["init"]).unwrap().code, Some(0));
    let provision = ["provision", "--cloud", &url, "--passphrase-file", "right"];
    let signs_in = wallet.world.start(&provision).unwrap();
    let (_waits, _) = cloud.accept().unwrap();

    let show = || {
        let mut shown: Value =
            serde_json::from_str(&wallet.bare(&["limits", "show", "--json"]).stdout).unwrap();
        // Goes on while a signer runs.
        shown["window"].take();
        shown
    };
    assert_eq!(show()["limits"], limits);
    wallet.refused(&raise, "wrong", "the passphrase is wrong");
    let running = wallet.json(&raise);
    assert_eq!(
        (&running["limits"]["per_day"], &running["serial"]),
        (&json!(20_000_000), &json!(2))
    );
    let running = show();
    assert!(running["wallet"].as_str().is_some(), "{running}");

    drop(signs_in);
    let socket = wallet.signer.join("creator.sock");
    let ended = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        UnixStream::connect(&socket).is_err()
    });
    assert!(ended, "the signer goes on");
    assert_eq!(show(), running);
}

#[test]
fn the_creators_address_raises_by_a_signed_message() {
    let wallet = Wallet::new();
    let creator = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
    wallet.refused(&["limits", "creator", creator], "wrong", "the passphrase does not open");
    wallet.refused(&["limits", "creator", "0x7099"], "right", "0x7099");
    let named = wallet.json(&["limits", "creator", creator]);
    assert_eq!((&named["creator"], &named["serial"]), (&json!(creator.to_lowercase()), &json!(1)));

    let to = ["--per-day", "60", "--per-hour", "60"];
    let message = [&["limits", "message"][..], &to].concat();
    // The file of this key names no address; whoever unlocks it tells.
    assert!(wallet.bare(&message).stderr.contains("never unlocked"));
    wallet.unlock();
    let text = wallet.bare(&message).stdout;
    let expected = "Serial: 1\nPer hour: 60.00 USDC\nPer day: 60.00 USDC";
    assert!(text.ends_with(expected), "{text}");
    let set = |to: &[&str], signature: &str| {
        wallet.bare(&[&["limits", "set", "--signature", signature], to].concat())
    };
    let signature = signed_by_creator(&text);
    let other = set(&["--per-day", "61"], &signature);
    assert!(other.stderr.contains("the creator is 0x7099"), "{}", other.stderr);
    assert!(set(&to, "0x12").stderr.contains("signature: it is none"));
    let raised = set(&to, &signature);
    assert!(raised.stdout.contains("In 24 hours: 0.00 USDC of 60.00 USDC"), "{}", raised.stderr);
    assert_eq!(set(&["--per-day", "1"], &signature).code, Some(0), "lowering needs none");
    assert_eq!(set(&to, &signature).code, Some(1), "a message is good once");
}

/// What a wallet makes of a text by `personal_sign` (EIP-191), with the key of the
/// second account of every dev chain.
pub(crate) fn signed_by_creator(text: &str) -> String {
    let key = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
    let key: PrivateKeySigner = key.parse().unwrap();
    key.sign_message_sync(text.as_bytes()).unwrap().to_string()
}

#[test]
fn a_wallet_of_another_tool_is_taken() {
    let wallet = Wallet::new();
    let theirs = wallet.world.dir().join("theirs.json");
    fs::rename(wallet.signer.join("keystore.json"), &theirs).unwrap();
    let import = ["wallet", "import", "theirs.json"];
    wallet.refused(&import, "wrong", "the passphrase does not open the keystore theirs.json");
    wallet.refused(&["wallet", "import", "nowhere.json"], "right", "there is no file nowhere.json");
    fs::write(wallet.world.dir().join("half.json"), &KEYSTORE[..200]).unwrap();
    wallet.refused(&["wallet", "import", "half.json"], "right", "not a keystore of version 3");
    assert!(!wallet.signer.join("keystore.json").exists());

    let creator = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
    let taken = wallet.json(&[&import[..], &["--creator", creator]].concat());
    assert_eq!(taken["creator"], creator.to_lowercase());
    assert_eq!(wallet.json(&["export-key"])["private_key"], KEY);
    assert_eq!(wallet.json(&["export-key"])["address"], taken["address"]);
    let shown = wallet.bare(&["limits", "show"]).stdout;
    assert!(shown.contains(&format!("\nYour address: {creator}\n")), "{shown}");
    wallet.refused(&import, "right", "there is a key at");
}

#[test]
fn the_passphrase_comes_from_a_credential_of_systemd() {
    let wallet = Wallet::new();
    let export = |name: &str, folder: Option<&str>| {
        #[expect(clippy::disallowed_methods, reason = "as systemd starts it")]
        let mut command = Command::new(env!("CARGO_BIN_EXE_automaton"));
        command.args(["export-key", "--passphrase-credential", name]);
        command.env("AUTOMATON_HOME", wallet.world.home()).env_remove("CREDENTIALS_DIRECTORY");
        if let Some(folder) = folder {
            command.env("CREDENTIALS_DIRECTORY", wallet.world.dir().join(folder));
        }
        let told = command.output().unwrap();
        (String::from_utf8(told.stdout).unwrap(), String::from_utf8(told.stderr).unwrap())
    };
    assert_eq!(export("right", Some(".")).0.trim(), KEY);
    assert!(export("right", None).1.contains("CREDENTIALS_DIRECTORY is not set"));
    assert!(export("../right", Some("home")).1.contains("no name of a credential"));
    assert!(export("missing", Some(".")).1.contains("cannot take the passphrase from"));
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
        (set(&["--per-day", "99", "--signature", "no"]), "--signature"),
        (["limits", "accept", "0x12"].to_vec(), "0x12"),
    ] {
        wallet.refused(&words, "right", sentence);
    }
    let signer = wallet.signer.display().to_string();
    let rules = |shown: ProcessOutput| shown.stdout.lines().last().unwrap_or_default().to_owned();
    let elsewhere = rules(wallet.bare(&["limits", "show", "--signer", &signer]));
    assert!(elsewhere.starts_with("Fingerprint: 0x"), "{elsewhere}");
    assert_eq!(elsewhere, rules(wallet.bare(&["limits", "show"])));
    let nowhere = wallet.bare(&["limits", "--signer", "nowhere", "show"]);
    assert!(nowhere.stderr.contains("cannot use the signer's home nowhere"), "{}", nowhere.stderr);
    let raise = set(&["--per-day", "99"]);
    wallet.refused(&raise, "nowhere", "cannot take the passphrase from nowhere");
    fs::remove_dir_all(&wallet.signer).unwrap();
    for words in [&raise[..], &["export-key"]] {
        wallet.refused(words, "right", "no automaton lives in");
    }
}
