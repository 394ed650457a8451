//! What a model gets done: the bench, and a task of two hundred turns.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use automaton_core::event::Event;
use automaton_core::wire::chat::ChatRequest;
use automaton_lab::work::{SolverCall, SolverReply, WorkServer};
use automaton_testkit::world::{ProcessRun, World, WorldError};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{paying_world, told, world};

/// Turns of the long task, and how long it may take.
const TURNS: u64 = 200;
const LIMIT: Duration = Duration::from_secs(240);
/// How its brief begins.
const TASK: &str = "Work through two hundred steps";
/// What the model says when it has done all of it.
const DONE: &str = "All two hundred steps are done.";

/// A brief of this many characters, each of its lines different.
fn brief(chars: usize) -> String {
    let mut text = format!("{TASK}, and keep to all of these points:\n");
    for n in 1.. {
        text.push_str(&format!(
            "{n}. Point {} is as binding as “point {}”.\n",
            n * 7919,
            n * 104_729
        ));
        if text.chars().count() >= chars {
            break;
        }
    }
    text.chars().take(chars - 1).chain(['.']).collect()
}

/// What the server saw of the task.
#[derive(Debug, Default)]
struct Seen {
    /// Requests since the brief came.
    turns: u64,
    /// Those in which it did not stand as it was sent.
    without: Vec<u64>,
}

/// The answer to a request: another step of the task each time.
fn think(seen: &mut Seen, brief: &str, request: &ChatRequest) -> SolverReply {
    let shows = |words: &str| {
        let texts = request.messages.iter().filter_map(|message| message.content.as_deref());
        texts.into_iter().any(|text| text.contains(words))
    };
    let shown = shows(brief);
    let say = |text: &str| SolverReply { text: text.to_owned(), ..SolverReply::default() };
    if seen.turns == 0 && !shows(TASK) {
        return say("I wait for my task.");
    }
    if seen.turns > TURNS {
        return say("There is nothing to do.");
    }
    seen.turns += 1;
    if !shown {
        seen.without.push(seen.turns);
    }
    let (n, path) = (seen.turns, format!("step{}.txt", seen.turns / 3));
    let (tool, arguments) = match n % 3 {
        _ if n > TURNS => return say(DONE),
        0 => ("write_file", json!({ "path": path, "content": format!("step {n}\n").repeat(40) })),
        1 if n > 1 => ("read_file", json!({ "path": path })),
        _ => ("search_files", json!({ "pattern": format!("step {n}$") })),
    };
    SolverReply {
        calls: vec![SolverCall { tool: tool.to_owned(), arguments }],
        ..SolverReply::default()
    }
}

/// A server that speaks as the hosted ones do, for as long as the sender lives; where it is.
fn serve(seen: &Arc<Mutex<Seen>>, brief: &str) -> (String, oneshot::Sender<()>) {
    let (seen, brief) = (Arc::clone(seen), brief.to_owned());
    serve_by(move |request| think(&mut seen.lock().unwrap(), &brief, request))
}

/// The same, with whoever answers.
fn serve_by(
    solver: impl Fn(&ChatRequest) -> SolverReply + Send + Sync + 'static,
) -> (String, oneshot::Sender<()>) {
    let (stop, stopped) = oneshot::channel();
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = WorkServer::start("gpt-5.2", 400_000, Box::new(solver)).await.unwrap();
            tell.send(server.origin()).unwrap();
            // silent-ok: the test ended either way.
            drop(stopped.await);
        });
    });
    (told.recv().unwrap(), stop)
}

#[test]
fn two_hundred_turns_run_through_with_a_days_budget_and_the_brief_in_every_request() {
    let (brief, seen) = (brief(7_889), Arc::<Mutex<Seen>>::default());
    assert_eq!(brief.chars().count(), 7_889);
    let (url, _stop) = serve(&seen, &brief);
    let world = world();
    let config = json!({
        "name": "Ada", "genesisPrompt": "Do what your creator asks.",
        "brain": { "kind": "http", "url": url, "model": "gpt-5.2" },
        "treasuryPolicy": { "maxInferenceDailyCents": 2000 },
    });
    world.write_home("automaton.json", &config.to_string()).unwrap();
    let mut run = world.start(&["run", "--json", "--direct"]).unwrap();
    run.wait_for(|event| matches!(event, Event::BrainReady { .. }), LIMIT).unwrap();
    let sent = world.command(&["send", &brief]).unwrap();
    assert_eq!(sent.code, Some(0), "{}", told(&sent));
    // Whatever ends the wake before, by a limit or a rest, is what must not be.
    let ends = |event: &Event| match event {
        Event::TurnCommitted { thought, .. } => thought == DONE,
        Event::SleepStarted { planned_ms, .. } => planned_ms.is_some(),
        Event::WakeEnded { turns, .. } => *turns > 1,
        _ => false,
    };
    let last = run.wait_for(ends, LIMIT).unwrap();
    {
        let seen = seen.lock().unwrap();
        assert!(
            seen.without.is_empty(),
            "requests without the creator's words: {:?}; {last:?}",
            seen.without
        );
        assert_eq!(seen.turns, TURNS + 1, "it was stopped: {last:?}");
    }
    let workspace = world.home().join("workspace");
    let written = std::fs::read_dir(workspace).unwrap().filter_map(|file| {
        file.unwrap().file_name().into_string().ok().filter(|name| name.starts_with("step"))
    });
    assert_eq!(written.count() as u64, TURNS / 3);
}

