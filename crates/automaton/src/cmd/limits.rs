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
    SignerDeps, SignerHome, SignerStatus, SigningLimitsChange, act_on_stopped_signer, message,
};
use automaton_store::Reader;
use clap::{Args, Subcommand};

use super::CommandContext;
use super::passphrase::PassphraseArgs;
use super::wallet::keystore_of;
use crate::args::usdc;
use crate::error::CliError;
use crate::home::DATABASE;
use crate::role::signer::home_of;
use crate::view::limits::{LimitsMessageView, LimitsOutput};

/// Commands for the ceilings.
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
        /// The passphrase.
        #[command(flatten)]
        passphrase: PassphraseArgs,
    },
    /// Print the text to sign with your own address to raise limits without the passphrase
    Message(Ceilings),
    /// Name your own address, whose signature can raise the limits
    Creator {
        /// The address
        address: Address,
        /// The passphrase.
        #[command(flatten)]
        passphrase: PassphraseArgs,
    },
    /// Accept the tokens and contracts that a start was last refused for
    Accept {
        /// The hash that `limits show` prints
        hash: B256,
        /// The passphrase.
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
    /// Most payments ever
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
    let (signer, in_wallet) = match signer {
        Some(signer) => {
            // Before anybody is asked for a passphrase.
            SignerHome::open(&signer)?;
            (signer, None)
        }
        None => {
            let automaton = context.home()?;
            keystore_of(&automaton)?;
            (home_of(&automaton), read_last_balance(&automaton))
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
            let SignerStatus { wallet, serial, .. } =
                ask_signer(&signer, &CreatorAction::Show {}, None)?;
            let wallet = wallet.ok_or_else(|| {
                CliError::user("the wallet was never unlocked, and its file names no address")
                    .hint("start the automaton once, or give the passphrase instead")
            })?;
            let text = message(wallet, serial, &(*to).into());
            let view = LimitsMessageView { wallet, serial, message: text };
            return context.format.answer(&view, || view.message.clone());
        }
        LimitsCommand::Set { to, signature, passphrase } => {
            let to = SigningLimitsChange::from(*to);
            let raises = || {
                Ok::<_, CliError>(
                    to.raises(ask_signer(&signer, &CreatorAction::Show {}, None)?.limits),
                )
            };
            let proof = match signature {
                Some(signature) => Some(CreatorProof::Signature(signature.clone())),
                None if !raises()? => None,
                None if passphrase.location(context, &signer)?.is_some() => {
                    by_passphrase(passphrase)?
                }
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
    let limits = LimitsOutput::new(&ask_signer(&signer, &ask, proof)?, in_wallet);
    context.format.answer(&limits, || describe(&limits))
}

/// Reads what the wallet held when the automaton last read its balance; `None` where it never
/// did, or where its record cannot be read: the limits hold all the same.
fn read_last_balance(home: &Path) -> Option<MicroUsdc> {
    let database = home.join(DATABASE);
    if !database.exists() {
        return None;
    }
    // silent-ok: an unknown balance lowers nothing that is shown.
    let vitals = Reader::open(&database).and_then(|reader| reader.vitals()).ok()?;
    vitals.usdc
}

/// Asks the signer of a home, or its ledger.
///
/// # Errors
/// When it refuses, or its home cannot be used.
pub(super) fn ask_signer(
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
            Ok(act_on_stopped_signer(&home, ask, proof.as_ref(), parts)?)
        }
        Err(error) => Err(error.into()),
    }
}

fn describe(report: &LimitsOutput) -> String {
    let LimitsOutput { limits, spent, creator, permits, in_wallet, .. } = report;
    let creator = creator.map_or_else(|| "none".to_owned(), |it| it.to_string());
    let one = match in_wallet.filter(|have| *have < limits.per_payment) {
        Some(have) => format!("{have}, all that the wallet has (limit {})", limits.per_payment),
        None => limits.per_payment.to_string(),
    };
    let row = |name: &str, spent: MicroUsdc, limit: MicroUsdc| {
        let more = in_wallet.filter(|have| spent.plus(*have).is_ok_and(|sum| sum < limit));
        let more = more.map(|have| format!(", {have} more at most: the wallet has no more"));
        format!("{name}: {spent} of {limit} spent{}", more.unwrap_or_default())
    };
    let rows = [
        row("In an hour", spent.hour, limits.per_hour),
        row("In 24 hours", spent.day, limits.per_day),
        row("To one payee in 24 hours", spent.payee, limits.per_payee),
        row("In all", spent.ever, limits.lifetime),
    ]
    .join("\n");
    let made = spent.payments;
    let most = limits.payments_max;
    let mut text = format!(
        "One payment: at most {one}\n{rows}, {made} of {most} payments made\nYour address: {creator}"
    );
    text.extend(permits.iter().map(|line| format!("\nMay be signed: {line}")));
    if let Some(hash) = report.asked {
        text.extend(report.asked_for.iter().map(|line| format!("\nNot accepted: {line}")));
        text.push_str(&format!("\n`automaton limits accept {hash}` accepts it"));
    }
    format!("{text}\nFingerprint: {}", report.rules)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usdc(whole: u64) -> MicroUsdc {
        MicroUsdc::new(whole * 1_000_000)
    }

    fn report(in_wallet: Option<MicroUsdc>) -> String {
        let standing: SignerStatus = serde_json::from_value(json!({
            "wallet": null,
            "limits": {
                "per_payment": 25_000_000, "per_hour": 50_000_000, "per_day": 50_000_000,
                "per_payee": 50_000_000, "lifetime": 250_000_000, "payments_max": 100,
            },
            "spent": {
                "hour": 5_000_000, "day": 40_000_000, "payee": 40_000_000, "ever": 45_000_000,
                "payments": 9,
            },
            "window": 0, "creator": null, "serial": 0, "rules": B256::ZERO, "permits": [],
            "asked_for": [], "asked": null,
        }))
        .unwrap();
        describe(&LimitsOutput::new(&standing, in_wallet))
    }

    #[test]
    fn no_more_is_promised_than_the_wallet_has() {
        let text = report(Some(usdc(15)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "One payment: at most 15.00 USDC, all that the wallet has (limit 25.00 USDC)"
        );
        let more = "15.00 USDC more at most: the wallet has no more";
        assert_eq!(lines[1], format!("In an hour: 5.00 USDC of 50.00 USDC spent, {more}"));
        assert_eq!(lines[2], "In 24 hours: 40.00 USDC of 50.00 USDC spent");
        let payments = "9 of 100 payments made";
        assert_eq!(
            lines[4],
            format!("In all: 45.00 USDC of 250.00 USDC spent, {more}, {payments}")
        );
        for rich in [None, Some(usdc(1_000))] {
            assert!(!report(rich).contains("the wallet has"), "{rich:?}");
        }
    }
}
