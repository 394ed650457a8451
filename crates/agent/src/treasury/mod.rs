//! The one door for all money: credits that are bought, credits that are given away,
//! requests that are paid for.
//!
//! Whoever wants to spend comes here: the creator's hand, a reflex, a tool. One at a
//! time is judged, written down and signed, under one set of limits. What is open is
//! gone on with before an equal payment begins, with the very bytes that were signed.
//! A balance that cannot be read buys nothing, and a reply that is lost leaves the
//! payment open until the cloud or the chain says what became of it; it must never
//! lead to a second signature.

mod account;
mod auto_topup;
mod balances;
mod books;
mod error;
mod fetch;
mod hard_limit;
mod history;
mod proposal;
mod reconcile;
mod sales;
mod topup;
mod transfer;
mod unsettled;
mod usdc;
mod window;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use alloy_primitives::{Address, B256};
use automaton_client::CloudClient;
use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::id::{IdGenerator, PaymentId};
use automaton_core::money::MicroUsdc;
use automaton_core::secret::Secret;
use automaton_core::time::{Span, Timestamp};
use automaton_core::window::BootClock;
use automaton_core::wire::x402::{ChainId, TokenDomain};
use automaton_net::HttpClient;
use automaton_net::pay::{Payees, PayeesError};
use automaton_policy::PaymentLimits;
use automaton_store::{Hash, PortSales, Store};
use automaton_wallet::{AuditHead, ChainClient, SignerClient, SignerClientError};
use tokio::sync::{Mutex, Notify};

pub use self::error::TreasuryError;
pub use self::fetch::{FetchOutcome, FetchPayment, PaidFetch};
pub(crate) use self::sales::status_sentence;
pub use self::transfer::CreditTransfer;
pub(crate) use self::unsettled::settle_unsettled;
pub use automaton_tools::context::Balances;

use self::auto_topup::TopUpState;
use self::balances::CachedBalances;
use self::window::WindowTimer;
use crate::deps::EventSink;

/// The longest that a turn waits for a purchase, which goes on behind the door.
const WAIT: Duration = Duration::from_secs(15);

/// A purchase that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopUpOutcome {
    /// The payment.
    pub id: PaymentId,
    /// For how many US dollars of credits.
    pub usd: u32,
    /// Amount.
    pub amount: MicroUsdc,
    /// The transaction, where it is known.
    pub transaction: Option<String>,
    /// True if the chain has confirmed it; otherwise it is still open.
    pub settled: bool,
    /// The reason why the cloud holds the purchase up, in its words.
    pub held_up: Option<String>,
}

/// Dependencies of a purchase.
#[derive(Debug, Clone)]
pub struct PaymentContext {
    /// The cloud.
    pub cloud: CloudClient,
    /// The cloud as the record names it.
    pub origin: String,
    /// The key of the account; without one its credits are unknown.
    pub key: Option<Secret>,
    /// The wallet.
    pub signer: SignerClient,
    /// The chain.
    pub chain: ChainClient,
    /// USDC on it.
    pub token: TokenDomain,
    /// HTTP client for requests that may cost something.
    pub net: HttpClient,
}

/// An account with a cloud.
#[derive(Debug, Clone)]
pub(crate) struct CloudAccount {
    /// The cloud.
    pub(crate) cloud: CloudClient,
    /// The key.
    pub(crate) key: Secret,
}

/// Address for deposits of USDC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DepositAddress {
    /// The wallet.
    pub(crate) address: Address,
    /// The chain.
    pub(crate) chain: ChainId,
    /// USDC on it.
    pub(crate) token: Address,
}

/// Clocks and event receiver of a treasury.
#[derive(Clone)]
pub struct TreasuryDeps {
    /// The clock.
    pub ids: IdGenerator,
    /// The clock that nobody can set.
    pub boot: Arc<dyn BootClock>,
    /// Faults, inert outside rehearsals.
    pub faults: Arc<dyn Faults>,
    /// Receiver of events.
    pub events: Arc<dyn EventSink>,
}

