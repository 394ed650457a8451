//! A life that pays for itself: the automaton is born broke, with a key of its own,
//! and buys what it thinks with. Chain, cloud, signer and agent are real processes.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use automaton_core::books::Books;
use automaton_core::event::{Event, Service, StampedEvent};
use automaton_core::faults::FaultPoint;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Clock, Span, SystemClock};
use automaton_script::fault::FIRED;
use automaton_testkit::world::{ProcessOutput, World};

use super::bad_input::unshared;
use super::paying_world;

/// Long enough for key derivations on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);
const FIVE: MicroUsdc = MicroUsdc::new(5_000_000);

fn live(world: &World, arguments: &[&str]) -> ProcessOutput {
    let finished = world.up(arguments).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{arguments:?}\n{}\n{}", finished.stdout, finished.stderr);
    finished
}

/// Where the first event that passes stands.
fn place(events: &[StampedEvent], wanted: impl Fn(&Event) -> bool) -> usize {
    events.iter().position(|stamped| wanted(&stamped.event)).unwrap()
}

fn count(events: &[StampedEvent], wanted: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|stamped| wanted(&stamped.event)).count()
}

/// Exactly one payment of 5 USDC, and four books that say so.
pub(crate) fn check_books(events: &[StampedEvent], what: &str) -> Books {
    let checked = events.iter().rev().find_map(|stamped| match &stamped.event {
        Event::BooksChecked { books, agree } => Some((*books, *agree)),
        _ => None,
    });
    let (books, agree) = checked.unwrap();
    assert!(agree && books.agree(), "{what}: {books:?}");
    assert_eq!((books.paid, books.moved, books.signed), (FIVE, Some(FIVE), Some(FIVE)), "{what}");
    assert_eq!(books.bought, Microcents::from_cents(500).unwrap(), "{what}");
    assert!(books.computed > Microcents::ZERO && books.answers > 0, "{what}: {books:?}");
    books
}

/// A server that takes questions and gives no answers.
pub(crate) fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// Lists two models, and answers nothing else.
fn lists(listener: &TcpListener) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut question = [0; 65536];
        let read = stream.read(&mut question).unwrap();
        let listed = question[..read].starts_with(b"GET /v1/models ");
        let (status, body) = match listed {
            true => (200, r#"{"data": [{"id": "big"}, {"id": "small"}]}"#),
            false => (500, "{}"),
        };
        let head = "content-type: application/json\r\nconnection: close";
        let length = body.len();
        // A client that has gone needs no answer.
        write!(stream, "HTTP/1.1 {status} .\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}")
            .unwrap_or_default();
    }
}

#[test]
fn a_cheaper_model_that_its_server_does_not_list_is_told_once_and_left_out() {
    let (listener, url) = silent();
    std::thread::spawn(move || lists(&listener));
    let world = paying_world();
    let config = r#"{"name": "a", "genesisPrompt": "b", "modelStrategy":
        {"lowComputeModel": "small", "criticalModel": "absent"}}"#;
    world.write_home("automaton.json", config).unwrap();
    let mut run = world.up(&["--brain", &url, "--brain-model", "big"]).unwrap();
    run.wait_for(|event| matches!(event, Event::BrainReady { .. }), LIMIT).unwrap();
    let lacking = |event: &Event| match event {
        Event::ErrorReported { error, .. } => error.contains("are not to be had: absent"),
        _ => false,
    };
    let events = run.events();
    assert_eq!(count(&events, lacking), 1, "{events:?}");
    assert_eq!(
        count(&events, |event| matches!(event, Event::BrainReady { model, .. } if model == "big")),
        1
    );
    run.kill().unwrap();
}

