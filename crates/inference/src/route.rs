//! Pure: the models that there are, and which of them answers.
//!
//! One automaton has a model that its creator gave it, and perhaps cheaper ones for when credits
//! run low. Must never ask a model anything, nor choose a dearer one than was meant while there
//! is another.

use std::sync::Arc;

use automaton_core::tier::ModelTier;

use crate::provider::Provider;

/// The models of one automaton, each with the tier that it is for.
#[derive(Clone)]
pub struct ProviderRegistry {
    usual: Arc<dyn Provider>,
    cheaper: Vec<(ModelTier, Arc<dyn Provider>)>,
}

impl ProviderRegistry {
    /// With the model that its creator gave it.
    #[must_use]
    pub const fn new(usual: Arc<dyn Provider>) -> Self {
        Self { usual, cheaper: Vec::new() }
    }

    /// With one more, for when credits run low.
    #[must_use]
    pub fn with(mut self, tier: ModelTier, provider: Arc<dyn Provider>) -> Self {
        self.cheaper.push((tier, provider));
        self
    }

    /// The model that its creator gave it.
    #[must_use]
    pub fn usual(&self) -> &dyn Provider {
        &*self.usual
    }

    /// The model that answers in a tier.
    #[must_use]
    pub fn provider_for(&self, tier: ModelTier) -> &dyn Provider {
        let offered: Vec<ModelTier> = self.cheaper.iter().map(|(tier, _)| *tier).collect();
        let first = route(tier, &offered).first().copied();
        first.and_then(|at| self.cheaper.get(at)).map_or(&*self.usual, |(_, provider)| &**provider)
    }
}

/// Which of the models that are `offered` beside the usual one may answer in a tier: their
/// places, best first, which is the cheapest that is not meant for one that is poorer still. The
/// usual model comes after them.
fn route(tier: ModelTier, offered: &[ModelTier]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..offered.len())
        .filter(|at| (ModelTier::LowCompute..=tier).contains(&offered[*at]))
        .collect();
    places.sort_by_key(|at| std::cmp::Reverse(offered[*at]));
    places
}

#[cfg(test)]
mod tests {
    use ModelTier::{Critical, LowCompute, Usual};

    use super::*;

    #[test]
    fn a_model_that_is_missing_leaves_it_to_the_next_dearer_one() {
        let both: &[ModelTier] = &[LowCompute, Critical];
        for (tier, offered, places) in [
            (Usual, both, &[] as &[usize]),
            (LowCompute, both, &[0]),
            (Critical, both, &[1, 0]),
            (Critical, &[Critical, LowCompute], &[0, 1]),
            (LowCompute, &[Critical], &[]),
            (Critical, &[LowCompute], &[0]),
            (Critical, &[LowCompute, LowCompute], &[0, 1]),
            (Critical, &[], &[]),
        ] {
            assert_eq!(route(tier, offered), places, "{tier:?} of {offered:?}");
        }
    }
}
