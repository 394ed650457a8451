//! `/pay/{usd}/{address}`: credits for USDC over x402, both versions at once.
//!
//! A payment is stored before anything is sent to the chain, and what happens
//! then does not depend on this request: it only waits for a while and says how
//! far the payment is. The signature is the only authority.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, U256};
use automaton_core::faults::FaultPoint;
use automaton_core::time::Span;
use automaton_core::wire::cloud::{PurchaseReply, PurchaseStatus, TIERS_USD};
use automaton_core::wire::x402::{
    self, PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE, X_PAYMENT, X_PAYMENT_RESPONSE, v1,
    v2,
};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, extract::OriginalUri};
use bytes::Bytes;
use futures_util::stream;
use tokio::time::{Instant, timeout_at};

use crate::app::App;
use crate::billing::facilitator::{INSUFFICIENT_BALANCE, NONCE_USED, Offer, Refusal};
use crate::billing::settler::StepError;
use crate::db::{Begun, NewPayment, Payment, PaymentState};
use crate::error::ApiError;

/// How long a client waits for the chain; it gives up after 30 seconds.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);
/// How long a purchase whose reply was not delivered keeps a second one away.
const GUARD: Span = Span::from_secs(120);

pub(super) async fn pay(
    State(app): State<Arc<App>>,
    OriginalUri(uri): OriginalUri,
    Path((usd, recipient)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // silent-ok: what is no number is no tier.
    let tier = TIERS_USD.into_iter().find(|tier| usd.parse().ok() == Some(*tier));
    let usd = tier.ok_or_else(|| {
        ApiError::invalid(format!("credits can be bought for {TIERS_USD:?} US dollars"))
    })?;
    let recipient: Address = recipient
        .strip_prefix("0x")
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| ApiError::invalid("the recipient is no address such as 0x70997970…"))?;
    let url = format!("{}{}", app.public_url, uri.path());
    let offer = Offer { url, description: format!("${usd} of credits"), usd };
    let sent = [PAYMENT_SIGNATURE, X_PAYMENT].into_iter().find_map(|name| headers.get(name));
    let Some(sent) = sent else {
        return app.demand(&offer, "Payment required", None);
    };
    let payment: x402::Payment = sent
        .to_str()
        .map_err(|_| None)
        .and_then(|text| x402::decode(text).map_err(Some))
        .map_err(|error| {
            let why = error.map_or_else(|| "the header is no text".to_owned(), |e| e.to_string());
            ApiError::new(StatusCode::BAD_REQUEST, "MALFORMED_PAYMENT", why)
        })?;
    if let Err(refusal) = app.terms.check(&payment, &offer, app.clock.now()) {
        // A repeated payment may be too old by now and yet have been taken.
        if app.db_payment(&payment).await?.is_none() {
            return app.demand(&offer, refusal.0, Some(&payment));
        }
    }
    match app.take(&payment, &offer, recipient).await? {
        Ok(id) => app.outcome(id, &offer, &payment).await,
        Err(refusal) => app.demand(&offer, refusal.0, Some(&payment)),
    }
}

impl App {
    /// The payment that came before with this authorization.
    async fn db_payment(&self, payment: &x402::Payment) -> Result<Option<Payment>, ApiError> {
        let (asset, authorization) = (self.terms.token.contract, &payment.payload().authorization);
        let chain = self.terms.token.chain.0;
        let found = self.db.find_payment(chain, asset, authorization.clone()).await;
        found.map_err(|error| self.failed(&error))
    }

    /// Stores a payment, or finds the one that it repeats; gives its number.
    async fn take(
        &self,
        payment: &x402::Payment,
        offer: &Offer,
        recipient: Address,
    ) -> Result<Result<i64, Refusal>, ApiError> {
        let payload = payment.payload();
        if self.db_payment(payment).await?.is_none() {
            let on_chain = |error: crate::billing::facilitator::SettlementError| {
                // Nothing was stored or sent, so the client may simply come again.
                (self.report)(format!("a payment waits: {}", automaton_core::error::chain(&error)));
                ApiError::unavailable("the chain cannot be asked now")
            };
            let chain = &self.settler.chain;
            if chain.authorization_used(&payload.authorization).await.map_err(on_chain)? {
                return Ok(Err(NONCE_USED));
            }
            let balance = chain.balance(payload.authorization.from).await.map_err(on_chain)?;
            if balance < payload.authorization.value {
                return Ok(Err(INSUFFICIENT_BALANCE));
            }
        }
        let new = NewPayment {
            chain: self.terms.token.chain.0,
            asset: self.terms.token.contract,
            authorization: payload.authorization.clone(),
            value: offer.price(),
            signature: payload.signature.clone(),
            recipient,
            usd: offer.usd,
            guard: GUARD,
        };
        match self.db.begin_payment(new).await.map_err(|error| self.failed(&error))? {
            Begun::New(id) => {
                self.settler.faults.reach(FaultPoint::PaymentBegun);
                self.settler.wake.notify_one();
                Ok(Ok(id))
            }
            Begun::Known(id) => {
                self.look_again(id).await?;
                Ok(Ok(id))
            }
            Begun::Guarded(id) => Ok(Ok(id)),
            Begun::Conflict => {
                Err(ApiError::conflict("this authorization was used for another purchase"))
            }
        }
    }