#[test]
fn the_second_signal_ends_everything_at_once_and_the_next_start_goes_on() {
    let (_listener, url) = silent();
    let world = paying_world();
    let mut run = world.up(&["--brain", &url, "--ask", "Are you there?"]).unwrap();
    run.wait_for(|event| matches!(event, Event::TurnStarted { .. }), LIMIT).unwrap();
    let agent = run.agent_pid().unwrap();
    run.signal("INT").unwrap();
    let began = SystemClock.now();
    run.wait_for(|event| matches!(event, Event::StopRequested { .. }), LIMIT).unwrap();
    run.signal("INT").unwrap();
    let finished = run.finish_within(LIMIT).unwrap();
    // One answer that is paid for would be waited for longer than that.
    let took = SystemClock.now().since(began);
    assert!(took < Span::from_secs(6), "{took}");
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(!Path::new(&format!("/proc/{agent}")).exists());
    let story = "title = \"t\"\n[[step]]\nexpect.news = \"Are you there?\"\nsay = \"I am.\"\n";
    fs::write(world.dir().join("answer.toml"), story).unwrap();
    live(&world, &["--brain", "script:answer.toml"]);
    let status = world.command(&["status", "--json"]).unwrap().stdout;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let wallet = world.command(&["wallet", "show", "--json"]).unwrap().stdout;
    let wallet: serde_json::Value = serde_json::from_str(&wallet).unwrap();
    let address = wallet["address"].as_str().unwrap();
    assert_eq!(status["address"], address);
    // It knows where it is paid, and so does whoever reads what it thinks of itself.
    let prompt = world.command(&["prompt"]).unwrap().stdout;
    let told = format!("Your wallet has the Ethereum address {address}").to_lowercase();
    assert!(prompt.to_lowercase().contains(&told), "{prompt}");
    let shown = world.command(&["soul", "show"]).unwrap().stdout;
    let file = fs::read_to_string(world.home().join("SOUL.md")).unwrap();
    assert!(file.to_lowercase().contains(&format!("\naddress: {address}\n")), "{file}");
    assert_eq!(shown.trim_end(), file.trim_end());
    assert_eq!(
        (&status["record"]["chain_whole"], &status["inbox"]["processed"]),
        (&true.into(), &1.into())
    );
}

#[test]
fn it_is_born_broke_and_buys_its_compute() {
    let world = paying_world();
    let events = live(&world, &["--brain", "script", "--turns", "5"]).events;
    let created = place(&events, |event| matches!(event, Event::WalletCreated { .. }));
    let funded = place(
        &events,
        |event| matches!(event, Event::WalletFunded { amount, .. } if amount.units() == 20_000_000),
    );
    let broke = place(&events, |event| {
        *event
            == Event::BalancesRead {
                credits: Some(Microcents::ZERO),
                usdc: Some(MicroUsdc::new(20_000_000)),
                tier: Some(SurvivalTier::Critical),
            }
    });
    let demanded = place(
        &events,
        |event| matches!(event, Event::TopupDemanded { usd: 5, amount, .. } if *amount == FIVE),
    );
    let settled = place(&events, |event| {
        let credits = Some(Microcents::new(500_000_000));
        matches!(event, Event::TopupSettled { credits: now, .. } if *now == credits)
    });
    let thought = place(&events, |event| matches!(event, Event::InferenceCompleted { .. }));
    let order = [created, funded, broke, demanded, settled, thought];
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(count(&events, |event| matches!(event, Event::TurnCommitted { .. })), 5);
    assert_eq!(count(&events, |event| matches!(event, Event::TopupSettled { .. })), 1);
    check_books(&events, "five turns");
    let costs = events.iter().filter_map(|stamped| match &stamped.event {
        Event::InferenceCompleted { cost, .. } => Some(cost.units()),
        _ => None,
    });
    let Event::BooksChecked { books, .. } =
        &events[place(&events, |event| matches!(event, Event::BooksChecked { .. }))].event
    else {
        unreachable!("it was found by its name")
    };
    assert_eq!(books.computed.units(), costs.sum::<i64>());
    assert!(fs::read_dir(world.dir()).unwrap().count() >= 3, "home, signer, dev stack");

    // A second start finds wallet, account and credits where they were.
    let again = live(&world, &["--brain", "script", "--turns", "1"]).events;
    let anew = |event: &Event| {
        matches!(
            event,
            Event::WalletCreated { .. }
                | Event::WalletFunded { .. }
                | Event::AccountOpened { .. }
                | Event::TopupDemanded { .. }
        )
    };
    assert_eq!(count(&again, anew), 0);
    check_books(&again, "a second start");

    // Nobody runs it now, nor what it lives from, and whoever asks is told so.
    let passphrase = world.dir().join("passphrase").display().to_string();
    fs::write(&passphrase, "none").unwrap();
    fs::set_permissions(&passphrase, fs::Permissions::from_mode(0o600)).unwrap();
    for asked in
        [&["fund", "1"][..], &["credits"], &["topup", "5", "--passphrase-file", &passphrase]]
    {
        let refused = world.command(asked).unwrap();
        assert_eq!(refused.code, Some(2), "{asked:?}: {}", refused.stderr);
        let told = refused.stderr.contains("cloud and chain run only during `automaton up`");
        assert!(told, "{asked:?}: {}", refused.stderr);
    }
    let status = world.command(&["status"]).unwrap().stdout;
    assert!(status.contains("working when it stopped"), "{status}");
}

