//! What the automaton may do when money runs out: say how it is, beg, live cheaply.
//!
//! It begs only on credits that were really read, and as often as the runtime does for it;
//! the runtime's own words about balances and address go out with its own. It must never
//! be able to stretch either.

use automaton_core::error::Kind;
use automaton_core::event::Event;
use automaton_core::vitals::Plea;
use automaton_tools::HandleError;
use automaton_tools::context::{self, Answer};

use super::memory::of_store;
use crate::deps::Deps;
use crate::heartbeat::{Tick, post};
use crate::money::{state_of, turn_into};
use crate::settings::Settings;
use crate::survival::{note, payer, words};
use crate::wake::one_line;

/// What is left to one automaton.
pub(crate) struct Survival {
    deps: Deps,
    name: String,
}

impl Survival {
    pub(super) fn new(settings: &Settings, deps: &Deps) -> Self {
        Self { deps: deps.clone(), name: settings.name.clone() }
    }

    async fn beg(&self, said: &str) -> Result<String, HandleError> {
        let treasury = payer(&self.deps).ok_or_else(free)?;
        let balances = treasury.balances().await;
        let known = note(&self.deps, &balances).await.map_err(|error| HandleError::of(&error))?;
        let known = known.zip(balances.credits.zip(balances.tier()));
        let Some((vitals, (credits, tier))) = known else {
            let why = "your credits could not be read, and what is unknown is not little";
            return Err(refused(Kind::Transient, why, "Look at them again later."));
        };
        let Some(plea) = Plea::of(tier) else {
            let why = format!("you have {credits} of credits ({tier})");
            return Err(refused(Kind::Denied, why, "It is for low_compute and below."));
        };
        let store = &self.deps.store;
        if let Some(next) = store.plead_itself(plea).await.map_err(of_store)? {
            let why = format!("your last one went out not long ago, and the next may at {next}");
            return Err(refused(Kind::Denied, why, "Earn something, or sleep until then."));
        }
        let text = format!("{:?} {}", one_line(said), words(treasury, plea, &vitals));
        let next = self.deps.mint.now().after(plea.every());
        let told = format!("It went out, and the next may at {next}: {text}");
        self.deps.emit(Event::PleaSent { plea, text });
        Ok(told)
    }

    async fn save(&self) -> Result<String, HandleError> {
        payer(&self.deps).ok_or_else(free)?;
        let vitals = self.deps.store.economise().await.map_err(of_store)?;
        if let Some(tier) = vitals.lives_by() {
            let turned = turn_into(&self.deps, state_of(tier), "it chose to live cheaply").await;
            turned.map_err(|error| HandleError::of(&error))?;
        }
        let model = &self.deps.mind(vitals.thinker()).model().id;
        Ok(format!(
            "From your next turn on {model} thinks, and what your heart can do without comes more \
             seldom. That ends with a better tier than now, when your creator wakes you, or in a \
             day."
        ))
    }
}

fn refused(kind: Kind, why: impl Into<String>, hint: &str) -> HandleError {
    HandleError { kind, message: why.into(), hint: Some(hint.to_owned()) }
}

/// Of one whose thinking costs nothing.
fn free() -> HandleError {
    refused(Kind::Denied, "your thinking costs nothing", "There is nothing to save and to ask for.")
}

impl context::Survival for Survival {
    fn ping(&self) -> Answer<'_, String> {
        Box::pin(async move {
            let tick = Tick::read(&self.deps).await.map_err(of_store)?;
            let posted = post(&self.name, &self.deps, &tick).await;
            let (how, posted) = posted.map_err(|error| HandleError::of(&error))?;
            Ok(if posted {
                format!("Posted to the cloud: {how}.")
            } else {
                format!("Nothing was posted, since you have no account with a cloud: {how}.")
            })
        })
    }

    fn plead(&self, words: String) -> Answer<'_, String> {
        Box::pin(async move { self.beg(&words).await })
    }

    fn economise(&self) -> Answer<'_, String> {
        Box::pin(self.save())
    }
}
