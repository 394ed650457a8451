//! Sign-in and registration.

use std::sync::Arc;

use alloy_primitives::hex;
use automaton_core::wire::cloud::{
    ApiKeyReply, ApiKeyRequest, NonceReply, RegisteredAutomaton, RegistrationReply,
    RegistrationRequest, VerifyReply, VerifyRequest,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::extract::{AccessToken, JsonBody, Public};
use crate::access::Caller;
use crate::app::App;
use crate::billing::facilitator::signer;
use crate::db::RegisterOutcome;
use crate::error::ApiError;

/// The longest text of a registration, in bytes.
const TEXT_BYTES_MAX: usize = 8 * 1024;

pub(super) async fn nonce(
    State(app): State<Arc<App>>,
    _: Public,
) -> Result<Json<NonceReply>, ApiError> {
    Ok(Json(NonceReply { nonce: app.access.nonce(app.clock.now()) }))
}

/// A client may choose its own, too: what keeps a registration from being changed is the wallet's.
pub(super) async fn register_nonce(
    State(app): State<Arc<App>>,
    _: Caller,
) -> Result<Json<NonceReply>, ApiError> {
    Ok(Json(NonceReply { nonce: app.access.fresh() }))
}

pub(super) async fn verify(
    State(app): State<Arc<App>>,
    _: Public,
    JsonBody(request): JsonBody<VerifyRequest>,
) -> Result<Json<VerifyReply>, ApiError> {
    let access_token = app.access.verify(&request, app.clock.now()).await?;
    Ok(Json(VerifyReply { access_token }))
}

pub(super) async fn api_keys(
    State(app): State<Arc<App>>,
    AccessToken(token): AccessToken,
    JsonBody(request): JsonBody<ApiKeyRequest>,
) -> Result<Json<ApiKeyReply>, ApiError> {
    let token = token.ok_or_else(|| ApiError::unauthorized("an access token is needed"))?;
    app.access.api_key(&token, &request.name).await.map(Json)
}

pub(super) async fn register(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(row): JsonBody<RegistrationRequest>,
) -> Result<Json<RegistrationReply>, ApiError> {
    if row.chain_type.as_deref().is_some_and(|chain| chain != "evm") {
        return Err(ApiError::invalid("only Ethereum accounts can be registered here"));
    }
    let texts = [&row.automaton_id, &row.creator_address, &row.name, &row.bio, &row.nonce];
    if texts.iter().any(|text| text.len() > TEXT_BYTES_MAX) {
        return Err(ApiError::invalid("a text of the registration is too long"));
    }
    let computed = row.computed_hash().map_err(|error| ApiError::internal(&app.report, &error))?;
    if computed != row.payload_hash {
        return Err(ApiError::invalid("payload_hash is not the hash of the fields"));
    }
    let signature = hex::decode(&row.signature).unwrap_or_default();
    let signed = signer(&signature, row.digest());
    // silent-ok: a text that is no address is nobody's.
    let named = row.automaton_address.parse().ok();
    if signed.is_none() || signed != named {
        return Err(ApiError::invalid("the signature is not that of automaton_address"));
    }
    if signed != Some(caller.wallet) {
        let sentence = "the API key belongs to another wallet";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", sentence));
    }
    let mut automaton = RegisteredAutomaton {
        automaton_id: String::new(),
        automaton_address: row.automaton_address.clone(),
        name: row.name.clone(),
        status: "registered".to_owned(),
    };
    let outcome = app.db.register(caller.wallet, row).await;
    match outcome.map_err(|error| app.failed(&error))? {
        RegisterOutcome::Registered(id) => {
            automaton.automaton_id = id;
            Ok(Json(RegistrationReply { automaton }))
        }
        RegisterOutcome::Conflict => {
            Err(ApiError::conflict("this wallet is registered with something else"))
        }
    }
}
