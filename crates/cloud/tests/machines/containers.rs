//! Machines that are containers.

use std::path::Path;

use automaton_core::time::Span;
use serde_json::json;

use crate::peers::{podman, rents};
use crate::ports::expose;
use crate::town::{CONTAINERS, Machine, Town, UPSTREAM, run};
use crate::world::{World, get, until};

/// The containers that there are.
fn names() -> String {
    podman(&["ps", "--all", "--format", "{{.Names}}"])
}

pub(crate) fn held() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let reply = machine.ask("echo out; echo err >&2; pwd; exit 3").await;
        assert_eq!(
            reply.json(),
            json!({ "stdout": "out\n/root\n", "stderr": "err\n", "exit_code": 3, "exitCode": 3,
                "isolated": true })
        );
        let body = json!({ "command": "echo begun; sleep 61 & sleep 62 | cat", "timeout": 700 });
        let late = town.post(&machine.path("/exec"), &body).await.json();
        assert_eq!((&late["exit_code"], &late["stdout"]), (&json!(124), &json!("begun\n")));
        assert_eq!(late["stderr"], "[stopped at its time limit]\n");
        machine.exec("! ps -o args | grep -q '^sleep 6[12]'").await;
        let much = machine.exec("head -c 2000000 /dev/zero | tr '\\0' x; echo end").await;
        assert!(much.len() < 600_000 && much.ends_with("xend\n"), "{}", much.len());
        assert!(much.contains("bytes omitted"));

        let status = machine.exec("cat /proc/self/status").await;
        for line in ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"] {
            assert!(status.contains(line), "{line}: {status}");
        }
        assert_eq!(machine.exec("ls /sys/class/net").await, "lo\n");
        let environment = machine.exec("env").await.to_ascii_lowercase();
        assert!(!environment.contains("proxy"), "{environment}");
        // Nothing of the host's: its only other file systems are those that podman makes.
        machine.exec("! grep -v ' /dev\\| /proc\\| /sys\\| /etc\\| /run\\| / ' /proc/mounts").await;
        let many = "! (n=0; while [ $n -lt 600 ]; do sleep 2 & n=$((n + 1)); done) 2>/dev/null";
        machine.exec(many).await;
        let works = async || machine.ask("true").await.json()["exit_code"] == 0;
        until("there is room for processes again", works).await;
        let hog = machine.ask("tail /dev/zero").await;
        assert_ne!((hog.status, &hog.json()["exit_code"]), (200, &json!(0)), "{hog:?}");
        until("it runs commands again", works).await;

        // What is orphaned is reaped.
        machine.exec("(true & true &)").await;
        let reaped = "! cat /proc/[0-9]*/stat | grep -q ') Z '";
        until("nobody dead is left", async || machine.ask(reaped).await.json()["exit_code"] == 0)
            .await;
        let metrics = machine.metrics().await;
        for name in ["memory_bytes", "cpu_ms", "processes", "disk_bytes"] {
            assert!(metrics[name].as_u64().unwrap() > 0, "{name}: {metrics}");
        }
        machine.exec("head -c 3000000 /dev/zero > big").await;
        machine.billed(Span::from_secs(60), 2).await;
        until("it is counted", async || {
            machine.metrics().await["disk_bytes"].as_u64().unwrap() > 3_000_000
        })
        .await;
    });
}

pub(crate) fn served() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        machine.exec("mkdir site && echo hello > site/index.html").await;
        machine.exec("httpd -p 127.0.0.1:9000 -h /root/site").await;
        let path = |port: u16| format!("/_at/{}/{port}/", machine.short_id);
        let at = town.world.at();
        for port in [9000, 9001] {
            expose(&machine, port).await;
        }
        let reply = get(at, &path(9000), &[]).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, "hello\n"), "{reply:?}");
        assert_eq!(get(at, &path(9001), &[]).await.status, 502, "nobody listens");

        let stopped = town.post(&machine.path("/stop"), &json!({})).await.json();
        assert_eq!(stopped["status"], "stopped");
        assert_eq!(machine.ask("true").await.status, 409);
        let still = machine.read("site/index.html").await;
        assert_eq!(still.status, 409, "its files are where nobody runs: {still:?}");
        assert_eq!(get(at, &path(9000), &[]).await.status, 502);
        let started = town.post(&machine.path("/start"), &json!({})).await.json();
        assert_eq!(started["status"], "running");
        assert_eq!(machine.read("site/index.html").await.body, "hello\n");
        machine.exec("! ps | grep -q '[h]ttpd'").await;
        let container = format!("automaton-{}\n", machine.id);
        assert_eq!(names(), container);
        assert_eq!(town.delete(&machine.path("")).await.status, 204);
        assert_eq!(names(), "");
    });
}

/// Gets a path of the cloud from a machine, with its head. The `wget` of a static `busybox` needs
/// libraries that the image does not have.
fn asking(path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n");
    // A client that has closed its side is gone, for the server.
    format!("(printf '{request}'; sleep 1) | timeout 20 nc 127.0.0.1 ${{CONWAY_API_URL##*:}}")
}

