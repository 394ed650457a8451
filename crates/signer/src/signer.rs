//! An unlocked key, and the rules and ledger that decide on its use.
//!
//! It is the same in the signing process and in a rehearsal's thread. It must never log a request
//! or a reply.

use std::io::{self, Read, Write};
use std::sync::{Mutex, MutexGuard};

use alloy_primitives::Address;
use automaton_core::faults::FaultPoint;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::ExactPayload;
use serde::de::DeserializeOwned;

use crate::error::{SignerRefusal, SignerRefusalCode};
use crate::journal::SignerLedger;
use crate::key::{Signature, WalletKey};
use crate::payload::{
    Consent, HashedRegistration, Payload, PaymentIntent, PermittedTransaction, RegistrationFields,
    SignInFields, SignInMessage, Statement, TransactionIntent, ValidatedTransfer,
};
use crate::process::{SignerDeps, SigningPermits};
use crate::protocol::{LineStream, SignerRequest, SignerResponse, VERSION};

/// An unlocked key, and the rules and ledger that decide on its use.
pub(crate) struct Signer {
    key: WalletKey,
    journal: Mutex<SignerLedger>,
    permits: SigningPermits,
    parts: SignerDeps,
}

impl Signer {
    pub(crate) const fn new(
        key: WalletKey,
        journal: SignerLedger,
        permits: SigningPermits,
        parts: SignerDeps,
    ) -> Self {
        Self { key, journal: Mutex::new(journal), permits, parts }
    }

    pub(crate) const fn address(&self) -> Address {
        self.key.address()
    }

