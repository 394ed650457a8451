//! `approvals …`: the creator's word on what the automaton may not decide alone.
//!
//! A running automaton is told over its control socket; where none runs the answer is
//! stored, and heeded at the next start.

use automaton_core::id::ApprovalId;
use automaton_core::wire::control::{
    ApprovalVerdict, ControlRequest, ControlResponse, answer_text,
};
use automaton_store::{Approval, ApprovalFilter, ApprovalSubject, Reader, StoreError};
use clap::{Args, Subcommand};

use super::CommandContext;
use super::send::send_or_store;
use crate::control::unexpected;
use crate::error::CliError;
use crate::ui::text::{plain, short};
use crate::ui::when::WallClock;
use crate::ui::{self, Format, phrases, wrap};
use crate::view::approvals::{ApprovalAnswerView, ApprovalMessageView, ApprovalView};

/// Number of questions that are shown.
const SHOWN_MAX: u32 = 100;

/// Commands for questions.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the questions that wait for you, newest first
    List {
        /// Also those that were answered or have expired
        #[arg(short, long)]
        all: bool,
    },
    /// Show exactly what a question is about
    Show {
        /// The question
        id: ApprovalId,
    },
    /// Say yes
    Approve(AnswerArgs),
    /// Say no
    Deny(AnswerArgs),
    /// Print the text to sign with your own address to answer from elsewhere
    Message {
        /// The question
        id: ApprovalId,
        /// The text that says no
        #[arg(long)]
        deny: bool,
    },
}

/// An answer.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The question
    id: ApprovalId,
    /// Your signature of what `approvals message` prints
    #[arg(long, value_name = "HEX")]
    signature: Option<String>,
}

/// Does what was asked.
pub(crate) fn run(context: &CommandContext, command: &ApprovalsCommand) -> Result<(), CliError> {
    match command {
        ApprovalsCommand::List { all: true } => list(context, ApprovalFilter::All),
        ApprovalsCommand::List { all: false } => list(context, ApprovalFilter::Waiting),
        ApprovalsCommand::Show { id } => show(context, *id),
        ApprovalsCommand::Approve(args) => answer(context, args, ApprovalVerdict::Approve),
        ApprovalsCommand::Deny(args) => answer(context, args, ApprovalVerdict::Deny),
        ApprovalsCommand::Message { id, deny: false } => {
            print_message(context, *id, ApprovalVerdict::Approve)
        }
        ApprovalsCommand::Message { id, deny: true } => {
            print_message(context, *id, ApprovalVerdict::Deny)
        }
    }
}

fn show(context: &CommandContext, id: ApprovalId) -> Result<(), CliError> {
    let (_, file, reader) = context.record()?;
    let approval = read_question(&reader, id)?;
    context.format.answer(&ApprovalView::from(&approval), || {
        let exactly = match &approval.subject {
            ApprovalSubject::Payment(payment) => format!("payment {payment}"),
            ApprovalSubject::Call { id, tool, arguments } => {
                format!("call {id}\n  Tool      {}\n  Arguments {}", plain(tool), plain(arguments))
            }
        };
        let may = "with `automaton approvals approve` or `deny`, whoever can open this home";
        let may = match file.creator_address.as_deref().filter(|address| !address.is_empty()) {
            Some(address) => format!("{may}; or by signature, the address {address}"),
            None => may.to_owned(),
        };
        let what = line(&approval, &context.clock());
        let sha256 = &approval.action_sha256;
        format!("{what}\n  Exactly   {exactly}\n  SHA-256   {sha256}\n  Answer    {may}")
    })
}

fn print_message(
    context: &CommandContext,
    id: ApprovalId,
    word: ApprovalVerdict,
) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let Approval { action_sha256, expires_at, .. } = read_question(&reader, id)?;
    let text = answer_text(id, &action_sha256, word, expires_at);
    let view = ApprovalMessageView { approval: id, answer: word, message: text };
    context.format.answer(&view, || view.message.clone())
}

fn read_question(reader: &Reader, id: ApprovalId) -> Result<Approval, CliError> {
    reader.approval(id).map_err(|error| match error {
        StoreError::Missing { .. } => CliError::user(error.to_string())
            .hint("`automaton approvals list --all` shows what was asked"),
        other => other.into(),
    })
}

fn list(context: &CommandContext, which: ApprovalFilter) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let approvals = reader.approvals(which, SHOWN_MAX)?;
    if approvals.is_empty() && context.format == Format::Text {
        return ui::line(match which {
            ApprovalFilter::Waiting => "No question waits for your answer",
            ApprovalFilter::All => "Nothing was asked yet",
        });
    }
    let screen = context.screen();
    let words = |approval| wrap::hanging(&line(approval, &screen.when), screen.width());
    approvals.iter().try_for_each(|approval| {
        context.format.answer(&ApprovalView::from(approval), || words(approval))
    })
}

fn line(approval: &Approval, clock: &WallClock) -> String {
    let Approval { id, summary, reason, state, at, expires_at, .. } = approval;
    let what = short(&summary.text, 300);
    let why = short(reason, 300);
    let by = phrases::author(summary.label);
    let state = phrases::approval(*state);
    let asked = clock.with_age(*at);
    let until = clock.with_age(*expires_at);
    format!(
        "{id}  {state}; asked {asked}, open until {until}\n  {what} (caused by {by})\n  Why: {why}"
    )
}

fn answer(
    context: &CommandContext,
    args: &AnswerArgs,
    word: ApprovalVerdict,
) -> Result<(), CliError> {
    let (home, _) = context.inhabited()?;
    let AnswerArgs { id: approval, signature } = args;
    let signature = signature.clone();
    match send_or_store(&home, &ControlRequest::Answer { approval: *approval, word, signature })?.0
    {
        ControlResponse::Answered { summary } => {
            let done = match word {
                ApprovalVerdict::Approve => "Approved",
                ApprovalVerdict::Deny => "Denied",
            };
            let view = ApprovalAnswerView { approval: *approval, answer: word };
            context.format.answer(&view, || format!("{done}: {}", short(&summary, 300)))
        }
        other => Err(unexpected(other)),
    }
}
