//! Information about models, and their choice.
//!
//! It may think with any that costs no more than the one that its creator gave it: a dearer one is
//! the creator's to choose. A name that is not known must never be taken on trust.

use automaton_core::error::ErrorClass;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::model::ModelId;
use automaton_core::money::Microcents;
use automaton_core::time::Span;
use automaton_core::wire::control::ModelStatus;
use automaton_inference::ModelInfo;
use automaton_store::{ChosenModel, ModelSpend};
use automaton_tools::HandleError;
use automaton_tools::context::{self, HandleFuture};

use super::memory::of_store;
use crate::deps::AgentDeps;
use crate::settings::Settings;

/// The models of one automaton.
pub(crate) struct ModelsView {
    deps: AgentDeps,
    ceilings: InferenceCeilings,
}

impl ModelsView {
    pub(super) fn new(settings: &Settings, deps: &AgentDeps) -> Self {
        Self { deps: deps.clone(), ceilings: settings.budgets.ceilings }
    }

    async fn list(&self) -> Result<String, HandleError> {
        let deps = &self.deps;
        let vitals = deps.store.vitals().await.map_err(of_store)?;
        let usual = deps.providers.usual();
        let all = deps.providers.all();
        let line = |row: ModelStatus| {
            let ModelStatus { model, seller, context_tokens, .. } = &row;
            let known = all
                .iter()
                .find(|(_, known)| known.provider.model().id == *model && known.seller == *seller);
            let is_creators = known.is_some_and(|(_, known)| {
                !may_take(usual.provider.model(), known.provider.model())
            });
            let mut marks: Vec<&str> = row.roles.iter().map(|role| role.name()).collect();
            let all = [
                (row.thinks, "thinks now"),
                (row.chosen, "chosen"),
                (row.avoided, "failed lately"),
                (is_creators, "your creator's to choose"),
            ];
            marks.extend(all.into_iter().filter_map(|(is, mark)| is.then_some(mark)));
            format!(
                "{model} of {seller} [{}]: {}, window {context_tokens} tokens",
                marks.join(", "),
                prices(&row)
            )
        };
        let lines: Vec<String> = deps.model_rows(&vitals).into_iter().map(line).collect();
        Ok(lines.join("\n"))
    }

    async fn switch(&self, to: Option<ModelId>) -> Result<String, HandleError> {
        let deps = &self.deps;
        let known = deps.store.chosen_model().await.map_err(of_store)?;
        if known.is_some_and(|known| known.by_creator) {
            let message = "your creator chose the model that thinks".to_owned();
            let hint = Some("Ask your creator: `automaton model use` chooses another.".to_owned());
            return Err(HandleError { kind: ErrorClass::Denied, message, hint });
        }
        if let Some(wanted) = &to {
            let all = deps.providers.all();
            let found = all.iter().find(|(_, known)| known.provider.model().id == *wanted);
            let Some((_, known)) = found else {
                let message = format!("there is no model '{wanted}'");
                let hint = Some("list_models shows those that there are.".to_owned());
                return Err(HandleError { kind: ErrorClass::User, message, hint });
            };
            if !may_take(deps.providers.usual().provider.model(), known.provider.model()) {
                let message =
                    format!("{wanted} costs more than the model that you were given, or is weaker");
                let hint = Some("Ask your creator: `automaton model use` chooses it.".to_owned());
                return Err(HandleError { kind: ErrorClass::Denied, message, hint });
            }
        }
        let chosen = to.clone().map(|model| ChosenModel { model, by_creator: false });
        deps.store.choose_model(chosen).await.map_err(of_store)?;
        deps.providers.choose(to.clone());
        let usual = deps.providers.usual();
        let usual = &usual.provider.model().id;
        Ok(match to {
            Some(model) => {
                format!("From your next turn on {model} thinks, while you are not poor.")
            }
            None => {
                format!("From your next turn on {usual} thinks, as your creator gave it to you.")
            }
        })
    }

    async fn spent(&self, model: Option<ModelId>, days: u32) -> Result<String, HandleError> {
        let store = &self.deps.store;
        let span = Span::from_secs(i64::from(days) * 24 * 3600);
        let since = self.deps.ids.now().before(span);
        let spend = store.thinking_cost().await.map_err(of_store)?;
        let unheard = store.unsettled_most().await.map_err(of_store)?;
        let mut lines = vec![
            format!("last hour: {}", spend.hour),
            format!("this wake: {}", spend.session),
            format!("last 24 hours: {}", spend.day),
        ];
        for (scope, spent, limit) in self.ceilings.each(&spend) {
            lines.push(format!("of {limit} {scope} you have used {spent} (`{}`)", scope.key()));
        }
        if unheard.units() > 0 {
            lines.push(format!("of that not known yet, at most: {unheard}"));
        }
        let models = store.spend_by_model(since).await.map_err(of_store)?;
        let wanted = |row: &&ModelSpend| model.as_ref().is_none_or(|model| row.model == *model);
        let of_models = models.iter().filter(wanted).map(|row| {
            format!("{}: {} in {} answers of {days} days", row.model, row.cost, row.answers)
        });
        lines.extend(of_models);
        Ok(lines.join("\n"))
    }
}

/// Returns true if a model may be chosen without the creator: no price is higher, and it is not
/// weaker than the default model.
pub(crate) fn may_take(usual: &ModelInfo, model: &ModelInfo) -> bool {
    let is_no_dearer =
        model.prices.or_dearer(&usual.prices) == usual.prices.or_dearer(&usual.prices);
    is_no_dearer && model.weak <= usual.weak
}

fn prices(row: &ModelStatus) -> String {
    match (row.input_per_million, row.output_per_million) {
        (Microcents::ZERO, Microcents::ZERO) => "free".to_owned(),
        (input, output) => format!("{input} in and {output} out for a million tokens"),
    }
}

impl context::ModelsHandle for ModelsView {
    fn models(&self) -> HandleFuture<'_, String> {
        Box::pin(self.list())
    }

    fn switch_model(&self, to: Option<ModelId>) -> HandleFuture<'_, String> {
        Box::pin(self.switch(to))
    }

    fn spending(&self, model: Option<ModelId>, days: u32) -> HandleFuture<'_, String> {
        Box::pin(self.spent(model, days))
    }
}
