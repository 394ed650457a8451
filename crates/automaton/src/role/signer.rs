//! The signer's process: the only one that ever holds the key.
//!
//! It is a small program beside this binary, or this binary under another name. It gets its
//! charter as one line and the passphrase from a file, a credential or the terminal, and
//! closes itself before it opens the key. Whoever starts it gets a socket, never the key. It
//! must never read the environment or a configuration, and never print what it is asked.

use std::io::{self, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use alloy_primitives::Address;
use automaton_core::time::{SystemClock, Timestamp};
use automaton_core::wire::x402::{ChainId, TokenDomain};
use automaton_sandbox::SystemBootClock;
use automaton_sandbox::process::{self, Child, OwnProgram, ProcessCommand, Stdio};
use automaton_signer::keystore::Keystore;
use automaton_signer::payload::{Audience, Contract, GasRules};
use automaton_signer::{
    PassphraseSource, SignerClients, SignerConfig, SignerDeps, SignerHome, SigningPermits, serve,
};
use serde::{Deserialize, Serialize};
use tracing::debug;

use super::agent::armed;
use super::launch_config::{self, ChildConfig};
use crate::config::network::PaymentNetwork;
use crate::error::CliError;

/// Name of the process.
pub const ARG0: &str = "automaton-signer";
/// Descriptor of the first agent's socket.
const SOCKET: RawFd = launch_config::SIGNER;

/// Configuration of a signer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SignerLaunchConfig {
    /// Its home.
    pub home: PathBuf,
    /// Place of the passphrase; `None` asks at the terminal.
    pub passphrase: Option<PassphraseLocation>,
    /// The tokens that may be paid in.
    pub tokens: Vec<TokenLaunchConfig>,
    /// Whom the automaton may sign in to: domain, URI, chain.
    pub audiences: Vec<(String, String, u64)>,
    /// The contracts that may be called.
    #[serde(default)]
    pub contracts: Vec<Contract>,
    /// Limits for the gas of contract calls.
    #[serde(default)]
    pub gas: GasRules,
    /// The time of the chain's last block, read just before.
    pub chain_time: Option<Timestamp>,
    /// A crash to rehearse, and the home made for it.
    pub fault: Option<(String, PathBuf)>,
    /// Number of agents besides the first.
    #[serde(default)]
    pub others: u8,
    /// True if it serves agents one after the other, whose sockets are passed over its own one.
    #[serde(default)]
    pub passes_fds: bool,
}

/// Place of a passphrase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum PassphraseLocation {
    /// In a file that only its owner can read.
    File(PathBuf),
    /// In a credential of systemd, whose directory keeps others out.
    Credential(PathBuf),
}

impl PassphraseLocation {
    /// The file that it is in.
    pub(crate) fn path(&self) -> &Path {
        let (Self::File(path) | Self::Credential(path)) = self;
        path
    }
}

impl From<PassphraseLocation> for PassphraseSource {
    fn from(place: PassphraseLocation) -> Self {
        match place {
            PassphraseLocation::File(path) => Self::File(path),
            PassphraseLocation::Credential(path) => Self::Credential(path),
        }
    }
}

/// A token that may be paid in, with the name and version of its EIP-712 domain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TokenLaunchConfig {
    /// The chain, by its EIP-155 id.
    pub chain_id: u64,
    /// Its contract.
    pub address: Address,
    /// The name in its domain.
    pub name: String,
    /// The version in its domain.
    pub version: String,
}

impl From<&PaymentNetwork> for TokenLaunchConfig {
    fn from(network: &PaymentNetwork) -> Self {
        Self {
            chain_id: network.chain_id.get(),
            address: network.usdc,
            name: network.token_name.clone(),
            version: network.token_version.clone(),
        }
    }
}

/// A signer that runs. It ends when its socket is closed.
#[derive(Debug)]
pub struct RunningSigner {
    /// The process.
    pub child: Child,
    /// The socket to ask it over.
    pub socket: UnixStream,
}

/// The home of the signer that belongs to a home: beside it, never in it, where
/// the agent can write.
pub(crate) fn home_of(home: &Path) -> PathBuf {
    let mut name = home.file_name().unwrap_or_default().to_owned();
    name.push("-signer");
    home.with_file_name(name)
}

