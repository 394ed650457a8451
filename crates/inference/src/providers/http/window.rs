//! Pure: the window that a server names when it refuses a prompt as too long.
//!
//! Each kind of server says it in other words, mostly beside how long the prompt was. What
//! is read is a server's word: whoever uses it must never make a window larger by it.

/// Phrases before the number, in lower case. A word or two may stand between.
const BEFORE: [&str; 17] = [
    "context length",
    "context length (",
    "context size",
    "context size (",
    "context window",
    "context limit",
    "prompt length",
    "model length",
    "token limit",
    "tokens allowed",
    "tokens allowed (",
    "n_ctx",
    "the context",
    "cannot exceed",
    "must be <=",
    "must have less than",
    "limit",
];

/// Words that may stand between.
const BETWEEN: [&str; 8] = [" ", "\"", ":", "=", "is ", "of ", "only ", "to "];

/// Phrases after the number.
const AFTER: [&str; 1] = [" maximum context length"];

/// Numbers that are a window, in tokens. Smaller ones are counts of messages, or codes.
const WINDOWS: std::ops::RangeInclusive<u32> = 256..=100_000_000;

/// The window that a refusal names, in tokens; none where it names none.
pub(super) fn window_in(text: &str) -> Option<u32> {
    let text = text.to_lowercase();
    compared(&text)
        .or_else(|| {
            let all = BEFORE.iter().flat_map(|words| text.match_indices(words));
            all.filter_map(|(at, words)| number(after(&text[at + words.len()..]))).next()
        })
        .or_else(|| {
            let all = AFTER.iter().flat_map(|words| text.match_indices(words));
            all.filter_map(|(at, _)| {
                let digits = text[..at].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
                number(text.get(digits..at)?)
            })
            .next()
        })
        .filter(|tokens| WINDOWS.contains(tokens))
}

/// The right side of `213462 tokens > 200000 maximum` or `9 + 9 > 10`.
fn compared(text: &str) -> Option<u32> {
    text.match_indices(" > ").find_map(|(at, sign)| {
        let left = text[..at].trim_end_matches(" tokens");
        let counts = left.ends_with(|c: char| c.is_ascii_digit());
        counts.then(|| number(&text[at + sign.len()..]))?
    })
}

/// Returns the text after the words that may stand between.
fn after(mut text: &str) -> &str {
    while let Some(rest) = BETWEEN.iter().find_map(|words| text.strip_prefix(words)) {
        text = rest;
    }
    text
}

/// The number that a text begins with, with or without separators, as `131,072`.
fn number(text: &str) -> Option<u32> {
    let is_part = |c: char| c.is_ascii_digit() || c == ',' || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let digits: String = text[..end].chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refusals of servers, with the window that they name.
    const REFUSALS: &[(&str, Option<u32>)] = &[
        // OpenAI, DeepSeek, OpenRouter and what speaks like them.
        (
            "This model's maximum context length is 8192 tokens. However, your messages \
                 resulted in 10000 tokens. Please reduce the length of the messages.",
            Some(8192),
        ),
        (
            "This endpoint's maximum context length is 131072 tokens. However, you requested \
                 about 150000 tokens (146000 of text input, 4000 in the output).",
            Some(131_072),
        ),
        ("Your input exceeds the context window of this model.", None),
        // vLLM, of three ages.
        (
            "You passed 4097 input tokens and requested 0 output tokens. However, the model's \
                 context length is only 4096 tokens, resulting in a maximum input length of 4096",
            Some(4096),
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum \
                 context length is 4096 tokens and your request has 1000 input tokens (4096 > \
                 4096 - 1000).",
            Some(4096),
        ),
        (
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
            Some(4096),
        ),
        // Anthropic.
        ("prompt is too long: 213462 tokens > 200000 maximum", Some(200_000)),
        (
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, \
                 decrease input length or `max_tokens` and try again",
            Some(200_000),
        ),
        // xAI.
        (
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            Some(131_072),
        ),
        // Gemini.
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed \
                 (1048576).",
            Some(1_048_576),
        ),
        // llama.cpp, of three ages; the last as a cloud of ours passes it on.
        ("the request exceeds the available context size (4096), try increasing it", Some(4096)),
        (
            "request (5000 tokens) exceeds the available context size (4096 tokens), try \
                 increasing it",
            Some(4096),
        ),
        (
            r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size","n_prompt_tokens":5000,"n_ctx": 4096}}"#,
            Some(4096),
        ),
        ("Requested tokens (2100) exceed context window of 2048", Some(2048)),
        // LM Studio.
        (
            "Trying to keep the first 6247 tokens when context the overflows. However, the \
                 model is loaded with context length of only 4096 tokens, which is not enough.",
            Some(4096),
        ),
        // SGLang.
        (
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            Some(4096),
        ),
        // Mistral.
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 \
                 maximum context length",
            Some(32_768),
        ),
        // Text Generation Inference, Together.
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. \
                 Given: 9000 `inputs` tokens and 200 `max_new_tokens`",
            Some(8193),
        ),
        ("`inputs` must have less than 4095 tokens. Given: 5000", Some(4095)),
        // Fireworks, Moonshot, Cohere, Cerebras, Groq, GitHub.
        ("The prompt is too long: 140000, model maximum context length: 131071", Some(131_071)),
        ("Your request exceeded model token limit: 8192 (requested: 9000)", Some(8192)),
        (
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - \
                 received 4292.",
            Some(4081),
        ),
        (
            "Please reduce the length of the messages or completion. Current length is 9000 \
                 while limit is 8192",
            Some(8192),
        ),
        (
            "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested \
                 10242, please reduce your message size and try again.",
            Some(6000),
        ),
        ("prompt token count of 70000 exceeds the limit of 64000", Some(64_000)),
        ("maximum context length is 131,072 tokens", Some(131_072)),
        // Our own helper.
        (
            "the conversation has 9000 tokens, and 64 of the context of 8192 must stay free \
                 for the answer",
            Some(8192),
        ),
        // None of these is a window.
        ("invalid params, context window exceeds limit (2013)", None),
        ("Please reduce the length of the messages or completion.", None),
        ("Input is too long for requested model.", None),
        ("the limit is 8 messages", None),
        ("context length is 99999999999999999999", None),
        ("context length is ", None),
        ("9 + 9 > 10", None),
        (" > 5000", None),
        ("ü > ü context limit ü", None),
        ("", None),
    ];

    #[test]
    fn every_kind_of_server_names_its_window_in_its_own_words() {
        for (text, tokens) in REFUSALS {
            assert_eq!(window_in(text), *tokens, "{text}");
        }
    }
}
