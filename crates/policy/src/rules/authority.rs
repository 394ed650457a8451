//! Pure: the authority that kinds of effects and values need.
//!
//! There are two levels. First, the label of the turn's input, and of everything read in the same
//! wake, determines which kinds of effects the turn may have: [`TABLE`]. Second, the origin of
//! each recipient, URL, command and path is checked. A value that only strangers have named needs
//! the creator's approval, and money goes only to recipients that the creator has named. Labels
//! and origins are determined before. No rule may raise them.

use automaton_core::intent::Intent;
use automaton_core::origin::ValueOrigin;
use automaton_core::record::DecisionOutcome;
use automaton_core::soul::SoulSection;
use automaton_core::trust::Label;

use super::{LiftedBy, Rule, RuleError, RuleFinding, deny_if, quoted};
use crate::decision::{ReasonCode, RuleId};
use crate::facts::Facts;
use crate::intents::{IntentProfile, target_values};

/// The category of facts that only the creator may store. Other texts would put words into the
/// creator's mouth, for every later turn to read.
const CREATOR_CATEGORY: &str = "creator";

/// The authority that one kind of effect needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthorityNeeds {
    /// The name of the kind of effect.
    pub kind: &'static str,
    /// The effect as it continues a sentence after "would have it".
    pub effect: &'static str,
    /// The outcome when the turn answers a text of each label, in the order of [`Label::ALL`].
    pub answering: [DecisionOutcome; 5],
    /// The outcome when the same wake has read text of a peer or of the web.
    pub having_read: DecisionOutcome,
}

const ALONE: DecisionOutcome = DecisionOutcome::Allow;
const ASKED: DecisionOutcome = DecisionOutcome::Ask;
const NEVER: DecisionOutcome = DecisionOutcome::Deny;

const fn needs(
    kind: &'static str,
    effect: &'static str,
    others: DecisionOutcome,
    having_read: DecisionOutcome,
) -> AuthorityNeeds {
    AuthorityNeeds { kind, effect, answering: [ALONE, ALONE, ALONE, others, others], having_read }
}

pub(crate) const LOOK: AuthorityNeeds =
    needs("look", "look, think, rest or tell its creator", ALONE, ALONE);
pub(crate) const MESSAGE: AuthorityNeeds =
    needs("message", "write to somebody else than the creator", ASKED, ALONE);
// The sandbox has no network, so untrusted text may be processed there.
pub(crate) const EXEC: AuthorityNeeds = needs("exec", "run a command", ASKED, ALONE);
// Deleted files are lost, wherever they were.
pub(crate) const DELETE: AuthorityNeeds = needs("delete", "delete files", ASKED, ASKED);
// Only to listed hosts. An approved command may send what it needs.
pub(crate) const EGRESS: AuthorityNeeds =
    needs("egress", "send a request from a command", ASKED, ALONE);
pub(crate) const WRITE: AuthorityNeeds = needs("write_path", "write a file", ASKED, ALONE);
pub(crate) const REMEMBER: AuthorityNeeds = needs("remember", "change the memory", ASKED, ALONE);
// Only at listed hosts, within separate limits. The tool is too dangerous for strangers.
pub(crate) const FETCH: AuthorityNeeds = needs("fetch_paid", "pay for a request", NEVER, ALONE);
pub(crate) const SCHEDULE: AuthorityNeeds = needs("schedule", "change its schedule", ASKED, ASKED);
// Only the creator and the automaton itself may define its purpose.
pub(crate) const SOUL: AuthorityNeeds =
    needs("soul", "change what it thinks of itself", NEVER, ASKED);
pub(crate) const GENESIS: AuthorityNeeds =
    needs("genesis", "change what it is there for", NEVER, ASKED);
// Otherwise a stranger could beg in its name, or keep it from using a good model.
pub(crate) const PLEAD: AuthorityNeeds = needs("plead", "ask for money", NEVER, ASKED);
pub(crate) const ECONOMISE: AuthorityNeeds = needs("economise", "live cheaply", ASKED, ASKED);
pub(crate) const SWITCH_MODEL: AuthorityNeeds =
    needs("model", "think with another model", ASKED, ASKED);
pub(crate) const TOP_UP: AuthorityNeeds = needs("top_up", "buy credits", NEVER, ASKED);
pub(crate) const RENT: AuthorityNeeds = needs("rent", "rent a machine", NEVER, ASKED);
pub(crate) const END_MACHINE: AuthorityNeeds = needs("end_machine", "end a machine", NEVER, ASKED);
// Reopening a port repeats an earlier decision, whatever was read since.
pub(crate) const PUBLISH_AGAIN: AuthorityNeeds =
    needs("republish", "open a port again to everybody", ASKED, ALONE);
pub(crate) const PUBLISH: AuthorityNeeds =
    needs("publish", "open a port to everybody", ASKED, ASKED);
// The creator's requests are carried out. The automaton's own initiative needs confirmation.
pub(crate) const TRANSFER: AuthorityNeeds = AuthorityNeeds {
    answering: [ALONE, ASKED, ASKED, NEVER, NEVER],
    ..needs("transfer", "give money away", NEVER, ASKED)
};

/// Every kind of effect with the authority that it needs.
pub const TABLE: [AuthorityNeeds; 20] = [
    LOOK,
    MESSAGE,
    EXEC,
    EGRESS,
    DELETE,
    WRITE,
    REMEMBER,
    FETCH,
    SCHEDULE,
    SOUL,
    GENESIS,
    PLEAD,
    ECONOMISE,
    SWITCH_MODEL,
    TOP_UP,
    RENT,
    END_MACHINE,
    PUBLISH,
    PUBLISH_AGAIN,
    TRANSFER,
];

