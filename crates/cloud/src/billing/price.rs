//! Pure: what a call of a model costs, and how much it can cost at most.
//!
//! Prices are per million tokens and each part is rounded up to a whole
//! microcent, in the way that clients add up what they spent. Nothing here may
//! ever see a float.

use automaton_core::money::{Microcents, MoneyError};
use automaton_core::names::Names;
use automaton_core::wire::chat::{ChatUsage, PromptTokensDetails};

/// Prices per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenPrices {
    /// Price of the prompt.
    pub input: Microcents,
    /// Price of the part of the prompt that the upstream read from a cache.
    pub cached: Microcents,
    /// Price of the part of the prompt that the upstream wrote into a cache.
    pub cache_write: Microcents,
    /// Price of the answer.
    pub output: Microcents,
}

/// The tokens of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BilledTokens {
    /// Tokens of the prompt, cached ones included.
    pub prompt: u32,
    /// Tokens of the prompt read from a cache.
    pub cached: u32,
    /// Tokens of the rest of the prompt that were written into a cache.
    pub cache_write: u32,
    /// Tokens of the answer.
    pub completion: u32,
}

impl BilledTokens {
    /// So many, but of none more than of these.
    #[must_use]
    pub fn within(self, most: Self) -> Self {
        let prompt = self.prompt.min(most.prompt);
        let completion = self.completion.min(most.completion);
        let cached = self.cached.min(prompt);
        Self { prompt, cached, cache_write: self.cache_write.min(prompt - cached), completion }
    }

    /// Returns the usage for a client, marked as estimated.
    #[must_use]
    pub fn as_estimate(self) -> ChatUsage {
        let cached_tokens = self.cached;
        let cache_write_tokens = self.cache_write;
        let details = PromptTokensDetails { cached_tokens, cache_write_tokens };
        ChatUsage {
            prompt_tokens: self.prompt,
            completion_tokens: self.completion,
            total_tokens: self.prompt.saturating_add(self.completion),
            prompt_tokens_details: Some(details).filter(|it| *it != PromptTokensDetails::default()),
            first_token_ms: None,
            estimated: true,
        }
    }
}

impl From<&ChatUsage> for BilledTokens {
    fn from(usage: &ChatUsage) -> Self {
        let details = usage.prompt_tokens_details.unwrap_or_default();
        let prompt = usage.prompt_tokens;
        let cached = details.cached_tokens.min(prompt);
        let cache_write = details.cache_write_tokens.min(prompt - cached);
        Self { prompt, cached, cache_write, completion: usage.completion_tokens }
    }
}

/// The limits of a call's tokens.
#[derive(Debug, Clone, Copy)]
pub struct TokenBounds {
    /// The tokens that credits are set aside for. Nothing above is ever charged.
    pub most: BilledTokens,
    /// The most tokens of the prompt and one answer together.
    pub window: u32,
    /// The number of answers asked for.
    pub choices: u32,
}

impl TokenBounds {
    /// Returns whether an upstream's count is possible: not zero, and within the window.
    #[must_use]
    pub fn allow(&self, usage: &ChatUsage) -> bool {
        let prompt = usage.prompt_tokens;
        let completion = usage.completion_tokens;
        let room = self.window.checked_sub(prompt).map(u64::from);
        let fits = room.is_some_and(|room| u64::from(completion) <= room * u64::from(self.choices));
        fits && (prompt, completion) != (0, 0)
    }

    /// The tokens that are charged, and who counted them: the upstream, or we, of the bytes of
    /// question and answer, where it told nothing that can be, or more than was set aside.
    #[must_use]
    pub fn billed(
        &self,
        told: Option<&ChatUsage>,
        prompt_bytes: usize,
        answer_bytes: usize,
    ) -> (BilledTokens, Metering) {
        let told = told.map(BilledTokens::from);
        let counted = told.unwrap_or_else(|| BilledTokens {
            prompt: estimate(prompt_bytes),
            completion: estimate(answer_bytes),
            ..BilledTokens::default()
        });
        let billed = counted.within(self.most);
        let exact = told == Some(billed);
        (billed, if exact { Metering::Reported } else { Metering::Estimated })
    }
}

