//! Honest servers, strange servers, lying servers.

use automaton_core::error::{Classified as _, ErrorClass, chain};
use automaton_core::money::Microcents;
use automaton_inference::providers::http::{ApiAuth, Endpoint, HttpProvider};
use automaton_inference::{
    FinishReason, InferenceError, Message, NoTokenSink, Provider as _, RawCall, TokenCountSource,
    catalogue,
};
use automaton_net::{Bytes, HttpClient, HttpClientConfig, NetError};
use std::sync::Arc;

use crate::server::{After, Answer, Heard, KEY, ask, pair, told};

/// A stream as the format's inventor sends it: text, then two calls, then usage.
const STREAM: &str = concat!(
    "data: {\"id\":\"r\",\"model\":\"gpt-5.2-x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\r\n\r\n",
    ": keep alive\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grüß \"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"dich\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"call_0\",\"type\":\"function\",\"function\":{\"name\":\"exec\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"command\\\":\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"sleep\",\"arguments\":\"{}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"ls\\\"}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10,\"total_tokens\":110,\"prompt_tokens_details\":{\"cached_tokens\":40}}}\n\n",
    "data: [DONE]\n\n",
);

fn calls() -> Vec<RawCall> {
    let call = |id: &str, tool: &str, arguments: &str| RawCall {
        provider_id: Some(id.to_owned()),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
    };
    vec![call("call_0", "exec", r#"{"command":"ls"}"#), call("call_1", "sleep", "{}")]
}

#[tokio::test]
async fn a_server_that_says_when_its_model_began_is_believed_up_to_what_was_heard() {
    let first = async |told: u32| {
        let field = format!("\"total_tokens\":110,\"first_token_ms\":{told}");
        let stream = STREAM.replace("\"total_tokens\":110", &field);
        let pair = pair(Answer::stream(&stream)).await;
        pair.provider.complete(&ask(), &Heard::default()).await.unwrap().usage
    };
    assert_eq!(first(0).await.first_token_ms, 0);
    let late = first(u32::MAX).await;
    assert!(late.first_token_ms < late.total_ms, "{late:?}");
}

#[tokio::test]
async fn a_stream_becomes_a_reply() {
    let pair = pair(Answer::stream(STREAM)).await;
    let heard = Heard::default();
    let reply = pair.provider.complete(&ask(), &heard).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.calls), ("Grüß dich", calls()));
    assert_eq!(
        (reply.finish, reply.counted),
        (FinishReason::ToolCalls, TokenCountSource::Reported)
    );
    // Until its first words have ended nobody knows whether they are a thought.
    assert_eq!(heard.0.into_inner().unwrap(), ["Grüß dich"]);
    let heard = Heard::default();
    pair.provider.complete(&ask(), &heard).await.unwrap();
    assert_eq!(heard.0.into_inner().unwrap(), ["Grüß ", "dich"]);
    let usage = reply.usage;
    assert_eq!((usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens), (100, 40, 10));
    // 60 tokens at 180, 40 of the cache at 18 and 10 at 1,400 microcents each.
    assert_eq!((usage.model.as_str(), usage.cost), ("gpt-5.2-x", Microcents::new(25_520)));
    assert!(usage.first_token_ms > 0 && usage.first_token_ms < usage.total_ms);

    let seen = pair.seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].path, "/v1/chat/completions");
    assert_eq!(seen[0].authorization.as_deref(), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen[0].body["model"], "gpt-5.2");
    assert_eq!(seen[0].body["messages"][0]["role"], "system");
}

