//! Pure: finds keys, tokens and seed phrases in outgoing text.
//!
//! It reports the kind and position of each, never the secret. A number of 32 bytes is not a key
//! by itself, since every hash looks like one: it needs a word beside it that says so, or must be
//! one of the agent's own secrets. A match is a reason to refuse. Finding nothing proves nothing.

use automaton_core::names::Names;
use memchr::memmem;

/// The kind of a secret. Its [`name`](Self::name) is for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Names)]
pub enum SecretKind {
    /// 32 bytes in hex beside a word that calls them a private key.
    PrivateKey,
    /// A private key in PEM (RFC 7468) or OpenSSH's form.
    Pem,
    /// At least twelve words in the form of a BIP-39 mnemonic.
    SeedPhrase,
    /// A token in a form that its issuer documents.
    Token,
    /// A JSON Web Token (RFC 7519) with a signature.
    Jwt,
    /// A value after a name such as `password`.
    Assigned,
    /// One of the secrets that the caller named.
    Own,
}

/// A secret and its position, in bytes of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretMatch {
    /// The start.
    pub start: usize,
    /// The end.
    pub end: usize,
    /// The kind.
    pub kind: SecretKind,
}

/// The shortest own secret to search for, in bytes. Shorter texts occur everywhere.
const OWN_BYTES_MIN: usize = 8;
/// The bytes around a number of 32 bytes in which a word makes it a key.
const CONTEXT_BYTES: usize = 64;
/// The number of digits of a private key.
const KEY_DIGITS: usize = 64;
/// The word counts of BIP-39 mnemonics.
const SEED_WORDS: std::ops::RangeInclusive<usize> = 12..=24;
/// The fewest words that are a mnemonic without further evidence.
const LONG_SEED_WORDS: usize = 18;
/// The word lengths of BIP-39.
const SEED_LETTERS: std::ops::RangeInclusive<usize> = 3..=8;
/// The shortest assigned value that counts as a secret, in bytes.
const ASSIGNED_BYTES_MIN: usize = 12;
/// The most bytes of an assigned value that are checked.
const ASSIGNED_BYTES_MAX: usize = 256;

/// Words that make a number a key.
const KEY_WORDS: [&str; 8] =
    ["private", "privkey", "secret", "signing key", "wallet key", "priv_key", "sk=", "key is"];
/// Words that announce a mnemonic.
const SEED_NAMES: [&str; 5] = ["seed", "mnemonic", "recovery", "backup phrase", "bip39"];
/// Short English words that are in no BIP-39 list. They show that a run is a sentence.
const PLAIN_WORDS: [&str; 24] = [
    "the", "and", "for", "are", "was", "not", "you", "that", "with", "from", "this", "have",
    "will", "has", "but", "they", "its", "were", "been", "which", "your", "our", "who", "their",
];
/// Names whose values are secrets.
const NAMES: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "api_key",
    "apikey",
    "api-key",
    "secret_key",
    "access_token",
    "auth_token",
];

/// Documented prefixes of tokens, each with the fewest letters, digits, `-` and `_` that follow.
const TOKENS: [(&str, usize); 22] = [
    ("AKIA", 16),
    ("ASIA", 16),
    ("ghp_", 36),
    ("gho_", 36),
    ("ghu_", 36),
    ("ghs_", 36),
    ("ghr_", 36),
    ("github_pat_", 40),
    ("glpat-", 20),
    ("sk-ant-", 24),
    ("sk-proj-", 24),
    ("sk-or-", 24),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("sk-", 32),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xapp-", 20),
    ("AIza", 35),
    ("ya29.", 20),
    ("npm_", 36),
    ("hf_", 30),
];

/// Returns the secrets of a text, sorted. `own` are values that must not leave, in plain text or
/// in hex digits of either case.
#[must_use]
pub fn find(text: &str, own: &[&str]) -> Vec<SecretMatch> {
    let bytes = text.as_bytes();
    let mut hits = Vec::new();
    for secret in own.iter().filter(|secret| secret.len() >= OWN_BYTES_MIN) {
        let bare = secret.strip_prefix("0x").unwrap_or(secret);
        for form in [bare.to_owned(), bare.to_ascii_lowercase(), bare.to_ascii_uppercase()] {
            let found = memmem::find_iter(bytes, form.as_bytes());
            hits.extend(found.map(|start| SecretMatch {
                start,
                end: start + form.len(),
                kind: SecretKind::Own,
            }));
        }
    }
    find_pem(bytes, &mut hits);
    find_words(text, &mut hits);
    find_assignments(text, &mut hits);
    find_seed_phrases(text, &mut hits);
    hits.sort_unstable_by_key(|hit| (hit.start, std::cmp::Reverse(hit.end)));
    let mut free_from = 0;
    hits.retain(|hit| {
        let is_free = hit.start >= free_from;
        free_from = if is_free { hit.end } else { free_from };
        is_free
    });
    hits
}

