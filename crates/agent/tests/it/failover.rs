//! A turn that goes on with another model, and what it may cost.

use std::sync::Arc;

use automaton_agent::{Budgets, live};
use automaton_core::event::Event;
use automaton_core::faults::NoFaults;
use automaton_core::inference_budget::{InferenceCeilings, InferenceSpend};
use automaton_core::model::{ChoiceOutcome, ModelChoice, ModelId};
use automaton_core::money::Microcents;
use automaton_core::record::StopReason;
use automaton_core::tier::ModelTier;
use automaton_inference::{BoxFuture, ModelFinder, ProviderRegistry, RegisteredModel};
use automaton_store::ChosenModel;

use crate::brain::{Brain, Move};
use crate::life::{Events, Home, deps, settings};

/// A model beside the usual one.
fn beside(brain: &Arc<Brain>, roles: &[ModelTier]) -> RegisteredModel {
    let (provider, seller) = (Arc::clone(brain) as _, "another seller".to_owned());
    RegisteredModel { provider, seller, roles: roles.to_vec() }
}

fn brain(name: &str, last: Move) -> Arc<Brain> {
    Arc::new(Brain::new(8192, &[], last).called(name))
}

/// What came of a wake of so many turns.
struct Lived {
    home: Home,
    events: Arc<Events>,
}

impl Lived {
    /// Lives with these models, the usual one first, under these ceilings.
    async fn so(
        turns: u32,
        models: [(&Arc<Brain>, ModelTier); 2],
        ceilings: InferenceCeilings,
        change: impl Fn(ProviderRegistry) -> ProviderRegistry,
    ) -> Self {
        let (home, events) = (Home::new(), Arc::new(Events::default()));
        let store = home.store(Arc::new(NoFaults)).await;
        let [(usual, _), (other, role)] = models;
        let mut deps = deps(&store, Arc::clone(usual), Arc::clone(&events));
        deps.providers = change(deps.providers.with(beside(other, &[role])));
        let mut settings = settings(home.path(), turns);
        settings.budgets = Budgets { ceilings, ..Budgets::default() };
        let (_end, ending) = tokio::sync::watch::channel(false);
        live(settings, deps, ending).await.unwrap();
        store.close().await.unwrap();
        Self { home, events }
    }

    fn choice(&self) -> ModelChoice {
        self.home.reader().model_choice(None).unwrap().unwrap().1
    }

    /// What became of each model, as `name:outcome`.
    fn steps(&self) -> Vec<String> {
        let name = |outcome: ChoiceOutcome| format!("{outcome:?}").to_lowercase();
        let steps = self.choice().steps;
        steps.iter().map(|step| format!("{}:{}", step.model, name(step.outcome))).collect()
    }

    /// What is booked for answers.
    async fn booked(&self) -> Microcents {
        let store = self.home.store(Arc::new(NoFaults)).await;
        let spent = store.thinking_cost().await.unwrap().day;
        store.close().await.unwrap();
        spent
    }
}

const NONE: InferenceCeilings =
    InferenceCeilings { per_call: None, per_hour: None, per_session: None, per_day: None };

/// Whatever a server does that has not thought: the turn ends with the next model, is paid once,
/// and the record says why.
#[tokio::test]
async fn a_turn_goes_on_with_the_next_model_and_is_paid_once() {
    for (failure, why) in [
        (Move::Locked, "does not accept the key"),
        (Move::Busy(30), "busy"),
        (Move::Unpaid, "no credits left"),
    ] {
        let (usual, other) = (brain("big", failure), brain("mini", Move::Say("Done.")));
        let models = [(&usual, ModelTier::Usual), (&other, ModelTier::LowCompute)];
        let lived = Lived::so(1, models, NONE, |it| it).await;
        assert_eq!(lived.steps(), ["big:failed", "mini:answered"]);
        let choice = lived.choice();
        assert!(choice.steps[0].why.contains(why), "{choice:?}");
        assert!(!choice.steps[0].why.contains("slow down"), "a server's words stay out");
        assert_eq!(lived.booked().await, Microcents::new(5));
        let [turn] = &lived.home.turns()[..] else { panic!("one turn") };
        assert_eq!(turn.usage.as_ref().unwrap().model, "mini");
        let told = lived.events.all().into_iter().any(|event| {
            matches!(event, Event::ErrorReported { error, .. }
                if error.contains("mini of another seller is asked instead"))
        });
        assert!(told, "the creator is told");
    }
}

