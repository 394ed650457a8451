//! Pure: the moments of a payment at which a crash can be rehearsed.
//!
//! Production runs with [`NoMoments`]; a drill ends the process at one moment.

/// A moment at which a crash leaves something different behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The request is read; nothing has happened.
    Asked,
    /// The payment is counted and signed in a transaction that is still open.
    Signed,
    /// The transaction is on the disk; the signature has not left.
    Counted,
    /// The signature has left.
    Answered,
}

impl Moment {
    /// Every moment, in order.
    pub const ALL: [Self; 4] = [Self::Asked, Self::Signed, Self::Counted, Self::Answered];
}

/// What happens when a payment reaches a moment.
pub trait Moments: Send + Sync {
    /// Called at every moment. An armed implementation may end the process here.
    fn reach(&self, moment: Moment);
}

/// Nothing happens: what production runs with.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMoments;

impl Moments for NoMoments {
    fn reach(&self, _moment: Moment) {}
}
