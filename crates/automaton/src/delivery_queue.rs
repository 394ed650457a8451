//! Carries what the operator wants to know to servers of his.
//!
//! It runs beside the supervisor, and nothing here can delay that: the queue is short,
//! and what does not fit is dropped and said. An address may hold a secret: it must
//! never be told.

use std::future::pending;
use std::time::Duration;

use automaton_core::error::chain;
use automaton_net::{
    Deadlines, Header, HttpClient, HttpClientConfig, HttpMethod, HttpRequest, HttpResponse, Retry,
    Url,
};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::CliError;
use crate::http::origin;

/// What waits for its delivery, and failures that wait to be told.
pub(crate) const QUEUE: usize = 16;

/// How long one delivery may take, with all its tries.
const DELIVERY: Deadlines =
    Deadlines { idle: Duration::from_secs(10), total: Duration::from_secs(30) };

/// How long the end of the program waits for what is not delivered yet.
pub(crate) const GRACE: Duration = Duration::from_secs(3);

/// Something on its way.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// What it is called when it is lost.
    pub(crate) name: String,
    /// What is sent.
    pub(crate) request: HttpRequest,
}

impl Delivery {
    /// JSON for a server; whoever gets it twice can tell by the key.
    pub(crate) fn json(name: String, key: String, to: &Url, body: Vec<u8>) -> Self {
        let headers = vec![Header::Open("content-type", "application/json".to_owned())];
        let request = HttpRequest {
            headers,
            idempotency_key: Some(key),
            body,
            deadlines: DELIVERY,
            retry: Retry::Idempotent,
            ..HttpRequest::new(HttpMethod::Post, to.clone())
        };
        Self { name, request }
    }
}

/// Something that was not delivered, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DeliveryFailure {
    /// What it was.
    pub(crate) name: String,
    /// Why.
    pub(crate) error: String,
}

/// A way to servers, and what is on it.
#[derive(Debug)]
pub(crate) struct DeliveryQueue {
    queue: Sender<Delivery>,
    lost: Receiver<DeliveryFailure>,
    tasks: JoinSet<()>,
}

impl DeliveryQueue {
    /// Begins to deliver. `allowed` are the private origins that may be reached.
    ///
    /// # Errors
    /// When an address is none.
    pub(crate) fn start(allowed: &[String]) -> Result<Self, CliError> {
        let origins = allowed.iter().map(|text| origin(text)).collect::<Result<Vec<_>, _>>()?;
        let config =
            HttpClientConfig { allow_private_origins: origins, ..HttpClientConfig::default() };
        let client = HttpClient::new(config)?;
        let (queue, parcels) = mpsc::channel(QUEUE);
        let (told, lost) = mpsc::channel(QUEUE);
        let mut tasks = JoinSet::new();
        tasks.spawn(deliver(client, parcels, told));
        Ok(Self { queue, lost, tasks })
    }

    /// Takes a parcel, if there is room for it.
    pub(crate) fn take(&self, parcel: Delivery) -> Result<(), DeliveryFailure> {
        self.queue.try_send(parcel).map_err(|full| {
            let error = format!("{QUEUE} wait for their delivery already");
            DeliveryFailure { name: full.into_inner().name, error }
        })
    }

    /// The next that could not be delivered. Cancel-safe.
    pub(crate) async fn next_lost(&mut self) -> DeliveryFailure {
        match self.lost.recv().await {
            Some(lost) => lost,
            None => pending().await,
        }
    }

    /// Waits a moment for what is not delivered yet, and ends.
    pub(crate) async fn end(self) {
        let Self { queue, mut tasks, .. } = self;
        drop(queue);
        // silent-ok: what takes longer is lost; it is in the record.
        timeout(GRACE, tasks.join_next()).await.ok();
    }
}

/// Delivers one after the other, until nobody can give more.
async fn deliver(
    client: HttpClient,
    mut parcels: Receiver<Delivery>,
    told: Sender<DeliveryFailure>,
) {
    while let Some(Delivery { name, request }) = parcels.recv().await {
        let error = match client.request(request).await {
            Ok(HttpResponse { status: 200..300, .. }) => continue,
            Ok(response) => format!("it answered {}", response.status),
            Err(error) => chain(&error).to_string(),
        };
        // silent-ok: as many failures as fit are told; the next one says the same.
        told.try_send(DeliveryFailure { name, error }).ok();
    }
}
