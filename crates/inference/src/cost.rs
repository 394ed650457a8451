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
    /// Of the prompt.
    pub input_per_million: Microcents,
    /// Of the part of the prompt that came from the provider's cache.
    pub cached_per_million: Microcents,
    /// Of what is generated.
    pub output_per_million: Microcents,
}

impl ModelPrices {
    /// Of each price the higher one.
    #[must_use]
    pub fn or_dearer(self, other: &Self) -> Self {
        Self {
            input_per_million: self.input_per_million.max(other.input_per_million),
            cached_per_million: self.cached_per_million.max(other.cached_per_million),
            output_per_million: self.output_per_million.max(other.output_per_million),
        }
    }
}

/// The tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenCounts {
    /// Of the prompt, cached ones included.
    pub prompt: u32,
    /// Of the prompt, from a cache; more than `prompt` counts as `prompt`.
    pub cached: u32,
    /// Generated.
    pub completion: u32,
}

/// What so many tokens cost.
///
/// # Errors
/// [`MoneyError::Overflow`] when the amount does not fit.
pub fn price(prices: &ModelPrices, tokens: TokenCounts) -> Result<Microcents, MoneyError> {
    let cached = tokens.cached.min(tokens.prompt);
    let fresh = prices.input_per_million.per_million((tokens.prompt - cached).into())?;
    let cached = prices.cached_per_million.per_million(cached.into())?;
    let output = prices.output_per_million.per_million(tokens.completion.into())?;
    fresh.plus(cached)?.plus(output)
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
        output_per_million: Microcents::new(1_400_000_000),
    };

    #[test]
    fn each_part_has_its_price_and_is_rounded_up() {
        let check = |prompt, cached, completion, units| {
            let cost = price(&PRICES, TokenCounts { prompt, cached, completion });
            assert_eq!(cost, Ok(Microcents::new(units)), "{prompt} {cached} {completion}");
        };
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
                price(&PRICES, TokenCounts { prompt, cached, completion }).unwrap()
            };
            prop_assert!(cost(prompt, completion) <= cost(prompt + 1, completion));
            prop_assert!(cost(prompt, completion) <= cost(prompt, completion + 1));
        }
    }
}
