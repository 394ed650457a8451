//! Pure: rules for sizes, spans and names that are invalid for every caller.
//!
//! Invalid values are refused, never corrected: a clamped number would be a different call than
//! the one in the model's history.

use automaton_core::intent::Intent;
use automaton_core::message::MESSAGE_BYTES_MAX;
use automaton_core::time::Span;

use super::{LiftedBy, Rule, RuleFinding, deny_if, quoted};
use crate::decision::{ReasonCode, RuleId};

/// The longest command, in bytes. Longer scripts belong into a file.
const COMMAND_BYTES_MAX: usize = 64 * 1024;
/// The longest time limit of a command, in milliseconds.
const TIMEOUT_MS_MAX: i64 = 600_000;
/// The largest file written in one call, in bytes.
const FILE_BYTES_MAX: u64 = 1_000_000;
/// The longest category of a fact, in bytes.
const CATEGORY_BYTES_MAX: usize = 64;
/// The longest key of a fact, in bytes.
const KEY_BYTES_MAX: usize = 512;
/// The longest value of a fact, in bytes.
const FACT_BYTES_MAX: u64 = 8_000;
/// The longest plea, in bytes.
const PLEA_BYTES_MAX: u64 = 2_000;
/// The shortest sleep. The next turn comes anyway.
const SLEEP_MIN: Span = Span::from_secs(1);
/// The longest sleep: a week, so that no mistake stops the automaton for good.
const SLEEP_MAX: Span = Span::from_secs(7 * 24 * 3600);

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: RuleId::new("validation.command"),
        code: ReasonCode::ValidationFailed,
        sentence: "A command is text of at most 65536 bytes without NUL.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Intent::Exec { command, .. } = intent else { return Ok(None) };
            let empty = command.trim().is_empty();
            let wrong = empty || command.len() > COMMAND_BYTES_MAX || command.contains('\0');
            deny_if(wrong, || match empty {
                true => "This one is empty.".to_owned(),
                false => format!("This one has {} bytes, or a NUL among them.", command.len()),
            })
        },
    },
    Rule {
        id: RuleId::new("validation.timeout"),
        code: ReasonCode::ValidationFailed,
        sentence: "A command may take 1 to 600000 milliseconds, or goes on by itself (0).",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Intent::Exec { timeout_ms, .. } = intent else { return Ok(None) };
            deny_if(!(0..=TIMEOUT_MS_MAX).contains(timeout_ms), || {
                format!("This one asks for {timeout_ms}.")
            })
        },
    },
    Rule {
        id: RuleId::new("validation.file_size"),
        code: ReasonCode::ValidationFailed,
        sentence: "A file is written with at most 1000000 bytes at once.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Intent::WritePath { bytes, .. } = intent else { return Ok(None) };
            deny_if(*bytes > FILE_BYTES_MAX, || format!("This one has {bytes}."))
        },
    },
    Rule {
        id: RuleId::new("validation.message_size"),
        code: ReasonCode::ValidationFailed,
        sentence: "A message has 1 to 64000 bytes.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Intent::Message { bytes, .. } = intent else { return Ok(None) };
            let fits = usize::try_from(*bytes).is_ok_and(|n| (1..=MESSAGE_BYTES_MAX).contains(&n));
            deny_if(!fits, || format!("This one has {bytes}."))
        },
    },
    Rule {
        id: RuleId::new("validation.plea_size"),
        code: ReasonCode::ValidationFailed,
        sentence: "A plea has 1 to 2000 bytes.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Intent::Plead { bytes } = intent else { return Ok(None) };
            deny_if(!(1..=PLEA_BYTES_MAX).contains(bytes), || format!("This one has {bytes}."))
        },
    },
    Rule {
        id: RuleId::new("validation.recipient"),
        code: ReasonCode::UnknownRecipient,
        sentence: "Messages reach the creator only: `creator`, or the creator's address.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, facts| {
            let Intent::Message { recipient, .. } = intent else { return Ok(None) };
            deny_if(!facts.is_creator(recipient), || {
                format!("There is no way to {}.", quoted(recipient))
            })
        },
    },
    Rule {
        id: RuleId::new("validation.fact"),
        code: ReasonCode::ValidationFailed,
        sentence: "A fact has a category, a key on one line and a value of at most 8000 bytes.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Intent::Remember { category, key, bytes } = intent else { return Ok(None) };
            Ok(fact_fault(category, key, *bytes).map(RuleFinding::Deny))
        },
    },
    Rule {
        id: RuleId::new("validation.sleep"),
        code: ReasonCode::ValidationFailed,
        sentence: "A sleep takes 1 second to 7 days (604800 seconds).",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Intent::Sleep { span } = intent else { return Ok(None) };
            let span = span.span();
            let fits = (SLEEP_MIN.as_millis()..=SLEEP_MAX.as_millis()).contains(&span.as_millis());
            deny_if(!fits, || format!("This one would take {span}."))
        },
    },
];