/// Half an answer may have been charged: it stays booked at its worst, and the next model's
/// answer is booked beside it.
#[tokio::test]
async fn what_may_have_been_charged_stays_booked() {
    let (usual, other) = (brain("big", Move::Fail), brain("mini", Move::Say("Done.")));
    let models = [(&usual, ModelTier::Usual), (&other, ModelTier::LowCompute)];
    let lived = Lived::so(1, models, NONE, |it| it).await;
    assert_eq!(lived.steps(), ["big:failed", "mini:answered"]);
    assert!(lived.booked().await > Microcents::new(5));
    let store = lived.home.store(Arc::new(NoFaults)).await;
    assert_eq!(store.totals().await.unwrap().unsettled, 1);
}

/// After a key that is refused the model is asked last: the next turn does not try it first.
#[tokio::test]
async fn a_model_that_fails_is_asked_last_for_a_while() {
    let (usual, other) = (brain("big", Move::Locked), brain("mini", Move::Say("More.")));
    let models = [(&usual, ModelTier::Usual), (&other, ModelTier::LowCompute)];
    let lived = Lived::so(3, models, NONE, |it| it).await;
    assert_eq!((usual.seen().len(), other.seen().len()), (1, 3));
    assert_eq!(lived.steps(), ["mini:answered"]);
}

#[tokio::test]
async fn without_fallback_none_stands_in() {
    let usual = Brain::new(8192, &[Move::Busy(1)], Move::Say("Done.")).called("big");
    let (usual, other) = (Arc::new(usual), brain("mini", Move::Say("Done.")));
    let models = [(&usual, ModelTier::Usual), (&other, ModelTier::LowCompute)];
    let lived = Lived::so(1, models, NONE, ProviderRegistry::without_fallback).await;
    assert_eq!(lived.steps(), ["mini:skipped", "big:answered"]);
    assert_eq!((usual.seen().len(), other.seen().len()), (2, 0));
}

/// Each candidate is weighed by itself: the dear one does not fit, and the free one always does.
#[tokio::test]
async fn what_is_too_dear_leaves_it_to_what_is_free() {
    let usual = brain("big", Move::Say("Done."));
    let free = Brain::new(8192, &[], Move::Say("Free.")).called("free").that_is_free();
    let free = Arc::new(free);
    let models = [(&usual, ModelTier::Usual), (&free, ModelTier::Usual)];
    let one = Some(Microcents::new(1));
    for ceilings in [
        InferenceCeilings { per_call: one, ..NONE },
        InferenceCeilings { per_hour: one, ..NONE },
        InferenceCeilings { per_session: one, ..NONE },
        InferenceCeilings { per_day: one, ..NONE },
    ] {
        let lived = Lived::so(1, models, ceilings, |it| it).await;
        assert_eq!(lived.steps(), ["big:toodear", "free:answered"]);
        let key = ceilings.each(&InferenceSpend::default()).next().unwrap().0.key();
        assert!(lived.choice().steps[0].why.contains(key), "{:?}", lived.choice());
    }
    assert!(usual.seen().is_empty());
}

/// Where nothing fits it sleeps, and says which key would let it go on.
#[tokio::test]
async fn a_ceiling_ends_the_wake_and_names_its_key() {
    let usual = brain("big", Move::Say("Done."));
    let other = brain("mini", Move::Say("Done."));
    let models = [(&usual, ModelTier::Usual), (&other, ModelTier::LowCompute)];
    let ceilings = InferenceCeilings { per_hour: Some(Microcents::new(1)), ..NONE };
    let (home, events) = (Home::new(), Arc::new(Events::default()));
    let store = home.store(Arc::new(NoFaults)).await;
    let mut deps = deps(&store, Arc::clone(models[0].0), Arc::clone(&events));
    deps.providers = deps.providers.with(beside(models[1].0, &[ModelTier::LowCompute]));
    let mut settings = settings(home.path(), 1);
    settings.budgets = Budgets { ceilings, ..Budgets::default() };
    let (end, ending) = tokio::sync::watch::channel(false);
    let watches = async {
        loop {
            let ended = events.all().into_iter().find_map(|event| match event {
                Event::WakeEnded { reason: StopReason::Budget, sentence, .. } => Some(sentence),
                _ => None,
            });
            if let Some(sentence) = ended {
                end.send_replace(true);
                return sentence;
            }
            tokio::task::yield_now().await;
        }
    };
    let (lived, sentence) = tokio::join!(live(settings, deps, ending), watches);
    lived.unwrap();
    assert!(sentence.contains("`modelStrategy.hourlyBudgetCents`"), "{sentence}");
    assert!(usual.seen().is_empty() && other.seen().is_empty());
}

