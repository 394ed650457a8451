//! Messages between a supervisor and its children.
//!
//! A charter is one line of JSON on the child's standard input: no argument
//! and no variable of the environment, since others could read those, and it
//! may hold the key to a model. The child's standard output holds one `ChildMessage`
//! of JSON a line.

use automaton_core::model::ModelId;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use automaton_core::error::ErrorClass;
use automaton_core::event::StampedEvent;
use automaton_net::PrivateAuthorities;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::signer::TokenLaunchConfig;
use crate::config::egress::EgressLaunchConfig;
use crate::config::resolve::{FallbackModels, ResolvedConfig};
use crate::diagnostics::Diagnostics;
use crate::error::CliError;

/// The name by which the agent's process is called.
pub const ARG0: &str = "automaton-agent";

/// The descriptor of the lifeline to the supervisor.
pub(crate) const LIFELINE: i32 = 3;

/// The descriptor of the socket between the agent and its signer, on both sides.
pub(crate) const SIGNER: i32 = 4;

/// The longest line of either side, in bytes. A thought may be long, and its
/// characters may each take six bytes as JSON.
pub(crate) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Everything an agent is told at its start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LaunchConfig {
    /// The configuration as it holds.
    pub(crate) resolved: ResolvedConfig,
    /// Hosts that commands may reach, with the credentials for them.
    pub(crate) egress: EgressLaunchConfig,
    /// The operator's rules, as the file had them at the start.
    pub(crate) operator: Option<String>,
    /// Our own executable, beside which the sandbox's helper lies.
    pub(crate) executable: PathBuf,
    /// End by itself after so many committed turns, and wait a moment of each
    /// sleep only.
    pub(crate) turns_max: Option<u32>,
    /// A first message of the creator, stored once.
    pub(crate) ask: Option<InitialMessage>,
    /// A crash to rehearse, `POINT[:N]`.
    pub(crate) fault: Option<String>,
    /// Cloud and chain; without them thinking costs nothing.
    pub(crate) money: Option<MoneyLaunchConfig>,
}

/// The cloud and the chain that an agent lives from. Its signer is at the other
/// end of [`SIGNER`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MoneyLaunchConfig {
    /// The cloud's URL.
    pub(crate) cloud: String,
    /// The model that it is asked for.
    pub(crate) model: ModelId,
    /// Those that it is asked for when credits run low.
    pub(crate) cheaper: FallbackModels,
    /// A node of the chain.
    pub(crate) rpc: String,
    /// The token that is paid in.
    pub(crate) token: TokenLaunchConfig,
    /// Blocks that must follow a block before it counts as final.
    pub(crate) confirmations: u64,
    /// The chain that sign-ins name.
    pub(crate) sign_in_chain: u64,
}

/// A message that is stored at the start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InitialMessage {
    /// The message.
    pub(crate) text: String,
    /// The same key is stored once, however often the agent is started again.
    pub(crate) key: String,
}

/// One line of a child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChildMessage {
    /// It cannot go on, and ends.
    Fatal {
        /// Party that has to act.
        kind: ErrorClass,
        /// The sentence and its causes.
        error: String,
        /// The remedy.
        remedy: Option<String>,
    },
    /// Something happened.
    Event(StampedEvent),
    /// It serves others, here.
    Ready {
        /// Its URL.
        url: String,
    },
}

/// Configuration of a child, with its diagnostics.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildConfig<T> {
    /// As its parent speaks.
    pub(crate) diagnostics: Diagnostics,
    /// Whom its parent believes beside public authorities.
    pub(crate) authorities: PrivateAuthorities,
    /// Everything else.
    pub(crate) config: T,
}

impl<T: Serialize> ChildConfig<T> {
    /// The line that a child reads.
    ///
    /// # Errors
    /// When the charter has no JSON form.
    pub(crate) fn line(config: T) -> Result<Vec<u8>, serde_json::Error> {
        let diagnostics = Diagnostics::spoken();
        let authorities = PrivateAuthorities::installed();
        let told = Self { diagnostics, authorities, config };
        let mut line = serde_json::to_vec(&told)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// Reads the charter from the standard input.
///
/// # Errors
/// When it is none.
pub(crate) fn read<T: DeserializeOwned>() -> Result<ChildConfig<T>, CliError> {
    let bad = |error: &(dyn std::error::Error + 'static)| {
        CliError::internal("the supervisor gave no configuration", error)
    };
    let mut line = String::new();
    let input = io::stdin().lock().take(LINE_BYTES_MAX as u64);
    BufReader::new(input).read_line(&mut line).map_err(|error| bad(&error))?;
    serde_json::from_str(&line).map_err(|error| bad(&error))
}

/// Tells the supervisor something.
pub(crate) fn send_message(line: &ChildMessage) {
    // silent-ok: events and failures are plain data, which always has a JSON form.
    let Ok(mut text) = serde_json::to_vec(line) else { return };
    text.push(b'\n');
    // The lock keeps the lines of concurrent tasks whole.
    let mut out = io::stdout().lock();
    // silent-ok: the supervisor is gone, and the lifeline ends this process.
    out.write_all(&text).and_then(|()| out.flush()).ok();
}

/// The end of a child: what it failed with is its last line.
pub(crate) fn ended(outcome: Result<(), CliError>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    let kind = failure.kind;
    let remedy = failure.remedy.clone();
    send_message(&ChildMessage::Fatal { kind, error: failure.line(), remedy });
    failure.exit_code()
}
