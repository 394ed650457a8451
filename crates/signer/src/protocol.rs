//! The messages between the signer and its two kinds of clients: one JSON object a line.
//!
//! The signer speaks first, with a hello or with the reason why it is locked. Then each request
//! gets one reply. A line has at most [`LINE_BYTES_MAX`] bytes. Buffers are wiped, since a line
//! to the creator's socket contains the passphrase. Nothing here may ever print a line.

use std::io::{self, Read, Write};

use alloy_primitives::{Address, B256, Bytes};
use automaton_core::error::ErrorClass;
use automaton_core::secret::Secret;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::ExactPayload;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::ceiling::{SignerStatus, SigningLimitsChange};
use crate::error::SignerRefusal;
use crate::key::Signature;
use crate::payload::{
    AgentWalletSet, AuditHead, PaymentIntent, RegistrationFields, RelaySend, SignInFields,
    SignedTransaction, TransactionIntent,
};

/// The protocol version. Two sides with different versions refuse each other.
pub(crate) const VERSION: u32 = 2;

/// The longest line of either side, in bytes: a relay message in which every byte is escaped.
pub(crate) const LINE_BYTES_MAX: usize = 512 * 1024;

/// A request of the agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum SignerRequest {
    /// Sign a payment.
    Pay(PaymentIntent),
    /// Sign a sign-in.
    SignIn(SignInFields),
    /// Sign a registration.
    Register(RegistrationFields),
    /// Sign a message over a relay.
    RelaySend(RelaySend),
    /// Sign a request to read a relay, or the number of messages in it.
    RelayRead { at: Timestamp },
    /// Sign the consent to be an agent's wallet.
    AgentWallet(AgentWalletSet),
    /// Sign the head of the audit log.
    AuditHead(AuditHead),
    /// Sign a transaction.
    Transact(TransactionIntent),
    /// Return the ceilings and the totals.
    Limits {},
}

/// A request of the creator.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreatorRequest {
    /// The proof that the creator asks.
    pub(crate) proof: Option<CreatorProof>,
    /// The action to perform before the status is returned.
    pub(crate) ask: CreatorAction,
}

/// An action that the creator may ask of a signer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CreatorAction {
    /// Show the status.
    Show {},
    /// Change ceilings.
    Set(SigningLimitsChange),
    /// Set the creator's address.
    Creator(Address),
    /// Accept the permits that the last start asked for, given their hash.
    Accept(B256),
}

/// A proof that the creator asks.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CreatorProof {
    /// The passphrase of the wallet.
    Passphrase(#[serde(with = "words")] Secret),
    /// The creator's signature of [`crate::message`], 65 bytes.
    Signature(Bytes),
}

/// Serialization of a secret, for the creator's socket only.
mod words {
    use automaton_core::secret::Secret;
    use serde::{Deserialize, Deserializer, Serializer};
    use zeroize::Zeroizing;

    pub(super) fn serialize<S: Serializer>(words: &Secret, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(words.reveal())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
        let mut words = Zeroizing::<String>::deserialize(from)?;
        Ok(Secret::new(std::mem::take(&mut *words)))
    }
}

/// A message of the signer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum SignerResponse {
    /// The signer is unlocked and serves this wallet.
    Hello { version: u32, address: Address },
    /// The signer could not start.
    Locked { reason: String, kind: ErrorClass, hint: Option<String> },
    /// A signed payment.
    Paid(ExactPayload),
    /// A signed sign-in and the text that was signed.
    SignedIn { message: String, signature: Signature },
    /// A signed registration and the hash that it holds.
    Registered { payload_hash: B256, signature: Signature },
    /// The signature of the request, and nothing else.
    Signed(Signature),
    /// A signed transaction.
    Transacted(SignedTransaction),
    /// The ceilings and the totals.
    Limits(Box<SignerStatus>),
    /// The signer did not sign.
    Refused(SignerRefusal),
}

/// Lines over a stream, read into a buffer of fixed size.
pub(crate) struct LineStream<S> {
    stream: S,
    buffer: Zeroizing<Vec<u8>>,
    filled: usize,
}

