//! A start asks the model server first, and a brain that is corrected is tried at once and kept.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use automaton_testkit::world::{ProcessOutput, World};
use serde_json::{Value, json};

use super::world;

/// How long a run may take, on a machine that does other things too.
const LIMIT: Duration = Duration::from_secs(120);

/// A status with a media type and a body.
type Answer = (u16, &'static str, String);

const JSON: &str = "application/json";

/// A server on a free port, with the number of the questions that it got.
struct Played {
    url: String,
    posts: Arc<AtomicU32>,
}

impl Played {
    fn start(route: impl Fn(&str) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let posts = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&posts);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut first = String::new();
                if lines.read_line(&mut first).is_err() {
                    continue;
                }
                let mut length = 0;
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|read| read > 2) {
                    let header = line.to_ascii_lowercase();
                    if let Some(count) = header.strip_prefix("content-length:") {
                        length = count.trim().parse().unwrap();
                    }
                    line.clear();
                }
                std::io::copy(&mut lines.take(length), &mut std::io::sink()).unwrap();
                let is_question = first.contains("/chat/completions");
                counted.fetch_add(u32::from(is_question), Ordering::SeqCst);
                let (status, kind, body) = route(&first);
                let head = format!(
                    "HTTP/1.1 {status} Answer\r\nconnection: close\r\ncontent-type: {kind}\r\n\
                     content-length: {}\r\n\r\n{body}",
                    body.len()
                );
                // silent-ok: a client that left hears nothing.
                stream.write_all(head.as_bytes()).ok();
            }
        });
        Self { url, posts }
    }

    /// One that lists these models, and answers.
    fn listing(names: &'static [&str]) -> Self {
        Self::start(move |first| match first.starts_with("POST") {
            true => says("All is done."),
            false => list(names),
        })
    }

    fn posts(&self) -> u32 {
        self.posts.load(Ordering::SeqCst)
    }
}

fn list(names: &[&str]) -> Answer {
    let rows: Vec<Value> = names.iter().map(|name| json!({ "id": name })).collect();
    (200, JSON, json!({ "object": "list", "data": rows }).to_string())
}

fn says(text: &str) -> Answer {
    let message = json!({ "role": "assistant", "content": text });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    (200, JSON, json!({ "model": "m", "choices": [choice] }).to_string())
}

fn up(world: &World, url: &str, more: &[&str]) -> ProcessOutput {
    let words = ["up", "--direct", "--brain", url, "--turns", "1"];
    let words: Vec<&str> = words.into_iter().chain(more.iter().copied()).collect();
    world.start(&words).unwrap().finish_within(LIMIT).unwrap()
}

