//! `refresh_models`: asks the cloud which models it sells and for how much, has its prices hold
//! from now on, and notices when the model that the automaton thinks with is no longer sold.
//!
//! A price that rose must never be booked as the one before: whoever sets too little aside passes
//! a ceiling.

use automaton_core::error::ErrorClass;
use automaton_core::event::Event;
use automaton_core::record::WakeSource;
use automaton_core::time::Span;
use automaton_core::wire::cloud::ModelRow;
use automaton_inference::catalogue;
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext};
use crate::heartbeat::due::Need;
use crate::life::known_choice;
use crate::wake::cause;

pub(super) const TASK: TaskSpec = TaskSpec {
    name: "refresh_models",
    need: Need::Other,
    essential: false,
    cron: "10 * * * *",
    timeout: Span::from_secs(30),
    max_retries: 1,
    is_available: |deps| deps.treasury.as_ref().is_some_and(|treasury| treasury.has_account()),
    run: |ground, tick| refresh(ground, tick).boxed(),
};

async fn refresh(ground: &TaskContext, _tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let nothing = || TaskFailure("there is no account with a cloud".to_owned());
    let treasury = ground.deps.treasury.as_ref().ok_or_else(nothing)?;
    let sold = treasury.models().await?.ok_or_else(nothing)?.data;
    let changed = reprice(ground, &sold).await?;
    ground.deps.embedder.iter().for_each(|embedder| embedder.reprice(&sold));
    let usual = ground.deps.providers.usual();
    let own = usual.provider.model();
    let found = sold.iter().any(|model| model.id == own.id && model.available);
    // Who thinks with a model of its own buys none.
    let bought = own.prices.output_per_million.units() > 0;
    let gone = bought && !found;
    let reason = "The cloud no longer sells the model that you think with.";
    let wake = gone.then(|| cause(WakeSource::Heartbeat, reason));
    let prices = if changed == 0 { String::new() } else { format!(", {changed} at new prices") };
    Ok(TaskReport::done(format!("{} models for sale{prices}", sold.len())).waking(wake))
}

/// Has the cloud's prices hold; how many have changed.
async fn reprice(ground: &TaskContext, sold: &[ModelRow]) -> Result<usize, TaskFailure> {
    let deps = &ground.deps;
    // The models of a cloud are all that one with an account has, but for one on this machine.
    let seller = deps.providers.usual().seller.clone();
    let mut changed = 0;
    for (at, known) in deps.providers.all().into_iter().filter(|(_, it)| it.seller == seller) {
        let id = &known.provider.model().id;
        let Some(row) = sold.iter().find(|row| row.id == *id) else { continue };
        let prices = catalogue::served(row).prices;
        let Some(before) = deps.providers.reprice(at, prices) else { continue };
        changed += 1;
        let input = prices.input_per_million;
        let output = prices.output_per_million;
        deps.emit(Event::ErrorReported {
            kind: ErrorClass::Upstream,
            error: format!(
                "{id} costs {input} in and {output} out for a million tokens from now on; it was \
                 {} and {}",
                before.input_per_million, before.output_per_million
            ),
            hint: Some("`automaton model list` shows all prices".to_owned()),
        });
    }
    if changed > 0 {
        deps.providers.choose(known_choice(deps).await?);
    }
    Ok(changed)
}
