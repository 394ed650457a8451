//! Pure: the states of an automaton and the one table of legal transitions.
//!
//! ```text
//! setup ──▶ waking ──▶ running ◀──▶ low_compute ◀──▶ critical
//!             ▲           │              │              │
//!             │           └──────────────┼──────────────┤
//!             └───────── sleeping ◀──────┘              ▼
//!             ▲             └──▶ hibernating ──────▶  dead
//!             └──── money or the creator ┴──────────────┘
//! ```
//!
//! Only funding leads out of `dead`, and only money or the creator out of
//! `hibernating`. The table must never be bypassed: every
//! write of the state is a compare-and-set through [`AgentState::may_become`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Names;

/// State of an automaton.
// Its `name` is the one in the database and on the wire.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Names)]
pub enum AgentState {
    /// Born, never yet awake.
    Setup,
    /// A wake cycle begins.
    Waking,
    /// Thinking and acting with everything it has.
    Running,
    /// Thinking and acting cheaply.
    LowCompute,
    /// Nearly out of credits.
    Critical,
    /// Asleep; the heartbeat goes on.
    Sleeping,
    /// It lost more than it may; only money or its creator wakes it. The heartbeat
    /// goes on.
    Hibernating,
    /// Out of credits for too long; the heartbeat goes on.
    Dead,
}

impl AgentState {
    /// Returns true if the transition is legal. Staying in a state is no transition.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        use AgentState::{
            Critical, Dead, Hibernating, LowCompute, Running, Setup, Sleeping, Waking,
        };
        match self {
            Setup => matches!(next, Waking),
            // A start after a crash finds any awake state and begins anew.
            Waking => matches!(next, Running | LowCompute | Critical | Sleeping | Dead),
            Running => matches!(next, LowCompute | Critical | Sleeping | Waking),
            LowCompute => matches!(next, Running | Critical | Sleeping | Waking),
            Critical => matches!(next, Running | LowCompute | Sleeping | Waking | Dead),
            Sleeping => matches!(next, Waking | Hibernating | Dead),
            Hibernating => matches!(next, Waking | Dead),
            Dead => matches!(next, Waking),
        }
    }

    /// Returns true if turns may run in this state.
    #[must_use]
    pub const fn is_awake(self) -> bool {
        matches!(self, Self::Waking | Self::Running | Self::LowCompute | Self::Critical)
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_state_is_a_trap_and_none_becomes_setup_or_itself() {
        for state in AgentState::ALL {
            assert!(AgentState::ALL.iter().any(|next| state.may_become(*next)), "{state}");
            assert!(!state.may_become(state), "{state}");
            assert!(!state.may_become(AgentState::Setup), "{state}");
            assert_eq!(AgentState::by_name(state.name()), Some(state));
        }
    }

    #[test]
    fn the_dead_only_wake_by_funding() {
        let ways: Vec<_> =
            AgentState::ALL.into_iter().filter(|n| AgentState::Dead.may_become(*n)).collect();
        assert_eq!(ways, [AgentState::Waking]);
        assert!(!AgentState::Running.may_become(AgentState::Dead), "death comes through critical");
    }
}
