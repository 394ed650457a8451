//! Other programs, found in the folder `AUTOMATON_TEST_PEERS`, and how to run them.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[expect(clippy::disallowed_methods, reason = "whoever starts the test says where they are")]
pub(crate) fn peers() -> PathBuf {
    std::env::var_os("AUTOMATON_TEST_PEERS").unwrap().into()
}

pub(crate) fn native(name: &str) -> PathBuf {
    peers().join(format!("node_modules/@foundry-rs/{name}-linux-amd64/bin/{name}"))
}

#[expect(clippy::disallowed_methods, reason = "a test starts what it compares with")]
pub(crate) fn command(program: &Path) -> Command {
    Command::new(program)
}

/// Anvil, ended with the test.
pub(crate) struct Anvil(Child, pub(crate) SocketAddr);

impl Anvil {
    pub(crate) fn start() -> Self {
        let mut anvil = command(&native("anvil"));
        anvil.args(["--port", "0", "--hardfork", "prague", "--accounts", "1"]);
        let mut child = anvil.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.find(|line| line.starts_with("Listening on ")).unwrap();
        // It prints more later, and ends if nobody reads it.
        std::thread::spawn(move || lines.for_each(drop));
        Self(child, line.trim_start_matches("Listening on ").parse().unwrap())
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Runs a program to its end and returns its output.
pub(crate) async fn run(mut program: Command) -> String {
    let told = format!("{program:?}");
    let ended = tokio::task::spawn_blocking(move || program.output());
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await.unwrap();
    let output = ended.unwrap().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told:.300}\n{out}\n{err}");
    out.trim().to_owned()
}
