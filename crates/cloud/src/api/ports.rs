//! Ports of a machine, or of a tunnel, that anybody reaches: `/v1/sandboxes/{id}/ports`.

use std::sync::Arc;

use automaton_core::money::MicroUsdc;
use automaton_core::wire::cloud::{AckReply, ExposePortRequest, PortReply, PortsReply};
use axum::Json;
use axum::extract::{Path, Query, State};

use super::extract::{JsonBody, PortOwner};
use crate::app::App;
use crate::db::machines::{Machine, PORTS_MAX, Port};
use crate::error::ApiError;

/// The most that a request may cost.
const PRICE_MAX: MicroUsdc = MicroUsdc::new(1_000_000_000);

/// With the port in the body.
pub(super) async fn expose(
    State(app): State<Arc<App>>,
    PortOwner { machine, .. }: PortOwner,
    JsonBody(asked): JsonBody<ExposePortRequest>,
) -> Result<Json<PortReply>, ApiError> {
    app.expose(&machine, asked).await
}

/// With the port in the query.
pub(super) async fn expose_named(
    State(app): State<Arc<App>>,
    PortOwner { machine, .. }: PortOwner,
    Query(asked): Query<ExposePortRequest>,
) -> Result<Json<PortReply>, ApiError> {
    app.expose(&machine, asked).await
}

pub(super) async fn withdraw(
    State(app): State<Arc<App>>,
    PortOwner { machine, .. }: PortOwner,
    Path((_, port)): Path<(String, u16)>,
) -> Result<Json<AckReply>, ApiError> {
    let withdrawn = app.db.withdraw_port(machine.id, port).await;
    let was = withdrawn.map_err(|error| app.failed(&error))?;
    let message = if was { "is no longer exposed" } else { "was not exposed" };
    Ok(Json(AckReply { success: true, message: format!("port {port} {message}") }))
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    PortOwner { machine, .. }: PortOwner,
) -> Result<Json<PortsReply>, ApiError> {
    let ports = app.db.ports(machine.id).await.map_err(|error| app.failed(&error))?;
    let told = ports.into_iter().map(|port| app.told_port(&machine, port));
    Ok(Json(PortsReply { ports: told.collect::<Result<_, _>>()? }))
}

impl App {
    async fn expose(
        &self,
        machine: &Machine,
        ExposePortRequest { port, price_usdc }: ExposePortRequest,
    ) -> Result<Json<PortReply>, ApiError> {
        if port == 0 {
            return Err(ApiError::invalid("port must be from 1 to 65535"));
        }
        let port = Port { port, price: price(price_usdc.as_deref())? };
        let exposed = self.db.expose_port(machine.id, port).await;
        if !exposed.map_err(|error| self.failed(&error))? {
            let why = format!("a sandbox can have {PORTS_MAX} ports exposed: remove one");
            return Err(ApiError::conflict(why));
        }
        self.told_port(machine, port).map(Json)
    }

    fn told_port(
        &self,
        machine: &Machine,
        Port { port, price }: Port,
    ) -> Result<PortReply, ApiError> {
        let names = &self.rent()?.names;
        Ok(PortReply {
            port,
            public_url: names.public_url(&machine.short_id, port),
            path_url: Some(names.path_url(&machine.short_id, port)),
            price_usdc: price.map(|price| price.decimal().to_string()),
        })
    }
}

/// Parses the price of a request, or nothing if it is free.
fn price(text: Option<&str>) -> Result<Option<MicroUsdc>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let price = MicroUsdc::parse(text)
        .map_err(|error| ApiError::invalid(format!("price_usdc is no price: {error}")))?;
    if price > PRICE_MAX {
        let why = format!("price_usdc is {price}, and a request may cost {PRICE_MAX} at most");
        return Err(ApiError::invalid(why));
    }
    Ok(Some(price).filter(|price| *price > MicroUsdc::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_a_decimal_within_bounds() {
        let read = |text| price(text).map(|price| price.map(MicroUsdc::units)).ok();
        for (text, units) in [
            (None, None),
            (Some("0"), None),
            (Some("0.000000"), None),
            (Some("0.01"), Some(10_000)),
            (Some("0.000001"), Some(1)),
            (Some("1000"), Some(1_000_000_000)),
        ] {
            assert_eq!(read(text), Some(units), "{text:?}");
        }
        for wrong in ["", "-1", "1e-2", "0.0000001", "1000.000001", "free", "99999999999999"] {
            assert_eq!(read(Some(wrong)), None, "{wrong}");
        }
    }
}
