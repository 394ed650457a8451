//! The list of views, by the command that prints each.

use std::fmt;

use automaton_core::memory::MemoryItem;
use automaton_core::pnl::ProfitAndLoss;
use automaton_core::wire::cloud::{BalanceReply, StatusReply};
use schemars::{JsonSchema, Schema, schema_for};

use super::alerts::{AlertView, EgressRequestView};
use super::approvals::{ApprovalAnswerView, ApprovalMessageView, ApprovalView};
use super::audit::{
    AuditEntryView, AuditHeadView, AuditVerifyView, BackupView, ExportHeaderView, RestoredLifeView,
};
use super::heartbeat::{HeartbeatOutput, HeartbeatRunOutput};
use super::limits::{LimitsMessageView, LimitsOutput};
use super::memory::{
    ForgottenView, ImportedView, PromptView, SoulChangedView, SoulDifferenceView, SoulHistoryView,
    SoulView, VectorsView, WorklogTextView,
};
use super::messages::{ChatOutput, MessageClosedView, MessageDetailsView, MessageView};
use super::models::{
    ModelChoiceView, ModelListOutput, ModelSpendReportView, ModelUseView, PulledModelView,
};
use super::policy::{
    JudgementView, PolicyCaseView, PolicyCheckView, PolicyExplainOutput, PolicyFileView, PolicyView,
};
use super::schema::OutputNameView;
use super::send::{SendOutput, StoppingView, WokenView};
use super::status::StatusOutput;
use super::turns::{TurnDetailsView, TurnView};
use super::wallet::{
    AccountView, CloudView, FundOutput, NewWalletView, PurchaseReceiptView, RefundView,
    UnclaimedListView, WalletView,
};

/// Number of JSON documents that a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputForm {
    /// One document.
    Document,
    /// One object a line, each of the view.
    Lines,
}

/// The `--json` output of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputView {
    /// The words of the command, joined by hyphens: `approvals-list`.
    pub(crate) name: &'static str,
    /// Number of documents.
    pub(crate) form: OutputForm,
    /// The content, in one phrase.
    pub(crate) about: &'static str,
    /// Returns the JSON Schema of one document.
    pub(crate) schema: fn() -> Schema,
}

impl fmt::Display for OutputView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            OutputForm::Document => "",
            OutputForm::Lines => ", one object a line",
        };
        write!(f, "{:<20} {}{form}", self.name, self.about)
    }
}

const fn document<T: JsonSchema>(name: &'static str, about: &'static str) -> OutputView {
    OutputView { name, form: OutputForm::Document, about, schema: schema_of::<T> }
}

const fn lines<T: JsonSchema>(name: &'static str, about: &'static str) -> OutputView {
    OutputView { name, form: OutputForm::Lines, about, schema: schema_of::<T> }
}

fn schema_of<T: JsonSchema>() -> Schema {
    schema_for!(T)
}

/// All views, by name.
pub(crate) const VIEWS: &[OutputView] = &[
    document::<Vec<AlertView>>("alerts", "Alerts, active ones first"),
    document::<ApprovalAnswerView>("approvals-approve", "A question, and your answer to it"),
    document::<ApprovalAnswerView>("approvals-deny", "A question, and your answer to it"),
    lines::<ApprovalView>("approvals-list", "Questions that need your approval"),
    document::<ApprovalMessageView>("approvals-message", "The text to sign to answer a question"),
    document::<ApprovalView>("approvals-show", "A question that needs your approval"),
    document::<ExportHeaderView>("audit-export", "The first line of the exported record"),
    document::<AuditHeadView>("audit-head", "The head of the record"),
    lines::<AuditEntryView<'_>>("audit-show", "Entries of the record"),
    document::<AuditVerifyView>("audit-verify", "A check of the record"),
    document::<BackupView>("backup", "The backup that was made"),
    lines::<ChatOutput>("chat", "Messages, beside the events"),
    document::<CloudView>("cloud", "The address of a cloud that runs"),
    document::<RefundView>("cloud-refund", "The purchase or charge that was given back"),
    document::<StatusReply>("cloud-status", "The latest report of an automaton to its cloud"),
    document::<UnclaimedListView>("cloud-unclaimed", "Credits of wallets that never signed in"),
    document::<BalanceReply>("credits", "The credits that are left with the cloud"),
    document::<Vec<EgressRequestView>>("egress", "Requests of commands out of the sandbox"),
    document::<FundOutput>("fund", "USDC or ether that was given, or a request for it"),
    lines::<HeartbeatOutput>("heartbeat", "The schedule, or the runs of one entry"),
    document::<HeartbeatRunOutput>("heartbeat-run", "The run of an entry"),
    document::<LimitsOutput>("limits-accept", "The limits of the wallet after the change"),
    document::<LimitsOutput>("limits-creator", "The limits of the wallet after the change"),
    document::<LimitsMessageView>("limits-message", "The text to sign to raise limits"),
    document::<LimitsOutput>("limits-set", "The limits of the wallet after the change"),
    document::<LimitsOutput>("limits-show", "The limits of the wallet and the sums spent"),
    lines::<MemoryItem>("memory-export", "All items of the memory"),
    document::<ForgottenView>("memory-forget", "The item that was forgotten"),
    document::<ImportedView>("memory-import", "The number of items that were imported"),
    document::<Vec<MemoryItem>>("memory-search", "Items of the memory, best match first"),
    document::<MemoryItem>("memory-show", "An item of the memory"),
    document::<VectorsView>("memory-vectors", "The vectors of the memory"),
    lines::<MessageView>("messages", "Messages between you and the automaton"),
    document::<MessageClosedView>("messages-close", "A message that was closed"),
    document::<MessageDetailsView>("messages-show", "A message with the id of its answer"),
    document::<ModelListOutput>("model-list", "Models, and the rules by which one is chosen"),
    document::<PulledModelView>("model-pull", "A model with its file on this machine"),
    document::<ModelSpendReportView>(
        "model-spend",
        "Cost of the answers by model, and the ceilings",
    ),
    document::<ModelUseView>("model-use", "The model that was chosen"),
    document::<ModelChoiceView>("model-why", "The choice of a turn's model"),
    document::<ProfitAndLoss>("pnl", "Revenue and cost"),
    document::<PolicyCheckView>("policy-check", "A check of your rules"),
    document::<PolicyExplainOutput>("policy-explain", "A rule, or a decision with its rules"),
    document::<PolicyFileView>("policy-init", "The file of rules that was written"),
    document::<JudgementView>("policy-judge", "The judgement of a call"),
    document::<PolicyView>("policy-show", "Tools, authorities, rules and limits"),
    lines::<PolicyCaseView>("policy-test", "Cases with their judgements"),
    document::<PromptView>("prompt", "The prompt of the next turn"),
    document::<AccountView>("provision", "The account with a cloud"),
    document::<RestoredLifeView>("restore", "The life that was restored"),
    lines::<OutputNameView>("schema", "Names of outputs, with `--list`"),
    document::<SendOutput>("send", "The message that was sent; with `--wait` after the events"),
    document::<Vec<SoulDifferenceView>>("soul-diff", "Sections that two versions differ in"),
    document::<SoulHistoryView>("soul-history", "Versions of the soul"),
    document::<SoulChangedView>("soul-restore", "The new version of the soul"),
    document::<SoulChangedView>("soul-set", "The new version of the soul"),
    document::<SoulView>("soul-show", "A version of the soul"),
    document::<StatusOutput<'_>>("status", "State, balance, inbox, alerts and record"),
    document::<StoppingView>("stop", "The stop that was asked for"),
    document::<PurchaseReceiptView>("topup", "The purchase of credits"),
    document::<TurnDetailsView>("turn", "Everything on record about one turn"),
    lines::<TurnView>("turns", "Turns with their thoughts and calls"),
    document::<WokenView>("wake", "The wake that was asked for"),
    document::<NewWalletView>("wallet-import", "The wallet that was imported"),
    document::<NewWalletView>("wallet-new", "The wallet that was made"),
    document::<WalletView>("wallet-show", "The wallet's address"),
    document::<Option<WorklogTextView>>("worklog", "The worklog; `null` without one"),
];