    /// Says hello and answers requests until the other side hangs up.
    pub(crate) fn converse<R: DeserializeOwned>(
        &self,
        peer: &mut LineStream<impl Read + Write>,
        answer: impl Fn(R) -> Result<SignerResponse, SignerRefusal>,
    ) -> io::Result<()> {
        peer.send(&SignerResponse::Hello { version: VERSION, address: self.address() })?;
        loop {
            let reply = match peer.next_line() {
                Ok(None) => return Ok(()),
                Ok(Some(line)) => {
                    let request = serde_json::from_slice(&line).map_err(|error| malformed(&error));
                    request.and_then(&answer).unwrap_or_else(SignerResponse::Refused)
                }
                Err(error) => {
                    let refusal =
                        SignerRefusal::new(SignerRefusalCode::Malformed, error.to_string());
                    // silent-ok: the caller gets the original error.
                    peer.send(&SignerResponse::Refused(refusal)).ok();
                    return Err(error);
                }
            };
            peer.send(&reply)?;
            if matches!(reply, SignerResponse::Paid(_) | SignerResponse::Transacted(_)) {
                self.parts.faults.reach(FaultPoint::SignerAnswered);
            }
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    /// Locks the ledger. If a thread panicked while it held the lock, this fails for good.
    pub(crate) fn journal(&self) -> Result<MutexGuard<'_, SignerLedger>, SignerRefusal> {
        let broken = |_| {
            SignerRefusal::new(
                SignerRefusalCode::Ledger,
                "the ledger was left in the middle of a write",
            )
        };
        self.journal.lock().map_err(broken)
    }

    /// Returns the reply to an agent's request.
    pub(crate) fn answer(&self, request: SignerRequest) -> Result<SignerResponse, SignerRefusal> {
        match request {
            SignerRequest::Pay(intent) => self.pay(&intent),
            SignerRequest::SignIn(asked) => self.sign_in(&asked),
            SignerRequest::Register(asked) => self.register(&asked),
            SignerRequest::RelaySend(asked) => {
                self.sign_statement(Statement::send(&asked, self.now())?)
            }
            SignerRequest::RelayRead { at } => {
                self.sign_statement(Statement::read(self.address(), at, self.now())?)
            }
            SignerRequest::AuditHead(asked) => {
                self.sign_statement(Statement::head(self.address(), &asked, self.now())?)
            }
            SignerRequest::AgentWallet(asked) => {
                let contracts = &self.permits.contracts;
                let consent = Consent::new(self.address(), contracts, &asked, self.now())?;
                Ok(SignerResponse::Signed(self.sign(&Payload::AgentWallet(consent))?))
            }
            SignerRequest::Transact(asked) => self.transact(&asked),
            SignerRequest::Limits {} => {
                let standing = self.journal()?.status(self.now())?;
                Ok(SignerResponse::Limits(Box::new(standing)))
            }
        }
    }

    fn pay(&self, intent: &PaymentIntent) -> Result<SignerResponse, SignerRefusal> {
        self.parts.faults.reach(FaultPoint::SignerAsked);
        let now = self.now();
        let sign = || self.sign_transfer(self.transfer(intent, now)?);
        let payment = self.journal()?.pay(self.address(), intent, now, sign)?;
        self.parts.faults.reach(FaultPoint::SignerCounted);
        Ok(SignerResponse::Paid(payment))
    }

    pub(crate) fn transfer(
        &self,
        intent: &PaymentIntent,
        now: Timestamp,
    ) -> Result<ValidatedTransfer, SignerRefusal> {
        ValidatedTransfer::new(self.address(), &self.permits.assets, intent, now)
    }

    pub(crate) fn sign_transfer(
        &self,
        transfer: ValidatedTransfer,
    ) -> Result<ExactPayload, SignerRefusal> {
        let authorization = transfer.authorization().clone();
        let signature = self.sign(&Payload::Transfer(transfer))?;
        Ok(ExactPayload { authorization, signature: signature.into() })
    }

    fn transact(&self, asked: &TransactionIntent) -> Result<SignerResponse, SignerRefusal> {
        self.parts.faults.reach(FaultPoint::SignerAsked);
        let gas = &self.permits.gas;
        let permitted = PermittedTransaction::new(&self.permits.contracts, gas, &asked.call)?;
        let sign = |nonce| {
            let transaction = permitted.with_nonce(nonce);
            let signature = self.sign(&Payload::Transaction(&transaction))?;
            Ok(transaction.with_signature(&signature))
        };
        let payer = self.address();
        let now = self.now();
        let signed = self.journal()?.transact(payer, gas.per_day, asked, now, &permitted, sign)?;
        self.parts.faults.reach(FaultPoint::SignerCounted);
        Ok(SignerResponse::Transacted(signed))
    }

    fn sign_statement(&self, statement: Statement) -> Result<SignerResponse, SignerRefusal> {
        Ok(SignerResponse::Signed(self.sign(&Payload::Statement(statement))?))
    }

    fn sign_in(&self, asked: &SignInFields) -> Result<SignerResponse, SignerRefusal> {
        let message =
            SignInMessage::new(self.address(), &self.permits.audiences, asked, self.now())?;
        let text = message.text();
        let signature = self.sign(&Payload::SignIn(message))?;
        Ok(SignerResponse::SignedIn { message: text, signature })
    }

    fn register(&self, asked: &RegistrationFields) -> Result<SignerResponse, SignerRefusal> {
        let register = HashedRegistration::new(self.address(), asked)?;
        let payload_hash = register.payload_hash();
        let signature = self.sign(&Payload::Register(register))?;
        Ok(SignerResponse::Registered { payload_hash, signature })
    }

    fn sign(&self, payload: &Payload<'_>) -> Result<Signature, SignerRefusal> {
        self.key
            .sign(payload)
            .map_err(|error| SignerRefusal::new(SignerRefusalCode::Signature, error.to_string()))
    }
}

/// Returns the refusal of a malformed line. It never repeats the line, which may contain a
/// passphrase.
fn malformed(error: &serde_json::Error) -> SignerRefusal {
    let column = error.column();
    SignerRefusal::new(
        SignerRefusalCode::Malformed,
        format!("the line is no request: see its column {column}"),
    )
}
