//! Servers that speak other formats than chat completions and Anthropic's.

use std::time::Duration;

use automaton_core::error::{Classified as _, chain};
use automaton_core::money::Microcents;
use automaton_inference::providers::http::ApiFormat::{self, Gemini, Ollama, Responses};
use automaton_inference::{
    FinishReason, InferenceError, Message, MessageCall, NoTokenSink, Provider as _,
    TokenCountSource,
};
use serde_json::{Value, json};

use crate::server::{After, Answer, Heard, KEY, Seen, ask, pair_of};

/// A format, the model that is asked for, and an answer of it.
pub(crate) const SERVED: [(ApiFormat, &str, &str); 3] = [
    (Responses, "gpt-5.2", include_str!("../streams/responses.txt")),
    (Ollama, "qwen3:8b", include_str!("../streams/ollama.txt")),
    (Gemini, "gemini-2.5-pro", include_str!("../streams/gemini.txt")),
];

pub(crate) fn stream(format: ApiFormat, body: &str) -> Answer {
    match format {
        Ollama => Answer::new(200, Some("application/x-ndjson"), body),
        _ => Answer::stream(body),
    }
}

/// Where each is asked, with the header of its key and what it says of the question.
fn check_asked(format: ApiFormat, seen: &Seen) {
    let bearer = format!("Bearer {KEY}");
    let (path, keys, said) = match format {
        Responses => {
            let said = [&seen.body["instructions"], &seen.body["input"][0]["content"]];
            ("/v1/responses", (Some(bearer.as_str()), None), said)
        }
        Ollama => {
            let said = [&seen.body["messages"][0]["content"], &seen.body["messages"][1]["content"]];
            ("/api/chat", (Some(bearer.as_str()), None), said)
        }
        _ => {
            let said = [
                &seen.body["systemInstruction"]["parts"][0]["text"],
                &seen.body["contents"][0]["parts"][0]["text"],
            ];
            let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
            (path, (None, Some(KEY)), said)
        }
    };
    assert_eq!(seen.path, path);
    assert_eq!((seen.authorization.as_deref(), seen.google.as_deref()), keys, "{format:?}");
    assert_eq!(said, [&json!("Be brief."), &json!("Who are you?")], "{format:?}");
}

