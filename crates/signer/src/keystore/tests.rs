//! Tests with published, damaged and hostile keystores.

use std::os::unix::fs::PermissionsExt as _;

use automaton_core::entropy::SystemEntropy;
use automaton_core::error::chain;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::key::golden;

const WEAK: Scrypt = Scrypt::new(1 << 10, 8, 1);

fn passphrase() -> Secret {
    Secret::new("testpassword".to_owned())
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn open(json: &Value, passphrase: &Secret) -> Result<WalletKey, KeystoreError> {
    let folder = folder();
    let path = folder.path().join("keystore.json");
    fs::write(&path, json.to_string()).unwrap();
    Keystore::read(&path)?.unlock(passphrase)
}

fn weak() -> Value {
    let encrypted = EncryptedKeystore::new(&golden(), &passphrase(), WEAK, &SystemEntropy).unwrap();
    serde_json::from_slice(&encrypted.to_json().unwrap()).unwrap()
}

/// The two examples of the Web3 Secret Storage definition.
fn published() -> [Value; 2] {
    let example = |kdf: &str, params: Value, ciphertext: &str, iv: &str, mac: &str| {
        json!({
            "crypto": {
                "cipher": "aes-128-ctr",
                "cipherparams": { "iv": iv },
                "ciphertext": ciphertext,
                "kdf": kdf,
                "kdfparams": params,
                "mac": mac,
            },
            "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
            "version": 3,
        })
    };
    [
        example(
            "pbkdf2",
            json!({
                "c": 262_144, "dklen": 32, "prf": "hmac-sha256",
                "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
            }),
            "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
            "6087dab2f9fdbbfaddc31a909735c1e6",
            "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
        ),
        example(
            "scrypt",
            json!({
                "dklen": 32, "n": 262_144, "p": 8, "r": 1,
                "salt": "ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19",
            }),
            "d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
            "83dbcc02d8ccb40e466191a123791e0e",
            "2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097",
        ),
    ]
}

#[test]
fn the_published_examples_open() {
    for example in published() {
        let key = open(&example, &passphrase()).unwrap();
        let secret = key.export();
        assert_eq!(
            secret.reveal(),
            "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d"
        );
    }
}

#[test]
fn older_tools_write_crypto_with_a_capital() {
    let mut old = weak();
    let crypto = old.as_object_mut().unwrap().remove("crypto").unwrap();
    old["Crypto"] = crypto;
    old.as_object_mut().unwrap().remove("address");
    old.as_object_mut().unwrap().remove("id");
    assert_eq!(open(&old, &passphrase()).unwrap().address(), golden().address());
}

#[test]
fn a_new_key_is_strong_private_and_never_replaced() {
    let folder = folder();
    let path = folder.path().join("keystore.json");
    let address = create(&path, &passphrase(), &SystemEntropy).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a draft stayed behind");
    let bytes = fs::read(&path).unwrap();
    let form: Value = serde_json::from_slice(&bytes).unwrap();
    let params = &form["crypto"]["kdfparams"];
    assert_eq!((&params["n"], &params["r"], &params["p"]), (&json!(262_144), &json!(8), &json!(1)));

    let keystore = Keystore::read(&path).unwrap();
    assert_eq!(keystore.unlock(&passphrase()).unwrap().address(), address);
    let error = keystore.unlock(&Secret::new("testpasswore".to_owned())).unwrap_err();
    assert!(matches!(error, KeystoreError::WrongPassphrase { .. }));

    let error = create(&path, &passphrase(), &SystemEntropy).unwrap_err();
    assert!(matches!(error, KeystoreError::Exists { .. }));
    // Also if the other file appears while the key is derived.
    let error = write_new_file(&path, b"{}").unwrap_err();
    assert!(matches!(error, KeystoreError::Exists { .. }));
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a draft stayed behind");
}

#[test]
fn a_key_needs_chance() {
    struct Stuck;
    impl Entropy for Stuck {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(0xff);
        }
    }
    let folder = folder();
    let path = folder.path().join("keystore.json");
    let stuck = create(&path, &passphrase(), &Stuck);
    assert!(matches!(stuck, Err(KeystoreError::NoChance)));
    assert!(!path.exists());
    assert!(matches!(Keystore::read(&path), Err(KeystoreError::Missing { .. })));
}

