//! Pure: choosing a token from logits.
//!
//! Greedy at temperature 0, else drawn by a seeded generator, so that the same
//! request gives the same answer. It must never choose what the mask forbids.

use llama_cpp_2::token::LlamaToken;

/// Chooses tokens for one answer.
#[derive(Debug, Clone)]
pub struct Sampler {
    temperature: f64,
    state: u64,
}

impl Sampler {
    /// A sampler; `temperature_milli` is in thousandths and 0 is greedy.
    #[must_use]
    pub fn new(temperature_milli: u32, seed: u64) -> Self {
        Self { temperature: f64::from(temperature_milli) / 1000.0, state: seed }
    }

    /// Index of one of the scores (log-probabilities up to a constant); those of
    /// minus infinity are never chosen. None when no score is finite.
    #[must_use]
    pub fn choose(&mut self, scores: impl Iterator<Item = f64> + Clone) -> Option<usize> {
        let finite = scores.enumerate().filter(|(_, score)| score.is_finite());
        let better =
            |best: (usize, f64), next: (usize, f64)| if next.1 > best.1 { next } else { best };
        let (best, top) = finite.clone().reduce(better)?;
        if self.temperature <= 0.0 {
            return Some(best);
        }
        let temperature = self.temperature;
        let weight = |score: f64| ((score - top) / temperature).exp();
        let total: f64 = finite.clone().map(|(_, score)| weight(score)).sum();
        let mut left = self.uniform() * total;
        for (index, score) in finite {
            left -= weight(score);
            if left <= 0.0 {
                return Some(index);
            }
        }
        Some(best)
    }

    /// A number in [0, 1) by SplitMix64 (Steele, Lea and Flood, 2014).
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The log-probability of a token under the softmax of `logits`, in nats.
#[must_use]
pub fn log_probability(logits: &[f32], token: LlamaToken) -> f64 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - top).exp()).sum();
    let index = usize::try_from(token.0).ok();
    let logit = index.and_then(|index| logits.get(index)).copied();
    logit.map_or(f64::NEG_INFINITY, |logit| f64::from(logit - top) - sum.ln())
}
