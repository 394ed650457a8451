//! Pure: ids, one type per noun, so that a turn's id never meets a call's.
//!
//! An id is a ULID: 48 bits of time and 80 of chance, 26 characters of
//! Crockford's base 32, sortable by time (<https://github.com/ulid/spec>).
//! Ids are made by a [`IdGenerator`] only, from the injected clock and entropy; an id
//! that another program chose (a model's call id) must never become one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;

use crate::entropy::Entropy;
use crate::time::{Clock, Timestamp};

/// A text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no {noun} id (26 characters of Crockford base 32)")]
pub struct IdError {
    text: String,
    noun: &'static str,
}

/// Makes ids. Cheap to clone.
#[derive(Clone)]
pub struct IdGenerator {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl IdGenerator {
    /// A mint over the given clock and entropy.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { clock, entropy }
    }

    /// A new id of the wanted type.
    #[must_use]
    pub fn id<T: From<Ulid>>(&self) -> T {
        let mut random = [0_u8; 16];
        self.entropy.fill(&mut random[6..]);
        let millis = self.clock.now().as_millis().max(0).unsigned_abs();
        T::from(Ulid::from_parts(millis, u128::from_be_bytes(random)))
    }

    /// The time now, by the same clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl fmt::Debug for IdGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdGenerator")
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $noun:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
        pub struct $name(#[schemars(with = "String")] Ulid);

        impl From<Ulid> for $name {
            fn from(ulid: Ulid) -> Self {
                Self(ulid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Ulid::from_string(text)
                    .map(Self)
                    .map_err(|_| IdError { text: text.chars().take(40).collect(), noun: $noun })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

ids! {
    /// One question to the creator.
    ApprovalId = "approval";
    /// One automaton, from its birth on.
    AutomatonId = "automaton";
    /// One wake cycle.
    SessionId = "session";
    /// One turn.
    TurnId = "turn";
    /// One call of a tool.
    CallId = "call";
    /// One decision of the policy.
    DecisionId = "decision";
    /// One payment, from before it is signed.
    PaymentId = "payment";
    /// One transaction on a chain, from before it is signed.
    TransactionId = "transaction";
    /// One message, received or sent.
    MessageId = "message";
    /// One run of a heartbeat task, or one holder of a lease.
    RunId = "run";
    /// One request that a service answered.
    RequestId = "request";
    /// Credits set aside for one call of a model.
    HoldId = "hold";
    /// Credits that went to another wallet.
    TransferId = "transfer";
    /// One rented machine.
    MachineId = "machine";
    /// One snapshot of the workspace.
    SnapshotId = "snapshot";
}

/// The id of a rented machine as its cloud wrote it. Clouds have forms of their own, so it is
/// never read for anything but to name the machine: 1 to 128 letters, digits, `-`, `_` and `.`,
/// not beginning with a point, so that it can stand in a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, derive_more::Display)]
#[serde(transparent)]
pub struct RemoteMachineId(String);

impl RemoteMachineId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RemoteMachineId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let fits = (1..=128).contains(&text.len()) && !text.starts_with('.');
        // What programs write where they have none.
        let is_none = ["null", "undefined", "none"].contains(&text);
        match fits && !is_none && text.bytes().all(plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(IdError { text: text.chars().take(40).collect(), noun: "machine" }),
        }
    }
}

impl From<MachineId> for RemoteMachineId {
    fn from(id: MachineId) -> Self {
        Self(id.to_string())
    }
}

impl<'de> Deserialize<'de> for RemoteMachineId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;
    use crate::time::SystemClock;

    #[test]
    fn an_id_survives_its_text_and_refuses_another() {
        let generator = IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
        let turn: TurnId = generator.id();
        assert_eq!(turn.to_string().parse(), Ok(turn));
        assert_eq!(turn.to_string().len(), 26);
        let error = "call_0".parse::<CallId>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'call_0' is no call id (26 characters of Crockford base 32)"
        );
    }

    #[test]
    fn ten_thousand_ids_of_one_millisecond_differ() {
        struct Still;
        impl Clock for Still {
            fn now(&self) -> Timestamp {
                Timestamp::from_millis(1)
            }
        }
        let generator = IdGenerator::new(Arc::new(Still), Arc::new(SystemEntropy));
        let ids: std::collections::BTreeSet<CallId> = (0..10_000).map(|_| generator.id()).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
