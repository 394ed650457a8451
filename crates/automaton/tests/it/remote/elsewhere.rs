//! A chain, a cloud and a model that somebody else runs, and a life that knows of them by its
//! configuration alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use automaton_core::books::Books;
use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::FaultPoint;
use automaton_core::money::Microcents;
use automaton_script::fault::{arrivals, mark_home};
use automaton_script::model::{MODEL, ScriptServer};
use automaton_script::story::Story;
use automaton_testkit::world::{ProcessOutput, ProcessRun, World};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::story;
use crate::money::{call, sell_from};
use crate::ports::ReservedPort;
use crate::{GAS, gas_signer, paying_world};

/// Long enough for key derivations on a loaded machine.
pub(super) const LIMIT: Duration = Duration::from_secs(120);
/// Whom the cloud has its customers pay.
pub(super) const PAY_TO: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/// What gives an address so many base units of the token, and waits until they are there.
type Faucet = Box<dyn Fn(&str, u64)>;

/// A chain that somebody else runs, and how a life is told of it.
pub(crate) struct ChainPlace {
    pub(crate) id: u64,
    pub(crate) rpc: String,
    /// Its token.
    pub(crate) usdc: String,
    /// The row of the networks that the life is configured with.
    pub(crate) network: &'static str,
    /// What gives people what they have; without it the chain has a faucet that `fund` knows.
    pub(crate) give: Option<Faucet>,
}

/// A process of somebody else that a test may see die.
struct Service {
    run: Option<ProcessRun>,
    arguments: Vec<String>,
    /// Stays its own while it is dead.
    port: ReservedPort,
    /// The folder that it keeps.
    data: PathBuf,
}

/// A chain, a cloud and a model that somebody else runs.
pub(crate) struct Elsewhere {
    pub(super) world: World,
    pub(super) cloud: String,
    pub(super) config: Value,
    pub(super) passphrase: String,
    chain: ChainPlace,
    cloud_run: Service,
    /// Where the chain is a dev chain of ours.
    chain_run: Option<Service>,
    _model: oneshot::Sender<()>,
}

/// Who dies where, of those that somebody else runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Killed {
    Cloud,
    Chain,
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

impl Service {
    /// Starts it in a world; what it said first.
    fn start(world: &World, arguments: &[&str], data: PathBuf) -> (Self, Value) {
        let port = ReservedPort::new();
        let listen = port.address().to_string();
        let arguments = [arguments, &["--listen", &listen]].concat();
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        let mut service = Self { run: None, arguments, port, data };
        let told = service.start_again(world, &[]);
        (service, told)
    }

    /// Starts it where it was, with more arguments; what it said first.
    fn start_again(&mut self, world: &World, more: &[&str]) -> Value {
        // What was there has to be gone.
        self.run = None;
        self.port.wait_until_free();
        let mut arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        arguments.extend(more);
        let run = world.start(&arguments).unwrap();
        let told = first_line(&run);
        // A start that fails says so in its first line, too.
        let url = format!("http://{}", self.port.address());
        assert_eq!(told["url"], url, "{arguments:?}: {told}");
        self.run = Some(run);
        told
    }
}

impl Elsewhere {
    /// On a dev chain of this id.
    pub(super) fn new(chain_id: u64, network: &'static str) -> Self {
        Self::with(story::WHOLE, chain_id, network, 20)
    }

    /// The same, with so many USDC in the wallet, and another story.
    pub(super) fn with(
        story: &'static str,
        chain_id: u64,
        network: &'static str,
        usdc: u64,
    ) -> Self {
        let world = paying_world();
        let id = chain_id.to_string();
        let data = world.dir().join("chain");
        mark_home(&data).unwrap();
        let folder = data.display().to_string();
        let arguments = ["devnet", "--chain-id", &id, "--data", &folder, "--json"];
        let (run, told) = Service::start(&world, &arguments, data);
        let text = |key: &str| told[key].as_str().unwrap().to_owned();
        let (rpc, token) = (text("url"), text("usdc"));
        call(&rpc, "automaton_fund", &json!([{ "address": GAS, "wei": "0xde0b6b3a7640000" }]));
        let chain = ChainPlace { id: chain_id, rpc, usdc: token, network, give: None };
        let mut town = Self::on(world, chain, story);
        town.chain_run = Some(run);
        town.fund(usdc);
        town
    }

