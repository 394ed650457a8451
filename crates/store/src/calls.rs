//! `tool_calls`: each call from judged to final.
//!
//! ```text
//! planned ──start──▶ started ──finish──▶ done | failed | unknown
//!    └──finish──▶ skipped | not_started
//! ```
//!
//! A call starts at most once, for ever; one that runs at once is stored as started
//! with its judgement. What is final never changes.

use automaton_core::faults::FaultPoint;
use automaton_core::id::{CallId, TurnId};
use automaton_core::record::{CallStatus, DecisionOutcome, FinishedCall};
use automaton_core::tool::Effect;
use automaton_core::trust::Labelled;
use automaton_sqlite::chain::Hash;
use rusqlite::{Connection, params};

use crate::audit::LinkKind;
use crate::codec::{CallText, Sql, get};
use crate::error::{StoreError, TxError, conflict, missing, unfit};
use crate::thread::{CommitDurability, ConnectionExt, Tx, WriteOptions, sql};
use crate::turns::JudgedCall;
use crate::{Store, audit, decisions, rates};

impl Store {
    /// Stores how calls ended and what the model is told of them, and marks a planned one as
    /// started. The same end again changes nothing. Where the call that starts changes something, this
    /// is on the disk when it returns: were the mark lost with the power, the
    /// next start would take the call for not started, and it could run twice.
    /// A call that only looks may run twice, and saves the sync.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when a step is not in the module's table, when a call
    /// ended differently before, or when the one to start is not planned, even when it is
    /// started already: only one caller may run it. When it changes something and that was
    /// not said.
    pub async fn step_calls(
        &self,
        ends: Vec<FinishedCall>,
        next: Option<(CallId, Effect)>,
    ) -> Result<(), StoreError> {
        let mut write = WriteOptions::new("store how a call goes on");
        if !ends.is_empty() {
            write = write.reaches(FaultPoint::CallFinished);
        }
        if let Some((_, effect)) = next {
            write = write.sync(match effect {
                Effect::Mutates => CommitDurability::Machine,
                Effect::Observes => CommitDurability::Process,
            });
            write = write.reaches(FaultPoint::CallStarted);
        }
        self.write(write, move |tx| {
            finish_all(tx, &ends)?;
            let Some((next, told)) = next else { return Ok(()) };
            if (told, effect(tx, next)?) == (Effect::Observes, Effect::Mutates) {
                return Err(unfit("call", &next, "changes something, and was not to be synced"));
            }
            start(tx, next)
        })
        .await
    }
}

/// Stores a judged call, its decision and its intents.
pub(crate) fn plan(
    tx: &Tx<'_>,
    turn: TurnId,
    ordinal: usize,
    call: &JudgedCall,
    model: &str,
) -> Result<(), TxError> {
    if let Some(why) = contradiction(call) {
        return Err(unfit("judgement of the call", &call.id, format!("is malformed: {why}")));
    }
    let starts = call.status == CallStatus::Started;
    let status = if starts { CallStatus::Planned } else { call.status };
    decisions::store(tx, turn, Some((ordinal, status)), call, model)?;
    for limit in &call.limits {
        rates::take(tx, call.id, limit, call.approval.is_some())?;
    }
    if starts { start(tx, call.id) } else { Ok(()) }
}

/// Returns the contradiction between the parts of a call, if there is one.
fn contradiction(call: &JudgedCall) -> Option<&'static str> {
    use CallStatus::{
        Done, Failed, Invalid, NotStarted, Planned, Refused, Skipped, Started, Unknown,
    };
    let outcome = call.decision.as_ref().map(|decision| decision.outcome);
    match call.status {
        Planned | Started if outcome != Some(DecisionOutcome::Allow) => {
            Some("planned, but not allowed")
        }
        Planned | Started if call.intents.is_empty() => Some("planned, but intends nothing"),
        Planned | Started if call.result.is_some() => Some("planned, but has a result"),
        Refused if matches!(outcome, None | Some(DecisionOutcome::Allow)) => {
            Some("refused, but by no decision")
        }
        Refused | Invalid | Skipped if call.result.is_none() => Some("final, but without a result"),
        Planned | Started | Refused | Invalid | Skipped => None,
        Done | Failed | Unknown | NotStarted => Some("it cannot have run yet"),
    }
}

