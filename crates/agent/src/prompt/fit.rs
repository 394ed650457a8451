//! Pure: which turns the history shows, and which of them shortened.
//!
//! First arguments are shortened, since what was written is in files, then results, then
//! turns are cut. All three places move in blocks: when the turns no longer fit, so much is
//! shortened and cut that they fit for a good while, or a model's cache would be lost at
//! each turn. The newest turn is always shown, and the two newest are the last to be
//! shortened.

use automaton_store::HistoryPosition;

/// Turns that are shown at most. At that number the older half is cut, too.
pub(crate) const TURNS_MAX: u32 = 400;

/// Turns that stay whole as long as they can.
const WHOLE_TURNS: usize = 2;

/// Percentage of the room that is filled after a move.
const AFTER_PERCENT: u64 = 60;
/// With so much of it filled, shortening alone was enough.
const ENOUGH_PERCENT: u64 = 80;

/// Cost of showing a turn, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnCost {
    /// Its number.
    pub(crate) seq: u64,
    /// Whole.
    pub(crate) whole: u32,
    /// With its arguments shortened.
    pub(crate) lean: u32,
    /// With its results shortened, too.
    pub(crate) short: u32,
    /// Part that is shown elsewhere when the turn is cut: the creator's open messages.
    pub(crate) stays: u32,
}

impl TurnCost {
    /// Returns its cost at a position of the history, in tokens.
    pub(crate) const fn at(&self, place: HistoryPosition) -> u32 {
        match self.seq {
            seq if seq < place.whole_from => self.short,
            seq if seq < place.arguments_from => self.lean,
            _ => self.whole,
        }
    }
}

/// Returns the position of the history, and of its whole parts, so that the turns fit into this
/// room. Nothing moves while everything fits. A cut needs a reserve for the summary.
pub(crate) fn fit_history(
    turns: &[TurnCost],
    now: HistoryPosition,
    room: u32,
    reserve: u32,
) -> HistoryPosition {
    let mut fit = HistoryFit::new(turns, now);
    let many = fit.shown_turns() >= turns_max();
    let room = u64::from(room);
    if turns.is_empty() || (fit.total <= room && !many) {
        return now;
    }
    let last = turns.len().saturating_sub(WHOLE_TURNS).max(fit.from);
    let target = room * AFTER_PERCENT / 100;
    let enough = room * ENOUGH_PERCENT / 100;
    while fit.total > target && fit.arguments_from < last {
        fit.shorten_arguments();
    }
    if fit.total > enough {
        while fit.total > target && fit.whole_from < last {
            fit.shorten();
        }
    }
    if fit.total > enough || many {
        let target = target.saturating_sub(u64::from(reserve));
        while fit.from < last
            && (fit.total > target || (many && fit.shown_turns() > turns_max() / 2))
        {
            fit.cut();
        }
        // The newest turn is the last to lose anything.
        fit.shorten_down_to(room, turns.len() - 1);
        while fit.total > room && fit.from + 1 < turns.len() {
            fit.cut();
        }
        fit.shorten_down_to(room, turns.len());
    }
    let behind = turns.last().map_or(now.whole_from, |turn| turn.seq + 1);
    let seq = |at: usize| turns.get(at).map_or(behind, |turn| turn.seq);
    let next = HistoryPosition {
        from: turns.get(fit.from).map_or(now.from, |turn| turn.seq),
        whole_from: seq(fit.whole_from),
        arguments_from: seq(fit.arguments_from),
        told: now.told,
    };
    if next == now { now } else { HistoryPosition { told: false, ..next } }
}

fn turns_max() -> usize {
    usize::try_from(TURNS_MAX).unwrap_or(usize::MAX)
}

/// The turns with the places as indices, and what they cost.
struct HistoryFit<'a> {
    turns: &'a [TurnCost],
    from: usize,
    whole_from: usize,
    arguments_from: usize,
    total: u64,
}

impl<'a> HistoryFit<'a> {
    fn new(turns: &'a [TurnCost], now: HistoryPosition) -> Self {
        let index = |place: u64| turns.partition_point(|turn| turn.seq < place);
        let from = index(now.from);
        let whole_from = index(now.whole_from).max(from);
        let arguments_from = index(now.arguments_from).max(whole_from);
        let mut fit = Self { turns, from, whole_from, arguments_from, total: 0 };
        fit.total = (from..turns.len()).map(|at| u64::from(fit.cost(at))).sum();
        fit
    }

    fn shown_turns(&self) -> usize {
        self.turns.len() - self.from
    }

    fn cost(&self, at: usize) -> u32 {
        let is_short = at < self.whole_from;
        let is_lean = at < self.arguments_from;
        self.turns.get(at).map_or(0, |turn| match (is_short, is_lean) {
            (true, _) => turn.short,
            (false, true) => turn.lean,
            (false, false) => turn.whole,
        })
    }

    /// Shortens the arguments of the oldest turn that has them whole.
    fn shorten_arguments(&mut self) {
        let at = self.arguments_from;
        self.total -= u64::from(self.cost(at));
        self.arguments_from = at + 1;
        self.total += u64::from(self.cost(at));
    }

