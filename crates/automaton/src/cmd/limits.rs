//! `limits show`, `limits set`: how much the signer may sign.
//!
//! A signer that runs is asked over the creator's socket; where none runs, its
//! ledger is opened for as long as this takes. Either way needs the passphrase,
//! and none ever decrypts the key.

use std::io::ErrorKind::{ConnectionRefused, NotFound};
use std::path::{Path, PathBuf};

use automaton_core::money::MicroUsdc;
use automaton_core::secret::Secret;
use automaton_core::time::{Clock, SystemClock};
use automaton_signer::{
    Change, ClientError, Creator, Home, PassphraseError, PassphraseSource, Standing, limits_at_rest,
};
use clap::{Args, Subcommand, ValueHint};

use super::Context;
use super::wallet::keystore_of;
use crate::args::usdc;
use crate::error::Failure;
use crate::role::signer::home_of;
use crate::stack::passphrase_file;

/// What a person may ask of the ceilings.
#[derive(Debug, Subcommand)]
pub(crate) enum LimitsCommand {
    /// Show the ceilings, and what was signed so far
    Show(PassphraseArgs),
    /// Change the ceilings that are named
    Set {
        /// The ceilings.
        #[command(flatten)]
        to: Ceilings,
        /// Who asks.
        #[command(flatten)]
        passphrase: PassphraseArgs,
    },
}

/// Ceilings that a person names.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Ceilings {
    /// The most that a single payment may be
    #[arg(long, value_name = "USDC", value_parser = usdc)]
    per_payment: Option<MicroUsdc>,
    /// The most that the payments of any 24 hours may be together
    #[arg(long, value_name = "USDC", value_parser = usdc)]
    per_day: Option<MicroUsdc>,
    /// How many payments there may ever be
    #[arg(long, value_name = "N")]
    payments: Option<u64>,
}

/// Where the passphrase is.
#[derive(Debug, Clone, Args)]
pub(crate) struct PassphraseArgs {
    /// A file with the wallet's passphrase [default: the one that `up` made, else the terminal]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    passphrase_file: Option<PathBuf>,
}

impl PassphraseArgs {
    /// The file, if it is in one: the one that was named, or that of the home's dev
    /// stack.
    pub(crate) fn file(&self, home: &Path) -> Option<PathBuf> {
        passphrase_file(home, self.passphrase_file.as_deref())
    }

    /// Reads it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(&self, home: &Path) -> Result<Secret, PassphraseError> {
        self.file(home).map_or(PassphraseSource::Terminal, PassphraseSource::File).read()
    }
}

/// Changes what is named, and tells what holds then.
pub(crate) fn run(context: &Context, command: &LimitsCommand) -> Result<(), Failure> {
    let automaton = context.home()?;
    keystore_of(&automaton)?;
    let home = Home::open(&home_of(&automaton))?;
    let (set, passphrase) = match command {
        LimitsCommand::Show(passphrase) => (Change::default(), passphrase),
        LimitsCommand::Set { to, passphrase } => {
            let Ceilings { per_payment, per_day, payments } = *to;
            (Change { per_payment, per_day, payments_max: payments }, passphrase)
        }
    };
    let passphrase = passphrase.read(&automaton)?;
    let standing = match Creator::connect(&home) {
        Ok(mut creator) => creator.limits(&passphrase, set)?,
        Err(ClientError::Gone(error)) if matches!(error.kind(), NotFound | ConnectionRefused) => {
            limits_at_rest(&home, &passphrase, set, SystemClock.now())?
        }
        Err(error) => return Err(error.into()),
    };
    context.format.answer(&standing, || {
        let Standing { limits, spent } = standing;
        format!(
            "a payment: at most {}\nin 24 hours: {} of {}\never: {} of {} payments, {} together",
            limits.per_payment,
            spent.day,
            limits.per_day,
            spent.payments,
            limits.payments_max,
            spent.ever
        )
    })
}
