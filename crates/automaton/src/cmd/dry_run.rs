//! `--dry-run`: what a life would pay in a day, before it pays anything.
//!
//! It asks chain and cloud what they hold and sell, signs nothing and writes nothing.

use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::money_defaults::{FIRST_PURCHASE_USD, first_purchase_price, within_balance};
use automaton_core::tier::SurvivalTier;
use automaton_core::wire::cloud::ModelRow;
use automaton_inference::{ModelInfo, catalogue};
use serde::Serialize;

use super::CommandContext;
use crate::config::remote::RemoteCloud;
use crate::config::resolve::{Brain, ResolvedConfig};
use crate::error::CliError;
use crate::process::runtime;
use crate::remote_backend::RemoteStatus;
use crate::services::PaymentBackend;
use crate::ui;
use crate::ui::table;
use crate::ui::units::{or_unknown, price};

/// Known facts before a start, and possible payments.
#[derive(Debug, Serialize)]
struct PaymentForecast {
    network: String,
    chain_id: u64,
    cloud: String,
    wallet: String,
    usdc: Option<MicroUsdc>,
    /// True if there is an account with the cloud; else one is opened at the start.
    has_account: bool,
    credits_microcents: Option<Microcents>,
    model: String,
    /// Highest cost of one answer, if the cloud tells its prices.
    answer_max_microcents: Option<Microcents>,
    /// Purchase at the start.
    buys_usd: u32,
    /// No ceiling of a day is above what there is, where that is known.
    thinking_per_day_microcents: Microcents,
    transfers_per_day_microcents: Microcents,
    requests_per_day_microcents: Microcents,
    /// Questions without an answer for now.
    unknown: Vec<String>,
}

/// Shows what a life would pay.
///
/// # Errors
/// When something is not as the operator chose it.
pub(super) fn show(
    context: &CommandContext,
    resolved: &ResolvedConfig,
    backend: Option<&PaymentBackend>,
) -> Result<(), CliError> {
    let (Some(PaymentBackend::Remote(remote)), Some(cloud)) = (backend, &resolved.remote) else {
        let what = "nothing real would be paid: cloud and chain are its own, on this machine";
        return context.format.answer(&serde_json::json!({ "nothing": what }), || what.to_owned());
    };
    let found = runtime()?.block_on(remote.check(resolved))?;
    let forecast = forecast(resolved, cloud, &found);
    context.format.answer(&forecast, || in_words(&forecast, context.screen().width()))
}

fn forecast(
    resolved: &ResolvedConfig,
    cloud: &RemoteCloud,
    found: &RemoteStatus,
) -> PaymentForecast {
    let limits = resolved.treasury_policy.limits();
    let (has_account, model) = match &resolved.brain {
        Brain::Http(http) => (http.key.is_some(), http.model.to_string()),
        Brain::Local(_) => (false, String::new()),
    };
    let is_poor = |credits| SurvivalTier::of(credits).is_poor();
    let is_low = !has_account || found.credits.is_some_and(is_poor);
    let can = found.usdc.is_some_and(|usdc| usdc >= first_purchase_price());
    // silent-ok: more than can be counted lowers no ceiling, as an unknown balance does.
    let in_wallet = found.usdc.and_then(|usdc| usdc.face_value().ok());
    let credits = if has_account { found.credits } else { Some(Microcents::ZERO) };
    let in_all = credits.zip(in_wallet).and_then(|(credits, usdc)| credits.plus(usdc).ok());
    PaymentForecast {
        network: cloud.network.name.clone(),
        chain_id: cloud.network.chain_id.get(),
        cloud: cloud.url.clone(),
        wallet: found.wallet.to_string(),
        usdc: found.usdc,
        has_account,
        credits_microcents: found.credits,
        model,
        answer_max_microcents: found.model.as_ref().and_then(answer_cost_max),
        buys_usd: if is_low && can { FIRST_PURCHASE_USD } else { 0 },
        thinking_per_day_microcents: within_balance(
            resolved.treasury_policy.inference_per_day(),
            in_all,
        ),
        transfers_per_day_microcents: within_balance(limits.transfer_day, in_all),
        requests_per_day_microcents: match limits.x402_hosts.is_empty() {
            true => Microcents::ZERO,
            false => within_balance(limits.x402_day, in_wallet),
        },
        unknown: found.unknown.iter().map(CliError::line).collect(),
    }
}

/// Returns the highest cost of an answer: a full window, and the longest answer.
fn answer_cost_max(row: &ModelRow) -> Option<Microcents> {
    let ModelInfo { prices, context_tokens, max_output_tokens, .. } = catalogue::served(row);
    let answer = max_output_tokens.unwrap_or(context_tokens);
    let prompt = context_tokens.saturating_sub(answer);
    // silent-ok: what is more than there is money is told as unknown.
    prices.at_most(prompt, answer).ok()
}

fn in_words(forecast: &PaymentForecast, width: Option<usize>) -> String {
    let PaymentForecast { network, chain_id, cloud, wallet, usdc, .. } = forecast;
    let bought = match forecast.buys_usd {
        0 => "nothing".to_owned(),
        usd => format!("${usd}.00 of credits, with {usd}.00 USDC"),
    };
    let credits = match forecast.has_account {
        true => format!("with {} of credits", or_unknown(forecast.credits_microcents)),
        false => "where an account will be opened".to_owned(),
    };
    let thinking = price(forecast.thinking_per_day_microcents);
    let mut rows = vec![
        ("network", format!("{network} (chain {chain_id})")),
        ("wallet", format!("{wallet}, with {}", or_unknown(usdc.as_ref()))),
        ("cloud", format!("{cloud}, {credits}")),
        ("model", forecast.model.clone()),
        (
            "one answer",
            format!("{} at most", or_unknown(forecast.answer_max_microcents.map(price))),
        ),
        ("at the start", bought),
        (
            "in a day",
            format!("{thinking} at most for thinking, bought in steps of ${FIRST_PURCHASE_USD}"),
        ),
        ("", format!("{} at most for transfers", price(forecast.transfers_per_day_microcents))),
        ("", format!("{} at most for requests", price(forecast.requests_per_day_microcents))),
    ];
    rows.extend(forecast.unknown.iter().map(|line| ("not known", line.clone())));
    ui::text::plain(&table::rows(&rows, width))
}
