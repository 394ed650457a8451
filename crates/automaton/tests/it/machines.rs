//! A machine of the cloud that `up` starts: real processes, paid with real credits.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use automaton_core::event::Event;
use automaton_testkit::world::World;
use serde_json::{Value, json};

use super::egress::{WHEEL, server};
use super::livelihood::silent;
use super::paying_world;

const LIMIT: Duration = Duration::from_secs(120);

/// Asks the cloud of a home; status and body.
pub(crate) fn ask(world: &World, line: &str, body: &Value) -> (u16, Value) {
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
    // What cannot be meant is the client's to mend, and is told with what it was.
    let long = "x".repeat(5000);
    let odd = ["", "../up", "/root/../../etc/passwd", "a\0b", &long, "file/below", "/opt", "~"];
    for odd in odd {
        let upload = json!({ "path": odd, "content": "x" });
        let (status, told) = ask(&world, &format!("POST {path}/files/upload/json"), &upload);
        let named = told["error"].as_str().unwrap_or_default();
        assert!(status == 422, "{odd:?}: {status} {told}");
        let shown: String = odd.trim_start_matches('~').chars().take(50).collect();
        let shown = format!("{shown:?}");
        assert!(named.contains(shown.trim_matches('"')), "{odd:?}: {told}");
    }
    for odd in ["", "..%2Fup", "a%00b", "file%2Fbelow", &long] {
        let read = format!("GET {path}/files/read?path={odd}");
        let (status, told) = ask(&world, &read, &json!({}));
        assert!(status == 422, "{odd:?}: {status} {told}");
    }
    for size in [json!(u64::MAX), json!(u32::MAX), json!(81)] {
        let asked = json!({ "name": "huge", "disk_gb": size });
        let (status, told) = ask(&world, "POST /v1/sandboxes", &asked);
        let why = told["error"].as_str().unwrap_or_default();
        assert!(status == 422 && why.contains("80 GiB of disk"), "{size}: {status} {told}");
    }
    assert!(told["billed_microcents"].as_i64().unwrap() > 0, "{told}");
    assert_eq!(ask(&world, &format!("DELETE {path}"), &json!({})).0, 204);
    assert_eq!(ask(&world, &format!("GET {path}"), &json!({})).0, 403);
    run.kill().unwrap();
}

/// A machine of the cloud that a home lives from.
struct Machine<'a> {
    world: &'a World,
    told: Value,
}

impl<'a> Machine<'a> {
    fn rent(world: &'a World) -> Self {
        let (status, told) = ask(world, "POST /v1/sandboxes", &json!({ "name": "m" }));
        assert_eq!((status, &told["status"]), (200, &json!("running")), "{told}");
        Self { world, told }
    }

    fn ask(&self, what: &str, body: &Value) -> Value {
        let (method, rest) = what.split_once(' ').unwrap();
        let path = format!("{method} /v1/sandboxes/{}{rest}", self.told["id"].as_str().unwrap());
        let (status, reply) = ask(self.world, &path, body);
        assert_eq!(status, 200, "{what}: {reply}");
        reply
    }

    fn exec(&self, command: &str) -> Value {
        self.ask("POST /exec", &json!({ "command": command }))
    }

    /// The output of a command that has to succeed.
    fn succeed(&self, command: &str) -> String {
        let ran = self.exec(command);
        assert_eq!(ran["exit_code"], 0, "{ran}");
        ran["stdout"].as_str().unwrap().to_owned()
    }

    fn write(&self, path: &str, content: &str) {
        self.ask("POST /files/upload/json", &json!({ "path": path, "content": content }));
    }

