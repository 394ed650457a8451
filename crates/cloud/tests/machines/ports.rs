//! Servers in machines, seen from the next command and from outside.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::town::{Machine, Town, run};
use crate::world::{get, send};

pub(crate) const ALL: &[(&str, fn())] = &[
    ("a_server_outlives_its_command_and_is_reached_by_its_url", served),
    ("what_is_passed_on_is_the_programs_and_nothing_of_ours", passed),
    ("a_connection_that_changes_its_protocol_goes_through", upgraded),
];

/// Answers with the request as it came.
pub(crate) const ECHO: &str = r#"
import http.server
class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = (self.requestline + "\n" + str(self.headers)).encode() + self.rfile.read(size)
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "theirs=1")
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_PUT = do_GET
http.server.ThreadingHTTPServer(("127.0.0.1", 9000), Echo).serve_forever()
"#;

/// Changes the protocol, and says everything twice.
const TWICE: &str = r#"
import socket
server = socket.create_server(("127.0.0.1", 9000))
while True:
    link, _ = server.accept()
    head = b""
    while b"\r\n\r\n" not in head and (data := link.recv(4096)):
        head += data
    if b"upgrade: twice" not in head.lower():
        link.sendall(b"HTTP/1.1 400 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        link.close()
        continue
    link.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: twice\r\n\r\n")
    while data := link.recv(4096):
        link.sendall(data + data)
    link.close()
"#;

const WAIT: &str = "for i in $(seq 300); do (exec 3<>/dev/tcp/127.0.0.1/9000) 2>/dev/null && exit 0; sleep 0.05; done; exit 1";

pub(crate) async fn serve(machine: &Machine<'_>, program: &str) {
    assert_eq!(machine.write("server.py", program).await.status, 200);
    machine.exec("(python3 server.py > log 2>&1 &)").await;
    machine.exec(&format!("bash -c '{WAIT}'")).await;
}

pub(crate) async fn expose(machine: &Machine<'_>, port: u16) -> (String, String) {
    let told = machine.town.post(&machine.path("/ports/expose"), &json!({ "port": port })).await;
    assert_eq!((told.status, &told.json()["port"]), (200, &json!(port)), "{told:?}");
    let text = |name: &str| told.json()[name].as_str().unwrap().to_owned();
    (text("public_url"), text("path_url"))
}

fn served() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        machine.exec("mkdir site && echo hello > site/index.html").await;
        machine
            .exec(
                "(cd site && nohup python3 -m http.server 9000 --bind 127.0.0.1 >/dev/null 2>&1 &)",
            )
            .await;
        machine.exec(&format!("bash -c '{WAIT}'")).await;
        let fetch = "import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:9000/\").read().decode())";
        assert_eq!(machine.exec(&format!("python3 -c '{fetch}'")).await.trim(), "hello");

        let at = town.world.at();
        let host = format!("9000-{}.localhost:{}", machine.short_id, at.port());
        let ask = async || get(at, "/", &[("Host", &host)]).await;
        assert_eq!(ask().await.status, 404, "it is not exposed");
        let (url, path) = expose(&machine, 9000).await;
        assert_eq!(url, format!("http://{host}"));
        assert_eq!(path, format!("http://{at}/_at/{}/9000/", machine.short_id));
        let reply = ask().await;
        assert_eq!((reply.status, reply.body.as_str()), (200, "hello\n"), "{reply:?}");
        let by_path = get(at, &format!("/_at/{}/9000/index.html", machine.short_id), &[]).await;
        assert_eq!((by_path.status, by_path.body.as_str()), (200, "hello\n"), "{by_path:?}");
        let ports = town.get(&machine.path("/ports")).await.json();
        assert_eq!(ports["ports"][0]["public_url"], url);
        let quiet = town.post(&machine.path("/ports?port=9001"), &json!({})).await;
        assert_eq!(quiet.status, 200, "{quiet:?}");
        let nobody = get(at, &format!("/_at/{}/9001/", machine.short_id), &[]).await;
        assert_eq!(nobody.status, 502, "{nobody:?}");

        let removed = town.delete(&machine.path("/ports/9000")).await;
        assert_eq!((removed.status, &removed.json()["success"]), (200, &json!(true)));
        assert_eq!(ask().await.status, 404);
        expose(&machine, 9000).await;
        town.post(&machine.path("/stop"), &json!({})).await;
        assert_eq!(ask().await.status, 502, "it is stopped");
        town.delete(&machine.path("")).await;
        assert_eq!(ask().await.status, 404);
    });
}

