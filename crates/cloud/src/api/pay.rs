//! `/pay/{usd}/{address}`: credits for USDC over x402, both versions at once.
//!
//! The fate of a payment does not depend on this request, which only waits for a while and reports
//! how far the payment is. The signature is the only authority, and no reply here may be cached on
//! the way.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, U256};
use automaton_core::money::MicroUsdc;
use automaton_core::time::Span;
use automaton_core::wire::cloud::{IDEMPOTENCY_KEY, PurchaseReply, PurchaseStatus, TIERS_USD};
use automaton_core::wire::x402::{
    self, ExactPayload, PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE, X_PAYMENT,
    X_PAYMENT_RESPONSE, identifier, v1, v2,
};
use automaton_sqlite::chain::{CanonicalRow, Hash};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, extract::OriginalUri};
use bytes::Bytes;
use futures_util::stream;
use tokio::time::Instant;

use super::extract::{OrDemand, Public, TypedResponse};
use super::idempotency_key;
use crate::app::App;
use crate::billing::PaymentAcceptance;
use crate::billing::facilitator::SaleOffer;
use crate::db::{CreditPurchase, IncomingPayment, IncomingPaymentState, NewIncomingPayment};
use crate::error::ApiError;

/// The longest wait for the chain. A client gives up after 30 seconds.
pub(super) const SETTLED_WITHIN: Duration = Duration::from_secs(20);
/// The error sent to a client that sends no payment.
pub(super) const REQUIRED: &str = "Payment required";
/// The time in which a purchase with an undelivered reply prevents a second one.
const GUARD: Span = Span::from_secs(120);

