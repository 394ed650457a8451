//! Pure: the text that a wallet signs to sign in, EIP-4361.
//!
//! Source: <https://eips.ethereum.org/EIPS/eip-4361>. Reading is strict, since
//! the text is a proof: what the grammar does not know must never be skipped.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::Address;

use crate::time::{Timestamp, days_from_civil};

/// Statement that an automaton agrees to when it signs in; the wording that clouds expect.
pub const STATEMENT: &str = "Sign in to Conway as an Automaton to provision an API key.";

const GREETING: &str = " wants you to sign in with your Ethereum account:";
/// The longest text that is read, in bytes.
const BYTES_MAX: usize = 4096;

/// A sign-in message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// Host that asks for the signature, with the port if it is not the default.
    pub domain: String,
    /// Address of the signer.
    pub address: Address,
    /// Statement that is agreed to.
    pub statement: Option<String>,
    /// Address that the signature is sent to.
    pub uri: String,
    /// The chain that the account is on.
    pub chain_id: u64,
    /// The server's nonce: at least eight letters and digits.
    pub nonce: String,
    /// Time of the message, written with milliseconds.
    pub issued_at: Timestamp,
    /// Time of its expiry.
    pub expiration: Option<Timestamp>,
    /// Before when it is not valid.
    pub not_before: Option<Timestamp>,
    /// An id of the asker.
    pub request_id: Option<String>,
    /// Further resources that are agreed to, as URIs.
    pub resources: Vec<String>,
}

/// A text is no sign-in message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sign-in message has no valid {0}")]
pub struct SignInError(&'static str);

impl fmt::Display for SignIn {
    /// The text that is signed, without a line feed at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{GREETING}\n{}\n\n", self.domain, self.address)?;
        if let Some(statement) = &self.statement {
            writeln!(f, "{statement}")?;
        }
        write!(f, "\nURI: {}\nVersion: 1\nChain ID: {}", self.uri, self.chain_id)?;
        write!(f, "\nNonce: {}\nIssued At: {}", self.nonce, self.issued_at)?;
        if let Some(at) = self.expiration {
            write!(f, "\nExpiration Time: {at}")?;
        }
        if let Some(at) = self.not_before {
            write!(f, "\nNot Before: {at}")?;
        }
        if let Some(id) = &self.request_id {
            write!(f, "\nRequest ID: {id}")?;
        }
        if !self.resources.is_empty() {
            write!(f, "\nResources:")?;
        }
        self.resources.iter().try_for_each(|resource| write!(f, "\n- {resource}"))
    }
}

impl FromStr for SignIn {
    type Err = SignInError;

    fn from_str(text: &str) -> Result<Self, SignInError> {
        let text = if text.len() > BYTES_MAX { "" } else { text };
        let mut lines = MessageLines(text.split('\n').peekable());
        let greeting = lines.next("greeting")?;
        let authority = greeting.strip_suffix(GREETING).ok_or(SignInError("greeting"))?;
        let domain = authority.split_once("://").map_or(authority, |(_, domain)| domain);
        if domain.is_empty() || domain.contains(char::is_whitespace) {
            return Err(SignInError("domain"));
        }
        // The grammar wants the checksummed form, which guards against typing errors.
        let address = Address::parse_checksummed(lines.next("address")?, None)
            .map_err(|_| SignInError("address"))?;
        lines.blank()?;
        let statement = match lines.next("statement")? {
            "" => None,
            statement => {
                lines.blank()?;
                Some(statement.to_owned())
            }
        };
        // Without a statement an empty line stands in its place.
        let uri = lines.field("URI: ")?.ok_or(SignInError("URI"))?;
        lines.field("Version: ")?.filter(|v| *v == "1").ok_or(SignInError("Version"))?;
        let chain_id =
            lines.field("Chain ID: ")?.and_then(digits).ok_or(SignInError("Chain ID"))?;
        let nonce = lines.field("Nonce: ")?.filter(is_nonce).ok_or(SignInError("Nonce"))?;
        let issued_at = lines.time("Issued At: ")?.ok_or(SignInError("Issued At"))?;
        let signed = Self {
            domain: domain.to_owned(),
            address,
            statement,
            uri: uri.to_owned(),
            chain_id,
            nonce: nonce.to_owned(),
            issued_at,
            expiration: lines.time("Expiration Time: ")?,
            not_before: lines.time("Not Before: ")?,
            request_id: lines.field("Request ID: ")?.map(str::to_owned),
            resources: lines.resources()?,
        };
        lines.end()?;
        Ok(signed)
    }
}

