//! Pure: what a model thought before its calls, as its server wrote it, for the same server to
//! read when it gets their results.
//!
//! Held in memory and bounded. No server needs it, so what is lost is left out. It is sent to the
//! server alone that wrote it, within the calls and results that it belongs to; it must never be
//! shown or stored.

use std::collections::VecDeque;

use automaton_core::wire::chat::ChatRole;
use serde_json::Value;

use super::asked::{AskedChat, SpokenCall};
use crate::provider::RawCall;

/// The most bytes of one answer's thoughts that are kept.
const BYTES_MAX: usize = 256 << 10;

/// The most answers of which thoughts are kept: more than a tool loop has.
const ANSWERS_MAX: usize = 32;

/// The thoughts of an answer that is being read: all of them or, beyond the limit, none.
#[derive(Debug, Default)]
pub(super) struct ThoughtLog {
    parts: Vec<Value>,
    bytes: usize,
}

impl ThoughtLog {
    /// Adds one.
    pub(super) fn add(&mut self, part: Value) {
        if self.has_room(part.to_string().len()) {
            self.parts.push(part);
        }
    }

    /// Adds to a text of the last one.
    pub(super) fn extend(&mut self, field: &str, more: &str) {
        let has_room = self.has_room(more.len());
        if let (true, Some(Value::String(text))) =
            (has_room, self.parts.last_mut().and_then(|part| part.get_mut(field)))
        {
            text.push_str(more);
        }
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= BYTES_MAX
    }

    /// All of them.
    pub(super) fn finish(self) -> Vec<Value> {
        if self.bytes <= BYTES_MAX { self.parts } else { Vec::new() }
    }
}

/// The thoughts of the latest answers.
#[derive(Debug, Default)]
pub(super) struct KeptThoughts(VecDeque<ThoughtfulAnswer>);

#[derive(Debug)]
struct ThoughtfulAnswer {
    calls: Vec<RawCall>,
    thoughts: Vec<Value>,
}

impl ThoughtfulAnswer {
    /// Returns true if its calls are these, which have other ids since.
    fn has_made(&self, calls: &[SpokenCall<'_>]) -> bool {
        let is_same = |(kept, call): (&RawCall, &SpokenCall<'_>)| {
            (kept.tool.as_str(), kept.arguments.as_str()) == (&*call.tool, &*call.arguments)
        };
        self.calls.len() == calls.len() && self.calls.iter().zip(calls).all(is_same)
    }
}

impl KeptThoughts {
    /// Keeps what was thought before these calls.
    pub(super) fn store(&mut self, calls: &[RawCall], thoughts: Vec<Value>) {
        if calls.is_empty() || thoughts.is_empty() {
            return;
        }
        self.0.push_back(ThoughtfulAnswer { calls: calls.to_vec(), thoughts });
        if self.0.len() > ANSWERS_MAX {
            self.0.pop_front();
        }
    }

    /// Puts them before the calls whose results the question ends with.
    pub(super) fn put_into(&self, asked: &mut AskedChat<'_>) {
        let is_asked = |role| matches!(role, ChatRole::User | ChatRole::System);
        let looped = asked.messages.iter_mut().rev().skip_while(|it| is_asked(it.role));
        let mut kept = self.0.iter().rev();
        for message in looped.take_while(|it| !is_asked(it.role)) {
            match message.role {
                ChatRole::Tool => continue,
                // It had said all that it had to say.
                _ if message.calls.is_empty() => return,
                _ => {}
            }
            match kept.by_ref().find(|answer| answer.has_made(&message.calls)) {
                Some(answer) => message.thoughts.clone_from(&answer.thoughts),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::catalogue;
    use crate::provider::{CompletionRequest, Message, MessageCall};

    fn asked_of(messages: Vec<Message>) -> CompletionRequest {
        CompletionRequest {
            messages: messages.into_iter().map(Arc::new).collect(),
            tools: Arc::default(),
            left_out: Vec::new(),
            max_tokens: 9,
            seed: 0,
            temperature_milli: 0,
            name: None,
            silence: None,
        }
    }

    /// A call with its result.
    fn called(nth: u8) -> [Message; 2] {
        let id = format!("0000000000000000000000000{nth}").parse().unwrap();
        let call = MessageCall { id, tool: "exec".into(), arguments: format!("{{\"n\":{nth}}}") };
        [Message::assistant("", vec![call]), Message::tool(id, "done")]
    }

    fn raw(nth: u8) -> RawCall {
        let tool = "exec".to_owned();
        let arguments = format!("{{\"n\":{nth}}}");
        RawCall { provider_id: None, tool, arguments }
    }

    fn put(kept: &KeptThoughts, messages: Vec<Message>) -> Vec<usize> {
        let info = catalogue::own_model("m").unwrap();
        let ask = asked_of(messages);
        let mut asked = AskedChat::from_request(&info, &ask);
        kept.put_into(&mut asked);
        asked.messages.iter().map(|message| message.thoughts.len()).collect()
    }

    #[test]
    fn thoughts_stay_with_their_calls_and_in_their_loop() {
        let mut kept = KeptThoughts::default();
        for nth in 1..4 {
            kept.store(&[raw(nth)], vec![json!(nth)]);
        }
        kept.store(&[], vec![json!("no calls")]);
        kept.store(&[raw(4)], vec![]);
        let system = Message::system("s");
        let user = Message::user("u");
        let of = |calls: &[u8]| calls.iter().flat_map(|nth| called(*nth)).collect::<Vec<_>>();
        let with = |parts: &[&[Message]]| parts.concat();
        let head = [system, user.clone()];
        assert_eq!(put(&kept, with(&[&head, &of(&[1, 2])])), [0, 0, 1, 0, 1, 0]);
        let earlier = with(&[
            &head,
            &of(&[1]),
            std::slice::from_ref(&user),
            &of(&[2]),
            std::slice::from_ref(&user),
        ]);
        assert_eq!(put(&kept, earlier), [0, 0, 0, 0, 0, 1, 0, 0], "the last loop alone");
        assert_eq!(put(&kept, with(&[&head, &of(&[2, 9])])), [0, 0, 0, 0, 0, 0], "not known");
        assert_eq!(put(&kept, with(&[&head, &of(&[2, 1])])), [0, 0, 0, 0, 1, 0], "out of order");
        for _ in 0..ANSWERS_MAX {
            kept.store(&[raw(5)], vec![json!(5)]);
        }
        assert_eq!(put(&kept, with(&[&head, &of(&[3])])), [0, 0, 0, 0], "long ago");
    }

    #[test]
    fn thoughts_beyond_the_limit_are_none() {
        let mut log = ThoughtLog::default();
        log.add(json!({"text": ""}));
        log.extend("text", "hm");
        log.extend("other", "hm");
        assert_eq!(log.finish(), [json!({"text": "hm"})]);
        let mut log = ThoughtLog::default();
        log.add(json!({"text": ""}));
        (0..5).for_each(|_| log.extend("text", &"x".repeat(BYTES_MAX / 4)));
        log.add(json!("more"));
        assert_eq!(log.finish(), Vec::<Value>::new());
    }
}