/// A machine asks its cloud for what everybody is told, and for what only its owner is.
async fn asks_its_cloud(machine: &Machine<'_>) {
    let pricing = machine.exec(&asking("/v1/credits/pricing")).await;
    assert!(pricing.starts_with("HTTP/1.1 200 "), "{pricing}");
    let balance = machine.exec(&asking("/v1/credits/balance")).await;
    assert!(balance.starts_with("HTTP/1.1 401 "), "{balance}");
}

pub(crate) fn reached() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let told = machine.exec("echo $CONWAY_API_URL").await;
        assert_eq!(told, "http://127.0.0.1:3128\n");
        asks_its_cloud(&machine).await;
        assert_eq!(town.sign_in_inside("127.0.0.1:3128").await.status, 200);
        // Another machine has a way of its own, and a port that a program there takes is no way.
        let other = town.machine().await;
        asks_its_cloud(&other).await;
        assert_ne!(
            machine.ask("nc -l -p 3128 -s 127.0.0.1 </dev/null").await.json()["exit_code"],
            0
        );
        // Nothing else of the host is there, and nobody comes in where the way is.
        let host = town.world.at();
        let dial = format!("timeout 5 nc {} {} </dev/null", host.ip(), host.port());
        let around = machine.ask(&dial).await;
        assert_ne!(around.json()["exit_code"], 0, "{around:?}");
        expose(&machine, 3128).await;
        let path = format!("/_at/{}/3128/", machine.short_id);
        assert_eq!(get(host, &path, &[]).await.status, 502);
        // The way is there again after a stop of the machine, and after a crash of the cloud.
        town.post(&machine.path("/stop"), &json!({})).await;
        town.post(&machine.path("/start"), &json!({})).await;
        asks_its_cloud(&machine).await;
        let (id, short_id) = (machine.id.clone(), machine.short_id.clone());
        let town = town.crash().await;
        let machine = Machine { town: &town, id, short_id };
        machine.until("it is found again", |told| told["status"] == "running").await;
        asks_its_cloud(&machine).await;
    });
}

pub(crate) fn outlived() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let id = machine.id.clone();
        machine.exec("echo kept > file; sleep 1000 >/dev/null 2>&1 &").await;
        let stopped = town.machine().await;
        let stopped_id = stopped.id.clone();
        town.post(&stopped.path("/stop"), &json!({})).await;
        let lost = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let label = format!("automaton.cloud={}", town.home().display());
        let orphan = format!("automaton-{lost}");
        podman(&["create", "--name", &orphan, "--label", &label, "automaton-machine", "true"]);
        let other = ["create", "--name", "automaton-01ARZ3NDEKTSV4RRFFQ69G5FAW"];
        let rest = ["--label", "automaton.cloud=/other", "automaton-machine", "true"];
        podman(&[&other[..], &rest].concat());

        town.world.clock.clone().step(Span::from_secs(240));
        let town = town.crash().await;
        let machine = Machine { town: &town, id: id.clone(), short_id: String::new() };
        machine.until("it is found again", |told| told["status"] == "running").await;
        assert_eq!(machine.read("file").await.body, "kept\n");
        machine.exec("ps -o args | grep -q '^sleep 1000'").await;
        assert_eq!(machine.metrics().await["billed_minutes"], 2, "no minute of the gap");
        until("the orphan is put aside", async || {
            names().contains(&format!("automaton-lost-{lost}\n"))
        })
        .await;
        assert!(names().contains("automaton-01ARZ3NDEKTSV4RRFFQ69G5FAW\n"), "another cloud's");
        let stopped = Machine { town: &town, id: stopped_id, short_id: String::new() };
        assert_eq!(stopped.told().await["status"], "stopped");

        let container = format!("automaton-{id}");
        podman(&["kill", &container]);
        let gone = |told: &serde_json::Value| told["reason"].to_string().contains("were gone");
        machine.until("it is started again", gone).await;
        machine.until("it runs", |told| told["status"] == "running").await;
        assert_eq!(machine.exec("cat file; ! ps -o args | grep -q '^sleep 1000'").await, "kept\n");
        podman(&["rm", "--force", "--time", "0", &container]);
        let told = machine.until("it failed", |told| told["status"] == "failed").await;
        assert_eq!(told["reason"], "its files are not there any more");
    });
}

pub(crate) fn refused() {
    run(async {
        let found = CONTAINERS.get().unwrap();
        for (socket, image, why) in [
            (Path::new("/nowhere/podman.sock"), "x", "nobody answers at /nowhere/podman.sock"),
            (found, "nowhere/image", "the image 'nowhere/image' cannot be had"),
        ] {
            let machines = rents(socket, image);
            let refused = World::renting(UPSTREAM.to_owned(), None, machines).await;
            let error = refused.err().unwrap().to_string();
            assert!(error.contains("machines.podman") && error.contains(why), "{error}");
        }
    });
}
