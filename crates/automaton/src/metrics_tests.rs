//! The page as strictly as its format is written, and who gets it. No test may reach beyond
//! loopback.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use automaton_core::faults::NoFaults;
use automaton_core::record::{CallStatus, Usage, WakeCause};
use automaton_core::tool::Effect;
use automaton_core::trust::{Label, Labelled};
use automaton_core::vitals::BalanceReading;
use automaton_net::{HttpClient, HttpClientConfig, HttpMethod, HttpRequest};
use automaton_store::{Hash, JudgedCall, Judgement, NewAutomaton, Store, WakeQuery};

use super::*;
use crate::cmd::id_generator;

/// Reads a page as strictly as the format is written: samples by name and labels.
fn parse(page: &str) -> BTreeMap<String, String> {
    let mut samples = BTreeMap::new();
    let mut families = BTreeSet::new();
    let mut family = None::<(String, String)>;
    let is_name = |name: &str| {
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        name.starts_with("automaton_") && name.chars().all(letter)
    };
    assert!(page.ends_with('\n') && !page.contains("\n\n") && !page.contains('\r'));
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(is_name(name) && !help.is_empty() && help.ends_with('.'), "{line}");
            assert!(families.insert(name.to_owned()), "{name} comes twice");
            let (typed, kind) =
                lines.next().unwrap().strip_prefix("# TYPE ").unwrap().split_once(' ').unwrap();
            assert_eq!(typed, name);
            assert!(["gauge", "counter", "histogram"].contains(&kind), "{kind}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            family = Some((name.to_owned(), kind.to_owned()));
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let (of, kind) = family.as_ref().unwrap();
        let suffix = name.strip_prefix(of.as_str()).unwrap();
        let suffixes: &[&str] =
            if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(suffixes.contains(&suffix), "{line}");
        let labels = labels.strip_suffix('}').unwrap();
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (key, quoted) = label.split_once('=').unwrap();
            assert!(key.chars().all(|c| c.is_ascii_lowercase()), "{line}");
            let text = quoted.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            assert!(!text.contains(['"', '\\', '\n']), "{line}");
        }
        let digits = value.strip_prefix('-').unwrap_or(value);
        let parts: Vec<&str> = digits.split('.').collect();
        let is_number = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
        assert!(parts.len() <= 2 && parts.iter().all(is_number), "{line}");
        assert!(samples.insert(series.to_owned(), value.to_owned()).is_none(), "{series} twice");
    }
    samples
}

/// The buckets of a histogram are cumulative, and the last one has all.
fn check_histogram(page: &str, name: &str) -> u64 {
    let value = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    let head = format!("{name}_bucket{{le=\"");
    let buckets: Vec<&str> = page.lines().filter(|line| line.starts_with(&head)).collect();
    assert!(buckets.is_sorted_by_key(|line| value(line)) && buckets.len() > 5, "{buckets:?}");
    let last = buckets.last().unwrap();
    assert!(last.contains("le=\"+Inf\""), "{last}");
    let count = page.lines().find(|line| line.starts_with(&format!("{name}_count "))).unwrap();
    assert_eq!(value(last), value(count));
    value(count)
}

async fn life() -> (tempfile::TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store =
        Store::open(&home.path().join(DATABASE), id_generator(), Arc::new(NoFaults)).unwrap();
    let hash = Hash::of(b"x");
    let born = NewAutomaton {
        name: "Ada".to_owned(),
        genesis_sha256: hash,
        constitution_sha256: Hash::of(b"x"),
    };
    store.birth(born).await.unwrap();
    (home, store)
}

async fn get(url: &str, allowed: &str) -> (u16, String) {
    let origins = vec![crate::http::origin(allowed).unwrap()];
    let config = HttpClientConfig { allow_private_origins: origins, ..HttpClientConfig::default() };
    let request = HttpRequest::new(HttpMethod::Get, crate::http::url(url).unwrap());
    let response = HttpClient::new(config).unwrap().request(request).await.unwrap();
    let status = response.status;
    (status, String::from_utf8(response.read().await.unwrap().body).unwrap())
}

