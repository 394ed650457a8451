//! Pure: what an answer costs.
//!
//! Prices are per million tokens, amounts are rounded up to a whole microcent,
//! so that many small answers never cost nothing. Must never see a float.

use automaton_core::money::{Microcents, MoneyError};
use serde::{Deserialize, Serialize};

/// The prices of a model, per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrices {
    /// Price of prompt tokens.
    pub input_per_million: Microcents,
    /// Price of prompt tokens from the provider's cache.
    pub cached_per_million: Microcents,
    /// Price of prompt tokens that are written into the provider's cache; `None` if it is the
    /// normal price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_per_million: Option<Microcents>,
    /// Price of generated tokens.
    pub output_per_million: Microcents,
}

impl ModelPrices {
    /// Returns the higher one of each price.
    #[must_use]
    pub fn or_dearer(self, other: &Self) -> Self {
        Self {
            input_per_million: self.input_per_million.max(other.input_per_million),
            cached_per_million: self.cached_per_million.max(other.cached_per_million),
            cache_write_per_million: self
                .cache_write_per_million
                .or(other.cache_write_per_million)
                .map(|_| self.cache_write().max(other.cache_write())),
            output_per_million: self.output_per_million.max(other.output_per_million),
        }
    }

    /// Returns the price of a million tokens that are written into the provider's cache.
    #[must_use]
    pub fn cache_write(&self) -> Microcents {
        self.cache_write_per_million.unwrap_or(self.input_per_million)
    }

    /// The most that an answer can cost, whatever of its prompt a cache held or was given: all
    /// at the dearest price, and one more for each part but one, since each is rounded up.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`] when the amount does not fit.
    pub fn at_most(&self, prompt: u32, completion: u32) -> Result<Microcents, MoneyError> {
        let input = self.input_per_million;
        let cached = self.cached_per_million;
        let write = self.cache_write();
        let written = if write == input { Microcents::ZERO } else { write };
        let parts = [input, cached, written].map(|price| i64::from(price > Microcents::ZERO));
        let dearest = input.max(cached).max(write);
        let parts: i64 = parts.into_iter().sum();
        let rounded = Microcents::new((parts - 1).max(0));
        let output = self.output_per_million.per_million(completion.into())?;
        dearest.per_million(prompt.into())?.plus(rounded)?.plus(output)
    }
}

/// The tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenCounts {
    /// Prompt tokens, cached ones included.
    pub prompt: u32,
    /// Prompt tokens from a cache; at most `prompt`.
    pub cached: u32,
    /// Other prompt tokens that are written into a cache; at most the rest.
    pub cache_write: u32,
    /// Generated.
    pub completion: u32,
}

/// Returns the cost of these tokens.
///
/// # Errors
/// [`MoneyError::Overflow`] when the amount does not fit.
pub fn price(prices: &ModelPrices, tokens: TokenCounts) -> Result<Microcents, MoneyError> {
    let cached = tokens.cached.min(tokens.prompt);
    // What costs as much as the rest is no part of its own.
    let is_part = prices.cache_write() != prices.input_per_million;
    let written = if is_part { tokens.cache_write.min(tokens.prompt - cached) } else { 0 };
    let fresh = tokens.prompt - cached - written;
    let fresh = prices.input_per_million.per_million(fresh.into())?;
    let cached = prices.cached_per_million.per_million(cached.into())?;
    let written = prices.cache_write().per_million(written.into())?;
    let output = prices.output_per_million.per_million(tokens.completion.into())?;
    fresh.plus(cached)?.plus(written)?.plus(output)
}

/// Tokens of a text when nobody counted them: one for each four characters,
/// rounded up, the rule of thumb for English text.
#[must_use]
pub fn estimate(characters: usize) -> u32 {
    u32::try_from(characters.div_ceil(4)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRICES: ModelPrices = ModelPrices {
        input_per_million: Microcents::new(180_000_000),
        cached_per_million: Microcents::new(18_000_000),
        cache_write_per_million: Some(Microcents::new(225_000_000)),
        output_per_million: Microcents::new(1_400_000_000),
    };

    #[test]
    fn each_part_has_its_price_and_is_rounded_up() {
        let check = |prompt, cached, completion, units| {
            let tokens = TokenCounts { prompt, cached, cache_write: 0, completion };
            let cost = price(&PRICES, tokens);
            assert_eq!(cost, Ok(Microcents::new(units)), "{prompt} {cached} {completion}");
        };
        let written = TokenCounts { prompt: 10, cached: 4, cache_write: 3, completion: 0 };
        assert_eq!(price(&PRICES, written), Ok(Microcents::new(3 * 180 + 72 + 3 * 225)));
        let all = TokenCounts { prompt: 10, cached: 4, cache_write: 9, completion: 0 };
        assert_eq!(price(&PRICES, all), Ok(Microcents::new(72 + 6 * 225)));
        check(0, 0, 0, 0);
        check(1_000_000, 0, 0, 180_000_000);
        check(1_000_000, 1_000_000, 0, 18_000_000);
        check(0, 0, 1, 1_400);
        check(10, 4, 3, 1_080 + 72 + 4_200);
        check(1, 9, 0, 18);
        let odd = ModelPrices { input_per_million: Microcents::new(1), ..ModelPrices::default() };
        assert_eq!(
            price(&odd, TokenCounts { prompt: 1, ..TokenCounts::default() }),
            Ok(Microcents::new(1))
        );
    }

    #[test]
    fn a_price_that_does_not_fit_is_an_error() {
        let dear =
            ModelPrices { output_per_million: Microcents::new(i64::MAX), ..ModelPrices::default() };
        let tokens = TokenCounts { completion: u32::MAX, ..TokenCounts::default() };
        assert_eq!(price(&dear, tokens), Err(MoneyError::Overflow));
    }

    proptest! {
        #[test]
        fn more_tokens_never_cost_less(prompt in 0_u32..1 << 24, cached in 0_u32..1 << 24, completion in 0_u32..1 << 24) {
            let cost = |prompt, completion| {
                price(&PRICES, TokenCounts { prompt, cached, cache_write: 0, completion }).unwrap()
            };
            prop_assert!(cost(prompt, completion) <= cost(prompt + 1, completion));
            prop_assert!(cost(prompt, completion) <= cost(prompt, completion + 1));
        }

        #[test]
        fn no_answer_costs_more_than_it_can_at_most(
            prompt in 0_u32..1 << 24, cached in 0_u32..1 << 24, cache_write in 0_u32..1 << 24,
            completion in 0_u32..1 << 24, input in 0_i64..1 << 40, cheaper in 0_i64..1 << 40,
            dearer in proptest::option::of(0_i64..1 << 40),
        ) {
            let prices = ModelPrices {
                input_per_million: Microcents::new(input),
                cached_per_million: Microcents::new(cheaper),
                cache_write_per_million: dearer.map(Microcents::new),
                ..PRICES
            };
            let cost = price(&prices, TokenCounts { prompt, cached, cache_write, completion });
            prop_assert!(cost.unwrap() <= prices.at_most(prompt, completion).unwrap());
        }
    }
}
