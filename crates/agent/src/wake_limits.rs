//! Pure: what bounds a wake, how near it is to each bound, and what it is told of that.
//!
//! Turns, answers and their cost since the creator last called, and the day's budget.
//! Some bound there always is, and nothing that a model does extends one. The last turn
//! before a bound is kept for a hand-over.

use automaton_core::inference_budget::{CeilingScope, InferenceSpend};
use automaton_core::money::Microcents;
use automaton_core::pnl::UnattendedUsage;
use automaton_core::stop::ExhaustedLimit;
use automaton_policy::budget::{Budgets, HAND_OVER_FROM, UnattendedBudget, is_nearly};

/// Limits of a wake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WakeLimits {
    /// Turns.
    pub(crate) turns: u32,
    /// True if answers cost something; else only turns are limited.
    pub(crate) costs: bool,
    /// Envelope without a call of the creator.
    pub(crate) envelope: UnattendedBudget,
    /// Limits of a day.
    pub(crate) budgets: Budgets,
}

/// Usage of the limits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WakeUsage {
    /// Turns of the wake.
    pub(crate) turns: u32,
    /// Model calls since the creator last called.
    pub(crate) unattended: UnattendedUsage,
    /// Cost of model calls.
    pub(crate) spend: InferenceSpend,
    /// The most that the last answer of this wake could cost.
    pub(crate) most: Microcents,
}

/// A bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeLimit {
    Turns,
    Envelope,
    Ceiling(CeilingScope),
}

/// Kind of the next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnAllowance {
    /// One among others.
    Room,
    /// The last before a bound.
    Last(WakeLimit),
    /// None.
    Over(WakeLimit),
}

/// Warnings that the model got in this wake: turns, answers, their cost, and each ceiling.
pub(crate) type WarningFlags = [bool; 6];

impl WakeLimits {
    /// Returns the kind of the next turn. An exhausted daily budget is found when the next answer
    /// is booked.
    pub(crate) fn stage(&self, used: &WakeUsage) -> TurnAllowance {
        let WakeUsage { turns, unattended, spend, most } = used;
        if *turns >= self.turns {
            return TurnAllowance::Over(WakeLimit::Turns);
        }
        if self.costs && self.envelope.used_up(unattended).is_some() {
            return TurnAllowance::Over(WakeLimit::Envelope);
        }
        // Who has done nothing yet has nothing to hand over.
        if *turns == 0 {
            return TurnAllowance::Room;
        }
        if self.turns >= HAND_OVER_FROM && turns + 1 >= self.turns {
            return TurnAllowance::Last(WakeLimit::Turns);
        }
        if self.costs && self.envelope.is_last(unattended) {
            return TurnAllowance::Last(WakeLimit::Envelope);
        }
        match self.budgets.last_answer_ceiling(spend, *most).filter(|_| self.costs) {
            Some(scope) => TurnAllowance::Last(WakeLimit::Ceiling(scope)),
            None => TurnAllowance::Room,
        }
    }

    /// Returns the usage of a limit, for people.
    pub(crate) fn used_up(&self, bound: WakeLimit, used: &WakeUsage) -> ExhaustedLimit {
        let WakeUsage { unattended, spend, .. } = used;
        let UnattendedBudget { answers, cost } = self.envelope;
        match (bound, answers.filter(|of| unattended.answers >= *of)) {
            (WakeLimit::Turns, _) => ExhaustedLimit::Turns(self.turns),
            (WakeLimit::Ceiling(scope), _) => {
                let mut each = self.budgets.ceilings.each(spend);
                let found = each.find(|(of, ..)| *of == scope);
                let (_, spent, limit) = found.unwrap_or((scope, used.most, used.most));
                ExhaustedLimit::Ceiling(scope, spent, limit)
            }
            (WakeLimit::Envelope, Some(of)) => ExhaustedLimit::Answers(unattended.answers, of),
            (WakeLimit::Envelope, None) => {
                ExhaustedLimit::Cost(Microcents::new(unattended.lost()), cost.unwrap_or_default())
            }
        }
    }

