//! `turns` and `turn_inputs`: a turn from opened to ingested.
//!
//! ```text
//! open ──judged──▶ judged ──committed──▶ committed (ingestion owed, then done)
//!   └──abandoned──▶ abandoned: its messages went back
//! ```
//!
//! Each arrow is one transaction. A judged turn is never abandoned, since its
//! calls may have run: it is committed, by its own process or by recovery.

use automaton_core::faults::FaultPoint;
use automaton_core::id::{ApprovalId, CallId, MessageId, SessionId, TurnId};
use automaton_core::intent::Intent;
use automaton_core::memory::NewMemory;
use automaton_core::message::{CLAIMED_PER_TURN_MAX, ReceivedMessage};
use automaton_core::record::{CallStatus, FinishedCall, TurnStatus, Usage};
use automaton_core::time::DAY;
use automaton_core::tool::{ArgsHash, Effect};
use automaton_core::trust::{Label, Labelled};
use rusqlite::{Connection, params};

use crate::approval_requests::{ApprovalRequest, AskedApproval, ask_call};
use crate::codec::{Sql, get};
use crate::costs::AskedAnswer;
use crate::decisions::NewDecision;
use crate::error::{StoreError, TxError, missing, unfit};
use crate::inbox::{ClaimOptions, RedeliveryOutcome};
use crate::rates::RateLimit;
use crate::thread::{CommitDurability, ConnectionExt, Tx, WriteOptions, sql};
use crate::turn_reads::{self, WakeQuery, WakeSnapshot};
use crate::{
    Store, approvals, calls, choices, costs, inbox, memory, outbox, prompts, sessions, wakes,
};

/// A turn that was just opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedTurn {
    /// Its id.
    pub id: TurnId,
    /// Its number in the automaton's life, from 1. Abandoned turns count.
    pub seq: u64,
    /// The messages it has claimed, oldest first.
    pub messages: Vec<ReceivedMessage>,
}

/// Answer of the model with the decisions of the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The turn.
    pub turn: TurnId,
    /// The model's text.
    pub thought: String,
    /// Label of the text as a message to the creator, if it ends the wake.
    pub voice: Option<Label>,
    /// Usage of the answer.
    pub usage: Usage,
    /// The calls, in order.
    pub calls: Vec<JudgedCall>,
}

/// One call of a judgement.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedCall {
    /// Our id of it.
    pub id: CallId,
    /// The tool, as the model named it.
    pub tool: String,
    /// The arguments as JSON text, as the model wrote them.
    pub arguments: String,
    /// The hash of the canonical arguments, when they are JSON.
    pub args_hash: Option<ArgsHash>,
    /// Effect of the tool.
    pub mutates: Effect,
    /// `Planned`, or why it will not run: `Refused`, `Invalid`, `Skipped`.
    pub status: CallStatus,
    /// Result for the model, if the call will not run.
    pub result: Option<Labelled>,
    /// Decision of the policy: an `Allow` for a planned call, another outcome for a refused one.
    pub decision: Option<NewDecision>,
    /// The intended effects; never empty for a planned call.
    pub intents: Vec<Intent>,
    /// The limits under which it takes a place; of a planned call alone.
    pub limits: Vec<RateLimit>,
    /// Question to the creator about a call that was not made.
    pub question: Option<CallApprovalRequest>,
    /// The approval for which it is made; used up, whatever becomes of the call.
    pub approval: Option<ApprovalId>,
}

/// A question about a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallApprovalRequest {
    /// The question.
    pub question: ApprovalRequest,
    /// The call's arguments as JSON with sorted keys.
    pub arguments: String,
    /// The least trusted label of what caused the call.
    pub label: Label,
}

/// Cause of a turn's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    /// Not its messages': the model was out of reach, the prompt too long.
    Turn,
    /// This message's.
    Message(MessageId),
    /// Nobody's: the process died, or the turn was lost.
    Crash,
}

/// A message to the creator that went out with a commit, as it was stored.
pub type OutgoingMessage = (MessageId, Labelled);

impl Store {
    /// Opens a turn: stale claims go back, the oldest waiting messages are
    /// claimed, `claims_max` at most and never more than [`CLAIMED_PER_TURN_MAX`],
    /// and they and the given texts become the turn's inputs.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when the cycle has ended, [`StoreError::Missing`].
    pub async fn open_turn(
        &self,
        session: SessionId,
        inputs_extra: Vec<Labelled>,
        claims_max: u32,
    ) -> Result<OpenedTurn, StoreError> {
        let claims = ClaimOptions { most: claims_max, only: None };
        let write = WriteOptions::new("open a turn").reaches(FaultPoint::TurnOpened);
        self.write(write, move |tx| open(tx, session, &inputs_extra, claims)).await
    }

