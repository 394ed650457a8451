//! Pure: how many tokens each part of the prompt may have.
//!
//! Caps are maxima: what the parts leave in truth is the history's. They grow with the
//! window, and shrink with one below the smallest that leaves room to work. No part may
//! ever be unlimited.

use automaton_core::money::Microcents;
use automaton_inference::ModelPrices;

/// The caps of all parts, in estimated tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PromptCaps {
    pub(crate) rules: u32,
    pub(crate) identity: u32,
    pub(crate) constitution: u32,
    pub(crate) operations: u32,
    pub(crate) tools: u32,
    pub(crate) soul: u32,
    pub(crate) genesis: u32,
    pub(crate) status: u32,
    pub(crate) memory: u32,
    pub(crate) worklog: u32,
    /// The wake's cause and what others than the creator say, of one turn together.
    pub(crate) input: u32,
    /// One thought, as history shows it.
    pub(crate) thought: u32,
    /// The beginning and the end of a message that is in a file.
    pub(crate) ends: u32,
    /// The sum of the turns that are not shown.
    pub(crate) digest: u32,
    /// The answer.
    pub(crate) answer: u32,
    /// All of it.
    pub(crate) window: u32,
}

/// From this window on the parts have what they need.
const FULL_WINDOW: u32 = 8192;

/// Most tokens that a history keeps although it costs more than its share of the day.
const FLOOR_MAX: u32 = 8192;

/// The least that is left to the history: that turns are not shown takes some words, too.
const HISTORY_MIN: u32 = 160;

/// The requests that a day's budget pays for at least.
const REQUESTS_PER_DAY: i64 = 100;

/// The part of a request that a server is taken to have in its cache before that was measured,
/// and the most that is believed, in thousandths: what is newest is in no cache.
const CACHED_USUAL: u32 = 500;
const CACHED_MAX: u32 = 900;

/// Measured parts count in these steps, in thousandths: the room of the history must not change
/// with each answer, since every move of its beginning costs the cache.
const CACHED_STEP: u32 = 100;

/// The long answers that a day's budget pays for at least, and their most tokens.
const LONG_ANSWERS_PER_DAY: i64 = 50;
const LONG_ANSWER_MAX: u32 = 16_384;

/// The most of a worklog that is shown, whatever the window.
const WORKLOG_MAX: u32 = 2000;

/// The most that the ends of a message in a file have, whatever the window.
const ENDS_MAX: u32 = 2000;

impl PromptCaps {
    /// The caps for a model's window and the longest answer that is wanted.
    pub(crate) fn for_window(window: u32, answer_max: u32) -> Self {
        let part = |tokens: u32| {
            if window >= FULL_WINDOW { tokens } else { scale(tokens, window) }
        };
        let grown = |tokens: u32, share: u32| part(tokens).max(window / share);
        Self {
            rules: part(800).min(320),
            identity: part(120),
            constitution: grown(420, 32),
            operations: part(480),
            tools: part(700),
            soul: grown(300, 32),
            genesis: grown(520, 16),
            status: part(240),
            memory: grown(400, 64),
            worklog: grown(400, 32).min(WORKLOG_MAX),
            input: grown(1200, 32),
            thought: grown(400, 16),
            ends: grown(200, 32).min(ENDS_MAX),
            digest: window / 16,
            answer: answer_of(window, answer_max),
            window,
        }
    }

    /// Returns the reserve for estimation errors.
    pub(crate) const fn margin(&self) -> u32 {
        self.window / 10
    }

    /// Returns the rest of the window after the taken part and the answer. If it is below the
    /// minimum, the answer shrinks, down to an eighth of the window.
    pub(crate) fn remaining(&self, taken: u32, least: u32) -> u32 {
        let beside =
            |answer: u32| self.window.saturating_sub(answer + self.margin()).saturating_sub(taken);
        beside(self.answer).max(beside(self.answer.min(self.window / 8)).min(least))
    }

    /// Returns the room of open messages and history together, given the taken part.
    pub(crate) fn history_room(&self, taken: u32) -> u32 {
        self.remaining(taken, self.window / 4 + self.floor() / 2)
    }

    /// Returns the room of the creator's open messages, given the taken part: half the window, or
    /// the part that leaves room for history. It may be zero.
    pub(crate) fn open(&self, taken: u32) -> u32 {
        let beside =
            |history: u32| self.remaining(taken, self.window / 8 + history).saturating_sub(history);
        // What is short is shown, though the history has less than it needs then.
        let short = beside((self.floor() / 4).max(HISTORY_MIN)).min(self.window / 16);
        beside(self.floor() / 2).max(short).min(self.window / 2)
    }

    /// Returns the minimum of the history, whatever a request costs.
    pub(crate) fn floor(&self) -> u32 {
        (self.window / 4).min(FLOOR_MAX)
    }
}

