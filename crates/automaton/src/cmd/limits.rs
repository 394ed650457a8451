//! `limits`: how much the signer may sign, and for what.
//!
//! A signer that runs is asked over the creator's socket; where none runs, its
//! ledger is opened for as long as this takes. To show and to lower needs no
//! secret; the signer decides what does, and none ever decrypts the key.

use std::io::ErrorKind::{ConnectionRefused, NotFound};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes};
use automaton_core::faults::NoFaults;
use automaton_core::money::MicroUsdc;
use automaton_core::time::SystemClock;
use automaton_sandbox::SystemBootClock;
use automaton_signer::{
    CreatorAction, CreatorConnection, CreatorProof, PassphraseSource, SignerConnectionError,
    SignerDeps, SignerHome, SignerStatus, SigningLimitsChange, ask_at_rest, message,
};
use clap::{Args, Subcommand};
use serde_json::json;

use super::CommandContext;
use super::passphrase::PassphraseArgs;
use super::wallet::keystore_of;
use crate::args::usdc;
use crate::error::CliError;
use crate::role::signer::home_of;

/// What a person may ask of the ceilings.
#[derive(Debug, Subcommand)]
pub(crate) enum LimitsCommand {
    /// Show the limits, what was spent of them, and what may be paid for
    ///
    /// Needs no passphrase; one that is given is checked.
    Show(PassphraseArgs),
    /// Change limits; raising one needs the passphrase or --signature
    Set {
        /// The ceilings.
        #[command(flatten)]
        to: Ceilings,
        /// Your signature of what `limits message` prints for the same limits
        #[arg(long, value_name = "HEX")]
        signature: Option<Bytes>,
        /// Who asks.
        #[command(flatten)]
        passphrase: PassphraseArgs,
    },
    /// Print the text to sign with your own address to raise limits without the passphrase
    Message(Ceilings),
    /// Name your own address, whose signature can raise the limits
    Creator {
        /// The address
        address: Address,
        /// Who asks.
        #[command(flatten)]
        passphrase: PassphraseArgs,
    },
    /// Accept the tokens and contracts that a start was last refused for
    Accept {
        /// The hash that `limits show` prints
        hash: B256,
        /// Who asks.
        #[command(flatten)]
        passphrase: PassphraseArgs,
    },
}

/// Ceilings that a person names.
#[derive(Debug, Clone, Copy, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Ceilings {
    /// The most that a single payment may be
    #[arg(long, value_name = "USDC", value_parser = usdc)]
    per_payment: Option<MicroUsdc>,
    /// The most that the payments of any hour may be together
    #[arg(long, value_name = "USDC", value_parser = usdc)]
    per_hour: Option<MicroUsdc>,
    /// The most that the payments of any 24 hours may be together
    #[arg(long, value_name = "USDC", value_parser = usdc)]
    per_day: Option<MicroUsdc>,
    /// The most that the payments of any 24 hours to one payee may be together
    #[arg(long, value_name = "USDC", value_parser = usdc)]
    per_payee: Option<MicroUsdc>,
    /// The most that all payments may ever be together
    #[arg(long, value_name = "USDC", value_parser = usdc)]
    lifetime: Option<MicroUsdc>,
    /// How many payments there may ever be
    #[arg(long, value_name = "N")]
    payments: Option<u64>,
}

impl From<Ceilings> for SigningLimitsChange {
    fn from(to: Ceilings) -> Self {
        let Ceilings { per_payment, per_hour, per_day, per_payee, lifetime, payments } = to;
        Self { per_payment, per_hour, per_day, per_payee, lifetime, payments_max: payments }
    }
}

