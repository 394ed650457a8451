//! Views of models.

use std::collections::BTreeMap;
use std::path::PathBuf;

use automaton_core::model::{InferenceTask, ModelChoice, ModelId, RoutingRule};
use automaton_core::money::Microcents;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::Timestamp;
use automaton_core::wire::control::ModelStatus;
use automaton_inference::routing::RoutingMatrix;
use automaton_store::ModelSpend;
use schemars::JsonSchema;
use serde::Serialize;

use crate::config::values::FileHash;
use crate::local_models::LocalModelEntry;

/// Models: of an automaton, or without one those of this machine.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ModelListOutput {
    /// The models of an automaton.
    Configured(ConfiguredModelsView),
    /// The models that could think on this machine.
    Local(LocalModelsView),
}

/// The models of an automaton.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ConfiguredModelsView {
    /// The models that it may think with.
    pub(crate) models: Vec<ModelStatus>,
    /// The rules by which one is chosen.
    pub(crate) rules: RoutingMatrixView,
    /// The models on this machine and in the catalogue.
    #[serde(flatten)]
    pub(crate) local: LocalModelsView,
}

/// Models that can think on this machine.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct LocalModelsView {
    /// The models with a file on this machine.
    pub(crate) here: Vec<LocalModelView>,
    /// The other models of the catalogue.
    pub(crate) catalogue: Vec<LocalModelView>,
}

/// The rules by which a model is chosen.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoutingMatrixView {
    /// The longest silence of a server by task, in seconds.
    pub(crate) timeout_seconds: BTreeMap<InferenceTask, u32>,
    /// The rules by survival tier and task.
    pub(crate) tiers: BTreeMap<SurvivalTier, BTreeMap<InferenceTask, RoutingRule>>,
}

impl From<&RoutingMatrix> for RoutingMatrixView {
    fn from(matrix: &RoutingMatrix) -> Self {
        Self { timeout_seconds: matrix.timeouts().clone(), tiers: matrix.rules().clone() }
    }
}

/// A model as a catalogue has it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LocalModelView {
    /// Its name.
    pub(crate) name: String,
    /// Address of its file; absent if nobody offers the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// SHA-256 of the file, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<FileHash>,
    /// Its size, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// Its licence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) licence: Option<String>,
    /// Tokens of the window that it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_tokens: Option<u32>,
    /// Note for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

impl From<&LocalModelEntry> for LocalModelView {
    fn from(entry: &LocalModelEntry) -> Self {
        let LocalModelEntry { name, url, sha256, bytes, licence, context_tokens, note } =
            entry.clone();
        Self { name, url, sha256, bytes, licence, context_tokens, note }
    }
}

/// The choice of a turn's model.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ModelChoiceView {
    /// The number of the turn.
    pub(crate) turn: u64,
    /// The choice.
    pub(crate) choice: ModelChoice,
}

/// Cost of the answers by model, and the ceilings.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ModelSpendReportView {
    /// Start of the report, in milliseconds since 1970.
    pub(crate) since: Timestamp,
    /// Usage and cost by model.
    pub(crate) models: Vec<ModelSpendView>,
    /// The ceilings, and the sums spent of them.
    pub(crate) ceilings: Vec<CeilingView>,
}

/// Usage and cost of one model's answers.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ModelSpendView {
    /// The model.
    pub(crate) model: ModelId,
    /// Answers.
    pub(crate) answers: u64,
    /// Tokens of their prompts, cached ones included.
    pub(crate) prompt_tokens: u64,
    /// Prompt tokens that came from a cache.
    pub(crate) cached_tokens: u64,
    /// Tokens of the answers.
    pub(crate) completion_tokens: u64,
    /// Cost.
    pub(crate) cost: Microcents,
}

impl From<&ModelSpend> for ModelSpendView {
    fn from(row: &ModelSpend) -> Self {
        let ModelSpend { model, answers, prompt_tokens, cached_tokens, completion_tokens, cost } =
            row.clone();
        Self { model, answers, prompt_tokens, cached_tokens, completion_tokens, cost }
    }
}

/// A ceiling on the cost of thinking.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct CeilingView {
    /// Its key in automaton.json.
    pub(crate) key: String,
    /// The sum spent.
    pub(crate) spent: Microcents,
    /// The ceiling.
    pub(crate) limit: Microcents,
}

/// The model that was chosen.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ModelUseView {
    /// The model; `null` for the usual one.
    pub(crate) model: Option<ModelId>,
    /// True if the automaton runs.
    pub(crate) running: bool,
}

/// A model with a file on this machine.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PulledModelView {
    /// The model.
    pub(crate) model: LocalModelView,
    /// Its file.
    pub(crate) file: PathBuf,
}
