//! Pure: budgets of the automaton: the stop-loss, the ceilings of inference costs in a day, and the
//! budget of turns that no creator asked for.
//!
//! The sums come from the ledger, which counts a cost at its worst case until the real one is
//! known. A sum that cannot be computed must never count as a small one.

use std::fmt;

use automaton_core::inference_budget::{CeilingScope, InferenceCeilings, InferenceSpend};
use automaton_core::money::Microcents;
use automaton_core::pnl::{Losses, UnattendedUsage};
use automaton_core::time::{DAY, Span};

/// The creator's limits on losses and on inference. A limit that is not set does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budgets {
    /// The loss at which the automaton hibernates.
    pub stop_loss: StopLoss,
    /// The ceilings of model costs.
    pub ceilings: InferenceCeilings,
    /// The budget of a wake without the creator.
    pub envelope: UnattendedBudget,
    /// The budget of a wake that the creator caused, if it differs. A creator who sets a daily
    /// ceiling needs no further limit.
    pub creators: Option<UnattendedBudget>,
}

/// The inference budget from one call of the creator to the next, whatever wakes the automaton in
/// between. A limit that is not set does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnattendedBudget {
    /// The most model answers that cost something.
    pub answers: Option<u32>,
    /// The most that the answers may cost, beyond the revenue earned meanwhile.
    pub cost: Option<Microcents>,
}

/// The rest after the first exhausted budget. It doubles with each further one, up to a day.
const REST: Span = Span::from_secs(3600);

/// An unattended budget is exhausted. Displays the usage and when work continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
#[display(
    "{} answers for {} is what `wakeEnvelope` allows without a call of the creator. \
     It goes on after a rest of {rest}, or when the creator calls.",
    usage.answers,
    usage.cost
)]
pub struct EnvelopeExhaustion {
    /// The usage.
    pub usage: UnattendedUsage,
    /// The length of the rest.
    pub rest: Span,
}

/// The smallest limit of which the last answer is reserved for a hand-over.
pub const HAND_OVER_FROM: u32 = 5;

/// Returns true if at least four fifths of the whole are used.
#[must_use]
pub fn is_nearly(part: i64, whole: i64) -> bool {
    i128::from(part) * 5 >= i128::from(whole) * 4
}

/// Returns the most that the next answer may cost, if earlier ones cost at most `most`. A
/// conversation grows.
fn next_cost_max(most: Microcents) -> i64 {
    most.units().saturating_add(most.units() / 4)
}

impl UnattendedBudget {
    /// Returns true if the next answer is the last that fits. Always false if the limit allows
    /// only a few answers.
    #[must_use]
    pub fn is_last(&self, usage: &UnattendedUsage) -> bool {
        let few = self.answers.is_some_and(|limit| limit < HAND_OVER_FROM);
        let next = usage.average().saturating_mul(2);
        let cost = Microcents::new(usage.cost.units().saturating_add(next));
        let after = UnattendedUsage { answers: usage.answers.saturating_add(1), cost, ..*usage };
        !few && usage.answers > 0 && self.used_up(&after).is_some()
    }

    /// Returns the exhaustion if the next answer no longer fits. It counts as twice the average,
    /// since a conversation grows. The first answer always fits, and so does usage covered by
    /// revenue.
    #[must_use]
    pub fn used_up(&self, usage: &UnattendedUsage) -> Option<EnvelopeExhaustion> {
        let UnattendedUsage { answers, cost, revenue, .. } = *usage;
        if answers == 0 || (revenue > Microcents::ZERO && revenue >= cost) {
            return None;
        }
        let next = usage.average().saturating_mul(2);
        let lost = usage.lost().saturating_add(next);
        let over = self.cost.is_some_and(|limit| lost > limit.units())
            || self.answers.is_some_and(|limit| answers >= limit);
        over.then(|| EnvelopeExhaustion::new(*usage))
    }
}

impl EnvelopeExhaustion {
    /// Creates the exhaustion for this usage.
    #[must_use]
    pub fn new(usage: UnattendedUsage) -> Self {
        let rest = Span::from_millis(REST.as_millis() << usage.rests.min(8));
        Self { usage, rest: rest.min(DAY) }
    }
}

/// The losses at which the automaton hibernates. Revenue offsets costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StopLoss {
    /// The limit in any 24 hours.
    pub per_day: Option<Microcents>,
    /// The limit for one goal.
    pub per_goal: Option<Microcents>,
    /// The total limit since the creator or money last ended a hibernation.
    pub total: Option<Microcents>,
}

