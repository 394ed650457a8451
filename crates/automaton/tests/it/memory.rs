//! What it was told its creator finds again, corrects, and takes along into another home.

use std::sync::atomic::Ordering;
use std::time::Duration;

use automaton_core::event::{Event, StampedEvent};
use automaton_testkit::embedding::write_model;
use automaton_testkit::world::ProcessOutput;
use serde_json::{Value, json};

use super::brains::{Mood, Server};
use super::livelihood::check_books;
use super::{paying_world, world};

const STORY: &str = "title = \"a rest\"\n[[step]]\nsay = \"Ready.\"\n[[step]]\nsay = \"More.\"\n";

/// How long a life may take, on a machine that does other things too.
const LIMIT: Duration = Duration::from_secs(120);

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_it_was_told_is_found_corrected_and_taken_along() {
    let one = world();
    let asked = "My boat is called Ilse and lies in Bergen.";
    let run = one.command(&["up", "--brain", "script", "--direct", "--ask", asked]).unwrap();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let found = one.command(&["memory", "search", "which boats?"]).unwrap();
    assert!(found.stdout.contains("(from creator) My boat is called Ilse"), "{}", found.stdout);
    let found = one.command(&["memory", "search", "boat", "--json"]).unwrap();
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    let id = found[0]["id"].as_str().unwrap().to_owned();
    assert_eq!((&found[0]["tier"], &found[0]["body"]["text"]), (&json!("episodic"), &json!(asked)));
    let none = one.command(&["memory", "search", "zeppelin"]).unwrap();
    assert_eq!(none.stdout.trim(), "Nothing found");
    let shown = one.command(&["memory", "show", &id]).unwrap();
    for part in [asked, "From:    creator (creator)", "episodic memory"] {
        assert!(shown.stdout.contains(part), "{}", shown.stdout);
    }

    // Another home remembers what this one did, and nothing twice.
    let exported = one.command(&["memory", "export"]).unwrap().stdout;
    let items = lines(&exported);
    assert!(items.iter().any(|item| item["id"] == id.as_str()), "{exported}");
    let two = world();
    let run = two.command(&["up", "--brain", "script", "--direct", "--turns", "1"]).unwrap();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let file = two.dir().join("memories.jsonl");
    let fact = json!({
        "tier": "semantic", "kind": "creator", "name": "boat", "strength": 100,
        "body": {"label": "creator", "source": "creator", "text": "Ilse"},
    });
    std::fs::write(&file, format!("{exported}\n{fact}\n")).unwrap();
    let path = file.to_str().unwrap();
    for _ in 0..2 {
        let imported = two.command(&["memory", "import", path]).unwrap();
        assert!(imported.stdout.starts_with("imported: "), "{}", imported.stderr);
    }
    let facts = two.command(&["memory", "search", "boat", "--tier", "semantic"]).unwrap();
    assert!(facts.stdout.contains("creator/boat] (from creator) Ilse"), "{}", facts.stdout);
    assert_eq!(facts.stdout.lines().count(), 1, "{}", facts.stdout);

    // What is forgotten is gone, and asking again says so.
    let forgotten = one.command(&["memory", "forget", &id]).unwrap();
    assert_eq!(forgotten.stdout.trim(), format!("forgotten: {id}"));
    let again = one.command(&["memory", "forget", &id]).unwrap();
    assert_ne!(again.code, Some(0));
    assert!(again.stderr.contains(&format!("does not remember {id}")), "{}", again.stderr);
    let left = one.command(&["memory", "export"]).unwrap().stdout;
    assert!(!left.contains("Ilse"), "{left}");
}

