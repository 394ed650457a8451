//! Pure: how many tokens each part of the prompt may have.
//!
//! The compact profile: small enough that a window of 8,192 tokens leaves most
//! of its room to work. Smaller windows get proportionally smaller parts. No
//! part may ever be unlimited.

/// The caps of all parts, in estimated tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caps {
    pub(crate) rules: u32,
    pub(crate) identity: u32,
    pub(crate) constitution: u32,
    pub(crate) tools: u32,
    pub(crate) soul: u32,
    pub(crate) genesis: u32,
    pub(crate) status: u32,
    pub(crate) memory: u32,
    /// The wake's cause and all messages of the turn together.
    pub(crate) input: u32,
    /// One result of a call, as history shows it.
    pub(crate) result: u32,
    /// The arguments of one call, as history shows them.
    pub(crate) arguments: u32,
    /// One thought, as history shows it.
    pub(crate) thought: u32,
    /// All turns that history shows.
    pub(crate) history: u32,
    /// The answer.
    pub(crate) answer: u32,
}

/// The window for which the compact profile was made.
const FULL_WINDOW: u32 = 8192;

/// Tokens that a call costs beyond its arguments and its result.
const PER_CALL: u32 = 40;

/// The least that a part is shown with: a sign that it is there.
const LEAST: u32 = 16;

/// The largest window that is used; beyond it a prompt only costs more.
const WINDOW_MAX: u32 = 100_000;

impl Caps {
    /// The caps for a model's window and the longest answer that is wanted.
    pub(crate) fn for_window(window: u32, answer_max: u32) -> Self {
        let window = window.min(WINDOW_MAX);
        let part = |tokens: u32| {
            if window >= FULL_WINDOW { tokens } else { scale(tokens, window) }
        };
        let answer = answer_of(window, answer_max);
        let mut caps = Self {
            rules: part(320),
            identity: part(80),
            constitution: part(420),
            tools: part(700),
            soul: part(300),
            genesis: part(520),
            status: part(160),
            memory: part(400),
            input: part(1200),
            result: part(1000).max(window / 40),
            arguments: part(400),
            thought: part(400),
            history: 0,
            answer,
        };
        // An eighth of the window stays free: estimates of tokens are estimates.
        let fixed = caps.fixed() + answer + window / 8;
        caps.history = window.saturating_sub(fixed);
        caps
    }

    /// The same caps for a turn with so many calls: none may take so much that
    /// the turn no longer fits into half of the history.
    pub(crate) fn for_calls(mut self, calls: usize) -> Self {
        let calls = u32::try_from(calls).unwrap_or(u32::MAX).max(1);
        let room = self.history / 2;
        self.input = self.input.min(room / 4);
        self.thought = self.thought.min(room / 8);
        let share = (room / 2 / calls).saturating_sub(PER_CALL);
        self.result = self.result.min(share * 2 / 3).max(LEAST);
        self.arguments = self.arguments.min(share / 6).max(LEAST);
        self
    }

    /// Tokens of everything but the history and the answer, at most.
    pub(crate) const fn fixed(&self) -> u32 {
        self.rules
            + self.identity
            + self.constitution
            + self.tools
            + self.soul
            + self.genesis
            + self.status
            + self.memory
            + self.input
    }
}

/// Tokens that a prompt may have besides its answer, whatever they are estimated to be.
pub(crate) fn room(window: u32, answer_max: u32) -> u32 {
    let window = window.min(WINDOW_MAX);
    window.saturating_sub(answer_of(window, answer_max))
}

/// What is left to the answer.
fn answer_of(window: u32, answer_max: u32) -> u32 {
    answer_max.min(window / 4)
}

/// `tokens` in proportion to a window smaller than the full one.
fn scale(tokens: u32, window: u32) -> u32 {
    let scaled = u64::from(tokens) * u64::from(window) / u64::from(FULL_WINDOW);
    u32::try_from(scaled).unwrap_or(tokens).max(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_always_fit_into_the_window() {
        for window in [1024, 2048, 4096, 8192, 32_768, 128_000, 1_000_000] {
            let caps = Caps::for_window(window, 4096);
            let all = caps.fixed() + caps.history + caps.answer;
            assert!(all <= window, "{window}: {caps:?}");
            assert!(caps.history >= window.min(WINDOW_MAX) / 10, "{window}: {caps:?}");
        }
    }
}