/// Finds PEM blocks of private keys, up to their end or the end of the text.
fn find_pem(bytes: &[u8], hits: &mut Vec<SecretMatch>) {
    let mut from = 0;
    while let Some(offset) = memmem::find(&bytes[from..], b"-----BEGIN ") {
        let start = from + offset;
        let label = &bytes[start + 11..bytes.len().min(start + 11 + 40)];
        let label_end = memmem::find(label, b"-----").unwrap_or(label.len());
        from = start + 11;
        if memmem::find(&label[..label_end], b"PRIVATE KEY").is_some() {
            let end =
                memmem::find(&bytes[from..], b"-----END ").map_or(bytes.len(), |at| from + at);
            hits.push(SecretMatch { start, end, kind: SecretKind::Pem });
            from = end;
        }
    }
}

fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

/// Finds single words that are secrets: tokens, JSON Web Tokens, and numbers of 32 bytes beside a
/// word for keys.
fn find_words(text: &str, hits: &mut Vec<SecretMatch>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_token_byte(bytes[at]) {
            at += 1;
            continue;
        }
        let length = bytes[at..].iter().take_while(|b| is_token_byte(**b)).count();
        let start = at;
        let end = at + length;
        at = end;
        let word = &text[start..end];
        let mut push = |kind| hits.push(SecretMatch { start, end, kind });
        if is_jwt(word) {
            push(SecretKind::Jwt);
        } else if TOKENS.iter().any(|(prefix, rest)| is_token(word, prefix, *rest)) {
            push(SecretKind::Token);
        } else if is_key_number(word) && has_near(text, start, end, &KEY_WORDS) {
            push(SecretKind::PrivateKey);
        }
    }
}

fn is_token(word: &str, prefix: &str, rest: usize) -> bool {
    let Some(body) = word.strip_prefix(prefix) else { return false };
    let body = body.trim_end_matches('.');
    let varied =
        body.bytes().any(|b| b.is_ascii_digit()) && body.bytes().any(|b| b.is_ascii_alphabetic());
    body.len() >= rest && varied
}

/// Returns true for three parts in base64 that begin like a JWT: `eyJ` encodes `{"`.
fn is_jwt(word: &str) -> bool {
    let parts: Vec<&str> = word.splitn(4, '.').collect();
    parts.len() == 3
        && parts[0].starts_with("eyJ")
        && parts[1].starts_with("eyJ")
        && parts[2].len() >= 20
}

fn is_key_number(word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or(word).trim_end_matches('.');
    digits.len() == KEY_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns true if one of the words is near the range, before it or right after it.
fn has_near(text: &str, start: usize, end: usize, words: &[&str]) -> bool {
    let bytes = text.as_bytes();
    let around = [
        &bytes[start.saturating_sub(CONTEXT_BYTES)..start],
        &bytes[end..bytes.len().min(end + CONTEXT_BYTES / 2)],
    ];
    around.into_iter().any(|near| {
        let near = near.to_ascii_lowercase();
        words.iter().any(|word| memmem::find(&near, word.as_bytes()).is_some())
    })
}

/// Finds values assigned to names of secrets.
fn find_assignments(text: &str, hits: &mut Vec<SecretMatch>) {
    let lower = text.to_ascii_lowercase();
    for name in NAMES {
        for at in memmem::find_iter(lower.as_bytes(), name.as_bytes()) {
            let after = &text[at + name.len()..];
            let value = after.trim_start_matches(['"', '\'']).trim_start_matches(' ');
            let Some(value) = value.strip_prefix(['=', ':']) else { continue };
            let value = value.trim_start_matches([' ', '"', '\'']);
            let start = text.len() - value.len();
            let length = value
                .bytes()
                .take(ASSIGNED_BYTES_MAX)
                .take_while(|b| b.is_ascii_graphic() && !b"\"',;<>(){}$".contains(b))
                .count();
            let body = &value.as_bytes()[..length];
            let varied =
                body.iter().any(u8::is_ascii_digit) && body.iter().any(u8::is_ascii_alphabetic);
            if length >= ASSIGNED_BYTES_MIN && varied {
                hits.push(SecretMatch { start, end: start + length, kind: SecretKind::Assigned });
            }
        }
    }
}

/// Finds runs of lower-case words in the form of a mnemonic, without common English words. A run
/// of twelve must be announced by a name or be the whole text. Longer runs count anywhere.
fn find_seed_phrases(text: &str, hits: &mut Vec<SecretMatch>) {
    let mut run: Vec<(usize, usize)> = Vec::new();
    let whole = (text.len() - text.trim_start().len(), text.trim_end().len());
    let mut at = 0;
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphabetic()) {
        let body = word.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        let fits = SEED_LETTERS.contains(&body.len())
            && body.bytes().all(|b| b.is_ascii_lowercase())
            && !PLAIN_WORDS.contains(&body);
        if fits {
            run.push((at, at + body.len()));
        }
        at += word.len();
        let sign = &word[body.len()..];
        let goes_on = (fits && matches!(sign, " " | "\n" | ","))
            || (body.is_empty() && matches!(sign, " " | "\n"));
        if !goes_on {
            end_run(text, whole, &mut run, hits);
        }
    }
    end_run(text, whole, &mut run, hits);
}

