//! Tools for low credits: report the state, ask for money, live cheaply.
//!
//! It begs only on credits that were really read, and as often as the runtime does for it;
//! the runtime's own words about balances and address go out with its own. It must never
//! be able to stretch either.

use automaton_core::error::ErrorClass;
use automaton_core::event::Event;
use automaton_core::vitals::DistressLevel;
use automaton_tools::HandleError;
use automaton_tools::context::{self, HandleFuture};

use super::memory::of_store;
use crate::deps::AgentDeps;
use crate::heartbeat::{TickContext, post};
use crate::money::{change_state, state_of};
use crate::settings::Settings;
use crate::survival::{note, payer, words};
use crate::wake::one_line;

/// Survival tools of one automaton.
pub(crate) struct Survival {
    deps: AgentDeps,
    name: String,
}

impl Survival {
    pub(super) fn new(settings: &Settings, deps: &AgentDeps) -> Self {
        Self { deps: deps.clone(), name: settings.name.clone() }
    }

    async fn request_funds(&self, said: &str) -> Result<String, HandleError> {
        let treasury = payer(&self.deps).ok_or_else(free)?;
        let balances = treasury.balances().await;
        let known = note(&self.deps, &balances, None)
            .await
            .map_err(|error| HandleError::from_error(&error))?;
        let known = known.zip(balances.credits.zip(balances.tier()));
        let Some((vitals, (credits, tier))) = known else {
            let why = "your credits could not be read, and what is unknown is not little";
            return Err(refused(ErrorClass::Transient, why, "Look at them again later."));
        };
        let Some(plea) = DistressLevel::of(tier) else {
            let why = format!("you have {credits} of credits ({tier})");
            return Err(refused(ErrorClass::Denied, why, "It is for low_compute and below."));
        };
        let store = &self.deps.store;
        if let Some(next) = store.record_own_distress(plea).await.map_err(of_store)? {
            let why = format!("your last one went out not long ago, and the next may at {next}");
            return Err(refused(ErrorClass::Denied, why, "Earn something, or sleep until then."));
        }
        let text = format!("{:?} {}", one_line(said), words(treasury, plea, &vitals));
        let next = self.deps.ids.now().after(plea.every());
        let told = format!("It went out, and the next may at {next}: {text}");
        self.deps.emit(Event::PleaSent { plea, text });
        Ok(told)
    }

    async fn save(&self) -> Result<String, HandleError> {
        payer(&self.deps).ok_or_else(free)?;
        let vitals = self.deps.store.enter_low_compute().await.map_err(of_store)?;
        if let Some(tier) = vitals.effective_tier() {
            let turned = change_state(&self.deps, state_of(tier), "it chose to live cheaply").await;
            turned.map_err(|error| HandleError::from_error(&error))?;
        }
        let model = self.deps.model(self.deps.thinker(&vitals)).id;
        Ok(format!(
            "From your next turn on {model} thinks, and what your heart can do without comes more \
             seldom. That ends with a better tier than now, when your creator wakes you, or in a \
             day."
        ))
    }
}

fn refused(kind: ErrorClass, why: impl Into<String>, hint: &str) -> HandleError {
    HandleError { kind, message: why.into(), hint: Some(hint.to_owned()) }
}

/// Returns the error for an automaton whose thinking costs nothing.
fn free() -> HandleError {
    refused(
        ErrorClass::Denied,
        "your thinking costs nothing",
        "There is nothing to save and to ask for.",
    )
}

impl context::SurvivalHandle for Survival {
    fn ping(&self) -> HandleFuture<'_, String> {
        Box::pin(async move {
            let tick = TickContext::read(&self.deps).await.map_err(of_store)?;
            let posted = post(&self.name, &self.deps, &tick).await;
            let (how, posted) = posted.map_err(|error| HandleError::from_error(&error))?;
            Ok(if posted {
                format!("Posted to the cloud: {how}.")
            } else {
                format!("Nothing was posted, since you have no account with a cloud: {how}.")
            })
        })
    }

    fn send_distress(&self, words: String) -> HandleFuture<'_, String> {
        Box::pin(async move { self.request_funds(&words).await })
    }

    fn enter_low_compute(&self) -> HandleFuture<'_, String> {
        Box::pin(self.save())
    }
}