fn brain_of(world: &World) -> Value {
    let text = fs::read_to_string(world.home().join("automaton.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["brain"].clone()
}

#[test]
fn a_server_that_cannot_be_used_is_refused_before_anything_is_made() {
    let page = || (200, "text/html", "<!doctype html><html></html>".to_owned());
    let status = |status| move |_: &str| (status, JSON, json!({ "error": "no" }).to_string());
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (server, sentence) in [
        (Played::start(move |_| page()), "answers with a web page: it is no model server"),
        (Played::start(status(401)), "does not accept the key (401)"),
        (Played::start(status(404)), "has no route for chat completions (status 404)"),
        (Played::start(status(502)), "answered with status 502"),
        (Played::listing(&["a", "b"]), "has no model 'm'"),
    ] {
        let world = world();
        let finished = up(&world, &server.url, &["--brain-model", "m"]);
        let told = finished.stderr;
        assert_ne!(finished.code, Some(0), "{told}");
        assert!(told.contains(sentence) && told.contains("hint: "), "'{sentence}': {told}");
        assert!(!world.home().join("automaton.json").exists(), "{sentence}");
    }
    let world = world();
    let told = up(&world, &format!("http://{dead}/v1"), &["--brain-model", "m"]).stderr;
    assert!(told.contains("no model server can be reached at"), "{told}");
    assert!(!world.home().join("automaton.json").exists());
}

#[test]
fn a_server_with_one_model_needs_no_name_and_one_with_several_does() {
    let server = Played::listing(&["strong-1"]);
    let world = world();
    let finished = up(&world, &server.url, &[]);
    assert_eq!((finished.code, server.posts()), (Some(0), 1), "{}", finished.stderr);
    assert_eq!(brain_of(&world)["model"], "strong-1");
    let several = Played::listing(&["a", "b"]);
    let finished = up(&super::world(), &several.url, &[]);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("has several models, and none is named"));
    assert!(finished.stderr.contains("it has a, b"), "{}", finished.stderr);
}

#[test]
fn a_server_without_a_list_is_asked_a_question_first() {
    for missing in [404, 405, 501] {
        let server = Played::start(move |first| match first.starts_with("POST") {
            true => says("All is done."),
            false => (missing, JSON, "{}".to_owned()),
        });
        let world = world();
        let finished = up(&world, &server.url, &["--brain-model", "m"]);
        assert_eq!((finished.code, server.posts()), (Some(0), 2), "{}", finished.stderr);
        // What was named before buys nothing: its first turn tells.
        let again = world.start(&["run", "--direct", "--turns", "1"]).unwrap();
        assert_eq!(again.finish_within(LIMIT).unwrap().code, Some(0));
    }
}

#[test]
fn a_corrected_brain_is_tried_at_once_and_kept_when_it_has_answered() {
    let failing = Played::start(|first| match first.starts_with("POST") {
        true => (500, JSON, json!({ "error": "broken" }).to_string()),
        false => list(&["m"]),
    });
    let world = world();
    let failed = up(&world, &failing.url, &["--ask", "Do it."]);
    assert_ne!(failed.code, Some(0));
    let good = Played::listing(&["strong-1"]);
    let finished = up(&world, &good.url, &[]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(finished.stdout.contains("All is done."), "{}", finished.stdout);
    assert!(finished.stderr.contains("it thinks with strong-1"), "{}", finished.stderr);
    let kept = json!({ "kind": "http", "url": good.url, "model": "strong-1" });
    assert_eq!(brain_of(&world), kept);
    up(&world, &failing.url, &["--ask", "Again."]);
    assert_eq!(brain_of(&world), kept, "a brain that did not answer is not kept");
    // What the file names now is what `run` thinks with.
    let again = world.start(&["run", "--direct", "--turns", "1"]).unwrap();
    assert_eq!(again.finish_within(LIMIT).unwrap().code, Some(0));
}

#[test]
fn files_and_arguments_are_checked_before_a_passphrase_is_asked_for() {
    let world = world();
    let told = |arguments: &[&str]| {
        let finished = world.command(arguments).unwrap();
        assert_eq!(finished.code, Some(1), "{arguments:?}: {}", finished.stderr);
        finished.stderr
    };
    assert!(
        told(&["wallet", "import", "/nowhere.json"]).contains("there is no file /nowhere.json")
    );
    assert!(told(&["restore", "/nowhere.bak"]).contains("cannot read the backup /nowhere.bak"));
    for command in [&["wallet", "show"][..], &["limits", "show"], &["fund"], &["export-key"]] {
        assert!(told(command).contains("no automaton lives in"), "{command:?}");
    }
    assert!(world.command(&["init"]).unwrap().code == Some(0));
    assert!(told(&["topup", "7"]).contains("US dollars, not for 7"));
    assert!(told(&["wallet", "show"]).contains("has no wallet"));
    let signer = world.home().with_file_name("home-signer");
    assert!(!signer.exists(), "nothing was made");
    let missing = told(&["up", "--direct", "--model", "/tmp/none.gguf"]);
    assert!(missing.contains("there is no model file /tmp/none.gguf"), "{missing}");
}

#[test]
fn a_name_that_is_there_and_cannot_be_read_stops_the_start() {
    for name in ["policy.cedar", "heartbeat.yml", "automaton.json", "cloud-key.json"] {
        let world = world();
        assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
        let path = world.home().join(name);
        if path.exists() {
            fs::remove_file(&path).unwrap();
        }
        std::os::unix::fs::symlink("/nowhere/at/all", &path).unwrap();
        let words = ["up", "--direct", "--brain", "script", "--turns", "1"];
        let finished = world.start(&words).unwrap().finish_within(LIMIT).unwrap();
        assert_ne!(finished.code, Some(0), "{name}");
        assert!(finished.stderr.contains(name), "{name}: {}", finished.stderr);
        assert!(path.is_symlink(), "{name} was replaced");
    }
}

#[test]
fn a_link_without_a_target_is_never_replaced_where_a_file_would_be_made() {
    let text = r#"{"configVersion":1,"name":"Ada","genesisPrompt":"Be."}"#;
    for name in ["constitution.md", "SOUL.md", "state.db", "events.jsonl"] {
        let world = world();
        world.write_home("automaton.json", text).unwrap();
        let path = world.home().join(name);
        std::os::unix::fs::symlink("/nowhere/at/all", &path).unwrap();
        for words in [&["init"][..], &["up", "--direct", "--brain", "script", "--turns", "1"]] {
            let finished = world.start(words).unwrap().finish_within(LIMIT).unwrap();
            assert_ne!(finished.code, Some(0), "{name} {words:?}");
            let told = format!("cannot use {}", path.display());
            assert!(finished.stderr.contains(&told), "{name}: {}", finished.stderr);
            assert!(finished.stderr.contains("no file at its target"), "{}", finished.stderr);
            assert!(path.is_symlink(), "{name} was replaced by {words:?}");
        }
        assert!(!world.home().join("workspace").exists(), "{name}: something was made");
    }
}
