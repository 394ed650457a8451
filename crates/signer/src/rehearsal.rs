//! The signer in the process of somebody else, for rehearsals: simulations that
//! kill it a thousand times.
//!
//! Its decisions, its ledger and its protocol are those of the real one; what is
//! missing is the process around it, and so is every protection of the key. It
//! must never be given a key that is worth anything.

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

/// What a rehearsal is made of.
#[derive(Debug, Clone)]
pub struct Rehearsal {
    /// A private key that everybody may know.
    pub key: [u8; 32],
    /// The file of its ledger, which outlives it.
    pub ledger: PathBuf,
    /// What it may sign.
    pub permits: SigningPermits,
    /// The time of the chain's last block, as the real one's charter tells it.
    pub chain: Option<Timestamp>,
    /// A defect that is put in, to see whether it is found.
    pub plant: Option<PlantedDefect>,
}

/// A defect that a simulation has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedDefect {
    /// The nonce of a payment is another one each time, and what was signed
    /// before is not looked up.
    FreshNonce,
    /// The signature leaves before it is counted, and so before the ceilings are
    /// asked.
    CountedLate,
}

/// A signer that is rehearsed. To kill it, let a fault of its parts unwind.
#[derive(Clone)]
pub struct RehearsalSigner {
    signer: Arc<Signer>,
    plant: Option<PlantedDefect>,
}

/// Opens the ledger, and is ready to sign.
///
/// # Errors
/// When the ledger cannot be opened, or the number is no key.
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
    journal.name_wallet(key.address())?;
    journal.admit(&rehearsal.ledger, &rules::lines(&rehearsal.permits))?;
    let signer = Arc::new(Signer::new(key, journal, rehearsal.permits, parts));
    Ok(RehearsalSigner { signer, plant: rehearsal.plant })
}

impl RehearsalSigner {
    /// The wallet's address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.signer.address()
    }

    /// A socket to it, as its agent has one. A thread answers until it is closed.
    ///
    /// # Errors
    /// When the system gives neither socket nor thread.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let Self { signer, plant } = self.clone();
        let answer = move || {
            let mut agent = LineStream::new(theirs);
            let late = UncountedPayment::default();
            let answered = signer.converse(&mut agent, |request| match plant {
                None => signer.answer(request),
                Some(plant) => planted(plant, &signer, request, &late),
            });
            // silent-ok: an agent that broke the protocol has been told so.
            answered.ok();
            count(&signer, &late);
        };
        thread::Builder::new().name("signer".to_owned()).spawn(answer)?;
        Ok(ours)
    }

    /// Changes the ceilings, as the creator does with the passphrase.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn change(&self, to: SigningLimitsChange) -> Result<(), SignerRefusal> {
        self.signer.journal()?.change(to, |_| Ok(()))
    }
}

/// What was signed and is not counted yet, by a signer with a defect.
type UncountedPayment = RefCell<Option<(PaymentIntent, ExactPayload)>>;

fn planted(
    plant: PlantedDefect,
    signer: &Signer,
    request: SignerRequest,
    late: &UncountedPayment,
) -> Result<SignerResponse, SignerRefusal> {
    count(signer, late);
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

/// Counts what has left, as far as it fits: the defect.
fn count(signer: &Signer, late: &UncountedPayment) {
    let Some((intent, payment)) = late.take() else { return };
    let counted = signer.journal().and_then(|mut journal| {
        journal.pay(signer.address(), &intent, signer.now(), || Ok(payment))
    });
    // silent-ok: that a refusal comes too late is what is rehearsed.
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
