//! Requests that may cost something: at most what was said, to whom may be paid, and
//! once.
//!
//! The door is held while a payment is judged, written down and signed, and not
//! while a server takes its time. An equal request whose payment is open sends that
//! payment again. A server's word never ends a payment.

use automaton_core::error::{Classified, chain};
use automaton_core::event::{Event, PaidRequest};
use automaton_core::faults::FaultPoint;
use automaton_core::id::PaymentId;
use automaton_core::money::MicroUsdc;
use automaton_core::payment::{
    NewPayment, Payment, PaymentReason, PaymentState, Purpose, SignedPayment,
};
use automaton_core::secret::Secret;
use automaton_core::wire::x402::{
    PAYMENT_REQUIRED, PAYMENT_SIGNATURE, X_PAYMENT, X_PAYMENT_REQUIRED,
};
use automaton_net::pay::{PaidResponse, Payer, PaymentChallenge, PaymentHeader};
use automaton_net::{FullResponse, Header, HttpRequest, NetError};
use automaton_policy::ReasonCode;
use automaton_store::{Hash, PaymentStep};
use automaton_wallet::x402::{
    PaymentExpectation, PaymentRequiredParts, Price, SelectedOffer, offers, select, transaction,
};
use tracing::{Instrument as _, info_span};

use super::usdc::AuthorizationStatus;
use super::{Treasury, TreasuryError};

/// A request, and what it may cost.
#[derive(Debug, Clone)]
pub struct PaidFetch {
    /// The request.
    pub request: HttpRequest,
    /// The most that it may cost.
    pub cap: MicroUsdc,
    /// On whose account.
    pub why: PaymentReason,
}

/// Result of a request.
#[derive(Debug)]
pub struct FetchOutcome {
    /// The answer.
    pub reply: FullResponse,
    /// Payment for it.
    pub paid: Option<FetchPayment>,
}

/// Payment for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPayment {
    /// The payment.
    pub id: PaymentId,
    /// Amount.
    pub amount: MicroUsdc,
    /// True if the chain has confirmed it.
    pub settled: bool,
}

/// A payment on its way.
struct InFlightPayment {
    payment: Payment,
    signed: SignedPayment,
}

/// Pays for one errand.
struct FetchPayer<'a> {
    treasury: &'a Treasury,
    key: String,
    cap: MicroUsdc,
    why: &'a PaymentReason,
}

impl Treasury {
    /// Sends a request, and pays for it once if that is asked within the cap.
    ///
    /// # Errors
    /// [`TreasuryError`]; after [`TreasuryError::Unknown`] it is not known whether
    /// the payment was taken, and an equal request sends the same one again.
    pub async fn fetch(&self, errand: PaidFetch) -> Result<FetchOutcome, TreasuryError> {
        let PaidFetch { request, cap, why } = &errand;
        let payer = FetchPayer { treasury: self, key: key_of(request), cap: *cap, why };
        let net = &self.payment_context.net;
        let span = info_span!("payment", purpose = "x402", most = %cap);
        let paying = net.request_paying(request.clone(), &self.payees, &payer);
        let fetched = paying.instrument(span).await;
        self.forget_balances();
        match fetched {
            Ok(PaidResponse::Free(reply)) => Ok(FetchOutcome { reply, paid: None }),
            Ok(PaidResponse::Paid(brought)) => Ok(brought),
            Err(error) => {
                if !matches!(error, TreasuryError::Asked { .. }) {
                    let kind = error.kind();
                    let hint = error.hint();
                    let error = chain(&error).to_string();
                    self.emit(Event::PaymentFailed { kind, error, hint });
                }
                Err(error)
            }
        }
    }

    /// Returns the secret that no outgoing text may hold: the key of the account.
    pub(crate) fn own_secret(&self) -> Option<&str> {
        self.payment_context.key.as_ref().map(Secret::reveal)
    }