/// A crash between the intent and the books, in whichever process it is: one
/// payment, no help.
fn crash_at(charges: impl IntoIterator<Item = String>) {
    for charge in charges {
        let world = paying_world();
        let arguments = ["--brain", "script", "--turns", "1", "--fault", &charge];
        let events = live(&world, &arguments).events;
        // A run that ends with the crash has nobody to start again.
        assert!(world.home().join(FIRED).exists(), "{charge}: nothing crashed");
        check_books(&events, &charge);
    }
}

#[test]
fn a_crash_of_the_agent_at_any_point_of_a_payment_pays_once() {
    crash_at(FaultPoint::PAYMENT.map(|point| point.to_string()));
}

#[test]
fn a_crash_of_the_signer_at_any_point_of_a_payment_pays_once() {
    crash_at(FaultPoint::SIGNER.map(|point| point.to_string()));
}

#[test]
fn a_crash_of_the_cloud_at_any_point_of_a_payment_pays_once() {
    crash_at(FaultPoint::CLOUD.map(|point| point.to_string()));
}

#[test]
fn a_crash_of_the_chain_at_any_point_of_a_payment_pays_once() {
    // Its third act is the transfer: gas for the cloud and the gift come before it.
    crash_at(FaultPoint::CHAIN.map(|point| format!("{point}:3")));
}

/// In namespaces whose only interface is the loopback.
#[test]
fn without_any_network_it_lives_all_the_same() {
    let script = "PATH=$PATH:/usr/sbin:/sbin ip link set lo up\n\
                  test \"$(grep -c : /proc/net/dev)\" = 1\n\
                  \"$1\" up --scratch --brain script --turns 2 --json\n";
    if !["/usr/sbin/ip", "/sbin/ip"].iter().any(|ip| Path::new(ip).exists()) {
        eprintln!("not run: iproute2 is missing, so that no loopback can be brought up");
        return;
    }
    let finished = unshared(&paying_world(), &["--net"], script);
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    check_books(&finished.events, "offline");
}

#[test]
fn a_disk_that_is_full_costs_no_second_payment() {
    for size in ["320k", "380k", "440k", "480k"] {
        let script = format!(
            "mkdir \"$2/small\"\n\
             mount -t tmpfs -o size={size},mode=700 tmpfs \"$2/small\"\n\
             set -- \"$1\" up --brain script --turns 2 --json --home \"$2/small/home\"\n\
             \"$@\" >/dev/null 2>\"${{9%/small/home}}/said\" && exit 9\n\
             grep -q \"hint: Free some disk space\" \"${{9%/small/home}}/said\"\n\
             mount -o remount,size=50m tmpfs \"${{9%/home}}\"\n\
             \"$@\"\n"
        );
        let finished = unshared(&paying_world(), &["--mount"], &script);
        assert_eq!(finished.code, Some(0), "{size}: {}\n{}", finished.stdout, finished.stderr);
        check_books(&finished.events, size);
    }
}