fn bench(arguments: &[&str]) -> (Option<i32>, Vec<Value>, String) {
    let all = [&["bench", "work", "--json"], arguments].concat();
    let world = world();
    let finished = world.start(&all).unwrap().finish_within(LIMIT).unwrap();
    let lines = finished.stdout.lines().filter_map(|line| serde_json::from_str(line).ok());
    (finished.code, lines.collect(), told(&finished))
}

#[test]
fn tasks_are_done_from_what_the_request_shows_and_judged_by_what_is_there() {
    let tasks = ["brief-60", "ten-questions", "flood", "five", "recover"];
    let wanted = tasks.iter().flat_map(|task| ["--task", task]);
    let windows = ["--window", "32768", "--window", "400000", "--require"];
    let (code, rows, told) = bench(&wanted.chain(windows).collect::<Vec<_>>());
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(rows.len(), 2 * tasks.len(), "{told}");
    for row in rows {
        assert_eq!((row["solved"].as_bool(), row["missing"].as_str()), (Some(true), None), "{row}");
        assert!(
            row["turns"].as_u64() > Some(1) && row["prompt_tokens"].as_u64() > Some(1000),
            "{row}"
        );
    }
}

#[test]
fn a_new_automaton_solves_its_tasks_with_a_dear_model_too() {
    let tasks = ["brief-30k", "maze", "five"];
    let wanted = tasks.iter().flat_map(|task| ["--task", task]);
    let wanted: Vec<&str> = wanted.chain(["--window", "32768", "--defaults"]).collect();
    let cost = |row: &Value| row["cost"].as_i64().unwrap();
    let (_, usual, told) = bench(&wanted);
    let (_, dear, _) = bench(&[&wanted[..], &["--model", "gpt-5.5"]].concat());
    assert_eq!((usual.len(), dear.len()), (tasks.len(), tasks.len()), "{told}");
    for (usual, dear) in usual.iter().zip(&dear) {
        assert!(usual["solved"] == true && dear["solved"] == true, "{usual} {dear}");
        assert_eq!(
            (usual["model"].as_str(), dear["model"].as_str()),
            (Some("gpt-5.2"), Some("gpt-5.5"))
        );
        assert!(0 < cost(usual) && cost(usual) < cost(dear), "{usual} {dear}");
    }
}

/// The requests of this task are full at 8k: what was read before the last turn is shortened.
#[test]
fn a_file_that_is_shown_shortened_by_now_is_read_again() {
    let (code, rows, told) = bench(&["--task", "late-names", "--window", "8192", "--require"]);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(rows[0]["solved"], true, "{told}");
}