/// The lines that are left.
struct MessageLines<'a>(std::iter::Peekable<std::str::Split<'a, char>>);

impl<'a> MessageLines<'a> {
    fn next(&mut self, what: &'static str) -> Result<&'a str, SignInError> {
        self.0.next().ok_or(SignInError(what))
    }

    fn blank(&mut self) -> Result<(), SignInError> {
        self.next("empty line")?.is_empty().then_some(()).ok_or(SignInError("empty line"))
    }

    /// The value of the next line if it begins like this.
    fn field(&mut self, name: &'static str) -> Result<Option<&'a str>, SignInError> {
        let line = self.0.next_if(|line| line.starts_with(name));
        let value = line.map(|line| &line[name.len()..]);
        if value.is_some_and(|value| value.chars().any(char::is_control)) {
            return Err(SignInError(name));
        }
        Ok(value)
    }

    fn time(&mut self, name: &'static str) -> Result<Option<Timestamp>, SignInError> {
        let value = self.field(name)?;
        value.map(|text| parse_rfc3339(text).ok_or(SignInError(name))).transpose()
    }

    fn resources(&mut self) -> Result<Vec<String>, SignInError> {
        let mut resources = Vec::new();
        if self.0.next_if_eq(&"Resources:").is_some() {
            while let Some(uri) = self.field("- ")? {
                resources.push(uri.to_owned());
            }
        }
        Ok(resources)
    }

    fn end(mut self) -> Result<(), SignInError> {
        self.0.next().is_none().then_some(()).ok_or(SignInError("end"))
    }
}

fn is_nonce(text: &&str) -> bool {
    text.len() >= 8 && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn digits(text: &str) -> Option<u64> {
    let all = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // silent-ok: a number that does not fit is no value of these fields.
    all.then(|| text.parse().ok()).flatten()
}

/// Reads a time of RFC 3339: `2026-02-19T14:03:22.123Z`, with any offset and any
/// number of decimals, of which the first three are kept.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let date = text.get(..10)?;
    let rest = text.get(10..)?;
    let time = rest.strip_prefix(['T', 't'])?;
    let number = |text: &str| digits(text).and_then(|n| i64::try_from(n).ok());
    let part = |text: &str, from: usize, len: usize| text.get(from..from + len).and_then(number);
    let year = part(date, 0, 4)?;
    let month = part(date, 5, 2)?;
    let day = part(date, 8, 2)?;
    let hour = part(time, 0, 2)?;
    let minute = part(time, 3, 2)?;
    let second = part(time, 6, 2)?;
    let marks = date.get(4..5)? == "-" && date.get(7..8)? == "-" && time.get(2..3)? == ":";
    if !marks || time.get(5..6)? != ":" || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut zone = time.get(8..)?;
    let mut millis = 0;
    if let Some(fraction) = zone.strip_prefix('.') {
        let len = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let kept = fraction.get(..len.min(3)).filter(|kept| !kept.is_empty())?;
        millis = number(&format!("{kept:0<3}"))?;
        zone = fraction.get(len..)?;
    }
    let offset_minutes = match zone {
        "Z" | "z" => 0,
        _ => {
            let ahead = if zone.starts_with('+') { 1 } else { -1 };
            let shaped = zone.len() == 6 && zone.starts_with(['+', '-']) && &zone[3..4] == ":";
            ahead * shaped.then(|| Some(part(zone, 1, 2)? * 60 + part(zone, 4, 2)?)).flatten()?
        }
    };
    let seconds =
        (days_from_civil(year, month, day)? * 24 + hour) * 3600 + (minute - offset_minutes) * 60;
    Some(Timestamp::from_millis((seconds + second) * 1000 + millis))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::eip191_hash_message;
    use proptest::prelude::*;

    use super::*;

    fn golden() -> SignIn {
        SignIn {
            domain: "conway.tech".to_owned(),
            address: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".parse().unwrap(),
            statement: Some(STATEMENT.to_owned()),
            uri: "https://api.conway.tech/v1/auth/verify".to_owned(),
            chain_id: 8453,
            nonce: "abcdEFGH12345678".to_owned(),
            issued_at: Timestamp::from_millis(1_767_323_045_678),
            expiration: None,
            not_before: None,
            request_id: None,
            resources: Vec::new(),
        }
    }

    #[test]
    fn writes_the_text_that_other_programs_write() {
        let text = golden().to_string();
        assert_eq!(text.len(), 294);
        assert_eq!(
            eip191_hash_message(&text).to_string(),
            "0xcb8a0c2ac794f13963bce66b91157766d19581ee6418c5fdc793d5482f2b6199"
        );
        assert_eq!(text.parse(), Ok(golden()));
    }

    #[test]
    fn reads_every_optional_line_and_nothing_else() {
        let full = SignIn {
            statement: None,
            expiration: Some(Timestamp::from_millis(1_767_323_345_678)),
            not_before: Some(Timestamp::EPOCH),
            request_id: Some(String::new()),
            resources: vec!["ipfs://a".to_owned(), "https://b/c".to_owned()],
            ..golden()
        };
        assert_eq!(full.to_string().parse(), Ok(full.clone()));
        let text = golden().to_string();
        for (from, to) in [
            ("Version: 1", "Version: 2"),
            ("0xf39F", "0xf39f"),
            ("conway.tech wants", " wants"),
            ("Nonce: abcdEFGH12345678", "Nonce: abc"),
            ("Chain ID: 8453", "Chain ID: +8453"),
            ("T03:04", " 03:04"),
            ("Issued At", "Issued at"),
            ("key.\n\n", "key.\n"),
        ] {
            assert!(text.replacen(from, to, 1).parse::<SignIn>().is_err(), "{from} -> {to}");
        }
        assert!(format!("{text}\n").parse::<SignIn>().is_err(), "a line feed at the end");
        assert!(format!("{text}\nMore: 1").parse::<SignIn>().is_err());
    }

    #[test]
    fn reads_the_times_of_the_standard() {
        let check = |text: &str, millis: i64| {
            assert_eq!(parse_rfc3339(text), Some(Timestamp::from_millis(millis)), "{text}");
        };
        check("1970-01-01T00:00:00Z", 0);
        check("2026-01-02T03:04:05.678Z", 1_767_323_045_678);
        check("2026-01-02T03:04:05.6789123Z", 1_767_323_045_678);
        check("2026-01-02T05:04:05.67+02:00", 1_767_323_045_670);
        check("2026-01-02t00:34:05-02:30", 1_767_323_045_000);
        check("2024-02-29T00:00:00Z", 1_709_164_800_000);
        for bad in ["2026-00-01T00:00:00Z", "2026-04-31T00:00:00Z", "2026-01-00T00:00:00Z"] {
            assert_eq!(parse_rfc3339(bad), None, "{bad}");
        }
        for bad in ["", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-02T24:00:00Z"] {
            assert_eq!(parse_rfc3339(bad), None, "{bad}");
        }
        for bad in ["2026-01-02T03:04:05", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05+2:00"] {
            assert_eq!(parse_rfc3339(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_time_survives_its_text(millis in -2_000_000_000_000_i64..4_000_000_000_000) {
            let at = Timestamp::from_millis(millis);
            prop_assert_eq!(parse_rfc3339(&at.to_string()), Some(at));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,80}", time in "[0-9TZ:.+é-]{0,30}") {
            drop(text.parse::<SignIn>());
            drop(golden().to_string().replace("2026-01-02T03:04:05.678Z", &time).parse::<SignIn>());
        }
    }
}
