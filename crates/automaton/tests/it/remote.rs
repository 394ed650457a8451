//! A life away from home: cloud and chain are processes that somebody else started, and all
//! that the automaton knows of them is in its configuration.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::FaultPoint;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::state::AgentState;
use automaton_script::model::{MODEL, ScriptServer};
use automaton_script::story::Story;
use automaton_testkit::world::{ProcessOutput, ProcessRun, World};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::money::{ask, call, sell};
use super::{GAS, gas_signer, paying_world};

/// Long enough for key derivations on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Whom the cloud has its customers pay.
const PAY_TO: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/// It rents a machine, gives away all but a few cents, buys, and works on the machine once its
/// commands run there.
const STORY: &str = r#"
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

/// A chain, a cloud and a model that somebody else runs.
pub(crate) struct Elsewhere {
    world: World,
    cloud: String,
    config: Value,
    passphrase: String,
    running: Vec<ProcessRun>,
    _model: oneshot::Sender<()>,
}

fn first_line(run: &ProcessRun) -> Value {
    serde_json::from_str(&run.line(0, LIMIT).unwrap()).unwrap()
}

fn done(finished: &ProcessOutput) -> Value {
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// A model that tells a story to whoever asks, and where it is, until it is dropped.
pub(crate) fn model(story: &'static str) -> (String, oneshot::Sender<()>) {
    let (end, ended) = oneshot::channel();
    let (tell, told) = sync_channel(1);
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let model = ScriptServer::start(Story::parse("away", story).unwrap()).await.unwrap();
            tell.send(model.origin()).unwrap();
            // An end is an end, said or not.
            ended.await.ok();
        });
    });
    (told.recv().unwrap(), end)
}

impl Elsewhere {
    /// On a dev chain of this id.
    fn new(chain_id: u64, network: &str) -> Self {
        Self::with(chain_id, network, "20")
    }

    /// The same, with so many USDC in the wallet.
    fn with(chain_id: u64, network: &str, usdc: &str) -> Self {
        let world = paying_world();
        let id = chain_id.to_string();
        let chain = ["devnet", "--listen", "127.0.0.1:0", "--chain-id", &id, "--json"];
        let chain = world.start(&chain).unwrap();
        let told = first_line(&chain);
        let text = |key: &str| told[key].as_str().unwrap().to_owned();
        let rpc = text("url");
        call(&rpc, "automaton_fund", &json!([{ "address": GAS, "wei": "0xde0b6b3a7640000" }]));
        let mut town = Self::on(world, (&rpc, &text("usdc")), chain_id, network);
        town.running.push(chain);
        let mut fund = vec!["fund", usdc, "--json"];
        // Of a network that is public elsewhere, nobody expects a faucet.
        if chain_id != 31337 {
            let asked = town.json(&fund);
            assert!(asked["uri"].as_str().unwrap().contains(&format!("@{id}/")), "{asked}");
            fund.extend(["--rpc", &rpc, "--chain", &id]);
        }
        town.json(&fund);
        town
    }

    /// On a chain with a token, with a home that has a wallet and knows where to live.
    pub(crate) fn on(
        world: World,
        (rpc, usdc): (&str, &str),
        chain_id: u64,
        network: &str,
    ) -> Self {
        let (upstream, model) = model(STORY);
        let config = json!({
            "data": world.dir().join("cloud"),
            "chain": {
                "id": chain_id, "rpc_url": rpc, "asset": usdc, "pay_to": PAY_TO,
                "gas_signer": gas_signer(world.dir(), 0o600), "confirmations": 0,
            },
            "upstream": { "base_url": format!("{upstream}/v1") },
            "models": [{
                "id": MODEL, "input_microcents_per_million": 20_000_000_u64,
                "output_microcents_per_million": 20_000_000_u64,
                "context_window": 32_768, "max_output_tokens": 1024, "supports_tools": true,
            }],
        });
        let path = world.dir().join("cloud.json");
        fs::write(&path, config.to_string()).unwrap();
        let path = path.display().to_string();
        let cloud = world.start(&["cloud", "--config", &path, "--json"]).unwrap();
        let url = first_line(&cloud)["url"].as_str().unwrap().to_owned();
        let name = if chain_id == 84532 { "USDC" } else { "USD Coin" };
        let config = json!({
            "name": "Ada", "genesisPrompt": "Work away from home.", "conwayApiUrl": url,
            "rpcUrl": rpc, "network": network, "inferenceModel": MODEL,
            "networks": [
                { "name": "own", "chainId": chain_id, "usdc": usdc, "tokenName": name,
                    "confirmations": 0 },
                { "name": "wrong", "chainId": chain_id, "usdc": usdc, "tokenVersion": "1" },
                { "name": "bare", "chainId": chain_id, "usdc": PAY_TO },
            ],
        });
        world.write_home("automaton.json", &config.to_string()).unwrap();
        done(&world.command(&["init", "--json"]).unwrap());
        let passphrase = world.dir().join("passphrase");
        fs::write(&passphrase, "correct horse\n").unwrap();
        fs::set_permissions(&passphrase, PermissionsExt::from_mode(0o600)).unwrap();
        let passphrase = passphrase.display().to_string();
        let running = vec![cloud];
        let town = Self { world, cloud: url, config, passphrase, running, _model: model };
        town.json(&["wallet", "new", "--passphrase-file", &town.passphrase, "--json"]);
        town
    }