/// Returns the row of an intent.
fn needs_of(intent: &Intent, facts: &Facts) -> &'static AuthorityNeeds {
    (IntentProfile::new(intent).needs)(intent, facts)
}

impl AuthorityNeeds {
    /// Returns the outcome when a text with this label is answered.
    fn when_answering(&self, input: Label) -> DecisionOutcome {
        let place = Label::ALL.iter().position(|label| *label == input);
        place.and_then(|place| self.answering.get(place)).copied().unwrap_or(NEVER)
    }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: RuleId::new("authority.untrusted_input"),
        code: ReasonCode::UntrustedInput,
        sentence: "What a peer or a page asks for changes nothing without the creator's approval.",
        lifted_by: LiftedBy::Creator,
        check: |intent, facts| {
            let needs = needs_of(intent, facts);
            let answers = facts.input > Label::Tool;
            let outcome = if answers { needs.when_answering(facts.input) } else { ALONE };
            let detail = || format!("A '{}' text would have it {}.", facts.input, needs.effect);
            Ok(to_finding(outcome, detail))
        },
    },
    Rule {
        id: RuleId::new("authority.untrusted_reading"),
        code: ReasonCode::UntrustedInput,
        sentence: "After reading a peer or a page some things wait for the creator's approval.",
        lifted_by: LiftedBy::Creator,
        check: |intent, facts| {
            let needs = needs_of(intent, facts);
            let has_read = facts.heard > Label::Tool;
            let outcome = if has_read { needs.having_read } else { ALONE };
            let detail = || {
                format!("In this wake a '{}' text may want it to {}.", facts.heard, needs.effect)
            };
            Ok(to_finding(outcome, detail))
        },
    },
    Rule {
        id: RuleId::new("authority.value_origin"),
        code: ReasonCode::UntrustedValue,
        sentence: "What only strangers have named is not used without the creator's approval.",
        lifted_by: LiftedBy::Creator,
        check: |intent, facts| {
            for value in target_values(intent) {
                let what = value.kind.name();
                let origin = facts.origins.of(&value).ok_or(RuleError::Origin(what))?;
                let is_known = facts.is_creator(&value.text);
                if let (ValueOrigin::Outside(label), false) = (origin, is_known) {
                    let detail =
                        format!("The {what} {} is from a '{label}' text.", quoted(&value.text));
                    return Ok(Some(RuleFinding::Ask(detail)));
                }
            }
            Ok(None)
        },
    },
    Rule {
        id: RuleId::new("authority.trusted_recipient"),
        code: ReasonCode::UntrustedValue,
        sentence: "Money goes to those whom the creator has named; for others it is asked.",
        lifted_by: LiftedBy::Creator,
        check: |intent, facts| {
            let Intent::Transfer { to, .. } = intent else { return Ok(None) };
            let mut known = facts.is_creator(to);
            for value in target_values(intent) {
                known |= facts.origins.of(&value) == Some(ValueOrigin::Creator);
            }
            let detail = || format!("No word of the creator names {}.", quoted(to));
            Ok((!known).then(|| RuleFinding::Ask(detail())))
        },
    },
    Rule {
        id: RuleId::new("transfer.user_confirm"),
        code: ReasonCode::ConfirmationRequired,
        sentence: "A transfer for which the creator has not asked needs the creator's approval.",
        lifted_by: LiftedBy::Creator,
        check: |intent, facts| {
            let needs = needs_of(intent, facts);
            let asks = facts.input <= Label::Tool && !facts.creator_waits && !facts.gives_alone;
            let outcome = if asks { needs.when_answering(facts.input) } else { ALONE };
            Ok(to_finding(outcome, || "No message of the creator's is open.".to_owned()))
        },
    },
    Rule {
        id: RuleId::new("authority.purpose_confirm"),
        code: ReasonCode::ConfirmationRequired,
        sentence: "Where the creator wants it, a change of purpose needs the creator's approval.",
        lifted_by: LiftedBy::Creator,
        check: |intent, facts| {
            let changes = match intent {
                Intent::ChangeGenesis { .. } => true,
                Intent::ChangeSoul { section, .. } => {
                    SoulSection::by_name(section).is_none_or(SoulSection::is_purpose)
                }
                _ => false,
            };
            let outcome = if changes && facts.purpose_asks { ASKED } else { ALONE };
            Ok(to_finding(outcome, || "`soulConfig` says that it is asked.".to_owned()))
        },
    },
    Rule {
        id: RuleId::new("authority.creator_facts"),
        code: ReasonCode::CreatorOnly,
        sentence: "Facts of the category 'creator' are stored only when the creator is answered.",
        lifted_by: LiftedBy::Creator,
        check: |intent, facts| {
            let Intent::Remember { category, .. } = intent else { return Ok(None) };
            let wrong = category.trim().eq_ignore_ascii_case(CREATOR_CATEGORY)
                && facts.input != Label::Creator;
            deny_if(wrong, || format!("This turn answers text labelled '{}'.", facts.input))
        },
    },
];

fn to_finding(outcome: DecisionOutcome, detail: impl FnOnce() -> String) -> Option<RuleFinding> {
    match outcome {
        DecisionOutcome::Allow => None,
        DecisionOutcome::Ask => Some(RuleFinding::Ask(detail())),
        DecisionOutcome::Deny => Some(RuleFinding::Deny(detail())),
    }
}

#[cfg(test)]
mod tests;
