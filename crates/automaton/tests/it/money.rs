//! The first breath: a wallet, a chain and a cloud on one machine, and credits
//! bought over x402. Nothing here is played but a network that loses a reply.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use automaton_testkit::world::{ProcessOutput, ProcessRun, World};
use serde_json::{Value, json};

use super::{GAS, gas_signer, world};

/// Long enough for a key derivation without optimisation on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Whom the cloud has its customers pay.
const PAY_TO: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/// A chain, a cloud, and an automaton with 20 USDC.
struct Town {
    world: World,
    rpc: String,
    usdc: String,
    wallet: String,
    cloud: String,
    _running: [ProcessRun; 2],
}

fn first_line(run: &ProcessRun) -> Value {
    serde_json::from_str(&run.line(0, LIMIT).unwrap()).unwrap()
}

fn secret_file(world: &World, name: &str, text: &str) -> String {
    let path = world.dir().join(name);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    path.display().to_string()
}

fn done(finished: &ProcessOutput) -> Value {
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

impl Town {
    fn new() -> Self {
        let world = world();
        let chain = world.start(&["devnet", "--listen", "127.0.0.1:0", "--json"]).unwrap();
        let told = first_line(&chain);
        let text = |key: &str| told[key].as_str().unwrap().to_owned();
        let (rpc, usdc) = (text("url"), text("usdc"));
        call(&rpc, "automaton_fund", &json!([{ "address": GAS, "wei": "0xde0b6b3a7640000" }]));
        let config = json!({
            "data": world.dir().join("cloud"),
            "chain": {
                "id": 31337, "rpc_url": rpc, "asset": usdc, "pay_to": PAY_TO,
                "gas_signer": gas_signer(world.dir(), 0o600),
            },
            "upstream": { "base_url": "http://127.0.0.1:1/v1" },
            "models": [{
                "id": "m", "input_microcents_per_million": 1, "output_microcents_per_million": 1,
                "context_window": 8192, "max_output_tokens": 1024,
            }],
        });
        let path = world.dir().join("cloud.json");
        std::fs::write(&path, config.to_string()).unwrap();
        let path = path.display().to_string();
        let cloud = world.start(&["cloud", "--config", &path, "--json"]).unwrap();
        let url = first_line(&cloud)["url"].as_str().unwrap().to_owned();

        done(&world.command(&["init", "--json"]).unwrap());
        let secret = secret_file(&world, "passphrase", "correct horse\n");
        let made = world.start(&["wallet", "new", "--passphrase-file", &secret, "--json"]).unwrap();
        let wallet =
            done(&made.finish_within(LIMIT).unwrap())["address"].as_str().unwrap().to_owned();
        done(&world.command(&["fund", "20", "--rpc", &rpc, "--json"]).unwrap());
        Self { world, rpc, usdc, wallet, cloud: url, _running: [chain, cloud] }
    }

    fn top_up(&self, usd: &str, cloud: &str) -> ProcessOutput {
        self.ask_top_up(usd, cloud, &["--json"])
    }

    /// The same in words.
    fn tell(&self, usd: &str, cloud: &str) -> ProcessOutput {
        self.ask_top_up(usd, cloud, &[])
    }

    fn ask_top_up(&self, usd: &str, cloud: &str, more: &[&str]) -> ProcessOutput {
        let secret = self.world.dir().join("passphrase").display().to_string();
        let arguments = [
            "topup",
            usd,
            "--cloud",
            cloud,
            "--rpc",
            &self.rpc,
            "--chain",
            "31337",
            "--usdc",
            &self.usdc,
            "--passphrase-file",
            &secret,
        ];
        let arguments = [&arguments, more].concat();
        self.world.start(&arguments).unwrap().finish_within(LIMIT).unwrap()
    }

    /// What an address holds, in base units.
    fn holds(&self, address: &str) -> u64 {
        let data = format!("0x70a08231{:0>64}", address.trim_start_matches("0x"));
        let balance =
            call(&self.rpc, "eth_call", &json!([{ "to": self.usdc, "data": data }, "latest"]));
        u64::from_str_radix(balance.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    }
}

/// One question to the chain.
pub(crate) fn call(rpc: &str, method: &str, params: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let host = rpc.trim_start_matches("http://").trim_end_matches('/');
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let reply = exchange(host, head.as_bytes());
    let (_, body) = reply.split_once("\r\n\r\n").unwrap();
    let reply: Value = serde_json::from_str(body).unwrap();
    assert!(reply.get("error").is_none(), "{method}: {reply}");
    reply["result"].clone()
}

fn exchange(host: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(request).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// What a network loses of payments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    Requests,
    Replies,
}

/// Whether a request pays.
fn pays(head: &str) -> bool {
    let head = head.to_lowercase();
    head.contains("\r\npayment-signature:") || head.contains("\r\nx-payment:")
}

/// A network between the automaton and its cloud: `carry` gets the head of each
/// request and what asks the cloud, and gives what is answered, if anything is.
fn network(
    cloud: &str,
    carry: impl Fn(&str, &dyn Fn() -> String) -> Option<String> + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let host = cloud.trim_start_matches("http://").to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let text = String::from_utf8_lossy(&head).into_owned();
            head.truncate(head.len().saturating_sub(2));
            head.extend_from_slice(b"connection: close\r\n\r\n");
            if let Some(reply) = carry(&text, &|| exchange(&host, &head)) {
                stream.write_all(reply.as_bytes()).ok();
            }
        }
    });
    url
}

