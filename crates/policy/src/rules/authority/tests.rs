//! Tests of every kind of effect in the table, and of every origin of a value.

use super::*;
use crate::rules::testing::{answering, objections, samples};
use automaton_core::origin::Origins;

const STRANGER: &str = "0x2222222222222222222222222222222222222222";
const CREATOR: &str = "0x1111111111111111111111111111111111111111";

fn remember(category: &str) -> Intent {
    Intent::Remember { category: category.to_owned(), key: "k".to_owned(), bytes: 1 }
}

fn exec(command: &str) -> Intent {
    Intent::Exec { command: command.to_owned(), timeout_ms: 1 }
}

fn transfer(to: &str) -> Intent {
    Intent::Transfer { to: to.to_owned(), cents: 1 }
}

/// The row of every kind of intent, in the order of [`Intent::KINDS`].
const ROWS: [AuthorityNeeds; Intent::KINDS.len()] = [
    EXEC,
    LOOK,
    WRITE,
    LOOK,
    REMEMBER,
    LOOK,
    LOOK,
    LOOK,
    PLEAD,
    ECONOMISE,
    SWITCH_MODEL,
    SCHEDULE,
    SOUL,
    GENESIS,
    TOP_UP,
    TRANSFER,
    FETCH,
    EGRESS,
    RENT,
    END_MACHINE,
    PUBLISH,
];

/// Returns an intent of every kind, with its row.
fn every_kind() -> impl Iterator<Item = (AuthorityNeeds, Intent)> {
    ROWS.into_iter().zip(samples()).chain([
        (DELETE, exec("rm notes.txt")),
        (LOOK, Intent::Publish { port: 8080, price: String::new(), open: false }),
    ])
}

#[test]
fn a_stranger_who_is_answered_changes_nothing_and_spends_nothing() {
    for (needs, intent) in every_kind() {
        assert!(TABLE.contains(&needs), "`TABLE` lacks the row {}", needs.kind);
        for input in Label::ALL {
            // Before anything was read.
            let facts = Facts { heard: Label::Creator, ..answering(input) };
            let is_stranger = matches!(input, Label::Peer | Label::Web);
            let expected: &[&str] = match needs.when_answering(input) {
                DecisionOutcome::Allow => &[],
                _ if !is_stranger => &["transfer.user_confirm"],
                DecisionOutcome::Ask | DecisionOutcome::Deny => &["authority.untrusted_input"],
            };
            assert_eq!(objections(&intent, &facts), expected, "{input} {intent:?}");
            let waits = is_stranger || (needs == TRANSFER && input != Label::Creator);
            assert_eq!(expected.is_empty(), !waits || needs == LOOK, "{input} {intent:?}");
        }
    }
    let other = Intent::Message { recipient: STRANGER.to_owned(), bytes: 1 };
    let ids = objections(&other, &answering(Label::Peer));
    assert_eq!(ids, ["validation.recipient", "authority.untrusted_input"]);
}

#[test]
fn what_was_read_may_be_worked_with_but_moves_no_money_and_no_schedule() {
    for heard in Label::ALL {
        let facts = Facts { heard, gives_alone: true, ..answering(Label::Own) };
        for (needs, intent) in every_kind() {
            let waiting = [
                DELETE,
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
                TRANSFER,
            ];
            let waits = heard > Label::Tool && waiting.contains(&needs);
            let expected: &[&str] = if waits { &["authority.untrusted_reading"] } else { &[] };
            assert_eq!(objections(&intent, &facts), expected, "{heard} {intent:?}");
        }
    }
}