#[tokio::test]
async fn a_stream_becomes_a_reply_with_its_price() {
    for (format, model, body) in SERVED {
        let pair = pair_of(format, model, stream(format, body)).await;
        let heard = Heard::default();
        let reply = pair.provider.complete(&ask(), &heard).await.unwrap();
        let said = (reply.text.as_str(), reply.finish, reply.counted);
        let wanted = ("Grüß dich", FinishReason::ToolCalls, TokenCountSource::Reported);
        assert_eq!(said, wanted, "{format:?}");
        assert_eq!(reply.calls[0].arguments, r#"{"command":"ls"}"#, "{format:?}");
        // Ollama may leave thoughts in the words, which are held back until they have ended once.
        let shown: &[&str] = if format == Ollama { &["Grüß dich"] } else { &["Grüß ", "dich"] };
        assert_eq!(heard.0.into_inner().unwrap(), shown, "{format:?}");
        let usage = reply.usage;
        assert_eq!((usage.prompt_tokens, usage.completion_tokens), (100, 10), "{format:?}");
        assert!(usage.cost > Microcents::ZERO, "{format:?}");
        assert!(usage.first_token_ms < usage.total_ms, "{format:?}: {usage:?}");
        check_asked(format, &pair.seen.lock().unwrap()[0]);
        // Cut at any byte, and from a server that keeps the connection open after the end.
        for size in [1, 7] {
            let answer = stream(format, body).cut_every(size);
            let pair = pair_of(format, model, answer).await;
            let again = pair.provider.complete(&ask(), &NoTokenSink).await.unwrap();
            assert_eq!((&again.text, &again.calls), (&reply.text, &reply.calls), "{format:?}");
            assert_eq!(again.usage.cost, usage.cost, "{format:?}");
        }
        // Gemini's stream has no mark at its end.
        if format != Gemini {
            let pair = pair_of(format, model, stream(format, body).then(After::Silence)).await;
            assert!(pair.provider.complete(&ask(), &NoTokenSink).await.is_ok(), "{format:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_breaks_is_no_answer() {
    for (format, model, body) in SERVED {
        for after in [After::End, After::BreakOff] {
            let begun = &body[..body.floor_char_boundary(body.len() / 2)];
            let pair = pair_of(format, model, stream(format, begun).then(after)).await;
            let error = pair.provider.complete(&ask(), &NoTokenSink).await.unwrap_err();
            assert!(matches!(error, InferenceError::Cut { .. }), "{format:?}: {}", chain(&error));
        }
    }
}

/// What the server wrote of its thoughts, out of what it is asked next.
fn thoughts(format: ApiFormat, body: &Value) -> Value {
    match format {
        ApiFormat::AnthropicMessages => {
            let blocks = body["messages"][1]["content"].as_array().unwrap();
            let is_thought = |it: &&Value| it["type"].as_str().unwrap().ends_with("thinking");
            blocks.iter().filter(is_thought).cloned().collect()
        }
        Responses => {
            let items = body["input"].as_array().unwrap();
            items.iter().filter(|it| it["type"] == "reasoning").cloned().collect()
        }
        _ => {
            let parts = body["contents"][1]["parts"].as_array().unwrap();
            parts.iter().filter_map(|it| it.get("thoughtSignature")).cloned().collect()
        }
    }
}

#[tokio::test]
async fn thoughts_go_back_to_their_server_with_the_results_of_its_calls_alone() {
    let anthropic = include_str!("../streams/anthropic_messages.txt");
    let responses = SERVED[0].2.replace(
        "\"item\":{\"id\":\"rs_1\",\"type\":\"reasoning\"",
        "\"item\":{\"id\":\"rs_1\",\"encrypted_content\":\"gAAAAB\",\"type\":\"reasoning\"",
    );
    for (format, model, body, wanted) in [
        (
            ApiFormat::AnthropicMessages,
            "claude-sonnet-4-5",
            anthropic,
            json!([
            {"type": "thinking", "thinking": "Somebody greets me.", "signature": "EqQBCg"},
            {"type": "redacted_thinking", "data": "EmwKAhgB"}]),
        ),
        (
            Responses,
            "gpt-5.2",
            &responses,
            json!([
            {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAB"}]),
        ),
        (Gemini, "gemini-2.5-pro", SERVED[2].2, json!(["CsUBAXLI"])),
    ] {
        let pair = pair_of(format, model, stream(format, body)).await;
        let mut ask = ask();
        let reply = pair.provider.complete(&ask, &NoTokenSink).await.unwrap();
        let ids = ["01ARZ3NDEKTSV4RRFFQ69G5FA0", "01ARZ3NDEKTSV4RRFFQ69G5FA1"];
        let ids = ids.map(|id| id.parse().unwrap());
        let calls = reply.calls.iter().zip(ids).map(|(call, id)| {
            let (tool, arguments) = (call.tool.clone(), call.arguments.clone());
            MessageCall { id, tool, arguments }
        });
        ask.messages.push(Message::assistant(reply.text.clone(), calls.collect()).into());
        ask.messages.extend(ids.map(|id| Message::tool(id, "done").into()));
        pair.provider.complete(&ask, &NoTokenSink).await.unwrap();
        // What was said before is no part of the loop any more.
        ask.messages.push(Message::assistant("Well.", Vec::new()).into());
        ask.messages.push(Message::user("And now?").into());
        pair.provider.complete(&ask, &NoTokenSink).await.unwrap();
        // Another server, and whoever begins anew, is told nothing of it.
        let other = pair_of(format, model, stream(format, body)).await;
        other.provider.complete(&ask, &NoTokenSink).await.unwrap();
        let seen = pair.seen.lock().unwrap();
        assert_eq!(thoughts(format, &seen[1].body), wanted, "{format:?}");
        assert_eq!(thoughts(format, &seen[2].body), json!([]), "{format:?}");
        assert_eq!(thoughts(format, &other.seen.lock().unwrap()[0].body), json!([]), "{format:?}");
    }
}

async fn refused(format: ApiFormat, status: u16, body: &Value) -> InferenceError {
    let (_, model, _) = SERVED.into_iter().find(|(known, ..)| *known == format).unwrap();
    let pair = pair_of(format, model, Answer::json(status, &body.to_string())).await;
    pair.provider.complete(&ask(), &NoTokenSink).await.unwrap_err()
}

/// A refusal of Google's servers.
fn google(status: u16, word: &str, message: &str, details: &Value) -> Value {
    json!({"error": {"code": status, "message": message, "status": word, "details": details}})
}

/// A refusal of `OpenAI`'s servers.
fn openai(code: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": "invalid_request_error", "param": null,
        "code": code}})
}

#[tokio::test]
async fn each_refusal_is_told_as_what_it_is() {
    let long = "Your input exceeds the context window of this model.";
    let flagged = "Invalid prompt: your prompt was flagged as potentially violating our policy.";
    let key = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]);
    let many = "The input token count (1200000) exceeds the maximum number of tokens allowed \
                (1048576).";
    let not_found = "models/gemini-9 is not found for API version v1beta";
    for (format, status, body, wanted) in [
        (Ollama, 404, json!({"error": "model 'qwen3:8b' not found"}), "NoModel"),
        (Ollama, 400, json!({"error": "qwen3:8b does not support tools"}), "NoTools"),
        (Ollama, 400, json!({"error": "the input length exceeds the context length"}), "TooLong"),
        (Ollama, 503, json!({"error": "server busy, please try again"}), "Status"),
        (Ollama, 401, json!({"error": "unauthorized"}), "Unauthorised"),
        (Responses, 401, openai("invalid_api_key", "Incorrect API key"), "Unauthorised"),
        (Responses, 429, openai("insufficient_quota", "You exceeded"), "NoCredits"),
        (Responses, 429, openai("rate_limit_exceeded", "slow down"), "Status"),
        (Responses, 400, openai("context_length_exceeded", long), "TooLong"),
        (Responses, 400, openai("invalid_prompt", flagged), "ContentRefused"),
        (Responses, 404, openai("model_not_found", "The model does not exist"), "NoModel"),
        (Gemini, 400, google(400, "INVALID_ARGUMENT", "API key not valid.", &key), "Unauthorised"),
        (Gemini, 400, google(400, "INVALID_ARGUMENT", many, &json!([])), "TooLong"),
        (Gemini, 404, google(404, "NOT_FOUND", not_found, &json!([])), "NoModel"),
        (Gemini, 503, google(503, "UNAVAILABLE", "overloaded", &json!([])), "Status"),
        (Gemini, 403, google(403, "PERMISSION_DENIED", "no", &json!([])), "Unauthorised"),
    ] {
        let error = refused(format, status, &body).await;
        let told = format!("{error:?}");
        assert!(told.starts_with(wanted), "{format:?} {status}: {told}");
        assert!(error.costs_nothing(), "{format:?} {status}");
        assert_eq!(error.is_rejection(), wanted == "ContentRefused", "{format:?} {status}");
        assert!(!chain(&error).to_string().contains(KEY));
        assert_ne!(error.outline(), "", "{format:?}");
    }
    let window = refused(Gemini, 400, &google(400, "INVALID_ARGUMENT", many, &json!([]))).await;
    assert_eq!(window.named_window(), Some(1_048_576));
    let delay = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo",
        "retryDelay": "34.5s"}]);
    let busy = refused(Gemini, 429, &google(429, "RESOURCE_EXHAUSTED", "quota", &delay)).await;
    assert_eq!(busy.wait(), Some(Duration::from_millis(34_500)));
}