#[tokio::test]
async fn a_stream_may_be_cut_at_any_byte() {
    let whole = told(Answer::stream(STREAM)).await.unwrap();
    for size in [1, 2, 3, 7, 64, 1000] {
        let reply = told(Answer::stream(STREAM).cut_every(size)).await.unwrap();
        assert_eq!((&reply.text, &reply.calls), (&whole.text, &whole.calls), "{size}");
        assert_eq!(reply.usage.prompt_tokens, 100);
    }
    // Every single place for one cut, over one connection pool.
    for at in (0..STREAM.len()).step_by(11) {
        let mut answer = Answer::stream(STREAM);
        let bytes = Bytes::from_static(STREAM.as_bytes());
        answer.pieces = vec![bytes.slice(..at), bytes.slice(at..)];
        let reply = told(answer).await.unwrap();
        assert_eq!((&reply.text, &reply.calls), (&whole.text, &whole.calls), "{at}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_before_its_end_is_no_reply() {
    let end = STREAM.find("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish").unwrap();
    for at in (0..=end).step_by(37).chain([end]) {
        for after in [After::End, After::BreakOff] {
            let mut answer = Answer::stream("").then(after);
            answer.pieces = vec![Bytes::copy_from_slice(&STREAM.as_bytes()[..at])];
            let error = told(answer).await.unwrap_err();
            let kind = error.kind();
            assert!(
                matches!(kind, ErrorClass::Transient | ErrorClass::Upstream),
                "{at}: {}",
                chain(&error)
            );
            assert!(kind == ErrorClass::Transient || at < 200, "{at}: {}", chain(&error));
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_before_its_end_is_none_though_it_was_counted() {
    let end = STREAM.find("data: [DONE]").unwrap();
    let said = STREAM.find("data: {\"choices\":[],").unwrap();
    for at in [said, end] {
        let error = told(Answer::stream(&STREAM[..at]).then(After::BreakOff)).await.unwrap_err();
        assert!(matches!(error, InferenceError::Cut { .. }), "{}", chain(&error));
        assert!(!error.costs_nothing(), "it may have been charged");
    }
}

#[tokio::test]
async fn what_comes_after_the_end_does_not_matter() {
    let usage = STREAM.find("data: {\"choices\":[],").unwrap();
    let reply = told(Answer::stream(&STREAM[..usage]).then(After::End)).await.unwrap();
    assert_eq!((reply.calls, reply.counted), (calls(), TokenCountSource::Estimated));
    // "Be brief." and "Who are you?" are 21 characters.
    assert_eq!(reply.usage.prompt_tokens, 6);
    assert!(reply.usage.completion_tokens > 0 && reply.usage.cost > Microcents::ZERO);
    // A server that keeps the connection open after the last event.
    let reply = told(Answer::stream(STREAM).then(After::Silence)).await.unwrap();
    assert_eq!(reply.calls, calls());
}

#[tokio::test]
async fn a_server_without_streams_answers_whole() {
    let body = r#"{"id":"x","object":"chat.completion","created":1,"model":"other","choices":[{"index":0,
        "message":{"role":"assistant","content":null,"tool_calls":[
            {"id":"call_0","type":"function","function":{"name":"exec","arguments":{"command":"ls"}}},
            {"function":{"name":"sleep","arguments":"{}"}}]},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}"#;
    let reply = told(Answer::json(200, body)).await.unwrap();
    let mut wanted = calls();
    wanted[1].provider_id = None;
    assert_eq!((reply.text.as_str(), reply.calls), ("", wanted));
    assert_eq!((reply.finish, reply.usage.prompt_tokens), (FinishReason::ToolCalls, 7));
}

#[tokio::test]
async fn errors_of_the_server_keep_their_meaning() {
    let long = r#"{"error":{"message":"maximum context length is 8192","code":"context_length_exceeded"}}"#;
    let cases = [
        (402, r#"{"error":{"message":"pay up"}}"#, ErrorClass::Upstream),
        (401, r#"{"error":{"message":"bad key"}}"#, ErrorClass::Config),
        (403, "no", ErrorClass::Config),
        (404, r#"{"error":"model 'x' not found"}"#, ErrorClass::Config),
        (429, "slow down", ErrorClass::Transient),
        (500, "", ErrorClass::Transient),
        (503, "<html>busy</html>", ErrorClass::Transient),
        (400, r#"{"error":{"message":"no such field"}}"#, ErrorClass::Upstream),
        (400, long, ErrorClass::User),
    ];
    for (status, body, kind) in cases {
        let error = told(Answer::json(status, body)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{status} {body}: {error}");
        assert_eq!(error.is_too_long(), body == long);
    }
    let error = told(Answer::json(402, "pay up")).await.unwrap_err();
    assert!(matches!(error, InferenceError::NoCredits { .. }) && error.hint().is_some());
}

#[tokio::test]
async fn an_error_never_shows_the_key_and_is_never_long() {
    let body = format!("you sent Bearer {KEY}, that is {KEY}\u{1b}[31m {}", "x".repeat(200_000));
    let error = told(Answer::new(401, None, &body)).await.unwrap_err();
    let shown = format!("{} {error:?}", chain(&error));
    assert!(!shown.contains(KEY) && !shown.contains('\u{1b}'), "{shown}");
    assert!(shown.len() < 3_000, "{}", shown.len());
}

#[tokio::test]
async fn an_error_within_a_stream_is_no_answer() {
    let said = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n";
    for event in [
        "data: {\"error\":{\"message\":\"overloaded\",\"code\":502}}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
    ] {
        let error =
            told(Answer::stream(&format!("{said}{event}data: [DONE]\n\n"))).await.unwrap_err();
        assert!(matches!(error, InferenceError::Failed { .. }), "{error}");
        assert_eq!(error.kind(), ErrorClass::Transient);
    }
}

#[tokio::test]
async fn what_is_no_reply_is_malformed() {
    let long = format!("data: {}\n\n", "x".repeat(2 << 20));
    for answer in [
        Answer::json(200, "[]"),
        Answer::json(200, "{}"),
        Answer::json(200, r#"{"choices":[]}"#),
        Answer::json(200, r#"{"choices":"many"}"#),
        Answer::json(200, ""),
        Answer::stream("data: hello\n\n"),
        Answer::stream("data: [DONE]\n\n"),
        Answer::stream("hello\n\n"),
        Answer::stream(&long),
        Answer::new(200, Some("text/html"), "<html>a portal</html>"),
        Answer::new(200, Some("text/html"), "{\"portal\":\"yes\"}"),
        Answer::new(204, None, ""),
    ] {
        let shown: String = String::from_utf8_lossy(&answer.pieces[0]).chars().take(60).collect();
        let error = told(answer).await.unwrap_err();
        assert!(matches!(error, InferenceError::Malformed { .. }), "{shown}: {error}");
        assert_eq!(error.kind(), ErrorClass::Upstream);
    }
}

#[tokio::test]
async fn a_stream_is_read_whatever_the_server_calls_it() {
    let whole = told(Answer::stream(STREAM)).await.unwrap();
    let tight = STREAM.replace("\r\n\r\n", "\n").replace("\n\n", "\n");
    let lines = tight.replace("data: ", "").replace(": keep alive\n", "");
    for media_type in [None, Some("application/json"), Some("text/plain"), Some("application/x-y")]
    {
        for stream in [STREAM, &tight, &lines, &format!("\u{FEFF}{STREAM}")] {
            for size in [1, 50, STREAM.len()] {
                let reply =
                    told(Answer::new(200, media_type, stream).cut_every(size)).await.unwrap();
                assert_eq!(
                    (&reply.text, &reply.calls),
                    (&whole.text, &whole.calls),
                    "{media_type:?}"
                );
            }
        }
    }
    let error =
        told(Answer::new(200, Some("text/html"), "<html>a portal</html>")).await.unwrap_err();
    assert!(error.to_string().contains("media type text/html"), "{error}");
    let error = told(Answer::json(200, "{\"choices\":[")).await.unwrap_err();
    assert!(matches!(error, InferenceError::Cut { .. }), "{error}");
}

#[tokio::test]
async fn an_error_is_known_in_every_form_that_servers_have_for_it() {
    let limit = "This model's maximum context length is 20000 tokens.";
    let opening = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
    for stream in [
        format!("data: {{\"object\":\"error\",\"message\":\"{limit}\",\"code\":400}}\n\n"),
        format!("data: {{\"message\":\"{limit}\",\"status_code\":400}}\n\n"),
        format!("event: error\ndata: {{\"message\":\"{limit}\",\"code\":\"400\"}}\n\n"),
        format!("event: error\ndata: {limit}\n\n"),
        format!("error: {{\"code\":400,\"message\":\"{limit}\"}}\n\n"),
        format!("data: {opening}\n\ndata: {{\"error\":{{\"message\":\"{limit}\"}}}}\n\n"),
        format!("data: {opening}\nerror: {limit}"),
    ] {
        let error = told(Answer::stream(&stream)).await.unwrap_err();
        assert!(error.is_too_long(), "{stream}: {error}");
        assert_eq!(error.named_window(), Some(20_000), "{stream}");
    }
    let said = r#"{"choices":[{"index":0,"delta":{"content":"half"}}]}"#;
    let late = format!("data: {said}\n\nevent: error\ndata: {{\"message\":\"the quota\"}}\n\n");
    let error = told(Answer::stream(&late)).await.unwrap_err();
    assert!(
        matches!(&error, InferenceError::Failed { text, .. } if text == "the quota"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_that_the_server_broke_off_is_none() {
    for reason in ["insufficient_system_resource", "network_error", "timeout", "aborted"] {
        let stream = STREAM.replace(
            "\"finish_reason\":\"tool_calls\"",
            &format!("\"finish_reason\":\"{reason}\""),
        );
        let error = told(Answer::stream(&stream)).await.unwrap_err();
        assert!(
            matches!(&error, InferenceError::Failed { text, .. } if text.contains(reason)),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorClass::Transient, "it is asked for again");
    }
}

#[tokio::test]
async fn a_server_that_ends_thoughts_without_a_beginning_never_shows_them() {
    let event = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let stream = format!(
        "{}{}data: [DONE]\n\n",
        event("A secret plan.\\n</thi"),
        event("nk>\\n\\nIt is noon.")
    );
    let pair = pair(Answer::stream(&stream)).await;
    for _ in 0..2 {
        let heard = Heard::default();
        let reply = pair.provider.complete(&ask(), &heard).await.unwrap();
        assert_eq!(
            (reply.text.as_str(), heard.0.into_inner().unwrap().concat().as_str()),
            ("It is noon.", "It is noon.")
        );
    }
}

#[tokio::test]
async fn a_reply_without_end_is_ended() {
    let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}}]}\n\n";
    let mut answer = Answer::stream("");
    let piece = Bytes::from(event.repeat(1000));
    answer.pieces = vec![piece; 2000];
    let error = told(answer).await.unwrap_err();
    assert!(matches!(error, InferenceError::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    for said in ["", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n"] {
        let error = told(Answer::stream(said).then(After::Silence)).await.unwrap_err();
        assert!(matches!(error, InferenceError::TimedOut { .. }), "{error}");
        assert_eq!(error.kind(), ErrorClass::Transient);
        assert!(!error.costs_nothing(), "it may have thought");
    }
}

#[tokio::test]
async fn a_conversation_out_of_order_is_not_sent() {
    let pair = pair(Answer::stream(STREAM)).await;
    let mut ask = ask();
    ask.messages.push(Message::system("late").into());
    let error = pair.provider.complete(&ask, &NoTokenSink).await.unwrap_err();
    assert!(matches!(error, InferenceError::Conversation { place: 2, .. }), "{error}");
    assert!(error.costs_nothing());
    assert!(pair.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_is_not_there_costs_nothing_and_one_that_hangs_up_may() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", gone.local_addr().unwrap());
    let hangs_up = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = format!("http://{}", hangs_up.local_addr().unwrap());
    drop(gone);
    std::thread::spawn(move || {
        let (mut asked, _) = hangs_up.accept().unwrap();
        let mut first = [0; 64];
        std::io::Read::read_exact(&mut asked, &mut first).unwrap();
    });
    for (base, free) in [(base, true), (other, false)] {
        let allow_private_origins = vec![base.parse().unwrap()];
        let config = HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() };
        let endpoint = Endpoint::new(&base, ApiAuth::None, catalogue::own_model("m").unwrap());
        let clock = Arc::new(automaton_core::time::SystemClock);
        let client = HttpClient::new(config).unwrap();
        let provider = HttpProvider::new(client, endpoint, clock).unwrap();
        let error = provider.complete(&ask(), &NoTokenSink).await.unwrap_err();
        assert!(matches!(error, InferenceError::Unreachable { .. }), "{error}");
        assert_eq!(error.costs_nothing(), free, "{error}");
        let (origin, limit_bytes) = (base.parse().unwrap(), 1);
        let too_large =
            InferenceError::Refused { source: NetError::TooLarge { origin, limit_bytes } };
        assert!(!too_large.costs_nothing(), "somebody has written it");
    }
}

#[tokio::test]
async fn an_origin_that_nobody_spelled_out_is_refused() {
    let clock = Arc::new(automaton_core::time::SystemClock);
    for base in ["http://127.0.0.1:9", "https://127.0.0.1:9", "https://localhost:9/v1"] {
        let client = HttpClient::new(HttpClientConfig::default()).unwrap();
        let endpoint = Endpoint::new(base, ApiAuth::None, catalogue::own_model("m").unwrap());
        let provider = HttpProvider::new(client, endpoint, clock.clone()).unwrap();
        let error = provider.complete(&ask(), &NoTokenSink).await.unwrap_err();
        assert_eq!(error.kind(), ErrorClass::Denied, "{base}: {error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("configuration")), "{base}");
    }
}
