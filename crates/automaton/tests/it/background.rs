//! What goes on beside the turns, through the real program.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use automaton_core::event::{Event, ReopenedPort};
use automaton_core::faults::FaultPoint;
use automaton_store::{PublicationState, Reader};
use automaton_testkit::world::World;
use serde_json::{Value, json};

use super::egress::labels;
use super::machines::ask;
use super::{paying_world, world};

const LIMIT: Duration = Duration::from_secs(120);

/// A story of one step for each turn, each with these calls.
pub(crate) fn story(turns: &[&[(&str, Value)]]) -> String {
    let mut text = "title = \"hands\"\n".to_owned();
    for (nth, calls) in turns.iter().enumerate() {
        text.push_str(&format!("[[step]]\nsay = \"On {nth}.\"\n"));
        for (tool, arguments) in *calls {
            let fields = arguments.as_object().unwrap().iter();
            let fields: Vec<String> =
                fields.map(|(name, value)| format!("{name} = {value}")).collect();
            let fields = fields.join(", ");
            text.push_str(&format!(
                "[[step.call]]\ntool = \"{tool}\"\narguments = {{ {fields} }}\n"
            ));
        }
    }
    text.push_str("[[step]]\nsay = \"I rest.\"\n");
    text
}

#[test]
fn a_server_goes_on_beside_the_turns_and_commands_reach_it() {
    let serve = "echo hello > index.html; echo up; exec python3 -m http.server 8000";
    let ask = "for i in $(seq 100); do curl -sf http://127.0.0.1:8000/ && break; sleep 0.1; done";
    let turns: &[&[(&str, Value)]] = &[
        &[("start_process", json!({"command": serve})), ("exec", json!({"command": ask}))],
        &[
            ("exec", json!({"command": "sleep 300", "timeout": 300})),
            ("read_process", json!({"process": 1})),
            ("read_process", json!({})),
            ("stop_process", json!({"process": 1})),
            ("read_process", json!({"process": 2})),
            ("exec", json!({"command": "curl -s http://127.0.0.1:8000/ || echo gone"})),
        ],
    ];
    let world = world().story(&story(turns)).unwrap();
    let lived = world.up(&["--turns", "3"]).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(lived.code, Some(0), "{lived:?}");
    let turns = world.command(&["turns", "--json"]).unwrap().stdout;
    for expected in [
        "Process 1 started.",
        "exit_code: 0\\nstdout: hello\\nstderr: ",
        "note: stopped at its time limit",
        "process 1: running\\nstdout: up\\nstderr: ",
        "\\\"GET / HTTP/1.1\\\" 200",
        "[1 processes]",
        "process 1: stopped by its owner",
        "there is no process 2",
        "stdout: gone",
    ] {
        assert!(turns.contains(expected), "{expected}: {turns}");
    }
}

/// What anybody gets who asks for this URL.
#[test]
fn what_was_sent_off_ends_with_the_last_process_that_is_known() {
    let ticking = "i=0; while :; do i=$((i+1)); echo $i > tick; sleep 0.1; done";
    let send_off = format!("(setsid sh -c '{ticking}' > /dev/null 2>&1 &) ; sleep 1; cat tick");
    let turns: &[&[(&str, Value)]] = &[&[
        ("start_process", json!({"command": "sleep 3"})),
        ("exec", json!({"command": send_off})),
    ]];
    let world = world().story(&story(turns)).unwrap();
    let mut run = world.up(&["--ask", "Go."]).unwrap();
    let is_thought = |event: &Event| matches!(event, Event::TurnCommitted { .. });
    run.wait_for(is_thought, LIMIT).unwrap();
    let tick = world.home().join("workspace/tick");
    let mut before = std::fs::read_to_string(&tick).unwrap();
    let is_still = (0..20).any(|_| {
        std::thread::sleep(Duration::from_secs(1));
        let now = std::fs::read_to_string(&tick).unwrap();
        std::mem::replace(&mut before, now.clone()) == now
    });
    assert!(is_still, "{before}");
    run.kill().unwrap();
}

