//! A server that says, byte for byte, what a test wants.

use std::future::Future;

use automaton_net::{Client, ClientConfig, Origin, Url};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server for one connection.
pub(crate) struct Server {
    pub(crate) url: Url,
    pub(crate) origin: Origin,
    /// What the client sent, up to the end of its head and body.
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
    let origin = Origin::of(&url).unwrap();
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
pub(crate) fn client_for(server: &Server) -> Client {
    let allow_private_origins = vec![server.origin.clone()];
    Client::new(ClientConfig { allow_private_origins, ..ClientConfig::default() }).unwrap()
}
