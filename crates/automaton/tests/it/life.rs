//! A life with a scripted model, from outside.

use std::fs;
use std::time::Duration;

use automaton_core::event::{Event, StampedEvent};
use automaton_core::record::StopReason;
use automaton_testkit::world::World;
use serde_json::Value;

use super::brains::{Mood, Server};
use super::ports::ReservedPort;
use super::world;

/// Long enough for a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);

fn json(world: &World, arguments: &[&str]) -> Value {
    let finished = world.command(arguments).unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

fn automaton(events: &[StampedEvent]) -> String {
    let started = events.iter().find_map(|stamped| match &stamped.event {
        Event::AgentStarted { automaton, .. } => Some(automaton.to_string()),
        _ => None,
    });
    started.unwrap()
}

fn committed(events: &[StampedEvent]) -> usize {
    events.iter().filter(|stamped| matches!(stamped.event, Event::TurnCommitted { .. })).count()
}

#[test]
fn one_turn_and_nothing_but_events_on_stdout() {
    let world = world();
    let finished = world.up(&["--brain", "script", "--turns", "1"]).unwrap().finish().unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(committed(&finished.events), 1);
    assert_eq!(finished.events.len(), finished.stdout.lines().count());
    assert!(matches!(finished.events.last().unwrap().event, Event::AgentStopped { .. }));
}

#[test]
fn the_whole_story_is_told_and_the_record_holds_it() {
    let world = world();
    let run = world.up(&["--brain", "script", "--name", "Ada"]).unwrap();
    let finished = run.finish().unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    let events = &finished.events;
    let met = events.iter().filter(|s| matches!(s.event, Event::StoryMet { .. })).count();
    assert_eq!(met, 9);
    let told = |s: &StampedEvent| matches!(s.event, Event::StoryEnded { unmet: None });
    assert_eq!(events.iter().filter(|stamped| told(stamped)).count(), 1);
    let woken = events.iter().any(|stamped| match &stamped.event {
        Event::SleepEnded { planned_ms, actual_ms } => {
            planned_ms.is_none_or(|planned| planned > *actual_ms)
        }
        _ => false,
    });
    assert!(woken, "its creator's message ends the sleep");

    let schedule = world.command(&["heartbeat", "--json"]).unwrap();
    let rows = schedule.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ping = rows.into_iter().find(|row| row["task"]["name"] == "heartbeat_ping").unwrap();
    assert_eq!((&ping["runs"], &ping["last_result"]), (&1.into(), &"success".into()), "{ping}");
    let ran = json(&world, &["heartbeat", "heartbeat_ping", "--json"]);
    assert_eq!(ran["result"], "success", "{ran}");

    let status = json(&world, &["status", "--json"]);
    assert_eq!(status["name"], "Ada");
    assert_eq!(status["state"], "sleeping");
    assert_eq!(status["running"], Value::Null);
    assert_eq!(status["inbox"]["processed"], 1);
    assert_eq!(status["record"]["chain_whole"], true);
    assert_eq!(status["turns"], committed(events));
    let turn = json(&world, &["turn", "2", "--json"]);
    assert_eq!(turn["turn"]["calls"][0]["tool"], "exec");
    assert_eq!(turn["decisions"][0]["outcome"], "allow");
    assert_eq!(turn["efforts"][0]["intents"][0]["kind"], "exec");
    for id in [&turn["decisions"][0]["id"], &turn["decisions"][0]["call"]] {
        let told = json(&world, &["policy", "explain", id.as_str().unwrap(), "--json"]);
        assert_eq!(told["decision"], turn["decisions"][0]);
        assert_eq!(told["rules"], serde_json::json!([]));
    }
    assert_eq!(turn["woke"][0]["source"], "birth");
    let layers = turn["prompt"]["layers"].as_array().unwrap();
    assert_eq!((layers.len(), &layers[2]["name"]), (14, &"constitution".into()));
    assert!(layers.iter().all(|layer| layer["text"].is_null()), "{turn}");
    let last = json(&world, &["turn", "last", "--prompt", "--json"]);
    assert_eq!(last["turn"]["seq"], committed(events));
    assert!(last["prompt"]["layers"][2]["text"].as_str().unwrap().contains("harm"), "{last}");
    let shown = world.command(&["turn", "2", "--prompt"]).unwrap().stdout;
    for part in ["Woken at", "constitution", "=== history", "It called exec: done", "Intent 0"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let lines = world.command(&["turns", "--json"]).unwrap().stdout.lines().count();
    assert_eq!(lines, committed(events));
    let logged = world.command(&["logs", "-n", "1000", "--json"]).unwrap();
    let passing = |event: &Event| {
        matches!(event, Event::ThoughtDelta { .. } | Event::InferenceStarted { .. })
    };
    let spoken = |s: &&StampedEvent| !passing(&s.event);
    assert_eq!(logged.events, events.iter().filter(spoken).cloned().collect::<Vec<_>>());
    let log = world.command(&["logs"]).unwrap().stdout;
    assert!(log.contains("The story is complete"), "{log}");
}

#[test]
fn a_second_start_goes_on_with_the_same_automaton() {
    let world = world();
    let once = |arguments: &[&str]| world.up(arguments).unwrap().finish().unwrap();
    let first = once(&["--brain", "script", "--turns", "2"]);
    let story = "title = \"more\"\n[[step]]\nsay = \"I am still here.\"\n";
    fs::write(world.dir().join("more.toml"), story).unwrap();
    let second = once(&["--brain", "script:more.toml"]);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    assert_eq!(automaton(&first.events), automaton(&second.events));
    assert_eq!(json(&world, &["status", "--json"])["turns"], 3);
    let other = once(&["--brain", "script", "--name", "Somebody else"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("--name contradicts the automaton that lives here: 'Automaton'"));
}

#[test]
fn turns_count_over_wakes_and_sleep_is_cut_short() {
    let step = |n: u8| {
        format!(
            "[[step]]\nsay = \"Rest {n}.\"\n[[step.call]]\ntool = \"sleep\"\n\
             arguments = {{ duration_seconds = 600, reason = \"rest {n}\" }}\n"
        )
    };
    let story = format!("title = \"rests\"\n{}{}{}", step(1), step(2), step(3));
    let world = world().story(&story).unwrap();
    let run = world.up(&["--turns", "3", "--ask", "Rest thrice"]).unwrap();
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    assert_eq!(committed(&finished.events), 3);
    let asked = finished.events.iter().filter(|stamped| match &stamped.event {
        Event::MessageReceived { body, .. } => body.text == "Rest thrice",
        _ => false,
    });
    assert_eq!(asked.count(), 1);
    for stamped in &finished.events {
        if let Event::SleepEnded { planned_ms, actual_ms } = stamped.event {
            assert!(planned_ms > Some(500_000) && actual_ms < 5_000, "{planned_ms:?} {actual_ms}");
        }
    }
}

#[test]
fn a_scratch_home_is_thrown_away_at_the_end_and_on_a_signal() {
    let world = world();
    let homes = || {
        let entries = fs::read_dir(world.dir()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("automaton-")).count()
    };
    let finished = world.up(&["--brain", "script", "--scratch"]).unwrap().finish().unwrap();
    assert_eq!((finished.code, homes()), (Some(0), 0), "{}", finished.stderr);
    let story = "title = \"long\"\n[[step]]\nsay = \"x\"\n[[step]]\ncreator = \"never\"\nafter = \"asleep\"\n\
                 [[step]]\nsay = \"y\"\nexpect.news = \"never\"\n[[step.call]]\ntool = \"exec\"\n\
                 arguments = { command = \"sleep 100\", timeout = 100000 }\n[[step]]\nsay = \"z\"\n";
    fs::write(world.dir().join("long.toml"), story).unwrap();
    let mut run = world.up(&["--brain", "script:long.toml", "--scratch"]).unwrap();
    run.wait_for(|event| matches!(event, Event::CallStarted { .. }), LIMIT).unwrap();
    assert_eq!(homes(), 1);
    run.signal("TERM").unwrap();
    let finished = run.finish_within(Duration::from_secs(20)).unwrap();
    assert_eq!((finished.code, homes()), (Some(0), 0), "{}", finished.stderr);
}

#[test]
fn a_running_automaton_is_spoken_to_and_stopped_even_without_its_model() {
    let server = Server::start(Mood::Refuses(500, "the model is not loaded"));
    let world = world().brain(&server.url).arg("--brain-model").arg("gpt-5.2");
    let mut run = world.up(&[]).unwrap();
    run.wait_for(|event| matches!(event, Event::TurnFailed { .. }), LIMIT).unwrap();
    let live = json(&world, &["status", "--json"]);
    assert_eq!(live["running"]["model"], "gpt-5.2");
    assert_eq!(live["limits"], live["running"]["enforcement"]);
    assert!(live["running"]["tools"].as_u64() > Some(10), "{live}");
    let sent = json(&world, &["send", "hello", "--json"]);
    let received = |event: &Event| match event {
        Event::MessageReceived { message, .. } => sent["message"] == message.to_string(),
        _ => false,
    };
    run.wait_for(received, LIMIT).unwrap();
    assert_eq!(world.command(&["wake", "look around"]).unwrap().code, Some(0));
    assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
    assert_eq!(run.finish().unwrap().code, Some(0));
    let stop = world.command(&["stop"]).unwrap();
    assert_eq!(stop.code, Some(1));
    assert!(stop.stderr.contains("the automaton does not run"), "{}", stop.stderr);
    assert_eq!(json(&world, &["status", "--json"])["inbox"]["received"], 1);
}

#[test]
fn an_automaton_that_has_lived_waits_for_a_model_server_that_is_away() {
    let server = Server::start(Mood::Answers);
    let lived = world().brain(&server.url).arg("--brain-model").arg("gpt-5.2");
    let first = lived.up(&["--turns", "1"]).unwrap().finish().unwrap();
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let text = fs::read_to_string(lived.home().join("automaton.json")).unwrap();
    assert!(text.contains(&server.url), "{text}");
    let port = ReservedPort::new();
    let url = format!("http://{}/v1", port.address());
    let text = text.replace(&server.url, &url);
    let unreachable = format!("no model server can be reached at {url}");

    // One that has not lived yet is refused: nothing is lost by trying again.
    let new = world();
    new.write_home("automaton.json", &text).unwrap();
    let refused = new.command(&["run", "--direct"]).unwrap();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("error: {unreachable}")), "{}", refused.stderr);

    // One that has lived starts, says it, and answers when the server is there.
    lived.write_home("automaton.json", &text).unwrap();
    assert_eq!(lived.command(&["wake", "look"]).unwrap().code, Some(0));
    let mut run = lived.start(&["run", "--direct", "--json"]).unwrap();
    run.wait_for(|event| matches!(event, Event::TurnFailed { .. }), LIMIT).unwrap();
    let back = Server::listen(port.listen(), Mood::Answers);
    assert_eq!(back.url, url);
    run.wait_for(|event| matches!(event, Event::TurnCommitted { .. }), LIMIT).unwrap();
    assert_eq!(lived.command(&["stop"]).unwrap().code, Some(0));
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let warning = format!("warning: the model was not asked: {unreachable}");
    assert!(finished.stderr.contains(&warning), "{}", finished.stderr);
}

#[test]
fn what_is_sent_while_nobody_runs_is_answered_at_the_next_start() {
    let world = world();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let sent = json(&world, &["send", "Are you there?", "--json"]);
    assert_eq!(world.command(&["wake", "now"]).unwrap().code, Some(0));
    let waiting = json(&world, &["status", "--json"]);
    assert_eq!(waiting["inbox"]["received"], 1);
    let story = "title = \"answer\"\n[[step]]\nexpect.news = \"Are you there?\"\nsay = \"I am.\"\n";
    fs::write(world.dir().join("answer.toml"), story).unwrap();
    let finished = world.up(&["--brain", "script:answer.toml"]).unwrap().finish().unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(sent["message"].is_string());
    assert_eq!(json(&world, &["status", "--json"])["inbox"]["processed"], 1);
}

#[test]
fn the_prompt_is_shown_without_a_model() {
    let world = world();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let failed = world.command(&["prompt"]).unwrap();
    assert!(
        failed.stderr.contains("the automaton has no model to think with"),
        "{}",
        failed.stderr
    );
    let config = r#"{"name": "Automaton", "genesisPrompt": "Be.", "conwayApiKey": "k"}"#;
    world.write_home("automaton.json", config).unwrap();
    let prompt = json(&world, &["prompt", "--json"]);
    let names: Vec<&str> =
        prompt["layers"].as_array().unwrap().iter().map(|l| l["name"].as_str().unwrap()).collect();
    let head = ["rules", "identity", "constitution", "operations", "tools", "soul", "genesis"];
    assert_eq!(&names[..7], head);
    assert!(world.command(&["prompt"]).unwrap().stdout.contains("Never harm"));
}

#[test]
fn a_wake_ends_with_its_reason() {
    let finished = world().up(&["--brain", "script"]).unwrap().finish().unwrap();
    let reasons: Vec<StopReason> = finished
        .events
        .iter()
        .filter_map(|stamped| match stamped.event {
            Event::WakeEnded { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [StopReason::Asked, StopReason::Said]);
}