#[test]
fn a_service_that_is_killed_comes_back_where_it_was() {
    let world = paying_world();
    let rest = |nth: u32| {
        format!(
            "[[step]]\nsay = \"I rest, {nth}.\"\n[[step.call]]\ntool = \"sleep\"\n\
             arguments = {{ duration_seconds = 600 }}\n"
        )
    };
    let story = (1..=4).map(rest).fold("title = \"a wait\"\n".to_owned(), |all, one| all + &one);
    let world = world.story(&story).unwrap();
    for (name, service) in [
        ("automaton-cloud", Service::Cloud),
        ("automaton-chain", Service::Chain),
        ("automaton-signer", Service::Signer),
    ] {
        // Each rest of a run of so many turns takes a second.
        let mut run = world.up(&["--turns", "4"]).unwrap();
        run.wait_for(|event| matches!(event, Event::TurnCommitted { .. }), LIMIT).unwrap();
        run.kill_child(name).unwrap();
        let finished = run.finish_within(LIMIT).unwrap();
        assert_eq!(finished.code, Some(0), "{name}\n{}\n{}", finished.stdout, finished.stderr);
        let restarted = |event: &Event| matches!(event, Event::ServiceRestarted { service: which, .. } if *which == service);
        assert_eq!(count(&finished.events, restarted), 1, "{name}\n{}", finished.stdout);
        check_books(&finished.events, name);
    }
}

#[test]
fn a_signer_outlives_its_agents() {
    let world = paying_world();
    let mut run = world.up(&["--brain", "script", "--turns", "2"]).unwrap();
    run.wait_for(|event| matches!(event, Event::TurnCommitted { .. }), LIMIT).unwrap();
    let signer = run.child_pid("automaton-signer");
    assert!(signer.is_some());
    let begun = run.kill_agent().unwrap();
    run.wait_for(|event| matches!(event, Event::BrainReady { .. }), LIMIT).unwrap();
    assert_ne!(run.agent_pid(), Some(begun));
    assert_eq!(run.child_pid("automaton-signer"), signer);
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    check_books(&finished.events, "another agent");
}

#[test]
fn a_service_that_dies_before_the_agent_is_ready_is_outlived() {
    let world = paying_world();
    let mut run = world.up(&["--brain", "script", "--turns", "1"]).unwrap();
    let cloud =
        |event: &Event| matches!(event, Event::ServiceReady { service: Service::Cloud, .. });
    run.wait_for(cloud, LIMIT).unwrap();
    run.kill_child("automaton-cloud").unwrap();
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    check_books(&finished.events, "an early death");
}

#[test]
fn a_stop_ends_all_and_starts_nothing_again() {
    let world = paying_world();
    let story = "title = \"rest\"\n[[step]]\nsay = \"I rest.\"\n[[step.call]]\ntool = \"sleep\"\n\
                 arguments = { duration_seconds = 600 }\n[[step]]\nsay = \"Never.\"\n";
    let world = world.story(story).unwrap();
    for _ in 0..3 {
        let mut run = world.up(&[]).unwrap();
        run.wait_for(|event| matches!(event, Event::SleepStarted { .. }), LIMIT).unwrap();
        let children =
            ["automaton-agent", "automaton-signer", "automaton-cloud", "automaton-chain"]
                .map(|name| run.child_pid(name).unwrap());
        let stopped = world.command(&["stop"]).unwrap();
        assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
        let finished = run.finish_within(LIMIT).unwrap();
        let died = |event: &Event| {
            matches!(event, Event::AgentRestarted { .. } | Event::ServiceRestarted { .. })
        };
        assert_eq!(count(&finished.events, died), 0, "{}", finished.stdout);
        for pid in children {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} lives on");
        }
    }
}

#[test]
fn a_life_that_is_thrown_away_leaves_nothing() {
    let world = paying_world();
    let before = fs::read_dir(world.dir()).unwrap().count();
    let arguments = ["up", "--scratch", "--brain", "script", "--turns", "1", "--json"];
    let finished = world.start(&arguments).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    assert_eq!(fs::read_dir(world.dir()).unwrap().count(), before, "in TMPDIR, the world's own");
}

