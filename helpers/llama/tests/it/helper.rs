//! Starts the program and speaks the protocol with it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use automaton_core::wire::brain::{
    LocalModelCompletionRequest, LocalModelMessage, LocalModelRequest, LocalModelResponse,
    LocalModelTool,
};
use automaton_core::wire::chat::ChatRole;
use serde_json::{Value, json};

/// Longest wait for one line; a model on a busy machine takes a while.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running program and our end of its socket.
pub(crate) struct Helper {
    child: Child,
    stream: BufReader<UnixStream>,
}

impl Helper {
    /// Starts the program on a file; the shell only moves the socket to descriptor 3.
    #[expect(clippy::disallowed_methods, reason = "the sandbox is tested by its own crate")]
    pub(crate) fn start(model: &Path, more: &[&str]) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let child = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<&0 0</dev/null"#, "sh"])
            .arg(env!("CARGO_BIN_EXE_automaton-llama"))
            .args(["--fd", "3", "--model"])
            .arg(model)
            .args(more)
            .stdin(OwnedFd::from(theirs))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, stream: BufReader::new(ours) }
    }

    /// Writes a line as it is.
    pub(crate) fn write(&mut self, line: &[u8]) {
        self.stream.get_mut().write_all(line).unwrap();
    }

    /// The next reply.
    pub(crate) fn read(&mut self) -> LocalModelResponse {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The reply to a request, and the pieces that came before it.
    pub(crate) fn ask(&mut self, request: &LocalModelRequest) -> (LocalModelResponse, String) {
        let mut line = serde_json::to_vec(request).unwrap();
        line.push(b'\n');
        self.write(&line);
        let mut pieces = String::new();
        loop {
            match self.read() {
                LocalModelResponse::Token { text } => pieces.push_str(&text),
                reply => return (reply, pieces),
            }
        }
    }

    /// Hangs up; exit code and what was said on stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        drop(self.stream);
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

/// The model to test with: `$AUTOMATON_TEST_MODEL`, which `./test --slow` sets.
pub(crate) fn model() -> Option<PathBuf> {
    named("AUTOMATON_TEST_MODEL")
}

/// One that was taught to call tools: `$AUTOMATON_TEST_TOOL_MODEL`.
pub(crate) fn tool_model() -> Option<PathBuf> {
    named("AUTOMATON_TEST_TOOL_MODEL")
}

fn named(variable: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    if named.is_none() {
        println!("skipped: {variable} names no file");
    }
    named
}

pub(crate) fn said(role: ChatRole, content: &str) -> LocalModelMessage {
    LocalModelMessage { role, content: content.to_owned(), calls: Vec::new() }
}

/// A tool with properties, all of them required.
pub(crate) fn tool(name: &str, properties: &Value) -> LocalModelTool {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    let parameters = json!({ "type": "object", "properties": properties, "required": required });
    LocalModelTool { name: name.to_owned(), description: String::new(), parameters }
}

/// A greedy request of up to 96 tokens.
pub(crate) fn request(
    messages: Vec<LocalModelMessage>,
    tools: Vec<LocalModelTool>,
) -> LocalModelCompletionRequest {
    LocalModelCompletionRequest {
        messages,
        tools,
        left_out: vec![],
        max_tokens: 96,
        seed: 1,
        temperature_milli: 0,
    }
}