/// The address of a home's wallet; none where there is no wallet, or none that can be read.
pub(crate) fn wallet_of(home: &Path) -> Option<Address> {
    // silent-ok: whoever needs the wallet opens it, and is told then.
    Keystore::read(&SignerHome::open(&home_of(home)).ok()?.keystore()).ok()?.address()
}

/// Starts a signer for one agent.
///
/// # Errors
/// When the process cannot be started.
pub(crate) fn start(
    executable: &Path,
    config: &SignerLaunchConfig,
) -> Result<RunningSigner, CliError> {
    let config = SignerLaunchConfig { others: 0, ..config.clone() };
    let (child, socket, _) = start_for(executable, &config)?;
    Ok(RunningSigner { child, socket })
}

/// Starts a signer for all agents of its charter: the socket of the first, and those
/// of the others.
///
/// # Errors
/// When the process cannot be started.
pub fn start_for(
    executable: &Path,
    config: &SignerLaunchConfig,
) -> Result<(Child, UnixStream, Vec<UnixStream>), CliError> {
    let failed = |error: io::Error| CliError::internal("cannot reach the signer", &error);
    let (mut input, child_input) = UnixStream::pair().map_err(failed)?;
    let (socket, theirs) = UnixStream::pair().map_err(failed)?;
    let program = OwnProgram::beside(executable.to_owned(), ARG0);
    let mut command = ProcessCommand::from_own_program(&program)
        .arg0(ARG0)
        .stdin(Stdio::Descriptor(OwnedFd::from(child_input)))
        .stdout(Stdio::Null)
        .stderr(Stdio::Inherit)
        .descriptor(OwnedFd::from(theirs), SOCKET);
    let mut others = Vec::new();
    for place in places(config.others) {
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        command = command.descriptor(OwnedFd::from(theirs), place);
        others.push(ours);
    }
    let child = process::spawn(command)?;
    let line = ChildConfig::line(config)
        .map_err(|error| CliError::internal("cannot write the signer's configuration", &error))?;
    input.write_all(&line).map_err(failed)?;
    Ok((child, socket, others))
}

/// Returns the descriptors of the other agents' sockets.
fn places(others: u8) -> impl Iterator<Item = RawFd> {
    (1..=RawFd::from(others)).map(|number| SOCKET + number)
}

/// Signs until whoever started it hangs up. Must be called on the main thread,
/// before any other starts.
#[must_use]
pub fn main() -> ExitCode {
    // Whoever asks is told over the socket why there is no signature.
    match sign() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit_code(),
    }
}

fn sign() -> Result<(), CliError> {
    let socket = process::take_inherited(SOCKET)?;
    let ChildConfig { diagnostics, config, .. } = launch_config::read::<SignerLaunchConfig>()?;
    diagnostics.start("signer");
    let agents = if config.passes_fds {
        SignerClients::Passed(socket)
    } else {
        let others = places(config.others).map(process::take_inherited);
        SignerClients::Here(std::iter::once(Ok(socket)).chain(others).collect::<Result<_, _>>()?)
    };
    let fault = config.fault.as_ref();
    let faults = armed(fault.map(|(text, home)| (text.as_str(), home.as_path())))?;
    let passphrase = config.passphrase.map_or(PassphraseSource::Terminal, Into::into);
    let assets = config.tokens.into_iter().map(|token| TokenDomain {
        name: token.name,
        version: token.version,
        chain: ChainId(token.chain_id),
        contract: token.address,
    });
    let audiences = config.audiences.into_iter();
    let audiences = audiences.map(|(domain, uri, chain_id)| Audience { domain, uri, chain_id });
    let config = SignerConfig {
        home: config.home,
        passphrase,
        permits: SigningPermits {
            assets: assets.collect(),
            audiences: audiences.collect(),
            contracts: config.contracts,
            gas: config.gas,
        },
        chain: config.chain_time,
    };
    let parts =
        SignerDeps { clock: Arc::new(SystemClock), boot: Arc::new(SystemBootClock), faults };
    debug!(?agents, "it is ready to open its key");
    Ok(serve(config, parts, agents)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signer_lives_beside_the_home() {
        assert_eq!(home_of(Path::new("/h/.automaton")), Path::new("/h/.automaton-signer"));
        assert_eq!(home_of(Path::new("/h/ada/")), Path::new("/h/ada-signer"));
    }
}