    /// The account with the cloud, where there is a key to it.
    pub(crate) fn account(&self) -> Option<super::CloudAccount> {
        let cloud = self.payment_context.cloud.clone();
        let key = self.payment_context.key.clone();
        key.map(|key| super::CloudAccount { cloud, key })
    }

    /// Hosts that may be paid for requests, as the creator wrote them.
    pub(crate) fn paid_hosts(&self) -> Vec<String> {
        self.limits.x402_hosts.clone()
    }
}

/// Returns the key by which two requests are equal: method, address, given headers, body.
fn key_of(request: &HttpRequest) -> String {
    let mut what = format!("{:?} {}\n", request.method, request.url);
    for header in &request.headers {
        if let Header::Named(name, value) = header {
            what.push_str(&format!("{name}: {value}\n"));
        }
    }
    let bytes: Vec<u8> = what.bytes().chain(request.body.iter().copied()).collect();
    format!("x402 {}", Hash::of(&bytes))
}

impl Payer for FetchPayer<'_> {
    type Pending = InFlightPayment;
    type Outcome = FetchOutcome;
    type Error = TreasuryError;

    async fn pay(
        &self,
        challenge: PaymentChallenge,
    ) -> Result<(PaymentHeader, InFlightPayment), TreasuryError> {
        let treasury = self.treasury;
        let origin = challenge.origin.to_string();
        let chosen = treasury.refused(&origin, self.choose(&challenge.reply)).await?;
        let _alone = treasury.topup_lock.lock().await;
        let payment = match self.open(&chosen).await? {
            Some(open) => open,
            None => {
                if let Some(paid) = treasury.store.unreported_payment(&self.key).await? {
                    treasury.store.mark_payment_reported(paid.id, self.why.call).await?;
                    return Err(TreasuryError::PaidBefore { id: paid.id });
                }
                let id = self.propose(self.new_payment(&chosen, origin)).await?;
                treasury.store.payment(id).await?
            }
        };
        let signed = match &payment.signed {
            Some(signed) => signed.clone(),
            None => treasury.sign(payment.id, &chosen).await?,
        };
        treasury.store.advance_payment(payment.id, PaymentStep::Submitted).await?;
        treasury.reach(FaultPoint::PaymentSubmitted);
        let header = if signed.header == X_PAYMENT { X_PAYMENT } else { PAYMENT_SIGNATURE };
        let value = Secret::new(signed.value.clone());
        Ok((PaymentHeader { header, value }, InFlightPayment { payment, signed }))
    }

    async fn settle(
        &self,
        sent: InFlightPayment,
        reply: Result<FullResponse, NetError>,
    ) -> Result<FetchOutcome, TreasuryError> {
        let treasury = self.treasury;
        treasury.reach(FaultPoint::PaymentAnswered);
        let InFlightPayment { payment, signed } = sent;
        let id = payment.id;
        // Whether it was taken is the chain's to say, whatever the server answers. A
        // chain that cannot be read leaves it unknown.
        let used = treasury.used(&payment.terms, &signed).await;
        let transaction =
            reply.as_ref().ok().and_then(|reply| transaction(|name| reply.header(name)));
        // Somebody who looked after it may have come to its end before.
        let mut settled = treasury.store.payment(id).await?.state == PaymentState::Settled;
        if !settled {
            settled = matches!(used, Ok(true));
            let step = if settled {
                PaymentStep::Settled(transaction.clone())
            } else {
                PaymentStep::Unknown
            };
            treasury.store.advance_payment(id, step).await?;
        }
        treasury.reach(FaultPoint::PaymentBooked);
        let amount = payment.terms.money.usdc();
        let reply = match reply {
            Ok(reply) => reply,
            Err(source) if settled => {
                treasury.store.mark_payment_reported(id, self.why.call).await?;
                return Err(TreasuryError::AnswerLost { id, source });
            }
            Err(source) => return Err(TreasuryError::NoReply { id, source }),
        };
        if settled || (200..300).contains(&reply.status) {
            // Answered, so an equal request is another one.
            treasury.store.mark_payment_reported(id, self.why.call).await?;
            let origin = payment.terms.origin;
            let paid = PaidRequest { payment: id, origin, amount, settled, transaction };
            treasury.emit(Event::RequestPaid(paid));
            return Ok(FetchOutcome { reply, paid: Some(FetchPayment { id, amount, settled }) });
        }
        let said = format!("it answered with status {}", reply.status);
        Err(TreasuryError::NotTaken { id, said })
    }
}

