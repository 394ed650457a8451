//! The dev chain as a process: what it prints, how it ends, what a crash costs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use automaton_core::faults::FaultPoint;
use automaton_script::fault::mark_home;
use serde_json::{Value, json};

/// A chain in a process of its own, killed with the test.
struct Chain {
    child: Child,
    address: String,
    usdc: String,
}

impl Chain {
    #[expect(clippy::disallowed_methods, reason = "a test starts what it tests")]
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_automaton"));
        command.args(["devnet", "--listen", "127.0.0.1:0", "--json"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let serving: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(serving["chain_id"], json!(31337));
        let address = serving["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let usdc = serving["usdc"].as_str().unwrap().to_owned();
        Self { child, address: address.to_owned(), usdc }
    }

    /// The answer to a request; `None` when the chain is gone before it answers.
    fn ask(&self, method: &str, params: &Value) -> Option<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!(
            "POST / HTTP/1.1\r\nHost: chain\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, json) = answer.split_once("\r\n\r\n")?;
        Some(serde_json::from_str::<Value>(json).unwrap()["result"].clone())
    }

    fn wait(mut self) -> ExitStatus {
        for _ in 0..3_000 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not end");
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn folder(of: &Path) -> String {
    of.to_str().unwrap().to_owned()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the shell's own kill sends the signal")]
fn it_says_where_it_is_and_ends_well_on_a_signal() {
    for signal in ["TERM", "INT"] {
        let chain = Chain::start(&[]);
        assert_eq!(chain.ask("eth_chainId", &json!([])), Some(json!("0x7a69")));
        let code = chain.ask("eth_getCode", &json!([chain.usdc, "latest"])).unwrap();
        assert!(code.as_str().unwrap().len() > 1_000);
        let kill = format!("kill -{signal} {}", chain.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(chain.wait().code(), Some(0), "{signal}");
    }
}

#[test]
fn a_crash_costs_what_was_not_answered_and_nothing_else() {
    for (point, second) in FaultPoint::CHAIN.into_iter().zip(["0x0", "0x2"]) {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().join("chain");
        mark_home(&home).unwrap();
        let data = folder(&home);
        let fund = |account: &str| json!([{"address": account, "wei": "0x2"}]);
        let (first_account, second_account) =
            (format!("0x{}", "11".repeat(20)), format!("0x{}", "22".repeat(20)));
        let charge = format!("{point}:2");
        let chain = Chain::start(&["--data", &data, "--fault", &charge]);
        assert!(chain.ask("automaton_fund", &fund(&first_account)).is_some());
        assert_eq!(chain.ask("automaton_fund", &fund(&second_account)), None, "{point}");
        assert_eq!(chain.wait().code(), None, "{point}: a signal ended it");

        let chain = Chain::start(&["--data", &data]);
        let balance = |of: &str| chain.ask("eth_getBalance", &json!([of, "latest"]));
        assert_eq!(balance(&first_account), Some(json!("0x2")), "{point}");
        assert_eq!(balance(&second_account), Some(json!(second)), "{point}");
    }
}

#[test]
fn a_folder_that_was_not_made_for_it_rehearses_no_crash() {
    let place = tempfile::tempdir().unwrap();
    let data = folder(place.path());
    let arguments = ["devnet", "--listen", "127.0.0.1:0", "--data", &data];
    let armed = [&arguments[..], &["--fault", "chain-act-stored"]].concat();
    let finished = super::world().command(&armed).unwrap();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    std::fs::write(place.path().join("chain.log"), "nonsense\n").unwrap();
    let finished = super::world().command(&arguments).unwrap();
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("chain.log': in line 1"), "{}", finished.stderr);
}