pub(super) async fn pay(
    State(app): State<Arc<App>>,
    _: Public,
    OriginalUri(uri): OriginalUri,
    Path((usd, recipient)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<TypedResponse<OrDemand<Json<PurchaseReply>>>, ApiError> {
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
    let offer = SaleOffer {
        url,
        description: format!("${usd} of credits"),
        mime_type: "application/json",
        pay_to: app.terms.pay_to,
        price: SaleOffer::price_of(usd),
    };
    let Some(payment) = sent(&headers)? else {
        return app.demand(&offer, REQUIRED, None).map(Into::into);
    };
    if let Err(refusal) = app.terms.check(&payment, &offer, app.clock.now())
        // A repeated payment may be too old by now and yet have been taken.
        && app.find_taken(payment.payload()).await?.is_none()
    {
        return app.demand(&offer, refusal.0, Some(&payment)).map(Into::into);
    }
    let until = Instant::now() + SETTLED_WITHIN;
    let key = idempotency_key(&headers)?.map(|key| format!("{IDEMPOTENCY_KEY}:{key}"));
    let names = identifier(&payment)?.into_iter().chain(key).collect();
    let new = app.purchase(&payment, CreditPurchase { recipient, usd }, names);
    match app.settler.take(new).await.map_err(|error| app.stuck(&error))? {
        PaymentAcceptance::Stored(stored) => {
            let paid = app.settler.wait(stored.id, until).await;
            let paid = paid.map_err(|error| app.failed(&error))?;
            app.outcome(&paid, stored.is_its_client, &offer, &payment).map(Into::into)
        }
        PaymentAcceptance::Refused(refusal) => {
            app.demand(&offer, refusal.0, Some(&payment)).map(Into::into)
        }
        PaymentAcceptance::Conflict => {
            Err(ApiError::conflict("this authorization was used for another purchase"))
        }
        PaymentAcceptance::OtherName => Err(ApiError::conflict(
            "this Idempotency-Key or payment-identifier came with another payment",
        )),
        PaymentAcceptance::Busy => Err(app.busy()),
    }
}

/// The payment in the headers of a request.
pub(super) fn sent(headers: &HeaderMap) -> Result<Option<x402::PaymentPayload>, ApiError> {
    let sent = [PAYMENT_SIGNATURE, X_PAYMENT].into_iter().find_map(|name| headers.get(name));
    let Some(sent) = sent else { return Ok(None) };
    let read = sent.to_str().map_err(|_| None).and_then(|text| x402::decode(text).map_err(Some));
    read.map(Some).map_err(|error| {
        let why = error.map_or_else(|| "the header is no text".to_owned(), |e| e.to_string());
        ApiError::new(StatusCode::BAD_REQUEST, "MALFORMED_PAYMENT", why)
    })
}

/// The name that a client gives a payment among its extensions.
pub(super) fn identifier(payment: &x402::PaymentPayload) -> Result<Option<String>, ApiError> {
    let extensions = match payment {
        x402::PaymentPayload::V1(_) => None,
        x402::PaymentPayload::V2(payment) => payment.extensions.as_ref(),
    };
    let malformed = |error: identifier::IdentifierError| {
        ApiError::new(StatusCode::BAD_REQUEST, "MALFORMED_PAYMENT", error.to_string())
    };
    let id = identifier::id_in(extensions).map_err(malformed)?;
    Ok(id.map(|id| format!("{}:{id}", identifier::KEY)))
}

impl App {
    /// Finds the payment that was taken before with exactly this authorization, for a sender
    /// that shows a signature of its payer. The payer and the nonce alone name no payment:
    /// several authorizations can have them.
    pub(super) async fn find_taken(
        &self,
        payload: &ExactPayload,
    ) -> Result<Option<IncomingPayment>, ApiError> {
        if !self.terms.is_signed(payload) {
            return Ok(None);
        }
        let chain = self.terms.token.chain.0;
        let asset = self.terms.token.contract;
        let found = self.db.find_payment(chain, asset, payload.authorization.clone()).await;
        let found = found.map_err(|error| self.failed(&error))?;
        Ok(found.filter(|before| before.authorization == payload.authorization))
    }

    /// Returns the row to store for a payment that buys credits.
    fn purchase(
        &self,
        payment: &x402::PaymentPayload,
        purchase: CreditPurchase,
        names: Vec<String>,
    ) -> NewIncomingPayment {
        let digest = self.terms.token.transfer_digest(&payment.payload().authorization);
        let request = CanonicalRow::new("purchase")
            .bytes(digest.as_slice())
            .bytes(purchase.recipient.as_slice())
            .int(purchase.usd.into());
        NewIncomingPayment {
            purchase: Some(purchase),
            guard: GUARD,
            names,
            ..self.new_payment(payment, SaleOffer::price_of(purchase.usd), request.hash())
        }
    }

    /// A payment that buys nothing here.
    pub(super) fn new_payment(
        &self,
        payment: &x402::PaymentPayload,
        value: MicroUsdc,
        request: Hash,
    ) -> NewIncomingPayment {
        let token = &self.terms.token;
        let payload = payment.payload();
        NewIncomingPayment {
            chain: token.chain.0,
            asset: token.contract,
            authorization: payload.authorization.clone(),
            value,
            signature: payload.signature.clone(),
            purchase: None,
            sale: None,
            guard: Span::ZERO,
            names: Vec::new(),
            request,
        }
    }

    /// Says how far a payment is. Only a reply to its own client counts as delivered, and the
    /// balance is that of the payment's time: anybody can send what stands on the chain again.
    fn outcome(
        &self,
        payment: &IncomingPayment,
        is_its_client: bool,
        offer: &SaleOffer,
        sent: &x402::PaymentPayload,
    ) -> Result<Response, ApiError> {
        let Some(CreditPurchase { usd, .. }) = payment.purchase else {
            return Err(ApiError::conflict("this authorization was settled for somebody else"));
        };
        let (transaction, status) = match &payment.state {
            IncomingPaymentState::Failed(reason) => return self.demand(offer, reason, Some(sent)),
            IncomingPaymentState::Settled(hash) => (hash.to_string(), PurchaseStatus::Settled),
            IncomingPaymentState::Submitted(sent) => {
                let newest = sent.last().map(ToString::to_string);
                (newest.unwrap_or_default(), PurchaseStatus::Pending)
            }
            IncomingPaymentState::Begun => (String::new(), PurchaseStatus::Pending),
        };
        let cents = i64::from(usd) * 100;
        let reply = PurchaseReply {
            credits_cents: cents,
            amount_cents: cents,
            balance_cents: payment.balance.cents_floor(),
            transaction: transaction.clone(),
            status,
            held_up: self.settler.held_up(payment.id),
        };
        let internal = |error| ApiError::internal(&self.report, &error);
        let json = serde_json::to_vec(&reply).map_err(internal)?;
        let body = match is_its_client {
            true => self.delivered(payment.id, json.into()),
            false => Body::from(json),
        };
        let mut response = body.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.receipt(headers, Ok(&transaction), payment.authorization.value, sent)?;
        Ok(response)
    }

    /// A body that notes when the last of it was handed to the connection. A
    /// client that has left by then never gets so far.
    fn delivered(&self, id: i64, json: Bytes) -> Body {
        let db = self.db.clone();
        let report = Arc::clone(&self.report);
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
    pub(super) fn demand(
        &self,
        offer: &SaleOffer,
        why: &str,
        sent: Option<&x402::PaymentPayload>,
    ) -> Result<Response, ApiError> {
        let internal = |error| ApiError::internal(&self.report, &error);
        let header = x402::encode(&self.terms.demand_v2(offer, why)).map_err(internal)?;
        let body = Json(self.terms.demand_v1(offer, why));
        let mut response = (StatusCode::PAYMENT_REQUIRED, body).into_response();
        put(response.headers_mut(), PAYMENT_REQUIRED, &header)?;
        if let Some(sent) = sent {
            self.receipt(response.headers_mut(), Err(why), U256::ZERO, sent)?;
        }
        Ok(response)
    }

    /// Adds the outcome of the payment to the headers, for both versions.
    pub(super) fn receipt(
        &self,
        headers: &mut HeaderMap,
        outcome: Result<&str, &str>,
        amount: U256,
        sent: &x402::PaymentPayload,
    ) -> Result<(), ApiError> {
        let internal = |error| ApiError::internal(&self.report, &error);
        let chain = self.terms.token.chain;
        let payer = Some(sent.payload().authorization.from.to_string());
        let success = outcome.is_ok();
        let error_reason = outcome.err().map(str::to_owned);
        let transaction = outcome.unwrap_or_default().to_owned();
        let amount = success.then(|| amount.to_string());
        let network = chain.to_string();
        let new =
            v2::SettlementResponse { success, error_reason, payer, transaction, network, amount };
        let old = v1::SettlementResponse { network: chain.v1_name(), amount: None, ..new.clone() };
        put(headers, X_PAYMENT_RESPONSE, &x402::encode(&old).map_err(internal)?)?;
        put(headers, PAYMENT_RESPONSE, &x402::encode(&new).map_err(internal)?)?;
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