    /// Stores what was asked, thought, cost, calls, decisions and intents in one
    /// transaction. What no model was asked for has no prompt, and costs nothing. A call that is to run at once may be stored as started. Where one may change
    /// something, all of it is on the disk when this returns: an effect must never be
    /// older than the decision that allowed it, whatever the machine does. The questions that
    /// are new come back; a call about which one waits already is asked about once.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when the turn is not open or a call contradicts itself.
    pub async fn record_judgement(
        &self,
        judgement: Judgement,
        asked: Option<AskedAnswer>,
    ) -> Result<Vec<AskedApproval>, StoreError> {
        let may_run = |call: &JudgedCall| !call.status.is_final();
        let changes = |call: &JudgedCall| may_run(call) && call.mutates == Effect::Mutates;
        let sync = if judgement.calls.iter().any(changes) {
            CommitDurability::Machine
        } else {
            CommitDurability::Process
        };
        let write = WriteOptions::new("store the judgement").sync(sync);
        let write = write.reaches(FaultPoint::JudgementStored);
        self.write(write, move |tx| {
            if let Some(AskedAnswer { prompt, at, reservation, choice }) = &asked {
                prompts::insert_prompt(tx, judgement.turn, prompt, *at)?;
                choices::insert_choice(tx, judgement.turn, choice.as_ref())?;
                costs::settle(tx, reservation.as_ref(), judgement.turn, &judgement.usage)?;
            }
            judge(tx, &judgement)
        })
        .await
    }

    /// Commits a judged turn: its last calls end, its messages are processed, and what it
    /// leaves behind is stored. Words that end its wake go to the creator, as the answer to
    /// all open messages that were read; gives that message as it was stored, if any was
    /// open, and where the wake stands then. Committing again changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when the turn is not judged or a call may still run.
    pub async fn finish_turn(
        &self,
        turn: TurnId,
        ends: Vec<FinishedCall>,
        items: Vec<NewMemory>,
        next: WakeQuery,
    ) -> Result<(Option<OutgoingMessage>, WakeSnapshot), StoreError> {
        let mut write = WriteOptions::new("commit the turn");
        if !ends.is_empty() {
            write = write.reaches(FaultPoint::CallFinished);
        }
        let write = write.reaches(FaultPoint::TurnCommitted).reaches(FaultPoint::TurnIngested);
        self.write(write, move |tx| {
            calls::finish_all(tx, &ends)?;
            let answer = commit(tx, turn)?;
            ingest_once(tx, turn, &items)?;
            Ok((answer, turn_reads::snapshot(tx, next, tx.now.before(DAY))?))
        })
        .await
    }

    /// Gives an open turn up. Its messages wait again, and only the blamed one
    /// counts an attempt. Returns the messages that were given up with it.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when the turn is not open.
    pub async fn abandon_turn(
        &self,
        turn: TurnId,
        blame: FailureCause,
    ) -> Result<Vec<MessageId>, StoreError> {
        let work = move |tx: &Tx<'_>| abandon(tx, turn, blame).map(|returned| returned.given_up);
        self.write(WriteOptions::new("abandon the turn"), work).await
    }

    /// Stores what a turn leaves behind that recovery has committed. Doing it again changes
    /// nothing.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when the turn is not committed.
    pub async fn ingest_turn(&self, turn: TurnId, items: Vec<NewMemory>) -> Result<(), StoreError> {
        let write = WriteOptions::new("ingest the turn").reaches(FaultPoint::TurnIngested);
        self.write(write, move |tx| ingest_once(tx, turn, &items)).await
    }

    /// Committed turns that were not ingested, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn owed_ingests(&self) -> Result<Vec<TurnId>, StoreError> {
        let statement = "SELECT id FROM turns WHERE ingest = 'owed' ORDER BY seq";
        let work = |tx: &Tx<'_>| Ok(tx.all(statement, [], |row| get(row, "id"))?);
        self.run("read the owed ingestions", work).await
    }
}

pub(crate) fn open(
    tx: &Tx<'_>,
    session: SessionId,
    extra: &[Labelled],
    claims: ClaimOptions,
) -> Result<OpenedTurn, TxError> {
    if sessions::ended(tx, session)?.is_some() {
        return Err(unfit("wake cycle", &session, "has ended"));
    }
    for claimer in inbox::stale_claimers(tx)? {
        inbox::give_back(tx, claimer, FailureCause::Crash)?;
        let statement = "UPDATE turns SET status = 'abandoned' WHERE id = ?1";
        tx.exec(statement, [Sql(claimer)])?;
    }
    let id: TurnId = tx.ids.id();
    let seq = tx.one(sql!("turn_open"), params![Sql(id), Sql(session), Sql(tx.now)], |row| {
        get(row, "seq")
    })?;
    let seq: u64 = seq.ok_or_else(|| missing("turn", &id))?;
    let claims = ClaimOptions { most: claims.most.min(CLAIMED_PER_TURN_MAX), ..claims };
    let messages = inbox::claim(tx, seq, claims)?;
    let mut ordinal = 0_u32;
    for Labelled { label, source, text } in extra {
        let (none, label, source) = (None::<&str>, Sql(*label), source.as_str());
        tx.exec(sql!("turn_input"), params![Sql(seq), ordinal, none, text, label, source])?;
        ordinal += 1;
    }
    for message in &messages {
        let none = None::<&str>;
        tx.exec(sql!("turn_input"), params![Sql(seq), ordinal, Sql(message.id), none, none, none])?;
        ordinal += 1;
    }
    wakes::consume_answered(tx, session)?;
    Ok(OpenedTurn { id, seq, messages })
}