/// The steps of the module's table, but for `start`.
const fn may_finish(from: CallStatus, to: CallStatus) -> bool {
    use CallStatus::{Done, Failed, NotStarted, Planned, Skipped, Started, Unknown};
    matches!((from, to), (Started, Done | Failed | Unknown) | (Planned, Skipped | NotStarted))
}

fn cannot_become(call: CallId, found: CallStatus, wanted: CallStatus) -> TxError {
    unfit("call", &call, format!("is {found} and cannot become {wanted}"))
}

fn start(tx: &Tx<'_>, call: CallId) -> Result<(), TxError> {
    if tx.exec(sql!("call_start"), params![Sql(call), Sql(tx.now)])? == 1 {
        return Ok(());
    }
    Err(cannot_become(call, standing(tx, call)?, CallStatus::Started))
}

pub(crate) fn finish_all(tx: &Tx<'_>, ends: &[FinishedCall]) -> Result<(), TxError> {
    ends.iter().try_for_each(|end| finish(tx, end))
}

pub(crate) fn finish(tx: &Tx<'_>, end: &FinishedCall) -> Result<(), TxError> {
    let call = end.id;
    let Labelled { label, source, text } = &end.result;
    let found = standing(tx, call)?;
    let stored = Sql(CallText(text.clone()));
    if found == end.status {
        let params = params![Sql(call), stored, Sql(*label), source.as_str()];
        let same = tx.one(sql!("call_same_result"), params, |_| Ok(()))?.is_some();
        return if same { Ok(()) } else { Err(conflict("call", &call)) };
    }
    if !may_finish(found, end.status) {
        return Err(cannot_become(call, found, end.status));
    }
    let status = Sql(end.status);
    let duration = Sql(end.duration);
    let label = Sql(*label);
    let source = source.as_str();
    let hash = Sql(Hash::of(text.as_bytes()));
    tx.exec(
        sql!("call_finish"),
        params![
            Sql(call),
            status,
            stored,
            label,
            source,
            duration,
            hash,
            Sql(tx.now),
            end.exit_code
        ],
    )?;
    rates::give_back(tx, call, end.status)?;
    audit::append(tx, LinkKind::Outcome, &call.to_string())
}

/// The calls of a turn that are not final, in order.
pub(crate) fn open_calls(tx: &Tx<'_>, turn: TurnId) -> Result<Vec<(CallId, CallStatus)>, TxError> {
    let read = |row: &rusqlite::Row<'_>| Ok((get(row, "id")?, get(row, "status")?));
    Ok(tx.all(sql!("calls_open"), [Sql(turn)], read)?)
}

/// Returns the number of calls of a turn that are not final.
pub(crate) fn unfinished(tx: &Tx<'_>, turn: TurnId) -> Result<u32, TxError> {
    let calls = open_calls(tx, turn)?;
    Ok(u32::try_from(calls.len()).unwrap_or(u32::MAX))
}

pub(crate) fn standing(connection: &Connection, call: CallId) -> Result<CallStatus, TxError> {
    let statement = "SELECT status FROM tool_calls WHERE id = ?1";
    let found = connection.one(statement, [Sql(call)], |row| get(row, "status"))?;
    found.ok_or_else(|| missing("call", &call))
}

fn effect(connection: &Connection, call: CallId) -> Result<Effect, TxError> {
    let statement = "SELECT effect FROM tool_calls WHERE id = ?1";
    let found = connection.one(statement, [Sql(call)], |row| get(row, "effect"))?;
    found.ok_or_else(|| missing("call", &call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_final_never_changes_and_what_is_not_can_end() {
        for from in CallStatus::ALL {
            let ends: Vec<_> =
                CallStatus::ALL.into_iter().filter(|to| may_finish(from, *to)).collect();
            assert_eq!(ends.is_empty(), from.is_final(), "{from}");
            assert!(ends.iter().all(|to| to.is_final()), "{from}");
        }
        assert!(!may_finish(CallStatus::Planned, CallStatus::Done), "it never started");
    }
}
