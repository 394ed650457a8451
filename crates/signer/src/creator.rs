//! The creator's commands to the signer: show and change the rules.
//!
//! They go over a socket of their own while a signer runs, and directly to the ledger while none
//! runs. Showing rules and lowering ceilings need no proof. Giving the automaton more needs the
//! passphrase or a message signed by the creator's address. Each wrong passphrase in a row makes
//! the next wait longer. The key itself must never leave this way: `automaton export-key` opens
//! the keystore.

use std::fmt::Write as _;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread;
use std::time::Duration;

use alloy_primitives::Address;
use automaton_core::secret::Secret;
use automaton_core::window::BootClock;
use automaton_sandbox::process::lock;

use crate::ceiling::{SignerStatus, SigningLimitsChange};
use crate::client::{SignerConnectionError, greet, unexpected};
use crate::error::{SignerError, SignerRefusal, SignerRefusalCode};
use crate::home::SignerHome;
use crate::journal::{ClockStart, SignerLedger};
use crate::keystore::{Keystore, KeystoreError};
use crate::process::SignerDeps;
use crate::protocol::{CreatorAction, CreatorProof, CreatorRequest, LineStream, SignerResponse};
use crate::seats::{Seat, Seats};
use crate::signer::Signer;

/// The longest wait after wrong passphrases.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The pause after a failed `accept`, for example when no descriptor is free.
const REST: Duration = Duration::from_millis(200);

/// A connection of the creator's command to a running signer.
pub struct CreatorConnection(LineStream<UnixStream>);

impl CreatorConnection {
    /// Connects to the running signer of this home.
    ///
    /// # Errors
    /// Returns `Gone` if no signer runs.
    pub fn connect(home: &SignerHome) -> Result<Self, SignerConnectionError> {
        let (lines, _) = greet(UnixStream::connect(home.creator_socket())?)?;
        Ok(Self(lines))
    }

    /// Performs an action and returns the status after it.
    ///
    /// # Errors
    /// Returns `Refused` with [`SignerRefusalCode::Authority`] if the action needs a proof, and
    /// another refusal if the proof is wrong. After wrong proofs the reply takes up to a minute.
    pub fn ask(
        &mut self,
        ask: &CreatorAction,
        proof: Option<CreatorProof>,
    ) -> Result<SignerStatus, SignerConnectionError> {
        self.0.send(&CreatorRequest { proof, ask: *ask })?;
        match self.0.receive()? {
            SignerResponse::Limits(standing) => Ok(*standing),
            other => Err(unexpected(other)),
        }
    }
}

/// Performs an action in the ledger while no signer runs, under the signer's lock. The key stays
/// encrypted.
///
/// # Errors
/// As [`CreatorConnection::ask`]. Also fails if a signer runs or its home cannot be used.
pub fn act_on_stopped_signer(
    home: &SignerHome,
    ask: &CreatorAction,
    proof: Option<&CreatorProof>,
    parts: SignerDeps,
) -> Result<SignerStatus, SignerError> {
    let _guard = lock(&home.lock())?;
    let keystore = Keystore::read(&home.keystore())?;
    let wall = parts.clock.now();
    let beginning = ClockStart::now(&parts, None)?;
    if let Some(CreatorProof::Passphrase(words)) = proof {
        keystore.check(words)?;
    }
    let mut journal = SignerLedger::open(&home.ledger(), parts.faults, beginning)?;
    if let Some(wallet) = keystore.address() {
        journal.set_wallet(wallet)?;
    }
    apply_action(&mut journal, ask, proof)?;
    Ok(journal.status(wall)?)
}

