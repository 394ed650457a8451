//! Pure: texts signed as EIP-191: messages and reads of a relay, and the head of an audit log.
//!
//! Each text is built here from its fields (<https://eips.ethereum.org/EIPS/eip-191>). It begins
//! with words that no other kind of text begins with.

use alloy_primitives::{Address, B256, eip191_hash_message, keccak256};
use automaton_core::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::{SignerRefusal, SignerRefusalCode};

/// The longest message over a relay, in bytes of UTF-8.
pub const CONTENT_BYTES_MAX: usize = 64_000;

/// The oldest timestamp of a message or a head.
pub const STATEMENT_AGE_MAX: Span = Span::from_secs(300);

/// The furthest that a timestamp may be in the future, and that a relay read may be from now.
/// Relays accept no more.
pub const STATEMENT_STRAY_MAX: Span = Span::from_secs(60);

/// A message to a recipient over a relay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelaySend {
    /// The recipient.
    pub to: Address,
    /// The message text, at most [`CONTENT_BYTES_MAX`].
    pub content: String,
    /// The time of sending: now.
    pub signed_at: Timestamp,
}

/// The head of the automaton's audit log, to be stored elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditHead {
    /// The number of entries in the log.
    pub entries: u64,
    /// The hash of the last entry.
    pub head: B256,
    /// The time of this statement: now.
    pub at: Timestamp,
}

impl AuditHead {
    /// Returns the text that a wallet signs for it.
    #[must_use]
    pub fn text(&self, wallet: Address) -> String {
        let Self { entries, head, at } = self;
        let title = "The head of an automaton's record.";
        format!("{title}\n\nWallet: {wallet}\nEntries: {entries}\nHead: {head}\nAt: {at}")
    }
}

/// A text that may be signed.
#[derive(Debug)]
pub(crate) struct Statement(String);

impl Statement {
    /// Builds a message over a relay: `Conway:send:{to}:{hash of content}:{signed_at}`.
    pub(crate) fn send(asked: &RelaySend, now: Timestamp) -> Result<Self, SignerRefusal> {
        let RelaySend { to, content, signed_at } = asked;
        if content.len() > CONTENT_BYTES_MAX {
            let bytes = content.len();
            let rule = format!("at most {CONTENT_BYTES_MAX}");
            return Err(SignerRefusal::new(
                SignerRefusalCode::Field,
                format!("content: {bytes} bytes are not {rule}"),
            ));
        }
        check_timestamp("signed_at", *signed_at, now, STATEMENT_AGE_MAX)?;
        Ok(Self(format!("Conway:send:{to:#x}:{}:{signed_at}", content_hash(content))))
    }

    /// Builds a request to read this wallet's messages or their number. Relays use one text for
    /// both: `Conway:poll:{address}:{at}`.
    pub(crate) fn read(
        wallet: Address,
        at: Timestamp,
        now: Timestamp,
    ) -> Result<Self, SignerRefusal> {
        check_timestamp("at", at, now, STATEMENT_STRAY_MAX)?;
        Ok(Self(format!("Conway:poll:{wallet:#x}:{at}")))
    }

    pub(crate) fn head(
        wallet: Address,
        asked: &AuditHead,
        now: Timestamp,
    ) -> Result<Self, SignerRefusal> {
        check_timestamp("at", asked.at, now, STATEMENT_AGE_MAX)?;
        Ok(Self(asked.text(wallet)))
    }

    pub(super) fn digest(&self) -> B256 {
        eip191_hash_message(&self.0)
    }
}

fn check_timestamp(
    field: &str,
    at: Timestamp,
    now: Timestamp,
    age_max: Span,
) -> Result<(), SignerRefusal> {
    if at >= now.before(age_max) && at <= now.after(STATEMENT_STRAY_MAX) {
        return Ok(());
    }
    let rule = format!("within {age_max} before and {STATEMENT_STRAY_MAX} after now, {now}");
    Err(SignerRefusal::new(SignerRefusalCode::Field, format!("{field}: {at} is not {rule}")))
}