impl FetchPayer<'_> {
    /// The demand, when it is one that may be paid.
    fn choose(&self, reply: &FullResponse) -> Result<SelectedOffer, TreasuryError> {
        let demand = PaymentRequiredParts {
            payment_required: reply.header(PAYMENT_REQUIRED),
            x_payment_required: reply.header(X_PAYMENT_REQUIRED),
            body: &reply.body,
        };
        let token = &self.treasury.payment_context.token;
        let price = Price::AtMost(self.cap);
        let wanted = PaymentExpectation { token, payee: None, price };
        let offers = offers(demand).map_err(TreasuryError::Unreadable)?;
        select(offers, &wanted).map_err(TreasuryError::Refused)
    }

    /// The payment of an equal request that is open, to be sent or signed.
    async fn open(&self, chosen: &SelectedOffer) -> Result<Option<Payment>, TreasuryError> {
        let treasury = self.treasury;
        let Some(open) = treasury.store.open_payment(&self.key).await? else { return Ok(None) };
        if let Some(signed) = &open.signed {
            let ended = treasury.close(&open, signed).await? != AuthorizationStatus::Open;
            return if ended { Ok(None) } else { self.within(open).await.map(Some) };
        }
        if open.state == PaymentState::Proposed {
            let reason = open.reason.unwrap_or_default();
            return Err(TreasuryError::Asked { id: open.id, reason });
        }
        let same = (open.terms.payee, open.terms.money) == (chosen.payee, treasury.money(chosen));
        if same && treasury.store.is_confirmed(open.id).await? {
            return self.within(open).await.map(Some);
        }
        // Begun by a process that died, or for other terms than those of now.
        treasury.fail(open.id, "it was never signed, and is asked for anew".to_owned()).await?;
        Ok(None)
    }

    /// An open payment, if no more than now may be paid. What was said when it was
    /// signed does not count any more.
    async fn within(&self, open: Payment) -> Result<Payment, TreasuryError> {
        let treasury = self.treasury;
        let most = self.cap.face_value()?.min(treasury.limits.x402_max);
        if open.terms.money.worth()? <= most {
            return Ok(open);
        }
        let id = open.id;
        let amount = open.terms.money.usdc();
        let dearer = Err(TreasuryError::OpenDearer { id, amount, most });
        treasury.refused(&open.terms.origin, dearer).await
    }

    fn new_payment(&self, chosen: &SelectedOffer, origin: String) -> NewPayment {
        let money = self.treasury.money(chosen);
        let purpose = Purpose::X402;
        let request = self.key.clone();
        let why = self.why.clone();
        NewPayment { purpose, request, origin, payee: chosen.payee, money, why }
    }

    /// Has a payment judged against what the wallet holds, and stored. If it is refused because
    /// the balance cannot be read, the error says why it cannot.
    async fn propose(&self, payment: NewPayment) -> Result<PaymentId, TreasuryError> {
        let balance = self.treasury.usdc().await;
        // silent-ok: more than can be counted is not known.
        let have = balance.as_ref().ok().and_then(|usdc| usdc.face_value().ok());
        match (self.treasury.propose(payment, have).await, balance) {
            (Err(TreasuryError::Denied { code, .. }), Err(unread))
                if code == ReasonCode::BalanceUnknown.name() =>
            {
                Err(unread)
            }
            (proposed, _) => proposed,
        }
    }
}