/// Whether a process has any of these in a place that it may write to.
fn memory_holds(pid: u32, wanted: &[&[u8]]) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let firsts: Vec<u8> = wanted.iter().map(|bytes| bytes[0]).collect();
    let holds = |line: &str| {
        let (range, rest) = line.split_once(' ').unwrap();
        let (from, to) = range.split_once('-').unwrap();
        let bound = |text| u64::from_str_radix(text, 16).unwrap();
        if !rest.starts_with("rw") {
            return false;
        }
        let mut seen = vec![0; usize::try_from(bound(to) - bound(from)).unwrap()];
        let read =
            memory.seek(SeekFrom::Start(bound(from))).and_then(|_| memory.read_exact(&mut seen));
        // What goes away while it is looked for is not what a core image would hold.
        if read.is_err() {
            return false;
        }
        (0..seen.len()).any(|at| {
            firsts.contains(&seen[at]) && wanted.iter().any(|bytes| seen[at..].starts_with(bytes))
        })
    };
    maps.lines().any(holds)
}

#[test]
fn the_key_is_in_the_signers_memory_and_nowhere_else() {
    let world = paying_world();
    let story = "title = \"a look\"\n[[step]]\nsay = \"I look around.\"\n[[step.call]]\n\
                 tool = \"exec\"\narguments = { command = \"env; ls -la / /root\" }\n\
                 [[step]]\nsay = \"I wait.\"\n[[step.call]]\ntool = \"exec\"\n\
                 arguments = { command = \"sleep 100\", timeout = 110000 }\n\
                 [[step]]\nsay = \"Done.\"\n";
    let world = world.story(story).unwrap();
    let mut run = world.up(&[]).unwrap();
    let waits = |event: &Event| matches!(event, Event::CallStarted { arguments, .. } if arguments.contains("sleep"));
    run.wait_for(waits, LIMIT).unwrap();
    let pid = |name: &str| run.child_pid(name).unwrap();
    let (agent, signer) = (pid("automaton-agent"), pid("automaton-signer"));
    let (cloud, chain) = (pid("automaton-cloud"), pid("automaton-chain"));
    // Only root may look into processes that are closed to others.
    let looks = File::open(format!("/proc/{agent}/mem")).is_ok();
    let passphrase = world.dir().join("home-signer/passphrase").display().to_string();
    let exported = world.start(&["export-key", "--passphrase-file", &passphrase]).unwrap();
    let exported = exported.finish_within(LIMIT).unwrap();
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let digits = exported.stdout.trim().trim_start_matches("0x").to_owned();
    let key: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect();
    if looks {
        let program = fs::read_link(format!("/proc/{signer}/exe")).unwrap();
        assert!(program.ends_with("automaton-signer"), "it has no more code than it needs");
        assert!(memory_holds(signer, &[&key]), "the search must find what is there");
        let account = fs::read_to_string(world.home().join("cloud-key.json")).unwrap();
        let account: serde_json::Value = serde_json::from_str(&account).unwrap();
        let known = account["key"].as_str().unwrap();
        assert!(memory_holds(agent, &[known.as_bytes()]), "here too");
        for other in [agent, cloud, chain, run.pid()] {
            assert!(!memory_holds(other, &[&key, digits.as_bytes()]), "{other} holds the key");
        }
    } else {
        eprintln!("not searched: only root may look into these processes");
    }
    for other in [agent, signer, cloud, chain] {
        // As root; to others these processes are closed.
        let environment = fs::read(format!("/proc/{other}/environ")).unwrap_or_default();
        assert!(environment.is_empty(), "{other}: {}", String::from_utf8_lossy(&environment));
    }
    run.kill().unwrap();
    let secret = fs::read_to_string(&passphrase).unwrap();
    let log = fs::read_to_string(world.home().join("events.jsonl")).unwrap();
    assert!(log.contains("call.finished"), "what commands see is in there: {log}");
    assert!(!log.contains(&digits) && !log.contains(secret.trim()), "{log}");
}
