//! Tries prompts on a model: six asks of a creator, five turns each, tool results faked.
//!
//! `cargo run --release --example asks -- MODEL SYSTEM.txt [seed temperature_milli]` prints
//! each call and how many asks led to two different tools with one that changed the
//! workspace. It is how the wording of the compact prompt was found.

#![expect(clippy::print_stdout, reason = "an example shows its work")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use automaton_core::wire::brain::{Call, Complete, Done, Message, Role, Tool};
use automaton_llama::generate::Brain;
use automaton_llama::load::{self, Terms};
use automaton_llama::session::Shape;
use llama_cpp_2::llama_backend::LlamaBackend;
use serde_json::{Value, json};

/// What the creator asks for.
const ASKS: [&str; 6] = [
    "Write a report about the files in your workspace",
    "Create a file notes.txt with three facts about your workspace",
    "Run a command that lists the files and save the output",
    "Remember that my favourite colour is green and write it to colour.txt",
    "Make a shell script that prints the date and run it",
    "Write a poem to poem.txt and read it back",
];
/// Tools of the newest turns that are not offered again at once.
const LEFT_OUT: usize = 3;
/// Turns of each ask.
const TURNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, system, rest @ ..] = args.as_slice() else {
        return Err("usage: asks MODEL SYSTEM.txt [seed temperature_milli]".into());
    };
    let number = |index: usize| rest.get(index).and_then(|text| text.parse::<u32>().ok());
    let system = std::fs::read_to_string(system)?;
    let terms = Terms { sha256: None, context_tokens: Some(4096), memory_bytes: None };
    let checked = load::check(Path::new(model), &terms)?;
    let mut backend = LlamaBackend::init()?;
    backend.void_logs();
    let loaded = load::load(&backend, &checked)?;
    let mut brain = Brain::open(&backend, &loaded, Shape { context_tokens: 4096, threads: 2 })?;
    let mut passed = 0;
    for ask in ASKS {
        println!("\n== {ask}");
        let sampling = (number(0).unwrap_or(7), number(1).unwrap_or(0));
        passed += u32::from(live(&mut brain, &system, ask, sampling)?);
    }
    println!("\n{passed} of {} asks", ASKS.len());
    Ok(())
}

/// Five turns on one ask; whether two tools ran and one changed the workspace.
fn live(
    brain: &mut Brain<'_>,
    system: &str,
    ask: &str,
    (seed, temperature_milli): (u32, u32),
) -> Result<bool, Box<dyn Error>> {
    let (system, status) = system.split_once("\n---\n").unwrap_or((system, ""));
    let mut messages = vec![message(Role::System, system.trim())];
    messages.push(message(Role::User, &format!("{ask}{status}")));
    let mut world = World::default();
    world
        .files
        .insert("README.md".into(), "# Workspace\nThis is the home of an automaton.\n".into());
    world.files.insert("data.csv".into(), "day,sales\nmon,3\ntue,5\n".into());
    let mut used: Vec<String> = Vec::new();
    for turn in 0..TURNS {
        let done = brain.complete(
            &Complete {
                messages: messages.clone(),
                tools: tools(),
                left_out: used.iter().rev().take(LEFT_OUT).cloned().collect(),
                max_tokens: 256,
                seed: u64::from(seed) + turn as u64,
                temperature_milli,
            },
            &mut |_| Ok(()),
        )?;
        report(&done);
        let Some(call) = done.calls.first().cloned() else { break };
        let result = world.run(&call);
        used.push(call.name.clone());
        messages.push(Message { role: Role::Assistant, content: done.text, calls: vec![call] });
        messages.push(message(Role::Tool, &result));
    }
    let mut kinds = used.clone();
    kinds.sort();
    kinds.dedup();
    Ok(kinds.len() >= 2 && kinds.iter().any(|name| name == "exec" || name == "write_file"))
}

/// One line for an answer.
fn report(done: &Done) {
    let call = done.calls.first().map(|call| format!("{} {}", call.name, call.arguments));
    let shown: String =
        call.unwrap_or_else(|| format!("TEXT {}", done.text)).chars().take(300).collect();
    println!(
        "{shown}  [{:?} prompt {} cached {} new {} first {} ms total {} ms]",
        done.finish,
        done.prompt_tokens,
        done.cached_tokens,
        done.completion_tokens,
        done.first_token_ms,
        done.total_ms
    );
}

fn message(role: Role, content: &str) -> Message {
    Message { role, content: content.to_owned(), calls: Vec::new() }
}

/// A workspace that answers calls without doing anything.
#[derive(Default)]
struct World {
    files: BTreeMap<String, String>,
    facts: Vec<String>,
}

impl World {
    fn run(&mut self, call: &Call) -> String {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        let name = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
        match call.name.as_str() {
            "exec" => {
                let command = text("command");
                let list = self.files.keys().cloned().collect::<Vec<_>>().join("\n");
                if command.trim_start().starts_with("ls") {
                    format!("exit 0\n{list}")
                } else if command.contains("date") {
                    "exit 0\nSat Nov 21 12:00:00 UTC 2026".to_owned()
                } else {
                    "exit 0".to_owned()
                }
            }
            "read_file" => match self.files.get(&name(text("path"))) {
                Some(content) => content.clone(),
                None => format!("error: there is no file {}", text("path")),
            },
            "write_file" => {
                let content = text("content");
                let bytes = content.len();
                self.files.insert(name(text("path")), content);
                format!("wrote {bytes} bytes to {}", text("path"))
            }
            "remember_fact" => {
                self.facts.push(format!("{}: {}", text("key"), text("value")));
                "remembered".to_owned()
            }
            "recall_facts" => format!("{} facts\n{}", self.facts.len(), self.facts.join("\n")),
            "send_message" => "sent".to_owned(),
            "sleep" => "you will sleep after this turn".to_owned(),
            _ => format!("state: running, files: {}", self.files.len()),
        }
    }
}

/// The tools with their parameters.
fn tools() -> Vec<Tool> {
    let tool = |name: &str, description: &str, properties: Value, required: Value| Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
    };
    let s = || json!({ "type": "string" });
    vec![
        tool(
            "exec",
            "Run a shell command.",
            json!({"command": s(), "timeout_ms": {"type": "integer", "minimum": 1}}),
            json!(["command"]),
        ),
        tool("read_file", "Read a file.", json!({"path": s()}), json!(["path"])),
        tool(
            "write_file",
            "Write a file.",
            json!({"path": s(), "content": s()}),
            json!(["path", "content"]),
        ),
        tool(
            "remember_fact",
            "Remember a fact.",
            json!({"category": s(), "key": s(), "value": s(), "confidence": {"type": "number", "minimum": 0, "maximum": 1}}),
            json!(["category", "key", "value"]),
        ),
        tool("recall_facts", "Recall facts.", json!({"category": s(), "query": s()}), json!([])),
        tool(
            "send_message",
            "Send a message.",
            json!({"to_address": s(), "content": s()}),
            json!(["to_address", "content"]),
        ),
        tool(
            "sleep",
            "Sleep.",
            json!({"duration_seconds": {"type": "integer", "minimum": 1, "maximum": 86400}, "reason": s()}),
            json!(["duration_seconds"]),
        ),
        tool("system_synopsis", "Show status.", json!({}), json!([])),
    ]
}