/// A loss has reached its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopLossTrip {
    /// The loss.
    pub lost: Microcents,
    /// The limit.
    pub limit: Microcents,
    /// The scope of the limit.
    pub on: StopLossScope,
}

/// The scope of a stop-loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopLossScope {
    /// The last 24 hours.
    Day,
    /// One goal.
    Goal(String),
    /// Everything.
    Total,
}

impl StopLoss {
    /// Returns true if any limit is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the first limit that is reached.
    #[must_use]
    pub fn first_reached(&self, losses: &Losses) -> Option<StopLossTrip> {
        let reached =
            |limit: Option<Microcents>, lost: Microcents, on: &dyn Fn() -> StopLossScope| {
                let limit = limit.filter(|limit| lost > Microcents::ZERO && lost >= *limit)?;
                Some(StopLossTrip { lost, limit, on: on() })
            };
        let goal = || {
            let (name, lost) = losses.goal.as_ref()?;
            reached(self.per_goal, *lost, &|| StopLossScope::Goal(name.clone()))
        };
        reached(self.per_day, losses.day, &|| StopLossScope::Day)
            .or_else(goal)
            .or_else(|| reached(self.total, losses.total, &|| StopLossScope::Total))
    }
}

impl fmt::Display for StopLossTrip {
    /// Formats the loss, the limit, and what ends the hibernation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, limit, on } = self;
        let (place, key) = match on {
            StopLossScope::Day => ("in 24 hours".to_owned(), "perDayCents"),
            StopLossScope::Goal(goal) => (format!("on the goal {goal:?}"), "perGoalCents"),
            StopLossScope::Total => ("in all".to_owned(), "totalCents"),
        };
        write!(
            f,
            "{lost} were lost {place}, and {limit} is what `stopLoss.{key}` allows. Money that \
             comes in, a message of the creator or `automaton wake` ends the hibernation."
        )
    }
}

impl Budgets {
    /// Returns the budget of a wake, depending on whether its creator caused it.
    #[must_use]
    pub fn envelope_for(&self, creators: bool) -> UnattendedBudget {
        self.creators.filter(|_| creators).unwrap_or(self.envelope)
    }

