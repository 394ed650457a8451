//! Carries what the operator wants to know to servers of his.
//!
//! It runs beside the supervisor, and nothing here can delay that: the queue is short,
//! and what does not fit is dropped and said. An address may hold a secret: it must
//! never be told.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Capacity for deliveries and for failures that wait to be reported.
pub(crate) const QUEUE: usize = 16;

/// Deadlines of one delivery with all its tries.
const DELIVERY: Deadlines =
    Deadlines { idle: Duration::from_secs(10), total: Duration::from_secs(30) };

/// The status of a server that does not take the media type of a request.
const UNSUPPORTED_MEDIA_TYPE: u16 = 415;

/// Time that the end of the program waits for open deliveries.
pub(crate) const GRACE: Duration = Duration::from_secs(3);

/// Something on its way.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// Name of the delivery in the report of its loss.
    pub(crate) name: String,
    /// The request.
    pub(crate) request: HttpRequest,
    /// Alternative body for a server that refuses the media type (415).
    pub(crate) otherwise: Option<OtherBody>,
}

/// The same content in another encoding.
#[derive(Debug)]
pub(crate) struct OtherBody {
    /// Its media type.
    pub(crate) media_type: &'static str,
    /// Its bytes.
    pub(crate) body: Vec<u8>,
    /// Flag that is set once the server has accepted it.
    pub(crate) taken: Arc<AtomicBool>,
    /// To which value.
    pub(crate) taken_means: bool,
}

impl Delivery {
    /// JSON for a server; whoever gets it twice can tell by the key.
    pub(crate) fn json(name: String, key: String, to: &Url, body: Vec<u8>) -> Self {
        Self::typed(name, key, to, "application/json", body)
    }

    /// The same in another encoding than JSON.
    pub(crate) fn typed(
        name: String,
        key: String,
        to: &Url,
        media_type: &'static str,
        body: Vec<u8>,
    ) -> Self {
        let headers = vec![Header::Open("content-type", media_type.to_owned())];
        let request = HttpRequest {
            headers,
            idempotency_key: Some(key),
            body,
            deadlines: DELIVERY,
            retry: Retry::Idempotent,
            ..HttpRequest::new(HttpMethod::Post, to.clone())
        };
        Self { name, request, otherwise: None }
    }
}

/// Something that was not delivered, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DeliveryFailure {
    /// Name of the delivery.
    pub(crate) name: String,
    /// Cause.
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

/// Sends a parcel, and once more in its other encoding where the server asks for that.
async fn send(client: &HttpClient, parcel: Delivery) -> Result<(), String> {
    let Delivery { request, otherwise, .. } = parcel;
    let again = otherwise.map(|other| {
        let headers = vec![Header::Open("content-type", other.media_type.to_owned())];
        let key = request.idempotency_key.as_ref().map(|key| format!("{key}-again"));
        let body = other.body.clone();
        let request = HttpRequest { headers, body, idempotency_key: key, ..request.clone() };
        (request, other)
    });
    let error = match client.request(request).await {
        Ok(HttpResponse { status: 200..300, .. }) => return Ok(()),
        Ok(HttpResponse { status: UNSUPPORTED_MEDIA_TYPE, .. }) => match again {
            Some((request, other)) => {
                match client.request(request).await {
                    Ok(HttpResponse { status: 200..300, .. }) => {
                        // Relaxed: a hint for later parcels, with no other memory behind it.
                        other.taken.store(other.taken_means, Ordering::Relaxed);
                        return Ok(());
                    }
                    Ok(response) => {
                        let status = response.status;
                        format!("it answered 415, and {status} to {}", other.media_type)
                    }
                    Err(error) => chain(&error).to_string(),
                }
            }
            None => format!("it answered {UNSUPPORTED_MEDIA_TYPE}"),
        },
        Ok(response) => format!("it answered {}", response.status),
        Err(error) => chain(&error).to_string(),
    };
    Err(error)
}

/// Delivers one after the other, until nobody can give more.
async fn deliver(
    client: HttpClient,
    mut parcels: Receiver<Delivery>,
    told: Sender<DeliveryFailure>,
) {
    while let Some(parcel) = parcels.recv().await {
        let name = parcel.name.clone();
        let Err(error) = send(&client, parcel).await else { continue };
        // silent-ok: as many failures as fit are told; the next one says the same.
        told.try_send(DeliveryFailure { name, error }).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server that takes protobuf alone; the content types that it was sent.
    fn picky() -> (Url, std::sync::mpsc::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap()).parse().unwrap();
        let (got, types) = std::sync::mpsc::sync_channel(16);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                // The head and the body of one byte.
                while !head.windows(4).any(|it| it == b"\r\n\r\n") || head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap().to_lowercase();
                let kind = head.lines().find_map(|it| it.strip_prefix("content-type: ")).unwrap();
                let status = if kind == "application/x-protobuf" { 200 } else { 415 };
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                );
                stream.write_all(answer.as_bytes()).unwrap();
                if got.send(kind.to_owned()).is_err() {
                    return;
                }
            }
        });
        (url, types)
    }

    fn parcel(to: &Url, otherwise: Option<OtherBody>) -> Delivery {
        let json = Delivery::json("turn".into(), "key".into(), to, b"x".to_vec());
        Delivery { otherwise, ..json }
    }

    #[tokio::test]
    async fn a_server_that_refuses_one_encoding_gets_the_other_one_at_once() {
        let (to, types) = picky();
        let mut origin = to.clone();
        origin.set_path("");
        let mut queue =
            DeliveryQueue::start(&[origin.as_str().trim_end_matches('/').to_owned()]).unwrap();
        let taken = Arc::new(AtomicBool::new(false));
        let otherwise = OtherBody {
            media_type: "application/x-protobuf",
            body: b"y".to_vec(),
            taken: Arc::clone(&taken),
            taken_means: true,
        };
        queue.take(parcel(&to, Some(otherwise))).unwrap();
        queue.take(parcel(&to, None)).unwrap();
        let lost = queue.next_lost().await;
        assert_eq!(lost.error, "it answered 415", "the second one has no other encoding");
        assert!(taken.load(Ordering::Relaxed), "the next one begins with what was taken");
        let types = [(); 3].map(|()| types.recv().unwrap());
        assert_eq!(types, ["application/json", "application/x-protobuf", "application/json"]);
    }
}
