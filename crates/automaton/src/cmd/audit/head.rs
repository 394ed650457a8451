//! `audit head`: how the record ends, to be kept where nobody who could change the record
//! can change it.
//!
//! The wallet's signature shows later that it was this automaton's: whoever forges the
//! whole record anew cannot forge that. A head that is signed is taken only with a
//! signature that holds.

use std::fs;
use std::path::Path;

use alloy_primitives::Address;
use automaton_core::error::ErrorClass;
use automaton_core::time::{Clock, SystemClock};
use automaton_core::wire::control::{ControlRequest, ControlResponse};
use automaton_signer::signer_of;
use automaton_store::{ChainHead, Hash, Reader};
use automaton_wallet::{AuditHead, SignerClient};

use super::super::CommandContext;
use super::super::passphrase::PassphraseArgs;
use super::super::wallet::{SIGNER_ENDS_WITHIN, keystore_of};
use crate::control::{self, ControlError, unexpected};
use crate::error::CliError;
use crate::home;
use crate::process::{executable, runtime};
use crate::role::signer::{self, SignerLaunchConfig, home_of};
use crate::text_file;
use crate::view::audit::AuditHeadView;

/// The largest file with a head, in bytes.
const FILE_BYTES_MAX: u64 = 4096;

/// Prints the head of a record that is whole.
pub(super) fn print(context: &CommandContext) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let ChainHead { entries, hash } = read_whole(&reader)?;
    let view = AuditHeadView { entries, head: hash.to_string(), signed: None };
    context.format.answer(&view, || format!("Entries: {entries}\nHead: 0x{hash}"))
}

/// Prints it with the wallet's signature: the running automaton's signer is asked, else one
/// is started for this.
pub(super) fn sign(context: &CommandContext, passphrase: &PassphraseArgs) -> Result<(), CliError> {
    let (home, _, reader) = context.record()?;
    keystore_of(&home)?;
    let text = match control::ask(&home, &ControlRequest::Head) {
        Ok(ControlResponse::Head { text }) => text,
        Ok(other) => return Err(unexpected(other)),
        Err(ControlError::NotRunning) => sign_alone(context, &home, &reader, passphrase)?,
        Err(lost) => return Err(lost.into()),
    };
    let kept = SavedHead::parse(&text)?;
    let ChainHead { entries, hash } = kept.head;
    let view = AuditHeadView { entries, head: hash.to_string(), signed: Some(text.clone()) };
    context.format.answer(&view, || text)
}

fn sign_alone(
    context: &CommandContext,
    home: &Path,
    reader: &Reader,
    passphrase: &PassphraseArgs,
) -> Result<String, CliError> {
    let _lock = home::lock(home)?;
    let ChainHead { entries, hash } = read_whole(reader)?;
    let place = passphrase.location(context, &home_of(home))?;
    let config = SignerLaunchConfig {
        home: home_of(home),
        passphrase: place,
        ..SignerLaunchConfig::default()
    };
    runtime()?.block_on(async {
        let mut signer = signer::start(&executable()?, &config)?;
        let client = SignerClient::open(signer.socket).await?;
        let head = hash.as_bytes().into();
        let at = SystemClock.now();
        let text = client.audit_head(AuditHead { entries, head, at }).await?;
        drop(client);
        signer.child.wait_timeout(SIGNER_ENDS_WITHIN)?;
        Ok(text)
    })
}

/// The head of a record, which must not be broken: nobody signs for what is.
fn read_whole(reader: &Reader) -> Result<ChainHead, CliError> {
    let report = reader.verify_chain()?;
    super::check_report(&report, None)?;
    Ok(ChainHead { entries: report.links, hash: report.head })
}

/// A head that was kept elsewhere.
#[derive(Debug)]
pub(super) struct SavedHead {
    pub(super) head: ChainHead,
    /// Wallet that signed it.
    wallet: Option<Address>,
}

impl SavedHead {
    /// Reads one from a file, or from the text itself.
    ///
    /// # Errors
    /// When it is none, or its signature does not hold.
    pub(super) fn read(given: &str) -> Result<Self, CliError> {
        match fs::metadata(given) {
            Ok(found) if found.is_file() && found.len() <= FILE_BYTES_MAX => {
                let failed = |error: std::io::Error| {
                    CliError::user(format!("cannot read {given}")).because(&error)
                };
                Self::parse(
                    &text_file::read_required(Path::new(given), FILE_BYTES_MAX).map_err(failed)?,
                )
            }
            Ok(_) => Err(none().hint("name a file that holds what `automaton audit head` printed")),
            // A text is no path.
            Err(_) => Self::parse(given),
        }
    }

    fn parse(text: &str) -> Result<Self, CliError> {
        let printed: Option<AuditHeadView> = match text.trim_start().starts_with('{') {
            true => {
                let printed = serde_json::from_str(text);
                Some(printed.map_err(|error| none().because(&error))?)
            }
            false => None,
        };
        match printed {
            Some(AuditHeadView { signed: Some(signed), .. }) => Self::of_lines(&signed),
            Some(AuditHeadView { entries, head, signed: None }) => {
                Ok(Self { head: ChainHead { entries, hash: hash(&head)? }, wallet: None })
            }
            None => Self::of_lines(text),
        }
    }

    fn of_lines(text: &str) -> Result<Self, CliError> {
        let text = text.trim();
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::trim)
        };
        // silent-ok: what is no number is no head.
        let entries = field("Entries").and_then(|text| text.parse().ok()).ok_or_else(none)?;
        let head = ChainHead { entries, hash: hash(field("Head").ok_or_else(none)?)? };
        let (Some(wallet), Some(signature)) = (field("Wallet"), field("Signature")) else {
            return Ok(Self { head, wallet: None });
        };
        let signed = text.rsplit_once("\nSignature:").map_or(text, |(signed, _)| signed);
        // silent-ok: what is no address or no hexadecimal has signed nothing.
        let wallet = wallet.parse().ok();
        let bytes = hex::decode(signature.trim_start_matches("0x"));
        match wallet {
            // silent-ok: as above.
            Some(wallet) if signer_of(signed, &bytes.unwrap_or_default()) == Some(wallet) => {
                Ok(Self { head, wallet: Some(wallet) })
            }
            _ => Err(CliError::new(ErrorClass::Denied, "the signature of the head does not hold")
                .hint("it was changed, or is not all of what `audit head --signed` printed")),
        }
    }

    /// Checks that the wallet of this home signed it, if one did.
    ///
    /// # Errors
    /// When another one did.
    pub(super) fn is_of(&self, home: &Path) -> Result<(), CliError> {
        let Some(wallet) = self.wallet else { return Ok(()) };
        let ours = keystore_of(home)?.address();
        if ours == Some(wallet) {
            return Ok(());
        }
        let what = format!("the head was signed by {wallet}, which is not this automaton's wallet");
        Err(CliError::new(ErrorClass::Denied, what)
            .hint("name the head of this automaton, or its --home"))
    }
}

fn hash(text: &str) -> Result<Hash, CliError> {
    text.trim_start_matches("0x").parse().map_err(|error| none().because(&error))
}

fn none() -> CliError {
    CliError::user("that is no head of a record")
        .hint("give what `automaton audit head` printed, or a file with it")
}
