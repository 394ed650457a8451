//! Messages to the creator, over the store's outbox.
//!
//! A message is stored once per call, however often the call is repeated.

use automaton_core::event::Event;
use automaton_core::id::{CallId, MessageId};
use automaton_tools::context::{self, HandleFuture, MessageDraft};

use super::memory::of_store;
use crate::deps::AgentDeps;

/// The outbox of one automaton.
pub(crate) struct Mailbox {
    deps: AgentDeps,
}

impl Mailbox {
    pub(super) const fn new(deps: AgentDeps) -> Self {
        Self { deps }
    }
}

impl context::MailboxHandle for Mailbox {
    fn send_to_creator<'a>(
        &'a self,
        call: CallId,
        letter: MessageDraft,
    ) -> HandleFuture<'a, MessageId> {
        Box::pin(async move {
            let MessageDraft { body, reply_to } = letter;
            let store = &self.deps.store;
            let sent = store.send_to_creator(call, body.clone(), reply_to).await;
            let message = sent.map_err(of_store)?;
            let recipient = "creator".to_owned();
            self.deps.emit(Event::MessageSent { message, recipient, body });
            Ok(message)
        })
    }
}