fn visit(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let port: u16 = host.rsplit_once(':').unwrap().1.parse().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(stream, "GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
    let mut whole = String::new();
    stream.read_to_string(&mut whole).unwrap();
    whole
}

#[test]
fn an_automaton_rents_a_machine_and_works_there_when_its_creator_says_so() {
    let config = |sandbox: &str| {
        let limits = json!({ "minimumReserveCents": 0 });
        json!({ "name": "Ada", "genesisPrompt": "Serve.", "sandboxId": sandbox,
            "treasuryPolicy": limits })
        .to_string()
    };
    let first: &[&[(&str, Value)]] = &[&[
        ("create_sandbox", json!({"name": "palace", "vcpu": 4})),
        ("create_sandbox", json!({"name": "shop"})),
        ("list_sandboxes", json!({})),
        ("exec", json!({"command": "echo here > where"})),
    ]];
    let world = paying_world().story(&story(first)).unwrap();
    world.write_home("automaton.json", &config("")).unwrap();
    let lived = world.up(&["--turns", "2"]).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(lived.code, Some(0), "{lived:?}");
    let turns = world.command(&["turns", "--json"]).unwrap().stdout;
    let limit = "$45.00 more pass the $10.00 that may be spent without asking";
    assert!(turns.contains(limit), "{turns}");
    let id = turns.split("Sandbox created: ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    assert!(turns.contains(&format!("{id} [running] shop")), "{turns}");
    let here = world.home().join("workspace/where");
    assert_eq!(std::fs::read_to_string(&here).unwrap(), "here\n", "renting one moves nobody");

    let serve = "nohup python3 -m http.server 8080 --bind 127.0.0.1 > log 2>&1 & \
        for i in $(seq 100); do curl -sf http://127.0.0.1:8080/ > got && break; sleep 0.1; done";
    let second: &[&[(&str, Value)]] = &[
        &[
            ("write_file", json!({"path": "shop/index.html", "content": "for sale"})),
            ("exec", json!({"command": format!("cd shop; {serve}")})),
            ("delete_sandbox", json!({"sandbox_id": id.to_lowercase()})),
            ("expose_port", json!({"port": 8080})),
            ("read_file", json!({"path": "shop/got"})),
            ("list_files", json!({})),
            ("start_process", json!({"command": "true"})),
        ],
        &[("exec", json!({"command": "sleep 1000"}))],
    ];
    std::fs::write(world.dir().join("story.toml"), story(second)).unwrap();
    world.write_home("automaton.json", &config(&id)).unwrap();
    let mut run = world.up(&["--ask", "Open the shop."]).unwrap();
    let is_open =
        |event: &Event| matches!(event, Event::CallStarted { tool, .. } if tool == "start_process");
    run.wait_for(is_open, LIMIT).unwrap();
    let turns = || world.command(&["turns", "--json"]).unwrap().stdout;
    let told =
        (0..200).map(|_| turns()).find(|turns| turns.contains("keeps what a command leaves"));
    let told = told.unwrap();
    let url = told.rsplit("Port 8080 exposed at: ").next().unwrap();
    let url = url.split(['"', '\\', ' ']).next().unwrap();
    assert!(visit(url).ends_with("for sale"), "{url}");
    assert!(told.contains("your own commands and files are on that machine"), "{told}");
    assert!(told.contains("/root/shop/index.html"), "{told}");
    assert!(told.contains(&format!("limits: those of machine {id}")), "{told}");
    assert!(!here.with_file_name("shop").exists(), "nothing of it is on this machine");
    run.kill().unwrap();
    let everybody = ("/root".to_owned(), "web".to_owned());
    assert!(labels(&world).contains(&everybody), "who can be visited may have others' words");

    // What is no machine is no reason to run commands here.
    for none in ["null", "../x", "a b"] {
        world.write_home("automaton.json", &config(none)).unwrap();
        let wrong = world.up(&["--turns", "1"]).unwrap().finish_within(LIMIT).unwrap();
        assert!(wrong.code == Some(1) && wrong.stderr.contains("`sandboxId`"), "{wrong:?}");
    }
}

#[test]
fn without_a_cloud_nothing_opens_a_port_of_the_sandbox_here() {
    let turns: &[&[(&str, Value)]] = &[&[("expose_port", json!({"port": 8080}))]];
    let world = world().story(&story(turns)).unwrap();
    let lived = world.up(&["--turns", "2"]).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(lived.code, Some(0), "{lived:?}");
    let turns = world.command(&["turns", "--json"]).unwrap().stdout;
    assert!(turns.contains("There is no tool 'expose_port'"), "{turns}");
}

#[test]
fn a_port_of_the_sandbox_here_is_opened_through_the_cloud_and_no_other_one_is() {
    let server = |port: u16| format!("python3 -m http.server {port} --bind 127.0.0.1 2>/dev/null");
    let serve = format!("echo hello > index.html; {} & exec {}", server(8001), server(8000));
    let up = "for port in 8000 8001; do for i in $(seq 100); do \
              curl -sf http://127.0.0.1:$port/ && break; sleep 0.1; done; done";
    let until = |file: &str| format!("until [ -e {file} ]; do sleep 0.1; done");
    let turns: &[&[(&str, Value)]] = &[
        &[
            ("start_process", json!({"command": serve})),
            ("exec", json!({"command": up})),
            ("expose_port", json!({"port": 8000})),
        ],
        &[
            ("exec", json!({"command": until("go"), "timeout": 60_000})),
            ("remove_port", json!({"port": 8000})),
        ],
        &[("exec", json!({"command": until("end"), "timeout": 60_000}))],
    ];
    let world = paying_world().story(&story(turns)).unwrap();
    let config = json!({ "name": "Ada", "genesisPrompt": "Serve.",
        "treasuryPolicy": { "minimumReserveCents": 0 } });
    world.write_home("automaton.json", &config.to_string()).unwrap();
    let mut run = world.up(&["--ask", "Open the shop."]).unwrap();
    let is_second = |event: &Event| matches!(event, Event::TurnStarted { seq, .. } if *seq == 2);
    run.wait_for(is_second, LIMIT).unwrap();
    let turns = || world.command(&["turns", "--json"]).unwrap().stdout;
    let told = turns();
    let url = told.split("Port 8000 exposed at: ").nth(1).unwrap_or_else(|| panic!("{told}"));
    let url = url.split(['"', '\\', ' ']).next().unwrap();
    for _ in 0..6 {
        let page = visit(url);
        assert!(page.contains(" 200 OK") && page.ends_with("hello\n"), "{page}");
    }

    // The cloud may ask for what it likes: only what was published here is reached.
    let (status, tunnel) = ask(&world, "POST /v1/tunnels", &json!({}));
    assert_eq!(status, 200, "{tunnel}");
    let path = format!("/v1/sandboxes/{}/ports/expose", tunnel["id"].as_str().unwrap());
    let (status, other) = ask(&world, &format!("POST {path}"), &json!({ "port": 8001 }));
    assert_eq!(status, 200, "{other}");
    let other = visit(other["public_url"].as_str().unwrap());
    assert!(other.contains(" 502 ") && !other.contains("hello"), "{other}");

    std::fs::write(world.home().join("workspace/go"), "").unwrap();
    run.wait_for(|event| matches!(event, Event::TurnStarted { seq, .. } if *seq == 3), LIMIT)
        .unwrap();
    assert!(turns().contains("Port 8000 removed"), "{}", turns());
    assert!(visit(url).contains(" 404 "));
    run.kill().unwrap();
}

/// Serves a page at port 8000 of the sandbox.
const SERVE: &str = "echo run >> runs; echo hello > index.html; \
                     exec python3 -m http.server 8000 --bind 127.0.0.1";
/// Waits for that page.
const UP: &str =
    "for i in $(seq 100); do curl -sf http://127.0.0.1:8000/ && break; sleep 0.1; done";

/// A world whose automaton has published a page and was killed in its sleep.
fn world_with_shop() -> World {
    let first: &[&[(&str, Value)]] = &[&[
        ("start_process", json!({"command": SERVE})),
        ("exec", json!({"command": UP})),
        ("expose_port", json!({"port": 8000})),
    ]];
    let world = paying_world().story(&story(first)).unwrap();
    let config = json!({ "name": "Ada", "genesisPrompt": "Serve." });
    world.write_home("automaton.json", &config.to_string()).unwrap();
    let mut run = world.up(&["--ask", "Open the shop."]).unwrap();
    run.wait_for(|event| matches!(event, Event::SleepStarted { .. }), LIMIT).unwrap();
    run.kill().unwrap();
    world
}

#[test]
fn after_a_crash_at_every_point_of_its_reopening_a_port_is_open_or_given_up_and_told() {
    for point in FaultPoint::PORT {
        let charge = point.to_string();
        let world = world_with_shop();
        std::fs::write(world.dir().join("story.toml"), story(&[])).unwrap();
        let mut run = world.up(&["--fault", &charge]).unwrap();
        run.wait_for(|event| matches!(event, Event::AgentRestarted { .. }), LIMIT)
            .unwrap_or_else(|error| panic!("{charge}: {error}"));
        let fired = std::fs::read_to_string(world.home().join(".rehearsal-fired")).unwrap();
        assert_eq!(fired.trim(), charge, "the crash came");
        let runs = || std::fs::read_to_string(world.home().join("workspace/runs")).unwrap();
        let published = || Reader::open(&world.state_db()).unwrap().published_ports().unwrap();
        if point == FaultPoint::PortReopened {
            // Its outcome is on record, and the next start opens it once more.
            run.wait_for(|event| matches!(event, Event::PortReopened { .. }), LIMIT).unwrap();
            assert_eq!(published()[0].state, PublicationState::Open, "{charge}");
        } else {
            // Nothing runs twice: the creator is told, and the automaton wakes and is told.
            let is_told = |event: &Event| {
                matches!(event, Event::ErrorReported { error, .. }
                if error.contains("port 8000 was not opened again"))
            };
            run.wait_for(is_told, LIMIT).unwrap_or_else(|error| panic!("{charge}: {error}"));
            let is_woken = |event: &Event| {
                matches!(event, Event::WakeStarted { causes, .. }
                if causes.iter().any(|it| it.reason.text.starts_with("Port 8000, which you had")))
            };
            run.wait_for(is_woken, LIMIT).unwrap_or_else(|error| panic!("{charge}: {error}"));
            assert_eq!(published(), [], "{charge}");
            let started = if point == FaultPoint::PortReopening { 1 } else { 2 };
            assert!(runs().lines().count() <= started, "{charge}: {}", runs());
        }
        run.kill().unwrap();
    }
}

#[test]
fn a_published_server_comes_back_after_a_restart_and_one_visitor_needs_no_new_approval() {
    let world = world_with_shop();

    // Its server and its port are there again, before any model is asked.
    let second: &[&[(&str, Value)]] = &[
        &[("read_process", json!({})), ("exec", json!({"command": UP}))],
        &[("expose_port", json!({"port": 8000}))],
    ];
    std::fs::write(world.dir().join("story.toml"), story(second)).unwrap();
    let mut run = world.up(&[]).unwrap();
    let is_open = |event: &Event| matches!(event, Event::PortReopened { .. });
    let reopened = run.wait_for(is_open, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let Event::PortReopened(ReopenedPort { port: 8000, url }) = reopened.event else {
        panic!("{reopened:?}")
    };
    let url = url.split(' ').next().unwrap();
    let served = (0..100).map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        visit(url)
    });
    let page = served.into_iter().find(|page| page.contains(" 200 OK")).unwrap();
    assert!(page.ends_with("hello\n"), "{page}");

    // What the visitor may have left is heard, and the same port is opened again all the same.
    let status: Value =
        serde_json::from_str(&world.command(&["status", "--json"]).unwrap().stdout).unwrap();
    assert_eq!(status["published"][0]["port"], json!(8000), "{status}");
    world.command(&["send", "Is it still up?"]).unwrap();
    let is_opened =
        |event: &Event| matches!(event, Event::CallFinished { tool, .. } if tool == "expose_port");
    run.wait_for(is_opened, LIMIT).unwrap();
    let turns = world.command(&["turns", "--json"]).unwrap().stdout;
    assert_eq!(turns.matches("Port 8000 exposed at: ").count(), 2, "{turns}");
    let asked = world.command(&["approvals", "list", "--json"]).unwrap().stdout;
    assert!(!asked.contains("expose_port"), "{asked}");
    assert!(labels(&world).contains(&("/root".to_owned(), "web".to_owned())));
    run.kill().unwrap();
}
