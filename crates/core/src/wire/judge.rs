//! Pure: a call as people and tests ask about it, and what the policy says.
//!
//! `automaton policy judge` reads an [`JudgeRequest`] and prints a [`JudgeResponse`]; a file for
//! `automaton policy test` holds [`JudgeCases`]. A field that is misspelt is refused: a case
//! that tests something else than it says is worse than none.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::intent::Intent;
use crate::origin::{Origins, ValueOrigin};
use crate::tier::SurvivalTier;
use crate::trust::Label;

/// A call that nobody makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeRequest {
    /// The tool, as a model would name it.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// Labels of the texts that led to the call.
    #[serde(default)]
    pub labels: CallLabels,
    /// Assumed state of the automaton.
    #[serde(default)]
    pub state: JudgeState,
}

/// Labels of the texts that led to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallLabels {
    /// The least trusted text that the turn answers.
    pub input: Label,
    /// The least trusted text of the wake [default: as `input`].
    pub heard: Option<Label>,
    /// The most trusted who has named the recipient, URL, command or path of the call
    /// [default: nobody but the automaton, `self`].
    pub named: Option<Label>,
}

impl CallLabels {
    /// Returns the assumed origins of the call's values.
    #[must_use]
    pub fn origins(&self) -> Origins {
        Origins::assumed(match self.named {
            Some(Label::Creator) => ValueOrigin::Creator,
            None | Some(Label::Own | Label::Tool) => ValueOrigin::Own,
            Some(outside @ (Label::Peer | Label::Web)) => ValueOrigin::Outside(outside),
        })
    }
}

impl Default for CallLabels {
    fn default() -> Self {
        Self { input: Label::Creator, heard: None, named: None }
    }
}

/// Assumed state of an automaton.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JudgeState {
    /// Survival tier; `None` is unknown.
    pub tier: Option<SurvivalTier>,
    /// The hour of the day in UTC, 0 to 23.
    pub hour: u8,
    /// The number of the turn in its wake, from 1.
    pub turn: Option<u32>,
    /// The number of the call in its turn, from 1.
    pub call: Option<u32>,
    /// The creator's address.
    pub creator: Option<String>,
    /// Hosts that may be paid for a request.
    pub paid_hosts: Vec<String>,
    /// True if it may transfer credits by its own wish.
    pub gives_alone: bool,
    /// True if a change of purpose needs the creator's approval.
    pub purpose_asks: bool,
}

/// Outcome of a judged call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeOutcome {
    /// It would run.
    Allow,
    /// It would wait for the creator's word.
    Ask,
    /// It would be refused.
    Deny,
    /// It is no call of the tool's, and would never be judged.
    Invalid,
}

/// Judgement of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeResponse {
    /// Outcome.
    pub outcome: JudgeOutcome,
    /// The code of the rule that decides; empty where it was not judged.
    pub code: String,
    /// Reason, in a sentence or two.
    pub reason: String,
    /// SHA-256 of the arguments with sorted keys.
    pub args_sha256: Option<String>,
    /// Intents of the call.
    pub intents: Vec<Intent>,
    /// The rules that were asked, in order.
    pub rules_evaluated: Vec<String>,
    /// Those that objected.
    pub rules_triggered: Vec<String>,
}

/// A file of cases.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeCases {
    /// The cases, in order.
    pub case: Vec<JudgeCase>,
}

/// A call, and how it should come out.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeCase {
    /// Name of the case.
    pub name: String,
    /// As in [`JudgeRequest`].
    pub tool: String,
    /// As in [`JudgeRequest`].
    pub arguments: Value,
    /// As in [`JudgeRequest`].
    #[serde(default)]
    pub labels: CallLabels,
    /// As in [`JudgeRequest`].
    #[serde(default)]
    pub state: JudgeState,
    /// Expected judgement.
    pub expect: JudgeExpectation,
}

/// Expected judgement of a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeExpectation {
    /// The outcome.
    pub outcome: JudgeOutcome,
    /// A rule that has to object.
    pub rule: Option<String>,
}

impl JudgeCase {
    /// The call.
    #[must_use]
    pub fn asked(&self) -> JudgeRequest {
        let Self { tool, arguments, labels, state, .. } = self;
        let tool = tool.clone();
        let arguments = arguments.clone();
        JudgeRequest { tool, arguments, labels: *labels, state: state.clone() }
    }

    /// Returns true if the judgement is the expected one.
    #[must_use]
    pub fn is_met(&self, judged: &JudgeResponse) -> bool {
        let JudgeExpectation { outcome, rule } = &self.expect;
        let objected = |rule: &String| judged.rules_triggered.contains(rule);
        judged.outcome == *outcome && rule.as_ref().is_none_or(objected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_misspelt_is_refused() {
        let whole = r#"{"tool":"exec","arguments":{},"labels":{"input":"web"},"state":{"hour":3}}"#;
        let asked: JudgeRequest = serde_json::from_str(whole).unwrap();
        assert_eq!((asked.labels.input, asked.state.hour), (Label::Web, 3));
        for (right, wrong) in [("labels", "label"), ("hour", "hours"), ("\"web\"", "\"wep\"")] {
            assert!(
                serde_json::from_str::<JudgeRequest>(&whole.replace(right, wrong)).is_err(),
                "{wrong}"
            );
        }
    }
}
