//! `/metrics`: the record as Prometheus scrapes it.
//!
//! The text format is version 0.0.4 of Prometheus' exposition format. Every number is
//! read from the record when it is asked for, and what is not known is left out. Served
//! on loopback alone, and only to who asks for loopback by name: a page of the web that
//! was led here by its own name gets nothing.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use automaton_core::alert::AlertRule;
use automaton_core::error::{ErrorClass, chain};
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::record::WakeSource;
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Clock, SystemClock, Timestamp};
use automaton_store::{Histogram, LifetimeCounters, LifetimeMetrics, Reader, StoreError};
use automaton_tools::list;
use axum::Router;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::{JoinSet, spawn_blocking};

use crate::error::CliError;
use crate::home::DATABASE;

/// The media type of the format.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Alerts of which it is looked whether they are active: each rule has at most one.
const ALERTS: u32 = 32;

/// A server of metrics. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    /// Address.
    pub(crate) url: String,
    _tasks: JoinSet<()>,
}

/// Source of a scrape; one at a time.
struct MetricsSource {
    database: PathBuf,
    started: Timestamp,
    one: Mutex<()>,
}

/// Serves the metrics of a home.
///
/// # Errors
/// When the address cannot be had.
pub(crate) async fn serve(
    at: SocketAddr,
    home: &std::path::Path,
) -> Result<MetricsServer, CliError> {
    let failed = |error: std::io::Error| {
        CliError::new(ErrorClass::Config, format!("cannot serve metrics on {at}"))
            .because(&error)
            .hint("change the key `metricsAddr` of automaton.json; port 0 takes one that is free")
    };
    let listener = TcpListener::bind(at).await.map_err(failed)?;
    let url = format!("http://{}/metrics", listener.local_addr().map_err(failed)?);
    let source = MetricsSource {
        database: home.join(DATABASE),
        started: SystemClock.now(),
        one: Mutex::default(),
    };
    let app = Router::new().route("/metrics", get(scrape)).with_state(Arc::new(source));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        // silent-ok: axum's server never ends with an error by itself.
        axum::serve(listener, app).await.ok();
    });
    Ok(MetricsServer { url, _tasks: tasks })
}