fn passed() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        serve(&machine, ECHO).await;
        expose(&machine, 9000).await;
        let (at, key) = (town.world.at(), town.key.as_str());
        let host = format!("9000-{}.localhost", machine.short_id);
        let bearer = format!("Bearer {key}");
        let headers = [
            ("Host", host.as_str()),
            ("Authorization", &bearer),
            ("X-Key", key),
            ("Cookie", "own=1"),
            ("X-Forwarded-For", "6.6.6.6"),
            ("Keep-Alive", "5"),
            ("X-Custom", "kept"),
        ];
        let reply = send(at, "POST /a/b?c=d", &headers, "the body").await;
        assert_eq!(reply.status, 201, "{reply:?}");
        let echo = reply.body.to_ascii_lowercase();
        assert!(echo.starts_with("post /a/b?c=d http/1.1\n"), "{echo}");
        assert!(echo.ends_with("the body"), "{echo}");
        for line in [
            format!("host: {host}"),
            format!("x-forwarded-host: {host}"),
            "x-forwarded-for: 127.0.0.1".to_owned(),
            "x-forwarded-proto: http".to_owned(),
            "x-custom: kept".to_owned(),
            "cookie: own=1".to_owned(),
        ] {
            assert!(echo.contains(&format!("\n{line}\n")), "{line}: {echo}");
        }
        assert!(
            !echo.contains(&key.to_ascii_lowercase()) && !echo.contains("keep-alive"),
            "{echo}"
        );
        assert_eq!(reply.header("set-cookie"), Some("theirs=1"));

        // Under our own host it gets less.
        let headers = [("Authorization", key), ("Cookie", "ours=1"), ("X-Custom", "kept")];
        let reply =
            send(at, &format!("PUT /_at/{}/9000/a?b=c", machine.short_id), &headers, "body").await;
        let echo = reply.body.to_ascii_lowercase();
        assert!(echo.starts_with("put /a?b=c http/1.1\n") && echo.ends_with("body"), "{echo}");
        assert!(
            echo.contains(&format!("x-forwarded-prefix: /_at/{}/9000\n", machine.short_id)),
            "{echo}"
        );
        assert!(!echo.contains("cookie") && !echo.contains("authorization"), "{echo}");
        assert_eq!(reply.header("set-cookie"), None);
        // More than fits into any buffer.
        let large = "x".repeat(3_000_000);
        let reply = send(at, "POST /", &[("Host", &host)], &large).await;
        assert!(
            reply.body.len() > 3_000_000 && reply.body.ends_with("xxx"),
            "{}",
            reply.body.len()
        );
    });
}

fn upgraded() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        serve(&machine, TWICE).await;
        expose(&machine, 9000).await;
        let mut stream = TcpStream::connect(town.world.at()).await.unwrap();
        let head = format!(
            "GET / HTTP/1.1\r\nHost: 9000-{}.localhost\r\nConnection: Upgrade\r\nUpgrade: twice\r\n\r\n",
            machine.short_id
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut seen = Vec::new();
        let read = async |stream: &mut TcpStream, seen: &mut Vec<u8>, end: &[u8]| {
            while !seen.ends_with(end) {
                let mut some = [0; 1024];
                let read = timeout(Duration::from_secs(30), stream.read(&mut some));
                let count = read.await.unwrap().unwrap();
                assert!(count > 0, "{}", String::from_utf8_lossy(seen));
                seen.extend(&some[..count]);
            }
        };
        read(&mut stream, &mut seen, b"\r\n\r\n").await;
        let head = String::from_utf8_lossy(&seen).to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 101") && head.contains("upgrade: twice"), "{head}");
        for word in ["ping", "pong"] {
            stream.write_all(word.as_bytes()).await.unwrap();
            seen.clear();
            read(&mut stream, &mut seen, format!("{word}{word}").as_bytes()).await;
        }
    });
}
