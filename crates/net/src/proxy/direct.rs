//! Connections that ask the proxy's own address, as programs do that know of no proxy.
//!
//! They are passed on byte by byte to one server of the operator, and lead nowhere else.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::NO_CONNECTION;
use crate::limits::EGRESS_CONNECTIONS_MAX;

/// Bytes of a request that are looked at: a method, a blank and the first byte of the target.
const BEGINNING_BYTES: usize = 24;
/// The longest time for the beginning of a connection.
const BEGINNING_WITHIN: Duration = Duration::from_secs(20);
/// The interval at which beginnings are checked.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The longest time until the server accepts a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Returns true if a request asks the address that it was sent to: its target is a path. A
/// request to a proxy names another server. Nothing is read from the connection.
pub(super) async fn is_direct(client: &TcpStream) -> bool {
    let look = async {
        loop {
            let mut bytes = [0; BEGINNING_BYTES];
            // silent-ok: a connection that broke down asks for nothing.
            let count = client.peek(&mut bytes).await.unwrap_or(0);
            let begun = bytes.get(..count).unwrap_or_default();
            match begun.iter().position(|byte| *byte == b' ') {
                Some(blank) if blank + 1 < count => return begun.get(blank + 1) == Some(&b'/'),
                _ if count == 0 || count == BEGINNING_BYTES => return false,
                _ => sleep(LOOK_EVERY).await,
            }
        }
    };
    timeout(BEGINNING_WITHIN, look).await.unwrap_or(false)
}

/// Passes a connection on to a server until either of them ends it.
pub(super) async fn pass_on(mut client: TcpStream, server: SocketAddr) {
    let Ok(Ok(mut server)) = timeout(CONNECT_WITHIN, TcpStream::connect(server)).await else {
        return;
    };
    // silent-ok: without it answers are as right, and slower.
    client.set_nodelay(true).and(server.set_nodelay(true)).ok();
    // silent-ok: either end knows that the connection is over.
    copy_bidirectional(&mut client, &mut server).await.ok();
}

/// Passes each connection of a listener on to a server until `over`. What is under way then is
/// cut off.
pub async fn pass_all_on(
    listener: TcpListener,
    server: SocketAddr,
    over: impl Future<Output = ()>,
) {
    let mut open: JoinSet<()> = JoinSet::new();
    let mut over = pin!(over);
    loop {
        // Each arm is cancel-safe: a connection that is not taken stays in the queue.
        tokio::select! {
            biased;
            () = &mut over => return,
            // silent-ok: a connection that broke down has lost nothing but itself.
            Some(_) = open.join_next() => {}
            taken = listener.accept(), if open.len() < EGRESS_CONNECTIONS_MAX => match taken {
                Ok((client, _)) => drop(open.spawn(pass_on(client, server))),
                Err(_) => sleep(NO_CONNECTION).await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn a_path_is_asked_of_the_address_itself() {
        for (request, direct) in [
            ("GET /v1/models HTTP/1.1\r\n", true),
            ("DELETE /", true),
            ("GET http://127.0.0.1/ HTTP/1.1\r\n", false),
            ("CONNECT pypi.org:443 HTTP/1.1\r\n", false),
            ("OPTIONS * HTTP/1.1\r\n", false),
            ("\u{16}\u{3}\u{1} and other bytes of another protocol", false),
        ] {
            let (mut client, server) = pair().await;
            client.write_all(request.as_bytes()).await.unwrap();
            assert_eq!(is_direct(&server).await, direct, "{request}");
        }
        let (client, server) = pair().await;
        drop(client);
        assert!(!is_direct(&server).await);
    }

    #[tokio::test]
    async fn a_slow_beginning_is_waited_for() {
        let (mut client, server) = pair().await;
        client.write_all(b"GE").await.unwrap();
        let rest = async {
            client.write_all(b"T ").await.unwrap();
            client.write_all(b"/").await.unwrap();
        };
        assert!(tokio::join!(is_direct(&server), rest).0);
    }

    #[tokio::test]
    async fn all_connections_lead_to_the_one_server() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = server.local_addr().unwrap();
        let address = front.local_addr().unwrap();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let mut served = JoinSet::new();
        served.spawn(pass_all_on(front, to, async { drop(ended.await) }));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"ask").await.unwrap();
        let (mut taken, _) = server.accept().await.unwrap();
        let mut asked = [0; 3];
        taken.read_exact(&mut asked).await.unwrap();
        taken.write_all(b"told").await.unwrap();
        drop(taken);
        let mut told = Vec::new();
        client.read_to_end(&mut told).await.unwrap();
        assert_eq!((&asked, told.as_slice()), (b"ask", b"told".as_slice()));
        drop(end);
        served.join_next().await.unwrap().unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
}
