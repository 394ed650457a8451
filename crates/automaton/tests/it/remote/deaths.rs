//! Killed at each point that money passes, away from home: the agent, its signer, the cloud and
//! the chain, whoever it is. After it comes back the books agree, nothing was paid twice, and
//! what it was asked for is done.

use std::fs;

use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_script::fault::{self, FIRED};
use serde_json::json;

use super::elsewhere::{Elsewhere, Killed, LIMIT, Shop, books, count, dollars};
use crate::money::{ask, serve_goods};

/// It rents a machine, gives, and buys at a seller's. What it can make again it makes again:
/// gifts and purchases are the same ones then, and a machine would be another one.
const ERRANDS: &str = r#"
title = "errands"
[[step]]
say = "I look up whom."
if_unknown = "again"
[[step.call]]
tool = "exec"
arguments = { command = "cat notes" }
[[step]]
say = "I rent a machine."
[[step.call]]
tool = "create_sandbox"
arguments = { name = "away" }
[[step]]
say = "I give."
if_unknown = "again"
[[step.call]]
tool = "transfer_credits"
arguments = { to_address = "{{exec after 'friend: '}}", amount_cents = 60, reason = "as asked" }
[[step]]
say = "I buy."
if_unknown = "again"
[[step.call]]
tool = "x402_fetch"
arguments = { url = "{{exec after 'shop: '}}" }
[[step]]
say = "That is done."
[[step]]
say = "I sleep."
if_unknown = "again"
[[step.call]]
tool = "sleep"
arguments = { duration_seconds = 3600, reason = "my work is done" }
"#;

/// Who dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dies {
    /// The agent or its signer; the supervisor starts both again.
    Own,
    /// Its cloud; the operator starts it again.
    Cloud,
    /// The node of its chain; as well.
    Chain,
}

/// A point that is never reached so often: whoever is armed with it notes where it passes.
const NEVER: u32 = 1_000_000;

/// What a life passed, in order.
struct Passed {
    own: Vec<FaultPoint>,
    cloud: Vec<FaultPoint>,
    chain: Vec<FaultPoint>,
    /// How many of the latter two there were before it began.
    before: (usize, usize),
}

/// Runs the errands with somebody who dies at a charge, and checks what has to be true after.
fn run_errands(dies: Option<(Dies, &str)>) -> Passed {
    let what = format!("{dies:?}");
    let mut town = Elsewhere::with(ERRANDS, 31337, "dev", 20);
    let never = |point: FaultPoint| format!("{point}:{NEVER}");
    let charge = |who: Dies, point: FaultPoint| match dies {
        Some((dying, charge)) if dying == who => charge.to_owned(),
        _ => never(point),
    };
    town.arm(Killed::Chain, &charge(Dies::Chain, FaultPoint::ChainActDone));
    let shop = town.shop();
    // What its cloud sent for the shop it looks after once more when it starts; that is not
    // where it is to die. A machine ends with its cloud, and begins again with it.
    town.restart(Killed::Cloud);
    let own_shop = credits_of(&town, &shop);
    assert!(own_shop > 0, "{what}");
    town.arm(Killed::Cloud, &charge(Dies::Cloud, FaultPoint::SettlementBegun));
    let start = format!("POST {}/start", shop.machine);
    let started = ask(&town.cloud, &shop.home, &start, &json!({}));
    assert_eq!(started.0, 200, "{}", started.1);
    serve_goods(&town.cloud, &shop.home, &shop.machine);
    town.ask_to_buy_and_give(&shop);
    let had = credits_of(&town, &shop);
    let before = (town.arrivals(Killed::Cloud).len(), town.arrivals(Killed::Chain).len());
    let own = charge(Dies::Own, FaultPoint::PaymentProposed);
    let life = town.start(&["--turns", "8", "--fault", &own]);
    match dies {
        Some((Dies::Cloud, _)) => town.revive(Killed::Cloud),
        Some((Dies::Chain, _)) => town.revive(Killed::Chain),
        Some((Dies::Own, _)) | None => {}
    }
    let lived = life.finish_within(LIMIT).unwrap();
    assert_eq!(lived.code, Some(0), "{what}\n{}\n{}", lived.stdout, lived.stderr);
    let events = &lived.events;
    if let Some((Dies::Own, charge)) = dies {
        let fired = fs::read_to_string(town.world.home().join(FIRED)).unwrap_or_default();
        assert_eq!(fired.trim(), charge.split(':').next().unwrap(), "{what}: nobody died");
        // A signer that dies before its agent asked for anything comes back alone.
        let restarted = |event: &Event| {
            matches!(event, Event::AgentRestarted { .. } | Event::ServiceRestarted { .. })
        };
        assert!(count(events, restarted) >= 1, "{what}\n{}", lived.stdout);
    }
    let says = |event: &Event| matches!(event, Event::MessageSent { body, .. } if body.text == "That is done.");
    assert_eq!(count(events, says), 1, "{what}: the story did not go on\n{}", lived.stdout);
    let ended = books(events);
    let all = ended.bought.plus(ended.pending).unwrap();
    assert_eq!(all, dollars(5), "{what}: {ended:?}");
    let sent = Microcents::from_cents(60).unwrap();
    assert_eq!(ended.sent, sent, "{what}: {ended:?}\n{}", lived.stdout);
    // Its machine, from which it sells, costs a little each minute.
    let given = credits_of(&town, &shop) - had;
    assert!((59_800_000..=60_000_000).contains(&given), "{what}: the friend got {given}");
    // What sells in a machine ends with its cloud, and takes nothing then; and without a signer
    // a call fails, which is told and not repeated.
    let (wallet, seller) = (town.holds(&town.wallet()), town.holds(&shop.address));
    let may_fail = match dies {
        Some((Dies::Cloud, _)) => true,
        Some((_, charge)) => charge.starts_with("signer-"),
        None => false,
    };
    assert!(may_fail && seller == 0 || seller == 10_000, "{what}: the seller has {seller}");
    assert_eq!(wallet, 15_000_000 - seller, "{what}");
    assert_eq!(ended.moved, Some(MicroUsdc::new(5_000_000 + seller)), "{what}: {ended:?}");
    let (_, rented) = ask(&town.cloud, town.world.home(), "GET /v1/sandboxes", &json!({}));
    let rented = rented["sandboxes"].as_array().unwrap().len();
    assert!(rented <= 1, "{what}: {rented} machines");
    Passed {
        own: fault::arrivals(town.world.home()),
        cloud: town.arrivals(Killed::Cloud),
        chain: town.arrivals(Killed::Chain),
        before,
    }
}