#[test]
fn a_new_automaton_finds_what_it_was_told_in_other_words() {
    let long = "The committee wants the minutes of its last meeting by Friday, with the budget of \
                the library and the names of the volunteers for the summer festival. My car is a \
                little silver Skoda, a car like any other car. Please also write to the bakery \
                about the cakes for the children, and ask the school for chairs.";
    // What is asked for is all of the one, and the least part of the other.
    for (told, asked) in [
        ("My car is a little silver Skoda.", "What do I drive?"),
        (long, "What vehicle do I drive?"),
    ] {
        let world = world().story(STORY).unwrap();
        let mut run = world.up(&["--ask", told]).unwrap();
        let limit = Duration::from_secs(60);
        run.wait_for(|event| matches!(event, Event::SleepStarted { .. }), limit).unwrap();
        let wanted = world.command(&["heartbeat", "run", "embed_memories"]).unwrap();
        assert_eq!(wanted.code, Some(0), "{}", wanted.stderr);
        assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
        run.finish_within(limit).unwrap();
        let found = |words: &str| world.command(&["memory", "search", words]).unwrap().stdout;
        assert!(found(asked).contains(&format!("(from creator) {told}")), "{}", found(asked));
        assert_eq!(found("zeppelin").trim(), "Nothing found");
        let told_of = world.command(&["memory", "vectors"]).unwrap().stdout;
        assert!(told_of.starts_with("model built-in word vectors 1: "), "{told_of}");
    }
}

