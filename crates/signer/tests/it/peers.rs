//! Keystores of another program, and ours opened by it: `cast wallet` of Foundry (npm
//! `@foundry-rs/cast-linux-amd64`). `AUTOMATON_TEST_PEERS` names the folder that contains
//! `node_modules`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use automaton_core::entropy::SystemEntropy;
use automaton_core::money::MicroUsdc;
use automaton_signer::keystore::{Keystore, create, import};
use automaton_signer::{CreatorAction, CreatorProof, SigningLimitsChange, message};

use crate::creator::at_rest;
use crate::support::{PASSPHRASE, World, passphrase};

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
    let ours = folder.path().join("keystore.json");
    let address = import(&path, &ours, &passphrase(), &SystemEntropy).unwrap();
    assert_eq!(address.to_string(), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    let opened = Keystore::read(&ours).unwrap().unlock(&passphrase()).unwrap();
    assert_eq!(opened.export().reveal(), &key[2..]);
}

#[test]
#[ignore = "needs Foundry's cast"]
fn the_creators_wallet_may_be_cast() {
    let world = World::new();
    let key = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
    let creator = cast(&["wallet", "address", "--private-key", key]).parse().unwrap();
    let wallet = world.start().1.address();
    let secret = Some(CreatorProof::Passphrase(passphrase()));
    at_rest(&world, &CreatorAction::Creator(creator), secret.as_ref()).unwrap();
    let to = SigningLimitsChange {
        per_day: Some(MicroUsdc::new(70_000_000)),
        ..SigningLimitsChange::default()
    };
    let text = message(wallet, 1, &to);
    let signature = cast(&["wallet", "sign", "--private-key", key, &text]);
    let proof = CreatorProof::Signature(signature.parse().unwrap());
    let raised = at_rest(&world, &CreatorAction::Set(to), Some(&proof)).unwrap();
    assert_eq!(raised.limits.per_day, MicroUsdc::new(70_000_000));
}