/// Counts the ceilings of an hour and a day as used up, after a ledger was restored from a
/// backup.
///
/// Such a ledger does not know the payments signed since the backup. Returns false and changes
/// nothing if there is no ledger, or if every permit is for `chain`, which was restored with the
/// ledger.
///
/// # Errors
/// Fails if a signer runs or its ledger cannot be written.
pub fn mark_ceilings_used(
    home: &SignerHome,
    chain: Option<u64>,
    parts: SignerDeps,
) -> Result<bool, SignerError> {
    if !home.ledger().exists() {
        return Ok(false);
    }
    let _guard = lock(&home.lock())?;
    let wall = parts.clock.now();
    let beginning = ClockStart::now(&parts, None)?;
    let mut journal = SignerLedger::open(&home.ledger(), parts.faults, beginning)?;
    if chain.is_some_and(|chain| journal.permits_only_chain(chain)) {
        return Ok(false);
    }
    journal.mark_ceilings_used(wall)?;
    Ok(true)
}

/// Returns the text that the creator's address signs (EIP-191, `personal_sign`) to change a
/// wallet's ceilings without the passphrase. It is valid once, for the serial in the signer's
/// status.
#[must_use]
pub fn message(wallet: Address, serial: u64, to: &SigningLimitsChange) -> String {
    let mut text =
        format!("Set the ceilings of an automaton's wallet.\n\nWallet: {wallet}\nSerial: {serial}");
    for (name, amount) in [
        ("Per payment", to.per_payment),
        ("Per hour", to.per_hour),
        ("Per day", to.per_day),
        ("Per payee and day", to.per_payee),
        ("Lifetime", to.lifetime),
    ] {
        if let Some(amount) = amount {
            // silent-ok: a string takes all that is written to it.
            write!(text, "\n{name}: {amount}").ok();
        }
    }
    if let Some(count) = to.payments_max {
        // silent-ok: as above.
        write!(text, "\nPayments: {count}").ok();
    }
    text
}

/// Performs an action if the proof permits it. The caller has checked the passphrase of the
/// proof.
fn apply_action(
    journal: &mut SignerLedger,
    ask: &CreatorAction,
    proof: Option<&CreatorProof>,
) -> Result<(), SignerRefusal> {
    let passphrase = matches!(proof, Some(CreatorProof::Passphrase(_)));
    let with_passphrase = |what: &str| {
        let reason = format!("{what} needs the passphrase");
        if passphrase {
            Ok(())
        } else {
            Err(SignerRefusal::new(SignerRefusalCode::Authority, reason))
        }
    };
    match ask {
        CreatorAction::Show {} => Ok(()),
        CreatorAction::Creator(address) => {
            with_passphrase("to name the creator")?;
            journal.set_creator(*address)
        }
        CreatorAction::Accept(hash) => {
            with_passphrase("to accept rules")?;
            journal.accept(*hash)
        }
        CreatorAction::Set(to) => {
            let message = journal.message(to)?;
            journal.change(*to, |now| match proof {
                _ if !to.raises(now) => Ok(()),
                Some(CreatorProof::Passphrase(_)) => Ok(()),
                Some(CreatorProof::Signature(signature)) => check(message, signature),
                None => {
                    let reason = "to raise a ceiling needs the passphrase, or a message signed \
                                  by the creator's address";
                    Err(SignerRefusal::new(SignerRefusalCode::Authority, reason))
                }
            })
        }
    }
}

/// Checks that the creator signed the text that is valid now.
fn check(message: Option<(Address, String)>, signature: &[u8]) -> Result<(), SignerRefusal> {
    let refused = |reason: String| Err(SignerRefusal::new(SignerRefusalCode::Authority, reason));
    let Some((creator, text)) = message else {
        let reason = "signature: no creator's address is known here, or the wallet was never \
                      unlocked";
        return refused(reason.to_owned());
    };
    match signer_of(&text, signature) {
        Some(by) if by == creator => Ok(()),
        Some(by) => refused(format!(
            "signature: {by} made it, or it is for another text; the creator is {creator}. \
             `automaton limits message` shows the text that is good now"
        )),
        None => refused("signature: it is none".to_owned()),
    }
}

/// Returns the address that signed a text (EIP-191), or `None` if the signature is malformed.
#[must_use]
pub fn signer_of(text: &str, signature: &[u8]) -> Option<Address> {
    // silent-ok: a malformed signature has no signer.
    let signed = alloy_primitives::Signature::from_raw(signature).ok()?;
    // silent-ok: as above.
    signed.recover_address_from_msg(text).ok()
}