/// Tokens of a request that cost at most a hundredth of the day's budget, at the price that is
/// expected of it; none where nothing limits them. `cached` is the part in thousandths that the
/// server had in its cache of the last requests, where that was measured.
pub(crate) fn affordable(
    per_day: Option<Microcents>,
    prices: &ModelPrices,
    cached: Option<u32>,
) -> Option<u32> {
    let share =
        cached.map_or(CACHED_USUAL, |share| share.min(CACHED_MAX) / CACHED_STEP * CACHED_STEP);
    let fresh = i128::from(prices.input_per_million.units());
    let kept = i128::from(prices.cached_per_million.units()).min(fresh);
    let expected = (fresh * i128::from(1000 - share) + kept * i128::from(share)) / 1000;
    // silent-ok: a mean of two prices is no larger than the larger of them.
    let expected = i64::try_from(expected).unwrap_or(i64::MAX);
    paid_by(REQUESTS_PER_DAY, per_day, Microcents::new(expected))
}

/// Tokens of a request that a ceiling of one call pays for beside its answer; none where nothing
/// limits them. `worst` is how many times the estimate a request is counted at.
pub(crate) fn affordable_call(
    per_call: Option<Microcents>,
    prices: &ModelPrices,
    answer: u32,
    worst: i64,
) -> Option<u32> {
    let dearest = prices.input_per_million.max(prices.cached_per_million).max(prices.cache_write());
    // silent-ok: an answer that costs more than can be counted leaves nothing to the request.
    let answer = prices.output_per_million.per_million(answer.into()).unwrap_or(per_call?);
    let left = per_call?.units().saturating_sub(answer.units()).max(0);
    paid_by(worst, Some(Microcents::new(left)), dearest)
}

/// Tokens of an answer to its creator that cost at most a fiftieth of the day's budget, and
/// are no more than files are written with.
pub(crate) fn long_answer(per_day: Option<Microcents>, prices: &ModelPrices) -> u32 {
    let paid = paid_by(LONG_ANSWERS_PER_DAY, per_day, prices.output_per_million);
    paid.map_or(LONG_ANSWER_MAX, |paid| paid.min(LONG_ANSWER_MAX))
}

/// Tokens at this price that one of so many parts of the day's budget pays for.
fn paid_by(parts: i64, per_day: Option<Microcents>, per_million: Microcents) -> Option<u32> {
    let price = i128::from(per_million.units());
    let share = i128::from(per_day?.units() / parts);
    let tokens = (share.saturating_mul(1_000_000)).checked_div(price)?;
    Some(u32::try_from(tokens.max(0)).unwrap_or(u32::MAX))
}

/// Tokens that a prompt may have besides its answer, whatever they are estimated to be.
pub(crate) fn prompt_room(window: u32, answer_max: u32) -> u32 {
    window.saturating_sub(answer_of(window, answer_max))
}

/// Most tokens of one result, whatever the window.
const RESULT_MAX: u32 = 16_000;

/// The least that a result is shown with: what it says of itself, and a line or two.
const RESULT_MIN: u32 = 64;

/// Tokens that one result may have in a turn of so many calls: a tenth of the window, and a
/// quarter of it together.
pub(crate) fn result_room(window: u32, calls: usize) -> u32 {
    let calls = u32::try_from(calls).unwrap_or(u32::MAX).max(1);
    (window / 10).min(RESULT_MAX).min(window / 4 / calls).max(RESULT_MIN)
}

/// The least that a part of a turn is shown with: a sign that it is there.
const LEAST: u32 = 16;

/// Tokens of an older result, and of the arguments of an older call.
const SHORT_MIN: u32 = 120;
const SHORT_MAX: u32 = 400;

/// Tokens that the parts of one turn may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnSizes {
    /// One result.
    pub(crate) result: u32,
    /// The arguments of one call.
    pub(crate) arguments: u32,
    pub(crate) thought: u32,
    /// Room of the texts of others than the creator together.
    pub(crate) input: u32,
}

impl TurnSizes {
    /// Returns the sizes of a turn that is shown whole.
    pub(crate) fn full(caps: &PromptCaps, calls: usize) -> Self {
        let result = result_room(caps.window, calls);
        Self { result, arguments: result, thought: caps.thought, input: caps.input }
    }

    /// Returns the sizes of a turn with shortened arguments.
    pub(crate) fn lean(caps: &PromptCaps, calls: usize) -> Self {
        let whole = Self::full(caps, calls);
        Self { arguments: whole.arguments.min(short_of(caps)), ..whole }
    }

    /// Returns the sizes of a turn with shortened results too.
    pub(crate) fn short(caps: &PromptCaps, calls: usize) -> Self {
        Self::full(caps, calls).at_most(short_of(caps))
    }

