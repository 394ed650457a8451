//! Balance, prices, models, health.

use std::sync::Arc;

use automaton_core::wire::cloud::{
    BalanceReply, Health, ModelPricing, ModelRow, ModelsReply, PricingReply, TIERS_USD,
};
use axum::Json;
use axum::extract::{Path, State};

use super::extract::Public;
use super::machines::tiers;
use crate::access::Caller;
use crate::app::App;
use crate::config::OfferedModel;
use crate::error::ApiError;

pub(super) async fn health(_: State<Arc<App>>, _: Public) -> Json<Health> {
    Json(Health { status: "healthy".to_owned() })
}

/// Returns the balance, including credits that are set aside.
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

/// Lists machines for rent and the amounts of credits for sale.
pub(super) async fn pricing(State(app): State<Arc<App>>, _: Public) -> Json<PricingReply> {
    Json(PricingReply { tiers: tiers(&app), purchases_usd: TIERS_USD.to_vec() })
}

pub(super) async fn models(
    State(app): State<Arc<App>>,
    _: Public,
) -> Result<Json<ModelsReply>, ApiError> {
    let data = app.meter.models.iter().map(|model| row(&app, model)).collect::<Result<_, _>>()?;
    Ok(Json(ModelsReply { object: "list".to_owned(), data }))
}

pub(super) async fn model(
    State(app): State<Arc<App>>,
    _: Public,
    Path(id): Path<String>,
) -> Result<Json<ModelRow>, ApiError> {
    let model = app.meter.models.iter().find(|model| model.id.as_str() == id);
    row(&app, model.ok_or_else(|| ApiError::no_model(&id))?).map(Json)
}

fn row(app: &App, model: &OfferedModel) -> Result<ModelRow, ApiError> {
    let prices = model.prices();
    let pricing = ModelPricing::new(
        prices.input,
        prices.cached,
        Some(prices.cache_write).filter(|price| *price != prices.input),
        prices.output,
    );
    Ok(ModelRow {
        id: model.id.clone(),
        object: "model".to_owned(),
        created: app.meter.started.as_millis() / 1000,
        owned_by: "other".to_owned(),
        provider: "other".to_owned(),
        // Who looks for a model to talk with takes those that answer.
        available: !model.embeddings,
        display_name: model.display_name.clone().unwrap_or_else(|| model.id.to_string()),
        context_window: model.context_window,
        max_tokens: model.max_output_tokens,
        supports_tools: model.supports_tools,
        supports_vision: model.supports_vision,
        parameter_style: app.meter.upstreams.limit_name(&model.id).name().to_owned(),
        weak: model.weak,
        note: model.note.clone(),
        pricing: pricing.map_err(|error| ApiError::internal(&app.report, &error))?,
    })
}