/// A weak model stands in where only a person can mend the other, and not for one that may answer
/// in a moment.
#[tokio::test]
async fn a_weak_model_stands_in_where_no_other_can() {
    let weak = || {
        let weak = Brain::new(8192, &[], Move::Say("I try."));
        Arc::new(weak.called("local").that_is_weak().that_is_free())
    };
    let (usual, local) = (brain("big", Move::Locked), weak());
    let models = [(&usual, ModelTier::Usual), (&local, ModelTier::Usual)];
    let lived = Lived::so(1, models, NONE, |it| it).await;
    assert_eq!(lived.steps(), ["big:failed", "local:answered"]);
    assert!(!local.offered().contains(&"modify_heartbeat".to_owned()), "{:?}", local.offered());

    let busy = Brain::new(8192, &[Move::Fail], Move::Say("Here I am.")).called("big");
    let (busy, local) = (Arc::new(busy), weak());
    let models = [(&busy, ModelTier::Usual), (&local, ModelTier::Usual)];
    let lived = Lived::so(1, models, NONE, |it| it).await;
    assert_eq!(lived.steps(), ["big:answered"]);
    assert!(local.seen().is_empty(), "the other answers in a moment");
}

/// An answer is shortened to what a ceiling of one call pays for.
#[tokio::test]
async fn an_answer_is_shortened_to_the_ceiling_of_a_call() {
    let (usual, other) = (brain("big", Move::Say("Done.")), brain("mini", Move::Say("Done.")));
    let models = [(&usual, ModelTier::Usual), (&other, ModelTier::LowCompute)];
    let lived = Lived::so(1, models, NONE, |it| it).await;
    let whole = usual.longest()[0];
    drop(lived);
    // What the question costs at its worst, and a fraction of the answer.
    let ceilings = InferenceCeilings { per_call: Some(Microcents::new(1_900_000)), ..NONE };
    let lived = Lived::so(1, models, ceilings, |it| it).await;
    let short = usual.longest()[1];
    assert!((64..whole).contains(&short), "{short} of {whole}: {:?}", lived.choice());
    assert_eq!(lived.steps(), ["big:answered"]);
}

/// A folder in which there is one model.
struct OneModel(Arc<Brain>);

impl ModelFinder for OneModel {
    fn find<'a>(
        &'a self,
        model: &'a ModelId,
    ) -> BoxFuture<'a, Result<Option<RegisteredModel>, String>> {
        let found = match model.as_str() {
            "here" => Ok(Some(beside(&self.0, &[]))),
            "damaged" => Err("its file is another one".to_owned()),
            _ => Ok(None),
        };
        Box::pin(std::future::ready(found))
    }
}

/// What came to the machine after the start is found by its name; what cannot be used is told, and
/// the usual model thinks.
#[tokio::test]
async fn a_model_that_nobody_listed_is_found_by_its_name() {
    for (name, thinks, told) in [
        ("here", "here", None),
        ("damaged", "usual", Some("cannot think: its file is another one")),
        ("gone", "usual", Some("is not served any more")),
    ] {
        let (home, events) = (Home::new(), Arc::new(Events::default()));
        let store = home.store(Arc::new(NoFaults)).await;
        let chosen = ChosenModel { model: name.into(), by_creator: true };
        store.choose_model(Some(chosen)).await.unwrap();
        let (usual, here) = (brain("usual", Move::Say("Done.")), brain("here", Move::Say("Done.")));
        let mut deps = deps(&store, usual, Arc::clone(&events));
        deps.providers = deps.providers.with_finder(Arc::new(OneModel(here)));
        let (_end, ending) = tokio::sync::watch::channel(false);
        live(settings(home.path(), 1), deps, ending).await.unwrap();
        assert_eq!(home.turns()[0].usage.as_ref().unwrap().model, thinks);
        let said = events.all().into_iter().find_map(|event| match event {
            Event::ErrorReported { error, .. } => Some(error),
            _ => None,
        });
        match told {
            Some(words) => assert!(said.unwrap().contains(words), "{name}"),
            None => assert_eq!(said, None),
        }
        store.close().await.unwrap();
    }
}
