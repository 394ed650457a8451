//! Pure: a story's view of the agent's request.
//!
//! It finds messages by content and order. It must not rely on ids, which the agent chooses anew.

use automaton_core::wire::chat::{ChatMessage, ChatRequest, ChatRole};

/// A conversation, and the position of the model's last answer of a step.
pub(super) struct ConversationView<'a> {
    request: &'a ChatRequest,
    /// The first message after the answer, or after the opening.
    since: usize,
    /// The first message that is not part of the opening.
    opening: usize,
}

impl<'a> ConversationView<'a> {
    /// Creates a view. `said` is the index of the latest answer.
    pub(super) fn new(request: &'a ChatRequest, said: Option<usize>) -> Self {
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

    /// Returns the texts of the user's side since the last answer.
    pub(super) fn news(&self) -> String {
        let later = self.request.messages.iter().skip(self.since);
        let told = later.filter(|m| matches!(m.role, ChatRole::User | ChatRole::System));
        told.map(content).collect::<Vec<_>>().join("\n")
    }

    /// Returns every text of the conversation, including calls.
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

    /// Returns the system messages that open the conversation.
    pub(super) fn rules(&self) -> String {
        let opening = &self.request.messages[..self.opening];
        opening.iter().map(content).collect::<Vec<_>>().join("\n")
    }

    /// Returns the result of the last call of a tool.
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

    /// Returns the results of the calls of one message, in the order of the calls.
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

/// Returns a message's text, or an empty text.
pub(super) fn content(message: &ChatMessage) -> &str {
    message.content.as_deref().unwrap_or_default()
}
