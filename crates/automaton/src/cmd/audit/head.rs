//! `audit head`: how the record ends, to be kept where nobody who could change the record
//! can change it.
//!
//! The wallet's signature shows later that it was this automaton's: whoever forges the
//! whole record anew cannot forge that. A head that is signed is taken only with a
//! signature that holds.

use std::fs;
use std::path::Path;

use alloy_primitives::Address;
use automaton_core::error::Kind;
use automaton_core::time::{Clock, SystemClock};
use automaton_core::wire::control::{Answer, Command};
use automaton_signer::signer_of;
use automaton_store::{Hash, Head, Reader};
use automaton_wallet::{AuditHead, Purse};
use serde::{Deserialize, Serialize};

use super::super::Context;
use super::super::live::{executable, runtime};
use super::super::passphrase::PassphraseArgs;
use super::super::wallet::{SIGNER_ENDS_WITHIN, keystore_of};
use crate::control::{self, Silence, unexpected};
use crate::error::Failure;
use crate::home;
use crate::role::signer::{self, SignerCharter, home_of};

/// The largest file with a head, in bytes.
const FILE_BYTES_MAX: u64 = 4096;

/// A head as it is printed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    entries: u64,
    /// In hexadecimal.
    head: String,
    /// The text that was signed, with the signature as its last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signed: Option<String>,
}

/// Prints the head of a record that is whole.
pub(super) fn print(context: &Context) -> Result<(), Failure> {
    let (.., reader) = context.record()?;
    let Head { entries, hash } = whole(&reader)?;
    let printed = Printed { entries, head: hash.to_string(), signed: None };
    context.format.answer(&printed, || format!("Entries: {entries}\nHead: 0x{hash}"))
}

/// Prints it with the wallet's signature: the running automaton's signer is asked, else one
/// is started for this.
pub(super) fn sign(context: &Context, passphrase: &PassphraseArgs) -> Result<(), Failure> {
    let (home, _, reader) = context.record()?;
    keystore_of(&home)?;
    let text = match control::ask(&home, &Command::Head) {
        Ok(Answer::Head { text }) => text,
        Ok(other) => return Err(unexpected(other)),
        Err(Silence::NotRunning) => sign_alone(context, (&home, &reader), passphrase)?,
        Err(lost) => return Err(lost.into()),
    };
    let kept = Kept::parse(&text)?;
    let Head { entries, hash } = kept.head;
    let printed = Printed { entries, head: hash.to_string(), signed: Some(text.clone()) };
    context.format.answer(&printed, || text)
}

fn sign_alone(
    context: &Context,
    (home, reader): (&Path, &Reader),
    passphrase: &PassphraseArgs,
) -> Result<String, Failure> {
    let _lock = home::lock(home)?;
    let Head { entries, hash } = whole(reader)?;
    let place = passphrase.place(context, &home_of(home))?;
    let charter =
        SignerCharter { home: home_of(home), passphrase: place, ..SignerCharter::default() };
    runtime()?.block_on(async {
        let mut signer = signer::start(&executable()?, &charter)?;
        let purse = Purse::open(signer.socket).await?;
        let (head, at) = (hash.as_bytes().into(), SystemClock.now());
        let text = purse.audit_head(AuditHead { entries, head, at }).await?;
        drop(purse);
        signer.child.wait_timeout(SIGNER_ENDS_WITHIN)?;
        Ok(text)
    })
}

/// The head of a record, which must not be broken: nobody signs for what is.
fn whole(reader: &Reader) -> Result<Head, Failure> {
    let report = reader.verify_chain()?;
    super::found(&report, None)?;
    Ok(Head { entries: report.links, hash: report.head })
}

/// A head that was kept elsewhere.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) head: Head,
    /// Whose wallet signed it.
    wallet: Option<Address>,
}

impl Kept {
    /// Reads one from a file, or from the text itself.
    ///
    /// # Errors
    /// When it is none, or its signature does not hold.
    pub(super) fn read(given: &str) -> Result<Self, Failure> {
        match fs::metadata(given) {
            Ok(found) if found.is_file() && found.len() <= FILE_BYTES_MAX => {
                let failed = |error: std::io::Error| {
                    Failure::user(format!("cannot read {given}")).because(&error)
                };
                Self::parse(&fs::read_to_string(given).map_err(failed)?)
            }
            Ok(_) => Err(none().hint("name a file that holds what `automaton audit head` printed")),
            // A text is no path.
            Err(_) => Self::parse(given),
        }
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        let printed: Option<Printed> = match text.trim_start().starts_with('{') {
            true => {
                let printed = serde_json::from_str(text);
                Some(printed.map_err(|error| none().because(&error))?)
            }
            false => None,
        };
        match printed {
            Some(Printed { signed: Some(signed), .. }) => Self::of_lines(&signed),
            Some(Printed { entries, head, signed: None }) => {
                Ok(Self { head: Head { entries, hash: hash(&head)? }, wallet: None })
            }
            None => Self::of_lines(text),
        }
    }

    fn of_lines(text: &str) -> Result<Self, Failure> {
        let text = text.trim();
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::trim)
        };
        // silent-ok: what is no number is no head.
        let entries = field("Entries").and_then(|text| text.parse().ok()).ok_or_else(none)?;
        let head = Head { entries, hash: hash(field("Head").ok_or_else(none)?)? };
        let (Some(wallet), Some(signature)) = (field("Wallet"), field("Signature")) else {
            return Ok(Self { head, wallet: None });
        };
        let signed = text.rsplit_once("\nSignature:").map_or(text, |(signed, _)| signed);
        // silent-ok: what is no address or no hexadecimal has signed nothing.
        let (wallet, bytes) =
            (wallet.parse().ok(), hex::decode(signature.trim_start_matches("0x")));
        match wallet {
            // silent-ok: as above.
            Some(wallet) if signer_of(signed, &bytes.unwrap_or_default()) == Some(wallet) => {
                Ok(Self { head, wallet: Some(wallet) })
            }
            _ => Err(Failure::new(Kind::Denied, "the signature of the head does not hold")
                .hint("it was changed, or is not all of what `audit head --signed` printed")),
        }
    }

    /// Checks that the wallet of this home signed it, if one did.
    ///
    /// # Errors
    /// When another one did.
    pub(super) fn is_of(&self, home: &Path) -> Result<(), Failure> {
        let Some(wallet) = self.wallet else { return Ok(()) };
        let ours = keystore_of(home)?.address();
        if ours == Some(wallet) {
            return Ok(());
        }
        let what = format!("the head was signed by {wallet}, which is not this automaton's wallet");
        Err(Failure::new(Kind::Denied, what).hint("name the head of this automaton, or its --home"))
    }
}

fn hash(text: &str) -> Result<Hash, Failure> {
    text.trim_start_matches("0x").parse().map_err(|error| none().because(&error))
}

fn none() -> Failure {
    Failure::user("that is no head of a record")
        .hint("give what `automaton audit head` printed, or a file with it")
}
