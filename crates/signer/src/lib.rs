//! Holds the automaton's key in a process of its own, and signs with it.
//!
//! [`serve`] is that process. It decrypts the [`keystore`] once and closes itself to debuggers,
//! network and programs. Then it answers one or more agents over inherited sockets, and the
//! creator over one more. [`payload`] is the closed list of everything that it signs. Every
//! payment is counted against ceilings that only the creator raises, in a ledger of its own,
//! before the signature leaves. There must never be a way to sign bytes or a hash made elsewhere.
//! Everything that no rule permits is refused.

mod ceiling;
mod client;
mod creator;
mod error;
mod home;
mod journal;
mod key;
pub mod keystore;
mod passphrase;
pub mod payload;
mod process;
mod protocol;
#[cfg(any(test, feature = "rehearsal"))]
pub mod rehearsal;
mod rules;
mod seal;
mod seats;
mod signer;

pub use ceiling::{SignerStatus, SigningLimits, SigningLimitsChange, SpendingTotals};
pub use client::{SignerConnection, SignerConnectionError};
pub use creator::{
    CreatorConnection, act_on_stopped_signer, mark_ceilings_used, message, signer_of,
};
pub use error::{SignerError, SignerRefusal, SignerRefusalCode};
pub use home::{HomeError, SignerHome};
pub use key::{Signature, WalletKey};
pub use passphrase::{PassphraseError, PassphraseSource};
pub use process::{SignerClients, SignerConfig, SignerDeps, SigningPermits, serve};
pub use protocol::{CreatorAction, CreatorProof};
pub use seal::{SealError, SealedReader, SealedWriter};