    /// The wallet's address.
    pub(crate) fn wallet(&self) -> String {
        self.json(&["wallet", "show", "--json"])["address"].as_str().unwrap().to_owned()
    }

    /// A first life of one turn, and that it bought what it thought with.
    pub(crate) fn lives_and_pays(&self) {
        let lived = self.run(&["--turns", "1"]);
        assert_eq!(lived.code, Some(0), "{}\n{}", lived.stdout, lived.stderr);
        assert_eq!(count(&lived.events, |event| matches!(event, Event::TurnCommitted { .. })), 1);
        // Where blocks take their time it is confirmed later, and the cloud may not wait.
        let books = books(&lived.events);
        let all = books.bought.plus(books.pending).unwrap();
        assert_eq!(all, dollars(5), "{books:?}");
    }

    /// Somebody with a home and an account at the same cloud, who sells a file for a cent:
    /// where, and the address.
    fn shop(&self) -> (String, String) {
        let home = self.world.dir().join("shop");
        let at_home = ["--home", home.to_str().unwrap()];
        let own = |arguments: &[&str], more: &[&str]| {
            self.json(&[&at_home, arguments, &["--json"], more].concat())
        };
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (rpc, usdc) = (text(&self.config["rpcUrl"]), text(&self.config["networks"][0]["usdc"]));
        let key = ["--passphrase-file", &self.passphrase];
        let place = ["--cloud", &self.cloud, "--rpc", &rpc, "--chain", "31337", "--usdc", &usdc];
        own(&["init"], &[]);
        let address = text(&own(&["wallet", "new"], &key)["address"]);
        own(&["fund", "5", "--rpc", &rpc], &[]);
        own(&["topup", "5"], &[&place, key.as_slice()].concat());
        own(&["provision", "--cloud", &self.cloud], &key);
        (sell(&self.cloud, &home), address)
    }

    fn run(&self, more: &[&str]) -> ProcessOutput {
        let mut all = vec!["run", "--json", "--passphrase-file", &self.passphrase];
        all.extend(more);
        self.world.start(&all).unwrap().finish_within(LIMIT).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        done(&self.world.start(arguments).unwrap().finish_within(LIMIT).unwrap())
    }
}

fn dollars(dollars: i64) -> Microcents {
    Microcents::from_cents(dollars * 100).unwrap()
}

fn count(events: &[StampedEvent], wanted: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|stamped| wanted(&stamped.event)).count()
}

fn books(events: &[StampedEvent]) -> automaton_core::books::Books {
    let found = events.iter().rev().find_map(|stamped| match stamped.event {
        Event::BooksChecked { books, agree } => Some((books, agree)),
        _ => None,
    });
    let (books, agree) = found.unwrap();
    assert!(agree, "{books:?}");
    books
}

