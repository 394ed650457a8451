//! Requests that may have to be paid for, by HTTP status 402.
//!
//! The payer is passed with the one request that may be paid for, and the client never keeps it:
//! there must never be a payment that nobody asked for by name. A request is sent without a payment
//! first, and then once more with one. The payer learns the outcome, whatever it is, unless the
//! future is dropped. That is then like a crash: the payer's own record says what was signed.

use std::future::Future;

use automaton_core::error::Classified;
use automaton_core::secret::Secret;

use crate::client::HttpClient;
use crate::error::NetError;
use crate::origin::{Origin, OriginError};
use crate::request::{Header, HttpRequest};
use crate::response::FullResponse;
use crate::retry::Retry;

/// The status by which a server wants to be paid.
const PAYMENT_REQUIRED: u16 = 402;
/// The largest body that a demand may have, in bytes.
const DEMAND_BYTES_MAX: u64 = 64 * 1024;

/// A server's demand for payment, in place of an answer.
#[derive(Debug)]
pub struct PaymentChallenge {
    /// The origin that demands it.
    pub origin: Origin,
    /// The answer with status 402; at most 64 KiB of body.
    pub reply: FullResponse,
}

/// The header by which a request is paid for.
#[derive(Debug)]
pub struct PaymentHeader {
    /// `x-payment` or `payment-signature`.
    pub header: &'static str,
    /// Its value. Anybody who has it can have it settled.
    pub value: Secret,
}

/// Pays for one request.
pub trait Payer: Send + Sync {
    /// The payer's record of a payment under way.
    type Pending: Send;
    /// The outcome of a paid request.
    type Outcome: Send;
    /// The error of a request without an outcome.
    type Error: From<NetError> + Send;

    /// Pays, or refuses to. What was signed has to be stored before this returns.
    fn pay(
        &self,
        challenge: PaymentChallenge,
    ) -> impl Future<Output = Result<(PaymentHeader, Self::Pending), Self::Error>> + Send;

    /// Hears what the paid request brought: an answer of any status, 402 too, or
    /// an error, after which it is unknown whether the payment was taken. Called
    /// once for each payment.
    fn settle(
        &self,
        pending: Self::Pending,
        reply: Result<FullResponse, NetError>,
    ) -> impl Future<Output = Result<Self::Outcome, Self::Error>> + Send;
}

/// The result of a request that could have been paid for.
#[derive(Debug)]
pub enum PaidResponse<T> {
    /// The server wanted no payment.
    Free(FullResponse),
    /// It was paid for.
    Paid(T),
}

impl HttpClient {
    /// Sends a request and, if the server wants to be paid, has it paid for and
    /// sends it once more. Each of the two has the request's deadlines for
    /// itself; the second is never repeated.
    ///
    /// # Errors
    /// Fails if nobody may be paid there, when the request fails before there is a
    /// demand, and whatever the payer says.
    pub async fn request_paying<P: Payer>(
        &self,
        request: HttpRequest,
        payees: &Payees,
        payer: &P,
    ) -> Result<PaidResponse<P::Outcome>, P::Error> {
        let origin = Origin::from_url(&request.url).map_err(|source| NetError::Url { source })?;
        if !payees.contain(&origin) {
            return Err(NetError::NotPaid { origin }.into());
        }
        if request.pays() {
            return Err(NetError::PaidAlready { origin }.into());
        }
        let mut response = self.request(request.clone()).await?;
        if response.status != PAYMENT_REQUIRED {
            return Ok(PaidResponse::Free(response.read().await?));
        }
        response.body.cap(DEMAND_BYTES_MAX);
        let challenge = PaymentChallenge { origin, reply: response.read().await? };
        let (PaymentHeader { header, value }, pending) = payer.pay(challenge).await?;
        let mut paid = HttpRequest { retry: Retry::Never, ..request };
        paid.headers.push(Header::Secret(header, value));
        let reply = async { self.request(paid).await?.read().await }.await;
        payer.settle(pending, reply).await.map(PaidResponse::Paid)
    }
}

/// A list of those who may be paid cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Classified)]
#[class(
    Config,
    hint = "write a domain such as example.com, which stands for the hosts below it too, or one \
            origin such as http://127.0.0.1:4021"
)]
pub enum PayeesError {
    /// An entry is neither a domain nor an origin.
    #[error("'{entry}' cannot be on the list of those who may be paid")]
    Entry {
        /// The entry.
        entry: String,
        /// The cause.
        #[source]
        source: OriginError,
    },
    /// An entry that would let half the world be paid.
    #[error("'{0}' on the list of those who may be paid is no domain of anybody")]
    TooWide(String),
}

/// The origins that may be paid: only those on the list.
#[derive(Debug, Clone, Default)]
pub struct Payees(Vec<PayeeEntry>);

#[derive(Debug, Clone)]
struct PayeeEntry {
    origin: Origin,
    /// Hosts below it are included.
    below: bool,
}

impl Payees {
    /// Reads a list. `example.com` is that host and every one below it, over https
    /// on the usual port, or on the one that is named; a whole origin is itself
    /// alone. One over http can only be reached where the client's configuration
    /// spells it out too.
    ///
    /// # Errors
    /// [`PayeesError`] for the first entry that is none.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, PayeesError> {
        entries.into_iter().map(PayeeEntry::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether an origin is on the list.
    #[must_use]
    pub fn contain(&self, origin: &Origin) -> bool {
        self.0.iter().any(|entry| entry.contains(origin))
    }
}

impl PayeeEntry {
    fn parse(text: &str) -> Result<Self, PayeesError> {
        let failed = |source| PayeesError::Entry { entry: shorten(text), source };
        if text.contains("://") {
            return Ok(Self { origin: text.parse().map_err(failed)?, below: false });
        }
        let origin: Origin = format!("https://{text}").parse().map_err(failed)?;
        let below = origin.address().is_none();
        // A single label is a top-level domain, or a name of this network; one
        // that is empty or a star would look as if it stood for many.
        let label = |label: &str| label.is_empty() || label.contains('*');
        let wide = below && (!origin.host().contains('.') || origin.host().split('.').any(label));
        if wide { Err(PayeesError::TooWide(shorten(text))) } else { Ok(Self { origin, below }) }
    }

    fn contains(&self, asked: &Origin) -> bool {
        let own = &self.origin;
        let above = asked.host().strip_suffix(own.host()).and_then(|rest| rest.strip_suffix('.'));
        let is_host = asked.host() == own.host() || (self.below && above.is_some());
        is_host && (asked.scheme(), asked.port()) == (own.scheme(), own.port())
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}
