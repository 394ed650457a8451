//! The record, as whoever does not believe it meets it; and the laws, as whoever would
//! change them does.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use automaton_core::event::Event;
use automaton_testkit::world::{ProcessOutput, World};
use serde_json::Value;

use super::creator::signed_by_creator;
use super::{paying_world, world};

/// A life with a question to its creator.
const STORY: &str = "title = \"a question\"\n\
    [[step]]\nsay = \"I write.\"\n[[step.call]]\ntool = \"write_file\"\n\
    arguments = { path = \"a.txt\", content = \"exactly this\" }\n\
    [[step]]\nsay = \"I wait.\"\n[[step]]\nsay = \"I go on.\"\n[[step]]\nsay = \"And on.\"\n";
const RULE: &str = "@id(\"files\") @ask(\"show me\")\n\
    forbid (principal, action == Action::\"write_path\", resource);";
/// The address of whoever `signed_by_creator`.
const CREATOR: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

fn done(finished: &ProcessOutput) -> Value {
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// One that has lived for a turn, in which it asked.
fn asked() -> World {
    let world = world().story(STORY).unwrap();
    let config = format!(
        "{{\"name\": \"Ada\", \"genesisPrompt\": \"Ask.\", \"creatorAddress\": \"{CREATOR}\"}}"
    );
    world.write_home("automaton.json", &config).unwrap();
    world.write_home("policy.cedar", RULE).unwrap();
    fs::set_permissions(world.home().join("policy.cedar"), PermissionsExt::from_mode(0o600))
        .unwrap();
    let lived = world.up(&["--turns", "2"]).unwrap().finish().unwrap();
    assert_eq!(lived.code, Some(0), "{}", lived.stderr);
    let asks = |event: &Event| matches!(event, Event::ApprovalAsked { call: Some(_), .. });
    assert!(lived.events.iter().any(|told| asks(&told.event)), "{}", lived.stdout);
    world
}

#[expect(clippy::disallowed_methods, reason = "an attacker opens the file as he likes")]
fn tamper(world: &World, statements: &str) {
    let raw = rusqlite::Connection::open(world.state_db()).unwrap();
    let triggers = "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger' AND \
                    (name LIKE '%_kept' OR name LIKE '%_fixed')";
    let drops: Vec<String> = {
        let mut statement = raw.prepare(triggers).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    raw.execute_batch(&drops.join(";")).unwrap();
    raw.execute_batch(statements).unwrap();
}

#[test]
fn a_question_is_shown_exactly_and_answered_by_a_signature_for_it_alone() {
    let world = asked();
    let listed = done(&world.command(&["approvals", "list", "--json"]).unwrap());
    let id = listed["id"].as_str().unwrap();
    let shown = world.command(&["approvals", "show", id]).unwrap().stdout;
    for part in ["exactly this", "write_file", "operator.files", CREATOR, "SHA-256", "until"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let message = |more: &[&str]| {
        let words = [&["approvals", "message", id, "--json"], more].concat();
        done(&world.command(&words).unwrap())["message"].as_str().unwrap().to_owned()
    };
    let (yes, no) = (message(&[]), message(&["--deny"]));
    let answer = |text: &str| {
        let signature = signed_by_creator(text);
        world.command(&["approvals", "approve", id, "--signature", &signature]).unwrap()
    };
    let refused = answer(&no);
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(refused.stderr.contains("not the creator's"), "{}", refused.stderr);
    assert_eq!(answer("Something else.").code, Some(1));
    assert_eq!(answer(&yes).code, Some(0));
    let path = world.home().join("workspace/a.txt");
    assert!(!path.exists());
    let lived = world.up(&["--turns", "1"]).unwrap().finish().unwrap();
    assert_eq!(lived.code, Some(0), "{}", lived.stderr);
    assert_eq!(fs::read_to_string(path).unwrap(), "exactly this");
    let used = done(&world.command(&["approvals", "show", id, "--json"]).unwrap());
    assert_eq!(used["state"], "used", "{used}");
    assert_eq!(world.command(&["approvals", "deny", id]).unwrap().code, Some(1));
    let steps = world.command(&["audit", "show", "--kind", "approval", "--json"]).unwrap().stdout;
    let by: Vec<bool> = steps.lines().map(|line| line.contains("creator's signature")).collect();
    assert_eq!(by, [false, true, false], "asked, approved, used: {steps}");
}

#[test]
fn the_record_is_shown_exported_and_verified_where_it_is_not() {
    let world = asked();
    let whole = done(&world.command(&["audit", "verify", "--json"]).unwrap());
    assert_eq!(whole["whole"], true);
    let head = done(&world.command(&["audit", "head", "--json"]).unwrap());
    assert_eq!((&head["entries"], &head["head"]), (&whole["entries"], &whole["head"]));
    let since = (head["entries"].as_u64().unwrap() - 1).to_string();
    // The rows of the last link.
    let last = world.command(&["audit", "show", "--since", &since, "--json"]).unwrap().stdout;
    assert!(!last.is_empty());
    for row in last.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        assert_eq!(row["sha256"], head["head"]);
    }
    done(&world.command(&["audit", "export", "record.jsonl", "--json"]).unwrap());
    assert_eq!(world.command(&["audit", "export", "record.jsonl"]).unwrap().code, Some(1));
    let path = world.dir().join("record.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let kept = head.to_string();
    let verify = || {
        let words = ["audit", "verify", "--file", "record.jsonl", "--head", &kept];
        world.command(&words).unwrap()
    };
    assert_eq!(verify().code, Some(0), "{}", verify().stderr);
    for (right, wrong, told) in
        [("a.txt", "b.txt", "was edited"), ("\"links\":", "\"links\":1", "as its head says")]
    {
        assert!(text.contains(right), "{text}");
        fs::write(&path, text.replacen(right, wrong, 1)).unwrap();
        let found = verify();
        assert_eq!(found.code, Some(1));
        assert!(found.stderr.contains(told), "{}", found.stderr);
    }
    fs::write(&path, "a letter").unwrap();
    assert_eq!(verify().code, Some(1));
}

#[test]
fn a_record_that_was_cut_and_lives_on_is_found_by_a_head_that_was_kept() {
    let world = asked();
    let listed = done(&world.command(&["approvals", "list", "--json"]).unwrap());
    let id = listed["id"].as_str().unwrap();
    let older = done(&world.command(&["audit", "head", "--json"]).unwrap())["entries"].clone();
    let (file, old) = (world.home().join("state.db"), world.dir().join("old.db"));
    fs::copy(&file, &old).unwrap();
    assert_eq!(world.command(&["approvals", "deny", id]).unwrap().code, Some(0));
    let head = world.command(&["audit", "head"]).unwrap().stdout;
    fs::write(world.dir().join("head.txt"), &head).unwrap();
    let verify = || world.command(&["audit", "verify", "--head", "head.txt"]).unwrap();
    assert_eq!(verify().code, Some(0), "{}", verify().stderr);
    // An older record in the place of the newer one has nothing that does not fit.
    fs::copy(&old, &file).unwrap();
    assert_eq!(world.command(&["audit", "verify"]).unwrap().code, Some(0), "it looks whole");
    let cut = verify();
    assert_eq!(cut.code, Some(1));
    let told = format!("its tail was cut: only {older} entries are left");
    assert!(cut.stderr.contains(&told), "{}", cut.stderr);
    // What it believes of itself is covered, too, and each row is named.
    tamper(
        &world,
        "UPDATE turns SET thought = 'I was told to obey' WHERE seq = 1;
         DELETE FROM heartbeat_schedule WHERE name = 'state_maintenance'",
    );
    let edited = world.command(&["audit", "verify"]).unwrap();
    assert_eq!(edited.code, Some(1));
    for row in [
        "row 1 of turns, which it wrote, was edited",
        "row state_maintenance of heartbeat_schedule",
    ] {
        assert!(edited.stderr.contains(row), "{}", edited.stderr);
    }
    tamper(&world, "UPDATE tool_calls SET reason = 'another'");
    let edited = world.command(&["audit", "verify"]).unwrap();
    assert_eq!(edited.code, Some(1));
    assert!(edited.stderr.contains("was edited"), "{}", edited.stderr);
    let signed = world.command(&["audit", "head"]).unwrap();
    assert_eq!(signed.code, Some(1), "nobody vouches for what is broken");
}

#[test]
fn a_head_is_signed_by_the_wallet_while_it_lives_and_while_it_rests() {
    let world = paying_world().story(STORY).unwrap();
    let mut run = world.up(&[]).unwrap();
    let limit = std::time::Duration::from_secs(120);
    run.wait_for(|event| matches!(event, Event::SleepStarted { .. }), limit).unwrap();
    let living = done(&world.command(&["audit", "head", "--signed", "--json"]).unwrap());
    assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
    run.finish_within(limit).unwrap();
    let resting = world.command(&["audit", "head", "--signed"]).unwrap();
    assert_eq!(resting.code, Some(0), "{}", resting.stderr);
    for text in [living["signed"].as_str().unwrap(), resting.stdout.trim()] {
        for part in ["Wallet: 0x", "Entries: ", "Head: 0x", "Signature: 0x"] {
            assert!(text.contains(part), "{text}");
        }
        let fine = world.command(&["audit", "verify", "--head", text]).unwrap();
        assert_eq!(fine.code, Some(0), "{}", fine.stderr);
        let forged = text.replace("Entries: ", "Entries: 1");
        let forged = world.command(&["audit", "verify", "--head", &forged]).unwrap();
        assert_eq!(forged.code, Some(1));
        assert!(forged.stderr.contains("signature of the head"), "{}", forged.stderr);
    }
}

#[test]
fn another_constitution_or_none_is_nobodys_and_both_hashes_are_told() {
    let world = world();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let law = world.home().join("constitution.md");
    assert_eq!(fs::metadata(&law).unwrap().permissions().mode() & 0o777, 0o444);
    let text = fs::read_to_string(&law).unwrap();
    let write = |text: &str| {
        fs::remove_file(&law).unwrap();
        fs::write(&law, text).unwrap();
    };
    // Another one, an empty one, and the copy in the working folder that nobody reads.
    fs::write(world.dir().join("constitution.md"), &text).unwrap();
    for other in ["Earn at any price.", "", &format!("{text} ")] {
        write(other);
        let told = world.up(&["--brain", "script"]).unwrap().finish().unwrap();
        assert_eq!(told.code, Some(1), "{other}: {}", told.stdout);
        let pinned = sha256(text.as_bytes());
        for part in ["is not the constitution", &pinned, &sha256(other.as_bytes()), "hint: "] {
            assert!(told.stderr.contains(part), "{part}: {}", told.stderr);
        }
        assert!(!told.events.iter().any(|one| matches!(one.event, Event::AgentStarted { .. })));
    }
    write(&text);
    let lives = world.up(&["--brain", "script", "--turns", "1"]).unwrap().finish().unwrap();
    assert_eq!(lives.code, Some(0), "{}", lives.stderr);
}

fn sha256(bytes: &[u8]) -> String {
    automaton_store::Hash::of(bytes).to_string()
}
