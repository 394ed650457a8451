//! The way to ports of the sandbox here, for visitors that the cloud of the account sends.
//!
//! Nothing listens: the agent opens connections to the cloud, and each carries one visitor to
//! one port. Which ports those are is what was published here in this life, whatever the
//! cloud asks for; what it never says can be reached is not. What visitors say is others'
//! text, and everything that they may have left is labelled so before the first byte of theirs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use automaton_client::CloudClientError;
use automaton_core::error::chain;
use automaton_core::trust::Label;
use automaton_core::wire::cloud::{TUNNEL_NOBODY, TUNNEL_TAKEN};
use automaton_net::Upgraded;
use automaton_sandbox::HOME_INSIDE;
use automaton_store::Store;
use automaton_tools::HandleError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::sync::{Mutex as AsyncMutex, OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use super::background::Background;
use super::rented_machine::{RentedMachine, failed};
use crate::treasury::{CloudAccount, Treasury};

/// Connections that wait for a visitor.
const IDLE: usize = 4;
/// Connections at a time: those that wait, and as many visitors as the cloud lets in, 64 to ports
/// that are free and 64 to those that sell.
const VISITORS_MAX: usize = IDLE + 128;
/// Time that a connection waits before another replaces it: middleboxes forget silent
/// connections.
const IDLE_MAX: Duration = Duration::from_secs(240);
/// Time that a visitor may stay.
const VISIT_MAX: Duration = Duration::from_secs(24 * 3600);
/// Time to connect to a port inside.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// Between two tries to reach the cloud, at first and at last.
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// The longest line that names a port, in bytes.
const LINE_BYTES_MAX: usize = 8;

/// The tunnel of one automaton.
pub(super) struct TunnelClient {
    account: CloudAccount,
    /// The cloud's tunnel for the sandbox here.
    place: OnceCell<RentedMachine>,
    inside: TunnelTarget,
    /// Task that keeps connections open while anything is published.
    serving: AsyncMutex<JoinSet<()>>,
}

/// Destination of visitors.
#[derive(Clone)]
struct TunnelTarget {
    background: Arc<Background>,
    store: Store,
    /// The published ports, and whether each has a price.
    // A std mutex, since nothing is awaited while it is held.
    published: Arc<Mutex<BTreeMap<u16, bool>>>,
    /// Reads the sales after a visitor to a port with a price.
    treasury: Option<Arc<Treasury>>,
    visitors: Arc<Semaphore>,
}

impl TunnelClient {
    pub(super) fn new(
        account: CloudAccount,
        store: Store,
        background: Arc<Background>,
        treasury: Option<Arc<Treasury>>,
    ) -> Self {
        let published = Arc::default();
        let visitors = Arc::new(Semaphore::new(VISITORS_MAX));
        let inside = TunnelTarget { background, store, published, treasury, visitors };
        Self { account, place: OnceCell::new(), inside, serving: AsyncMutex::default() }
    }

    async fn tunnel(&self) -> Result<&RentedMachine, HandleError> {
        let CloudAccount { cloud, key } = &self.account;
        let made = async {
            let id = cloud.tunnel(key).await.map_err(|error| failed(&error))?.id;
            Ok(RentedMachine { cloud: cloud.clone(), key: key.clone(), id })
        };
        self.place.get_or_try_init(|| made).await
    }

    /// Opens a port to everybody; where it is reached.
    pub(super) async fn open(
        &self,
        port: u16,
        price: Option<String>,
    ) -> Result<String, HandleError> {
        let place = self.tunnel().await?;
        let sells = price.is_some();
        let url = place.open(port, price).await?;
        self.inside.published().insert(port, sells);
        let mut serving = self.serving.lock().await;
        for _ in serving.len()..IDLE {
            serving.spawn(self.inside.clone().serve(place.clone()));
        }
        Ok(url)
    }

    /// Closes it again, here whatever the cloud says.
    pub(super) async fn close(&self, port: u16) -> Result<(), HandleError> {
        let left = {
            let mut published = self.inside.published();
            published.remove(&port);
            published.len()
        };
        if left == 0 {
            self.serving.lock().await.shutdown().await;
        }
        self.tunnel().await?.close(port).await
    }
}

impl TunnelTarget {
    fn published(&self) -> MutexGuard<'_, BTreeMap<u16, bool>> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps one connection waiting, and looks after the visitors that came by it.
    async fn serve(self, place: RentedMachine) {
        let mut visits = JoinSet::new();
        let mut pause = RETRY_MIN;
        loop {
            while visits.try_join_next().is_some() {}
            // silent-ok: it is never closed.
            let Ok(permit) = Arc::clone(&self.visitors).acquire_owned().await else { return };
            let begun = Instant::now();
            match self.next(&place).await {
                Ok(Some((visitor, port))) => {
                    pause = RETRY_MIN;
                    visits.spawn(self.clone().proxy_visitor(visitor, port, permit));
                }
                Ok(None) if begun.elapsed() >= IDLE_MAX => pause = RETRY_MIN,
                Ok(None) => {
                    // The cloud hung up at once: it may have too many.
                    sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
                Err(error) => {
                    debug!(error = %chain(&error), "the cloud takes no connection of the tunnel");
                    sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
        }
    }

    /// The next visitor, and the port that it is for, as the cloud says; nothing after a while.
    async fn next(
        &self,
        place: &RentedMachine,
    ) -> Result<Option<(Upgraded, u16)>, CloudClientError> {
        let mut waiting = place.cloud.await_visitor(place.machine()).await?;
        let named = timeout(IDLE_MAX, port_of(&mut waiting)).await;
        Ok(named.ok().flatten().map(|port| (waiting, port)))
    }

    /// Leads a visitor to a port inside, to its end.
    async fn proxy_visitor(self, mut visitor: Upgraded, port: u16, _held: OwnedSemaphorePermit) {
        let led = async {
            let Some(mut inside) = self.connect(port).await else {
                return visitor.write_all(&[TUNNEL_NOBODY]).await;
            };
            // The cloud lets nobody in to a port with a price who has not paid.
            self.note_visitor(port);
            visitor.write_all(&[TUNNEL_TAKEN]).await?;
            copy_bidirectional(&mut visitor, &mut inside).await.map(drop)
        };
        // silent-ok: either side may break it off.
        timeout(VISIT_MAX, led).await.ok();
    }

    fn note_visitor(&self, port: u16) {
        let sells = self.published().get(&port).copied().unwrap_or_default();
        if let Some(treasury) = self.treasury.as_ref().filter(|_| sells) {
            treasury.note_paying_visitor();
        }
    }

    /// A connection to a port that is published here.
    async fn connect(&self, port: u16) -> Option<TcpStream> {
        if !self.published().contains_key(&port) {
            return None;
        }
        let place = self.background.here().await?;
        if place.words.label() != Label::Web {
            // Before anything can come in: what is left there may be a visitor's.
            // silent-ok: while nothing can be labelled, nobody is let in.
            self.store.label_path(HOME_INSIDE.to_owned(), Label::Web).await.ok()?;
        }
        timeout(CONNECT_WITHIN, place.connect_visitor(port)).await.ok().flatten()
    }
}

/// The port that a line names. What is no such line ends the connection.
async fn port_of(waiting: &mut Upgraded) -> Option<u16> {
    let mut line = Vec::with_capacity(LINE_BYTES_MAX);
    loop {
        match waiting.read_u8().await {
            // silent-ok: what is no number is no port.
            Ok(b'\n') => return std::str::from_utf8(&line).ok()?.parse().ok(),
            Ok(byte) if line.len() < LINE_BYTES_MAX => line.push(byte),
            Ok(_) | Err(_) => return None,
        }
    }
}