/// Serves the creator's connections. Its threads share it.
pub(crate) struct CreatorDesk {
    keystore: Keystore,
    signer: Arc<Signer>,
    seats: Seats,
    /// Wrong passphrases in a row. The lock is held while one is tried. A process that can kill
    /// the signer to reset this count can also try passphrases on the keystore file, where scrypt
    /// slows it down.
    wrong_in_a_row: Mutex<u32>,
}

impl CreatorDesk {
    pub(crate) fn new(keystore: Keystore, signer: Arc<Signer>, boot: Arc<dyn BootClock>) -> Self {
        let seats = Seats::new(boot);
        let wrong_in_a_row = Mutex::default();
        Self { keystore, signer, seats, wrong_in_a_row }
    }

    /// Serves connections one after the other until the process ends. Several threads run this.
    pub(crate) fn serve(&self, listener: &UnixListener) {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => {
                    let seat = self.seats.seat(stream);
                    // silent-ok: the command has gone away, so nobody reads the error.
                    drop(self.converse(&seat));
                }
                Err(_) => thread::sleep(REST),
            }
        }
    }

    fn converse(&self, seat: &Seat<'_>) -> io::Result<()> {
        self.signer.converse(&mut LineStream::new(seat.stream()), |request: CreatorRequest| {
            let late = || SignerRefusal::new(SignerRefusalCode::Malformed, "it came too late");
            seat.work(|| self.answer(&request)).unwrap_or_else(|| Err(late()))
        })
    }

    fn answer(&self, request: &CreatorRequest) -> Result<SignerResponse, SignerRefusal> {
        let CreatorRequest { ask, proof } = request;
        // Before locking the ledger: deriving a key takes long, and the agent may want to pay
        // meanwhile.
        if let Some(CreatorProof::Passphrase(words)) = proof {
            self.try_passphrase(words)?;
        }
        let mut journal = self.signer.journal()?;
        apply_action(&mut journal, ask, proof.as_ref())?;
        let standing = journal.status(self.signer.now())?;
        Ok(SignerResponse::Limits(Box::new(standing)))
    }

    /// Checks a passphrase. Only one is tried at a time, so that parallel attempts cannot avoid
    /// the wait.
    fn try_passphrase(&self, words: &Secret) -> Result<(), SignerRefusal> {
        let mut wrong = match self.wrong_in_a_row.try_lock() {
            Ok(wrong) => wrong,
            Err(TryLockError::Poisoned(broken)) => broken.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let reason = "another passphrase is being tried here; ask again in a moment";
                return Err(SignerRefusal::new(SignerRefusalCode::Passphrase, reason));
            }
        };
        thread::sleep(wait_after(*wrong));
        let checked = self.keystore.check(words).map_err(|error| refusal(&error));
        *wrong = if checked.is_ok() { 0 } else { wrong.saturating_add(1) };
        checked
    }
}

fn refusal(error: &KeystoreError) -> SignerRefusal {
    match error {
        KeystoreError::WrongPassphrase { .. } => {
            SignerRefusal::new(SignerRefusalCode::Passphrase, "the passphrase is wrong")
        }
        other => SignerRefusal::new(SignerRefusalCode::Passphrase, other.to_string()),
    }
}

/// Returns the wait after `wrong` wrong passphrases: none, then one second, doubled for each
/// further one.
fn wait_after(wrong: u32) -> Duration {
    let Some(doublings) = wrong.checked_sub(1) else { return Duration::ZERO };
    let seconds = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    Duration::from_secs(seconds).min(WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrong_passphrase_doubles_the_wait_up_to_a_minute() {
        let waits: Vec<u64> = (0..9).map(|wrong| wait_after(wrong).as_secs()).collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(wait_after(64), WAIT_MAX);
        assert_eq!(wait_after(u32::MAX), WAIT_MAX);
    }
}