#[tokio::test]
async fn what_fails_before_its_answer_has_begun_is_told_by_its_code() {
    let failed = |code: &str, message: &str| {
        let error = json!({"code": code, "message": message});
        let response = json!({"status": "failed", "error": error});
        json!({"type": "response.failed", "response": response})
    };
    for (format, event, wanted) in [
        (Responses, failed("rate_limit_exceeded", "slow down"), "Failed"),
        (Responses, failed("context_length_exceeded", "too long"), "TooLong"),
        (Responses, failed("invalid_prompt", "no"), "ContentRefused"),
        (Ollama, json!({"error": "llama runner process has terminated"}), "Failed"),
        (Gemini, google(401, "UNAUTHENTICATED", "no", &json!([])), "Unauthorised"),
        (Gemini, google(503, "UNAVAILABLE", "overloaded", &json!([])), "Failed"),
        (Gemini, google(429, "RESOURCE_EXHAUSTED", "q", &json!([{"retryDelay": "3s"}])), "Busy"),
    ] {
        let body = match format {
            Ollama => format!("{event}\n"),
            _ => format!("data: {event}\n\n"),
        };
        let pair = pair_of(format, "gpt-5.2", stream(format, &body)).await;
        let error = pair.provider.complete(&ask(), &NoTokenSink).await.unwrap_err();
        assert!(format!("{error:?}").starts_with(wanted), "{event}: {error:?}");
        assert!(error.hint().is_none_or(|hint| !hint.contains(KEY)));
    }
}
