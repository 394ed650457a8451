//! `model pull`, from a server that cuts connections, lies, redirects or knows no ranges.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;
use sha2::{Digest, Sha256};

use super::{World, world};

/// How a server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Honest,
    /// Its first answer ends after a third.
    Cuts,
    /// The same, and what is asked for from a place on it gives from the beginning.
    CutsWithoutRanges,
    Redirects,
    /// It cuts, and goes on from a place that nobody asked for.
    Misplaces,
}

/// A model file of a few hundred kilobytes.
fn model() -> Vec<u8> {
    let mut bytes = b"GGUF".to_vec();
    bytes.extend((0..300_000_u32).map(|n| u8::try_from(n % 251).unwrap()));
    bytes
}

/// Where its models are.
fn models(world: &World) -> PathBuf {
    world.home().with_file_name("home-models")
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Serves a file; gives its address, and how often it was asked.
fn serve(file: Vec<u8>, manner: Manner) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let nth = count.fetch_add(1, Ordering::SeqCst);
            answer(stream.unwrap(), &file, manner, nth);
        }
    });
    (format!("http://{address}/files/tiny.gguf"), asked)
}

fn answer(mut stream: TcpStream, file: &[u8], manner: Manner, nth: usize) {
    let mut from = 0;
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    let mut path = String::new();
    while reader.read_line(&mut line).unwrap() > 2 {
        let lower = line.to_ascii_lowercase();
        if let Some(range) = lower.strip_prefix("range: bytes=") {
            from = range.trim().trim_end_matches('-').parse().unwrap();
        }
        if lower.starts_with("get ") {
            path.clone_from(&lower);
        }
        line.clear();
    }
    if manner == Manner::Redirects && !path.contains("/there") {
        let head = "HTTP/1.1 302 Found\r\nlocation: /there/x.gguf\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        return;
    }
    let ranges = manner != Manner::CutsWithoutRanges;
    let from = if ranges { from } else { 0 };
    let said = if manner == Manner::Misplaces { from / 2 } else { from };
    let range = format!("content-range: bytes {said}-{}/{}\r\n", file.len() - 1, file.len());
    let range = if from > 0 { range } else { String::new() };
    let rest = &file[from.min(file.len())..];
    let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
    let head = format!(
        "HTTP/1.1 {status}\r\n{range}etag: \"one\"\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        rest.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let cuts = manner != Manner::Honest && manner != Manner::Redirects && nth == 0;
    let sent = if cuts { &rest[..rest.len() / 3] } else { rest };
    // Whoever has heard enough hangs up.
    stream.write_all(sent).ok();
}

#[test]
fn a_model_is_brought_whole_however_its_server_behaves() {
    let file = model();
    for manner in [
        Manner::Honest,
        Manner::Cuts,
        Manner::CutsWithoutRanges,
        Manner::Redirects,
        Manner::Misplaces,
    ] {
        let world = world();
        let (url, asked) = serve(file.clone(), manner);
        let hash = hash(&file);
        let pull = ["model", "pull", &url, "--sha256", &hash, "--yes"];
        let pulled = world.command(&pull).unwrap();
        assert_eq!(pulled.code, Some(0), "{manner:?}: {}", pulled.stderr);
        assert!(pulled.stdout.starts_with("tiny is here"), "{}", pulled.stdout);
        let here = models(&world).join("tiny.gguf");
        assert!(std::fs::read(&here).unwrap() == file, "{manner:?}");
        assert!(!models(&world).join("tiny.part").exists());
        // Again it is there, and nobody is asked.
        let before = asked.load(Ordering::SeqCst);
        let again = world.command(&pull).unwrap();
        assert!(again.stdout.starts_with("tiny was here already"), "{}", again.stderr);
        assert_eq!(asked.load(Ordering::SeqCst), before);
    }
}

#[test]
fn parts_of_two_files_are_never_one_model() {
    let (world, file) = (world(), model());
    let (url, _) = serve(file.clone(), Manner::Honest);
    std::fs::create_dir(models(&world)).unwrap();
    let part = models(&world).join("tiny.part");
    let stale = [b"GGUF", &b"A".repeat(5_000)[..]].concat();
    // Without a hash nothing of before is gone on with; with one it is found out, and thrown away.
    std::fs::write(&part, &stale).unwrap();
    let pulled = world.command(&["model", "pull", &url, "--yes"]).unwrap();
    assert_eq!(pulled.code, Some(0), "{}", pulled.stderr);
    assert!(std::fs::read(models(&world).join("tiny.gguf")).unwrap() == file);
    std::fs::write(&part, &stale).unwrap();
    let hash = hash(&file);
    let named = ["model", "pull", &url, "--yes", "--name", "other", "--sha256", &hash];
    std::fs::rename(&part, models(&world).join("other.part")).unwrap();
    assert_ne!(world.command(&named).unwrap().code, Some(0));
    assert!(!models(&world).join("other.part").exists());
    assert_eq!(world.command(&named).unwrap().code, Some(0), "and the next try brings it");
}

#[test]
fn what_is_not_what_was_promised_is_no_model() {
    let world = world();
    let (url, _) = serve(model(), Manner::Honest);
    let wrong = hash(b"another");
    let refused = world.command(&["model", "pull", &url, "--sha256", &wrong, "--yes"]).unwrap();
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("not the one expected"), "{}", refused.stderr);
    let (page, _) = serve(b"<html>nothing here</html>".to_vec(), Manner::Honest);
    let refused = world.command(&["model", "pull", &page, "--yes"]).unwrap();
    assert!(refused.stderr.contains("no model in GGUF format"), "{}", refused.stderr);
    // Nobody at a terminal is no consent.
    let refused = world.command(&["model", "pull", &url]).unwrap();
    assert!(refused.stderr.contains("--yes"), "{}", refused.stderr);
    let left = std::fs::read_dir(models(&world)).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".gguf")), "{left:?}");
}

