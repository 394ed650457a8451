//! A server that says, byte for byte, what a test wants.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use automaton_core::entropy::Entropy;
use automaton_net::{HttpClient, HttpClientConfig, Origin, RetryPolicy, Url};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server for one connection.
pub(crate) struct Server {
    pub(crate) url: Url,
    pub(crate) origin: Origin,
    /// The client's bytes, up to the end of its head and body.
    pub(crate) heard: JoinHandle<String>,
}

/// Starts a server that hears one request and then does as it is told.
#[expect(clippy::disallowed_methods, reason = "a test owns its one task")]
pub(crate) async fn server<F>(tell: impl FnOnce(TcpStream) -> F + Send + 'static) -> Server
where
    F: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/path?q=1", listener.local_addr().unwrap())).unwrap();
    let origin = Origin::from_url(&url).unwrap();
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = vec![0; 4096];
        let length = stream.read(&mut heard).await.unwrap();
        heard.truncate(length);
        tell(stream).await;
        String::from_utf8_lossy(&heard).into_owned()
    });
    Server { url, origin, heard }
}

/// Starts a server that answers with these bytes and closes.
pub(crate) async fn answers(bytes: impl Into<Vec<u8>>) -> Server {
    let bytes = bytes.into();
    server(async move |mut stream| {
        // A client that has seen enough may be gone already.
        drop(stream.write_all(&bytes).await);
    })
    .await
}

/// A client that may reach this server.
pub(crate) fn client_for(server: &Server) -> HttpClient {
    let allow_private_origins = vec![server.origin.clone()];
    HttpClient::new(HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() })
        .unwrap()
}

/// A server for many connections.
pub(crate) struct Script {
    pub(crate) url: Url,
    pub(crate) origin: Origin,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Script {
    /// The requests so far.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

/// An answer that never comes, on a connection that stays.
pub(crate) const SILENCE: &str = "silence";

/// Starts a server that answers one connection after the other with these bytes,
/// closes each, and goes on with the last ones. Without bytes it hangs up.
#[expect(clippy::disallowed_methods, reason = "a test owns its one task")]
pub(crate) async fn script(answers: &[&str]) -> Script {
    let answers: Vec<String> = answers.iter().map(|&text| text.to_owned()).collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/path?q=1", listener.local_addr().unwrap())).unwrap();
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let told = Arc::clone(&heard);
    tokio::spawn(async move {
        let mut silent = Vec::new();
        for turn in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            request.truncate(length);
            told.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
            let answer = answers.get(turn).or(answers.last()).unwrap();
            if answer == SILENCE {
                silent.push(stream);
            } else {
                drop(stream.write_all(answer.as_bytes()).await);
            }
        }
    });
    Script { origin: Origin::from_url(&url).unwrap(), url, heard }
}

/// No chance at all: the shortest waits.
struct Shortest;

impl Entropy for Shortest {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// A client that may reach this server and waits for 10, 20 and 40 ms before it
/// sends a request again.
pub(crate) fn patient(server: &Script, rest: Duration) -> HttpClient {
    let config = HttpClientConfig {
        allow_private_origins: vec![server.origin.clone()],
        retry_policy: RetryPolicy { first_wait: Duration::from_millis(20), rest },
        entropy: Arc::new(Shortest),
        ..HttpClientConfig::default()
    };
    HttpClient::new(config).unwrap()
}
