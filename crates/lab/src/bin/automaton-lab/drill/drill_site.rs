//! A signer of its own, with ceilings of its own, in a place that goes away with it.
//!
//! The process is the real one. Its key is new and worth nothing, and nothing of the
//! user's is read or written; it must never be given a home that somebody uses.

use std::path::PathBuf;
use std::sync::Arc;

use alloy_primitives::Address;
use automaton::cmd::{CommandContext, id_generator};
use automaton::error::CliError;
use automaton::home::{Scratch, write_atomically};
use automaton::role::signer::{
    PassphraseLocation, SignerLaunchConfig, TokenLaunchConfig, start_for,
};
use automaton::stack::token;
use automaton_core::entropy::{Entropy, SystemEntropy};
use automaton_core::faults::NoFaults;
use automaton_core::money::MicroUsdc;
use automaton_core::secret::Secret;
use automaton_core::time::SystemClock;
use automaton_core::wire::x402::ExactPayload;
use automaton_sandbox::SystemBootClock;
use automaton_sandbox::process::Child;
use automaton_script::fault::mark_home;
use automaton_signer::payload::PaymentIntent;
use automaton_signer::{
    CreatorAction, CreatorProof, SignerConnection, SignerConnectionError, SignerDeps, SignerHome,
    SigningLimitsChange, act_on_stopped_signer, keystore,
};

use crate::product;

/// A token that is listed besides the dollar of the dev chain.
pub(crate) const SECOND: Address = Address::repeat_byte(0x22);
/// Recipient of the payments.
pub(crate) const PAYEE: Address = Address::repeat_byte(0x70);
/// For how long a payment may be cashed, in seconds.
const DEADLINE_S: u32 = 300;

/// The place.
pub(crate) struct DrillSite {
    scratch: Scratch,
    executable: PathBuf,
}

/// A signer that runs, with those that may ask it. It ends when they are gone.
pub(crate) struct SignerProcess {
    child: Child,
    pub(crate) clients: Vec<SignerConnection>,
}

impl DrillSite {
    /// A new wallet whose ceilings are all at this amount.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn new(context: &CommandContext, ceiling: MicroUsdc) -> Result<Self, CliError> {
        let scratch = context.scratch()?;
        let yard = Self { scratch, executable: product()? };
        mark_home(&yard.scratch.home())?;
        let home = SignerHome::make(&yard.signer())?;
        let mut drawn = [0; 32];
        SystemEntropy.fill(&mut drawn);
        let words = Secret::new(hex::encode(drawn));
        write_atomically(&yard.passphrase(), words.reveal().as_bytes(), 0o600)?;
        keystore::create_with_random_passphrase(&home.keystore(), &words, &SystemEntropy)?;
        let all = Some(ceiling);
        let to = SigningLimitsChange {
            per_payment: all,
            per_hour: all,
            per_day: all,
            per_payee: all,
            lifetime: None,
            payments_max: Some(u64::from(u32::MAX)),
        };
        let parts = SignerDeps {
            clock: Arc::new(SystemClock),
            boot: Arc::new(SystemBootClock),
            faults: Arc::new(NoFaults),
        };
        act_on_stopped_signer(
            &home,
            &CreatorAction::Set(to),
            Some(&CreatorProof::Passphrase(words)),
            parts,
        )?;
        Ok(yard)
    }

    fn signer(&self) -> PathBuf {
        self.scratch.home().with_file_name("signer")
    }

    fn passphrase(&self) -> PathBuf {
        self.signer().join("passphrase")
    }

    /// Starts the signer for so many clients, with a fault where one is named.
    ///
    /// # Errors
    /// When it cannot be started or unlocked.
    pub(crate) fn start(
        &self,
        clients: u8,
        fault: Option<&str>,
    ) -> Result<SignerProcess, CliError> {
        let second = TokenLaunchConfig { address: SECOND, ..token() };
        let config = SignerLaunchConfig {
            home: self.signer(),
            passphrase: Some(PassphraseLocation::File(self.passphrase())),
            tokens: vec![token(), second],
            fault: fault.map(|fault| (fault.to_owned(), self.scratch.home())),
            others: clients.saturating_sub(1),
            ..SignerLaunchConfig::default()
        };
        let (child, first, others) = start_for(&self.executable, &config)?;
        let sockets = std::iter::once(first).chain(others);
        let clients = sockets.map(SignerConnection::connect).collect::<Result<_, _>>()?;
        Ok(SignerProcess { child, clients })
    }
}

impl SignerProcess {
    /// The id of the process.
    pub(crate) fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Hangs up, and waits for the process to end.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub(crate) fn end(mut self) -> Result<(), CliError> {
        self.clients.clear();
        self.child
            .wait()
            .map(drop)
            .map_err(|error| CliError::internal("cannot wait for the signer of a drill", &error))
    }
}

/// Asks for a signature over so much of a token; what was signed, if anything was.
///
/// # Errors
/// When the signer says neither yes nor no.
pub(crate) fn ask(
    client: &mut SignerConnection,
    asset: Address,
    amount: MicroUsdc,
) -> Result<Option<ExactPayload>, CliError> {
    let intent = id_generator().id();
    let chain_id = automaton_devnet::CHAIN_ID;
    let deadline_s = DEADLINE_S;
    let asked = PaymentIntent { intent, chain_id, asset, payee: PAYEE, amount, deadline_s };
    match client.sign_payment(&asked) {
        Ok(signed) => Ok(Some(signed)),
        Err(SignerConnectionError::Refused(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
