//! Replies out of pieces, in every shape that servers cut them into.

use automaton_core::wire::chat::{ChunkChoice, ChunkDelta, ChunkFunction};
use proptest::prelude::*;

use super::*;

fn call(index: u32, id: Option<&str>, name: Option<&str>, arguments: Option<&str>) -> ChunkCall {
    let function =
        ChunkFunction { name: name.map(str::to_owned), arguments: arguments.map(str::to_owned) };
    ChunkCall { index, id: id.map(str::to_owned), kind: None, function }
}

fn chunk(content: Option<&str>, calls: Vec<ChunkCall>, finish: Option<&str>) -> ChatChunk {
    let delta =
        ChunkDelta { role: None, content: content.map(str::to_owned), tool_calls: Some(calls) };
    let choice = ChunkChoice { index: 0, delta, finish_reason: finish.map(str::to_owned) };
    ChatChunk {
        id: String::new(),
        object: String::new(),
        created: 0,
        model: String::new(),
        choices: vec![choice],
        usage: None,
    }
}

fn assemble(chunks: Vec<ChatChunk>) -> Result<AssembledReply, AssemblyError> {
    let mut assembler = Assembler::default();
    for chunk in chunks {
        assembler.take(chunk)?;
    }
    assembler.finish()
}

/// The calls of a reply, as name and arguments.
fn calls_of(pieces: Vec<ChunkCall>) -> Vec<(String, String)> {
    let mut chunks: Vec<_> =
        pieces.into_iter().map(|piece| chunk(None, vec![piece], None)).collect();
    chunks.push(chunk(None, vec![], Some("tool_calls")));
    let calls = assemble(chunks).unwrap().calls;
    calls.into_iter().map(|call| (call.tool, call.arguments)).collect()
}