/// Ends a run. `whole` is the range of the text without surrounding blanks.
fn end_run(
    text: &str,
    whole: (usize, usize),
    run: &mut Vec<(usize, usize)>,
    hits: &mut Vec<SecretMatch>,
) {
    let place = run.first().zip(run.last()).map(|((start, _), (_, end))| (*start, *end));
    if let Some((start, end)) = place.filter(|_| SEED_WORDS.contains(&run.len())) {
        let fits = run.len().is_multiple_of(3);
        let stands_out = run.len() >= LONG_SEED_WORDS || (start, end) == whole;
        if has_near(text, start, end, &SEED_NAMES) || (fits && stands_out) {
            hits.push(SecretMatch { start, end, kind: SecretKind::SeedPhrase });
        }
    }
    run.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: &str = "0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318";

    fn kinds(text: &str) -> Vec<SecretKind> {
        find(text, &[]).iter().map(|hit| hit.kind).collect()
    }

    #[test]
    fn secrets_are_found_by_their_form_and_company() {
        let key = format!("my private key: {NUMBER}");
        let jwt = format!("Bearer {0}.{0}.{1}", "eyJhbGciOiJIUzI1NiJ9", "b".repeat(43));
        for (text, kind) in [
            (key.as_str(), SecretKind::PrivateKey),
            (&format!("{{\"privateKey\":\"{}\"}}", &NUMBER[2..]), SecretKind::PrivateKey),
            (
                "-----BEGIN EC PRIVATE KEY-----\nMHQCAQEE\n-----END EC PRIVATE KEY-----",
                SecretKind::Pem,
            ),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNza", SecretKind::Pem),
            ("aws AKIAIOSFODNN7EXAMPLE", SecretKind::Token),
            (&format!("ghp_{}", "a1".repeat(18)), SecretKind::Token),
            (&format!("sk-ant-api03-{}", "Zx9_".repeat(10)), SecretKind::Token),
            (&format!("xoxb-{}", "12345aBcDe-".repeat(3)), SecretKind::Token),
            (&jwt, SecretKind::Jwt),
            ("DB_PASSWORD=\"hunter2hunter2\"", SecretKind::Assigned),
            (
                "seed: legal winner thank year wave sausage worth useful legal winner thank yellow",
                SecretKind::SeedPhrase,
            ),
            (
                "legal winner thank year wave sausage worth useful legal winner thank yellow",
                SecretKind::SeedPhrase,
            ),
        ] {
            assert_eq!(kinds(text), [kind], "{text}");
        }
    }

    #[test]
    fn hashes_addresses_and_sentences_are_no_secrets() {
        for text in [
            &format!("transaction {NUMBER} was mined"),
            &format!("sha256 {}  dist.tar.gz", &NUMBER[2..]),
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "What is the difference between a private key and a seed phrase?",
            "password: (ask the owner)",
            "some people like long walks along quiet rivers under green trees and sing",
            "use sk-learn and task-runner-with-a-very-long-name-indeed-it-is-long",
        ] {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    #[test]
    fn own_secrets_are_found_in_each_spelling_and_placed() {
        let hits = find(&format!("x={}!", NUMBER[2..].to_uppercase()), &[NUMBER, "short"]);
        assert_eq!(hits, [SecretMatch { start: 2, end: 66, kind: SecretKind::Own }]);
        assert_eq!(find("shortshort", &["short"]), [], "too short to mean anything");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_searched_and_places_are_whole(text in "\\PC{0,200}") {
            for hit in find(&text, &["öffnung-42"]) {
                proptest::prop_assert!(text.get(hit.start..hit.end).is_some());
            }
        }
    }
}
