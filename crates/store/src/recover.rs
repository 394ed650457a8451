//! First transaction of a process: repairs the state that a crash left.
//!
//! A turn whose model was not heard is given up, and its messages wait again. A
//! turn that was judged is brought to its end: the call that was running is
//! reported as "outcome unknown", the later ones as "not started", and it is
//! committed as it would have been: words that end its wake are delivered. No effect is
//! ever repeated here.

use automaton_core::id::{MessageId, SessionId, TurnId};
use automaton_core::record::{CallStatus, FinishedCall, StopReason, TurnStatus};
use automaton_core::trust::Labelled;

use crate::error::{StoreError, TxError};
use crate::thread::{CommitDurability, Tx, WriteOptions};
use crate::turns::FailureCause;
use crate::{Store, calls, inbox, schedule, sessions, turns};

/// Repaired state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoverySummary {
    /// Calls whose outcome is unknown.
    pub unknown: u32,
    /// Calls that were not started.
    pub not_started: u32,
    /// Messages that wait again.
    pub returned: u32,
    /// Messages that were claimed at too many crashes and are given up.
    pub given_up: Vec<MessageId>,
    /// Turns that were brought to their end, oldest first.
    pub committed: Vec<TurnId>,
    /// Messages to the creator that went out with them.
    pub answers: Vec<(MessageId, Labelled)>,
    /// The session that the crash cut, closed now.
    pub session_cut: Option<SessionId>,
}

impl Store {
    /// Puts in order what a crash left behind; call it once, before anything
    /// else, while no other process runs this automaton. A second time finds
    /// nothing.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn recover(&self) -> Result<RecoverySummary, StoreError> {
        let write = WriteOptions::new("recover from a crash").sync(CommitDurability::Machine);
        self.write(write, recover).await
    }
}

fn recover(tx: &Tx<'_>) -> Result<RecoverySummary, TxError> {
    let mut recovered = RecoverySummary::default();
    for (turn, status) in turns::unfinished(tx)? {
        if status == TurnStatus::Open {
            let returned = turns::abandon(tx, turn, FailureCause::Crash)?;
            recovered.returned += returned.waiting;
            recovered.given_up.extend(returned.given_up);
            continue;
        }
        for (call, found) in calls::open_calls(tx, turn)? {
            let end = match found {
                CallStatus::Started => {
                    recovered.unknown += 1;
                    FinishedCall::by_runtime(call, CallStatus::Unknown, UNKNOWN)
                }
                _ => {
                    recovered.not_started += 1;
                    FinishedCall::by_runtime(call, CallStatus::NotStarted, NOT_STARTED)
                }
            };
            calls::finish(tx, &end)?;
        }
        recovered.answers.extend(turns::commit(tx, turn)?);
        recovered.committed.push(turn);
    }
    for claimer in inbox::stale_claimers(tx)? {
        let returned = inbox::give_back(tx, claimer, FailureCause::Crash)?;
        recovered.returned += returned.waiting;
        recovered.given_up.extend(returned.given_up);
    }
    if let Some(session) = sessions::open_one(tx)? {
        let end = sessions::SessionEnd { reason: StopReason::Crash, sleep: None, note: None };
        sessions::close(tx, session, &end)?;
        recovered.session_cut = Some(session);
    }
    schedule::release_lost(tx)?;
    Ok(recovered)
}

const UNKNOWN: &str = "Outcome unknown: the process died while this call was running. It may or \
    may not have taken effect. Look before you repeat it.";

const NOT_STARTED: &str = "Not started: the process died before this call's turn came. It had no \
    effect.";
