//! The reach of programs in machines, and the load that they may put on the host.
//!
//! The servers are at 127.0.0.2, since `NO_PROXY` sends requests for 127.0.0.1 to the machine's own
//! loopback.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use automaton_sandbox::Launcher;
use serde_json::json;
use tokio::time::Instant;

use crate::town::{Town, run};

pub(crate) const ALL: &[(&str, fn())] = &[
    ("a_machine_reaches_what_the_operator_lists_and_nothing_else", listed),
    ("to_be_started_again_frees_no_machine_of_its_limits", counted),
    ("a_machine_reaches_its_cloud_without_a_proxy", reaches_its_cloud),
    ("two_busy_loops_share_the_one_processor_of_a_machine", busy),
];

/// A server that says hello to everybody; its origin, and how often it did.
fn hello() -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let heard = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&heard);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).unwrap() > 0 {}
            counted.fetch_add(1, Ordering::Relaxed);
            // Who has gone does not hear it.
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"));
        }
    });
    (origin, heard)
}

async fn reaching(egress: serde_json::Value) -> Town {
    let launcher = Launcher::new(std::env::current_exe().unwrap());
    Town::reaching(launcher, &egress.to_string()).await
}

fn listed() {
    run(async {
        let ((named, heard), (other, not_heard)) = (hello(), hello());
        let town = reaching(json!({ "hosts": ["pypi.org"], "origins": [named] })).await;
        let machine = town.machine().await;
        let get = |origin: &str| format!("curl -s -m 20 {origin}/secret?path=1");
        assert_eq!(machine.exec(&get(&named)).await, "hello");
        let refused = machine.exec(&get(&other)).await;
        let why = format!("the operator of the cloud lets machines reach pypi.org, {named}");
        assert!(refused.contains(&why), "{refused}");
        let around = format!("curl -s -m 5 --noproxy '*' {named}/");
        assert_ne!(machine.ask(&around).await.json()["exit_code"], 0, "there is no other way");
        assert_eq!((heard.load(Ordering::Relaxed), not_heard.load(Ordering::Relaxed)), (1, 0));
        let egress = machine.metrics().await["egress"].clone();
        assert_eq!((&egress["requests"], &egress["refused"]), (&json!(1), &json!(1)), "{egress}");
        assert!(egress["bytes"].as_u64().unwrap() > 50, "{egress}");
        let quiet = town.machine().await;
        let all = quiet.metrics().await["egress"].clone();
        assert_eq!(all["requests"], 0, "each machine has a count of its own: {all}");

        // What is ours on its loopback is nobody's port.
        town.post(&machine.path("/ports/expose"), &json!({ "port": 3128 })).await;
        let path = format!("/_at/{}/3128/", machine.short_id);
        assert_eq!(town.get(&path).await.status, 502);

        let closed = Town::new().await;
        let machine = closed.machine().await;
        assert_eq!(machine.exec("env | grep -ci proxy || true").await, "0\n");
        assert!(machine.metrics().await.get("egress").is_none());
    });
}

/// Gets a path of the cloud from a machine, without a proxy.
const ASK_THE_CLOUD: &str = "curl -s -m 20 --noproxy '*' -w ' %{http_code}' $CONWAY_API_URL";

fn reaches_its_cloud() {
    run(async {
        let ((named, _), (other, not_heard)) = (hello(), hello());
        for egress in [json!({}), json!({ "origins": [named] })] {
            let town = reaching(egress).await;
            let machine = town.machine().await;
            let told = machine.exec("echo $CONWAY_API_URL").await;
            assert_eq!(told, "http://127.0.0.1:3128\n");
            let pricing = machine.exec(&format!("{ASK_THE_CLOUD}/v1/credits/pricing")).await;
            assert!(pricing.ends_with(" 200"), "{pricing}");
            // Who asks has to sign in, as from anywhere else.
            let balance = machine.exec(&format!("{ASK_THE_CLOUD}/v1/credits/balance")).await;
            assert!(balance.ends_with(" 401"), "{balance}");
            assert_eq!(town.sign_in_inside("127.0.0.1:3128").await.status, 200);
            assert_eq!(town.sign_in_inside("127.0.0.1:9").await.status, 401);
            // Nothing else of the host is there.
            let around = format!("curl -s -m 5 --noproxy '*' {other}/");
            assert_ne!(machine.ask(&around).await.json()["exit_code"], 0);
            let through = format!("curl -s -m 5 -x $CONWAY_API_URL {other}/");
            let refused = machine.exec(&through).await;
            assert!(refused.contains("lets machines reach"), "{refused}");
            // The way is there again after a stop.
            town.post(&machine.path("/stop"), &json!({})).await;
            town.post(&machine.path("/start"), &json!({})).await;
            let again = machine.exec(&format!("{ASK_THE_CLOUD}/v1/credits/pricing")).await;
            assert!(again.ends_with(" 200"), "{again}");
        }
        assert_eq!(not_heard.load(Ordering::Relaxed), 0);
    });
}

fn counted() {
    run(async {
        let (named, heard) = hello();
        let egress =
            json!({ "origins": [named], "bytes_per_day": 1300, "bytes_per_request": 1300 });
        let town = reaching(egress).await;
        let machine = town.machine().await;
        let get = format!("curl -s -m 20 {named}/{}", "x".repeat(400));
        assert_eq!(machine.exec(&format!("{get}; {get}")).await, "hellohello");
        town.post(&machine.path("/stop"), &json!({})).await;
        town.post(&machine.path("/start"), &json!({})).await;
        // The third is cut off on its way, and no other begins.
        machine.ask(&get).await;
        let refused = machine.exec(&get).await;
        assert!(refused.contains("1300 bytes in a day"), "{refused}");
        assert!(heard.load(Ordering::Relaxed) <= 3);
        let egress = machine.metrics().await["egress"].clone();
        assert_eq!((&egress["requests"], &egress["refused"]), (&json!(3), &json!(1)), "{egress}");
        assert_eq!(egress["bytes_limit"], 1300);
    });
}

fn busy() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let used = async || machine.metrics().await["cpu_ms"].as_u64().map(Duration::from_millis);
        let (begun, Some(before)) = (Instant::now(), used().await) else {
            println!("processors are not limited here");
            return;
        };
        let busy = "timeout 3 sh -c 'while :; do :; done'";
        machine.exec(&format!("({busy} & {busy} & wait)")).await;
        let (spent, wall) = (used().await.unwrap() - before, begun.elapsed());
        println!("two loops in {wall:?} used {spent:?}");
        assert!(spent <= wall.mul_f32(1.3), "{spent:?} of {wall:?}");
        assert!(spent >= Duration::from_millis(200), "{spent:?}");
    });
}