/// A network that loses payments for as long as it is told to.
fn lossy(cloud: &str, lost: Lost, loses: &Arc<AtomicBool>) -> String {
    let loses = Arc::clone(loses);
    network(cloud, move |head, ask| {
        let loses = pays(head) && loses.load(Ordering::SeqCst);
        if loses && lost == Lost::Requests {
            return None;
        }
        let reply = ask();
        (!loses).then_some(reply)
    })
}

#[test]
fn credits_are_bought_once_and_the_books_agree() {
    let town = Town::new();
    assert_eq!((town.holds(&town.wallet), town.holds(PAY_TO)), (20_000_000, 0));
    let receipt = done(&town.top_up("5", &town.cloud));
    assert_eq!(receipt["settled"], true, "{receipt}");
    assert_eq!(receipt["transaction"].as_str().unwrap().len(), 66);
    assert_eq!((town.holds(&town.wallet), town.holds(PAY_TO)), (15_000_000, 5_000_000));

    let secret = town.world.dir().join("passphrase").display().to_string();
    let none = town.world.command(&["credits"]).unwrap();
    assert!(none.code == Some(1) && none.stderr.contains("has no account"), "{}", none.stderr);
    let arguments = ["provision", "--cloud", &town.cloud, "--passphrase-file", &secret, "--json"];
    let made = town.world.start(&arguments).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(done(&made)["address"], town.wallet.as_str());
    let credits = done(&town.world.command(&["credits", "--json"]).unwrap());
    assert_eq!(credits["balance_cents"], 500, "{credits}");
    assert_eq!(credits["balance_microcents"], 500_000_000);

    // The operator gives it back, while the cloud runs; again is the same as once.
    let config = town.world.dir().join("cloud.json").display().to_string();
    let refund =
        |what| town.world.command(&["cloud", "refund", "--config", &config, what]).unwrap();
    for _ in 0..2 {
        let refunded = refund("payment:1");
        assert_eq!(refunded.code, Some(0), "{}", refunded.stderr);
        let told = refunded.stdout.to_lowercase();
        let owed = format!("send 5.00 usdc to {}", town.wallet.to_lowercase());
        assert!(told.contains(&owed), "{told}");
    }
    let credits = done(&town.world.command(&["credits", "--json"]).unwrap());
    assert_eq!(credits["balance_microcents"], 0, "{credits}");
    for unknown in ["payment:2", "posting:9", "5"] {
        let refused = refund(unknown);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    }

    let elsewhere = town.top_up("5", "http://127.0.0.1:1");
    assert_eq!(elsewhere.code, Some(2), "{}", elsewhere.stderr);
    let refused = town.top_up("25", &town.cloud);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("the wallet holds 15"), "{}", refused.stderr);
    let none = town.top_up("7", &town.cloud);
    assert!(none.code == Some(1) && none.stderr.contains("not for 7"), "{}", none.stderr);
    assert_eq!(town.holds(&town.wallet), 15_000_000);
}