/// Returns the view of a name, which may be written with blanks as the command is.
pub(crate) fn find(name: &str) -> Option<&'static OutputView> {
    let words = name.split([' ', '-']).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    VIEWS.iter().find(|view| view.name == name)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    /// Commands whose output is a text, another document or another program's.
    const WITHOUT_VIEW: &[(&str, &str)] = &[
        ("bench", "another program prints it"),
        ("cloud-openapi", "an OpenAPI document"),
        ("completions", "a script"),
        ("constitution", "a text"),
        ("drill", "another program prints it"),
        ("logs", "events"),
        ("model-bench", "another program prints it"),
        ("run", "events"),
        ("sandbox-shell", "a terminal"),
        ("up", "events"),
    ];

    /// Commands whose output is not in this module yet.
    const NOT_YET: &[&str] = &[
        "devnet",
        "export-key",
        "guard-scan",
        "init",
        "sandbox-probe",
        "sandbox-run",
        "workspace-restore",
        "workspace-snapshot",
        "workspace-snapshots",
        "x402-fetch",
    ];

    /// Adds the names of the commands that do something, those below `command` included.
    fn add_commands(command: &clap::Command, name: &str, found: &mut Vec<String>) {
        let below: Vec<_> =
            command.get_subcommands().filter(|below| below.get_name() != "help").collect();
        if !name.is_empty() && !command.is_subcommand_required_set() {
            found.push(name.to_owned());
        }
        for command in below {
            let name = format!("{name}-{}", command.get_name());
            add_commands(command, name.trim_start_matches('-'), found);
        }
    }

    #[test]
    fn each_command_has_a_view_or_a_reason_for_none() {
        let mut commands = Vec::new();
        add_commands(&Cli::command(), "", &mut commands);
        assert!(commands.iter().any(|name| name == "approvals-list"), "{commands:?}");
        let is_known = |name: &str| {
            VIEWS.iter().any(|view| view.name == name)
                || WITHOUT_VIEW.iter().any(|(other, _)| *other == name)
                || NOT_YET.contains(&name)
        };
        let unknown: Vec<_> = commands.iter().filter(|name| !is_known(name)).collect();
        assert!(unknown.is_empty(), "no view: {unknown:?}");
        let names = VIEWS.iter().map(|view| view.name);
        let gone: Vec<_> = names
            .chain(WITHOUT_VIEW.iter().map(|(name, _)| *name))
            .chain(NOT_YET.iter().copied())
            .filter(|name| !commands.iter().any(|command| command == name))
            .collect();
        assert!(gone.is_empty(), "no such command: {gone:?}");
    }

    #[test]
    fn names_are_sorted_and_unique_and_read_with_blanks() {
        assert!(VIEWS.is_sorted_by(|one, next| one.name < next.name));
        assert!(find("approvals list").is_some_and(|view| view.name == "approvals-list"));
        assert!(find("approval").is_none());
    }

    #[test]
    fn each_schema_is_of_objects_with_described_properties() {
        for view in VIEWS {
            let schema = (view.schema)();
            assert!(schema.get("title").is_some() || schema.get("type").is_some(), "{}", view.name);
        }
    }
}
