//! `/verify`, `/settle` and `/supported`: payments between others, on our chain and
//! in our token, which we carry out and which credit nobody here.
//!
//! A payment that is no good is an answer with status 200; another status says
//! that nothing is known of it. An authorization settles one thing: what bought
//! credits is not settled here, and the other way round.

use std::collections::BTreeMap;
use std::sync::Arc;

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
use crate::billing::PaymentAcceptance;
use crate::billing::facilitator::{NONCE_USED, PaymentRefusal, SIMULATION_FAILED};
use crate::billing::settlement::SettlementError;
use crate::db::IncomingPaymentState;
use crate::error::ApiError;

/// The transfer is on its way, and what becomes of it is not known yet.
pub(super) const PENDING: &str = "settlement_pending";
/// What was sent is no payment.
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
        return (StatusCode::BAD_REQUEST, Json(refused.told(None, String::new())));
    };
    let network = match &request.payment_payload {
        PaymentPayload::V1(payment) => ChainId::parse(&payment.network)
            .map_or_else(|| payment.network.clone(), ChainId::v1_name),
        PaymentPayload::V2(payment) => payment.accepted.network.clone(),
    };
    match app.settle(&request).await {
        Ok(outcome) => (StatusCode::OK, Json(outcome.told(Some(&request), network))),
        Err(error) => {
            let unexpected = SettleOutcome::Refused("unexpected_settle_error".to_owned());
            (error.status, Json(unexpected.told(Some(&request), network)))
        }
    }
}

/// What became of a payment.
enum SettleOutcome {
    /// It is on the chain.
    Settled(String),
    /// It is on its way, by this transaction.
    Pending(String),
    /// It is not on the chain, and will not be.
    Refused(String),
}

impl SettleOutcome {
    fn told(self, request: Option<&FacilitatorRequest>, network: String) -> v2::SettlementResponse {
        let (success, error_reason, transaction) = match self {
            Self::Settled(transaction) => (true, None, transaction),
            Self::Pending(transaction) => (false, Some(PENDING.to_owned()), transaction),
            Self::Refused(reason) => (false, Some(reason), String::new()),
        };
        let authorization = request.map(|request| &request.payment_payload.payload().authorization);
        let amount = authorization.filter(|_| success).map(|paid| paid.value.to_string());
        let payer = request.map(payer);
        v2::SettlementResponse { success, error_reason, payer, transaction, network, amount }
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
        if let Err(refusal) = self.terms.check_for(request, self.clock.now()) {
            return Ok(Some(refusal));
        }
        let payload = request.payment_payload.payload();
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
        let value = match self.terms.check_for(request, self.clock.now()) {
            Ok(value) => value,
            Err(refusal) => {
                // A repeated request may be too old by now and yet have been settled.
                let before = self.known(&request.payment_payload).await?;
                match before.filter(|before| (before.purchase, before.sale) == (None, None)) {
                    Some(before) => return self.settled(before.id, until).await,
                    None => return Ok(refused(refusal)),
                }
            }
        };
        let same = CanonicalRow::new(EXACT).hash();
        let new = self.new_payment(&request.payment_payload, value, same);
        match self.settler.take(new).await.map_err(|error| self.stuck(&error))? {
            PaymentAcceptance::Stored(id) => self.settled(id, until).await,
            PaymentAcceptance::Refused(refusal) => Ok(refused(refusal)),
            PaymentAcceptance::Conflict | PaymentAcceptance::OtherName => Ok(refused(NONCE_USED)),
            PaymentAcceptance::Busy => Err(self.busy()),
        }
    }

    async fn settled(&self, id: i64, until: Instant) -> Result<SettleOutcome, ApiError> {
        let payment = self.settler.wait(id, until).await.map_err(|error| self.failed(&error))?;
        Ok(match payment.state {
            IncomingPaymentState::Settled(transaction) => {
                SettleOutcome::Settled(transaction.to_string())
            }
            IncomingPaymentState::Submitted(sent) => {
                SettleOutcome::Pending(sent.last().map(ToString::to_string).unwrap_or_default())
            }
            IncomingPaymentState::Begun => SettleOutcome::Pending(String::new()),
            IncomingPaymentState::Failed(reason) => SettleOutcome::Refused(reason),
        })
    }
}