/// Returns the Keccak-256 of a content as relays compute it. A content that is hexadecimal with
/// `0x` is hashed as the bytes that it encodes. An odd first digit is one byte.
fn content_hash(content: &str) -> B256 {
    let digits = content.strip_prefix("0x");
    let named = digits.and_then(|digits| {
        let even = if digits.len() % 2 == 0 { digits.to_owned() } else { format!("0{digits}") };
        // silent-ok: a content that is not hexadecimal is text.
        hex::decode(even).ok()
    });
    named.map_or_else(|| keccak256(content), keccak256)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{address, b256};

    use super::*;
    use crate::key::golden;
    use crate::payload::Payload;

    const NOW: Timestamp = Timestamp::from_millis(1_767_323_045_678);
    const PEER: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");

    fn hello() -> RelaySend {
        RelaySend { to: PEER, content: "hello".to_owned(), signed_at: NOW }
    }

    fn sign(statement: Statement) -> String {
        golden().sign(&Payload::Statement(statement)).unwrap().to_string()
    }

    #[test]
    fn golden_vectors() {
        let statement = Statement::send(&hello(), NOW).unwrap();
        assert_eq!(
            statement.0,
            "Conway:send:0x70997970c51812dc3a010c7d01b50e0d17dc79c8:\
             0x1c8aff950685c2ed4bc3174f3472287b56d9517b9c948127319a09a7a36deac8:\
             2026-01-02T03:04:05.678Z"
        );
        assert_eq!(
            sign(statement),
            "0xd70dbe356e13addde18daed75c438b7d50513608b1072f8f272231f727433c495a9eefa14da635fa\
             d8badedb2f45c03a06d33d6c4379c6cf8ab2a4e0f3ee06f11b"
        );
        assert_eq!(
            sign(Statement::read(golden().address(), NOW, NOW).unwrap()),
            "0x87185a120ad8267144e92e712ed3a76ff42b5d0f680d303f073c41eddf8f2e9d440d0c4a4cf5d968\
             d031cb0ba56a327d0ebc2620b5bb6d3d71f5f1508d040a001b"
        );
    }

    #[test]
    fn contents_are_hashed_as_relays_do() {
        let hexed = b256!("03783fac2efed8fbc9ad443e592ee30e61d65f471140c10ca155e937b435b760");
        for (content, hash) in [
            ("héllo ✓", b256!("0dbe2502a57b71b83ebdd07d113eac5658ec04ba3d98d9fefb9e105d88e3620f")),
            ("0x41", hexed),
            ("A", hexed),
            ("0x4", keccak256([4])),
            ("0x", keccak256("")),
            ("0x4g", keccak256("0x4g")),
            ("0x+1", keccak256("0x+1")),
            ("0X41", keccak256("0X41")),
        ] {
            assert_eq!(content_hash(content), hash, "{content}");
        }
    }

    #[test]
    fn a_head_is_told_in_words() {
        let asked = AuditHead { entries: 7, head: B256::repeat_byte(0x11), at: NOW };
        let statement = Statement::head(PEER, &asked, NOW).unwrap();
        let start = format!(
            "The head of an automaton's record.\n\nWallet: {PEER}\nEntries: 7\nHead: 0x1111"
        );
        assert!(statement.0.starts_with(&start), "{}", statement.0);
        assert!(statement.0.ends_with("\nAt: 2026-01-02T03:04:05.678Z"), "{}", statement.0);
    }

    #[test]
    fn what_is_not_of_now_or_too_long_is_refused() {
        let at = |seconds: i64| Timestamp::from_millis(NOW.as_millis() + seconds * 1000);
        for (seconds, sends, reads) in [
            (-301, false, false),
            (-300, true, false),
            (-61, true, false),
            (-60, true, true),
            (60, true, true),
            (61, false, false),
        ] {
            let sent = Statement::send(&RelaySend { signed_at: at(seconds), ..hello() }, NOW);
            assert_eq!(sent.is_ok(), sends, "{seconds}");
            assert_eq!(Statement::read(PEER, at(seconds), NOW).is_ok(), reads, "{seconds}");
            let head = AuditHead { entries: 0, head: B256::ZERO, at: at(seconds) };
            assert_eq!(Statement::head(PEER, &head, NOW).is_ok(), sends, "{seconds}");
        }
        let long =
            |bytes| Statement::send(&RelaySend { content: "x".repeat(bytes), ..hello() }, NOW);
        assert!(long(CONTENT_BYTES_MAX).is_ok());
        let refusal = long(CONTENT_BYTES_MAX + 1).unwrap_err();
        assert!(refusal.reason.starts_with("content: 64001 bytes"), "{refusal}");
    }
}
