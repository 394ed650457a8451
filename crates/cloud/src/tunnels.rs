//! Ways to sandboxes that are their owners' own: connections that those opened to us, which
//! wait for visitors of their ports.
//!
//! A connection carries one visitor. We say which port is meant, on a line, and they answer
//! [`TAKEN`] or [`NOBODY`]; from then on it is the visitor's. Must never be a way for us to
//! reach anything: what a port leads to is decided at the other end.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use automaton_core::id::MachineId;
use automaton_core::wire::cloud::{TUNNEL_NOBODY as NOBODY, TUNNEL_TAKEN as TAKEN};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::machines::driver::MachineStream;

/// Connections of one tunnel that wait; one more takes the place of the oldest.
const WAITING_MAX: usize = 8;
/// The longest wait of an idle connection: the other end opens another before that.
const GONE_AFTER: Duration = Duration::from_secs(300);
/// The longest time that a visitor waits for a connection, and for its answer.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Tunnels with connections or visitors; those of more are closed at once.
const BUSY_MAX: usize = 1_000;

/// All tunnels that have connections or visitors.
#[derive(Default)]
pub(crate) struct Tunnels(Mutex<HashMap<MachineId, Arc<Tunnel>>>);

/// The connections of one.
#[derive(Default)]
struct Tunnel {
    // A std mutex, since nothing is awaited while it is held.
    waiting: Mutex<VecDeque<(Instant, Box<dyn MachineStream>)>>,
    more: Notify,
}

impl Tunnel {
    /// Those that may be there still, oldest first.
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(Instant, Box<dyn MachineStream>)>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.front().is_some_and(|(since, _)| since.elapsed() > GONE_AFTER) {
            waiting.pop_front();
        }
        waiting
    }

    /// The newest connection, as soon as there is one.
    async fn next(&self) -> Box<dyn MachineStream> {
        loop {
            let more = self.more.notified();
            // The lock is gone before anything is awaited.
            let (newest, is_more) = {
                let mut waiting = self.waiting();
                (waiting.pop_back(), !waiting.is_empty())
            };
            if is_more {
                self.more.notify_one();
            }
            match newest {
                Some((_, connection)) => return connection,
                None => more.await,
            }
        }
    }
}

impl Tunnels {
    /// The connections of one, unless too many others have some.
    fn tunnel(&self, id: MachineId) -> Option<Arc<Tunnel>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever is at one holds it.
        all.retain(|_, it| Arc::strong_count(it) > 1 || !it.waiting().is_empty());
        let has_room = all.len() < BUSY_MAX || all.contains_key(&id);
        has_room.then(|| Arc::clone(all.entry(id).or_default()))
    }

    /// Keeps a connection for the next visitor.
    pub(crate) fn add_connection(&self, id: MachineId, connection: Box<dyn MachineStream>) {
        let Some(tunnel) = self.tunnel(id) else { return };
        let mut waiting = tunnel.waiting();
        if waiting.len() >= WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back((Instant::now(), connection));
        tunnel.more.notify_one();
    }

    /// A connection to a port at the other end; an error is why there is none.
    pub(crate) async fn connect(
        &self,
        id: MachineId,
        port: u16,
    ) -> Result<Box<dyn MachineStream>, &'static str> {
        let tunnel = self.tunnel(id).ok_or("too many tunnels are in use")?;
        let found = async {
            loop {
                let mut connection = tunnel.next().await;
                match ask(&mut *connection, port).await {
                    Some(TAKEN) => return Ok(connection),
                    Some(NOBODY) => return Err("nobody listens there"),
                    // It was of a process that is gone, or of nobody who knows what to say.
                    _ => drop(connection),
                }
            }
        };
        let away = "the sandbox behind it is not connected: its owner may be away";
        timeout(WAIT_MAX, found).await.unwrap_or(Err(away))
    }
}

/// Returns the other end's answer to a visitor of a port, or nothing if the other end is gone.
async fn ask(connection: &mut dyn MachineStream, port: u16) -> Option<u8> {
    let asked = async {
        connection.write_all(format!("{port}\n").as_bytes()).await?;
        connection.flush().await?;
        connection.read_u8().await
    };
    tokio::select! {
        // silent-ok: whoever cannot be asked is gone.
        answer = asked => answer.ok(),
        () = sleep(WAIT_MAX / 2) => None,
    }
}
