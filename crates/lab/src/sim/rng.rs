//! Chance from a seed: everything that a history draws.

use automaton_core::entropy::Entropy;

use automaton_testkit::entropy::SeededEntropy;

/// A die. What it shows depends on its seed alone.
pub(crate) struct SimRng(SeededEntropy);

impl SimRng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SeededEntropy::new(seed))
    }

    /// A number below `bound`.
    pub(crate) fn below(&self, bound: u32) -> u32 {
        self.0.below(bound)
    }

    /// Returns true with this probability, in percent.
    pub(crate) fn chance(&self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub(crate) fn pick<T: Copy, const N: usize>(&self, of: [T; N]) -> T {
        let place = self.below(u32::try_from(N).unwrap_or(u32::MAX));
        of[usize::try_from(place).unwrap_or(0)]
    }
}