/// The one door to the wallet.
pub struct Treasury {
    store: Store,
    payment_context: PaymentContext,
    deps: TreasuryDeps,
    limits: PaymentLimits,
    /// Hosts that may be paid for requests.
    payees: Payees,
    /// Address whose credits are funding and not revenue.
    creator: Option<Address>,
    /// Time that a question waits for its answer, if the creator set one.
    answer_within: Option<Span>,
    /// Lock of purchases.
    topup_lock: Arc<Mutex<TopUpState>>,
    /// Lock of balance readings, with the last reading.
    reading: Mutex<Option<CachedBalances>>,
    /// The time since boot at which this one begins, where it can be read.
    started_at_boot_time: Option<Span>,
    /// Window time since then, once something has asked for it.
    window_timer: Mutex<Option<WindowTimer>>,
    /// Goes up whenever what was read is worth nothing any more.
    epoch: AtomicU64,
    /// True if the cloud refused a request for lack of credits.
    out_of_credits: AtomicBool,
    /// Held by the one that reads the account's history.
    history_lock: Mutex<()>,
    /// The paid requests to each port, as they were last read.
    sold: std::sync::Mutex<Vec<PortSales>>,
    /// Notified when a port that sells has a visitor.
    paying_visitor: Notify,
    /// Since when purchases fail, and what helps.
    failing: std::sync::Mutex<Option<(Timestamp, String)>>,
}

impl fmt::Debug for Treasury {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Treasury")
            .field("payment_context", &self.payment_context)
            .finish_non_exhaustive()
    }
}

impl Treasury {
    /// The cloud, as the record names it.
    pub(crate) fn cloud(&self) -> &str {
        &self.payment_context.origin
    }

    /// Returns the limits for spending without asking.
    pub(crate) const fn limits(&self) -> &PaymentLimits {
        &self.limits
    }

    /// Has the wallet sign how the record ends; the text with the signature.
    ///
    /// # Errors
    /// When the signer refuses or is gone.
    pub(crate) async fn sign_head(
        &self,
        entries: u64,
        head: Hash,
    ) -> Result<String, SignerClientError> {
        let head = B256::from(*head.as_bytes());
        self.payment_context
            .signer
            .audit_head(AuditHead { entries, head, at: self.deps.ids.now() })
            .await
    }

    /// Returns the address for deposits of USDC.
    pub(crate) fn payable(&self) -> DepositAddress {
        let PaymentContext { signer, token, .. } = &self.payment_context;
        DepositAddress { address: signer.address(), chain: token.chain, token: token.contract }
    }

    /// A treasury over the automaton's record, with the usual limits, that pays
    /// nobody for requests.
    #[must_use]
    pub fn new(store: Store, payment_context: PaymentContext, deps: TreasuryDeps) -> Self {
        let topup_lock = Arc::default();
        let reading = Mutex::default();
        let epoch = AtomicU64::new(0);
        let out_of_credits = AtomicBool::new(false);
        let limits = PaymentLimits::default();
        let payees = Payees::default();
        let creator = None;
        let answer_within = None;
        let started_at_boot_time = deps.boot.since_boot();
        let window_timer = Mutex::default();
        Self {
            store,
            payment_context,
            deps,
            limits,
            payees,
            creator,
            answer_within,
            topup_lock,
            reading,
            started_at_boot_time,
            window_timer,
            epoch,
            out_of_credits,
            history_lock: Mutex::default(),
            sold: std::sync::Mutex::default(),
            paying_visitor: Notify::new(),
            failing: std::sync::Mutex::default(),
        }
    }

    /// The same under the creator's limits.
    ///
    /// # Errors
    /// When a host that may be paid is none.
    pub fn with_limits(self, limits: PaymentLimits) -> Result<Self, PayeesError> {
        let payees = Payees::parse(limits.x402_hosts.iter().map(String::as_str))?;
        Ok(Self { limits, payees, ..self })
    }

    /// The same, with a creator whose credits are funding.
    #[must_use]
    pub fn with_creator(self, creator: Option<Address>) -> Self {
        Self { creator, ..self }
    }

    /// The same, whose questions wait so long for an answer.
    #[must_use]
    pub fn with_answer_timeout(self, answer_within: Option<Span>) -> Self {
        Self { answer_within, ..self }
    }

    fn reach(&self, point: FaultPoint) {
        self.deps.faults.reach(point);
    }

    fn emit(&self, event: Event) {
        let at = self.deps.ids.now();
        self.deps.events.emit(StampedEvent { at, event });
    }
}