fn judge(tx: &Tx<'_>, judgement: &Judgement) -> Result<Vec<AskedApproval>, TxError> {
    let mut questions = Vec::new();
    let Judgement { turn, thought, voice, usage, calls } = judgement;
    expect(tx, *turn, TurnStatus::Open)?;
    tx.exec(
        sql!("turn_judge"),
        params![
            Sql(*turn),
            thought,
            usage.model,
            Sql(tx.now),
            voice.map(Sql),
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            Sql(usage.cost),
            usage.first_token_ms,
            usage.total_ms,
            usage.estimated,
            usage.unknown_end,
        ],
    )?;
    for (ordinal, call) in calls.iter().enumerate() {
        calls::plan(tx, *turn, ordinal, call, &usage.model)?;
        if let Some(approval) = call.approval {
            approvals::use_up(tx, approval, call.id)?;
        }
        if let Some(CallApprovalRequest { question, arguments, label }) = &call.question {
            let subject = (call.id, call.tool.as_str(), arguments.as_str());
            let asked = ask_call(tx, subject, question, *label, &usage.model)?;
            questions.extend(asked.map(|approval| AskedApproval { call: call.id, approval }));
        }
    }
    Ok(questions)
}

/// Commits a turn, and delivers the words that end its wake.
pub(crate) fn commit(tx: &Tx<'_>, turn: TurnId) -> Result<Option<OutgoingMessage>, TxError> {
    match standing(tx, turn)? {
        TurnStatus::Committed => return Ok(None),
        found => same(turn, found, TurnStatus::Judged)?,
    }
    let count = calls::unfinished(tx, turn)?;
    if count > 0 {
        return Err(unfit("turn", &turn, format!("has {count} unfinished calls")));
    }
    inbox::process(tx, turn)?;
    tx.exec(sql!("turn_commit"), params![Sql(turn), Sql(tx.now)])?;
    tx.exec(sql!("session_count_turn"), [Sql(turn)])?;
    tx.exec("UPDATE automaton SET turns = turns + 1", [])?;
    let said = "SELECT thought, voice FROM turns WHERE id = ?1 AND voice IS NOT NULL";
    let said = tx.one(said, [Sql(turn)], |row| {
        let text: String = row.get("thought")?;
        Ok(Labelled::new(get(row, "voice")?, "agent", text.trim()))
    })?;
    said.map_or(Ok(None), |words| outbox::answer(tx, turn, words))
}

pub(crate) fn abandon(
    tx: &Tx<'_>,
    turn: TurnId,
    why: FailureCause,
) -> Result<RedeliveryOutcome, TxError> {
    expect(tx, turn, TurnStatus::Open)?;
    tx.exec("UPDATE turns SET status = 'abandoned' WHERE id = ?1", [Sql(turn)])?;
    inbox::give_back(tx, turn, why)
}

fn ingest_once(tx: &Tx<'_>, turn: TurnId, items: &[NewMemory]) -> Result<(), TxError> {
    let statement = "UPDATE turns SET ingest = 'done' \
         WHERE id = ?1 AND ingest = 'owed' AND status = 'committed'";
    if tx.exec(statement, [Sql(turn)])? == 0 {
        return expect(tx, turn, TurnStatus::Committed);
    }
    for memory in items {
        match memory::remember(tx, memory) {
            // A turn is committed whether or not its memory has room.
            Ok(_) | Err(TxError::Refused(StoreError::Full { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The turns that are open or judged, oldest first.
pub(crate) fn unfinished(tx: &Tx<'_>) -> Result<Vec<(TurnId, TurnStatus)>, TxError> {
    let read = |row: &rusqlite::Row<'_>| Ok((get(row, "id")?, get(row, "status")?));
    Ok(tx.all(sql!("turns_unfinished"), [], read)?)
}

fn standing(connection: &Connection, turn: TurnId) -> Result<TurnStatus, TxError> {
    let statement = "SELECT status FROM turns WHERE id = ?1";
    let found = connection.one(statement, [Sql(turn)], |row| get(row, "status"))?;
    found.ok_or_else(|| missing("turn", &turn))
}

fn expect(tx: &Tx<'_>, turn: TurnId, wanted: TurnStatus) -> Result<(), TxError> {
    same(turn, standing(tx, turn)?, wanted)
}

fn same(turn: TurnId, found: TurnStatus, wanted: TurnStatus) -> Result<(), TxError> {
    match found == wanted {
        true => Ok(()),
        false => Err(unfit("turn", &turn, format!("is {found}, not {wanted}"))),
    }
}