/// Returns the defect of a fact, if it has one.
fn fact_fault(category: &str, key: &str, bytes: u64) -> Option<String> {
    let is_name = |text: &str, bytes_max: usize| {
        !text.trim().is_empty() && text.len() <= bytes_max && !text.contains(char::is_control)
    };
    if !is_name(category, CATEGORY_BYTES_MAX) {
        return Some(format!("The category {} is not one.", quoted(category)));
    }
    if !is_name(key, KEY_BYTES_MAX) {
        return Some(format!("The key {} is not one.", quoted(key)));
    }
    let fits = (1..=FACT_BYTES_MAX).contains(&bytes);
    (!fits).then(|| format!("The value has {bytes} bytes."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{answering, objections};
    use automaton_core::trust::Label;

    fn check(intent: &Intent, expected: &[&str]) {
        assert_eq!(objections(intent, &answering(Label::Creator)), expected, "{intent:?}");
    }

    #[test]
    fn commands_and_their_time() {
        let exec =
            |command: &str, timeout_ms| Intent::Exec { command: command.to_owned(), timeout_ms };
        check(&exec("ls", 1), &[]);
        check(&exec("ls", 600_000), &[]);
        check(&exec("server", 0), &[]);
        for timeout_ms in [-5, 600_001, i64::MAX, i64::MIN] {
            check(&exec("ls", timeout_ms), &["validation.timeout"]);
        }
        check(&exec(&"x".repeat(65_536), 1), &[]);
        for command in ["", " \n", "a\0b", &"x".repeat(65_537)] {
            check(&exec(command, 1), &["validation.command"]);
        }
    }

    #[test]
    fn files_and_messages() {
        let write = |bytes| Intent::WritePath { path: "a".to_owned(), bytes };
        check(&write(0), &[]);
        check(&write(1_000_000), &[]);
        check(&write(1_000_001), &["validation.file_size"]);
        let message = |to: &str, bytes| Intent::Message { recipient: to.to_owned(), bytes };
        check(&message("creator", 1), &[]);
        check(&message("0x1111111111111111111111111111111111111111", 64_000), &[]);
        for bytes in [0, 64_001, u64::MAX] {
            check(&message("creator", bytes), &["validation.message_size"]);
        }
        for to in ["", "0x", "0x0000000000000000000000000000000000000000", "alice", "creator\n"] {
            check(&message(to, 1), &["validation.recipient"]);
        }
    }

    #[test]
    fn facts() {
        let fact = |category: &str, key: &str, bytes| Intent::Remember {
            category: category.to_owned(),
            key: key.to_owned(),
            bytes,
        };
        check(&fact("self", "name", 1), &[]);
        check(&fact("self", &"k".repeat(512), 8_000), &[]);
        let bad = [
            fact("", "name", 1),
            fact(&"c".repeat(65), "name", 1),
            fact("self", " ", 1),
            fact("self", "two\nlines", 1),
            fact("self", &"k".repeat(513), 1),
            fact("self", "name", 0),
            fact("self", "name", 8_001),
        ];
        for intent in bad {
            check(&intent, &["validation.fact"]);
        }
    }

    #[test]
    fn sleeps() {
        let sleep = |millis| Intent::Sleep { span: Span::from_millis(millis).into() };
        check(&sleep(1_000), &[]);
        check(&sleep(604_800_000), &[]);
        for millis in [0, -1, 999, 604_800_001, i64::MAX] {
            check(&sleep(millis), &["validation.sleep"]);
        }
    }
}