#[test]
fn a_window_that_shows_too_little_is_told_with_what_was_missing() {
    let (code, rows, told) = bench(&["--task", "brief-60", "--window", "3000"]);
    assert_eq!(code, Some(0), "it was measured: {told}");
    assert_eq!(rows[0]["solved"], false, "{told}");
    assert!(rows[0]["lacks"].as_str().unwrap().contains("out/"), "{told}");
    let (code, _, told) = bench(&["--task", "brief-60", "--window", "3000", "--require"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("1 of 1 were not solved"), "{told}");
}

#[test]
fn what_was_said_a_week_ago_is_needed_and_only_there_by_memory() {
    let tasks = ["day-nine", "moved-twice", "preference", "other-name"];
    let wanted = tasks.iter().flat_map(|task| ["--task", task]);
    let wanted: Vec<&str> = wanted.chain(["--window", "8192"]).collect();
    let (_, with, told) = bench(&wanted);
    let (_, without, _) = bench(&[&wanted[..], &["--without-memory"]].concat());
    assert_eq!((with.len(), without.len()), (tasks.len(), tasks.len()), "{told}");
    assert!(with.iter().all(|row| row["solved"] == true), "{told}");
    for row in without {
        assert!(row["solved"] == false && row["missing"].is_string(), "{row}");
    }
}

#[test]
fn tasks_have_names() {
    let (code, rows, told) = bench(&["--list"]);
    assert!(code == Some(0) && rows.len() >= 30, "{told}");
    let (code, _, told) = bench(&["--task", "nothing"]);
    assert!(
        code == Some(1) && told.contains("no task `nothing`") && told.contains("brief-60"),
        "{told}"
    );
}

#[test]
fn every_kind_of_work_that_a_day_holds_has_its_task() {
    let (_, rows, told) = bench(&["--list"]);
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    for name in [
        "brief-60",
        "audit",
        "log-grep",
        "log-search",
        "log-line",
        "refactor",
        "join",
        "day-three",
        "changed",
        "five",
        "polled",
    ] {
        assert!(names.contains(&name), "{name}: {told}");
    }
}

/// The contents of messages, without times, nonces and what the wallet holds by then.
fn settled<'a>(contents: impl Iterator<Item = Option<&'a str>>) -> Vec<String> {
    let line = |line: &str| match line.starts_with("Now: ") || line.starts_with('[') {
        true => line.split_once(". Turn").map_or(String::new(), |(_, rest)| rest.to_owned()),
        false => line.to_owned(),
    };
    let line = |text: &str| match text.strip_prefix("Your credits: ") {
        Some(_) => "Your credits: …".to_owned(),
        None => line(text),
    };
    let text = |text: &str| text.lines().map(line).collect::<Vec<_>>().join("\n");
    contents.map(|content| text(content.unwrap_or_default())).collect()
}

/// What a request holds: its texts, and its tools with their schemas.
type Held = (Vec<String>, Vec<Value>);

/// Compares what `prompt` shows with what the next request holds, in a home that lives in this
/// way.
fn check_prompt(world: &World, live: impl Fn(&World) -> Result<ProcessRun, WorldError>) {
    let asked = Arc::<Mutex<Vec<Held>>>::default();
    let seen = Arc::clone(&asked);
    let (url, _stop) = serve_by(move |request| {
        let contents = request.messages.iter().map(|message| message.content.as_deref());
        let tools = request.tools.iter().map(|tool| json!(tool.function));
        seen.lock().unwrap().push((settled(contents), tools.collect()));
        SolverReply { text: "Fine.".to_owned(), ..SolverReply::default() }
    });
    let config = json!({
        "name": "Ada", "genesisPrompt": "Do what your creator asks.",
        "brain": { "kind": "http", "url": url, "model": "gpt-5.2" },
    });
    world.write_home("automaton.json", &config.to_string()).unwrap();
    for said in ["Begin.", "And that."] {
        let sent = world.command(&["send", said]).unwrap();
        let shown = world.command(&["prompt", "--json"]).unwrap();
        let text = world.command(&["prompt"]).unwrap().stdout;
        let before = asked.lock().unwrap().len();
        let mut run = live(world).unwrap();
        let ended = |event: &Event| matches!(event, Event::WakeEnded { .. });
        run.wait_for(ended, LIMIT).unwrap();
        world.command(&["stop"]).unwrap();
        run.finish_within(LIMIT).unwrap();
        if before == 0 {
            // Nothing is there to be shown before its birth.
            continue;
        }
        assert_eq!(sent.code, Some(0), "{}", told(&sent));
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        let contents = shown["messages"].as_array().unwrap().iter();
        let contents = settled(contents.map(|message| message["content"].as_str()));
        let (texts, tools) = asked.lock().unwrap()[before].clone();
        assert_eq!(contents, texts);
        assert_eq!(shown["left_out"], json!([]));
        assert_eq!(shown["tools"], json!(tools));
        for tool in tools {
            let line = format!(
                "{}: {}\n    {}\n",
                tool["name"].as_str().unwrap(),
                tool["description"].as_str().unwrap(),
                tool["parameters"]
            );
            assert!(text.contains(&line), "{line}\n{text}");
        }
    }
}

#[test]
fn the_prompt_command_shows_what_the_next_request_holds() {
    check_prompt(&world(), |world| world.start(&["run", "--json", "--direct"]));
}

#[test]
fn so_it_does_for_one_that_pays() {
    check_prompt(&paying_world(), |world| world.up(&[]));
}