#[test]
fn a_name_of_the_catalogue_or_a_file_is_brought_and_thought_with_by_its_name() {
    let world = world();
    let file = model();
    let (url, _) = serve(file.clone(), Manner::Honest);
    let entry = json!([{
        "name": "small", "url": url, "sha256": hash(&file), "bytes": file.len(),
        "licence": "MIT", "contextTokens": 4096,
    }]);
    std::fs::create_dir(models(&world)).unwrap();
    std::fs::write(models(&world).join("models.json"), entry.to_string()).unwrap();
    // It is listed before anybody lives here.
    let listed = || world.command(&["model", "list"]).unwrap().stdout;
    let before = listed();
    let line =
        "small: 300.0 KB, MIT, window 4096 tokens, `automaton model pull small` brings it here";
    assert!(before.contains(line) && before.contains("no automaton lives in"), "{before}");
    let pulled = world.command(&["model", "pull", "small", "--yes"]).unwrap();
    assert!(listed().contains("on this machine (`./up --model small`"), "{}", listed());
    assert_eq!(pulled.code, Some(0), "{}", pulled.stderr);
    assert!(pulled.stderr.contains("licence: MIT; its SHA-256 is checked"), "{}", pulled.stderr);

    let path = world.dir().join("mine.gguf");
    std::fs::write(&path, [&b"GGUF"[..], b"mine"].concat()).unwrap();
    let copied = world.command(&["model", "pull", path.to_str().unwrap(), "--yes"]).unwrap();
    assert!(copied.stdout.starts_with("mine is here"), "{}", copied.stderr);
    // Another file takes nobody's name.
    std::fs::write(&path, [&b"GGUF"[..], b"other"].concat()).unwrap();
    let other = hash(&std::fs::read(&path).unwrap());
    let pull = ["model", "pull", path.to_str().unwrap(), "--yes", "--sha256", &other];
    let refused = world.command(&pull).unwrap();
    assert!(refused.stderr.contains("another model is called 'mine'"), "{}", refused.stderr);

    let unknown = world.command(&["model", "pull", "nothing"]).unwrap();
    assert!(
        unknown.stderr.contains("it has: small, smollm2-135m, qwen2.5-coder-1.5b-instruct"),
        "{}",
        unknown.stderr
    );
    let shipped = world.command(&["model", "pull", "smollm2-135m"]).unwrap();
    assert!(shipped.stderr.contains("comes with ./up"), "{}", shipped.stderr);

    // The name stands for the file wherever a model is named.
    let up = ["up", "--direct", "--turns", "1", "--model", "small", "--helper", "/bin/true"];
    let tried = world.command(&up).unwrap();
    assert_ne!(tried.code, Some(0), "no model thinks in it");
    let config = std::fs::read_to_string(world.home().join("automaton.json"));
    let seen = format!("{}{}{}", tried.stderr, tried.stdout, config.unwrap_or_default());
    assert!(seen.contains("-models/small.gguf"), "{seen}");
}
