//! Pure: why an answer ended, whatever the format and the server call it.

use crate::provider::FinishReason;

/// Meaning of a finish reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinishMeaning {
    /// The model had said what it had to say.
    Ended,
    /// It waits for the results of its calls.
    Calls,
    /// There was no room for more.
    Cut,
    /// The rest is withheld.
    Refused,
    /// The server could not go on, or the model wrote a call that is none.
    Failed,
    /// Nobody knows the word.
    Unknown,
}

/// Words for each meaning, in lower case with `_` between them.
const ENDED: [&str; 18] = [
    "stop",
    "stopped",
    "eos",
    "eos_token",
    "end",
    "end_turn",
    "end_of_turn",
    "stop_sequence",
    "stop_token",
    "complete",
    "completed",
    "finish",
    "finished",
    "done",
    "normal",
    "success",
    "pause_turn",
    "load",
];
const CALLS: [&str; 7] = [
    "tool_calls",
    "tool_call",
    "tool_use",
    "tools",
    "function_call",
    "function_calls",
    "requires_action",
];
const CUT: [&str; 9] = [
    "length",
    "max_length",
    "max_tokens",
    "max_output_tokens",
    "max_completion_tokens",
    "model_length",
    "token_limit",
    "incomplete",
    "model_context_window_exceeded",
];
const REFUSED: [&str; 14] = [
    "content_filter",
    "content_filtered",
    "refusal",
    "refused",
    "safety",
    "recitation",
    "language",
    "blocklist",
    "prohibited_content",
    "spii",
    "image_safety",
    "guardrail_intervened",
    "sensitive",
    "moderation",
];

/// Parts of words that say that something failed. Servers coin new ones all the time.
const FAILED: [&str; 24] = [
    "error",
    "fail",
    "timeout",
    "timed_out",
    "time_limit",
    "deadline",
    "abort",
    "cancel",
    "exception",
    "interrupt",
    "overload",
    "unavailable",
    "insufficient",
    "crash",
    "malformed",
    "unexpected",
    "disconnect",
    "network",
    "preempt",
    "evict",
    "killed",
    "exceeded",
    "exhausted",
    "too_many",
];

/// Words of failures that have no such part.
const FAILED_WORDS: [&str; 4] = ["busy", "shutdown", "missing_thought_signature", "oom"];

/// Returns the meaning of a finish reason.
pub(super) fn meaning_of(word: &str) -> FinishMeaning {
    let word: String = word.trim().chars().map(in_table).collect();
    let word = word.trim_matches('_');
    if ENDED.contains(&word) {
        return FinishMeaning::Ended;
    }
    if CALLS.contains(&word) {
        return FinishMeaning::Calls;
    }
    if CUT.contains(&word) || (word.contains("context") && word.contains("exceed")) {
        return FinishMeaning::Cut;
    }
    if REFUSED.contains(&word) {
        return FinishMeaning::Refused;
    }
    if FAILED_WORDS.contains(&word) || FAILED.iter().any(|part| word.contains(part)) {
        return FinishMeaning::Failed;
    }
    FinishMeaning::Unknown
}

/// A character of a word as the table has it.
fn in_table(it: char) -> char {
    if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '_' }
}

impl FinishMeaning {
    /// The word that chat completions have for it. Nothing where the answer is none.
    pub(super) const fn chat_word(self) -> Option<&'static str> {
        match self {
            Self::Ended | Self::Unknown => Some("stop"),
            Self::Calls => Some("tool_calls"),
            Self::Cut => Some("length"),
            Self::Refused => Some("content_filter"),
            Self::Failed => None,
        }
    }

    /// Returns the finish reason for users of answers; `None` if the answer failed.
    pub(super) const fn reason(self) -> Option<FinishReason> {
        match self {
            // Text and calls are there, whatever the word means.
            Self::Ended | Self::Unknown => Some(FinishReason::Stop),
            Self::Calls => Some(FinishReason::ToolCalls),
            Self::Cut => Some(FinishReason::Length),
            Self::Refused => Some(FinishReason::Filtered),
            Self::Failed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_means_the_same_in_every_format() {
        use FinishMeaning::{Calls, Cut, Ended, Failed, Refused, Unknown};
        for (meaning, words) in [
            (Ended, &["stop", "STOP", "end_turn", "eos", "stop_sequence", " stop ", "done"][..]),
            (Calls, &["tool_calls", "tool_use", "function_call", "TOOL-CALLS"]),
            (
                Cut,
                &[
                    "length",
                    "MAX_TOKENS",
                    "model_context_window_exceeded",
                    "context-length-exceeded",
                ],
            ),
            (Refused, &["content_filter", "SAFETY", "refusal", "PROHIBITED_CONTENT"]),
            (
                Failed,
                &[
                    "error",
                    "insufficient_system_resource",
                    "network_error",
                    "timeout",
                    "server_error",
                    "aborted",
                    "abort",
                    "cancelled",
                    "engine_overloaded",
                    "MALFORMED_FUNCTION_CALL",
                    "UNEXPECTED_TOOL_CALL",
                    "TOO_MANY_TOOL_CALLS",
                    "rate_limit_exceeded",
                    "internal-failure",
                    "Failed",
                    "MALFORMED_RESPONSE",
                ],
            ),
            (Unknown, &["unknown-word", "OTHER", "whatever", ""]),
        ] {
            for word in words {
                assert_eq!(meaning_of(word), meaning, "{word}");
            }
        }
        assert_eq!(Failed.reason(), None);
        assert_eq!(Unknown.reason(), Some(FinishReason::Stop));
        for word in ["stop", "tool_calls", "length", "content_filter"] {
            assert_eq!(meaning_of(word).chat_word(), Some(word));
        }
    }
}
