//! `approvals list`, `approvals approve`, `approvals deny`: the creator's word on what
//! the automaton may not decide alone.
//!
//! A running automaton is told over its control socket; where none runs the answer is
//! stored, and heeded at the next start.

use automaton_core::id::ApprovalId;
use automaton_core::wire::control::{Answer, Command, Word};
use automaton_store::{Approval, Which};
use clap::Subcommand;
use serde_json::json;

use super::Context;
use super::send::reach;
use crate::control::unexpected;
use crate::error::Failure;
use crate::ui::text::short;

/// How many questions are shown.
const SHOWN_MAX: u32 = 100;

/// What a person may do with questions.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List what was asked, newest first
    List {
        /// What was answered or has lapsed, too
        #[arg(short, long)]
        all: bool,
    },
    /// Say yes
    Approve {
        /// The question
        id: ApprovalId,
    },
    /// Say no
    Deny {
        /// The question
        id: ApprovalId,
    },
}

/// Does what was asked.
pub(crate) fn run(context: &Context, command: &ApprovalsCommand) -> Result<(), Failure> {
    match *command {
        ApprovalsCommand::List { all: true } => list(context, Which::All),
        ApprovalsCommand::List { all: false } => list(context, Which::Waiting),
        ApprovalsCommand::Approve { id } => answer(context, id, Word::Approve),
        ApprovalsCommand::Deny { id } => answer(context, id, Word::Deny),
    }
}

fn list(context: &Context, which: Which) -> Result<(), Failure> {
    let (.., reader) = context.record()?;
    for approval in &reader.approvals(which, SHOWN_MAX)? {
        context.format.answer(approval, || line(approval))?;
    }
    Ok(())
}

fn line(approval: &Approval) -> String {
    let Approval { id, summary, reason, state, at, expires_at, .. } = approval;
    let (what, why) = (short(&summary.text, 300), short(reason, 300));
    let origin = summary.label;
    format!("{id}  {}  asked {at}, until {expires_at}\n  {what} ({origin})\n  {why}", state.name())
}

fn answer(context: &Context, approval: ApprovalId, word: Word) -> Result<(), Failure> {
    let (home, _) = context.inhabited()?;
    match reach(&home, &Command::Answer { approval, word })? {
        Answer::Answered { summary } => {
            let done = match word {
                Word::Approve => "approved",
                Word::Deny => "denied",
            };
            context.format.answer(&json!({ "approval": approval, "answer": word }), || {
                format!("{done}: {}", short(&summary, 300))
            })
        }
        other => Err(unexpected(other)),
    }
}
