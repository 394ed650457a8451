//! `export-key`: the wallet's key in the clear, for its creator.
//!
//! The one way by which the key leaves, in a process that lives no longer than
//! this takes. It must never reach a log, an event, or a screen that nobody
//! asked to show it.

use std::io::{self, IsTerminal};

use automaton_sandbox::harden;
use clap::Args;
use serde_json::json;

use super::CommandContext;
use super::passphrase::PassphraseArgs;
use super::wallet::keystore_of;
use crate::error::CliError;
use crate::role::signer::home_of;
use crate::ui::say;

/// Arguments of `export-key`.
#[derive(Debug, Args)]
pub(crate) struct ExportKeyArgs {
    /// Print it even to a terminal, where it stays on the screen
    #[arg(long)]
    show: bool,
    /// The passphrase.
    #[command(flatten)]
    passphrase: PassphraseArgs,
}

/// Prints the key.
pub(crate) fn run(context: &CommandContext, args: &ExportKeyArgs) -> Result<(), CliError> {
    harden()?;
    let home = context.home()?;
    let keystore = keystore_of(&home)?;
    if io::stdout().is_terminal() && !args.show {
        let what = "the key would stay on the screen, and is not shown";
        let hint =
            "give it to a program or a file of your own: `umask 077` and `> FILE`; or add --show";
        return Err(CliError::user(what).hint(hint));
    }
    let key = keystore.unlock(&args.passphrase.read(context, &home_of(&home))?)?;
    say("warning: whoever has this key can take all the money; no limit stops them");
    let digits = format!("0x{}", key.export().reveal());
    let answer = json!({ "address": key.address(), "private_key": digits });
    context.format.answer(&answer, || digits)
}
