//! Faults, injected at named points so that a crash can be rehearsed.
//!
//! Production runs with [`NoFaults`]. Tests and drills arm one point; the
//! process then dies, or the operation fails, exactly there. An armed fault
//! must never be accepted on a home that was not made for rehearsal.

use std::str::FromStr;

use crate::names::Names;

/// Moment at which a fault can be injected. A crash at each point leaves a different state
/// behind. Its [`name`](Self::name) is the one on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Names)]
#[names(rename_all = "kebab-case")]
pub enum FaultPoint {
    /// A message was stored as received; nobody has seen it yet.
    MessageReceived,
    /// A wake event was consumed and the session opened.
    SessionOpened,
    /// The turn was opened and its messages claimed.
    TurnOpened,
    /// The prompt is built; the model has not been asked.
    PromptBuilt,
    /// The model has answered; nothing of it is stored.
    ThoughtReceived,
    /// Thought, decisions and intended effects are stored.
    JudgementStored,
    /// A call was marked as started; it has not run.
    CallStarted,
    /// A call has run; its outcome is not stored.
    CallRan,
    /// A call's outcome is stored.
    CallFinished,
    /// The turn is committed; ingestion is owed.
    TurnCommitted,
    /// The turn's debts to memory are ingested.
    TurnIngested,
    /// The decision to sleep is stored.
    SleepStored,
    /// A heartbeat task is leased; it has not run.
    TaskLeased,
    /// A heartbeat task has run; its outcome is not stored.
    TaskRan,
    /// A published port is marked as reopening; nothing was started.
    PortReopening,
    /// The server of the port was started; the port is not open.
    PortServed,
    /// The port is open, and the outcome is stored.
    PortReopened,
    /// A payment is written down; nothing is signed.
    PaymentProposed,
    /// The signature is there; it is not stored.
    PaymentReceived,
    /// The signature is stored; nothing was sent.
    PaymentSigned,
    /// The payment is marked as sent; it was not.
    PaymentSubmitted,
    /// The cloud has answered; its answer is not stored.
    PaymentAnswered,
    /// The payment is booked as settled.
    PaymentBooked,
    /// The signer has read what it is asked to sign.
    SignerAsked,
    /// The payment is counted and signed in a transaction that is still open.
    SignerSigned,
    /// The signer's ledger has the payment; the signature has not left.
    SignerCounted,
    /// The signature has left the signer.
    SignerAnswered,
    /// The cloud has stored a payment; nothing was sent to the chain.
    SettlementBegun,
    /// The cloud has signed and stored its transaction; it was not sent.
    SettlementSubmitted,
    /// The transaction was sent; the cloud has not looked what became of it.
    SettlementBroadcast,
    /// The cloud's ledger has the credits; nobody was answered.
    SettlementBooked,
    /// The dev chain has done an act; its log does not have it.
    ChainActDone,
    /// The dev chain's log has the act; nobody was answered.
    ChainActStored,
}

impl FaultPoint {
    /// Every point of a turn in the agent, in order.
    pub const AGENT: [Self; 14] = Self::between(Self::MessageReceived, Self::TaskRan);

    /// Every point of the reopening of a published port at a start, in order.
    pub const PORT: [Self; 3] = Self::between(Self::PortReopening, Self::PortReopened);

    /// Every point of a payment in the agent, in order.
    pub const PAYMENT: [Self; 6] = Self::between(Self::PaymentProposed, Self::PaymentBooked);

    /// Every point of a payment in the signer, in order.
    pub const SIGNER: [Self; 4] = Self::between(Self::SignerAsked, Self::SignerAnswered);

    /// Every point of a payment in the cloud, in order.
    pub const CLOUD: [Self; 4] = Self::between(Self::SettlementBegun, Self::SettlementBooked);

    /// Every point in the dev chain, in the order of an act.
    pub const CHAIN: [Self; 2] = Self::between(Self::ChainActDone, Self::ChainActStored);

    /// All points from one to another. A wrong count of them does not compile.
    const fn between<const COUNT: usize>(first: Self, last: Self) -> [Self; COUNT] {
        assert!(first as usize + COUNT == last as usize + 1, "the count is not that of the points");
        let mut points = [first; COUNT];
        let mut at = 0;
        while at < COUNT {
            points[at] = Self::ALL[first as usize + at];
            at += 1;
        }
        points
    }
}

/// A name that is no fault point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no fault point")]
pub struct UnknownFaultPoint(String);

impl FromStr for FaultPoint {
    type Err = UnknownFaultPoint;

    fn from_str(text: &str) -> Result<Self, UnknownFaultPoint> {
        Self::by_name(text).ok_or_else(|| UnknownFaultPoint(text.chars().take(40).collect()))
    }
}

/// Reaction to a fault point.
pub trait Faults: Send + Sync {
    /// Called at every point. An armed implementation may end the process here.
    fn reach(&self, point: FaultPoint);
}

/// No faults: what production runs with.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFaults;

impl Faults for NoFaults {
    fn reach(&self, _point: FaultPoint) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_survives_its_name() {
        for point in FaultPoint::ALL {
            assert_eq!(point.name().parse(), Ok(point));
        }
    }
}
