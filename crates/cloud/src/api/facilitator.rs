//! `/verify`, `/settle` and `/supported`: payments between others, on our chain and
//! in our token, which we carry out and which credit nobody here.
//!
//! A payment that is no good is an answer with status 200; another status says
//! that nothing is known of it. An authorization settles one thing: what bought
//! credits is not settled here, and the other way round. Must never tell the outcome of
//! one payment as that of another: only the authorization that was settled, with its payer's
//! signature, is reported as settled, to a seller that asks for its payee and amount.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::U256;
use automaton_core::error::chain;
use automaton_core::wire::x402::facilitator::{
    FacilitatorRequest, SupportedResponse, VerifyResponse,
};
use automaton_core::wire::x402::{ChainId, EXACT, PaymentPayload, v2};
use automaton_sqlite::chain::CanonicalRow;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use tokio::time::Instant;

use super::extract::{Public, UnparsedBody};
use super::pay::SETTLED_WITHIN;
use crate::app::App;
use crate::billing::facilitator::{NONCE_USED, PaymentRefusal, SIMULATION_FAILED};
use crate::billing::settlement::SettlementError;
use crate::billing::{PaymentAcceptance, StoredPayment};
use crate::db::IncomingPaymentState;
use crate::error::ApiError;

/// The transfer is on its way, and what becomes of it is not known yet.
pub(super) const PENDING: &str = "settlement_pending";
/// The code for a body that is no payment.
const MALFORMED: &str = "invalid_payload";

pub(super) async fn supported(State(app): State<Arc<App>>, _: Public) -> Json<SupportedResponse> {
    let signers =
        BTreeMap::from([("eip155:*".to_owned(), vec![app.settler.chain.payer().to_string()])]);
    Json(SupportedResponse { kinds: app.terms.ways(), extensions: Vec::new(), signers })
}

pub(super) async fn verify(
    State(app): State<Arc<App>>,
    _: Public,
    UnparsedBody { bytes, .. }: UnparsedBody<FacilitatorRequest>,
) -> (StatusCode, Json<VerifyResponse>) {
    let invalid = |reason: &str, payer| {
        let invalid_reason = Some(reason.to_owned());
        Json(VerifyResponse { is_valid: false, invalid_reason, payer })
    };
    let Ok(request) = serde_json::from_slice::<FacilitatorRequest>(&bytes) else {
        return (StatusCode::BAD_REQUEST, invalid(MALFORMED, None));
    };
    let payer = Some(payer(&request));
    match app.verify(&request).await {
        Ok(None) => {
            let valid = VerifyResponse { is_valid: true, invalid_reason: None, payer };
            (StatusCode::OK, Json(valid))
        }
        Ok(Some(refusal)) => (StatusCode::OK, invalid(refusal.0, payer)),
        Err(error) => {
            (app.report)(format!("a payment cannot be verified: {}", chain(&error)));
            (StatusCode::SERVICE_UNAVAILABLE, invalid("unexpected_verify_error", payer))
        }
    }
}

pub(super) async fn settle(
    State(app): State<Arc<App>>,
    _: Public,
    UnparsedBody { bytes, .. }: UnparsedBody<FacilitatorRequest>,
) -> (StatusCode, Json<v2::SettlementResponse>) {
    let Ok(request) = serde_json::from_slice::<FacilitatorRequest>(&bytes) else {
        let refused = SettleOutcome::Refused(MALFORMED.to_owned());
        return (StatusCode::BAD_REQUEST, Json(refused.into_reply(None, String::new())));
    };
    let network = match &request.payment_payload {
        PaymentPayload::V1(payment) => ChainId::parse(&payment.network)
            .map_or_else(|| payment.network.clone(), ChainId::v1_name),
        PaymentPayload::V2(payment) => payment.accepted.network.clone(),
    };
    match app.settle(&request).await {
        Ok(outcome) => (StatusCode::OK, Json(outcome.into_reply(Some(&request), network))),
        Err(error) => {
            let unexpected = SettleOutcome::Refused("unexpected_settle_error".to_owned());
            (error.status, Json(unexpected.into_reply(Some(&request), network)))
        }
    }
}

