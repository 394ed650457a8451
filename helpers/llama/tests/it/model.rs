//! Answers of a real model. Skipped, and said so, where no model file is at hand.

use automaton_core::wire::brain::{
    LINE_BYTES_MAX, LocalModelCall, LocalModelCompletion, LocalModelFailure, LocalModelFailureCode,
    LocalModelFinishReason, LocalModelHello, LocalModelRequest, LocalModelResponse, VERSION,
};
use automaton_core::wire::chat::ChatRole;
use serde_json::{Value, json};

use crate::helper::{Helper, model, request, said, tool, tool_model};

/// Starts on the model with a small window.
fn start() -> Option<(Helper, LocalModelHello)> {
    let mut helper = Helper::start(&model()?, &["--context-tokens", "1024"]);
    let LocalModelResponse::Hello(hello) = helper.read() else { panic!("no greeting") };
    Some((helper, hello))
}

fn done((reply, pieces): (LocalModelResponse, String)) -> (LocalModelCompletion, String) {
    match reply {
        LocalModelResponse::Done(done) => (done, pieces),
        other => panic!("{other:?}"),
    }
}

fn failed((reply, _): (LocalModelResponse, String)) -> LocalModelFailure {
    match reply {
        LocalModelResponse::Failed(failed) => failed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn greets_counts_and_ends_with_the_connection() {
    let Some((mut helper, hello)) = start() else { return };
    assert_eq!((hello.version, hello.context_tokens), (VERSION, 1024));
    assert!(hello.parameters > 1_000_000 && !hello.model.is_empty());
    let mut count = |text: &str| match helper
        .ask(&LocalModelRequest::Count { messages: vec![said(ChatRole::User, text)] })
        .0
    {
        LocalModelResponse::Counted { tokens } => tokens,
        other => panic!("{other:?}"),
    };
    assert!(count("hello") < count("hello hello hello"));
    // A mark of the template in a message is text, not a mark.
    assert!(count("<|im_end|><|im_start|>") > count("") + 4);
    assert_eq!(helper.end(), (Some(0), String::new()));
}

#[test]
fn plain_text_comes_in_pieces() {
    let Some((mut helper, _)) = start() else { return };
    let ask = request(vec![said(ChatRole::User, "What is the capital of France?")], vec![]);
    let (done, pieces) = done(helper.ask(&LocalModelRequest::Complete(ask)));
    assert!(done.text.contains("Paris"), "{}", done.text);
    assert_eq!(pieces.trim(), done.text);
    assert_eq!((done.calls.len(), done.finish), (0, LocalModelFinishReason::Stop));
}

#[test]
fn calls_fit_their_schema_and_leave_out_what_they_must() {
    let Some((mut helper, _)) = start() else { return };
    let tools = vec![
        tool("exec", &json!({ "command": { "type": "string" } })),
        tool(
            "paint",
            &json!({ "colour": { "enum": ["red", "green"] }, "times": { "type": "integer", "minimum": 1, "maximum": 3 } }),
        ),
    ];
    let mut ask = request(vec![said(ChatRole::User, "Paint the wall green")], tools);
    for (temperature_milli, seed) in [(0, 1), (800, 1), (800, 2), (1500, 3)] {
        (ask.temperature_milli, ask.seed, ask.left_out) =
            (temperature_milli, seed, vec!["exec".into()]);
        let first = done(helper.ask(&LocalModelRequest::Complete(ask.clone()))).0;
        let [LocalModelCall { name, arguments }] = first.calls.as_slice() else {
            panic!("{first:?}")
        };
        assert_eq!(name, "paint");
        let value: Value = serde_json::from_str(arguments).unwrap();
        assert!(value["colour"] == "red" || value["colour"] == "green", "{arguments}");
        assert!(matches!(value["times"].as_u64(), Some(1..=3)), "{arguments}");
        let again = done(helper.ask(&LocalModelRequest::Complete(ask.clone()))).0;
        assert_eq!(again.calls, first.calls, "the same seed gives the same answer");
        ask.left_out = vec!["paint".into()];
        let other = done(helper.ask(&LocalModelRequest::Complete(ask.clone()))).0;
        assert_eq!(other.calls.first().map(|call| call.name.as_str()), Some("exec"));
    }
}

#[test]
fn the_prefix_of_a_conversation_is_not_evaluated_again() {
    let Some((mut helper, _)) = start() else { return };
    let rules = "You are careful. ".repeat(60);
    let command = || json!({ "command": { "type": "string" } });
    let tools = vec![tool("exec", &command()), tool("other", &command())];
    let mut messages = vec![said(ChatRole::System, &rules), said(ChatRole::User, "List the files")];
    let cold =
        done(helper.ask(&LocalModelRequest::Complete(request(messages.clone(), tools.clone())))).0;
    assert_eq!(cold.cached_tokens, 0, "what the prior evaluated is not counted as cached");
    let same =
        done(helper.ask(&LocalModelRequest::Complete(request(messages.clone(), tools.clone())))).0;
    assert!(same.cached_tokens + 1 >= same.prompt_tokens, "{same:?}");
    assert_eq!(same.calls, cold.calls, "a warm cache gives the same answer");
    let mut answer = said(ChatRole::Assistant, "");
    answer.calls = cold.calls;
    messages.extend([answer, said(ChatRole::Tool, "README.md")]);
    let warm = done(helper.ask(&LocalModelRequest::Complete(request(messages, tools)))).0;
    assert!(warm.cached_tokens + 4 >= cold.prompt_tokens, "{warm:?}");
    assert!(warm.prompt_tokens > cold.prompt_tokens);
}

#[test]
fn a_cut_answer_is_still_a_whole_call() {
    let Some((mut helper, _)) = start() else { return };
    let tools = vec![tool(
        "write_file",
        &json!({ "path": { "type": "string" }, "content": { "type": "string" } }),
    )];
    let mut ask = request(vec![said(ChatRole::User, "Write a long story to story.txt")], tools);
    for max_tokens in [1, 24, 32, 40, 64] {
        ask.max_tokens = max_tokens;
        let done = done(helper.ask(&LocalModelRequest::Complete(ask.clone()))).0;
        assert_eq!(done.finish, LocalModelFinishReason::Length, "{done:?}");
        for call in &done.calls {
            let value: Value = serde_json::from_str(&call.arguments).unwrap();
            assert!(value["path"].is_string() && value["content"].is_string());
        }
        assert!(max_tokens < 32 || done.calls.len() == 1, "{done:?}");
    }
}

#[test]
fn a_model_that_was_taught_is_told_of_its_tools_and_calls_what_is_wanted() {
    let Some(model) = tool_model() else { return };
    let mut helper = Helper::start(&model, &["--context-tokens", "2048"]);
    let LocalModelResponse::Hello(_) = helper.read() else { panic!("no greeting") };
    let text = || json!({ "type": "string" });
    let tools = vec![
        tool("run_command", &json!({ "command": text() })),
        tool("read_file", &json!({ "path": text() })),
        tool("rest", &json!({ "seconds": { "type": "integer" } })),
    ];
    for (wish, name, argument) in [
        ("Run the command `ls -l`.", "run_command", json!({ "command": "ls -l" })),
        ("What does notes/today.md say?", "read_file", json!({ "path": "notes/today.md" })),
        ("Rest for 90 seconds.", "rest", json!({ "seconds": 90 })),
    ] {
        let ask = request(vec![said(ChatRole::User, wish)], tools.clone());
        let (done, _) = done(helper.ask(&LocalModelRequest::Complete(ask)));
        let [call] = done.calls.as_slice() else { panic!("{done:?}") };
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        assert_eq!((call.name.as_str(), arguments), (name, argument));
    }
}

#[test]
fn an_answer_with_tools_on_offer_is_never_empty() {
    let Some(model) = tool_model() else { return };
    let mut helper = Helper::start(&model, &["--context-tokens", "2048"]);
    let LocalModelResponse::Hello(_) = helper.read() else { panic!("no greeting") };
    let tools = vec![tool("rest", &json!({ "seconds": { "type": "integer" } }))];
    for last in ["", ".", "Say nothing at all, not even one word. End your answer at once."] {
        let ask = request(vec![said(ChatRole::User, last)], tools.clone());
        let (done, _) = done(helper.ask(&LocalModelRequest::Complete(ask)));
        assert!(!done.text.is_empty() || !done.calls.is_empty(), "{last:?}: {done:?}");
    }
}

#[test]
fn bad_requests_are_answered_and_forgotten() {
    let Some((mut helper, _)) = start() else { return };
    let code = |reply: LocalModelResponse| failed((reply, String::new())).code;
    for line in ["\n", "{}\n", "[1,2\n", "{\"ask\":\"dance\"}\n", "\u{0}\u{1}\n"] {
        helper.write(line.as_bytes());
        assert_eq!(code(helper.read()), LocalModelFailureCode::BadRequest, "{line:?}");
    }
    helper.write(b"\xff\xfe\n");
    assert_eq!(code(helper.read()), LocalModelFailureCode::BadRequest);
    let nothing = helper.ask(&LocalModelRequest::Complete(request(vec![], vec![])));
    assert_eq!(failed(nothing).code, LocalModelFailureCode::BadRequest);
    let long = vec![said(ChatRole::User, &"many words ".repeat(4000))];
    let long = failed(helper.ask(&LocalModelRequest::Complete(request(long, vec![]))));
    assert_eq!(long.code, LocalModelFailureCode::TooLong);
    assert!(long.message.contains("1024"), "{}", long.message);
    for schema in [
        json!({ "type": "frog" }),
        json!({ "type": "string", "pattern": "(" }),
        json!({ "$ref": "#/nowhere" }),
    ] {
        let tools = vec![tool("fine", &json!({})), tool("bad", &json!({ "a": schema }))];
        let ask = request(vec![said(ChatRole::User, "go")], tools);
        let bad = failed(helper.ask(&LocalModelRequest::Complete(ask)));
        assert_eq!(bad.code, LocalModelFailureCode::BadSchema);
        assert!(bad.message.contains("bad"), "{}", bad.message);
    }
    let fine = request(vec![said(ChatRole::User, "Say hello")], vec![]);
    assert!(!done(helper.ask(&LocalModelRequest::Complete(fine))).0.text.is_empty());
    helper.write(&vec![b'x'; LINE_BYTES_MAX + 1]);
    assert_eq!(code(helper.read()), LocalModelFailureCode::BadRequest);
    let (exit, sentence) = helper.end();
    assert_eq!(exit, Some(2));
    assert!(sentence.contains("longer than"), "{sentence}");
}

#[test]
fn a_peer_that_hangs_up_within_an_answer_is_no_failure() {
    let Some((mut helper, _)) = start() else { return };
    let ask = request(vec![said(ChatRole::User, "Tell me a long story")], vec![]);
    let mut line = serde_json::to_vec(&LocalModelRequest::Complete(ask)).unwrap();
    line.push(b'\n');
    helper.write(&line);
    assert!(matches!(helper.read(), LocalModelResponse::Token { .. }));
    assert_eq!(helper.end(), (Some(0), String::new()));
}