    /// Returns the ceiling that certainly fits only one more answer, if earlier answers cost at
    /// most `most`.
    #[must_use]
    pub fn last_answer_ceiling(
        &self,
        spend: &InferenceSpend,
        most: Microcents,
    ) -> Option<CeilingScope> {
        let two = next_cost_max(most).saturating_mul(2);
        let fits = |spent: Microcents, limit: Microcents| {
            spent.units().saturating_add(two) <= limit.units()
        };
        let mut each = self.ceilings.each(spend).filter(|(scope, ..)| *scope != CeilingScope::Call);
        let last = each.find(|(_, spent, limit)| !fits(*spent, *limit));
        last.map(|(scope, ..)| scope).filter(|_| most > Microcents::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn amount(units: i64) -> Microcents {
        Microcents::new(units)
    }

    fn losses(day: i64, goal: i64, total: i64) -> Losses {
        Losses {
            day: amount(day),
            goal: Some(("fly".to_owned(), amount(goal))),
            total: amount(total),
        }
    }

    #[test]
    fn a_limit_holds_when_it_is_reached_and_says_so() {
        let none = StopLoss::default();
        assert!(!none.is_set() && none.first_reached(&losses(9, 9, 9)).is_none());
        let all = StopLoss {
            per_day: Some(amount(5)),
            per_goal: Some(amount(7)),
            total: Some(amount(9)),
        };
        assert!(all.is_set());
        let on = |day, goal, total| {
            all.first_reached(&losses(day, goal, total)).map(|tripped| tripped.on)
        };
        assert_eq!(on(4, 6, 8), None);
        assert_eq!(on(5, 7, 9), Some(StopLossScope::Day));
        assert_eq!(on(4, 7, 9), Some(StopLossScope::Goal("fly".to_owned())));
        assert_eq!(on(-900, 6, 9), Some(StopLossScope::Total), "a good day does not undo the rest");
        assert_eq!(on(-5, -7, -9), None, "gains are no losses");
        let told = all.first_reached(&losses(6_000_000, 0, 0)).unwrap().to_string();
        assert!(told.starts_with("$0.06 were lost in 24 hours, and $0.00000005 is"), "{told}");
        assert!(told.contains("`stopLoss.perDayCents`") && told.contains("wake"), "{told}");
        let told = all.first_reached(&losses(0, 8, 0)).unwrap().to_string();
        assert!(told.contains("on the goal \"fly\"") && told.contains("perGoalCents"), "{told}");
    }

    #[test]
    fn the_last_answer_of_a_limit_is_known_before_it_is_asked_for() {
        let envelope = UnattendedBudget { answers: Some(30), cost: Some(amount(100)) };
        let at = |answers, cost, revenue| {
            let cost = amount(cost);
            let revenue = amount(revenue);
            envelope.is_last(&UnattendedUsage { answers, cost, revenue, rests: 0 })
        };
        assert!(!at(28, 0, 0) && at(29, 0, 0));
        assert!(!at(0, 0, 0), "the first is never the last");
        // Six a turn: after 72 and at most 12 more, 12 do not fit twice.
        assert!(!at(12, 72, 0) && at(13, 78, 0), "{:?}", at(12, 72, 0));
        assert!(!at(13, 78, 30), "what others paid is added");
        let few = UnattendedBudget { answers: Some(4), cost: None };
        assert!(!few.is_last(&UnattendedUsage { answers: 3, ..UnattendedUsage::default() }));
        let ceilings = InferenceCeilings {
            per_call: Some(amount(1)),
            per_session: Some(amount(40)),
            per_day: Some(amount(100)),
            ..InferenceCeilings::default()
        };
        let budgets = Budgets { ceilings, ..Budgets::default() };
        let last = |session, day, most| {
            let session = amount(session);
            let day = amount(day);
            budgets.last_answer_ceiling(&InferenceSpend { session, day, hour: day }, amount(most))
        };
        assert_eq!(last(0, 50, 16), None, "two of 20 fit");
        assert_eq!(last(1, 50, 16), Some(CeilingScope::Session));
        assert_eq!(last(0, 61, 16), Some(CeilingScope::Day));
        assert_eq!(last(40, 99, 0), None, "what is free is free");
        assert_eq!(
            Budgets::default().last_answer_ceiling(&InferenceSpend::default(), amount(20)),
            None
        );
        assert!(is_nearly(20, 25) && !is_nearly(19, 25) && is_nearly(i64::MAX, i64::MAX));
    }

    proptest! {
        /// Whatever answers cost, no answer follows one that was announced as the last.
        #[test]
        fn no_limit_is_passed_by_its_last_answer(costs in prop::collection::vec(0_i64..40, 1..60)) {
            let envelope = UnattendedBudget { answers: Some(30), cost: Some(amount(250)) };
            let mut usage = UnattendedUsage::default();
            let mut last = false;
            for cost in costs {
                if last || envelope.used_up(&usage).is_some() {
                    break;
                }
                last = envelope.is_last(&usage);
                usage.answers += 1;
                usage.cost = amount(usage.cost.units() + cost);
            }
            prop_assert!(usage.answers <= 30);
        }
    }

    #[test]
    fn the_creators_wake_may_have_an_envelope_of_its_own() {
        let envelope = UnattendedBudget { answers: Some(30), cost: None };
        let usual = Budgets { envelope, ..Budgets::default() };
        assert_eq!((usual.envelope_for(true), usual.envelope_for(false)), (envelope, envelope));
        let free = Budgets { creators: Some(UnattendedBudget::default()), ..usual };
        assert_eq!(
            (free.envelope_for(true), free.envelope_for(false)),
            (UnattendedBudget::default(), envelope)
        );
    }

    #[test]
    fn an_envelope_is_used_up_by_answers_or_by_what_is_lost() {
        let envelope = UnattendedBudget { answers: Some(30), cost: Some(amount(25)) };
        let rest = |answers, cost, revenue, rests| {
            let usage =
                UnattendedUsage { answers, cost: amount(cost), revenue: amount(revenue), rests };
            envelope.used_up(&usage).map(|used_up| used_up.rest)
        };
        let hour = Span::from_secs(3600);
        assert_eq!(rest(0, 0, 0, 9), None, "the first always fits");
        assert_eq!(rest(29, 0, 0, 0), None);
        assert_eq!(rest(30, 0, 0, 0), Some(hour));
        assert_eq!((rest(23, 23, 0, 0), rest(24, 24, 0, 0)), (None, Some(hour)));
        assert_eq!(rest(24, 24, 1, 0), None, "what others paid is added");
        assert_eq!(rest(90, 90, 90, 0), None, "what was earned may be thought about");
        let later: Vec<_> = (1..7).filter_map(|rests| rest(30, 1, 0, rests)).collect();
        let hours = [2, 4, 8, 16, 24, 24].map(|hours| Span::from_secs(hours * 3600));
        assert_eq!(later, hours);
        assert_eq!(
            UnattendedBudget::default()
                .used_up(&UnattendedUsage { answers: 99, ..UnattendedUsage::default() }),
            None
        );
    }
}
