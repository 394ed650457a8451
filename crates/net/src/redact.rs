//! Pure: makes text of others fit to be shown.
//!
//! Servers repeat in their errors what they were sent, keys included. What is
//! logged, stored or shown to a model goes through here first; nothing that
//! went through may hold a secret that the caller named.

use automaton_core::secret::Secret;
use automaton_core::text::is_hidden;
use reqwest::Url;

/// The replacement for hidden text.
const HIDDEN: &str = "***";

/// Words after which servers quote a credential, and what keys begin with.
const MARKS: [&str; 4] = ["bearer ", "sk-", "api_key=", "apikey="];

/// The shortest run after a mark that is taken for a credential, in bytes.
const CREDENTIAL_BYTES_MIN: usize = 8;

/// A URL without user, password, query and fragment.
#[must_use]
pub fn url(url: &Url) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    let query = if url.query().is_some() { "?***" } else { "" };
    format!("{}://{}{port}{}{query}", url.scheme(), url.host_str().unwrap_or("?"), url.path())
}

/// A server's text on one line, without the secrets and without what looks like
/// a credential, at most `bytes_max` bytes and an ellipsis long.
#[must_use]
pub fn text(text: &str, secrets: &[&Secret], bytes_max: usize) -> String {
    let mut shown: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shown.retain(|c| !is_hidden(c));
    for secret in secrets.iter().map(|secret| secret.reveal()).filter(|secret| !secret.is_empty()) {
        shown = shown.replace(secret, HIDDEN);
    }
    for mark in MARKS {
        shown = hide_after(&shown, mark);
    }
    if shown.len() > bytes_max {
        shown.truncate(shown.floor_char_boundary(bytes_max));
        shown.push('…');
    }
    shown
}

/// Hides each run of key characters that follows the mark.
fn hide_after(text: &str, mark: &str) -> String {
    // ASCII lower-casing keeps every byte's place, so offsets hold in both.
    let lower = text.to_ascii_lowercase();
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(found) = lower[from..].find(mark) {
        let start = from + found + mark.len();
        let is_key = |b: &u8| b.is_ascii_alphanumeric() || b"-_.+/=*".contains(b);
        let length = text.as_bytes()[start..].iter().take_while(|b| is_key(b)).count();
        // A mark inside a word is none: `task-specific` holds no key.
        let in_word = text[..from + found].ends_with(|c: char| c.is_alphanumeric());
        shown.push_str(&text[from..start]);
        shown.push_str(match length {
            CREDENTIAL_BYTES_MIN.. if !in_word => HIDDEN,
            _ => &text[start..start + length],
        });
        from = start + length;
    }
    shown.push_str(&text[from..]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_url_keeps_its_path_and_loses_the_rest() {
        let parsed = Url::parse("https://me:pw@example.com:8443/v1/x?key=abc#frag").unwrap();
        assert_eq!(url(&parsed), "https://example.com:8443/v1/x?***");
    }

    #[test]
    fn what_looks_like_a_key_is_hidden() {
        let key = Secret::new("cnwy_k_123".to_owned());
        let check = |given: &str, shown: &str| assert_eq!(text(given, &[&key], 200), shown);
        check("bad key cnwy_k_123!", "bad key ***!");
        check("Incorrect API key provided: sk-abcdefgh1234.", "Incorrect API key provided: sk-***");
        check("header Bearer eyJhbGciOi.x rejected", "header Bearer *** rejected");
        check("a task-specific reply\n\twith\u{7} lines", "a task-specific reply with lines");
        check("re\u{202e}fu\u{200b}sed\u{e0041}, cnwy\u{2060}_k_123", "refused, ***");
        check("the bearer of news", "the bearer of news");
    }

    proptest! {
        #[test]
        fn no_named_secret_and_no_length_gets_through(
            before in "\\PC{0,40}", key in "[a-zA-Z0-9]{6,30}", after in "\\PC{0,40}", max in 0_usize..60,
        ) {
            let shown = text(&format!("{before}{key}{after}"), &[&Secret::new(key.clone())], max);
            prop_assert!(!shown.contains(&key));
            prop_assert!(shown.len() <= max + '…'.len_utf8());
        }
    }
}