#[test]
fn it_lives_from_a_cloud_and_a_chain_that_it_was_only_told_of() {
    let mut town = Elsewhere::with(31337, "dev", "6");
    let (shop, friend) = town.shop();
    let origin = shop.split('/').take(3).collect::<Vec<_>>().join("/");
    town.config["treasuryPolicy"] = json!({
        "minimumReserveCents": 0, "x402AllowedDomains": [origin],
    });
    town.world.write_home("automaton.json", &town.config.to_string()).unwrap();
    let notes = format!("printf 'shop: {shop}\\nfriend: {friend}\\n' > notes");
    assert_eq!(town.world.command(&["sandbox", "run", &notes]).unwrap().code, Some(0));
    let asked = format!("Buy at {shop} and give to {friend} what you can.");
    town.json(&["send", &asked, "--json"]);
    let forecast =
        town.json(&["run", "--dry-run", "--json", "--passphrase-file", &town.passphrase]);
    assert_eq!((&forecast["network"], &forecast["chain_id"]), (&json!("dev"), &json!(31337)));
    assert_eq!(forecast["cloud"], town.cloud.as_str(), "{forecast}");

    // It gives away so much that it cannot think any more, and has less than a purchase costs.
    let lives = ["run", "--json", "--passphrase-file", &town.passphrase];
    let mut life = town.world.start(&lives).unwrap();
    let is_critical =
        |event: &Event| matches!(event, Event::StateChanged { to: AgentState::Critical, .. });
    let is_broke = |event: &Event| matches!(event, Event::BrokeStarted { .. });
    life.wait_for(is_critical, LIMIT).unwrap();
    life.wait_for(is_broke, LIMIT).unwrap();
    town.json(&["fund", "10", "--json"]);
    town.json(&["wake", "--json"]);
    let says = |event: &Event| matches!(event, Event::MessageSent { body, .. } if body.text == "That is done.");
    life.wait_for(says, LIMIT).unwrap();
    life.signal("TERM").unwrap();
    let lived = life.finish_within(LIMIT).unwrap();
    assert_eq!(lived.code, Some(0), "{}\n{}", lived.stdout, lived.stderr);
    let events = &lived.events;
    assert_eq!(count(events, |event| matches!(event, Event::CreditsTransferred { .. })), 8);
    assert_eq!(count(events, |event| matches!(event, Event::AccountOpened { .. })), 1);
    assert_eq!(count(events, |event| matches!(event, Event::TopupSettled { .. })), 2);
    let (_, machine) = lived.stdout.split_once("Sandbox created: ").unwrap();
    let machine = machine.split_whitespace().next().unwrap().trim_end_matches([',', ':', ';']);
    let ended = books(events);
    assert_eq!(ended.bought, dollars(10));
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
    assert_eq!(count(&again.events, |event| matches!(event, Event::TopupSettled { .. })), 0);
    assert!(again.stdout.contains("42 of away"), "{}", again.stdout);
    assert_eq!(books(&again.events).bought, dollars(10));
}

#[test]
fn killed_at_any_point_of_a_purchase_it_pays_once() {
    for point in [
        FaultPoint::PaymentProposed,
        FaultPoint::PaymentSigned,
        FaultPoint::PaymentSubmitted,
        FaultPoint::PaymentAnswered,
    ] {
        let town = Elsewhere::new(31337, "own");
        // The agent dies; the supervisor starts it again, and it goes on with the same purchase.
        let lived = town.run(&["--turns", "1", "--fault", point.name()]);
        assert_eq!(lived.code, Some(0), "{point:?}\n{}\n{}", lived.stdout, lived.stderr);
        let restarts = count(&lived.events, |event| matches!(event, Event::AgentRestarted { .. }));
        assert_eq!(restarts, 1, "{point:?} was not reached");
        let books = books(&lived.events);
        assert_eq!(books.bought.plus(books.pending).unwrap(), dollars(5), "{point:?} {books:?}");
        assert_eq!(books.signed, Some(MicroUsdc::new(5_000_000)), "{point:?}");
    }
}

#[test]
fn what_is_not_as_it_was_chosen_is_told_before_anything_is_paid() {
    let mut town = Elsewhere::new(31337, "base");
    for (network, wrong, remedy) in [
        ("base", "serves the chain 31337, not 8453", "set `network` to dev"),
        ("mars", "there is no network 'mars'", "take one of own, wrong, bare, base,"),
        ("wrong", "does not call itself 'USD Coin', version '1'", "correct `tokenName`"),
        ("bare", "there is no USDC at 0x7099", "correct `usdc`"),
    ] {
        town.config["network"] = network.into();
        town.world.write_home("automaton.json", &town.config.to_string()).unwrap();
        let refused = town.run(&["--turns", "1"]);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        let told = &refused.stderr;
        assert!(told.contains(wrong) && told.contains(remedy), "{network}: {told}");
        assert!(!town.world.home().join("cloud-key.json").exists(), "{network}");
    }
    town.config["network"] = "dev".into();
    town.world.write_home("automaton.json", &town.config.to_string()).unwrap();
    let told = town.world.command(&["run", "--turns", "1"]).unwrap().stderr;
    assert!(told.contains("nobody says where the wallet's passphrase is"), "{told}");
    town.config["conwayApiKey"] = "cnwy_k_nobodys".into();
    town.world.write_home("automaton.json", &town.config.to_string()).unwrap();
    let told = town.run(&["--turns", "1"]).stderr;
    assert!(told.contains("correct the key `conwayApiKey`"), "{told}");
}

#[test]
fn a_row_of_another_network_is_all_that_changes() {
    Elsewhere::new(84532, "own").lives_and_pays();
}
