//! The heartbeat's tasks. Each takes no input, may be repeated at any time and
//! does not retry by itself: the next tick does.

use automaton_core::error::chain;
use automaton_core::record::{WakeCause, WakeSource};
use automaton_core::state::AgentState;
use automaton_core::time::Span;
use automaton_store::{Limits, StoreError, Task};

use crate::deps::Deps;
use crate::treasury::TreasuryError;
use crate::wake::cause;

/// What is kept of the record, apart from decisions and intents, which are kept
/// for ever.
const KEPT: Limits =
    Limits { keep: Span::from_secs(90 * 24 * 3600), turns_kept: 10_000, rows_max: 100_000 };

/// Rounds of one clean-up; the next run goes on where this one stopped.
const ROUNDS_MAX: u32 = 20;

/// The tasks there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// Says that the automaton is alive.
    Ping,
    /// Looks for messages that nobody woke it for.
    Inbox,
    /// Asks what became of payments that are open, and compares the books.
    Payments,
    /// Deletes what is old and folds the log of the database back.
    Maintenance,
}

/// What a task has to say when it is done.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) note: String,
    pub(super) wake: Option<WakeCause>,
}

impl Done {
    /// Done, with nothing to wake for.
    pub(super) const fn said(note: String) -> Self {
        Self { note, wake: None }
    }
}

impl Beat {
    pub(super) const ALL: [Self; 4] = [Self::Ping, Self::Inbox, Self::Payments, Self::Maintenance];

    const fn name(self) -> &'static str {
        match self {
            Self::Ping => "heartbeat_ping",
            Self::Inbox => "check_social_inbox",
            Self::Payments => "reconcile_payments",
            Self::Maintenance => "state_maintenance",
        }
    }

    pub(super) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|beat| beat.name() == name)
    }

    /// The task's row in the schedule.
    pub(super) fn row(self) -> Task {
        let minutes = match self {
            Self::Ping => 15,
            Self::Inbox => 2,
            Self::Payments => 5,
            Self::Maintenance => 60,
        };
        Task {
            name: self.name().to_owned(),
            interval: Span::from_secs(minutes * 60),
            enabled: true,
            timeout: Span::from_secs(30),
            max_retries: 1,
        }
    }

    /// Does it.
    pub(super) async fn perform(self, deps: &Deps) -> Result<Done, StoreError> {
        match self {
            Self::Ping => ping(deps).await,
            Self::Inbox => inbox(deps).await,
            Self::Payments => payments(deps).await,
            Self::Maintenance => maintenance(deps).await,
        }
    }
}

async fn ping(deps: &Deps) -> Result<Done, StoreError> {
    let life = deps.store.life().await?;
    let age = deps.mint.now().since(life.born_at);
    Ok(Done::said(format!("{}, {} turns, born {age} ago", life.state, life.turns)))
}

async fn inbox(deps: &Deps) -> Result<Done, StoreError> {
    let waiting = deps.store.inbox_counts().await?.received;
    let note = format!("{waiting} messages waiting");
    let life = deps.store.life().await?;
    // A rest after failures is not cut short by the messages that wait for it.
    let rests = life.sleep.is_some_and(|sleep| sleep.reason.rests());
    let asleep = life.state == AgentState::Sleeping && !rests;
    let announced = !deps.store.pending_wakes().await?.is_empty();
    let wake = (waiting > 0 && asleep && !announced)
        .then(|| cause(WakeSource::Inbox, "a message was waiting in the inbox"));
    Ok(Done { note, wake })
}

async fn payments(deps: &Deps) -> Result<Done, StoreError> {
    let Some(treasury) = &deps.treasury else {
        return Ok(Done::said("there is no wallet".to_owned()));
    };
    match treasury.look_after().await {
        Ok(note) => Ok(Done::said(note)),
        Err(TreasuryError::Store(error)) => Err(error),
        Err(error) => Ok(Done::said(chain(&error).to_string())),
    }
}

async fn maintenance(deps: &Deps) -> Result<Done, StoreError> {
    let mut rows = 0;
    for _ in 0..ROUNDS_MAX {
        let deleted = deps.store.retention(KEPT).await?;
        rows += deleted.turns
            + deleted.messages
            + deleted.outbox
            + deleted.wakes
            + deleted.sessions
            + deleted.heartbeat
            + deleted.state_changes;
        if !deleted.more {
            break;
        }
    }
    deps.store.checkpoint().await?;
    Ok(Done::said(format!("{rows} old rows deleted")))
}