    /// Returns the sizes of a turn that is too large by itself: each step halves them.
    pub(crate) fn tight(caps: &PromptCaps, calls: usize, steps: u32) -> Self {
        let whole = Self::full(caps, calls);
        let most = whole.result.max(whole.thought).max(whole.input) >> steps.min(31);
        whole.at_most(most.max(LEAST))
    }

    fn at_most(self, most: u32) -> Self {
        Self {
            result: self.result.min(most),
            arguments: self.arguments.min(most),
            thought: self.thought.min(most),
            input: self.input.min(most),
        }
    }
}

/// Tokens of what is shortened in an older turn.
fn short_of(caps: &PromptCaps) -> u32 {
    (caps.window / 128).clamp(SHORT_MIN, SHORT_MAX)
}

/// Returns the room of the answer.
fn answer_of(window: u32, answer_max: u32) -> u32 {
    answer_max.min(window / 4)
}

/// `tokens` in proportion to a window smaller than the full one.
fn scale(tokens: u32, window: u32) -> u32 {
    let scaled = u64::from(tokens) * u64::from(window) / u64::from(FULL_WINDOW);
    u32::try_from(scaled).unwrap_or(tokens).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_a_tenth_of_the_window_and_a_quarter_together() {
        assert_eq!(result_room(8_192, 1), 819);
        assert_eq!(result_room(32_768, 2), 3_276);
        assert_eq!(result_room(128_000, 4), 8_000);
        assert_eq!(result_room(400_000, 1), 16_000);
        assert_eq!(result_room(1_024, 16), 64);
        assert_eq!(result_room(0, 0), 64);
    }

    #[test]
    fn open_messages_have_half_of_a_window_that_has_it() {
        for (window, taken, share) in [
            (400_000, 8_000, 200_000),
            (32_768, 6_000, 15_300),
            (8_192, 4_000, 1_024),
            (8_192, 5_100, 512),
            (8_192, 8_000, 0),
        ] {
            assert_eq!(PromptCaps::for_window(window, 4096).open(taken), share, "{window}");
        }
    }

    #[test]
    fn a_ceiling_of_one_call_leaves_to_the_request_what_the_answer_does_not_take() {
        let cents = |cents: i64| Microcents::new(cents * Microcents::PER_CENT);
        let prices = ModelPrices {
            input_per_million: cents(100),
            output_per_million: cents(500),
            ..ModelPrices::default()
        };
        assert_eq!(affordable_call(None, &prices, 2048, 1), None);
        assert_eq!(affordable_call(Some(cents(3)), &prices, 2000, 1), Some(20_000));
        assert_eq!(affordable_call(Some(cents(3)), &prices, 2000, 4), Some(5_000));
        assert_eq!(affordable_call(Some(cents(1)), &prices, 4000, 1), Some(0));
        assert_eq!(affordable_call(Some(cents(1)), &ModelPrices::default(), 4000, 1), None);
    }

    #[test]
    fn a_request_costs_a_hundredth_of_the_day() {
        let cents = |cents: i64| Microcents::new(cents * Microcents::PER_CENT);
        let check = |day: Option<i64>, million: i64, tokens: Option<u32>| {
            let prices = ModelPrices {
                input_per_million: cents(million),
                cached_per_million: cents(million),
                cache_write_per_million: None,
                output_per_million: cents(million),
            };
            for share in [None, Some(0), Some(420), Some(1000)] {
                let found = affordable(day.map(cents), &prices, share);
                assert_eq!(found, tokens, "{day:?} {million} {share:?}");
            }
            let cached = ModelPrices { cached_per_million: Microcents::ZERO, ..prices };
            assert!(affordable(day.map(cents), &cached, None) >= tokens);
            let long = long_answer(day.map(cents), &prices);
            let least = tokens.map_or(16_384, |tokens| tokens.saturating_mul(2).min(16_384));
            assert!((least..=16_384).contains(&long), "{long}");
        };
        check(Some(2000), 300, Some(66_666));
        check(Some(500), 25, Some(200_000));
        check(Some(1), 3000, Some(3));
        check(Some(2000), 0, None);
        check(None, 300, None);
        check(Some(i64::MAX / Microcents::PER_CENT), 1, Some(u32::MAX));
    }

    #[test]
    fn the_room_follows_the_price_that_is_expected() {
        let day = Some(Microcents::new(500 * Microcents::PER_CENT));
        let prices = automaton_inference::catalogue::model("gpt-5.2").unwrap().prices;
        let at = |share| affordable(day, &prices, share).unwrap();
        assert_eq!(at(None), 50_505, "half of it is taken to be cached");
        assert_eq!((at(Some(0)), at(Some(99))), (27_777, 27_777));
        assert_eq!((at(Some(500)), at(Some(599))), (50_505, 50_505));
        assert_eq!((at(Some(900)), at(Some(1000))), (146_198, 146_198), "no more is believed");
    }
}