#[test]
fn what_it_was_told_is_found_by_what_it_means_once_it_has_vectors() {
    let world = world().story(STORY).unwrap();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let file = world.home().join("automaton.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    config["embeddings"] = json!({ "kind": "off" });
    std::fs::write(&file, config.to_string()).unwrap();
    let refused = world.command(&["memory", "vectors"]).unwrap();
    let told = |output: &ProcessOutput, part: &str| {
        assert_ne!(output.code, Some(0), "{}", output.stdout);
        assert!(output.stderr.contains(part), "{}", output.stderr);
    };
    told(&refused, "nothing makes vectors");
    let model = world.home().join("meanings");
    write_model(&model, &[&["car", "vehicle"], &["boat"]]).unwrap();
    config["embeddings"] = json!({ "kind": "local", "folder": "meanings" });
    std::fs::write(&file, config.to_string()).unwrap();
    let mut run = world.up(&["--ask", "My car is a Skoda."]).unwrap();
    let limit = Duration::from_secs(60);
    run.wait_for(|event| matches!(event, Event::SleepStarted { .. }), limit).unwrap();
    let found = |words: &str| world.command(&["memory", "search", words]).unwrap().stdout;
    assert!(!found("vehicle?").contains("Skoda"));
    let wanted = world.command(&["heartbeat", "run", "embed_memories"]).unwrap();
    assert_eq!(wanted.code, Some(0), "{}", wanted.stderr);
    assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
    run.finish_within(limit).unwrap();
    assert!(found("vehicle?").contains("(from creator) My car is a Skoda."));
    assert!(!found("zeppelin").contains("Skoda"));
    let told_of = world.command(&["memory", "vectors", "--json"]).unwrap().stdout;
    let told_of: Value = serde_json::from_str(&told_of).unwrap();
    assert!(told_of["vectors"].as_u64() > Some(0), "{told_of}");
    // A model that is another one is told, and what was found by words still is.
    std::fs::remove_file(model.join("vocab.txt")).unwrap();
    told(&world.command(&["memory", "vectors"]).unwrap(), "vocab.txt");
    assert!(found("car").contains("Skoda"));
    config["embeddings"] =
        json!({ "kind": "local", "folder": "meanings", "sha256": "0".repeat(64) });
    write_model(&model, &[&["car"]]).unwrap();
    std::fs::write(&file, config.to_string()).unwrap();
    told(&world.command(&["memory", "vectors"]).unwrap(), "is not the file that was agreed");
    // What would be ignored is refused.
    config["embeddings"] = json!({ "kind": "builtIn", "url": "http://127.0.0.1:1" });
    std::fs::write(&file, config.to_string()).unwrap();
    told(&world.command(&["memory", "vectors"]).unwrap(), "unknown key \"url\"");
    // What may charge without anybody booking it is refused.
    config["embeddings"] = json!({ "kind": "server", "url": "https://example.com", "model": "m" });
    std::fs::write(&file, config.to_string()).unwrap();
    told(&world.command(&["memory", "vectors"]).unwrap(), "is not on this machine");
}

#[test]
fn vectors_that_its_cloud_sells_are_bought_and_the_books_agree() {
    let server = Server::start(Mood::Answers);
    let world = paying_world().brain(&server.url);
    let embeddings = json!({ "kind": "cloud", "model": "vectors" });
    let file = json!({ "name": "A", "genesisPrompt": "Be.", "embeddings": embeddings });
    world.write_home("automaton.json", &file.to_string()).unwrap();
    let bought = || server.embedded.load(Ordering::SeqCst);
    // Who lives from no cloud is told so, and remembers by words.
    let direct = ["--brain-model", "big-one", "--direct", "--turns", "1", "--ask", "Hello."];
    let finished = world.up(&direct).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!((finished.code, bought()), (Some(0), 0), "{}", finished.stderr);
    let told = "nothing makes vectors of what it remembers: it lives from no cloud";
    let is_told = |event: &StampedEvent| match &event.event {
        Event::ErrorReported { error, .. } => error.contains(told),
        _ => false,
    };
    assert!(finished.events.iter().any(is_told), "{}", finished.stderr);
    let asked = ["--brain-model", "big-one", "--ask", "My boat is called Ilse."];
    let mut run = world.up(&asked).unwrap();
    run.wait_for(|event| matches!(event, Event::SleepStarted { .. }), LIMIT).unwrap();
    assert_eq!(bought(), 1, "of what was asked");
    let wanted = world.command(&["heartbeat", "run", "embed_memories"]).unwrap();
    assert_eq!(wanted.code, Some(0), "{}", wanted.stderr);
    assert!(bought() > 1, "of what it remembers");
    let known = bought();
    // A command reads what was bought, and buys nothing.
    let told = world.command(&["memory", "vectors", "--json"]).unwrap();
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert!(told["vectors"].as_u64() > Some(0), "{told}");
    assert_eq!(told["model"], "vectors of a server");
    let found = world.command(&["memory", "search", "boat"]).unwrap();
    assert!(found.stdout.contains("My boat is called Ilse."), "{}", found.stdout);
    assert_eq!(bought(), known);
    assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
    let finished = run.finish_within(LIMIT).unwrap();
    check_books(&finished.events, "vectors");
}

#[test]
fn a_bad_file_changes_nothing_and_says_which_line_is_wrong() {
    let world = world();
    let run = world.command(&["up", "--brain", "script", "--direct", "--turns", "1"]).unwrap();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let before = world.command(&["memory", "export"]).unwrap().stdout;
    let file = world.dir().join("memories.jsonl");
    let good = r#"{"tier":"semantic","kind":"self","name":"a","strength":9,"body":{"label":"self","source":"x","text":"b"}}"#;
    for bad in ["{", "{}", r#"{"tier":"dream"}"#, "\u{0}"] {
        std::fs::write(&file, format!("{good}\n{bad}\n")).unwrap();
        let refused = world.command(&["memory", "import", file.to_str().unwrap()]).unwrap();
        assert_ne!(refused.code, Some(0), "{bad}");
        assert!(refused.stderr.contains("line 2 of "), "{}", refused.stderr);
    }
    let missing = world.command(&["memory", "import", "/nowhere/file"]).unwrap();
    assert!(missing.stderr.contains("cannot read /nowhere/file"), "{}", missing.stderr);
    for id in ["m0", "12", "m99999"] {
        assert_ne!(world.command(&["memory", "show", id]).unwrap().code, Some(0), "{id}");
    }
    let unknown = world.command(&["memory", "search", "--tier", "dream"]).unwrap();
    assert!(unknown.stderr.contains("working, episodic, semantic"), "{}", unknown.stderr);
    assert_eq!(world.command(&["memory", "export"]).unwrap().stdout, before);
}