/// The source of a count of tokens. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Names)]
pub enum Metering {
    /// The upstream.
    Reported,
    /// We, from the bytes, since the upstream did not say.
    Estimated,
}

/// The cost of a call, with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// The amount.
    pub cost: Microcents,
    /// For how many tokens.
    pub tokens: BilledTokens,
    /// The source of the count.
    pub metering: Metering,
}

/// Tokens that a chat template may add to the text of a message.
const TOKENS_PER_MESSAGE: u64 = 16;
/// Tokens that it may add to a conversation.
const TOKENS_PER_PROMPT: u64 = 256;

/// No prompt has more tokens than this: every tokenizer in use makes at least
/// one byte of text into a token.
#[must_use]
pub fn prompt_bound(body_bytes: usize, messages: usize) -> u32 {
    let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let template =
        TOKENS_PER_PROMPT.saturating_add(wide(messages).saturating_mul(TOKENS_PER_MESSAGE));
    u32::try_from(wide(body_bytes).saturating_add(template)).unwrap_or(u32::MAX)
}

/// Tokens of some bytes when nobody counted them: one for each three bytes,
/// rounded up. English has about four a token, so this errs for the house, which
/// has to pay its upstream.
#[must_use]
pub fn estimate(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(3)).unwrap_or(u32::MAX)
}

impl TokenPrices {
    /// Returns the cost of these tokens.
    ///
    /// # Errors
    /// Fails if the amount cannot be counted.
    pub fn cost(&self, tokens: BilledTokens) -> Result<Microcents, MoneyError> {
        let cached = tokens.cached.min(tokens.prompt);
        // What costs as much as the rest is no part of its own.
        let is_part = self.cache_write != self.input;
        let written = if is_part { tokens.cache_write.min(tokens.prompt - cached) } else { 0 };
        let fresh = self.input.per_million((tokens.prompt - cached - written).into())?;
        let cached = self.cached.per_million(cached.into())?;
        let written = self.cache_write.per_million(written.into())?;
        fresh.plus(cached)?.plus(written)?.plus(self.output.per_million(tokens.completion.into())?)
    }

    /// Returns the highest cost of these tokens, however many of them a cache held or was given.
    /// Each part is rounded up, so each but one may cost one unit more than in the whole.
    ///
    /// # Errors
    /// Fails if the amount cannot be counted.
    pub fn at_most(&self, tokens: BilledTokens) -> Result<Microcents, MoneyError> {
        let input = self.input;
        let write = self.cache_write;
        let written = if write == input { Microcents::ZERO } else { write };
        let parts = [input, self.cached, written].map(|price| i64::from(price > Microcents::ZERO));
        let input = input.max(self.cached).max(write);
        let parts: i64 = parts.into_iter().sum();
        let whole = BilledTokens { cached: 0, cache_write: 0, ..tokens };
        Self { input, ..*self }.cost(whole)?.plus(Microcents::new((parts - 1).max(0)))
    }

