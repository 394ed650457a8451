//! Keystores of another program, and ours in its hands: `cast wallet` of Foundry
//! (npm `@foundry-rs/cast-linux-amd64`). `AUTOMATON_TEST_PEERS` names the folder
//! that holds `node_modules`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use automaton_core::entropy::SystemEntropy;
use automaton_signer::keystore::{Keystore, create};

use crate::support::{PASSPHRASE, passphrase};

fn cast(words: &[&str]) -> String {
    let peers = std::env::var_os("AUTOMATON_TEST_PEERS").expect("AUTOMATON_TEST_PEERS is not set");
    let program = PathBuf::from(peers).join("node_modules/@foundry-rs/cast-linux-amd64/bin/cast");
    let output = Command::new(program).args(words).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cast {words:?}: {error}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
#[ignore = "needs Foundry's cast"]
fn cast_opens_our_keystore() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keystore.json");
    let address = create(&path, &passphrase(), &SystemEntropy).unwrap();
    let shown = cast(&["wallet", "address", "--keystore", text(&path), "--password", PASSPHRASE]);
    assert_eq!(shown, address.to_string());
}

#[test]
#[ignore = "needs Foundry's cast"]
fn we_open_casts_keystore() {
    let folder = tempfile::tempdir().unwrap();
    let key = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
    let home = text(folder.path());
    cast(&[
        "wallet",
        "import",
        "theirs",
        "--keystore-dir",
        home,
        "--private-key",
        key,
        "--unsafe-password",
        PASSPHRASE,
    ]);
    let path = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let opened = Keystore::read(&path).unwrap().unlock(&passphrase()).unwrap();
    assert_eq!(opened.address().to_string(), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    assert_eq!(opened.export().reveal(), &key[2..]);
}
