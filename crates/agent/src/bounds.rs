//! Pure: what bounds a wake, how near it is to each bound, and what it is told of that.
//!
//! Turns, answers and their cost since the creator last called, and the day's budget.
//! Some bound there always is, and nothing that a model does extends one. The last turn
//! before a bound is kept for a hand-over.

use automaton_core::money::Microcents;
use automaton_core::pnl::Stretch;
use automaton_core::stop::UsedUp;
use automaton_policy::budget::{Budgets, Envelope, HAND_OVER_FROM, is_nearly};

/// What bounds a wake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Turns.
    pub(crate) turns: u32,
    /// Whether answers cost something; else only turns are bounded.
    pub(crate) costs: bool,
    /// What may be thought without a call of the creator.
    pub(crate) envelope: Envelope,
    /// What a day may cost.
    pub(crate) budgets: Budgets,
}

/// What is used of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    /// Turns of the wake.
    pub(crate) turns: u32,
    /// What was thought since the creator last called.
    pub(crate) stretch: Stretch,
    /// What answers cost in the last 24 hours.
    pub(crate) day: Microcents,
    /// The most that the last answer of this wake could cost.
    pub(crate) most: Microcents,
}

/// A bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Turns,
    Envelope,
    Day,
}

/// What the next turn may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// One among others.
    Room,
    /// The last before a bound.
    Last(Bound),
    /// None.
    Over(Bound),
}

/// What the model was told of in this wake: turns, answers, their cost, the day.
pub(crate) type Told = [bool; 4];

impl Bounds {
    /// What the next turn may be. That the day's budget is used up is found where the
    /// next answer is booked.
    pub(crate) fn stage(&self, used: &Used) -> Stage {
        let Used { turns, stretch, day, most } = used;
        if *turns >= self.turns {
            return Stage::Over(Bound::Turns);
        }
        if self.costs && self.envelope.used_up(stretch).is_some() {
            return Stage::Over(Bound::Envelope);
        }
        // Who has done nothing yet has nothing to hand over.
        if *turns == 0 {
            return Stage::Room;
        }
        if self.turns >= HAND_OVER_FROM && turns + 1 >= self.turns {
            return Stage::Last(Bound::Turns);
        }
        if self.costs && self.envelope.is_last(stretch) {
            return Stage::Last(Bound::Envelope);
        }
        if self.costs && self.budgets.is_last_of_day(*day, *most) {
            return Stage::Last(Bound::Day);
        }
        Stage::Room
    }

    /// How much of a bound is used, for people.
    pub(crate) fn used_up(&self, bound: Bound, used: &Used) -> UsedUp {
        let Used { stretch, day, .. } = used;
        let Envelope { answers, cost } = self.envelope;
        match (bound, answers.filter(|of| stretch.answers >= *of)) {
            (Bound::Turns, _) => UsedUp::Turns(self.turns),
            (Bound::Day, _) => {
                UsedUp::Day(*day, self.budgets.inference_per_day.unwrap_or_default())
            }
            (Bound::Envelope, Some(of)) => UsedUp::Answers(stretch.answers, of),
            (Bound::Envelope, None) => {
                UsedUp::Cost(Microcents::new(stretch.lost()), cost.unwrap_or_default())
            }
        }
    }

    /// What the model is told when four fifths of a bound are used: once a wake of each.
    pub(crate) fn warn(&self, used: &Used, told: &mut Told) -> Option<String> {
        let Used { turns, stretch, day, .. } = *used;
        let nearly = |part: u32, of: u32| of >= HAND_OVER_FROM && is_nearly(part.into(), of.into());
        let nearly_cents = |part: i64, of: Microcents| {
            self.costs && of > Microcents::ZERO && is_nearly(part, of.units())
        };
        let answers = self.envelope.answers.filter(|_| self.costs);
        let lost = Microcents::new(stretch.lost());
        let found = [
            nearly(turns, self.turns)
                .then(|| format!("{turns} of {} turns of this wake", self.turns)),
            answers.filter(|of| nearly(stretch.answers, *of)).map(|of| {
                format!("{} of {of} answers until your creator calls again", stretch.answers)
            }),
            self.envelope
                .cost
                .filter(|of| nearly_cents(lost.units(), *of))
                .map(|of| format!("{lost} of {of} for answers until your creator calls again")),
            self.budgets
                .inference_per_day
                .filter(|of| nearly_cents(day.units(), *of))
                .map(|of| format!("{day} of {of} for answers of 24 hours")),
        ];
        let fresh = found
            .into_iter()
            .zip(told)
            .filter_map(|(text, told)| text.filter(|_| !std::mem::replace(told, true)));
        let fresh: Vec<String> = fresh.collect();
        (!fresh.is_empty()).then(|| {
            format!(
                "Four fifths of a limit are used: {}. Do what matters most. The last turn before a \
                 limit has no tools: there you hand over what is done and what is next.",
                fresh.join("; ")
            )
        })
    }

