//! An unlocked key, and what decides on its use.
//!
//! The same whether it serves from a process of its own or, in a rehearsal, from
//! a thread. It must never log what it is asked or what it answers.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard};

use alloy_primitives::Address;
use automaton_core::faults::FaultPoint;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::ExactPayload;
use serde::de::DeserializeOwned;

use crate::error::{Code, Refusal};
use crate::journal::Journal;
use crate::key::{Key, Signature};
use crate::payload::{
    Consent, Payload, PaymentIntent, Permitted, Register, Registration, SignIn, SignInMessage,
    Statement, TransactionIntent, Transfer,
};
use crate::process::{Parts, Permits};
use crate::protocol::{Lines, Reply, Request, VERSION};

/// An unlocked key and what decides on its use.
pub(crate) struct Signer {
    key: Key,
    journal: Mutex<Journal>,
    permits: Permits,
    parts: Parts,
}

impl Signer {
    pub(crate) const fn new(key: Key, journal: Journal, permits: Permits, parts: Parts) -> Self {
        Self { key, journal: Mutex::new(journal), permits, parts }
    }

    pub(crate) const fn address(&self) -> Address {
        self.key.address()
    }

    /// Says hello and answers requests until the other side hangs up.
    pub(crate) fn converse<R: DeserializeOwned>(
        &self,
        peer: &mut Lines<UnixStream>,
        answer: impl Fn(R) -> Result<Reply, Refusal>,
    ) -> io::Result<()> {
        peer.send(&Reply::Hello { version: VERSION, address: self.address() })?;
        loop {
            let reply = match peer.next() {
                Ok(None) => return Ok(()),
                Ok(Some(line)) => {
                    let request = serde_json::from_slice(&line).map_err(|error| malformed(&error));
                    request.and_then(&answer).unwrap_or_else(Reply::Refused)
                }
                Err(error) => {
                    let refusal = Refusal::new(Code::Malformed, error.to_string());
                    // silent-ok: the error that led here is what the caller must learn.
                    peer.send(&Reply::Refused(refusal)).ok();
                    return Err(error);
                }
            };
            peer.send(&reply)?;
            if matches!(reply, Reply::Paid(_) | Reply::Transacted(_)) {
                self.parts.faults.reach(FaultPoint::SignerAnswered);
            }
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    /// The ledger; a thread that panicked while it had it has closed it for good.
    pub(crate) fn journal(&self) -> Result<MutexGuard<'_, Journal>, Refusal> {
        let broken = |_| Refusal::new(Code::Ledger, "the ledger was left in the middle of a write");
        self.journal.lock().map_err(broken)
    }

    /// The reply to an agent.
    pub(crate) fn answer(&self, request: Request) -> Result<Reply, Refusal> {
        match request {
            Request::Pay(intent) => self.pay(&intent),
            Request::SignIn(asked) => self.sign_in(&asked),
            Request::Register(asked) => self.register(&asked),
            Request::RelaySend(asked) => self.state(Statement::send(&asked, self.now())?),
            Request::RelayRead { at } => {
                self.state(Statement::read(self.address(), at, self.now())?)
            }
            Request::AuditHead(asked) => {
                self.state(Statement::head(self.address(), &asked, self.now())?)
            }
            Request::AgentWallet(asked) => {
                let contracts = &self.permits.contracts;
                let consent = Consent::new(self.address(), contracts, &asked, self.now())?;
                Ok(Reply::Signed(self.sign(&Payload::AgentWallet(consent))?))
            }
            Request::Transact(asked) => self.transact(&asked),
            Request::Limits {} => {
                let standing = self.journal()?.standing(self.now())?;
                Ok(Reply::Limits(Box::new(standing)))
            }
        }
    }

    fn pay(&self, intent: &PaymentIntent) -> Result<Reply, Refusal> {
        self.parts.faults.reach(FaultPoint::SignerAsked);
        let now = self.now();
        let sign = || self.sign_transfer(self.transfer(intent, now)?);
        let payment = self.journal()?.pay(self.address(), intent, now, sign)?;
        self.parts.faults.reach(FaultPoint::SignerCounted);
        Ok(Reply::Paid(payment))
    }

    pub(crate) fn transfer(
        &self,
        intent: &PaymentIntent,
        now: Timestamp,
    ) -> Result<Transfer, Refusal> {
        Transfer::new(self.address(), &self.permits.assets, intent, now)
    }

    pub(crate) fn sign_transfer(&self, transfer: Transfer) -> Result<ExactPayload, Refusal> {
        let authorization = transfer.authorization().clone();
        let signature = self.sign(&Payload::Transfer(transfer))?;
        Ok(ExactPayload { authorization, signature: signature.into() })
    }

    fn transact(&self, asked: &TransactionIntent) -> Result<Reply, Refusal> {
        self.parts.faults.reach(FaultPoint::SignerAsked);
        let gas = &self.permits.gas;
        let permitted = Permitted::new(&self.permits.contracts, gas, &asked.call)?;
        let sign = |nonce| {
            let transaction = permitted.at(nonce);
            let signature = self.sign(&Payload::Transaction(&transaction))?;
            Ok(transaction.sealed(&signature))
        };
        let account = (self.address(), gas.per_day);
        let signed = self.journal()?.transact(account, asked, self.now(), (&permitted, sign))?;
        self.parts.faults.reach(FaultPoint::SignerCounted);
        Ok(Reply::Transacted(signed))
    }

    fn state(&self, statement: Statement) -> Result<Reply, Refusal> {
        Ok(Reply::Signed(self.sign(&Payload::Statement(statement))?))
    }

    fn sign_in(&self, asked: &SignIn) -> Result<Reply, Refusal> {
        let message =
            SignInMessage::new(self.address(), &self.permits.audiences, asked, self.now())?;
        let text = message.text();
        let signature = self.sign(&Payload::SignIn(message))?;
        Ok(Reply::SignedIn { message: text, signature })
    }

    fn register(&self, asked: &Registration) -> Result<Reply, Refusal> {
        let register = Register::new(self.address(), asked)?;
        let payload_hash = register.payload_hash();
        let signature = self.sign(&Payload::Register(register))?;
        Ok(Reply::Registered { payload_hash, signature })
    }

    fn sign(&self, payload: &Payload<'_>) -> Result<Signature, Refusal> {
        self.key.sign(payload).map_err(|error| Refusal::new(Code::Signature, error.to_string()))
    }
}

/// The refusal of a line. It never repeats the line, which may hold a passphrase.
fn malformed(error: &serde_json::Error) -> Refusal {
    let column = error.column();
    Refusal::new(Code::Malformed, format!("the line is no request: see its column {column}"))
}