/// In microcents.
fn credits_of(town: &Elsewhere, shop: &Shop) -> i64 {
    let home = shop.home.display().to_string();
    let told = town.json(&["--home", &home, "credits", "--json"]);
    told["balance_microcents"].as_i64().unwrap()
}

/// Every arrival at one of some points behind the first so many of all, as charges.
fn charges(passed: &[FaultPoint], before: usize, wanted: &[FaultPoint]) -> Vec<String> {
    let nth = |at: usize| passed[..=at].iter().filter(|point| **point == passed[at]).count();
    let at = (before..passed.len()).filter(|at| wanted.contains(&passed[*at]));
    at.map(|at| format!("{}:{}", passed[at], nth(at))).collect()
}

fn killed_at(dies: Dies, charges: impl IntoIterator<Item = String>) {
    let mut killed = 0;
    for charge in charges {
        run_errands(Some((dies, &charge)));
        killed += 1;
    }
    assert!(killed > 0, "nothing was passed");
}

/// The most telling of all, which every run of the tests has: the signature of the purchase is
/// on record and was not sent; the gift is made and not booked; it is booked, and whoever asked
/// for it was not told; the seller was paid and the goods are not there. The others, and the
/// deaths of its cloud and its chain, take minutes together: `./test --slow`.
#[test]
fn killed_where_it_would_pay_twice_it_pays_once() {
    killed_at(Dies::Own, ["payment-signed", "payment-answered:2", "call-ran:3"].map(str::to_owned));
}

/// As well, for a seller.
#[test]
fn killed_where_a_seller_would_be_paid_twice_it_is_paid_once() {
    killed_at(Dies::Own, ["payment-answered:3".to_owned()]);
}

#[test]
#[ignore = "takes minutes: ./test --slow"]
fn killed_at_every_point_of_its_payments() {
    let passed = run_errands(None).own;
    killed_at(Dies::Own, charges(&passed, 0, &FaultPoint::PAYMENT));
}

#[test]
#[ignore = "takes minutes: ./test --slow"]
fn killed_at_every_point_of_its_calls() {
    use FaultPoint::{CallFinished, CallRan, CallStarted, JudgementStored};
    let passed = run_errands(None).own;
    let wanted = [JudgementStored, CallStarted, CallRan, CallFinished];
    killed_at(Dies::Own, charges(&passed, 0, &wanted));
}

#[test]
#[ignore = "takes minutes: ./test --slow"]
fn killed_at_every_point_of_its_signer() {
    let passed = run_errands(None).own;
    killed_at(Dies::Own, charges(&passed, 0, &FaultPoint::SIGNER));
}

#[test]
#[ignore = "takes minutes: ./test --slow"]
fn its_cloud_and_its_chain_are_killed_at_every_point() {
    let Passed { cloud, chain, before, .. } = run_errands(None);
    killed_at(Dies::Cloud, charges(&cloud, before.0, &FaultPoint::CLOUD));
    killed_at(Dies::Chain, charges(&chain, before.1, &FaultPoint::CHAIN));
}