    /// What the model is told in the last turn before a bound.
    pub(crate) fn hand_over(&self, bound: Bound, used: &Used) -> String {
        let mut after = *used;
        after.stretch.answers = after.stretch.answers.saturating_add(1);
        format!(
            "This is the last turn before a limit (`{}`), and you have no tools in it. Hand over \
             in plain words: what is done, what is open, what is next. Your creator gets them, \
             and you go on from them when you wake.",
            self.used_up(bound, &after).key()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CENT: i64 = Microcents::PER_CENT;

    fn cents(cents: i64) -> Microcents {
        Microcents::new(cents * CENT)
    }

    fn bounds() -> Bounds {
        let envelope = Envelope { answers: Some(30), cost: Some(cents(25)) };
        let budgets = Budgets { inference_per_day: Some(cents(500)), ..Budgets::default() };
        Bounds { turns: 25, costs: true, envelope, budgets }
    }

    fn used(turns: u32, answers: u32, cost: i64) -> Used {
        let stretch = Stretch { answers, cost: Microcents::new(cost), ..Stretch::default() };
        Used { turns, stretch, ..Used::default() }
    }

    #[test]
    fn the_turn_before_a_bound_is_the_last() {
        let bounds = bounds();
        assert_eq!(bounds.stage(&used(23, 23, 0)), Stage::Room);
        assert_eq!(bounds.stage(&used(24, 24, 0)), Stage::Last(Bound::Turns));
        assert_eq!(bounds.stage(&used(25, 25, 0)), Stage::Over(Bound::Turns));
        assert_eq!(bounds.stage(&used(3, 29, 0)), Stage::Last(Bound::Envelope));
        assert_eq!(bounds.stage(&used(3, 30, 0)), Stage::Over(Bound::Envelope));
        assert_eq!(bounds.stage(&used(0, 29, 0)), Stage::Room, "nothing to hand over yet");
        let day = Used { day: cents(480), most: cents(10), ..used(3, 3, 0) };
        assert_eq!(bounds.stage(&day), Stage::Last(Bound::Day));
        assert_eq!(Bounds { costs: false, ..bounds }.stage(&day), Stage::Room);
        assert_eq!(Bounds { turns: 4, ..bounds }.stage(&used(3, 3, 0)), Stage::Room);
        assert_eq!(Bounds { turns: 4, ..bounds }.stage(&used(4, 4, 0)), Stage::Over(Bound::Turns));
    }

    #[test]
    fn four_fifths_of_a_bound_are_told_once() {
        let (bounds, mut told) = (bounds(), Told::default());
        assert_eq!(bounds.warn(&used(19, 19, 0), &mut told), None);
        let text = bounds.warn(&used(20, 20, 0), &mut told).unwrap();
        assert!(text.contains("20 of 25 turns") && !text.contains("answers until"), "{text}");
        assert_eq!(bounds.warn(&used(21, 21, 0), &mut told), None, "once");
        let both = Used { day: cents(400), ..used(22, 24, 20 * CENT) };
        let text = bounds.warn(&both, &mut told).unwrap();
        for part in ["24 of 30 answers", "$0.20 of $0.25", "$4.00 of $5.00", "hand over"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let mut told = Told::default();
        assert_eq!(Bounds { costs: false, turns: 4, ..bounds }.warn(&both, &mut told), None);
    }

    #[test]
    fn what_is_used_up_is_told_with_its_key() {
        let bounds = bounds();
        let key = |bound, used: Used| bounds.used_up(bound, &used).key();
        assert_eq!(key(Bound::Turns, used(25, 25, 0)), "maxTurnsPerCycle");
        assert_eq!(key(Bound::Envelope, used(25, 30, 0)), "wakeEnvelope.answers");
        assert_eq!(key(Bound::Envelope, used(25, 12, 24 * CENT)), "wakeEnvelope.cents");
        assert_eq!(key(Bound::Day, used(1, 1, 0)), "treasuryPolicy.maxInferenceDailyCents");
        let text = bounds.hand_over(Bound::Envelope, &used(3, 29, 0));
        assert!(text.contains("`wakeEnvelope.answers`") && text.contains("no tools"), "{text}");
    }

    proptest! {
        /// Whatever a wake does and whatever it has left, it ends within its turns.
        #[test]
        fn every_wake_ends(turns in 1_u32..60, costs: bool, cost in 0..CENT) {
            let bounds = Bounds { turns, costs, ..bounds() };
            let (mut count, mut spent) = (0, 0);
            while let Stage::Room = bounds.stage(&used(count, count, spent)) {
                count += 1;
                spent += cost;
                prop_assert!(count <= turns && (!costs || count <= 30));
            }
        }
    }
}