    /// Returns the charge for these tokens.
    ///
    /// # Errors
    /// Fails if the amount cannot be counted.
    pub fn charge(
        &self,
        (tokens, metering): (BilledTokens, Metering),
    ) -> Result<Charge, MoneyError> {
        Ok(Charge { cost: self.cost(tokens)?, tokens, metering })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRICES: TokenPrices = TokenPrices {
        input: Microcents::new(180_000_000),
        cached: Microcents::new(18_000_000),
        cache_write: Microcents::new(225_000_000),
        output: Microcents::new(1_400_000_000),
    };

    #[test]
    fn each_part_is_rounded_up() {
        let usage = ChatUsage {
            prompt_tokens: 101,
            completion_tokens: 7,
            total_tokens: 108,
            prompt_tokens_details: Some(PromptTokensDetails {
                cached_tokens: 90,
                cache_write_tokens: 10,
            }),
            first_token_ms: None,
            estimated: false,
        };
        let cost = PRICES.cost(BilledTokens::from(&usage)).unwrap();
        assert_eq!(cost, Microcents::new(180 + 90 * 18 + 10 * 225 + 9800));
        let free = TokenPrices { input: Microcents::new(1), ..PRICES };
        let one = BilledTokens { prompt: 1, ..BilledTokens::default() };
        assert_eq!(free.cost(one).unwrap(), Microcents::new(1), "never for nothing");
    }

    #[test]
    fn an_estimate_stays_below_the_bound() {
        for bytes in [0, 1, 100, 1 << 20] {
            assert!(estimate(bytes) < prompt_bound(bytes, 0));
        }
        assert_eq!(prompt_bound(usize::MAX, 3), u32::MAX);
    }

    const BOUNDS: TokenBounds = TokenBounds {
        most: BilledTokens { prompt: 300, cached: 0, cache_write: 0, completion: 50 },
        window: 1000,
        choices: 1,
    };

    fn told(prompt_tokens: u32, completion_tokens: u32) -> ChatUsage {
        ChatUsage { prompt_tokens, completion_tokens, ..ChatUsage::default() }
    }

    #[test]
    fn what_the_window_cannot_hold_was_not_counted() {
        for (prompt, completion, can_be) in
            [(0, 0, false), (1, 0, true), (0, 1, true), (900, 100, true), (900, 101, false)]
        {
            assert_eq!(BOUNDS.allow(&told(prompt, completion)), can_be, "{prompt} {completion}");
        }
        assert!(!BOUNDS.allow(&told(1001, 0)));
        assert!(TokenBounds { choices: 2, ..BOUNDS }.allow(&told(900, 200)), "each has its room");
    }

    #[test]
    fn one_estimate_is_what_is_charged_and_told() {
        let of = |usage: Option<ChatUsage>| BOUNDS.billed(usage.as_ref(), 30, 10);
        let tokens =
            |prompt, completion| BilledTokens { prompt, cached: 0, cache_write: 0, completion };
        assert_eq!(of(Some(told(300, 50))), (tokens(300, 50), Metering::Reported));
        assert_eq!(of(None), (tokens(10, 4), Metering::Estimated));
        // More than was set aside is charged as that, and told so.
        assert_eq!(of(Some(told(301, 51))), (tokens(300, 50), Metering::Estimated));
        let usage = tokens(10, 4).as_estimate();
        assert_eq!((usage.total_tokens, usage.estimated), (14, true));
        assert_eq!(BilledTokens::from(&usage), tokens(10, 4));
    }

    proptest! {
        #[test]
        fn no_answer_costs_more_than_was_set_aside(
            prices in prop::array::uniform4(prop_oneof![0_i64..5, 0_i64..2_000_000_000]),
            most in (0_u32..200_000, 0_u32..200_000),
            usage in prop::option::of((any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>())),
            bytes in (0_usize..1 << 24, 0_usize..1 << 24),
        ) {
            let [input, cached, cache_write, output] = prices.map(Microcents::new);
            let prices = TokenPrices { input, cached, cache_write, output };
            let most = BilledTokens { prompt: most.0, cached: 0, cache_write: 0, completion: most.1 };
            let bounds = TokenBounds { most, window: 100_000, choices: 2 };
            let told = usage.map(|(prompt, cached_tokens, cache_write_tokens, completion)| ChatUsage {
                prompt_tokens_details: Some(PromptTokensDetails { cached_tokens, cache_write_tokens }),
                ..told(prompt, completion)
            });
            let charge = prices.charge(bounds.billed(told.as_ref(), bytes.0, bytes.1)).unwrap();
            let held = prices.at_most(most).unwrap();
            prop_assert!(charge.cost <= held, "{charge:?} of {held}");
            let free = [input, cached, cache_write, output].iter().all(|price| *price == Microcents::ZERO);
            prop_assert_eq!(free && held > Microcents::ZERO, false);
        }
    }

    #[test]
    fn names_that_are_stored_stay() {
        assert_eq!(Metering::ALL.map(Metering::name), ["reported", "estimated"]);
    }
}
