//! Pure: how large an answer may be and how long it may take, by what was asked for.
//!
//! A fixed limit either breaks an honest long answer off or lets a short one be of any size. Must
//! never be below what an honest server sends for the tokens that were paid for.

use std::time::Duration;

/// Bytes of any answer, beside its tokens.
const BASE_BYTES: u64 = 1 << 20;
/// Bytes of a piece of a stream with one token: names, ids, and the text, which some formats
/// repeat at the end.
const PIECE_BYTES: u64 = 1024;
/// Bytes of a token in one document: some servers write each character as a number.
const TOKEN_BYTES: u64 = 32;
/// Bytes of one token with its probability: its text, and its bytes as numbers.
const PROBABILITY_BYTES: u64 = 256;
/// Bytes of one vector.
const VECTOR_BYTES: u64 = 64 << 10;
/// The number of times that some formats repeat the question in their answer.
const ECHOES: u64 = 4;
/// The largest answer in one document, which is held in memory as a whole.
const DOCUMENT_BYTES_MAX: u64 = 136 << 20;
/// A document of more bytes is large: few of them are made at a time.
const LARGE_BYTES: u64 = 40 << 20;
/// The shortest time that any answer may take.
const TOTAL_MIN: Duration = Duration::from_secs(900);
/// The longest time that a server may take for one token of an answer.
const TOKEN_TIME: Duration = Duration::from_millis(100);

/// The parts of a request that decide the size of its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyShape {
    /// The answer comes piece by piece.
    pub(super) is_stream: bool,
    /// Tokens of all answers together, at most.
    pub(super) tokens: u32,
    /// The number of answers.
    pub(super) choices: u32,
    /// Tokens with probabilities that are listed for each token; 0 for none.
    pub(super) probabilities: u32,
    /// Vectors, at most.
    pub(super) vectors: usize,
    /// Bytes of the question.
    pub(super) question_bytes: usize,
}

/// The limits of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplyLimits {
    /// Bytes.
    pub(super) bytes: u64,
    /// Time in all.
    pub(super) total: Duration,
    /// The answer is one large document.
    pub(super) is_large: bool,
}

impl ReplyLimits {
    /// Returns what an answer of this shape may have.
    pub(super) fn new(shape: ReplyShape) -> Self {
        let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let token = if shape.is_stream { PIECE_BYTES } else { TOKEN_BYTES };
        let probabilities = u64::from(shape.probabilities).saturating_mul(PROBABILITY_BYTES);
        let token = token.saturating_add(probabilities);
        let own = BASE_BYTES
            .saturating_add(u64::from(shape.tokens).saturating_mul(token))
            .saturating_add(wide(shape.vectors).saturating_mul(VECTOR_BYTES));
        let bytes = own.saturating_add(wide(shape.question_bytes).saturating_mul(ECHOES));
        let tokens_each = shape.tokens / shape.choices.max(1);
        let total = TOTAL_MIN.max(TOKEN_TIME.saturating_mul(tokens_each));
        Self { bytes, total, is_large: !shape.is_stream && own > LARGE_BYTES }
    }

    /// Returns whether so large an answer can come as one document.
    pub(super) const fn fit_document(self) -> bool {
        self.bytes <= DOCUMENT_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHAPE: ReplyShape = ReplyShape {
        is_stream: true,
        tokens: 0,
        choices: 1,
        probabilities: 0,
        vectors: 0,
        question_bytes: 0,
    };

    /// Returns a piece as servers compatible with OpenAI send it, with a word of this size and this
    /// number of alternatives.
    fn piece(word: usize, alternatives: usize) -> String {
        let one = |word: &str| {
            let bytes: Vec<_> = word.bytes().map(|byte| byte.to_string()).collect();
            format!(
                r#"{{"token":"{word}","logprob":-12.345678901234567,"bytes":[{}]}}"#,
                bytes.join(",")
            )
        };
        let word = "w".repeat(word);
        let all: Vec<_> = (0..alternatives).map(|_| one(&word)).collect();
        let told = match alternatives {
            0 => "null".to_owned(),
            _ => format!(r#"{{"content":[{},{}]}}"#, one(&word), all.join(",")),
        };
        format!(
            "data: {{\"id\":\"chatcmpl-0123456789012345678901234567890\",\
             \"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\
             \"system_fingerprint\":\"fp_0123456789\",\"choices\":[{{\"index\":0,\
             \"delta\":{{\"content\":\"{word}\"}},\"logprobs\":{told},\
             \"finish_reason\":null}}]}}\n\n"
        )
    }

    proptest! {
        #[test]
        fn an_honest_stream_fits(
            tokens in 1_u32..200_000,
            choices in 1_u32..9,
            alternatives in 0_u8..21,
            word in 1_usize..25,
        ) {
            let probabilities = if alternatives == 0 { 0 } else { u32::from(alternatives) + 1 };
            let shape = ReplyShape { tokens: tokens * choices, choices, probabilities, ..SHAPE };
            let sent = piece(word, alternatives.into()).len() as u64 * u64::from(tokens * choices);
            prop_assert!(ReplyLimits::new(shape).bytes >= sent);
        }

        #[test]
        fn more_is_never_allowed_less(
            fewer in any::<u32>(), more in any::<u32>(), probabilities in any::<u32>(),
        ) {
            let (fewer, more) = (fewer.min(more), fewer.max(more));
            let of = |tokens| ReplyLimits::new(ReplyShape { tokens, probabilities, ..SHAPE });
            prop_assert!(of(fewer).bytes <= of(more).bytes && of(fewer).total <= of(more).total);
        }
    }

    #[test]
    fn a_short_answer_is_a_short_one_and_a_long_one_has_its_time() {
        let of = |tokens| ReplyLimits::new(ReplyShape { tokens, ..SHAPE });
        assert_eq!((of(16).bytes, of(16).total), ((1 << 20) + (16 << 10), TOTAL_MIN));
        assert_eq!(of(128_000).total, Duration::from_secs(12_800));
        let eight = ReplyShape { tokens: 8 * 128_000, choices: 8, ..SHAPE };
        assert_eq!(ReplyLimits::new(eight).total, Duration::from_secs(12_800), "side by side");
    }

    #[test]
    fn documents_of_words_and_of_vectors_fit_and_those_of_probabilities_to_some_length() {
        let words = ReplyShape { is_stream: false, tokens: 8 * 128_000, choices: 8, ..SHAPE };
        assert!(ReplyLimits::new(words).fit_document() && !ReplyLimits::new(words).is_large);
        let vectors = ReplyShape { is_stream: false, vectors: 2048, ..SHAPE };
        assert!(ReplyLimits::new(vectors).fit_document() && ReplyLimits::new(vectors).is_large);
        let told = |tokens| ReplyShape { tokens, probabilities: 21, is_stream: false, ..SHAPE };
        assert!(ReplyLimits::new(told(16_384)).fit_document());
        assert!(!ReplyLimits::new(told(128_000)).fit_document());
    }
}