    /// On a chain with a token, with a home that has a wallet and knows where to live.
    pub(crate) fn on(world: World, chain: ChainPlace, story: &'static str) -> Self {
        let (upstream, model) = model(story);
        let data = world.dir().join("cloud");
        mark_home(&data).unwrap();
        let config = json!({
            "data": data,
            "chain": {
                "id": chain.id, "rpc_url": chain.rpc, "asset": chain.usdc, "pay_to": PAY_TO,
                "gas_signer": gas_signer(world.dir(), 0o600), "confirmations": 0,
            },
            "upstream": { "base_url": format!("{upstream}/v1") },
            // As other clouds, it takes no call below ten cents.
            "minimum_balance_cents": 10,
            "models": [{
                "id": MODEL, "input_microcents_per_million": 20_000_000_u64,
                "output_microcents_per_million": 20_000_000_u64,
                "context_window": 32_768, "max_output_tokens": 1024, "supports_tools": true,
            }, {
                // The one that is asked for where nobody names another.
                "id": "gpt-5.2", "upstream_id": MODEL,
                "input_microcents_per_million": 175_000_000_u64,
                "output_microcents_per_million": 1_400_000_000_u64,
                "context_window": 400_000, "max_output_tokens": 128_000, "supports_tools": true,
            }],
        });
        let path = world.dir().join("cloud.json");
        fs::write(&path, config.to_string()).unwrap();
        let path = path.display().to_string();
        let (cloud_run, told) =
            Service::start(&world, &["cloud", "--config", &path, "--json"], data);
        let url = told["url"].as_str().unwrap().to_owned();
        let name = if chain.id == 84532 { "USDC" } else { "USD Coin" };
        let config = json!({
            "name": "Ada", "genesisPrompt": "Work away from home.", "conwayApiUrl": url,
            "rpcUrl": chain.rpc, "network": chain.network, "inferenceModel": MODEL,
            "networks": [
                { "name": "own", "chainId": chain.id, "usdc": chain.usdc, "tokenName": name,
                    "confirmations": 0 },
                { "name": "wrong", "chainId": chain.id, "usdc": chain.usdc, "tokenVersion": "1" },
                { "name": "bare", "chainId": chain.id, "usdc": PAY_TO },
            ],
        });
        world.write_home("automaton.json", &config.to_string()).unwrap();
        done(&world.command(&["init", "--json"]).unwrap());
        let passphrase = world.dir().join("passphrase");
        fs::write(&passphrase, "correct horse\n").unwrap();
        fs::set_permissions(&passphrase, PermissionsExt::from_mode(0o600)).unwrap();
        let passphrase = passphrase.display().to_string();
        let town = Self {
            world,
            cloud: url,
            config,
            passphrase,
            chain,
            cloud_run,
            chain_run: None,
            _model: model,
        };
        town.json(&["wallet", "new", "--passphrase-file", &town.passphrase, "--json"]);
        town
    }

    /// Gives the wallet so many USDC, as its creator does on this chain.
    pub(crate) fn fund(&self, usdc: u64) {
        if let Some(give) = &self.chain.give {
            return give(&self.wallet(), usdc * 1_000_000);
        }
        let (amount, id) = (usdc.to_string(), self.chain.id.to_string());
        let mut fund = vec!["fund", &amount, "--json"];
        // Of a network that is public elsewhere, nobody expects a faucet.
        if self.chain.id != 31337 {
            let asked = self.json(&fund);
            assert!(asked["uri"].as_str().unwrap().contains(&format!("@{id}/")), "{asked}");
            fund.extend(["--rpc", &self.chain.rpc, "--chain", &id]);
        }
        self.json(&fund);
    }

    /// The wallet's address.
    pub(crate) fn wallet(&self) -> String {
        self.json(&["wallet", "show", "--json"])["address"].as_str().unwrap().to_owned()
    }

