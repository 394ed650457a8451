//! The signer as a thread of another process, for simulations that kill it a thousand times.
//!
//! Decisions, ledger and protocol are those of the real signer. The process around them is
//! missing, and so is every protection of the key. It must never be given a key that is worth
//! anything.

use std::cell::RefCell;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use alloy_primitives::{Address, keccak256};
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::ExactPayload;
use automaton_sandbox::LockedBytes;

use crate::ceiling::SigningLimitsChange;
use crate::error::{SignerError, SignerRefusal};
use crate::journal::{ClockStart, SignerLedger};
use crate::key::WalletKey;
use crate::payload::PaymentIntent;
use crate::process::{SignerDeps, SigningPermits};
use crate::protocol::{LineStream, SignerRequest, SignerResponse};
use crate::rules;
use crate::signer::Signer;

/// The configuration of a rehearsal.
#[derive(Debug, Clone)]
pub struct Rehearsal {
    /// The private key, which must not be secret.
    pub key: [u8; 32],
    /// The path of the ledger, which outlives the signer.
    pub ledger: PathBuf,
    /// The permitted payloads.
    pub permits: SigningPermits,
    /// The time of the chain's last block, as in [`SignerConfig`](crate::SignerConfig).
    pub chain: Option<Timestamp>,
    /// A planted defect that the simulation should find.
    pub plant: Option<PlantedDefect>,
}

/// A defect that a simulation has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedDefect {
    /// Each payment gets a fresh nonce, and a payment that was signed before is not looked up.
    FreshNonce,
    /// The signature leaves before the payment is counted and checked against the ceilings.
    CountedLate,
}

/// A signer in rehearsal. To kill it, let an injected fault unwind.
#[derive(Clone)]
pub struct RehearsalSigner {
    signer: Arc<Signer>,
    plant: Option<PlantedDefect>,
}

/// Opens the ledger and prepares to sign.
///
/// # Errors
/// Fails if the ledger cannot be opened or the number is not a valid key.
pub fn rehearse(rehearsal: Rehearsal, parts: SignerDeps) -> Result<RehearsalSigner, SignerError> {
    let mut secret = LockedBytes::zeroed()?;
    *secret.get_mut() = rehearsal.key;
    let no_key = || SignerError::System {
        doing: "rehearse with this key".to_owned(),
        source: io::ErrorKind::InvalidInput.into(),
    };
    let key = WalletKey::new(secret).ok_or_else(no_key)?;
    let beginning = ClockStart::now(&parts, rehearsal.chain)?;
    let mut journal = SignerLedger::open(&rehearsal.ledger, Arc::clone(&parts.faults), beginning)?;
    journal.set_wallet(key.address())?;
    journal.admit(&rehearsal.ledger, &rules::permit_lines(&rehearsal.permits))?;
    let signer = Arc::new(Signer::new(key, journal, rehearsal.permits, parts));
    Ok(RehearsalSigner { signer, plant: rehearsal.plant })
}

impl RehearsalSigner {
    /// Returns the wallet's address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.signer.address()
    }

    /// Connects to the signer, as an agent does. A thread answers until the socket is closed.
    ///
    /// # Errors
    /// Fails if no socket or thread can be created.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let Self { signer, plant } = self.clone();
        let answer = move || {
            let mut agent = LineStream::new(theirs);
            let late = UncountedPayment::default();
            let answered = signer.converse(&mut agent, |request| match plant {
                None => signer.answer(request),
                Some(plant) => answer_with_defect(plant, &signer, request, &late),
            });
            // silent-ok: an agent that broke the protocol has been told so.
            answered.ok();
            count_late(&signer, &late);
        };
        thread::Builder::new().name("signer".to_owned()).spawn(answer)?;
        Ok(ours)
    }

    /// Changes the ceilings, as the creator does with the passphrase.
    ///
    /// # Errors
    /// Fails if the ledger cannot be written.
    pub fn change(&self, to: SigningLimitsChange) -> Result<(), SignerRefusal> {
        self.signer.journal()?.change(to, |_| Ok(()))
    }
}

/// A payment that a defective signer has signed and not counted yet.
type UncountedPayment = RefCell<Option<(PaymentIntent, ExactPayload)>>;