async fn scrape(State(source): State<Arc<MetricsSource>>, headers: HeaderMap) -> Response {
    if !headers.get(HOST).and_then(|host| host.to_str().ok()).is_some_and(is_loopback) {
        return (StatusCode::FORBIDDEN, "ask for 127.0.0.1 or localhost\n").into_response();
    }
    let database = source.database.clone();
    let started = source.started;
    let _one = source.one.lock().await;
    let read = spawn_blocking(move || page(&Reader::open(&database)?, started, SystemClock.now()));
    match read.await {
        Ok(Ok(text)) => ([(CONTENT_TYPE, FORMAT)], text).into_response(),
        Ok(Err(error)) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", chain(&error))).into_response()
        }
        Err(_broken) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Returns true if the host of a request, with or without a port, is this machine.
fn is_loopback(host: &str) -> bool {
    let address = host.parse::<SocketAddr>().map(|address| address.ip());
    let address = address.or_else(|_| host.trim_matches(['[', ']']).parse());
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    address.map_or(name.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

/// Everything, as text.
fn page(reader: &Reader, started: Timestamp, now: Timestamp) -> Result<String, StoreError> {
    let measures = reader.measures(now)?;
    let alerts = reader.alerts(ALERTS)?;
    let mut page = MetricsPage::default();
    page.all(
        "build_info",
        "The version of the program.",
        [(vec![("version", env!("CARGO_PKG_VERSION"))], "1")],
    );
    let uptime = seconds(now.since(started).as_millis());
    page.write_number("uptime_seconds", "How long the supervisor has run.", Some(uptime));
    life(&mut page, &measures);
    means(&mut page, &measures);
    thinking(&mut page, &measures);
    whole_life(&mut page, &reader.lifetime_counters()?);
    let active = AlertRule::ALL.map(|rule| {
        let holds = alerts.iter().any(|alert| alert.rule == rule && alert.is_active());
        let labels = vec![("rule", rule.name()), ("severity", rule.severity().name())];
        (labels, u8::from(holds))
    });
    page.all("alert_active", "Whether the rule of an alert holds.", active);
    Ok(page.0)
}

fn life(page: &mut MetricsPage, measures: &LifetimeMetrics) {
    let states = AgentState::ALL
        .map(|state| (vec![("state", state.name())], u8::from(state == measures.state)));
    page.all("state", "What the automaton is doing.", states);
    page.write_number("turns_total", "Turns that were committed.", Some(measures.turns));
    page.write_number("turns_last_hour", "Turns of the last hour.", Some(measures.turns_hour));
    let owed = Some(u8::from(measures.owes));
    page.write_number("thinking_owed", "Whether there is something to think about now.", owed);
    let share = |name: &'static str, other: &'static str, share: automaton_core::alert::Ratio| {
        let rest = share.of.saturating_sub(share.part);
        [(vec![("result", name)], share.part), (vec![("result", other)], rest)]
    };
    let help = "Runs of heartbeat tasks in the last hour.";
    page.all(
        "heartbeat_runs_last_hour",
        help,
        share("failure", "success", measures.heartbeat_runs),
    );
    let help = "Decisions of the policy in the last hour.";
    page.all("policy_decisions_last_hour", help, share("denied", "other", measures.decisions));
    let inbox = &measures.inbox;
    page.all(
        "inbox_messages",
        "Messages of the inbox.",
        [
            (vec![("state", "received")], inbox.received),
            (vec![("state", "in_progress")], inbox.in_progress),
            (vec![("state", "processed")], inbox.processed),
            (vec![("state", "failed")], inbox.failed),
        ],
    );
    page.write_number("wake_events_pending", "Causes to wake that wait.", Some(measures.wakes));
    page.write_number("database_bytes", "The size of the database.", Some(measures.db_bytes));
    page.write_number("wal_bytes", "The size of the database's log.", measures.wal_bytes);
}

/// Writes the counters of the whole life.
fn whole_life(page: &mut MetricsPage, tallies: &LifetimeCounters) {
    let mut calls: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (tool, status, count) in &tallies.calls {
        // A tool that there is no more, or never was, must not make a series of its own.
        let tool = tool.as_deref().filter(|tool| list::find(tool).is_some()).unwrap_or("other");
        *calls.entry((tool, status.name())).or_default() += count;
    }
    let calls = calls
        .into_iter()
        .map(|((tool, outcome), count)| (vec![("tool", tool), ("outcome", outcome)], count));
    page.all("tool_calls_total", "Calls of tools that have ended.", calls);
    let wakes = WakeSource::ALL.map(|source| {
        let counts = tallies.wakes.iter().filter(|(of, _)| *of == source).map(|(_, count)| count);
        (vec![("source", source.name())], counts.sum::<u64>())
    });
    page.all("wake_events_total", "Causes to wake.", wakes);
    let LifetimeCounters { turns, models, tools, heartbeat, .. } = tallies;
    let help = "How long turns took, from opened to committed.";
    page.histogram("turn_duration_seconds", help, turns);
    page.histogram("inference_duration_seconds", "How long models took to answer.", models);
    page.histogram("tool_call_duration_seconds", "How long tools ran.", tools);
    let help = "How long tasks of the heartbeat ran.";
    page.histogram("heartbeat_run_duration_seconds", help, heartbeat);
}

fn means(page: &mut MetricsPage, measures: &LifetimeMetrics) {
    let vitals = &measures.vitals;
    let tier = vitals.tier().map(|tier| match tier {
        SurvivalTier::Dead => 0,
        SurvivalTier::Critical => 1,
        SurvivalTier::LowCompute => 2,
        SurvivalTier::Normal => 3,
        SurvivalTier::High => 4,
    });
    page.write_number("survival_tier", "The tier of survival, from 0, dead, to 4, high.", tier);
    page.write_number(
        "credits_dollars",
        "Credits that were last read.",
        vitals.credits.map(dollars),
    );
    let read_at = vitals.read_at.map(|at| seconds(at.as_millis()));
    page.write_number("credits_read_timestamp_seconds", "When credits were last read.", read_at);
    page.write_number("wallet_usdc", "USDC that was last read.", vitals.usdc.map(usdc));
    let broke = vitals.broke_for.map(|span| seconds(span.as_millis()));
    page.write_number("broke_seconds", "How long it is known to have been broke.", broke);
}

fn thinking(page: &mut MetricsPage, measures: &LifetimeMetrics) {
    let totals = &measures.totals;
    page.write_number("inference_answers_total", "Answers of models.", Some(totals.answers));
    page.all(
        "inference_tokens_total",
        "Tokens of models; cached ones are of the prompt.",
        [
            (vec![("kind", "prompt")], totals.prompt_tokens),
            (vec![("kind", "cached")], totals.cached_tokens),
            (vec![("kind", "completion")], totals.completion_tokens),
        ],
    );
    let help = "What answers of models cost.";
    page.write_number("inference_cost_dollars_total", help, Some(dollars(totals.cost)));
    let help = "What answers of the last 24 hours cost.";
    page.write_number("inference_cost_last_day_dollars", help, Some(dollars(measures.thinking)));
    let slowest = measures.slowest_ms.and_then(|millis| i64::try_from(millis).ok()).map(seconds);
    page.write_number("inference_slowest_last_hour_seconds", "The slowest answer.", slowest);
    page.write_number("context_tokens", "Tokens of the last prompt.", measures.prompt_tokens);
}

/// A text in the format, family by family.
#[derive(Default)]
struct MetricsPage(String);

type MetricLabels<'a> = Vec<(&'a str, &'a str)>;

impl MetricsPage {
    /// One number without labels, unless it is not known.
    fn write_number(&mut self, name: &str, help: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.all(name, help, [(vec![], value)]);
        }
    }

    /// A family. What only grows ends in `_total`, as Prometheus wants it.
    fn all<'a, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (MetricLabels<'a>, V)>,
    ) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        self.head(name, help, kind);
        for (labels, value) in samples {
            self.sample(name, &labels, value);
        }
    }

    /// A family of buckets, each with all that are below it.
    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, help, "histogram");
        for (bound, count) in &histogram.buckets {
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |ms| seconds(ms).to_string());
            self.sample(&format!("{name}_bucket"), &[("le", &bound)], count);
        }
        self.sample(&format!("{name}_sum"), &[], seconds(histogram.sum_ms));
        self.sample(&format!("{name}_count"), &[], histogram.count());
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let text = format!("# HELP automaton_{name} {help}\n# TYPE automaton_{name} {kind}\n");
        self.0.push_str(&text);
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        // The values of labels are names of our own, and need no escape.
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        // silent-ok: writing to a String cannot fail.
        writeln!(self.0, "automaton_{name}{labels} {value}").ok();
    }
}

/// An integer with so many digits after its point.
struct MetricDecimal(i64, u32);

impl Display for MetricDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(units, places) = *self;
        let sign = if units < 0 { "-" } else { "" };
        let whole = units.unsigned_abs();
        let one = 10_u64.pow(places);
        let width = places as usize;
        write!(f, "{sign}{}.{:0width$}", whole / one, whole % one)
    }
}

/// Milliseconds, in seconds.
const fn seconds(millis: i64) -> MetricDecimal {
    MetricDecimal(millis, 3)
}

/// Credits, in dollars.
const fn dollars(credits: Microcents) -> MetricDecimal {
    MetricDecimal(credits.units(), 8)
}

/// USDC, without its unit.
fn usdc(usdc: MicroUsdc) -> MetricDecimal {
    MetricDecimal(i64::try_from(usdc.units()).unwrap_or(i64::MAX), 6)
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
