//! Pure: which turns the history shows, and which of them with shortened results.
//!
//! Both places move in blocks: when the turns no longer fit, so much is shortened and cut
//! that they fit for a good while, or a model's cache would be lost at each turn. The
//! newest turn is always shown, and the two newest are the last to be shortened.

use automaton_store::Place;

/// Turns that are shown at most. At that number the older half is cut, too.
pub(crate) const TURNS_MAX: u32 = 400;

/// Turns that stay whole as long as they can.
const WHOLE_TURNS: usize = 2;

/// How much of the room is filled after a move, in percent.
const AFTER_PERCENT: u64 = 60;
/// With so much of it filled, shortening alone was enough.
const ENOUGH_PERCENT: u64 = 80;

/// What showing a turn costs, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnCost {
    /// Its number.
    pub(crate) seq: u64,
    /// With its results whole.
    pub(crate) whole: u32,
    /// With its results shortened.
    pub(crate) short: u32,
    /// What is shown of it elsewhere when it is cut: the creator's open messages.
    pub(crate) stays: u32,
}

/// Where the history begins, and where its results are whole, so that the turns fit into
/// so much room. Nothing moves while everything fits; what is cut needs a reserve for its
/// sum.
pub(crate) fn place(turns: &[TurnCost], now: Place, room: u32, reserve: u32) -> Place {
    let mut fit = Fit::new(turns, now);
    let (many, room) = (fit.shown() >= most(), u64::from(room));
    if turns.is_empty() || (fit.total <= room && !many) {
        return now;
    }
    let last = turns.len().saturating_sub(WHOLE_TURNS).max(fit.from);
    let target = room * AFTER_PERCENT / 100;
    while fit.total > target && fit.whole_from < last {
        fit.shorten();
    }
    if fit.total > room * ENOUGH_PERCENT / 100 || many {
        let target = target.saturating_sub(u64::from(reserve));
        while fit.from < last && (fit.total > target || (many && fit.shown() > most() / 2)) {
            fit.cut();
        }
        // The newest turn is the last to lose anything.
        while fit.total > room && fit.whole_from + 1 < turns.len() {
            fit.shorten();
        }
        while fit.total > room && fit.from + 1 < turns.len() {
            fit.cut();
        }
        while fit.total > room && fit.whole_from < turns.len() {
            fit.shorten();
        }
    }
    let behind = turns.last().map_or(now.whole_from, |turn| turn.seq + 1);
    Place {
        from: turns.get(fit.from).map_or(now.from, |turn| turn.seq),
        whole_from: turns.get(fit.whole_from).map_or(behind, |turn| turn.seq),
    }
}

fn most() -> usize {
    usize::try_from(TURNS_MAX).unwrap_or(usize::MAX)
}

/// The turns with both places as indices, and what they cost.
struct Fit<'a> {
    turns: &'a [TurnCost],
    from: usize,
    whole_from: usize,
    total: u64,
}

impl<'a> Fit<'a> {
    fn new(turns: &'a [TurnCost], now: Place) -> Self {
        let from = turns.partition_point(|turn| turn.seq < now.from);
        let whole_from = turns.partition_point(|turn| turn.seq < now.whole_from).max(from);
        let mut fit = Self { turns, from, whole_from, total: 0 };
        fit.total = (from..turns.len()).map(|at| u64::from(fit.cost(at))).sum();
        fit
    }

    fn shown(&self) -> usize {
        self.turns.len() - self.from
    }

    fn cost(&self, at: usize) -> u32 {
        let short = at < self.whole_from;
        self.turns.get(at).map_or(0, |turn| if short { turn.short } else { turn.whole })
    }

    /// Shortens the oldest turn that is whole.
    fn shorten(&mut self) {
        self.total -= u64::from(self.cost(self.whole_from));
        self.whole_from += 1;
        self.total += u64::from(self.cost(self.whole_from - 1));
    }

    /// Cuts the oldest turn.
    fn cut(&mut self) {
        self.total -= u64::from(self.cost(self.from));
        self.total += self.turns.get(self.from).map_or(0, |turn| u64::from(turn.stays));
        self.from += 1;
        self.whole_from = self.whole_from.max(self.from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn turns(count: u64, whole: u32, short: u32) -> Vec<TurnCost> {
        (1..=count).map(|seq| TurnCost { seq, whole, short, stays: 0 }).collect()
    }

    fn at(from: u64, whole_from: u64) -> Place {
        Place { from, whole_from }
    }

    #[test]
    fn nothing_moves_while_everything_fits() {
        assert_eq!(place(&[], at(1, 1), 0, 0), at(1, 1));
        assert_eq!(place(&turns(10, 10, 1), at(1, 1), 100, 0), at(1, 1));
        assert_eq!(place(&turns(10, 10, 1), at(4, 6), 100, 0), at(4, 6));
    }

    #[test]
    fn older_results_are_shortened_before_any_turn_is_cut() {
        // Of 110 at most 100, so down to 60: six are short then, and none is cut.
        assert_eq!(place(&turns(11, 10, 1), at(1, 1), 100, 0), at(1, 7));
        // Where shortening gives little, turns are cut, too.
        assert_eq!(place(&turns(11, 10, 9), at(1, 1), 100, 0), at(6, 10));
    }

    #[test]
    fn the_newest_is_shown_however_large() {
        assert_eq!(place(&turns(3, 500, 400), at(1, 1), 100, 0), at(3, 4));
        // It loses nothing while an older one is shown.
        assert_eq!(place(&turns(3, 500, 40), at(1, 1), 100, 0), at(3, 4));
        assert_eq!(place(&turns(3, 90, 40), at(1, 1), 100, 0), at(3, 3));
    }

    #[test]
    fn many_short_turns_are_cut_in_a_block_too() {
        let count = u64::from(TURNS_MAX);
        assert_eq!(place(&turns(count - 1, 1, 1), at(1, 1), 100_000, 0), at(1, 1));
        assert_eq!(place(&turns(count, 1, 1), at(1, 1), 100_000, 0).from, count / 2 + 1);
    }

    proptest! {
        /// Turn by turn: what is shown fits, places never go back, and they stay where they
        /// are for a good while after they moved.
        #[test]
        fn what_is_shown_fits_and_seldom_moves(
            costs in prop::collection::vec((1_u32..200, 0_u32..100, 0_u32..20), 1..120),
            room in 600_u32..3000,
        ) {
            let turns: Vec<TurnCost> = (1_u64..).zip(costs).map(|(seq, (whole, less, stays))| {
                let short = whole - whole * less / 100;
                TurnCost { seq, whole, short, stays: stays.min(short) }
            }).collect();
            let (mut now, mut moves) = (at(1, 1), 0);
            for end in 1..=turns.len() {
                let next = place(&turns[..end], now, room, 0);
                prop_assert!(next.from >= now.from && next.whole_from >= now.whole_from);
                let fit = Fit::new(&turns[..end], next);
                prop_assert!(fit.total <= u64::from(room), "{} of {room}", fit.total);
                prop_assert!(fit.shown() >= 1);
                moves += u32::from(next != now);
                now = next;
            }
            let all: u64 = turns.iter().map(|turn| u64::from(turn.whole)).sum();
            // Each move frees a fifth of the room, less the turn with which it overflowed.
            let seldom = all * 5 / u64::from(room - 400).max(1) + 1;
            prop_assert!(u64::from(moves) <= seldom, "{moves} moves, {seldom} expected");
        }
    }
}
