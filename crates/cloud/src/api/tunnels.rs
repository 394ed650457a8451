//! Tunnels to sandboxes that owners run themselves: `/v1/tunnels`. Their ports are exposed like
//! a machine's, under the tunnel's id.

use std::sync::Arc;

use automaton_core::wire::cloud::{TUNNEL_PROTOCOL, TunnelReply};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::extract::PortOwner;
use super::machines::no_workers;
use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;

/// The longest time for the other end to change the protocol.
const UPGRADE_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

/// Returns the caller's tunnel, which the first request creates.
pub(super) async fn get_or_create(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<TunnelReply>, ApiError> {
    app.rent()?;
    let tunnel = app.db.tunnel(caller.wallet, app.ids.id()).await;
    let tunnel = tunnel.map_err(|error| app.failed(&error))?;
    let tunnel = tunnel.ok_or_else(|| no_workers("as many tunnels are there as can be"))?;
    Ok(Json(TunnelReply { id: tunnel.id.into(), short_id: tunnel.short_id }))
}

/// Takes a connection that waits for a visitor.
pub(super) async fn connect(
    State(app): State<Arc<App>>,
    PortOwner { machine: tunnel, .. }: PortOwner,
    mut request: Request,
) -> Result<Response, ApiError> {
    let asked = request.headers().get(header::UPGRADE);
    if !tunnel.is_tunnel || asked.is_none_or(|asked| asked != TUNNEL_PROTOCOL) {
        let why = format!("this is for a tunnel, with `Upgrade: {TUNNEL_PROTOCOL}`");
        return Err(ApiError::invalid(why));
    }
    let upgraded = hyper::upgrade::on(&mut request);
    let keeper = Arc::clone(&app);
    let id = tunnel.id;
    app.rent()?.machines.tasks.spawn(async move {
        // silent-ok: who is gone before the connection is theirs opens another.
        if let (Ok(Ok(upgraded)), Some(rent)) =
            (timeout(UPGRADE_WITHIN, upgraded).await, &keeper.rent)
        {
            rent.tunnels.add_connection(id, Box::new(TokioIo::new(upgraded)));
        }
    });
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static(TUNNEL_PROTOCOL)),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}
