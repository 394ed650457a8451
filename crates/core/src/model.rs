//! Pure: what a model is called, what it is asked for, and which one is meant for that. It must
//! never tell what a model can do.

use derive_more::Display;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Names;
use crate::tier::SurvivalTier;

/// The id of a model, as whoever serves it wants to read it. Any text may be one.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    Display,
)]
#[serde(transparent)]
pub struct ModelId(String);

impl ModelId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for ModelId {
    fn from(id: T) -> Self {
        Self(id.into())
    }
}

impl PartialEq<str> for ModelId {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

/// Task for which a model is called.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Names)]
pub enum InferenceTask {
    /// The next turn of the agent
    AgentTurn,
    /// Decide if a heartbeat event is worth a wake
    HeartbeatTriage,
    /// Decide if an action is safe
    SafetyCheck,
    /// A short text of a long one
    Summarization,
    /// The steps to a goal
    Planning,
}

/// Choice of a model, as the record keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelChoice {
    /// Task of the call.
    pub task: InferenceTask,
    /// Survival tier, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<SurvivalTier>,
    /// The model that stood in the usual one's place by choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<ModelId>,
    /// Candidates in order, each with its outcome.
    pub steps: Vec<ChoiceStep>,
}

/// Outcome of one candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceStep {
    /// The model.
    pub model: ModelId,
    /// Seller that serves it.
    pub seller: String,
    /// Outcome.
    pub outcome: ChoiceOutcome,
    /// Reason, as a sentence or the end of one; empty if it answered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Outcome of a candidate model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceOutcome {
    /// It answered.
    Answered,
    /// It was asked, and did not answer.
    Failed,
    /// It was not asked, since its answer may have cost too much.
    TooDear,
    /// It was not to be asked.
    Skipped,
}

/// Which models may do a task, and what one answer may have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoutingRule {
    /// The models, best first: `usual`, `low_compute` and `critical` for those of the
    /// configuration, or the name of one.
    pub models: Vec<String>,
    /// The most tokens of an answer; 0 is as many as usual.
    #[serde(default)]
    pub max_tokens: u32,
    /// The most that an answer may cost, in cents; 0 is without limit.
    #[serde(default)]
    pub ceiling_cents: u32,
}
