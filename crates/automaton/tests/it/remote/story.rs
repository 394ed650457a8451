//! What a life away from home does, whatever its chain: one story, and what has to be true of it.

use automaton_core::event::Event;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::state::AgentState;
use serde_json::json;

use super::elsewhere::{Elsewhere, LIMIT, books, count, dollars};
use crate::money::ask;

/// It rents a machine, gives away all but a few cents, buys, and works on the machine once its
/// commands run there.
pub(crate) const WHOLE: &str = r#"
title = "away from home"
[[step]]
say = "I rent a machine."
[[step.call]]
tool = "create_sandbox"
arguments = { name = "away" }
[[step.call]]
tool = "exec"
arguments = { command = "cat notes" }
[[step]]
say = "I give."
[[step.call]]
tool = "transfer_credits"
arguments = { to_address = "{{exec after 'friend: '}}", amount_cents = 240, reason = "as asked" }
[[step.call]]
tool = "transfer_credits"
arguments = { to_address = "{{exec after 'friend: '}}", amount_cents = 120, reason = "as asked" }
[[step]]
say = "I give half of what is left, twice."
[[step.call]]
tool = "transfer_credits"
arguments = { to_address = "{{exec after 'friend: '}}", amount_cents = 60, reason = "as asked" }
[[step.call]]
tool = "transfer_credits"
arguments = { to_address = "{{exec after 'friend: '}}", amount_cents = 30, reason = "as asked" }
[[step]]
say = "Again."
[[step.call]]
tool = "transfer_credits"
arguments = { to_address = "{{exec after 'friend: '}}", amount_cents = 20, reason = "as asked" }
[[step.call]]
tool = "transfer_credits"
arguments = { to_address = "{{exec after 'friend: '}}", amount_cents = 10, reason = "as asked" }
[[step]]
say = "And again, and then I buy."
[[step.call]]
tool = "transfer_credits"
arguments = { to_address = "{{exec after 'friend: '}}", amount_cents = 9, reason = "as asked" }
[[step.call]]
tool = "transfer_credits"
arguments = { to_address = "{{exec after 'friend: '}}", amount_cents = 4, reason = "as asked" }
[[step.call]]
tool = "x402_fetch"
arguments = { url = "{{exec after 'shop: '}}" }
[[step]]
expect.result.x402_fetch = "goods"
say = "That is done."
[[step]]
say = "I work there."
[[step.call]]
tool = "exec"
arguments = { command = "echo $((40 + 2)) of away" }
[[step]]
expect.result.exec = "42 of away"
say = "That is done, too."
[[step.call]]
tool = "sleep"
arguments = { duration_seconds = 3600, reason = "my work is done" }
"#;

/// Buys, thinks, rents, gives until it is broke, is funded, buys again and at a seller's, and
/// works on its machine at the next start. It begins with six dollars in the wallet.
pub(crate) fn lives_wholly(mut town: Elsewhere, faults: &[&str]) {
    let shop = town.shop();
    town.ask_to_buy_and_give(&shop);
    let forecast =
        town.json(&["run", "--dry-run", "--json", "--passphrase-file", &town.passphrase]);
    let chain = (&town.config["network"], &town.config["networks"][0]["chainId"]);
    assert_eq!((&forecast["network"], &forecast["chain_id"]), chain);
    assert_eq!(forecast["cloud"], town.cloud.as_str(), "{forecast}");

    // It gives away so much that it cannot think any more, and has less than a purchase costs.
    let mut life = town.start(faults);
    let is_critical =
        |event: &Event| matches!(event, Event::StateChanged { to: AgentState::Critical, .. });
    let is_broke = |event: &Event| matches!(event, Event::BrokeStarted { .. });
    life.wait_for(is_critical, LIMIT).unwrap();
    life.wait_for(is_broke, LIMIT).unwrap();
    town.fund(10);
    town.json(&["wake", "--json"]);
    let says = |event: &Event| matches!(event, Event::MessageSent { body, .. } if body.text == "That is done.");
    life.wait_for(says, LIMIT).unwrap();
    life.signal("TERM").unwrap();
    let lived = life.finish_within(LIMIT).unwrap();
    assert_eq!(lived.code, Some(0), "{}\n{}", lived.stdout, lived.stderr);
    let events = &lived.events;
    assert_eq!(count(events, |event| matches!(event, Event::CreditsTransferred { .. })), 8);
    assert_eq!(count(events, |event| matches!(event, Event::AccountOpened { .. })), 1);
    let (_, machine) = lived.stdout.split_once("Sandbox created: ").unwrap();
    let machine = machine.split_whitespace().next().unwrap().trim_end_matches([',', ':', ';']);
    let ended = books(events);
    // Where blocks take their time the last purchase may not be confirmed yet.
    assert_eq!(ended.bought.plus(ended.pending).unwrap(), dollars(10));
    assert_eq!(ended.sent, Microcents::from_cents(493).unwrap());
    assert_eq!(ended.signed, Some(MicroUsdc::new(10_010_000)), "two purchases, one file");
    assert!(ended.computed > Microcents::ZERO, "{ended:?}");
    // Its machine goes on, and costs a little each minute.
    let credits = town.json(&["credits", "--json"])["balance_microcents"].as_i64().unwrap();
    let left = ended.left.unwrap().units();
    assert!((left - 100_000..=left).contains(&credits), "{credits} of {left}");

    // The next start has the same account, buys nothing so soon after, and its commands run on
    // the machine that it rented. That was stopped meanwhile, and is started.
    let stop = format!("POST /v1/sandboxes/{machine}/stop");
    assert_eq!(ask(&town.cloud, town.world.home(), &stop, &json!({})).0, 200);
    let mut config = town.config.clone();
    config["sandboxId"] = machine.into();
    town.world.write_home("automaton.json", &config.to_string()).unwrap();
    let again = town.run(&["--turns", "2"]);
    assert_eq!(again.code, Some(0), "{}\n{}", again.stdout, again.stderr);
    assert_eq!(count(&again.events, |event| matches!(event, Event::AccountOpened { .. })), 0);
    assert!(again.stdout.contains("42 of away"), "{}", again.stdout);
    assert_eq!(books(&again.events).bought, dollars(10));
    assert_eq!(town.holds(&town.wallet()), 16_000_000 - 10_010_000);
    // The seller had five dollars, bought credits for all of them, and sold one file.
    assert_eq!(town.holds(&shop.address), 10_000);
}