#[tokio::test]
async fn a_scrape_is_what_the_record_says_and_leaves_out_what_is_not_known() {
    let (home, store) = life().await;
    let served = serve("127.0.0.1:0".parse().unwrap(), home.path()).await.unwrap();
    let (status, text) = get(&served.url, &served.url).await;
    assert_eq!(status, 200, "{text}");
    let samples = parse(&text);
    assert_eq!(samples["automaton_turns_total"], "0");
    assert_eq!(samples["automaton_state{state=\"setup\"}"], "1");
    assert!(!text.contains("automaton_credits"), "an unknown balance is not zero");
    let alert = "automaton_alert_active{rule=\"balance_below_reserve\",severity=\"critical\"}";
    assert_eq!(samples[alert], "0");

    let reading = BalanceReading {
        at: Timestamp::from_millis(1_500),
        credits: Some(Microcents::new(-12_345_678)),
        usdc: Some(MicroUsdc::new(15_000_001)),
        least: Microcents::new(1),
    };
    store.take_reading(reading).await.unwrap();
    let samples = parse(&get(&served.url, &served.url).await.1);
    assert_eq!(samples["automaton_credits_dollars"], "-0.12345678");
    assert_eq!(samples["automaton_wallet_usdc"], "15.000001");
    assert_eq!(samples["automaton_credits_read_timestamp_seconds"], "1.500");
    assert_eq!(samples["automaton_survival_tier"], "0");
    assert_eq!(samples["automaton_broke_seconds"], "0.000");
}

#[tokio::test]
async fn durations_and_calls_are_counted_over_the_life() {
    let (home, store) = life().await;
    let cause = WakeCause {
        source: WakeSource::Manual,
        reason: Labelled::new(Label::Creator, "cli", "go"),
    };
    store.push_wake(cause.clone()).await.unwrap();
    let session = store.open_session(vec![cause]).await.unwrap();
    let turn = store.open_turn(session, Vec::new(), 1).await.unwrap().id;
    let call = |tool: &str| JudgedCall {
        id: id_generator().id(),
        tool: tool.to_owned(),
        arguments: "{}".to_owned(),
        args_hash: None,
        mutates: Effect::Observes,
        status: CallStatus::Invalid,
        result: Some(Labelled::new(Label::Own, "runtime", "no")),
        decision: None,
        intents: Vec::new(),
        limits: Vec::new(),
        question: None,
        approval: None,
    };
    let usage = Usage {
        model: "m".to_owned(),
        prompt_tokens: 1,
        cached_tokens: 0,
        completion_tokens: 1,
        cost: Microcents::ZERO,
        estimated: false,
        first_token_ms: 40,
        total_ms: 700,
        unknown_end: None,
    };
    let calls = vec![call("exec"), call("rm\"} 1")];
    let judgement = Judgement { turn, thought: String::new(), voice: None, usage, calls };
    store.record_judgement(judgement, None).await.unwrap();
    let none = Vec::new();
    let query = WakeQuery::default();
    store.finish_turn(turn, Vec::new(), none, query).await.unwrap();
    let page = page(
        &Reader::open(&home.path().join(DATABASE)).unwrap(),
        Timestamp::EPOCH,
        id_generator().now(),
    );
    let page = page.unwrap();
    let samples = parse(&page);
    assert_eq!(samples["automaton_tool_calls_total{tool=\"other\",outcome=\"invalid\"}"], "2");
    assert_eq!(samples["automaton_wake_events_total{source=\"manual\"}"], "1");
    assert_eq!(samples["automaton_wake_events_total{source=\"timer\"}"], "0");
    assert!(samples.contains_key("automaton_wal_bytes"));
    assert_eq!(check_histogram(&page, "automaton_turn_duration_seconds"), 1);
    assert_eq!(check_histogram(&page, "automaton_tool_call_duration_seconds"), 0);
    assert_eq!(check_histogram(&page, "automaton_heartbeat_run_duration_seconds"), 0);
    assert_eq!(check_histogram(&page, "automaton_inference_duration_seconds"), 1);
    let bucket =
        |le: &str| &samples[&format!("automaton_inference_duration_seconds_bucket{{le=\"{le}\"}}")];
    assert_eq!((bucket("0.500").as_str(), bucket("1.000").as_str()), ("0", "1"));
    assert_eq!(samples["automaton_inference_duration_seconds_sum"], "0.700");
}

#[tokio::test]
async fn a_record_that_is_not_there_is_said() {
    let home = tempfile::tempdir().unwrap();
    let served = serve("127.0.0.1:0".parse().unwrap(), home.path()).await.unwrap();
    let (status, text) = get(&served.url, &served.url).await;
    assert_eq!(status, 503, "{text}");
}

#[test]
fn only_this_machine_is_asked_for() {
    for host in ["127.0.0.1", "127.0.0.1:9464", "localhost:1", "LOCALHOST", "[::1]:9464", "[::1]"] {
        assert!(is_loopback(host), "{host}");
    }
    for host in ["evil.example", "evil.example:9464", "10.0.0.1:1", "localhost.evil.example", ""] {
        assert!(!is_loopback(host), "{host}");
    }
}