    /// Shortens the oldest turn whose results are whole.
    fn shorten(&mut self) {
        let at = self.whole_from;
        self.total -= u64::from(self.cost(at));
        self.whole_from = at + 1;
        self.arguments_from = self.arguments_from.max(at + 1);
        self.total += u64::from(self.cost(at));
    }

    /// Shortens turns before `end` until all fit, first their arguments.
    fn shorten_down_to(&mut self, room: u64, end: usize) {
        while self.total > room && self.arguments_from < end {
            self.shorten_arguments();
        }
        while self.total > room && self.whole_from < end {
            self.shorten();
        }
    }

    /// Cuts the oldest turn.
    fn cut(&mut self) {
        self.total -= u64::from(self.cost(self.from));
        self.total += self.turns.get(self.from).map_or(0, |turn| u64::from(turn.stays));
        self.from += 1;
        self.whole_from = self.whole_from.max(self.from);
        self.arguments_from = self.arguments_from.max(self.from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn turns(count: u64, whole: u32, short: u32) -> Vec<TurnCost> {
        (1..=count).map(|seq| TurnCost { seq, whole, lean: whole, short, stays: 0 }).collect()
    }

    /// A place, where arguments were not what had to be shortened.
    fn at(from: u64, whole_from: u64) -> HistoryPosition {
        HistoryPosition { from, whole_from, arguments_from: whole_from, told: false }
    }

    /// Returns the positions of the first turn, the first results and the first arguments.
    fn placed(turns: &[TurnCost], now: HistoryPosition, room: u32) -> (u64, u64, u64) {
        let HistoryPosition { from, whole_from, arguments_from, .. } =
            fit_history(turns, now, room, 0);
        (from, whole_from, arguments_from)
    }

    #[test]
    fn nothing_moves_while_everything_fits() {
        assert_eq!(fit_history(&[], at(1, 1), 0, 0), at(1, 1));
        assert_eq!(fit_history(&turns(10, 10, 1), at(1, 1), 100, 0), at(1, 1));
        assert_eq!(fit_history(&turns(10, 10, 1), at(4, 6), 100, 0), at(4, 6));
    }

    #[test]
    fn older_results_are_shortened_before_any_turn_is_cut() {
        // Of 110 at most 100, so down to 60: six are short then, and none is cut.
        assert_eq!(placed(&turns(11, 10, 1), at(1, 1), 100), (1, 7, 10));
        // Where shortening gives little, turns are cut, too.
        assert_eq!(placed(&turns(11, 10, 9), at(1, 1), 100), (6, 10, 10));
    }

    #[test]
    fn what_was_written_is_shortened_before_what_was_read() {
        let wrote: Vec<_> =
            turns(11, 10, 1).iter().map(|turn| TurnCost { lean: 3, ..*turn }).collect();
        // Of 110 at most 100, so down to 60: the arguments of eight are short.
        assert_eq!(placed(&wrote, at(1, 1), 100), (1, 1, 9));
        // The next time there are too few of them left, and results are shortened as well.
        let now = HistoryPosition { arguments_from: 9, ..at(1, 1) };
        assert_eq!(placed(&wrote, now, 52), (1, 9, 10));
        // A move is told anew; one that did not happen is not.
        let now = HistoryPosition { told: true, ..at(1, 1) };
        assert!(!fit_history(&wrote, now, 100, 0).told && fit_history(&wrote, now, 200, 0).told);
    }

    #[test]
    fn the_newest_is_shown_however_large() {
        assert_eq!(placed(&turns(3, 500, 400), at(1, 1), 100), (3, 4, 4));
        // It loses nothing while an older one is shown.
        assert_eq!(placed(&turns(3, 500, 40), at(1, 1), 100), (3, 4, 4));
        assert_eq!(placed(&turns(3, 90, 40), at(1, 1), 100), (3, 3, 3));
    }

    #[test]
    fn many_short_turns_are_cut_in_a_block_too() {
        let count = u64::from(TURNS_MAX);
        assert_eq!(fit_history(&turns(count - 1, 1, 1), at(1, 1), 100_000, 0), at(1, 1));
        assert_eq!(fit_history(&turns(count, 1, 1), at(1, 1), 100_000, 0).from, count / 2 + 1);
    }

    proptest! {
        /// Turn by turn: what is shown fits, places never go back, and they stay where they
        /// are for a good while after they moved.
        #[test]
        fn what_is_shown_fits_and_seldom_moves(
            costs in prop::collection::vec((1_u32..200, 0_u32..100, 0_u32..100, 0_u32..20), 1..120),
            room in 600_u32..3000,
        ) {
            let turns: Vec<TurnCost> = (1_u64..).zip(costs).map(|(seq, (whole, less, more, stays))| {
                let lean = whole - whole * less / 100;
                let short = lean - lean * more / 100;
                TurnCost { seq, whole, lean, short, stays: stays.min(short) }
            }).collect();
            let mut now = at(1, 1);
            let mut moves = 0;
            for end in 1..=turns.len() {
                let next = fit_history(&turns[..end], now, room, 0);
                prop_assert!(next.from >= now.from && next.whole_from >= now.whole_from);
                prop_assert!(next.arguments_from >= now.arguments_from);
                let fit = HistoryFit::new(&turns[..end], next);
                prop_assert!(fit.total <= u64::from(room), "{} of {room}", fit.total);
                prop_assert!(fit.shown_turns() >= 1);
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
