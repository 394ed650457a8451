//! `send_message`: writes to the creator.
//!
//! Whom a message may reach is the policy's business; the only way out that
//! this tool has leads to the creator.

use automaton_core::id::MessageId;
use automaton_core::intent::Intent;
use automaton_core::record::CallRecord;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Labelled;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::{MessageDraft, ToolContext};
use crate::digest::{CallDigest, CallKind, argument};
use crate::error::ToolError;
use crate::profile::{FamilyMembership, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<SendMessage> = Builtin::new(ToolMetadata {
    name: "send_message",
    description: "Send a message to your creator.",
    category: ToolCategory::Social,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile {
        family: FamilyMembership::Every,
        in_compact_prompt: true,
        class: WorkClass::Communication,
        sends_message: true,
        ..ToolProfile::new(ToolFamily::Files)
    },
})
.with_digest(digest);

fn digest(call: &CallRecord) -> Option<CallDigest> {
    Some(CallDigest::new(CallKind::Sent, argument(call, "content").unwrap_or_default()))
}

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendMessage {
    /// Always `creator`.
    #[schemars(extend("enum" = ["creator"]))]
    to_address: String,
    /// The message.
    #[schemars(length(min = 1, max = 16000))]
    content: String,
    /// Id of the message that this answers.
    #[schemars(with = "Option<String>", length(max = 26))]
    reply_to: Option<MessageId>,
}

impl BuiltinCall for SendMessage {
    fn intents(&self) -> Vec<Intent> {
        let bytes = self.content.len() as u64;
        vec![Intent::Message { recipient: self.to_address.clone(), bytes }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let body = Labelled::new(context.voice, "agent", self.content);
        let letter = MessageDraft { body, reply_to: self.reply_to };
        let sent = context.mailbox.send_to_creator(context.call, letter).await;
        let id = sent.map_err(ToolError::Send)?;
        let text = format!("Message sent to your creator (id: {id})");
        Ok(ToolOutput::labelled(context.voice, "send_message", &text))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{CREATOR, Fake, judged, run};
    use automaton_policy::{ReasonCode, Verdict};
    use serde_json::json;

    #[test]
    fn the_creator_is_reached_by_word_and_by_address() {
        for to in ["creator", CREATOR] {
            let fake = Fake { mails: true, ..Fake::default() };
            let arguments = json!({"to_address": to, "content": "hello"});
            let report = run(&fake, "send_message", &arguments).unwrap();
            let text = report.text.text;
            assert!(text.starts_with("Message sent to your creator (id: 0"), "{text}");
            assert_eq!(fake.log(), ["send hello as self re None"]);
        }
    }

    #[test]
    fn nobody_else_is_reached() {
        let other = "0x2222222222222222222222222222222222222222";
        let verdict = judged("send_message", &json!({"to_address": other, "content": "hello"}));
        let Verdict::Refused(decision) = verdict else { panic!("not refused") };
        assert_eq!(decision.code, ReasonCode::UnknownRecipient);
    }

    #[test]
    fn an_answer_names_a_message() {
        let fake = Fake { mails: true, ..Fake::default() };
        let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let arguments = json!({"to_address": "creator", "content": "x", "reply_to": id});
        assert!(run(&fake, "send_message", &arguments).is_ok());
        assert_eq!(fake.log(), [format!("send x as self re Some({id})")]);
        let arguments = json!({"to_address": "creator", "content": "x", "reply_to": "him"});
        assert!(crate::list::find("send_message").unwrap().parse(&arguments).is_err());
    }
}