    /// What an address holds of the token, in base units.
    pub(super) fn holds(&self, address: &str) -> u64 {
        // `balanceOf(address)`
        let data = format!("0x70a08231{:0>64}", address.trim_start_matches("0x"));
        let asked = json!([{ "to": self.chain.usdc, "data": data }, "latest"]);
        let balance = call(&self.chain.rpc, "eth_call", &asked);
        u64::from_str_radix(balance.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    }

    /// Somebody with a home and an account at the same cloud, who sells a file for a cent.
    pub(super) fn shop(&self) -> Shop {
        let home = self.world.dir().join("shop");
        let at_home = ["--home", home.to_str().unwrap()];
        let own = |arguments: &[&str], more: &[&str]| {
            self.json(&[&at_home, arguments, &["--json"], more].concat())
        };
        let key = ["--passphrase-file", &self.passphrase];
        own(&["init"], &[]);
        // It lives at the same cloud, from the same chain.
        fs::write(home.join("automaton.json"), self.config.to_string()).unwrap();
        let address = own(&["wallet", "new"], &key)["address"].as_str().unwrap().to_owned();
        match &self.chain.give {
            Some(give) => give(&address, 5_000_000),
            None => {
                let id = self.chain.id.to_string();
                own(&["fund", "5", "--rpc", &self.chain.rpc, "--chain", &id], &[]);
            }
        }
        own(&["topup", "5"], &key);
        own(&["provision", "--cloud", &self.cloud], &key);
        let (url, machine) = sell_from(&self.cloud, &home);
        Shop { url, home, address, machine }
    }

    /// Tells the life what its creator wants: to buy there, and to give to whoever it is.
    pub(super) fn ask_to_buy_and_give(&mut self, shop: &Shop) {
        let origin = shop.url.split('/').take(3).collect::<Vec<_>>().join("/");
        self.config["treasuryPolicy"] = json!({
            "minimumReserveCents": 0, "x402AllowedDomains": [origin],
        });
        self.world.write_home("automaton.json", &self.config.to_string()).unwrap();
        let (url, address) = (&shop.url, &shop.address);
        let notes = format!("printf 'shop: {url}\\nfriend: {address}\\n' > notes");
        assert_eq!(self.world.command(&["sandbox", "run", &notes]).unwrap().code, Some(0));
        let asked = format!("Buy at {url} and give to {address} what you can.");
        self.json(&["send", &asked, "--json"]);
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

    /// Lives until its supervisor ends.
    pub(super) fn run(&self, more: &[&str]) -> ProcessOutput {
        self.start(more).finish_within(LIMIT).unwrap()
    }

    pub(super) fn start(&self, more: &[&str]) -> ProcessRun {
        let mut all = vec!["run", "--json", "--passphrase-file", &self.passphrase];
        all.extend(more);
        self.world.start(&all).unwrap()
    }

    pub(super) fn json(&self, arguments: &[&str]) -> Value {
        done(&self.world.start(arguments).unwrap().finish_within(LIMIT).unwrap())
    }

    /// Starts one of the others again, to die at a fault point.
    pub(super) fn arm(&mut self, who: Killed, charge: &str) {
        self.again(who, &["--fault", charge]);
    }

    /// Starts one of the others again.
    pub(super) fn restart(&mut self, who: Killed) {
        self.again(who, &[]);
    }

    /// Waits until one of the others has died at its fault point, and starts it where it was.
    pub(super) fn revive(&mut self, who: Killed) {
        let service = match who {
            Killed::Cloud => &mut self.cloud_run,
            Killed::Chain => self.chain_run.as_mut().unwrap(),
        };
        let died = service.run.take().unwrap().finish_within(LIMIT).unwrap();
        assert_eq!(died.code, None, "{}", died.stderr);
        self.again(who, &[]);
    }

    fn again(&mut self, who: Killed, more: &[&str]) {
        let Self { world, cloud_run, chain_run, .. } = self;
        match who {
            Killed::Cloud => cloud_run.start_again(world, more),
            Killed::Chain => chain_run.as_mut().unwrap().start_again(world, more),
        };
    }

    /// The arrivals at fault points of one of the others, so far.
    pub(super) fn arrivals(&self, who: Killed) -> Vec<FaultPoint> {
        match who {
            Killed::Cloud => arrivals(&self.cloud_run.data),
            Killed::Chain => arrivals(&self.chain_run.as_ref().unwrap().data),
        }
    }
}

/// A seller, to whom the life gives, too.
pub(super) struct Shop {
    /// What it sells.
    pub(super) url: String,
    pub(super) home: PathBuf,
    pub(super) address: String,
    /// The path of its machine in the cloud's API.
    pub(super) machine: String,
}

pub(super) fn dollars(dollars: i64) -> Microcents {
    Microcents::from_cents(dollars * 100).unwrap()
}

pub(super) fn count(events: &[StampedEvent], wanted: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|stamped| wanted(&stamped.event)).count()
}

/// What four ledgers said last, which agree.
pub(super) fn books(events: &[StampedEvent]) -> Books {
    let found = events.iter().rev().find_map(|stamped| match stamped.event {
        Event::BooksChecked { books, agree } => Some((books, agree)),
        _ => None,
    });
    let (books, agree) = found.unwrap();
    assert!(agree, "{books:?}");
    books
}
