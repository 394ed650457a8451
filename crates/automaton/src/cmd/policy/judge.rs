//! `policy judge`: what the policy would say of a call, by the very code that says it.
//!
//! The call is checked by its tool's schema, parsed, asked for its intents and judged, as
//! in a turn; only the facts come from whoever asks. Nothing is run and nothing stored.

use std::io;
use std::path::Path;

use automaton_agent::ToolSet;
use automaton_core::error::ErrorClass;
use automaton_core::record::DecisionOutcome;
use automaton_core::time::Timestamp;
use automaton_core::tool::{ArgsHash, ToolSpec};
use automaton_core::wire::judge::{JudgeOutcome, JudgeRequest, JudgeResponse};
use automaton_inference::RawCall;
use automaton_policy::rates::Attempts;
use automaton_policy::{Facts, Judge, RuleContext};
use automaton_tools::secrets_in;

use super::super::CommandContext;
use crate::error::CliError;
use crate::operator;
use crate::text_file;
use crate::view::policy::JudgementView;

/// The most that is read of a call or a file of cases, in bytes.
const INPUT_BYTES_MAX: u64 = 4 << 20;
/// An hour in milliseconds.
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Judges the call on stdin.
pub(super) fn run(context: &CommandContext, rules: Option<&Path>) -> Result<(), CliError> {
    let bench = PolicyTestBench::new(context, rules)?;
    let text = text_file::read_open(io::stdin().lock(), INPUT_BYTES_MAX)
        .map_err(|error| CliError::user("cannot read a call from stdin").because(&error))?;
    let asked: JudgeRequest = serde_json::from_str(&text).map_err(|error| {
        CliError::user("stdin holds no call").because(&text_file::corrected(&error)).hint(
            "{\"tool\": \"exec\", \"arguments\": {\"command\": \"ls\"}, \"labels\": {\"input\": \
             \"creator\"}, \"state\": {}}",
        )
    })?;
    let judged = bench.judge(&asked)?;
    context.format.answer(&JudgementView::from(&judged), || words(&judged))
}

/// A verdict in words.
pub(super) fn words(judged: &JudgeResponse) -> String {
    let JudgeResponse { outcome, code, reason, rules_triggered, .. } = judged;
    let verdict = match outcome {
        JudgeOutcome::Allow => "allowed",
        JudgeOutcome::Ask => "needs your approval",
        JudgeOutcome::Deny => "refused",
        JudgeOutcome::Invalid => return format!("not a valid call of this tool: {reason}"),
    };
    let by = match rules_triggered.as_slice() {
        [] => String::new(),
        rules => format!("\n  by {}", rules.join(", ")),
    };
    format!("{verdict} ({code}): {reason}{by}")
}

/// A text file that a person named.
///
/// # Errors
/// When it cannot be read, or is too large to be what it should.
pub(super) fn read(path: &Path) -> Result<String, CliError> {
    let failed = |error: &io::Error| {
        CliError::user(format!("cannot read {}", path.display())).because(error)
    };
    text_file::read_required(path, INPUT_BYTES_MAX).map_err(|error| failed(&error))
}

/// Environment for trial calls.
pub(super) struct PolicyTestBench {
    judge: Judge,
    tools: ToolSet,
    offered: Vec<ToolSpec>,
}

impl PolicyTestBench {
    /// One with the rules of a file, else with those of the home.
    pub(super) fn new(context: &CommandContext, rules: Option<&Path>) -> Result<Self, CliError> {
        let judge = match rules {
            Some(file) => operator::judge(file, Some(&read(file)?))?,
            None => {
                let home = context.home()?;
                operator::judge(&operator::path(&home), operator::text(&home)?.as_deref())?
            }
        };
        let tools = ToolSet::built_in()?;
        let offered = tools.specs();
        Ok(Self { judge, tools, offered })
    }

    /// Judges a call.
    ///
    /// # Errors
    /// When what it is asked under makes no sense.
    pub(super) fn judge(&self, asked: &JudgeRequest) -> Result<JudgeResponse, CliError> {
        let JudgeRequest { tool, arguments, labels, state } = asked;
        let creator = state.creator.as_deref().map(str::parse).transpose();
        let creator = creator.map_err(|error| CliError::user("`creator`").because(&error))?;
        if state.hour > 23 {
            let what = format!("`hour` is 0 to 23, not {}", state.hour);
            return Err(CliError::new(ErrorClass::User, what));
        }
        let tool = tool.clone();
        let arguments = arguments.to_string();
        let call = RawCall { provider_id: None, tool, arguments };
        let parsed = match self.tools.parse_call(&self.offered, &call) {
            Ok(parsed) => parsed,
            Err(fault) => return Ok(invalid(fault.sentence)),
        };
        let spec = parsed.tool.spec();
        let facts = Facts {
            input: labels.input,
            heard: labels.heard.unwrap_or(labels.input).meet(labels.input),
            risk: spec.risk,
            creator,
            paid_hosts: state.paid_hosts.clone(),
            egress: std::sync::Arc::default(),
            origins: labels.origins(),
            secrets: secrets_in(&parsed.checked.arguments, &[]),
            attempts: Attempts::default(),
            creator_waits: false,
            gives_alone: state.gives_alone,
            published_before: false,
            purpose_asks: state.purpose_asks,
            tier: state.tier,
            hard_limit: None,
        };
        let moment = RuleContext {
            tool: &spec.name,
            at: Timestamp::from_millis(i64::from(state.hour) * HOUR_MS),
            tier: state.tier,
            turn: state.turn.unwrap_or(1),
            call: state.call.unwrap_or(1),
        };
        let verdict = self.judge.judge(parsed.prepared, &facts, &moment, None);
        let decision = verdict.decision();
        Ok(JudgeResponse {
            outcome: match decision.outcome {
                DecisionOutcome::Allow => JudgeOutcome::Allow,
                DecisionOutcome::Ask => JudgeOutcome::Ask,
                DecisionOutcome::Deny => JudgeOutcome::Deny,
            },
            code: decision.code.name().to_owned(),
            reason: decision.reason.to_string(),
            args_sha256: Some(ArgsHash::of(&parsed.checked.arguments).to_string()),
            intents: decision.intents.clone(),
            rules_evaluated: decision.evaluated().map(str::to_owned).collect(),
            rules_triggered: decision.triggered().map(str::to_owned).collect(),
        })
    }
}

/// A call that never comes before the policy.
fn invalid(reason: String) -> JudgeResponse {
    JudgeResponse {
        outcome: JudgeOutcome::Invalid,
        code: String::new(),
        reason,
        args_sha256: None,
        intents: Vec::new(),
        rules_evaluated: Vec::new(),
        rules_triggered: Vec::new(),
    }
}