#[test]
fn hostile_files_are_refused_before_anything_is_derived() {
    let check = |place: &str, value: Value, words: &str| {
        let mut hostile = weak();
        *hostile.pointer_mut(place).unwrap() = value.clone();
        let error = open(&hostile, &passphrase()).unwrap_err();
        assert!(matches!(error, KeystoreError::Unfit { .. }), "{place} {value}: {error}");
        let text = chain(&error).to_string();
        assert!(text.contains(words), "{place} {value}: {text}");
    };
    let params = "/crypto/kdfparams";
    for n in [json!(0), json!(1), json!(3), json!(262_143)] {
        check(&format!("{params}/n"), n, "n of a power of two");
    }
    for n in [json!(1_u64 << 20), json!(1_u64 << 40), json!(1_u64 << 63)] {
        check(&format!("{params}/n"), n, "asks for more memory or time");
    }
    for r in [json!(0), json!(1 << 20), json!(u32::MAX)] {
        check(&format!("{params}/r"), r, "");
    }
    for p in [json!(0), json!(1 << 20), json!(u32::MAX)] {
        check(&format!("{params}/p"), p, "");
    }
    for wild in [json!(-1), json!(1.5), json!(1e300), json!("1024"), json!(null), json!([1])] {
        check(&format!("{params}/n"), wild, "not a keystore of version 3");
    }
    check(&format!("{params}/dklen"), json!(16), "dklen is not 32");
    check(&format!("{params}/dklen"), json!(u32::MAX), "dklen is not 32");
    check(&format!("{params}/salt"), json!("zz"), "not a keystore");
    check("/crypto/ciphertext", json!("00".repeat(33)), "Invalid string length");
    check("/crypto/ciphertext", json!(""), "Invalid string length");
    check("/crypto/cipherparams/iv", json!("00".repeat(15)), "Invalid string length");
    check("/crypto/mac", json!("00"), "Invalid string length");
    check("/crypto/cipher", json!("aes-256-cbc"), "expected `aes-128-ctr`");
    check("/crypto/kdf", json!("argon2"), "not a keystore of version 3");
    check("/version", json!(1), "version is not 3");
    check("/address", json!("00".repeat(20)), "not of the address that it names");
}

#[test]
fn hostile_pbkdf2_is_refused() {
    let check = |field: &str, value: Value, words: &str| {
        let [mut hostile, _] = published();
        hostile["crypto"]["kdfparams"][field] = value;
        let text = chain(&open(&hostile, &passphrase()).unwrap_err()).to_string();
        assert!(text.contains(words), "{text}");
    };
    check("c", json!(0), "c asks for more");
    check("c", json!(10_000_001), "c asks for more");
    check("c", json!(1_u64 << 40), "not a keystore");
    check("prf", json!("hmac-sha1"), "expected `hmac-sha256`");
}

#[test]
fn damaged_files_are_refused() {
    let folder = folder();
    let path = folder.path().join("keystore.json");
    let whole = weak().to_string();
    for bytes in [&b""[..], b"{", b"null", b"[]", b"\xff\xff", &whole.as_bytes()[..200]] {
        fs::write(&path, bytes).unwrap();
        let error = Keystore::read(&path).unwrap_err();
        let KeystoreError::Unfit { source, .. } = &error else { panic!("{error}") };
        assert!(matches!(source, KeystoreDefect::Form(_) | KeystoreDefect::Text(_)), "{error}");
    }
    fs::write(&path, vec![b' '; 70_000]).unwrap();
    let error = Keystore::read(&path).unwrap_err();
    assert!(matches!(error, KeystoreError::Unfit { source: KeystoreDefect::TooLarge, .. }));
    fs::write(&path, format!("{}{}", "[".repeat(30_000), "]".repeat(30_000))).unwrap();
    assert!(Keystore::read(&path).is_err());
    assert!(matches!(Keystore::read(folder.path()), Err(KeystoreError::File { .. })));
}

#[test]
fn one_changed_digit_is_found() {
    for place in ["/crypto/ciphertext", "/crypto/mac", "/crypto/kdfparams/salt"] {
        let mut damaged = weak();
        let text = damaged.pointer(place).unwrap().as_str().unwrap().to_owned();
        let other = if text.starts_with('0') { "1" } else { "0" };
        *damaged.pointer_mut(place).unwrap() = json!(format!("{other}{}", &text[1..]));
        let error = open(&damaged, &passphrase()).unwrap_err();
        assert!(matches!(error, KeystoreError::WrongPassphrase { .. }), "{place}: {error}");
    }
    // The MAC does not cover the initial vector; the address finds it.
    let mut damaged = weak();
    damaged["crypto"]["cipherparams"]["iv"] = json!("00".repeat(16));
    let error = open(&damaged, &passphrase()).unwrap_err();
    assert!(matches!(
        error,
        KeystoreError::Unfit { source: KeystoreDefect::OtherAddress { .. }, .. }
    ));
}

/// Writes another tool's file and imports its key.
fn imported(foreign: &str, words: &Secret) -> (tempfile::TempDir, Result<Address, KeystoreError>) {
    let folder = folder();
    let from = folder.path().join("UTC--theirs");
    fs::write(&from, foreign).unwrap();
    let to = folder.path().join("keystore.json");
    let address = import(&from, &to, words, &SystemEntropy);
    assert_eq!(fs::read_to_string(&from).unwrap(), foreign, "theirs was changed");
    (folder, address)
}

