//! Extracts a request's parts for handlers: its sender and name, its machine and its JSON.
//!
//! Each is refused before the body is read. A client without a key learns nothing about others'
//! resources.

use std::collections::HashMap;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use automaton_core::wire::cloud::NO_SUCH_MACHINE;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::idempotency_key;
use crate::access::{Caller, credential, messages_credential};
use crate::app::App;
use crate::db::machines::Machine;
use crate::error::ApiError;
use crate::machines::lifecycle::MachineState;

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        app.access.caller(&parts.headers).await
    }
}

/// The sender of a request in Anthropic's format.
pub(super) struct MessagesCaller(pub(super) Caller);

impl FromRequestParts<Arc<App>> for MessagesCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        app.access.owner(messages_credential(&parts.headers)).await.map(Self)
    }
}

/// Anybody, with a key or without.
pub(super) struct Public;

impl FromRequestParts<Arc<App>> for Public {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, _: &Arc<App>) -> Result<Self, Infallible> {
        Ok(Self)
    }
}

/// The access token that a client sent. It is not checked before the body is read, and proves
/// nothing until an API key is made from it.
pub(super) struct AccessToken(pub(super) Option<String>);

impl FromRequestParts<Arc<App>> for AccessToken {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Infallible> {
        Ok(Self(credential(&parts.headers).map(str::to_owned)))
    }
}

/// The client's name of its request, by which a repeated request is done once.
pub(super) struct RequestName(pub(super) Option<String>);

impl FromRequestParts<Arc<App>> for RequestName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, ApiError> {
        Ok(Self(idempotency_key(&parts.headers)?.map(str::to_owned)))
    }
}

/// A machine of the caller's, or the tunnel: what ports are of.
pub(super) struct PortOwner {
    pub(super) caller: Caller,
    pub(super) machine: Machine,
}

impl FromRequestParts<Arc<App>> for PortOwner {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let caller = app.access.caller(&parts.headers).await?;
        let path = Path::<HashMap<String, String>>::from_request_parts(parts, app).await;
        let id = path.ok().and_then(|path| path.get("id")?.parse().ok()).ok_or_else(denied)?;
        let machine = app.db.machine(id).await.map_err(|error| app.failed(&error))?;
        let machine = machine.filter(|machine| {
            let is_there = machine.is_tunnel || machine.state != MachineState::Deleted;
            machine.owner == caller.wallet && is_there
        });
        machine.map(|machine| Self { caller, machine }).ok_or_else(denied)
    }
}

/// A machine of the caller's.
pub(super) struct OwnMachine {
    pub(super) caller: Caller,
    pub(super) machine: Machine,
}

impl FromRequestParts<Arc<App>> for OwnMachine {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let PortOwner { caller, machine } = PortOwner::from_request_parts(parts, app).await?;
        if machine.is_tunnel { Err(denied()) } else { Ok(Self { caller, machine }) }
    }
}

/// Refuses a machine that belongs to another wallet or never existed.
fn denied() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", NO_SUCH_MACHINE)
}

/// The JSON of a body, whatever its media type says: clients in the field are careless with
/// it.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for JsonBody<T> {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        let body = Bytes::from_request(request, app).await.map_err(|why| why.into_response())?;
        json(&body).map(Self).map_err(ApiError::into_response)
    }
}

/// Parses a JSON body.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let unread = |error| ApiError::invalid(format!("the body is not what is expected: {error}"));
    serde_json::from_slice(body).map_err(unread)
}

/// A body that its handler reads, as it answers in a way of its own to one that is no `T`.
pub(super) struct UnparsedBody<T> {
    pub(super) bytes: Bytes,
    of: PhantomData<T>,
}

impl<T> FromRequest<Arc<App>> for UnparsedBody<T> {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        let body = Bytes::from_request(request, app).await;
        body.map(|bytes| Self { bytes, of: PhantomData }).map_err(|why| why.into_response())
    }
}

/// An answer that is put together elsewhere and says the same as a `T`.
pub(super) struct TypedResponse<T>(Response, PhantomData<T>);

/// A `T`, or what has to be paid for it.
pub(super) struct OrDemand<T>(PhantomData<T>);

impl<T> From<Response> for TypedResponse<T> {
    fn from(response: Response) -> Self {
        Self(response, PhantomData)
    }
}

impl<T> IntoResponse for TypedResponse<T> {
    fn into_response(self) -> Response {
        self.0
    }
}