    /// A payment that was given up may have been carried out by somebody else.
    async fn look_again(&self, id: i64) -> Result<(), ApiError> {
        let payment = self.db.payment(id).await.map_err(|error| self.failed(&error))?;
        if !matches!(payment.state, PaymentState::Failed(_)) {
            return Ok(());
        }
        match self.settler.step(&payment).await {
            Err(StepError::Db(error)) => Err(self.failed(&error)),
            Err(StepError::Chain(_)) => Err(ApiError::unavailable("the chain cannot be asked now")),
            Ok(()) => Ok(()),
        }
    }

    /// Waits for a payment to end, for a while, and says how far it is.
    async fn outcome(
        &self,
        id: i64,
        offer: &Offer,
        sent: &x402::Payment,
    ) -> Result<Response, ApiError> {
        let deadline = Instant::now() + SETTLED_WITHIN;
        let mut changes = self.settler.changes.subscribe();
        let payment = loop {
            let payment = self.db.payment(id).await.map_err(|error| self.failed(&error))?;
            let ended = matches!(payment.state, PaymentState::Settled(_) | PaymentState::Failed(_));
            if ended || timeout_at(deadline, changes.changed()).await.is_err() {
                break payment;
            }
        };
        let (transaction, status) = match &payment.state {
            PaymentState::Failed(reason) => return self.demand(offer, reason, Some(sent)),
            PaymentState::Settled(hash) => (hash.to_string(), PurchaseStatus::Settled),
            PaymentState::Submitted(sent) => (sent.hash.to_string(), PurchaseStatus::Pending),
            PaymentState::Begun => (String::new(), PurchaseStatus::Pending),
        };
        let balance = self.db.balance(payment.recipient).await;
        let balance = balance.map_err(|error| self.failed(&error))?;
        let cents = i64::from(payment.usd) * 100;
        let reply = PurchaseReply {
            credits_cents: cents,
            amount_cents: cents,
            balance_cents: balance
                .available
                .cents_floor()
                .saturating_add(balance.held.cents_floor()),
            transaction: transaction.clone(),
            status,
        };
        let internal = |error| ApiError::internal(&self.report, &error);
        let json = serde_json::to_vec(&reply).map_err(internal)?;
        let mut response = self.delivered(id, json.into()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.receipt(headers, Ok(&transaction), sent.payload().authorization.value, sent)?;
        Ok(response)
    }

    /// A body that notes when the last of it was handed to the connection. A
    /// client that has left by then never gets so far.
    fn delivered(&self, id: i64, json: Bytes) -> Body {
        let (db, report) = (Arc::clone(&self.db), Arc::clone(&self.report));
        let state = Some(json);
        Body::from_stream(stream::unfold(
            (state, db, report),
            move |(json, db, report)| async move {
                if let Some(json) = json {
                    return Some((Ok::<_, std::convert::Infallible>(json), (None, db, report)));
                }
                if let Err(error) = db.mark_delivered(id).await {
                    report(format!(
                        "a delivery is not noted: {}",
                        automaton_core::error::chain(&error)
                    ));
                }
                None
            },
        ))
    }

    /// Asks for a payment, or for a better one.
    fn demand(
        &self,
        offer: &Offer,
        why: &str,
        sent: Option<&x402::Payment>,
    ) -> Result<Response, ApiError> {
        let internal = |error| ApiError::internal(&self.report, &error);
        let header = x402::encode(&self.terms.demand_v2(offer, why)).map_err(internal)?;
        let body = Json(self.terms.demand_v1(offer, why));
        let mut response = (StatusCode::PAYMENT_REQUIRED, body).into_response();
        put(response.headers_mut(), PAYMENT_REQUIRED, &header)?;
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(sent) = sent {
            self.receipt(response.headers_mut(), Err(why), U256::ZERO, sent)?;
        }
        Ok(response)
    }

    /// What became of the payment, for both versions.
    fn receipt(
        &self,
        headers: &mut HeaderMap,
        outcome: Result<&str, &str>,
        amount: U256,
        sent: &x402::Payment,
    ) -> Result<(), ApiError> {
        let internal = |error| ApiError::internal(&self.report, &error);
        let chain = self.terms.token.chain;
        let payer = Some(sent.payload().authorization.from.to_string());
        let (success, error_reason) = (outcome.is_ok(), outcome.err().map(str::to_owned));
        let transaction = outcome.unwrap_or_default().to_owned();
        let old = v1::SettlementResponse {
            success,
            error_reason: error_reason.clone(),
            transaction: transaction.clone(),
            network: chain.v1_name(),
            payer: payer.clone(),
        };
        let amount = success.then(|| amount.to_string());
        let network = chain.to_string();
        let new =
            v2::SettlementResponse { success, error_reason, payer, transaction, network, amount };
        put(headers, X_PAYMENT_RESPONSE, &x402::encode(&old).map_err(internal)?)?;
        put(headers, PAYMENT_RESPONSE, &x402::encode(&new).map_err(internal)?)?;
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(())
    }
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), ApiError> {
    // Base64 is always a header's value.
    let value = HeaderValue::from_str(value)
        .map_err(|_| ApiError::unavailable("the demand cannot be written"))?;
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}
