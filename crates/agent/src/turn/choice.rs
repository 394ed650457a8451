//! Record of the choice of a model for a turn.
//!
//! In the words of this program alone: what a server said when it failed must never get in.

use automaton_core::error::chain;
use automaton_core::inference_budget::OverCeiling;
use automaton_core::model::{ChoiceOutcome, ChoiceStep, InferenceTask, ModelChoice};
use automaton_inference::{ModelIndex, ProviderRegistry, Route};

use super::WakeContext;
use crate::metered::NotAnswered;

/// A choice that is being made.
pub(super) struct ChoiceTrail<'a> {
    providers: &'a ProviderRegistry,
    choice: ModelChoice,
}

impl<'a> ChoiceTrail<'a> {
    /// Begins with what the route leaves out.
    pub(super) fn begin(
        providers: &'a ProviderRegistry,
        wake: &WakeContext,
        task: InferenceTask,
        route: &Route,
    ) -> Self {
        let tier = wake.vitals.effective_tier();
        let chosen = providers.chosen();
        let mut trail =
            Self { providers, choice: ModelChoice { task, tier, chosen, steps: Vec::new() } };
        for (at, why) in &route.skipped {
            trail.add(*at, ChoiceOutcome::Skipped, why.words());
        }
        trail
    }

    /// The model answered.
    pub(super) fn answered(&mut self, at: ModelIndex) {
        self.add(at, ChoiceOutcome::Answered, "");
    }

    /// It was not asked, since its answer may cost too much.
    pub(super) fn too_dear(&mut self, at: ModelIndex, over: &OverCeiling) {
        self.add(at, ChoiceOutcome::TooDear, over.to_string());
    }

    /// It did not answer.
    pub(super) fn failed(&mut self, at: ModelIndex, error: &NotAnswered) {
        self.add(at, ChoiceOutcome::Failed, error.brief());
    }

    /// The last model that was asked and did not answer, with why.
    pub(super) fn failure(&self, error: &NotAnswered) -> Option<String> {
        let is_failed = |step: &&ChoiceStep| step.outcome == ChoiceOutcome::Failed;
        let step = self.choice.steps.iter().rev().find(is_failed)?;
        let ChoiceStep { model, seller, .. } = step;
        Some(format!("{model} of {seller} gave no answer ({})", chain(error)))
    }

    /// The choice as it was made.
    pub(super) fn end(self) -> ModelChoice {
        self.choice
    }

    fn add(&mut self, at: ModelIndex, outcome: ChoiceOutcome, why: impl Into<String>) {
        let known = self.providers.get(at);
        let model = known.provider.model().id.clone();
        let seller = known.seller.clone();
        // What was too dear at first is tried once more without the wish of the matrix.
        self.choice.steps.retain(|step| (&step.model, &step.seller) != (&model, &seller));
        self.choice.steps.push(ChoiceStep { model, seller, outcome, why: why.into() });
    }
}