#[test]
fn without_a_wallet_each_command_says_how_to_make_one() {
    let world = world();
    done(&world.command(&["init", "--json"]).unwrap());
    let cloud = ["--cloud", "http://127.0.0.1:1"];
    for command in [
        &["wallet", "show"][..],
        &["fund"],
        &["provision", cloud[0], cloud[1]],
        &["topup", "5", cloud[0], cloud[1], "--rpc", "http://127.0.0.1:1"],
    ] {
        let refused = world.command(command).unwrap();
        assert_eq!(refused.code, Some(1), "{command:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("automaton wallet new"), "{command:?}: {}", refused.stderr);
    }
}

#[test]
fn a_lost_reply_is_asked_about_and_never_paid_again() {
    let town = Town::new();
    let loses = Arc::new(AtomicBool::new(true));
    let cloud = lossy(&town.cloud, Lost::Replies, &loses);
    let unknown = town.top_up("5", &cloud);
    assert_eq!(unknown.code, Some(2), "{}\n{}", unknown.stdout, unknown.stderr);
    assert!(unknown.stderr.contains("is not known yet"), "{}", unknown.stderr);
    let again = town.top_up("5", &cloud);
    let receipt = done(&again);
    assert_eq!(receipt["settled"], true, "the chain knows: {receipt}");
    assert_eq!((town.holds(&town.wallet), town.holds(PAY_TO)), (15_000_000, 5_000_000));
    loses.store(false, Ordering::SeqCst);
    done(&town.top_up("5", &cloud));
    assert_eq!(town.holds(&town.wallet), 10_000_000, "a new purchase is a new payment");
}

#[test]
fn another_tier_beside_an_open_purchase_is_told_not_to_have_begun() {
    let town = Town::new();
    let loses = Arc::new(AtomicBool::new(true));
    let cloud = lossy(&town.cloud, Lost::Replies, &loses);
    assert_eq!(town.top_up("5", &cloud).code, Some(2));
    let receipt = done(&town.top_up("25", &cloud));
    assert_eq!(
        (&receipt["credits_usd"], &receipt["paid_usdc"]),
        (&json!(5), &json!(5_000_000)),
        "{receipt}"
    );
    assert_eq!(town.top_up("5", &cloud).code, Some(2));
    let told = town.tell("25", &cloud).stdout;
    assert!(told.contains("Went on with the purchase that was open: $5.00 of credits"), "{told}");
    assert!(told.contains("$25.00 of credits were not begun"), "{told}");
    assert!(told.contains("run `automaton topup 25` again to buy them now"), "{told}");
    assert_eq!(town.holds(&town.wallet), 10_000_000);
}

#[test]
fn only_the_chain_ends_a_payment_that_was_signed() {
    let town = Town::new();
    let loses = Arc::new(AtomicBool::new(true));
    let cloud = lossy(&town.cloud, Lost::Requests, &loses);
    let payment = |finished: &ProcessOutput| {
        assert_ne!(finished.code, Some(0), "{}", finished.stdout);
        let (_, rest) = finished.stderr.split_once("payment ").unwrap();
        rest.split([' ', ':']).next().unwrap().to_owned()
    };
    let first = payment(&town.top_up("5", &cloud));
    assert_eq!(payment(&town.top_up("5", &cloud)), first, "the same bytes are sent again");
    let elsewhere = town.top_up("5", &town.cloud);
    assert!(elsewhere.stderr.contains("is not over"), "{}", elsewhere.stderr);

    // Past the deadline by the chain's time, and by nobody else's.
    call(&town.rpc, "evm_increaseTime", &json!([3600]));
    call(&town.rpc, "evm_mine", &json!([]));
    assert_ne!(payment(&town.top_up("5", &cloud)), first, "it is void, and another one begins");
    assert_eq!(town.holds(&town.wallet), 20_000_000);
}

/// What a demand for payment is altered by.
type Alter = fn(&mut Value);

/// A server that asks for what the cloud asks for, altered; it notes whether
/// somebody pays.
fn greedy(cloud: &str, alter: Alter, paid: &Arc<AtomicBool>) -> String {
    let paid = Arc::clone(paid);
    network(cloud, move |head, ask| {
        if pays(head) {
            paid.store(true, Ordering::SeqCst);
        }
        let reply = ask();
        let (_, body) = reply.split_once("\r\n\r\n").unwrap();
        let mut demand: Value = serde_json::from_str(body).unwrap();
        alter(&mut demand["accepts"][0]);
        let body = demand.to_string();
        let head = "HTTP/1.1 402 Payment Required\r\ncontent-type: application/json\r\n\
                    connection: close\r\n";
        Some(format!("{head}content-length: {}\r\n\r\n{body}", body.len()))
    })
}

#[test]
fn what_was_not_wanted_is_refused_before_the_signer_is_asked() {
    let town = Town::new();
    let paid = Arc::new(AtomicBool::new(false));
    let demands: [(Alter, &str); 7] = [
        (
            |way| way["payTo"] = json!("0x\u{202e}evil\u{200b}\u{e0041}\u{1b}[2J"),
            "'0xevil[2J' is no address",
        ),
        // What only the reader of JSON quotes.
        (|way| way["maxTimeoutSeconds"] = json!("s\u{202e}o\u{1b}[2Jon"), "cannot be read"),
        (|way| way["maxAmountRequired"] = json!("900000000"), "it asks for 900.00 USDC"),
        (|way| way["asset"] = json!("0x00000000000000000000000000000000000000aa"), "for the token"),
        (|way| way["network"] = json!("base"), "it asks for payment on 'base'"),
        (|way| way["maxTimeoutSeconds"] = json!(315_360_000), "authorization of 315360000 seconds"),
        (|way| way["scheme"] = json!("upto"), "the scheme 'upto' is not paid"),
    ];
    for (alter, reason) in demands {
        let refused = town.top_up("5", &greedy(&town.cloud, alter, &paid));
        assert_ne!(refused.code, Some(0), "{}", refused.stdout);
        let hidden = |c| matches!(c, '\u{1b}' | '\u{202e}' | '\u{200b}' | '\u{e0041}');
        assert!(!refused.stderr.contains(hidden), "{:?}", refused.stderr);
        assert!(refused.stderr.contains(reason), "{reason}: {}", refused.stderr);
    }
    assert!(!paid.load(Ordering::SeqCst));
    assert_eq!(town.holds(&town.wallet), 20_000_000);
    let secret = town.world.dir().join("passphrase").display().to_string();
    let asked = ["limits", "show", "--passphrase-file", &secret, "--json"];
    let limits = done(&town.world.start(&asked).unwrap().finish_within(LIMIT).unwrap());
    assert_eq!(limits["spent"]["payments"], 0, "the signer was never asked: {limits}");
}

/// Asks a cloud with the key of a home; status and body.
pub(crate) fn ask(cloud: &str, home: &Path, line: &str, body: &Value) -> (u16, Value) {
    let file = std::fs::read_to_string(home.join("cloud-key.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let (key, body) = (file["key"].as_str().unwrap(), body.to_string());
    let host = cloud.trim_start_matches("http://");
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.0\r\nhost: {host}\r\nauthorization: {key}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let reply = exchange(host, request.as_bytes());
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// Has the account of a home sell a file for a cent, from a machine; where it is.
pub(crate) fn sell(cloud: &str, home: &Path) -> String {
    sell_from(cloud, home).0
}

/// The same, and the path of the machine in the cloud's API.
pub(crate) fn sell_from(cloud: &str, home: &Path) -> (String, String) {
    let ask = |line: &str, body: &Value| ask(cloud, home, line, body);
    let (status, machine) = ask("POST /v1/sandboxes", &json!({ "name": "shop" }));
    assert_eq!((status, &machine["status"]), (200, &json!("running")), "{machine}");
    let path = format!("/v1/sandboxes/{}", machine["id"].as_str().unwrap());
    serve_goods(cloud, home, &path);
    let price = json!({ "port": 9000, "price_usdc": "0.01" });
    let (status, port) = ask(&format!("POST {path}/ports/expose"), &price);
    assert_eq!((status, &port["price_usdc"]), (200, &json!("0.01")), "{port}");
    (format!("{}goods.txt", port["path_url"].as_str().unwrap()), path)
}

/// Begins to serve what is sold from a machine that runs, as it has to after a start of it.
pub(crate) fn serve_goods(cloud: &str, home: &Path, path: &str) {
    let serve = "cd /root && echo goods > goods.txt && \
        (python3 -m http.server 9000 --bind 127.0.0.1 >/dev/null 2>&1 &) && bash -c 'for i in $(seq 300); \
        do (exec 3<>/dev/tcp/127.0.0.1/9000) 2>/dev/null && exit 0; sleep 0.05; done; exit 1'";
    let served = ask(cloud, home, &format!("POST {path}/exec"), &json!({ "command": serve }));
    assert_eq!((served.0, &served.1["exit_code"]), (200, &json!(0)), "{}", served.1);
}

#[test]
fn what_a_machine_sells_is_paid_to_its_owner_on_the_chain() {
    let town = Town::new();
    assert_eq!(town.top_up("5", &town.cloud).code, Some(0));
    let secret = town.world.dir().join("passphrase").display().to_string();
    let sign_in = ["provision", "--cloud", &town.cloud, "--passphrase-file", &secret, "--json"];
    done(&town.world.start(&sign_in).unwrap().finish_within(LIMIT).unwrap());
    let url = sell(&town.cloud, town.world.home());

    let customer = world();
    done(&customer.command(&["init", "--json"]).unwrap());
    let secret = secret_file(&customer, "passphrase", "correct horse\n");
    let new = ["wallet", "new", "--passphrase-file", &secret, "--json"];
    let made = done(&customer.start(&new).unwrap().finish_within(LIMIT).unwrap());
    done(&customer.command(&["fund", "1", "--rpc", &town.rpc, "--json"]).unwrap());
    let fetch = [
        ["x402", "fetch", &url, "--max", "0.01"].as_slice(),
        &["--cloud", &town.cloud, "--rpc", &town.rpc, "--chain", "31337"],
        &["--usdc", &town.usdc, "--passphrase-file", &secret, "--json"],
    ]
    .concat();
    let before = town.holds(&town.wallet);
    for bought in 1..=2 {
        let got = done(&customer.start(&fetch).unwrap().finish_within(LIMIT).unwrap());
        assert_eq!((&got["status"], &got["settled"]), (&json!(200), &json!(true)), "{got}");
        assert_eq!(got["body"], "goods\n");
        let of_customer = town.holds(made["address"].as_str().unwrap());
        let moved = (town.holds(&town.wallet) - before, 1_000_000 - of_customer);
        assert_eq!(moved, (bought * 10_000, bought * 10_000));
    }
    let history = ask(&town.cloud, town.world.home(), "GET /v1/credits/history", &json!({})).1;
    assert_eq!(history["sales"].as_array().unwrap().len(), 2, "{history}");
}

/// The first fenced block of a language below a heading of a page.
fn block(page: &str, heading: &str, language: &str) -> String {
    let (_, section) = page.split_once(heading).unwrap();
    let (_, block) = section.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("\n```").unwrap().0.to_owned()
}

/// The commands of the page "Money on one machine", as they are printed there: what is typed at
/// a terminal comes from files, and ports are free ones.
#[test]
fn the_commands_by_hand_of_the_page_about_money_do_what_it_says() {
    let page = include_str!("../../../../docs/money.md");
    let world = world();
    let secret = secret_file(&world, "pass", "correct horse\n");
    let (mut rpc, mut cloud, mut running) = (String::new(), String::new(), Vec::new());
    let mut credits = None;
    for line in block(page, "## By hand", "sh").lines() {
        let command = line.split('#').next().unwrap().trim();
        let line = command.replace("http://127.0.0.1:8545", &rpc);
        let line = line.replace("http://127.0.0.1:PORT", &cloud);
        let mut words: Vec<&str> = line.trim_end_matches('&').split_whitespace().skip(1).collect();
        words.push("--json");
        if ["wallet", "topup", "provision"].contains(&words[0]) {
            words.extend(["--passphrase-file", &secret]);
        }
        if words.contains(&"cloud.json") && !world.dir().join("cloud.json").exists() {
            let config = block(page, "`cloud.json` configures", "json");
            let config = config.replace("http://127.0.0.1:8545", &rpc);
            let mut config: Value = serde_json::from_str(&config).unwrap();
            config["chain"]["gas_signer"]["passphrase_file"] = json!(secret);
            std::fs::write(world.dir().join("cloud.json"), config.to_string()).unwrap();
        }
        if line.ends_with('&') {
            words.extend(["--listen", "127.0.0.1:0"]);
            let run = world.start(&words).unwrap();
            let url = first_line(&run)["url"].as_str().unwrap().to_owned();
            *(if words[0] == "devnet" { &mut rpc } else { &mut cloud }) = url;
            running.push(run);
        } else {
            let finished = world.start(&words).unwrap().finish_within(LIMIT).unwrap();
            assert_eq!(finished.code, Some(0), "{command}: {}", finished.stderr);
            credits = Some(done(&finished));
        }
    }
    assert_eq!(running.len(), 2, "a chain and a cloud");
    assert_eq!(credits.unwrap()["balance_cents"], json!(500));
}

#[test]
fn the_account_of_gas_gets_as_much_ether_as_is_said() {
    let world = world();
    let chain = world.start(&["devnet", "--listen", "127.0.0.1:0", "--json"]).unwrap();
    let rpc = first_line(&chain)["url"].as_str().unwrap().to_owned();
    let secret = secret_file(&world, "pass", "correct horse\n");
    let new = ["wallet", "new", "--home", "gas", "--passphrase-file", &secret, "--json"];
    let made = done(&world.start(&new).unwrap().finish_within(LIMIT).unwrap());
    let address = made["address"].as_str().unwrap();
    let fund = ["fund", "0.5", "--gas", "--home", "gas", "--rpc", &rpc, "--json"];
    let funded = done(&world.command(&fund).unwrap());
    assert_eq!(funded, json!({ "address": address, "wei": "500000000000000000" }));
    let balance = call(&rpc, "eth_getBalance", &json!([address, "latest"]));
    assert_eq!(balance, json!("0x6f05b59d3b20000"));
    let nowhere = world.command(&["fund", "--gas", "--home", "gas"]).unwrap();
    assert!(nowhere.code == Some(1) && nowhere.stderr.contains("--config"), "{nowhere:?}");
}