fn answer_with_defect(
    plant: PlantedDefect,
    signer: &Signer,
    request: SignerRequest,
    late: &UncountedPayment,
) -> Result<SignerResponse, SignerRefusal> {
    count_late(signer, late);
    let SignerRequest::Pay(intent) = request else { return signer.answer(request) };
    let now = signer.now();
    let transfer = signer.transfer(&intent, now)?;
    match plant {
        PlantedDefect::FreshNonce => {
            let usual = transfer.authorization().nonce;
            signer.answer(SignerRequest::Pay(intent))?;
            let nonce = keccak256([usual.as_slice(), &now.as_millis().to_be_bytes()].concat());
            Ok(SignerResponse::Paid(signer.sign_transfer(transfer.with_nonce(nonce))?))
        }
        PlantedDefect::CountedLate => {
            let payment = signer.sign_transfer(transfer)?;
            late.replace(Some((intent, payment.clone())));
            Ok(SignerResponse::Paid(payment))
        }
    }
}

/// Counts a payment after it has left, if it fits: this is the defect.
fn count_late(signer: &Signer, late: &UncountedPayment) {
    let Some((intent, payment)) = late.take() else { return };
    let counted = signer.journal().and_then(|mut journal| {
        journal.pay(signer.address(), &intent, signer.now(), || Ok(payment))
    });
    // silent-ok: the late refusal is the rehearsed defect.
    counted.ok();
}

#[cfg(test)]
mod tests {
    use automaton_core::faults::NoFaults;
    use automaton_core::money::MicroUsdc;
    use automaton_core::time::SystemClock;
    use automaton_sandbox::SystemBootClock;

    use super::*;
    use crate::client::{SignerConnection, SignerConnectionError};
    use crate::error::SignerRefusalCode;
    use crate::payload::usdc;

    fn rehearsed(ledger: PathBuf, plant: Option<PlantedDefect>) -> RehearsalSigner {
        let mut key = [0; 32];
        key[31] = 7;
        let permits = SigningPermits { assets: vec![usdc()], ..SigningPermits::default() };
        let parts = SignerDeps {
            clock: Arc::new(SystemClock),
            boot: Arc::new(SystemBootClock),
            faults: Arc::new(NoFaults),
        };
        rehearse(Rehearsal { key, ledger, permits, chain: None, plant }, parts).unwrap()
    }

    fn intent(number: u32, amount: u64) -> PaymentIntent {
        PaymentIntent {
            intent: format!("0000000000000000000000{number:04}").parse().unwrap(),
            chain_id: 8453,
            asset: usdc().contract,
            payee: Address::repeat_byte(9),
            amount: MicroUsdc::new(amount),
            deadline_s: 300,
        }
    }

    #[test]
    fn it_signs_counts_and_remembers_as_the_real_one() {
        let folder = tempfile::tempdir().unwrap();
        let signer = rehearsed(folder.path().join("ledger.db"), None);
        let mut client = SignerConnection::connect(signer.connect().unwrap()).unwrap();
        let first = client.sign_payment(&intent(1, 20_000_000)).unwrap();
        drop((client, signer));
        let signer = rehearsed(folder.path().join("ledger.db"), None);
        let mut client = SignerConnection::connect(signer.connect().unwrap()).unwrap();
        assert_eq!(client.sign_payment(&intent(1, 20_000_000)).unwrap(), first);
        client.sign_payment(&intent(2, 25_000_000)).unwrap();
        let refused = client.sign_payment(&intent(3, 5_000_001)).unwrap_err();
        assert!(
            matches!(refused, SignerConnectionError::Refused(it) if it.code == SignerRefusalCode::PerDay)
        );
    }

    #[test]
    fn a_planted_defect_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let late = rehearsed(folder.path().join("late.db"), Some(PlantedDefect::CountedLate));
        let mut client = SignerConnection::connect(late.connect().unwrap()).unwrap();
        client.sign_payment(&intent(1, 900_000_000)).unwrap();
        assert_eq!(client.limits().unwrap().spent.payments, 0);
        let fresh = rehearsed(folder.path().join("fresh.db"), Some(PlantedDefect::FreshNonce));
        let mut client = SignerConnection::connect(fresh.connect().unwrap()).unwrap();
        let signed = client.sign_payment(&intent(1, 1)).unwrap();
        let usual = crate::payload::nonce(fresh.address(), 8453, intent(1, 1).intent);
        assert_ne!(signed.authorization.nonce, usual);
        assert_eq!(client.limits().unwrap().spent.payments, 1);
    }
}
