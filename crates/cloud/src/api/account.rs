//! Balance, prices, models, health.

use std::sync::Arc;

use automaton_core::wire::cloud::{
    BalanceReply, Health, ModelPricing, ModelRow, ModelsReply, PricingReply, TIERS_USD,
};
use axum::Json;
use axum::extract::State;

use super::extract::Public;
use super::machines::tiers;
use crate::access::Caller;
use crate::app::App;
use crate::config::{OfferedModel, TokenLimitName};
use crate::error::ApiError;

pub(super) async fn health(_: State<Arc<App>>, _: Public) -> Json<Health> {
    Json(Health { status: "healthy".to_owned() })
}

/// What is set aside is still the wallet's, so it counts.
pub(super) async fn balance(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<BalanceReply>, ApiError> {
    let balance = app.db.balance(caller.wallet).await.map_err(|error| app.failed(&error))?;
    let whole = balance.available.plus(balance.held);
    let whole = whole.map_err(|error| ApiError::internal(&app.report, &error))?;
    Ok(Json(BalanceReply {
        balance_cents: Some(whole.cents_floor()),
        credits_cents: Some(whole.cents_floor()),
        balance_microcents: Some(whole),
        held_microcents: Some(balance.held),
    }))
}

/// What is for rent, and for which amounts there are credits.
pub(super) async fn pricing(State(app): State<Arc<App>>, _: Public) -> Json<PricingReply> {
    Json(PricingReply { tiers: tiers(&app), purchases_usd: TIERS_USD.to_vec() })
}

pub(super) async fn models(
    State(app): State<Arc<App>>,
    _: Public,
) -> Result<Json<ModelsReply>, ApiError> {
    let limit_name = app.meter.upstream.limit_name();
    let rows = app.meter.models.iter().map(|model| row(model, limit_name));
    let data = rows.collect::<Result<_, _>>();
    let data = data.map_err(|error| ApiError::internal(&app.report, &error))?;
    Ok(Json(ModelsReply { object: "list".to_owned(), data }))
}

fn row(model: &OfferedModel, limit_name: TokenLimitName) -> Result<ModelRow, serde_json::Error> {
    let prices = model.prices();
    Ok(ModelRow {
        id: model.id.clone(),
        object: "model".to_owned(),
        owned_by: "other".to_owned(),
        provider: "other".to_owned(),
        available: true,
        display_name: model.display_name.clone().unwrap_or_else(|| model.id.to_string()),
        context_window: model.context_window,
        max_tokens: model.max_output_tokens,
        supports_tools: model.supports_tools,
        supports_vision: model.supports_vision,
        parameter_style: limit_name.name().to_owned(),
        weak: model.weak,
        note: model.note.clone(),
        pricing: ModelPricing::new(prices.input, prices.cached, prices.output)?,
    })
}
