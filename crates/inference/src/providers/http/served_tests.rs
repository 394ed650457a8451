//! A model behind a server of ours is asked, and answers, as if its helper were
//! the agent's own.

use automaton_core::tool::{Effect, Risk, ToolCategory, ToolSpec};
use automaton_core::wire::brain;
use automaton_core::wire::chat::ChatChunk;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

use super::assemble::{AssembledReply, Assembler, StreamPiece};
use super::chat_completions::{self, WrittenChat};
use crate::catalogue::{self, ModelInfo, RequestDialect};
use crate::provider::{Completion, CompletionRequest, Message, MessageCall};
use crate::providers::local::chat::{ChatResponder, ResponseMeta, question};
use crate::providers::local::convert;

fn info(dialect: RequestDialect) -> ModelInfo {
    ModelInfo { dialect, ..catalogue::model("some-model").unwrap() }
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.parse().unwrap(),
        description: "Runs a command.".into(),
        category: ToolCategory::Vm,
        risk: Risk::Safe,
        effect: Effect::Mutates,
        parameters: json!({"type": "object", "properties": {"z": {}, "a": {"type": "string"}}})
            .into(),
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[ \na-z\"é\u{1F600}]{0,12}"]
}

fn conversations() -> impl Strategy<Value = Vec<Message>> {
    let round = (texts(), proptest::option::of((texts(), texts(), texts())));
    let rounds = proptest::collection::vec(round, 1..4);
    (texts(), rounds).prop_map(|(rules, rounds)| {
        let mut messages = vec![Message::system(rules)];
        for (told, called) in rounds {
            messages.push(Message::user(told));
            let Some((thought, arguments, result)) = called else { continue };
            let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
            let call = MessageCall { id, tool: "exec".to_owned(), arguments };
            messages.push(Message::assistant(thought, vec![call]));
            messages.push(Message::tool(id, result));
        }
        messages
    })
}

proptest! {
    #[test]
    fn the_helper_is_asked_what_the_agent_asks(
        messages in conversations(),
        left_out in proptest::sample::subsequence(vec!["sleep", "exec", "read"], 0..=3),
        seed in any::<u64>(),
        temperature_milli in 0..=2000_u32,
    ) {
        let ask = CompletionRequest {
            messages: messages.into_iter().map(Arc::new).collect(),
            tools: Arc::new([tool("exec"), tool("read"), tool("sleep")]),
            left_out: left_out.into_iter().map(|name| name.parse().unwrap()).collect(),
            max_tokens: 64,
            seed,
            temperature_milli,
            name: None,
            silence: None,
        };
        let body = chat_completions::body(&info(RequestDialect::Guided), &ask, &mut WrittenChat::default()).unwrap();
        prop_assert_eq!(question(&body).unwrap(), convert::complete(&ask));
        // Without the choice beside the list, what is left out is not there at all.
        let body = chat_completions::body(&info(RequestDialect::Classic), &ask, &mut WrittenChat::default()).unwrap();
        let asked = question(&body).unwrap();
        prop_assert_eq!(asked.left_out.len() , 0);
        prop_assert_eq!(asked.tools.len() + ask.left_out.len(), 3);
    }

    #[test]
    fn the_agent_hears_what_the_helper_says(
        pieces in proptest::collection::vec(texts(), 0..4),
        rest in texts(),
        called in any::<bool>(),
        finish in prop_oneof![
            Just(brain::LocalModelFinishReason::Stop), Just(brain::LocalModelFinishReason::Length), Just(brain::LocalModelFinishReason::Repetition)
        ],
    ) {
        let said = pieces.concat() + &rest;
        let call = brain::LocalModelCall { name: "exec".to_owned(), arguments: "{\"a\": 1}".to_owned() };
        let done = brain::LocalModelCompletion {
            text: said.trim().to_owned(),
            calls: called.then_some(call).into_iter().collect(),
            finish,
            prompt_tokens: 10,
            cached_tokens: 4,
            completion_tokens: 3,
            first_token_ms: 1,
            total_ms: 2,
        };
        let byline = ResponseMeta { id: "i".to_owned(), model: "m".into(), created: 7 };
        let mut speech = ChatResponder::new(byline.clone());
        let mut chunks: Vec<ChatChunk> =
            pieces.iter().filter_map(|piece| speech.piece(piece)).collect();
        chunks.extend(speech.end(&done).unwrap());
        let chunks = chunks.iter().map(|chunk| serde_json::to_string(chunk).unwrap());
        same(&heard(chunks), &done)?;
        let whole = ChatResponder::new(byline).whole_response(&done);
        same(&heard([serde_json::to_string(&whole).unwrap()]), &done)?;
    }
}

fn heard(events: impl IntoIterator<Item = String>) -> AssembledReply {
    let mut assembler = Assembler::default();
    for event in events {
        let Ok(StreamPiece::Chunk(chunk)) = chat_completions::piece(&event) else {
            panic!("{event}")
        };
        assembler.take(chunk).unwrap();
    }
    assembler.finish().unwrap()
}

/// Checks that the result is that of the agent's own helper. An answer that ended because it
/// repeated itself counts as cut off.
fn same(heard: &AssembledReply, done: &brain::LocalModelCompletion) -> Result<(), TestCaseError> {
    let finish = match done.finish {
        brain::LocalModelFinishReason::Repetition => brain::LocalModelFinishReason::Length,
        finish => finish,
    };
    let Completion { text, calls, finish, usage, .. } = convert::reply(
        &info(RequestDialect::Guided),
        brain::LocalModelCompletion { finish, ..done.clone() },
    );
    prop_assert_eq!((&heard.text, heard.finish), (&text, finish));
    let called = heard.calls.iter().map(|call| (&call.tool, &call.arguments));
    prop_assert!(called.eq(calls.iter().map(|call| (&call.tool, &call.arguments))));
    let counted = heard.usage.unwrap();
    prop_assert_eq!(counted.prompt_tokens, usage.prompt_tokens);
    prop_assert_eq!(counted.completion_tokens, usage.completion_tokens);
    let cached = counted.prompt_tokens_details.unwrap().cached_tokens;
    prop_assert_eq!((cached, heard.model.as_str()), (usage.cached_tokens, "m"));
    Ok(())
}
