//! Requests in each format, by us and by others.

use std::sync::Arc;

use automaton_core::tool::{Effect, Risk, ToolCategory, ToolSpec};
use serde_json::{Value, json};

use super::ApiFormat;
use super::format::KeptChat;
use crate::catalogue;
use crate::provider::{CompletionRequest, Message, MessageCall};

const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn ask(arguments: &str) -> CompletionRequest {
    let id = ID.parse().unwrap();
    let tool = |name: &str| ToolSpec {
        name: name.parse().unwrap(),
        description: "Runs.".into(),
        category: ToolCategory::Vm,
        risk: Risk::Safe,
        effect: Effect::Mutates,
        parameters: json!({"type": "object"}).into(),
    };
    let call = MessageCall { id, tool: "exec".into(), arguments: arguments.into() };
    CompletionRequest {
        messages: vec![
            Message::system("rules").into(),
            Message::user("go").into(),
            Message::assistant("", vec![call]).into(),
            Message::tool(id, "done").into(),
            Message::user("and now?").into(),
        ],
        tools: Arc::new([tool("exec"), tool("sleep")]),
        left_out: vec!["exec".parse().unwrap()],
        max_tokens: 64,
        seed: u64::MAX,
        temperature_milli: 700,
        name: None,
        silence: None,
    }
}

fn written(format: ApiFormat, model: &str, arguments: &str) -> Value {
    let info = catalogue::own_model(model).unwrap();
    let body = format.body(&info, &ask(arguments), &mut KeptChat::new(format));
    serde_json::from_slice(&body.unwrap()).unwrap()
}

#[test]
fn ollama_is_asked_for_the_window_and_to_cut_nothing() {
    let call = json!({"function": {"name": "exec", "arguments": {"a": [1]}}});
    let function =
        json!({"name": "sleep", "description": "Runs.", "parameters": {"type": "object"}});
    assert_eq!(
        written(ApiFormat::Ollama, "some-model", r#"{"a": [1]}"#),
        json!({
            "model": "some-model",
            "messages": [
                {"role": "system", "content": "rules"},
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "content": "done", "tool_name": "exec"},
                {"role": "user", "content": "and now?"},
            ],
            "tools": [{"type": "function", "function": function}],
            "options": {"num_ctx": 8192, "num_predict": 64, "temperature": 0.7, "seed": i64::MAX},
            "truncate": false,
            "shift": false,
            "stream": true,
        })
    );
    let body = written(ApiFormat::Ollama, "some-model", "{");
    let arguments = &body["messages"][2]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(arguments, &json!({"INVALID_JSON": "{"}));
}

#[test]
fn responses_are_asked_for_with_everything_and_kept_by_nobody() {
    let body = written(ApiFormat::Responses, "some-model", "{");
    assert_eq!(
        body,
        json!({
            "model": "some-model",
            "instructions": "rules",
            "input": [
                {"role": "user", "content": "go"},
                {"type": "function_call", "call_id": ID, "name": "exec", "arguments": "{"},
                {"type": "function_call_output", "call_id": ID, "output": "done"},
                {"role": "user", "content": "and now?"},
            ],
            "tools": [{"type": "function", "name": "sleep", "description": "Runs.",
                       "parameters": {"type": "object"}, "strict": false}],
            "max_output_tokens": 64,
            "temperature": 0.7,
            "store": false,
            "stream": true,
        })
    );
    let reasoning = written(ApiFormat::Responses, "gpt-5.2", "{}");
    assert!(reasoning.get("temperature").is_none(), "{reasoning}");
    assert_eq!(reasoning["include"], json!(["reasoning.encrypted_content"]));
}

#[test]
fn gemini_is_asked_in_turns_and_with_the_names_of_functions() {
    let body = |model: &str| written(ApiFormat::Gemini, model, r#"{"a":1}"#);
    let called = json!({"functionCall": {"name": "exec", "args": {"a": 1}}});
    assert_eq!(
        body("gemini-2.5-pro"),
        json!({
            "systemInstruction": {"parts": [{"text": "rules"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "go"}]},
                {"role": "model", "parts": [called]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "exec", "response": {"result": "done"}}}]},
                {"role": "user", "parts": [{"text": "and now?"}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "sleep", "description": "Runs.",
                "parametersJsonSchema": {"type": "object"}}]}],
            "generationConfig": {"maxOutputTokens": 64},
        })
    );
    let part = &body("gemini-3-pro-preview")["contents"][1]["parts"][0];
    assert_eq!(part["thoughtSignature"], "skip_thought_signature_validator");
    let tuned = body("some-model");
    assert_eq!(tuned["generationConfig"]["seed"], 0x7fff_ffff);
}

#[test]
fn a_request_of_anybody_is_put_into_any_format() {
    let function = json!({"name": "f", "parameters": {"type": "object"}});
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "f",
        "arguments": "{\"a\":1}"}});
    let chat = json!({
        "model": "m", "max_completion_tokens": 9, "stream": false, "temperature": 0.5, "seed": 3,
        "messages": [
            {"role": "developer", "content": "rules"},
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "one"},
        ],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
    });
    let put = |format: ApiFormat, chat: &Value| {
        let body = format.body_from_chat(chat.to_string().into_bytes(), 5000);
        body.map(|body| serde_json::from_slice::<Value>(&body).unwrap())
    };
    let why = put(ApiFormat::Ollama, &chat).unwrap_err().to_string();
    assert!(why.contains("tool_choice"), "{why}");
    let mut as_it_likes = chat.clone();
    as_it_likes["tool_choice"] = json!("auto");
    let body = put(ApiFormat::Ollama, &as_it_likes).unwrap();
    assert_eq!(
        body["options"],
        json!({"num_ctx": 5000, "num_predict": 9, "temperature": 0.5,
        "seed": 3})
    );
    assert_eq!((&body["messages"][3]["tool_name"], &body["stream"]), (&json!("f"), &json!(false)));
    let body = put(ApiFormat::Responses, &chat).unwrap();
    assert_eq!(body["input"][1]["call_id"], "call_1");
    assert_eq!(body["tool_choice"], json!({"type": "function", "name": "f"}));
    assert_eq!((&body["max_output_tokens"], &body["stream"]), (&json!(16), &json!(false)));
    let body = put(ApiFormat::Gemini, &chat).unwrap();
    let config = json!({"mode": "ANY", "allowedFunctionNames": ["f"]});
    assert_eq!(body["toolConfig"], json!({"functionCallingConfig": config}));
    assert_eq!(body["contents"][2]["parts"][0]["functionResponse"]["name"], "f");
    assert_eq!(put(ApiFormat::ChatCompletions, &chat).unwrap(), chat, "as it is");
    let mut stopped = chat.clone();
    stopped["stop"] = json!(["END"]);
    let body = put(ApiFormat::Gemini, &stopped).unwrap();
    assert_eq!(body["generationConfig"]["stopSequences"], json!(["END"]));
    let why = put(ApiFormat::Responses, &stopped).unwrap_err().to_string();
    assert!(why.contains("stop"), "{why}");
    for format in [ApiFormat::Ollama, ApiFormat::Responses, ApiFormat::Gemini] {
        let mut many = chat.clone();
        many["n"] = json!(2);
        assert!(put(format, &many).is_err(), "{format:?}");
    }
}
