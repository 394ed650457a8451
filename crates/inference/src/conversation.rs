//! Pure: the rules that a conversation keeps before it is sent.
//!
//! Servers refuse, or silently misread, a history in which a call lacks its
//! result. Such a history is a defect of ours, so it must never be mended here.

use std::borrow::Borrow;

use automaton_core::id::CallId;

use crate::error::InferenceError;
use crate::provider::{ChatRole, Message};

/// Checks the order of a conversation.
///
/// # Errors
/// [`InferenceError::Conversation`] that names the first message out of place.
pub(crate) fn check<M: Borrow<Message>>(messages: &[M]) -> Result<(), InferenceError> {
    let fault = |place: usize, what: &'static str| InferenceError::Conversation { place, what };
    let mut open: Vec<CallId> = Vec::new();
    let mut head = true;
    for (place, message) in messages.iter().map(Borrow::borrow).enumerate() {
        head &= message.role == ChatRole::System;
        if message.role == ChatRole::System && !head {
            return Err(fault(place, "a system message stands after the head"));
        }
        if message.role != ChatRole::Tool && !open.is_empty() {
            return Err(fault(place, "a call before it has no result"));
        }
        match (message.role, message.answers) {
            (ChatRole::Tool, Some(id)) => match open.iter().position(|call| *call == id) {
                Some(found) => drop(open.swap_remove(found)),
                None => return Err(fault(place, "it answers no call of the message before")),
            },
            (ChatRole::Tool, None) => return Err(fault(place, "a result names no call")),
            (_, Some(_)) => return Err(fault(place, "only a result can answer a call")),
            (ChatRole::Assistant, None) => open.extend(message.calls.iter().map(|call| call.id)),
            (ChatRole::System | ChatRole::User, None) => {}
        }
        if message.role != ChatRole::Assistant && !message.calls.is_empty() {
            return Err(fault(place, "only the model can make calls"));
        }
    }
    let last = messages.len().saturating_sub(1);
    match messages.last().map(|message| message.borrow().role) {
        None => Err(fault(0, "there is none")),
        Some(_) if !open.is_empty() => Err(fault(last, "a call has no result")),
        Some(ChatRole::Assistant) => Err(fault(last, "the model has the last word already")),
        Some(ChatRole::System | ChatRole::User | ChatRole::Tool) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::MessageCall;

    fn id(n: u8) -> CallId {
        format!("0000000000000000000000000{n}").parse().unwrap()
    }

    fn calls(ids: &[u8]) -> Message {
        let call = |n: &u8| MessageCall { id: id(*n), tool: "t".into(), arguments: "{}".into() };
        Message::assistant("", ids.iter().map(call).collect())
    }

    #[test]
    fn every_call_has_its_result_at_its_place() {
        let system = Message::system("s");
        let user = Message::user("u");
        let result = |n| Message::tool(id(n), "r");
        let good = |messages: &[Message]| assert!(check(messages).is_ok(), "{messages:?}");
        let bad = |messages: &[Message], at: usize| {
            let error = check(messages).unwrap_err();
            let found = matches!(error, InferenceError::Conversation { place, .. } if place == at);
            assert!(found, "{messages:?}: {error}");
        };
        good(&[system.clone(), system.clone(), user.clone()]);
        good(&[user.clone(), calls(&[1, 2]), result(2), result(1)]);
        good(&[
            user.clone(),
            calls(&[1]),
            result(1),
            Message::assistant("a", vec![]),
            user.clone(),
        ]);
        bad(&[], 0);
        bad(&[user.clone(), system.clone()], 1);
        bad(&[user.clone(), calls(&[1])], 1);
        bad(&[user.clone(), calls(&[1]), user.clone()], 2);
        bad(&[user.clone(), calls(&[1, 2]), result(1), user.clone()], 3);
        bad(&[user.clone(), calls(&[1]), result(1), result(1)], 3);
        bad(&[user.clone(), result(1)], 1);
        bad(&[user.clone(), Message { answers: None, ..result(1) }], 1);
        bad(&[user.clone(), Message { answers: Some(id(1)), ..user.clone() }], 1);
        bad(&[Message { role: ChatRole::User, ..calls(&[1]) }], 0);
        bad(&[user, Message::assistant("a", vec![])], 1);
    }
}