    /// What a stranger gets from a port by its public URL.
    fn visit(&self, port: u16) -> String {
        let told = self.ask("POST /ports/expose", &json!({ "port": port }));
        let place = told["public_url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let (_, at) = place.rsplit_once(':').unwrap();
        // The name leads to this machine, wherever names of `localhost` are resolved.
        let mut stream = TcpStream::connect(format!("127.0.0.1:{at}")).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(stream, "GET / HTTP/1.0\r\nHost: {place}\r\n\r\n").unwrap();
        let mut whole = String::new();
        stream.read_to_string(&mut whole).unwrap();
        whole
    }
}

/// Waits inside until somebody listens.
fn listening(port: u16) -> String {
    format!(
        "bash -c 'for i in $(seq 300); do (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && exit 0; \
         sleep 0.05; done; exit 1'"
    )
}

#[test]
fn a_machine_installs_a_package_from_an_index_that_its_operator_names() {
    let ((_listener, url), index) = (silent(), server());
    let world = paying_world();
    let up = |more: &[&str]| {
        let arguments = [&["--brain", &url, "--ask", "Are you there?"], more].concat();
        world.up(&arguments).unwrap()
    };
    let mut run = up(&["--machine-egress", "files.example", "--machine-egress", &index.origin]);
    run.wait_for(|event| matches!(event, Event::TurnStarted { .. }), LIMIT).unwrap();
    let machine = Machine::rent(&world);
    machine.write("wheel.py", WHEEL);
    let name = "tiny-1.0-py3-none-any.whl";
    let read =
        format!("python3 wheel.py && python3 -c 'print(open(\"{name}\", \"rb\").read().hex())'");
    index.page(&format!("/files/{name}"), hex::decode(machine.succeed(&read).trim()).unwrap());
    index.page("/simple/tiny/", format!("<a href=\"/files/{name}\">{name}</a>"));
    let install = format!(
        "python3 -m pip install --quiet --disable-pip-version-check --retries 0 --target got \
         --index-url {}/simple tiny && PYTHONPATH=got python3 -c 'import tiny; print(tiny.SIZE)'",
        index.origin
    );
    assert_eq!(machine.succeed(&install).trim(), "7");
    assert!(index.requests().iter().any(|head| head.starts_with("GET /files/")));
    let used = machine.ask("GET /metrics", &json!({}));
    assert!(used["egress"]["requests"].as_u64().unwrap() >= 2, "{used}");
    run.kill().unwrap();

    // The same machine, in a cloud that names another place alone.
    let mut run = up(&["--machine-egress", "files.example"]);
    run.wait_for(|event| matches!(event, Event::TurnStarted { .. }), LIMIT).unwrap();
    for _ in 0..600 {
        if machine.ask("GET ", &json!({}))["status"] == "running" {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let before = index.requests().len();
    let refused = machine.exec(&install.replace("--target got", "--target none"));
    assert!(refused["exit_code"] != 0, "{refused}");
    assert_eq!(index.requests().len(), before, "it got out");
    run.kill().unwrap();
}

/// A server that a program in a machine keeps up is fetched by its public URL.
pub(crate) fn serves(file: &str, program: &str, command: &str) {
    let (_listener, url) = silent();
    let world = paying_world();
    let mut run = world.up(&["--brain", &url, "--ask", "Are you there?"]).unwrap();
    run.wait_for(|event| matches!(event, Event::TurnStarted { .. }), LIMIT).unwrap();
    let machine = Machine::rent(&world);
    machine.write(file, program);
    machine.succeed(&format!("(nohup {command} > log 2>&1 &); {}", listening(8000)));
    let page = machine.visit(8000);
    assert!(page.starts_with("HTTP/1.") && page.ends_with("from the machine"), "{page}");
    run.kill().unwrap();
}

#[test]
fn a_python_server_in_a_machine_is_fetched_by_its_public_url() {
    serves("index.html", "from the machine", "python3 -m http.server 8000 --bind 127.0.0.1");
}

#[test]
fn machines_of_no_cloud_reach_nothing_and_what_is_no_place_is_refused() {
    let world = paying_world();
    for (place, why) in [
        ("*", "is no host such as pypi.org"),
        ("http://a.example/x", "has more than scheme, host and port"),
    ] {
        let refused = world.command(&["up", "--machine-egress", place]).unwrap();
        assert!(refused.code == Some(1) && refused.stderr.contains(why), "{refused:?}");
    }
    let (_listener, url) = silent();
    let direct = ["--brain", &url, "--direct", "--machine-egress", "pypi.org"];
    let refused = world.up(&direct).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(refused.code, Some(1), "{refused:?}");
}