fn two() -> Vec<(String, String)> {
    vec![("a".into(), r#"{"x":1}"#.into()), ("b".into(), "{}".into())]
}

#[test]
fn two_calls_in_every_known_shape() {
    // As the format has it: the name first, then arguments by index.
    let pieces = vec![
        call(0, Some("c1"), Some("a"), Some("")),
        call(0, None, None, Some(r#"{"x""#)),
        call(1, Some("c2"), Some("b"), None),
        call(0, None, None, Some(":1}")),
        call(1, None, None, Some("{}")),
    ];
    assert_eq!(calls_of(pieces), two());
    // Whole calls, all with index 0.
    let pieces = vec![
        call(0, Some("c1"), Some("a"), Some(r#"{"x":1}"#)),
        call(0, Some("c2"), Some("b"), Some("{}")),
    ];
    assert_eq!(calls_of(pieces), two());
    // The same without ids.
    let pieces =
        vec![call(0, None, Some("a"), Some(r#"{"x":1}"#)), call(0, None, Some("b"), Some("{}"))];
    assert_eq!(calls_of(pieces), two());
    // The name in pieces, or repeated.
    let pieces = vec![
        call(0, Some("c1"), Some("wri"), None),
        call(0, Some("c1"), Some("te"), Some("{")),
        call(0, Some("c1"), Some("write"), Some("}")),
    ];
    assert_eq!(calls_of(pieces), [("write".to_owned(), "{}".to_owned())]);
}

#[test]
fn the_same_tool_twice_without_ids_is_two_calls() {
    let pieces = vec![call(0, None, Some("a"), Some("{}")), call(0, None, Some("a"), Some("{}"))];
    assert_eq!(calls_of(pieces).len(), 2);
}

#[test]
fn one_call_in_every_shape_that_servers_cut_it_into() {
    let whole = r#"{"path":"a","content":"b"}"#;
    let (first, rest) = whole.split_at(10);
    let one = [("write".to_owned(), whole.to_owned())];
    for pieces in [
        // A new id with each piece, and with the name again.
        vec![
            call(0, Some("c1"), Some("write"), Some("")),
            call(0, Some("c2"), None, Some(first)),
            call(0, Some("c3"), None, Some(rest)),
        ],
        vec![
            call(0, Some("c1"), Some("write"), Some(first)),
            call(0, Some("c2"), Some("write"), Some(rest)),
        ],
        // An empty object first, and all of it once more, with and without id and name.
        vec![
            call(0, Some("c1"), Some("write"), Some("{}")),
            call(0, None, None, Some(first)),
            call(0, None, None, Some(rest)),
        ],
        vec![call(0, Some("c1"), Some("write"), Some(whole)), call(0, None, None, Some(whole))],
        vec![
            call(0, Some("c1"), Some("write"), Some(whole)),
            call(0, Some("c1"), Some("write"), Some(whole)),
        ],
        vec![
            call(0, Some("c1"), Some("write"), Some(whole)),
            call(0, None, Some("write"), Some("")),
        ],
        // The id alone says where a piece belongs.
        vec![
            call(0, Some("c1"), Some("write"), Some(first)),
            call(7, Some("c1"), None, Some(rest)),
        ],
    ] {
        assert_eq!(calls_of(pieces.clone()), one, "{pieces:?}");
    }
    // Ids alone, and then nothing at all.
    let pieces = vec![
        call(NO_INDEX, Some("c1"), Some("a"), Some(r#"{"x""#)),
        call(NO_INDEX, Some("c2"), Some("b"), Some("{")),
        call(NO_INDEX, Some("c1"), None, Some(":1}")),
        call(NO_INDEX, Some("c2"), Some("b"), Some("}")),
    ];
    assert_eq!(calls_of(pieces), two());
    let pieces = vec![
        call(NO_INDEX, Some("c1"), Some("write"), None),
        call(0, None, None, Some(first)),
        call(0, None, None, Some(rest)),
    ];
    assert_eq!(calls_of(pieces), one);
    // The pieces of two calls of one server that draws a new id for each of them.
    let pieces = vec![
        call(0, Some("c1"), Some("a"), None),
        call(1, Some("c2"), Some("b"), None),
        call(0, Some("c3"), None, Some(r#"{"x":1}"#)),
        call(1, Some("c4"), None, Some("{}")),
    ];
    assert_eq!(calls_of(pieces), two());
}

#[test]
fn a_call_without_arguments_has_an_empty_object_unless_it_was_cut_off() {
    for arguments in [None, Some(""), Some(" "), Some("null"), Some("{}")] {
        let pieces = || vec![call(0, Some("c"), Some("a"), arguments)];
        let wanted = if arguments == Some("{}") { "{}" } else { arguments.unwrap_or_default() };
        assert_eq!(calls_of(pieces()), [("a".to_owned(), "{}".to_owned())], "{arguments:?}");
        let cut = assemble(vec![chunk(None, pieces(), Some("length"))]).unwrap();
        assert_eq!(cut.calls[0].arguments, wanted, "{arguments:?}");
    }
    // Those before the last one were not cut off.
    let pieces =
        vec![call(0, Some("c"), Some("a"), None), call(1, Some("d"), Some("b"), Some("{"))];
    let cut = assemble(vec![chunk(None, pieces, Some("length"))]).unwrap();
    assert_eq!([&cut.calls[0].arguments, &cut.calls[1].arguments], ["{}", "{"]);
}

#[test]
fn reasons_are_normalised() {
    let finish = |reason, calls: &[ChunkCall]| {
        assemble(vec![chunk(Some("x"), calls.to_vec(), Some(reason))]).unwrap().finish
    };
    for reason in ["stop", "end_turn", "stop_sequence", "eos", "STOP", "whatever"] {
        assert_eq!(finish(reason, &[]), FinishReason::Stop, "{reason}");
    }
    let one = [call(0, None, Some("a"), Some("{}"))];
    for reason in ["tool_calls", "function_call", "tool_use", "stop", "end_turn"] {
        assert_eq!(finish(reason, &one), FinishReason::ToolCalls, "{reason}");
    }
    assert_eq!(finish("tool_calls", &[]), FinishReason::Stop);
    assert_eq!(finish("length", &one), FinishReason::Length);
    assert_eq!(finish("max_tokens", &[]), FinishReason::Length);
    assert_eq!(finish("content_filter", &[]), FinishReason::Filtered);
    for reason in ["error", "network_error", "insufficient_system_resource"] {
        let failed = assemble(vec![chunk(Some("x"), vec![], Some(reason))]);
        assert_eq!(failed, Err(AssemblyError::Cut), "{reason}");
    }
}

#[test]
fn what_never_ended_is_no_reply() {
    assert_eq!(assemble(vec![chunk(Some("half"), vec![], None)]), Err(AssemblyError::Cut));
    assert_eq!(assemble(vec![chunk(Some("half"), vec![], Some(""))]), Err(AssemblyError::Cut));
    assert!(matches!(assemble(vec![]), Err(AssemblyError::NoReply(_))));
}

#[test]
fn a_reply_has_limits() {
    let long = "x".repeat(REPLY_BYTES_MAX);
    assert!(assemble(vec![chunk(Some(&long), vec![], Some("stop"))]).is_ok());
    let longer = vec![chunk(Some(&long), vec![], None), chunk(Some("x"), vec![], Some("stop"))];
    assert!(matches!(assemble(longer), Err(AssemblyError::NoReply(_))));
    let many = (0..200).map(|n| call(n, None, Some("a"), None)).collect();
    assert!(matches!(assemble(vec![chunk(None, many, None)]), Err(AssemblyError::NoReply(_))));
}

#[test]
fn other_answers_are_left_alone() {
    let mut other = chunk(Some("second"), vec![], Some("stop"));
    other.choices[0].index = 1;
    let assembled = assemble(vec![other, chunk(Some("first"), vec![], Some("stop"))]).unwrap();
    assert_eq!(assembled.text, "first");
}

proptest! {
    #[test]
    fn calls_survive_any_cutting_and_interleaving(
        texts in proptest::collection::vec(("[a-z]{1,8}", "[ -~]{0,30}"), 1..5),
        sizes in proptest::collection::vec(1_usize..7, 1..20),
    ) {
        let object = |text: &String| serde_json::json!({ "a": text }).to_string();
        let calls: Vec<(String, String)> =
            texts.iter().map(|(name, text)| (name.clone(), object(text))).collect();
        // Each call's arguments are cut; the pieces of all calls come in turn.
        let mut queues: Vec<Vec<String>> = calls
            .iter()
            .map(|(_, arguments)| {
                let mut rest = arguments.as_str();
                let mut pieces = Vec::new();
                let mut size = sizes.iter().cycle();
                while !rest.is_empty() {
                    let (piece, after) = rest.split_at((*size.next().unwrap()).min(rest.len()));
                    pieces.push(piece.to_owned());
                    rest = after;
                }
                pieces.reverse();
                pieces
            })
            .collect();
        let mut pieces = Vec::new();
        for (index, (name, _)) in (0_u32..).zip(&calls) {
            pieces.push(call(index, Some(&format!("id{index}")), Some(name), Some("")));
        }
        while queues.iter().any(|queue| !queue.is_empty()) {
            for (index, queue) in (0_u32..).zip(&mut queues) {
                if let Some(piece) = queue.pop() {
                    pieces.push(call(index, None, None, Some(&piece)));
                }
            }
        }
        prop_assert_eq!(calls_of(pieces), calls);
    }
}

#[test]
fn a_word_for_the_end_that_is_not_known_is_kept_with_the_answer() {
    let of = |word: &str| assemble(vec![chunk(Some("a"), vec![], Some(word))]);
    let reply = of("quota_soft").unwrap();
    assert_eq!(
        (reply.finish, reply.unknown_end.as_deref()),
        (FinishReason::Stop, Some("quota_soft"))
    );
    assert_eq!(of("stop").unwrap().unknown_end, None);
    assert_eq!(of("timeout"), Err(AssemblyError::Cut));
}
