//! A node for tests, that answers each question with the next of some replies.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use automaton_net::{HttpClient, HttpClientConfig, RetryPolicy, Url};
use serde_json::Value;

/// A node on a free port, until its replies are used up.
pub(crate) struct TestNode {
    pub(crate) url: Url,
    asked: Arc<Mutex<Vec<Value>>>,
}

/// An answer as it goes over the wire.
pub(crate) fn reply(status: u16, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

impl TestNode {
    /// Starts a node.
    pub(crate) fn start(replies: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let told = Arc::clone(&asked);
        std::thread::spawn(move || {
            for reply in replies {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                let mut length = 0;
                while reader.read_line(&mut line).unwrap() > 2 {
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                told.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                // A client that has seen enough may be gone already.
                drop(stream.write_all(reply.as_bytes()));
            }
        });
        Self { url, asked }
    }

    /// A client that may reach this node and repeats without waiting.
    pub(crate) fn client(&self) -> HttpClient {
        let config = HttpClientConfig {
            allow_private_origins: vec![self.url.to_string().parse().unwrap()],
            retry_policy: RetryPolicy { first_wait: Duration::ZERO, ..RetryPolicy::default() },
            ..HttpClientConfig::default()
        };
        HttpClient::new(config).unwrap()
    }

    /// The questions so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}