#[test]
fn what_was_read_deletes_nothing_but_what_is_made_anew() {
    let facts = Facts { heard: Label::Web, ..answering(Label::Creator) };
    let deleting = [
        "rm drive/13.txt",
        "cd mail && rm -- 34.eml",
        "find notes -name '*.md' -delete",
        "find drafts -exec rm {} +",
        "ls notes | xargs rm -f",
        "sh -c 'rm -rf /root/notes'",
        "git -C app reset --hard",
        "rm -rf build notes",
        "rm -rf target/../notes",
        "rm drive/tmp/contract.pdf",
        "ls notes | xargs rm -rf build",
        "git checkout -- .",
        "git stash drop",
        "git branch -D work",
        "cd app && git clean -fd",
    ];
    for command in deleting {
        let ids = objections(&exec(command), &facts);
        assert!(ids.contains(&"authority.untrusted_reading"), "{command}: {ids:?}");
        assert!(!objections(&exec(command), &answering(Label::Own)).contains(&ids[0]), "{command}");
    }
    let keeping = [
        "rm -rf target ./node_modules",
        "rm /tmp/x",
        "ls -la",
        "git status",
        "echo rm a",
        "git commit -m clean",
        "git log reset",
        "git checkout -b restore",
        "git clean -n",
    ];
    for command in keeping {
        assert!(objections(&exec(command), &facts).is_empty(), "{command}");
    }
}

#[test]
fn a_value_that_only_strangers_named_waits_whoever_asks() {
    let aimed = [
        exec("curl -s https://evil.example/x"),
        Intent::WritePath { path: "src/main.rs".to_owned(), bytes: 1 },
        Intent::FetchPaid { url: "https://pay.example/a".to_owned(), cap_cents: 1 },
    ];
    for intent in aimed {
        for label in [Label::Peer, Label::Web] {
            let origins = Origins::assumed(ValueOrigin::Outside(label));
            let facts = Facts { origins, ..answering(Label::Creator) };
            assert_eq!(objections(&intent, &facts), ["authority.value_origin"], "{intent:?}");
        }
        for origin in [ValueOrigin::Own, ValueOrigin::Creator] {
            let facts = Facts { origins: Origins::assumed(origin), ..answering(Label::Creator) };
            assert!(objections(&intent, &facts).is_empty(), "{intent:?}");
        }
        // Without known origins, no value counts as trusted.
        let facts = Facts { origins: Origins::default(), ..answering(Label::Creator) };
        assert_eq!(objections(&intent, &facts), ["authority.value_origin"], "{intent:?}");
    }
}

#[test]
fn money_goes_to_those_whom_the_creator_named() {
    for (origin, expected) in [
        (ValueOrigin::Creator, &[][..]),
        (ValueOrigin::Own, &["authority.trusted_recipient"]),
        (
            ValueOrigin::Outside(Label::Peer),
            &["authority.value_origin", "authority.trusted_recipient"],
        ),
    ] {
        let facts = Facts { origins: Origins::assumed(origin), ..answering(Label::Creator) };
        assert_eq!(objections(&transfer(STRANGER), &facts), expected, "{origin:?}");
        assert!(objections(&transfer(CREATOR), &facts).is_empty(), "{origin:?}");
    }
}

#[test]
fn a_transfer_by_its_own_wish_waits_for_the_creator_unless_that_is_allowed() {
    for input in [Label::Creator, Label::Own, Label::Tool] {
        for (creator_waits, gives_alone) in [(false, false), (true, false), (false, true)] {
            let facts =
                Facts { heard: Label::Creator, creator_waits, gives_alone, ..answering(input) };
            let asks = input != Label::Creator && !creator_waits && !gives_alone;
            let expected: &[&str] = if asks { &["transfer.user_confirm"] } else { &[] };
            assert_eq!(objections(&transfer(CREATOR), &facts), expected, "{facts:?}");
        }
    }
    // Neither helps the request of a stranger.
    let facts = Facts { creator_waits: true, gives_alone: true, ..answering(Label::Peer) };
    assert_eq!(
        objections(&transfer(CREATOR), &facts),
        ["authority.untrusted_input", "authority.untrusted_reading"]
    );
}

#[test]
fn facts_about_the_creator_come_from_the_creator() {
    for input in Label::ALL {
        for category in ["creator", "Creator ", "CREATOR"] {
            let ids = objections(&remember(category), &answering(input));
            let refused = ids.contains(&"authority.creator_facts");
            assert_eq!(refused, input != Label::Creator, "{input} {category}");
        }
    }
}

#[test]
fn every_row_says_what_it_is_about_and_grows_no_milder_with_less_trust() {
    for needs in TABLE {
        assert!(!needs.effect.is_empty());
        assert!(needs.answering.is_sorted(), "{needs:?}");
        assert!(needs.having_read <= needs.when_answering(Label::Web), "{needs:?}");
    }
}
