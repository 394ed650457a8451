//! Chance, injected wherever an id, a nonce or a jitter is made.
//!
//! Nothing outside this file may ask the system for random bytes. An
//! [`Entropy`] must never be used for a decision about money or permission.

/// A source of random bytes.
pub trait Entropy: Send + Sync {
    /// Fills the buffer with random bytes.
    fn fill(&self, bytes: &mut [u8]);

    /// A random number below `bound`; 0 when `bound` is 0. The bias of the
    /// modulo is below 2⁻³² for bounds that fit into 32 bits.
    fn below(&self, bound: u32) -> u32 {
        let mut bytes = [0_u8; 8];
        self.fill(&mut bytes);
        let drawn = u64::from_le_bytes(bytes) % u64::from(bound.max(1));
        u32::try_from(drawn).unwrap_or(0)
    }
}

/// The operating system's random number generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system for chance")]
    #[expect(
        clippy::panic,
        reason = "without random numbers no id is unique and nothing may go on"
    )]
    fn fill(&self, bytes: &mut [u8]) {
        if let Err(error) = getrandom::fill(bytes) {
            panic!("the operating system gave no random numbers: {error}");
        }
    }
}
