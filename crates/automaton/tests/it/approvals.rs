//! What the creator approves: done once and exactly so, whatever was read before, by each
//! family of tools that asks.

use std::collections::BTreeMap;
use std::time::Duration;

use automaton_core::event::{Event, StampedEvent};
use automaton_core::record::CallStatus;
use automaton_testkit::world::{ProcessRun, World};
use serde_json::Value;

use super::world;

/// Long enough for a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A rule of the operator's that asks about an effect of each family.
const RULE: &str = "@id(\"all\") @ask(\"show me first\")\nforbid (principal, action in \
    [Action::\"write_path\", Action::\"remember\", Action::\"schedule\"], resource);\n";

/// The tools with their arguments: of the workspace, the memory and the schedule. The fact is of a
/// category that only a turn stores that answers the creator.
const CALLS: [(&str, &str); 3] = [
    ("write_file", r#"path = "a.txt", content = "exactly this""#),
    ("remember_fact", r#"category = "creator", key = "coffee", value = "Black.""#),
    (
        "modify_heartbeat",
        r#"name = "look", task = "health_check", schedule = "0 3 * * *", action = "add""#,
    ),
];

/// A story in which a command is run, and then all of these calls are made at once.
fn story() -> String {
    let calls: String = CALLS
        .iter()
        .map(|(tool, arguments)| {
            format!("[[step.call]]\ntool = \"{tool}\"\narguments = {{ {arguments} }}\n")
        })
        .collect();
    let rest: String = (1..20).map(|day| format!("[[step]]\nsay = \"Day {day}.\"\n")).collect();
    format!(
        "title = \"approvals\"\n[[step]]\nsay = \"I am born.\"\n\
         [[step]]\nexpect.news = \"Count\"\nsay = \"I count.\"\n[[step.call]]\ntool = \"exec\"\n\
         arguments = {{ command = \"echo 42\" }}\n[[step]]\nsay = \"It is 42.\"\n\
         [[step]]\nexpect.news = \"Do all\"\nsay = \"I do.\"\n{calls}[[step]]\nsay = \"I asked.\"\n{rest}"
    )
}

fn lines(world: &World, arguments: &[&str]) -> Vec<Value> {
    let done = world.command(arguments).unwrap();
    assert_eq!(done.code, Some(0), "{arguments:?}: {}", done.stderr);
    done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How often each of the tools did what it should.
fn made(run: &ProcessRun) -> BTreeMap<String, usize> {
    let mut made = BTreeMap::new();
    for StampedEvent { event, .. } in run.events() {
        if let Event::CallFinished { tool, status: CallStatus::Done, .. } = event
            && CALLS.iter().any(|(name, _)| *name == tool)
        {
            *made.entry(tool).or_default() += 1;
        }
    }
    made
}

#[test]
fn each_family_of_tools_does_what_was_approved_once_though_a_tool_was_read() {
    let world = world().story(&story()).unwrap();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    world.write_home("policy.cedar", RULE).unwrap();
    let mut run = world.up(&[]).unwrap();
    let asleep = |event: &Event| matches!(event, Event::SleepStarted { .. });
    run.wait_for(asleep, LIMIT).unwrap();
    for text in ["Count, please.", "Do all of it."] {
        lines(&world, &["send", text, "--json"]);
        run.wait_for(asleep, LIMIT).unwrap();
    }
    assert!(made(&run).is_empty(), "nothing without a word");
    let waiting = lines(&world, &["approvals", "list", "--json"]);
    assert_eq!(waiting.len(), CALLS.len(), "{waiting:?}");
    let told: Vec<String> = run
        .events()
        .into_iter()
        .filter_map(|stamped| match stamped.event {
            Event::ApprovalAsked { approval, call: Some(_), .. } => Some(approval.to_string()),
            _ => None,
        })
        .collect();
    let mut ids: Vec<String> =
        waiting.iter().map(|asked| asked["id"].as_str().unwrap().to_owned()).collect();
    ids.reverse();
    assert_eq!(told, ids, "each question is told with the id that answers it");
    for id in &ids {
        lines(&world, &["approvals", "approve", id, "--json"]);
    }
    for _ in &ids {
        let done = |event: &Event| match event {
            Event::CallFinished { tool, status: CallStatus::Done, .. } => {
                CALLS.iter().any(|(name, _)| name == tool)
            }
            _ => false,
        };
        run.wait_for(done, LIMIT).unwrap_or_else(|error| panic!("{error}: {:?}", made(&run)));
    }
    run.wait_for(asleep, LIMIT).unwrap();
    let all = lines(&world, &["approvals", "list", "--all", "--json"]);
    assert!(all.iter().all(|asked| asked["state"] == "used"), "{all:?}");
    let path = world.home().join("workspace/a.txt");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "exactly this");
    // The same yes again, and another message, make none of them again.
    for id in &ids {
        lines(&world, &["approvals", "approve", id, "--json"]);
        assert_eq!(world.command(&["approvals", "deny", id]).unwrap().code, Some(1));
    }
    lines(&world, &["send", "Is there anything else?", "--json"]);
    run.wait_for(asleep, LIMIT).unwrap();
    let once: BTreeMap<String, usize> =
        CALLS.iter().map(|(tool, _)| ((*tool).to_owned(), 1)).collect();
    assert_eq!(made(&run), once);
}
