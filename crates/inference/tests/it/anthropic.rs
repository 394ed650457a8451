//! A server that speaks Anthropic's format.

use automaton_core::money::Microcents;
use automaton_inference::providers::http::ApiFormat;
use automaton_inference::{
    Completion, FinishReason, InferenceError, NoTokenSink, Provider as _, TokenCountSource,
};

use crate::server::{After, Answer, Heard, KEY, Pair, ask, pair_of};

/// A stream as it is documented: text, a call, and the counts at both ends.
const STREAM: &str = concat!(
    "event: message_start\n",
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5-x\",\"content\":[],\"usage\":{\"input_tokens\":25,\"cache_creation_input_tokens\":30,\"cache_read_input_tokens\":45,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    "event: content_block_delta\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Grüß \"}}\r\n\r\n",
    "event: content_block_delta\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"dich\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_start\n",
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"exec\",\"input\":{}}}\n\n",
    "event: content_block_delta\n",
    "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"command\\\":\\\"ls\\\"}\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: message_delta\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":10}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

async fn claude(answer: Answer) -> Pair {
    pair_of(ApiFormat::AnthropicMessages, "claude-sonnet-4-5", answer).await
}

async fn told(answer: Answer) -> Result<Completion, InferenceError> {
    claude(answer).await.provider.complete(&ask(), &NoTokenSink).await
}

#[tokio::test]
async fn a_stream_becomes_a_reply_with_its_price() {
    let pair = claude(Answer::stream(STREAM)).await;
    let heard = Heard::default();
    let reply = pair.provider.complete(&ask(), &heard).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.finish), ("Grüß dich", FinishReason::ToolCalls));
    assert_eq!(reply.calls[0].arguments, r#"{"command":"ls"}"#);
    assert_eq!(heard.0.into_inner().unwrap(), ["Grüß ", "dich"]);
    assert_eq!(reply.counted, TokenCountSource::Reported);
    let usage = reply.usage;
    assert_eq!((usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens), (100, 45, 10));
    // In microcents: 25 at 300, 30 written into the cache at 375, 45 out of it at 30, 10 at 1,500.
    assert_eq!(usage.cost, Microcents::new(25 * 300 + 30 * 375 + 45 * 30 + 10 * 1500));
    let seen = pair.seen.lock().unwrap();
    assert_eq!((seen[0].path.as_str(), &seen[0].authorization), ("/v1/messages", &None));
    assert_eq!(seen[0].anthropic[0].as_deref(), Some(KEY));
    assert_eq!(seen[0].anthropic[1].as_deref(), Some("2023-06-01"));
    assert_eq!(seen[0].body["system"][0]["text"], "Be brief.");
    assert_eq!(seen[0].body["messages"][0]["role"], "user");
    assert_eq!(seen[0].body["max_tokens"], 50);
}

#[tokio::test]
async fn a_stream_may_be_cut_at_any_byte() {
    let whole = told(Answer::stream(STREAM)).await.unwrap();
    for size in [1, 2, 3, 7, 64, 1000] {
        let pieces = told(Answer::stream(STREAM).cut_every(size)).await.unwrap();
        assert_eq!((&pieces.text, &pieces.calls), (&whole.text, &whole.calls), "{size}");
        assert_eq!(pieces.usage.cost, whole.usage.cost, "{size}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_answer() {
    let begun = &STREAM[..STREAM.find("event: message_delta").unwrap()];
    for after in [After::End, After::BreakOff] {
        let told = told(Answer::stream(begun).then(after)).await;
        assert!(matches!(
            told,
            Err(InferenceError::Cut { .. } | InferenceError::Unreachable { .. })
        ));
    }
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let told = told(Answer::stream(&format!("{begun}{error}"))).await;
    assert!(matches!(told, Err(InferenceError::Failed { text, .. }) if text == "Overloaded"));
}

#[tokio::test]
async fn each_refusal_is_told_as_what_it_is() {
    let refused = async |status, kind: &str, message: &str| {
        let error = serde_json::json!({"type": kind, "message": message});
        let body = serde_json::json!({"type": "error", "error": error}).to_string();
        told(Answer::json(status, &body)).await.unwrap_err()
    };
    let error = refused(401, "authentication_error", "invalid x-api-key").await;
    assert!(matches!(error, InferenceError::Unauthorised { .. }));
    let error =
        refused(400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum")
            .await;
    assert!(matches!(error, InferenceError::TooLong { window: Some(200_000), .. }));
    let low = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.";
    let error = refused(400, "invalid_request_error", low).await;
    assert!(matches!(error, InferenceError::NoCredits { .. }), "{error:?}");
    let error = refused(404, "not_found_error", "model: claude-nope").await;
    assert!(matches!(error, InferenceError::NoModel { .. }));
    let error = refused(529, "overloaded_error", "Overloaded").await;
    assert!(matches!(error, InferenceError::Status { status: 529, .. }));
    let error = refused(429, "rate_limit_error", "This request would exceed the rate limit").await;
    assert!(matches!(error, InferenceError::Status { status: 429, .. }));
}