impl<S: Read + Write> LineStream<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, buffer: Zeroizing::new(vec![0; LINE_BYTES_MAX + 1]), filled: 0 }
    }

    /// Returns the next line without its end, or `None` if the other side has hung up. An
    /// unfinished line is dropped then.
    ///
    /// # Errors
    /// Returns `InvalidData` if a line is too long, and otherwise the stream's error.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        let mut searched = 0;
        loop {
            let unread = &self.buffer[searched..self.filled];
            if let Some(offset) = unread.iter().position(|byte| *byte == b'\n') {
                let end = searched + offset;
                let line = Zeroizing::new(self.buffer[..end].to_vec());
                self.buffer.copy_within(end + 1..self.filled, 0);
                self.filled -= end + 1;
                return Ok(Some(line));
            }
            searched = self.filled;
            if self.filled == self.buffer.len() {
                let reason = format!("a line has more than {LINE_BYTES_MAX} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
            match self.stream.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return Ok(None),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a value as one line.
    ///
    /// # Errors
    /// Fails if the line is too long or the stream fails.
    pub(crate) fn send(&mut self, value: &impl Serialize) -> io::Result<()> {
        // Allocated at once for common lines, since a buffer that grows leaves copies behind.
        let mut line = Zeroizing::new(Vec::with_capacity(4096));
        serde_json::to_writer(&mut *line, value)?;
        if line.len() > LINE_BYTES_MAX {
            let reason = format!("the line has more than {LINE_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        line.push(b'\n');
        self.stream.write_all(&line)
    }

    /// Waits for a message.
    ///
    /// # Errors
    /// Returns `UnexpectedEof` if the other side hung up, and `InvalidData` if the line is not of
    /// this type.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        match self.next_line()? {
            Some(line) => Ok(serde_json::from_slice(&line)?),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (LineStream<UnixStream>, UnixStream) {
        let (here, there) = UnixStream::pair().unwrap();
        (LineStream::new(here), there)
    }

    #[test]
    fn lines_arrive_whole_however_they_are_cut() {
        let (mut lines, mut other) = pair();
        other.write_all(b"one\n\ntw").unwrap();
        assert_eq!(**lines.next_line().unwrap().unwrap(), *b"one");
        assert_eq!(**lines.next_line().unwrap().unwrap(), *b"");
        other.write_all(b"o\nrest").unwrap();
        assert_eq!(**lines.next_line().unwrap().unwrap(), *b"two");
        drop(other);
        assert!(lines.next_line().unwrap().is_none());
    }

    #[test]
    fn the_longest_line_passes_and_one_more_byte_does_not() {
        for (length, passes) in [(LINE_BYTES_MAX, true), (LINE_BYTES_MAX + 1, false)] {
            let (mut lines, mut other) = pair();
            let sender = std::thread::spawn(move || {
                let mut line = vec![b'x'; length];
                line.push(b'\n');
                // silent-ok: the reader stops at a line that is too long.
                other.write_all(&line).ok();
            });
            match lines.next_line() {
                Ok(line) => assert!(passes && line.unwrap().len() == length),
                Err(error) => {
                    assert!(!passes && error.kind() == io::ErrorKind::InvalidData, "{error}");
                }
            }
            drop(lines);
            sender.join().unwrap();
        }
    }

    #[test]
    fn the_bytes_of_the_protocol() {
        let check = |value: &dyn erased::Json, text: &str| assert_eq!(value.json(), text);
        check(
            &SignerResponse::Hello { version: 1, address: Address::ZERO },
            r#"{"hello":{"version":1,"address":"0x0000000000000000000000000000000000000000"}}"#,
        );
        check(&SignerRequest::Limits {}, r#"{"limits":{}}"#);
        check(
            &SignerResponse::Refused(SignerRefusal::new(
                crate::error::SignerRefusalCode::PerDay,
                "why",
            )),
            r#"{"refused":{"code":"per_day","reason":"why"}}"#,
        );
        let proof = Some(CreatorProof::Passphrase(Secret::new("p".to_owned())));
        let ask = CreatorAction::Set(SigningLimitsChange {
            payments_max: Some(1),
            ..SigningLimitsChange::default()
        });
        check(
            &CreatorRequest { proof, ask },
            r#"{"proof":{"passphrase":"p"},"ask":{"set":{"per_payment":null,"per_hour":null,"per_day":null,"per_payee":null,"lifetime":null,"payments_max":1}}}"#,
        );
        let proof = Some(CreatorProof::Signature(vec![1, 2].into()));
        check(
            &CreatorRequest { proof, ask: CreatorAction::Show {} },
            r#"{"proof":{"signature":"0x0102"},"ask":{"show":{}}}"#,
        );
    }

    mod erased {
        pub(super) trait Json {
            fn json(&self) -> String;
        }
        impl<T: serde::Serialize> Json for T {
            fn json(&self) -> String {
                serde_json::to_string(self).unwrap()
            }
        }
    }
}
