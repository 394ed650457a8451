//! Commands: what comes of them, how long they may take, and that each name is one.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::town::{Town, run};

pub(crate) const ALL: &[(&str, fn())] = &[
    ("a_command_is_answered_in_both_spellings_and_within_its_time", answered),
    ("a_command_runs_once_under_its_name", joined),
    ("the_head_of_an_answer_comes_before_the_command_ends", flushed),
];

fn answered() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let reply = machine.ask("echo out; echo err >&2; pwd; exit 3").await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
        assert_eq!(
            reply.json(),
            json!({ "stdout": "out\n/root\n", "stderr": "err\n", "exit_code": 3, "exitCode": 3,
                "isolated": true })
        );
        for name in ["timeout", "timeout_ms"] {
            let body = json!({ "command": "echo begun; sleep 60", name: 700 });
            let late = town.post(&machine.path("/exec"), &body).await.json();
            assert_eq!((&late["exit_code"], &late["stdout"]), (&json!(124), &json!("begun\n")));
        }
        let much = machine.exec("head -c 2000000 /dev/zero | tr '\\0' x; echo end").await;
        assert!(much.len() < 600_000 && much.ends_with("xend\n"), "{}", much.len());
        assert!(much.contains("bytes omitted"));
        for bad in [json!({}), json!({ "command": " " }), json!({ "command": "x", "timeout": 0 })] {
            assert_eq!(town.post(&machine.path("/exec"), &bad).await.status, 422, "{bad}");
        }
        // The system is the host's, to be read and no more; the machine's own can be written.
        machine.exec("! touch /usr/bin/x 2>/dev/null && ! touch /etc/x 2>/dev/null").await;
        machine
            .exec("for it in /usr/local /opt /srv /home /var/lib /tmp; do touch $it/x; done")
            .await;
        machine.exec("! cat /etc/shadow 2>/dev/null").await;
    });
}

pub(crate) fn joined() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let command = "cd /root && echo x >> count && sleep 1 && wc -l < count";
        let (path, body) = (machine.path("/exec"), json!({ "command": command }));
        let ask = || town.named(&path, "once", &body);
        let (one, two) = tokio::join!(ask(), ask());
        let later = ask().await;
        for reply in [&one, &two, &later] {
            assert_eq!((reply.status, &reply.json()["stdout"]), (200, &json!("1\n")), "{reply:?}");
        }
        let other = json!({ "command": "true" });
        assert_eq!(town.named(&path, "once", &other).await.status, 409);
        // What was done is told even when nothing can be done any more.
        town.post(&machine.path("/stop"), &json!({})).await;
        assert_eq!(ask().await.json()["stdout"], "1\n");
        assert_eq!(town.named(&path, "never", &body).await.status, 409);
        town.post(&machine.path("/start"), &json!({})).await;
        assert_eq!(town.named(&path, "never", &body).await.json()["stdout"], "2\n");
    });
}

pub(crate) fn flushed() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let body = json!({ "command": "until [ -e /root/go ]; do sleep 0.05; done; echo went" });
        let body = body.to_string();
        let (key, at, path) = (&town.key, town.world.at(), machine.path("/exec"));
        let mut stream = TcpStream::connect(at).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {at}\r\nAuthorization: {key}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut seen = String::new();
        let bounded = Duration::from_secs(30);
        while !seen.contains("\r\n\r\n1\r\n ") {
            let mut some = [0; 1024];
            let count = timeout(bounded, stream.read(&mut some)).await.unwrap().unwrap();
            assert!(count > 0, "{seen}");
            seen.push_str(std::str::from_utf8(&some[..count]).unwrap());
        }
        assert!(seen.starts_with("HTTP/1.1 200 OK\r\n"), "{seen}");
        assert!(seen.contains("content-type: application/json\r\n"), "{seen}");
        assert!(!seen.contains("went"), "the command cannot have ended");
        assert_eq!(machine.write("go", "").await.status, 200);
        let mut rest = String::new();
        timeout(bounded, stream.read_to_string(&mut rest)).await.unwrap().unwrap();
        assert!(
            rest.contains(
                r#"{"stdout":"went\n","stderr":"","exit_code":0,"exitCode":0,"isolated":true}"#
            ),
            "{rest}"
        );
    });
}
