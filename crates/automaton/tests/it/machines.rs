//! A machine of the cloud that `up` starts: real processes, paid with real credits.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use automaton_core::event::Event;
use automaton_lab::world::World;
use serde_json::{Value, json};

use super::livelihood::silent;
use super::paying_world;

const LIMIT: Duration = Duration::from_secs(120);

/// Asks the cloud of a home; status and body.
fn ask(world: &World, line: &str, body: &Value) -> (u16, Value) {
    let file = std::fs::read_to_string(world.home().join("cloud-key.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let at = file["cloud"].as_str().unwrap().trim_start_matches("http://").to_owned();
    let (key, body) = (file["key"].as_str().unwrap(), body.to_string());
    let mut stream = TcpStream::connect(&at).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.0\r\nHost: {at}\r\nAuthorization: {key}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut whole = String::new();
    stream.read_to_string(&mut whole).unwrap();
    let (head, body) = whole.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

#[test]
fn a_machine_is_paid_with_credits_and_outlives_its_cloud_with_its_files() {
    let (_listener, url) = silent();
    let world = paying_world();
    let mut run = world.up(&["--brain", &url, "--ask", "Are you there?"]).unwrap();
    // By then it has an account and has bought credits.
    run.wait_for(|event| matches!(event, Event::TurnStarted { .. }), LIMIT).unwrap();
    let (status, machine) = ask(&world, "POST /v1/sandboxes", &json!({ "name": "m" }));
    assert_eq!((status, &machine["status"]), (200, &json!("running")), "{machine}");
    let path = format!("/v1/sandboxes/{}", machine["id"].as_str().unwrap());
    let exec =
        |command: &str| ask(&world, &format!("POST {path}/exec"), &json!({ "command": command }));
    let (status, wrote) = exec("echo kept > file; (sleep 1000 &) ; id -u");
    assert_eq!((status, &wrote["stdout"], &wrote["exit_code"]), (200, &json!("0\n"), &json!(0)));
    run.kill().unwrap();

    let mut run = world.up(&["--brain", &url, "--ask", "Are you there now?"]).unwrap();
    run.wait_for(|event| matches!(event, Event::TurnStarted { .. }), LIMIT).unwrap();
    let mut told = Value::Null;
    for _ in 0..600 {
        told = ask(&world, &format!("GET {path}"), &json!({})).1;
        if told["status"] == "running" {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(told["status"], "running", "{told}");
    let (status, read) = exec("cat file; pgrep sleep");
    assert_eq!((status, &read["stdout"]), (200, &json!("kept\n")), "{read}");
    assert!(told["billed_microcents"].as_i64().unwrap() > 0, "{told}");
    assert_eq!(ask(&world, &format!("DELETE {path}"), &json!({})).0, 204);
    assert_eq!(ask(&world, &format!("GET {path}"), &json!({})).0, 403);
    run.kill().unwrap();
}