/// The outcome of a payment.
enum SettleOutcome {
    /// It is on the chain, by this transaction, with this amount.
    Settled { transaction: String, amount: U256 },
    /// It is on its way, by this transaction.
    Pending(String),
    /// It is not on the chain, and will not be.
    Refused(String),
}

impl SettleOutcome {
    fn into_reply(
        self,
        request: Option<&FacilitatorRequest>,
        network: String,
    ) -> v2::SettlementResponse {
        let blank = v2::SettlementResponse {
            success: false,
            error_reason: None,
            payer: request.map(payer),
            transaction: String::new(),
            network,
            amount: None,
        };
        match self {
            Self::Settled { transaction, amount } => v2::SettlementResponse {
                success: true,
                transaction,
                amount: Some(amount.to_string()),
                ..blank
            },
            Self::Pending(transaction) => {
                let error_reason = Some(PENDING.to_owned());
                v2::SettlementResponse { error_reason, transaction, ..blank }
            }
            Self::Refused(reason) => v2::SettlementResponse { error_reason: Some(reason), ..blank },
        }
    }
}

fn payer(request: &FacilitatorRequest) -> String {
    request.payment_payload.payload().authorization.from.to_string()
}

impl App {
    async fn verify(
        &self,
        request: &FacilitatorRequest,
    ) -> Result<Option<PaymentRefusal>, SettlementError> {
        let payload = request.payment_payload.payload();
        let checked = self.terms.check_for(request);
        let now = self.clock.now();
        let valid = checked.and_then(|_| self.terms.check_time(&payload.authorization, now));
        if let Err(refusal) = valid {
            return Ok(Some(refusal));
        }
        if let Some(refusal) = self.settler.refuses(&payload.authorization).await? {
            return Ok(Some(refusal));
        }
        match self.settler.chain.simulate(&payload.authorization, &payload.signature).await {
            Ok(_) => Ok(None),
            Err(SettlementError::Rejected { .. }) => Ok(Some(SIMULATION_FAILED)),
            Err(error) => Err(error),
        }
    }

    async fn settle(&self, request: &FacilitatorRequest) -> Result<SettleOutcome, ApiError> {
        let refused = |refusal: PaymentRefusal| SettleOutcome::Refused(refusal.0.to_owned());
        let until = Instant::now() + SETTLED_WITHIN;
        let value = match self.terms.check_for(request) {
            Ok(value) => value,
            Err(refusal) => return Ok(refused(refusal)),
        };
        let payload = request.payment_payload.payload();
        if let Err(refusal) = self.terms.check_time(&payload.authorization, self.clock.now())
            // A repeated request may be too old by now and yet have been settled.
            && self.find_taken(payload).await?.is_none()
        {
            return Ok(refused(refusal));
        }
        let same = CanonicalRow::new(EXACT).hash();
        let new = self.new_payment(&request.payment_payload, value, same);
        match self.settler.take(new).await.map_err(|error| self.stuck(&error))? {
            PaymentAcceptance::Stored(StoredPayment { id, .. }) => self.settled(id, until).await,
            PaymentAcceptance::Refused(refusal) => Ok(refused(refusal)),
            PaymentAcceptance::Conflict | PaymentAcceptance::OtherName => Ok(refused(NONCE_USED)),
            PaymentAcceptance::Busy => Err(self.busy()),
        }
    }

    async fn settled(&self, id: i64, until: Instant) -> Result<SettleOutcome, ApiError> {
        let payment = self.settler.wait(id, until).await.map_err(|error| self.failed(&error))?;
        Ok(match payment.state {
            IncomingPaymentState::Settled(transaction) => SettleOutcome::Settled {
                transaction: transaction.to_string(),
                amount: payment.authorization.value,
            },
            IncomingPaymentState::Submitted(sent) => {
                SettleOutcome::Pending(sent.last().map(ToString::to_string).unwrap_or_default())
            }
            IncomingPaymentState::Begun => SettleOutcome::Pending(String::new()),
            IncomingPaymentState::Failed(reason) => SettleOutcome::Refused(reason),
        })
    }
}