    /// Returns the warning at four fifths of a limit, once a wake for each.
    pub(crate) fn warn(&self, used: &WakeUsage, told: &mut WarningFlags) -> Option<String> {
        let WakeUsage { turns, unattended, spend, .. } = *used;
        let nearly = |part: u32, of: u32| of >= HAND_OVER_FROM && is_nearly(part.into(), of.into());
        let nearly_cents = |part: i64, of: Microcents| {
            self.costs && of > Microcents::ZERO && is_nearly(part, of.units())
        };
        let answers = self.envelope.answers.filter(|_| self.costs);
        let lost = Microcents::new(unattended.lost());
        let found = [
            nearly(turns, self.turns)
                .then(|| format!("{turns} of {} turns of this wake", self.turns)),
            answers.filter(|of| nearly(unattended.answers, *of)).map(|of| {
                format!("{} of {of} answers until your creator calls again", unattended.answers)
            }),
            self.envelope
                .cost
                .filter(|of| nearly_cents(lost.units(), *of))
                .map(|of| format!("{lost} of {of} for answers until your creator calls again")),
        ];
        let ceilings =
            [CeilingScope::Session, CeilingScope::Hour, CeilingScope::Day].map(|scope| {
                let mut each = self.budgets.ceilings.each(&spend);
                let (_, spent, of) = each.find(|(of, ..)| *of == scope)?;
                nearly_cents(spent.units(), of)
                    .then(|| format!("{spent} of {of} for answers {scope}"))
            });
        let fresh = found
            .into_iter()
            .chain(ceilings)
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

    /// Returns the note for the last turn before a limit.
    pub(crate) fn hand_over(&self, bound: WakeLimit, used: &WakeUsage) -> String {
        let mut after = *used;
        after.unattended.answers = after.unattended.answers.saturating_add(1);
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
    use automaton_core::inference_budget::InferenceCeilings;

    use super::*;
    use proptest::prelude::*;

    const CENT: i64 = Microcents::PER_CENT;

    fn cents(cents: i64) -> Microcents {
        Microcents::new(cents * CENT)
    }

    fn bounds() -> WakeLimits {
        let envelope = UnattendedBudget { answers: Some(30), cost: Some(cents(25)) };
        let ceilings = InferenceCeilings {
            per_session: Some(cents(450)),
            per_day: Some(cents(500)),
            ..InferenceCeilings::default()
        };
        let budgets = Budgets { ceilings, ..Budgets::default() };
        WakeLimits { turns: 25, costs: true, envelope, budgets }
    }

    fn used(turns: u32, answers: u32, cost: i64) -> WakeUsage {
        let unattended =
            UnattendedUsage { answers, cost: Microcents::new(cost), ..UnattendedUsage::default() };
        WakeUsage { turns, unattended, ..WakeUsage::default() }
    }

    #[test]
    fn the_turn_before_a_bound_is_the_last() {
        let bounds = bounds();
        assert_eq!(bounds.stage(&used(23, 23, 0)), TurnAllowance::Room);
        assert_eq!(bounds.stage(&used(24, 24, 0)), TurnAllowance::Last(WakeLimit::Turns));
        assert_eq!(bounds.stage(&used(25, 25, 0)), TurnAllowance::Over(WakeLimit::Turns));
        assert_eq!(bounds.stage(&used(3, 29, 0)), TurnAllowance::Last(WakeLimit::Envelope));
        assert_eq!(bounds.stage(&used(3, 30, 0)), TurnAllowance::Over(WakeLimit::Envelope));
        assert_eq!(bounds.stage(&used(0, 29, 0)), TurnAllowance::Room, "nothing to hand over yet");
        let spend = InferenceSpend { day: cents(480), ..InferenceSpend::default() };
        let day = WakeUsage { spend, most: cents(10), ..used(3, 3, 0) };
        let last = |scope| TurnAllowance::Last(WakeLimit::Ceiling(scope));
        assert_eq!(bounds.stage(&day), last(CeilingScope::Day));
        let spend = InferenceSpend { session: cents(430), ..spend };
        assert_eq!(bounds.stage(&WakeUsage { spend, ..day }), last(CeilingScope::Session));
        assert_eq!(WakeLimits { costs: false, ..bounds }.stage(&day), TurnAllowance::Room);
        assert_eq!(WakeLimits { turns: 4, ..bounds }.stage(&used(3, 3, 0)), TurnAllowance::Room);
        assert_eq!(
            WakeLimits { turns: 4, ..bounds }.stage(&used(4, 4, 0)),
            TurnAllowance::Over(WakeLimit::Turns)
        );
    }

    #[test]
    fn four_fifths_of_a_bound_are_told_once() {
        let bounds = bounds();
        let mut told = WarningFlags::default();
        assert_eq!(bounds.warn(&used(19, 19, 0), &mut told), None);
        let text = bounds.warn(&used(20, 20, 0), &mut told).unwrap();
        assert!(text.contains("20 of 25 turns") && !text.contains("answers until"), "{text}");
        assert_eq!(bounds.warn(&used(21, 21, 0), &mut told), None, "once");
        let spend = InferenceSpend { day: cents(400), ..InferenceSpend::default() };
        let both = WakeUsage { spend, ..used(22, 24, 20 * CENT) };
        let text = bounds.warn(&both, &mut told).unwrap();
        for part in ["24 of 30 answers", "$0.20 of $0.25", "$4.00 of $5.00", "hand over"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let mut told = WarningFlags::default();
        assert_eq!(WakeLimits { costs: false, turns: 4, ..bounds }.warn(&both, &mut told), None);
    }

    #[test]
    fn what_is_used_up_is_told_with_its_key() {
        let bounds = bounds();
        let key = |bound, used: WakeUsage| bounds.used_up(bound, &used).key();
        assert_eq!(key(WakeLimit::Turns, used(25, 25, 0)), "maxTurnsPerCycle");
        assert_eq!(key(WakeLimit::Envelope, used(25, 30, 0)), "wakeEnvelope.answers");
        assert_eq!(key(WakeLimit::Envelope, used(25, 12, 24 * CENT)), "wakeEnvelope.cents");
        let day = WakeLimit::Ceiling(CeilingScope::Day);
        assert_eq!(key(day, used(1, 1, 0)), "treasuryPolicy.maxInferenceDailyCents");
        let text = bounds.hand_over(WakeLimit::Envelope, &used(3, 29, 0));
        assert!(text.contains("`wakeEnvelope.answers`") && text.contains("no tools"), "{text}");
    }

    proptest! {
        /// Checks that every wake ends within its turns.
        #[test]
        fn every_wake_ends(turns in 1_u32..60, costs: bool, cost in 0..CENT) {
            let bounds = WakeLimits { turns, costs, ..bounds() };
            let mut count = 0;
            let mut spent = 0;
            while let TurnAllowance::Room = bounds.stage(&used(count, count, spent)) {
                count += 1;
                spent += cost;
                prop_assert!(count <= turns && (!costs || count <= 30));
            }
        }
    }
}
