//! The tests of the statuses that automatons report.

use automaton_core::state::AgentState;
use automaton_core::wire::cloud::{StatusReply, StatusReport};

use super::*;

pub(super) async fn statuses(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let report = |turns| StatusReport {
        name: "Ada".to_owned(),
        state: AgentState::Sleeping,
        tier: None,
        credits_microcents: None,
        usdc_units: Some(MicroUsdc::new(7)),
        turns,
        born_at_ms: START,
        started_at_ms: Some(START),
        sleeps_until_ms: None,
        at_ms: START,
        version: "0.1.0".to_owned(),
    };
    assert_eq!(db.status(wallet(1), wallet(1)).await.unwrap(), None);
    db.report_status(wallet(1), report(1)).await.unwrap();
    db.report_status(wallet(3), report(9)).await.unwrap();
    let later = clock.step(Span::from_secs(900));
    db.report_status(wallet(1), report(2)).await.unwrap();
    drop(db);
    let db = home.open(&clock);
    let newest = Some(StatusReply { address: wallet(1), received_at_ms: later, status: report(2) });
    assert_eq!(db.status(wallet(1), wallet(1)).await.unwrap(), newest);
    assert_eq!(db.status(wallet(1), wallet(2)).await.unwrap(), None, "a stranger");
    let row = RegistrationRequest {
        automaton_id: "a".to_owned(),
        automaton_address: wallet(1).to_string(),
        creator_address: wallet(2).to_string().to_lowercase(),
        name: "Ada".to_owned(),
        bio: String::new(),
        genesis_prompt_hash: None,
        nonce: "n".to_owned(),
        payload_hash: B256::repeat_byte(1),
        signature: String::new(),
        chain_type: None,
    };
    db.register(wallet(1), row).await.unwrap();
    assert_eq!(db.status(wallet(1), wallet(2)).await.unwrap(), newest, "its creator");
    assert_eq!(db.status(wallet(3), wallet(2)).await.unwrap(), None, "another's creator");
}