/// Does what is asked, and tells what holds then.
pub(crate) fn run(
    context: &CommandContext,
    signer: Option<PathBuf>,
    command: &LimitsCommand,
) -> Result<(), CliError> {
    let signer = match signer {
        Some(signer) => {
            // Before anybody is asked for a passphrase.
            SignerHome::open(&signer)?;
            signer
        }
        None => {
            let automaton = context.home()?;
            keystore_of(&automaton)?;
            home_of(&automaton)
        }
    };
    let by_passphrase = |args: &PassphraseArgs| -> Result<_, CliError> {
        Ok(Some(CreatorProof::Passphrase(args.read(context, &signer)?)))
    };
    let (ask, proof) = match command {
        LimitsCommand::Show(passphrase) if passphrase.is_given() => {
            (CreatorAction::Show {}, by_passphrase(passphrase)?)
        }
        LimitsCommand::Show(_) => (CreatorAction::Show {}, None),
        LimitsCommand::Message(to) => {
            let SignerStatus { wallet, serial, .. } = tell(&signer, &CreatorAction::Show {}, None)?;
            let wallet = wallet.ok_or_else(|| {
                CliError::user("the wallet was never unlocked, and its file names no address")
                    .hint("start the automaton once, or give the passphrase instead")
            })?;
            let text = message(wallet, serial, &(*to).into());
            let document = json!({ "wallet": wallet, "serial": serial, "message": text });
            return context.format.answer(&document, || text);
        }
        LimitsCommand::Set { to, signature, passphrase } => {
            let to = SigningLimitsChange::from(*to);
            let raises = || {
                Ok::<_, CliError>(to.raises(tell(&signer, &CreatorAction::Show {}, None)?.limits))
            };
            let proof = match signature {
                Some(signature) => Some(CreatorProof::Signature(signature.clone())),
                None if !raises()? => None,
                None if passphrase.place(context, &signer)?.is_some() => by_passphrase(passphrase)?,
                // silent-ok: without a terminal the signer says what it takes to raise.
                None => PassphraseSource::Terminal.read().ok().map(CreatorProof::Passphrase),
            };
            (CreatorAction::Set(to), proof)
        }
        LimitsCommand::Creator { address, passphrase } => {
            (CreatorAction::Creator(*address), by_passphrase(passphrase)?)
        }
        LimitsCommand::Accept { hash, passphrase } => {
            (CreatorAction::Accept(*hash), by_passphrase(passphrase)?)
        }
    };
    let standing = tell(&signer, &ask, proof)?;
    context.format.answer(&standing, || described(&standing))
}

/// Asks the signer of a home, or its ledger.
///
/// # Errors
/// When it refuses, or its home cannot be used.
pub(super) fn tell(
    home: &Path,
    ask: &CreatorAction,
    proof: Option<CreatorProof>,
) -> Result<SignerStatus, CliError> {
    let home = SignerHome::open(home)?;
    match CreatorConnection::connect(&home) {
        Ok(mut creator) => Ok(creator.ask(ask, proof)?),
        Err(SignerConnectionError::Gone(error))
            if matches!(error.kind(), NotFound | ConnectionRefused) =>
        {
            let parts = SignerDeps {
                clock: Arc::new(SystemClock),
                boot: Arc::new(SystemBootClock),
                faults: Arc::new(NoFaults),
            };
            Ok(ask_at_rest(&home, ask, proof.as_ref(), parts)?)
        }
        Err(error) => Err(error.into()),
    }
}

fn described(standing: &SignerStatus) -> String {
    let SignerStatus { limits, spent, creator, permits, .. } = standing;
    let creator = creator.map_or_else(|| "none".to_owned(), |it| it.to_string());
    let mut text = format!(
        "One payment: at most {}\n\
         In an hour: {} of {} spent\n\
         In 24 hours: {} of {} spent\n\
         To one payee in 24 hours: {} of {} spent\n\
         In all: {} of {} spent, {} of {} payments made\n\
         Your address: {creator}",
        limits.per_payment,
        spent.hour,
        limits.per_hour,
        spent.day,
        limits.per_day,
        spent.payee,
        limits.per_payee,
        spent.ever,
        limits.lifetime,
        spent.payments,
        limits.payments_max,
    );
    text.extend(permits.iter().map(|line| format!("\nMay be signed: {line}")));
    if let Some(hash) = standing.asked {
        text.extend(standing.asked_for.iter().map(|line| format!("\nNot accepted: {line}")));
        text.push_str(&format!("\n`automaton limits accept {hash}` accepts it"));
    }
    format!("{text}\nFingerprint: {}", standing.rules)
}
