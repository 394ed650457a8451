//! Pure: what a call of a model costs, and how much it can cost at most.
//!
//! Prices are per million tokens and each part is rounded up to a whole
//! microcent, in the way that clients add up what they spent. Nothing here may
//! ever see a float.

use automaton_core::money::{Microcents, MoneyError};
use automaton_core::wire::chat::ChatUsage;

/// Prices per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenPrices {
    /// Of the prompt.
    pub input: Microcents,
    /// Of the part of the prompt that the upstream had in a cache.
    pub cached: Microcents,
    /// Of the answer.
    pub output: Microcents,
}

/// The tokens of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BilledTokens {
    /// Of the prompt, cached ones included.
    pub prompt: u32,
    /// Of the prompt, from a cache.
    pub cached: u32,
    /// Of the answer.
    pub completion: u32,
}

/// Who counted the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metering {
    /// The upstream.
    Reported,
    /// We, from the bytes, since the upstream did not say.
    Estimated,
}

automaton_core::names! {
    /// Its name in the database.
    Metering {
        Reported => "reported", Estimated => "estimated",
    }
}

/// What a call cost, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// How much.
    pub cost: Microcents,
    /// For how many tokens.
    pub tokens: BilledTokens,
    /// Who counted them.
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
/// has to pay its upstream; it is never more than what was set aside.
#[must_use]
pub fn estimate(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(3)).unwrap_or(u32::MAX)
}

impl TokenPrices {
    /// What so many tokens cost.
    ///
    /// # Errors
    /// When the amount cannot be counted.
    pub fn of(&self, tokens: BilledTokens) -> Result<Microcents, MoneyError> {
        let cached = tokens.cached.min(tokens.prompt);
        let fresh = self.input.per_million((tokens.prompt - cached).into())?;
        let output = self.output.per_million(tokens.completion.into())?;
        fresh.plus(self.cached.per_million(cached.into())?)?.plus(output)
    }

    /// The charge for what the upstream reported.
    ///
    /// # Errors
    /// When the amount cannot be counted.
    pub fn reported(&self, usage: &ChatUsage) -> Result<Charge, MoneyError> {
        let tokens = BilledTokens {
            prompt: usage.prompt_tokens,
            cached: usage.prompt_tokens_details.map_or(0, |details| details.cached_tokens),
            completion: usage.completion_tokens,
        };
        Ok(Charge { cost: self.of(tokens)?, tokens, metering: Metering::Reported })
    }

    /// The charge when the upstream reported nothing.
    ///
    /// # Errors
    /// When the amount cannot be counted.
    pub fn estimated(&self, prompt_bytes: usize, answer: usize) -> Result<Charge, MoneyError> {
        let tokens = BilledTokens {
            prompt: estimate(prompt_bytes),
            cached: 0,
            completion: estimate(answer),
        };
        Ok(Charge { cost: self.of(tokens)?, tokens, metering: Metering::Estimated })
    }
}

#[cfg(test)]
mod tests {
    use automaton_core::wire::chat::PromptTokensDetails;

    use super::*;

    const PRICES: TokenPrices = TokenPrices {
        input: Microcents::new(180_000_000),
        cached: Microcents::new(18_000_000),
        output: Microcents::new(1_400_000_000),
    };

    #[test]
    fn each_part_is_rounded_up() {
        let usage = ChatUsage {
            prompt_tokens: 101,
            completion_tokens: 7,
            total_tokens: 108,
            prompt_tokens_details: Some(PromptTokensDetails { cached_tokens: 100 }),
            first_token_ms: None,
        };
        assert_eq!(PRICES.reported(&usage).unwrap().cost, Microcents::new(180 + 1800 + 9800));
        let free = TokenPrices { input: Microcents::new(1), ..PRICES };
        let one = BilledTokens { prompt: 1, cached: 0, completion: 0 };
        assert_eq!(free.of(one).unwrap(), Microcents::new(1), "never for nothing");
    }

    #[test]
    fn an_estimate_stays_below_the_bound() {
        for bytes in [0, 1, 100, 1 << 20] {
            assert!(estimate(bytes) < prompt_bound(bytes, 0));
        }
        assert_eq!(prompt_bound(usize::MAX, 3), u32::MAX);
    }
}
