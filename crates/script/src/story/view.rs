//! Pure: a request of the agent, as a story looks at it.
//!
//! It finds things by what they say and in which order they stand. It must not
//! rely on ids, which the agent chooses anew.

use automaton_core::wire::chat::{ChatMessage, ChatRequest, ChatRole};

/// A conversation, and where the model last said something of a step.
pub(super) struct ConversationView<'a> {
    request: &'a ChatRequest,
    /// The first message after the answer, or after the opening.
    since: usize,
    /// The first message that is not part of the opening.
    opening: usize,
}

impl<'a> ConversationView<'a> {
    /// A view; `said` is the index of the latest answer.
    pub(super) fn of(request: &'a ChatRequest, said: Option<usize>) -> Self {
        let system = |message: &ChatMessage| message.role == ChatRole::System;
        let opening = request.messages.iter().take_while(|message| system(message)).count();
        Self { request, since: said.map_or(opening, |at| at + 1), opening }
    }

    pub(super) fn offers(&self, tool: &str) -> bool {
        self.request.tools.iter().any(|offered| offered.function.name == tool)
    }

    pub(super) fn messages(&self) -> usize {
        self.request.messages.len()
    }

    /// What the user's side said since the last answer.
    pub(super) fn news(&self) -> String {
        let later = self.request.messages.iter().skip(self.since);
        let told = later.filter(|m| matches!(m.role, ChatRole::User | ChatRole::System));
        told.map(content).collect::<Vec<_>>().join("\n")
    }

    /// Every text of the conversation, calls too.
    pub(super) fn history(&self) -> String {
        let mut text = String::new();
        for message in &self.request.messages {
            text.push_str(content(message));
            for call in message.tool_calls.iter().flatten() {
                text.push_str(&format!("\n{}({})", call.function.name, call.function.arguments));
            }
            text.push('\n');
        }
        text
    }

    /// The system messages that open the conversation.
    pub(super) fn rules(&self) -> String {
        let opening = &self.request.messages[..self.opening];
        opening.iter().map(content).collect::<Vec<_>>().join("\n")
    }

    /// The result of the last call of a tool.
    pub(super) fn result(&self, tool: &str) -> Option<&'a str> {
        let messages = &self.request.messages;
        let called = |message: &'a ChatMessage| {
            let mut calls = message.tool_calls.iter().flatten().rev();
            calls.find(|call| call.function.name == tool)
        };
        let last = messages.iter().enumerate().rev().find_map(|(at, m)| Some((at, called(m)?)));
        let (at, call) = last?;
        self.answer_to(at, &call.id)
    }

    /// The results of the calls of one message, in the order of the calls.
    pub(super) fn results_of(&self, at: usize) -> Vec<Option<&'a str>> {
        let calls = self.request.messages.get(at).and_then(|message| message.tool_calls.as_deref());
        calls.unwrap_or_default().iter().map(|call| self.answer_to(at, &call.id)).collect()
    }

    fn answer_to(&self, at: usize, id: &str) -> Option<&'a str> {
        let mut later = self.request.messages.iter().skip(at + 1);
        let found = later.find(|message| {
            message.role == ChatRole::Tool && message.tool_call_id.as_deref() == Some(id)
        });
        found.map(content)
    }
}

/// A message's text; empty when it has none.
pub(super) fn content(message: &ChatMessage) -> &str {
    message.content.as_deref().unwrap_or_default()
}
