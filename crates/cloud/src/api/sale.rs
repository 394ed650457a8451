//! Sells requests to ports with a price: USDC for the machine's owner, on the chain before the
//! request is passed on.
//!
//! A payment is for one port and good for one request. The delivery is recorded before the request
//! is passed on, so no payment ever pays for two. If a paid request was never passed on, because a
//! process died or the program was gone, a client that sends the same again still gets it.

use std::ops::ControlFlow;

use automaton_core::wire::x402;
use automaton_sqlite::chain::CanonicalRow;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use tokio::time::Instant;

use super::facilitator::PENDING;
use super::pay::{self, REQUIRED, SETTLED_WITHIN};
use crate::app::App;
use crate::billing::PaymentAcceptance;
use crate::billing::facilitator::{NONCE_USED, SaleOffer};
use crate::db::{IncomingPayment, IncomingPaymentState, NewIncomingPayment, Sale};
use crate::error::ApiError;

/// A request that costs something.
pub(crate) struct SaleItem {
    /// The port.
    pub(crate) sale: Sale,
    /// The offer.
    pub(crate) offer: SaleOffer,
}

/// The value to continue with, or the response to send at once.
pub(crate) type SaleFlow<T> = Result<ControlFlow<Response, T>, ApiError>;

/// A payment that is on the chain.
pub(crate) struct SettledSale {
    /// Its number in the database.
    pub(crate) id: i64,
    receipt: HeaderMap,
}

impl SettledSale {
    /// The answer with the receipt, which nobody else writes.
    pub(crate) fn add_receipt(self, mut answer: Response) -> Response {
        answer.headers_mut().remove(x402::PAYMENT_REQUIRED);
        answer.headers_mut().extend(self.receipt);
        answer
    }
}

impl App {
    /// The payment that comes with a request, once all but the chain is for it.
    pub(crate) async fn presented(
        &self,
        ware: &SaleItem,
        headers: &HeaderMap,
    ) -> SaleFlow<x402::PaymentPayload> {
        let Some(payment) = pay::sent(headers)? else {
            return self.asks(ware, REQUIRED, None);
        };
        let refusal = match self.find_taken(payment.payload()).await? {
            // The price may be another by now.
            Some(before) => (!is_owed(&before, ware)).then_some(NONCE_USED),
            None => self.terms.check(&payment, &ware.offer, self.clock.now()).err(),
        };
        match refusal {
            Some(refusal) => self.asks(ware, refusal.0, Some(&payment)),
            None => Ok(ControlFlow::Continue(payment)),
        }
    }

    /// Has a payment carried out, and waits for it to be as final as one for credits.
    pub(crate) async fn settled_for(
        &self,
        ware: &SaleItem,
        payment: &x402::PaymentPayload,
    ) -> SaleFlow<SettledSale> {
        let until = Instant::now() + SETTLED_WITHIN;
        let new = self.request_paid(ware, payment)?;
        let again = |why: &str| self.asks(ware, why, Some(payment));
        let id = match self.settler.take(new).await.map_err(|error| self.stuck(&error))? {
            PaymentAcceptance::Stored(stored) => stored.id,
            PaymentAcceptance::Refused(refusal) => return again(refusal.0),
            PaymentAcceptance::Conflict => return again(NONCE_USED.0),
            PaymentAcceptance::OtherName => {
                return Err(ApiError::conflict(
                    "this payment-identifier came with another payment",
                ));
            }
            PaymentAcceptance::Busy => return Err(self.busy()),
        };
        let paid = self.settler.wait(id, until).await.map_err(|error| self.failed(&error))?;
        let mut receipt = HeaderMap::new();
        let value = payment.payload().authorization.value;
        match paid.state {
            IncomingPaymentState::Failed(reason) => again(&reason),
            IncomingPaymentState::Settled(hash) => {
                self.receipt(&mut receipt, Ok(&hash.to_string()), value, payment)?;
                Ok(ControlFlow::Continue(SettledSale { id, receipt }))
            }
            IncomingPaymentState::Begun | IncomingPaymentState::Submitted(_) => {
                let why = "the payment is on its way: send the same request with it again";
                let mut answer = ApiError::unavailable(why).into_response();
                self.receipt(answer.headers_mut(), Err(PENDING), value, payment)?;
                Ok(ControlFlow::Break(answer))
            }
        }
    }

    /// Notes that the request of a payment is passed on now.
    pub(crate) async fn redeem(&self, paid: i64) -> Result<(), ApiError> {
        let first = self.db.mark_delivered(paid).await.map_err(|error| self.failed(&error))?;
        let used = || ApiError::conflict("this payment paid for another request");
        first.then_some(()).ok_or_else(used)
    }

    fn asks<T>(
        &self,
        ware: &SaleItem,
        why: &str,
        sent: Option<&x402::PaymentPayload>,
    ) -> SaleFlow<T> {
        let mut answer = self.demand(&ware.offer, why, sent)?;
        answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(ControlFlow::Break(answer))
    }

    /// Returns the row to store for a payment for a request.
    fn request_paid(
        &self,
        ware: &SaleItem,
        payment: &x402::PaymentPayload,
    ) -> Result<NewIncomingPayment, ApiError> {
        let digest = self.terms.token.transfer_digest(&payment.payload().authorization);
        let request = CanonicalRow::new("request")
            .bytes(digest.as_slice())
            .bytes(ware.sale.machine.to_string().as_bytes())
            .int(ware.sale.port.into());
        Ok(NewIncomingPayment {
            sale: Some(ware.sale),
            names: pay::identifier(payment)?.into_iter().collect(),
            ..self.new_payment(payment, ware.offer.price, request.hash())
        })
    }
}

/// Returns whether a payment that was taken before came for this port and is owed its request
/// still.
fn is_owed(before: &IncomingPayment, ware: &SaleItem) -> bool {
    !before.is_delivered && before.sale == Some(ware.sale)
}