#[test]
fn keystores_of_other_tools_are_taken_and_made_strong() {
    let mut weak = weak();
    // ethers writes extra fields, and cast writes no address.
    weak["x-ethers"] = json!({ "client": "ethers/6.13.4", "gethFilename": "UTC--2026" });
    let ethers = weak.to_string();
    weak.as_object_mut().unwrap().remove("address");
    let cast = weak.to_string();
    let [pbkdf2, scrypt] = published().map(|it| it.to_string());
    let theirs = open(&published()[0], &passphrase()).unwrap().address();
    let ours = golden().address();
    for (foreign, address) in [(ethers, ours), (cast, ours), (pbkdf2, theirs), (scrypt, theirs)] {
        let (folder, taken) = imported(&foreign, &passphrase());
        assert_eq!(taken.unwrap(), address, "{foreign}");
        let path = folder.path().join("keystore.json");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let form: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let params = &form["crypto"]["kdfparams"];
        assert_eq!(
            (&params["n"], &params["r"], &params["p"]),
            (&json!(262_144), &json!(8), &json!(1))
        );
        let keystore = Keystore::read(&path).unwrap();
        assert_eq!(keystore.address(), Some(address));
        assert_eq!(keystore.unlock(&passphrase()).unwrap().address(), address);
    }
}

#[test]
fn what_cannot_be_taken_leaves_nothing_behind() {
    let whole = weak().to_string();
    let mut damaged = weak();
    damaged["crypto"]["mac"] = json!("00".repeat(32));
    let wrong = Secret::new("another".to_owned());
    for (foreign, words, expected) in [
        (whole.clone(), &wrong, "the passphrase does not open"),
        (whole[..300].to_owned(), &passphrase(), "not a keystore of version 3"),
        (damaged.to_string(), &passphrase(), "the passphrase does not open"),
        (String::new(), &passphrase(), "not a keystore of version 3"),
    ] {
        let (folder, taken) = imported(&foreign, words);
        let text = chain(&taken.unwrap_err()).to_string();
        assert!(text.contains(expected), "{text}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was written");
    }
    // An existing key is not replaced either.
    let folder = folder();
    let from = folder.path().join("theirs");
    let to = folder.path().join("keystore.json");
    fs::write(&from, &whole).unwrap();
    fs::write(&to, "{}").unwrap();
    let error = import(&from, &to, &passphrase(), &SystemEntropy).unwrap_err();
    assert!(matches!(error, KeystoreError::Exists { .. }));
    assert_eq!(fs::read_to_string(&to).unwrap(), "{}");
}

#[test]
fn a_drawn_passphrase_is_not_stretched() {
    let folder = folder();
    let path = folder.path().join("keystore.json");
    let address = create_with_random_passphrase(&path, &passphrase(), &SystemEntropy).unwrap();
    let form: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(form["crypto"]["kdfparams"]["n"], json!(4096));
    let keystore = Keystore::read(&path).unwrap();
    assert_eq!(keystore.unlock(&passphrase()).unwrap().address(), address);
    assert!(
        create_with_random_passphrase(&path, &passphrase(), &SystemEntropy).is_err(),
        "it is replaced"
    );
}

#[test]
fn stronger_parameters_are_kept() {
    let cost = |n, r, p| {
        let mut keystore = weak();
        keystore["crypto"]["kdfparams"]["n"] = json!(n);
        keystore["crypto"]["kdfparams"]["r"] = json!(r);
        keystore["crypto"]["kdfparams"]["p"] = json!(p);
        let encrypted = EncryptedKeystore::from_json(keystore.to_string().as_bytes()).unwrap();
        let kept = serde_json::to_value(encrypted.cost_at_least(STRONG)).unwrap();
        ["n", "r", "p"].map(|field| kept[field].as_u64().unwrap())
    };
    let strong = [1 << 18, 8, 1];
    assert_eq!(cost(1 << 19, 8, 1), [1 << 19, 8, 1]);
    assert_eq!(cost(1 << 18, 8, 2), [1 << 18, 8, 2]);
    assert_eq!(cost(1 << 18, 8, 1), strong);
    assert_eq!(cost(1 << 17, 8, 1), strong);
    assert_eq!(cost(1 << 18, 7, 1), strong);
    // As much work, with a fraction of the memory.
    assert_eq!(cost(1 << 14, 8, 16), strong);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_is_read(words in "\\PC{1,40}", other in "\\PC{1,40}") {
        let words = Secret::new(words);
        let encrypted = EncryptedKeystore::new(&golden(), &words, WEAK, &SystemEntropy).unwrap();
        let read = EncryptedKeystore::from_json(&encrypted.to_json().unwrap()).unwrap();
        let derived = read.derive(&words).unwrap();
        prop_assert!(read.is_opened_by(&derived));
        let mut secret = [0; 32];
        read.decrypt(&derived, &mut secret);
        let golden = golden();
        prop_assert_eq!(&secret, golden.secret());
        let same = other == words.reveal();
        prop_assert_eq!(read.is_opened_by(&read.derive(&Secret::new(other)).unwrap()), same);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(EncryptedKeystore::from_json(&bytes).is_err());
    }

    #[test]
    fn bearable_parameters_are_bearable(n in any::<u64>(), shift in 0_u32..64, r in any::<u32>(), p in any::<u32>()) {
        for (n, r, p) in [(n, r, p), (1 << shift, r % 64, p % 64)] {
            if Scrypt::new(n, r, p).params().is_ok() {
                let work = n * u64::from(r);
                prop_assert!(work * 128 <= 512 << 20);
                prop_assert!(work * u64::from(p) <= 1 << 24);
            }
        }
    }
}
