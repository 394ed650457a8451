//! A certificate authority of one's own, made for a test, and what it signs: X.509 by RFC 5280,
//! with ECDSA over P-256 and SHA-256.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};

// Tags and identifiers of DER.
const SEQUENCE: u8 = 0x30;
const SIGNED_WITH: &[u8] = &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const EC_KEY: &[u8] = &[0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const COMMON_NAME: &[u8] = &[0x06, 3, 0x55, 4, 3];
const BASIC_CONSTRAINTS: &[u8] = &[0x06, 3, 0x55, 0x1d, 0x13];
const ALTERNATIVE_NAMES: &[u8] = &[0x06, 3, 0x55, 0x1d, 0x11];

/// An authority.
pub(crate) struct Authority {
    key: EcdsaKeyPair,
    certificate: Vec<u8>,
}

/// A certificate for `127.0.0.1`, and its key as PKCS #8; both in DER.
pub(crate) struct Signed {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let (key, _) = key();
        let may_sign = der(SEQUENCE, &[&[0x01, 1, 0xff]]);
        let critical =
            der(SEQUENCE, &[BASIC_CONSTRAINTS, &[0x01, 1, 0xff], &der(0x04, &[&may_sign])]);
        let certificate = certificate("An authority", &key, &key, &critical);
        Self { key, certificate }
    }

    /// Its certificate as people keep it.
    pub(crate) fn pem(&self) -> String {
        let text = STANDARD.encode(&self.certificate);
        let lines: Vec<&str> =
            text.as_bytes().chunks(64).map(|it| str::from_utf8(it).unwrap()).collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    }

    /// Signs who the loopback is.
    pub(crate) fn sign_loopback(&self) -> Signed {
        let (own, pkcs8) = key();
        let address = der(0x04, &[&der(SEQUENCE, &[&der(0x87, &[&[127, 0, 0, 1]])])]);
        let names = der(SEQUENCE, &[ALTERNATIVE_NAMES, &address]);
        let certificate = certificate("A server", &own, &self.key, &names);
        Signed { certificate, key: pkcs8 }
    }
}

fn key() -> (EcdsaKeyPair, Vec<u8>) {
    let (algorithm, chance) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &chance).unwrap();
    (EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &chance).unwrap(), pkcs8.as_ref().to_vec())
}

/// A certificate for a key, signed by an authority, for all times that a test may run in.
fn certificate(subject: &str, own: &EcdsaKeyPair, by: &EcdsaKeyPair, extension: &[u8]) -> Vec<u8> {
    let name = |text: &str| {
        let pair = der(SEQUENCE, &[COMMON_NAME, &der(0x0c, &[text.as_bytes()])]);
        der(SEQUENCE, &[&der(0x31, &[&pair])])
    };
    let times = [der(0x17, &[b"200101000000Z"]), der(0x18, &[b"99991231235959Z"])];
    let algorithm = der(SEQUENCE, &[SIGNED_WITH]);
    let public = bits(own.public_key().as_ref());
    let body = der(
        SEQUENCE,
        &[
            // Version 3, and a number.
            &der(0xa0, &[&[0x02, 1, 2]]),
            &[0x02, 1, 7],
            &algorithm,
            &name("An authority"),
            &der(SEQUENCE, &[&times[0], &times[1]]),
            &name(subject),
            &der(SEQUENCE, &[&der(SEQUENCE, &[EC_KEY, P256]), &public]),
            &der(0xa3, &[&der(SEQUENCE, &[extension])]),
        ],
    );
    let signature = by.sign(&SystemRandom::new(), &body).unwrap();
    der(SEQUENCE, &[&body, &algorithm, &bits(signature.as_ref())])
}

/// A string of bits that are whole bytes.
fn bits(bytes: &[u8]) -> Vec<u8> {
    der(0x03, &[&[0], bytes])
}

/// A value of DER: tag, length, contents.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let length = u16::try_from(contents.len()).unwrap();
    let [high, low] = length.to_be_bytes();
    let head: &[u8] = match length {
        0..=0x7f => &[tag, low],
        0x80..=0xff => &[tag, 0x81, low],
        _ => &[tag, 0x82, high, low],
    };
    [head, &contents].concat()
}
