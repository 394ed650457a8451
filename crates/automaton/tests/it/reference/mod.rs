//! The reference, unmodified, in a cloud of ours on a chain with the id of Base: its life from
//! `--provision` to its sleep, as a client of ours that sends its requests. What it sends and is
//! answered is the table of `docs/clouds.md`.

mod client;
#[path = "../../../../cloud/tests/machines/podman.rs"]
mod podman;

use std::cell::RefCell;
use std::time::Duration;

use automaton_script::model::MODEL;
use automaton_testkit::world::ProcessRun;
use serde_json::{Value, json};

use self::client::{Reference, fetch};
use self::podman::{IMAGE, Podman};
use super::money::call;
use super::remote::model;
use super::{GAS, gas_signer, world};

const LIMIT: Duration = Duration::from_secs(120);
/// Where the cloud is paid.
const PAY_TO: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
/// Its only token: that of Base, at its address.
const USDC: &str = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
/// Where the table is.
const DOCUMENT: &str = include_str!("../../../../../docs/clouds.md");
const STORY: &str = r#"
title = "a life of the reference"
[[step]]
say = "I look at my balance."
[[step.call]]
tool = "check_credits"
arguments = { }
[[step]]
say = "I can live."
"#;
/// A stand-in for the program that the reference builds for a child.
const CHILD: &str =
    "#!/bin/sh\necho \"Wallet created: 0x6CA6d1e2D5347Bfab1d91e883F1915560e09129D\"\n";
const TOOLS: &str = r#"[{"type":"function","function":{"name":"check_credits","description":"Check the balance.","parameters":{"type":"object","properties":{}}}}]"#;

fn first_line(run: &ProcessRun) -> Value {
    serde_json::from_str(&run.line(0, LIMIT).unwrap()).unwrap()
}

#[test]
fn it_lives_from_its_provision_to_its_sleep() {
    lives(&json!({ "free_gib_min": 0, "public_url": "path" }));
}

/// Its requests are the same where machines are containers.
pub(crate) fn lives_in_containers() {
    let podman = Podman::start();
    let containers = json!({ "socket": podman.socket(), "image": IMAGE });
    lives(&json!({ "free_gib_min": 0, "public_url": "path", "podman": containers }));
}

fn lives(machines: &Value) {
    let world = world();
    let arguments = ["devnet", "--listen", "127.0.0.1:0", "--chain-id", "8453", "--json"];
    let chain = world.start(&arguments).unwrap();
    let rpc = first_line(&chain)["url"].as_str().unwrap().to_owned();
    call(&rpc, "automaton_fund", &json!([{ "address": GAS, "wei": "0xde0b6b3a7640000" }]));
    let (upstream, _model) = model(STORY);
    let offered = |id: &str| {
        json!({
            "id": id, "upstream_id": MODEL, "input_microcents_per_million": 100_000_000_u64,
            "output_microcents_per_million": 100_000_000_u64, "context_window": 400_000,
            "max_output_tokens": 32_768, "supports_tools": true,
        })
    };
    let config = json!({
        "data": world.dir().join("cloud"),
        "chain": { "id": 8453, "rpc_url": rpc, "pay_to": PAY_TO, "confirmations": 0,
            "gas_signer": gas_signer(world.dir(), 0o600) },
        "upstream": { "base_url": format!("{upstream}/v1") },
        "models": [offered("gpt-5.2"), offered("gpt-5-mini"), offered("gpt-4.1")],
        "machines": machines,
    });
    let path = world.dir().join("cloud.json");
    std::fs::write(&path, config.to_string()).unwrap();
    let cloud = world.start(&["cloud", "--config", path.to_str().unwrap(), "--json"]).unwrap();
    let origin = first_line(&cloud)["url"].as_str().unwrap().to_owned();

    let sent = RefCell::default();
    let one = Reference::provision(&origin, 1, &sent);
    begins(&one, &rpc);
    thinks(&one);
    let child = Reference::provision(&origin, 2, &sent);
    let machine = spawns(&one, &child);
    serves(&one, &machine);
    pays(&one, &child);
    beats(&one, &machine);

    let rows = sent.borrow();
    let mut table = "| request | status |\n|---|---:|\n".to_owned();
    for (at, (what, status)) in rows.iter().enumerate() {
        if !rows[..at].contains(&(what.clone(), *status)) {
            table += &format!("| {what} | {status} |\n");
        }
    }
    let marked = DOCUMENT.split_once("<!-- the reference's requests -->\n");
    let marked = marked.and_then(|(_, rest)| rest.split_once("<!-- end -->"));
    let told = marked.map(|(table, _)| table.trim_start()).unwrap_or_default();
    assert!(told == table, "docs/clouds.md should have:\n{table}");
}

/// Its first start: registration, balance, the purchase that it makes below five dollars.
fn begins(one: &Reference<'_>, rpc: &str) {
    assert_eq!(one.balance(""), 0);
    let first = one.register("7f8f5c1e-1c1d-4c0e-9b39-2d0f7a2f1b11", "n1", "");
    assert_eq!(first.status, 200, "{first:?}");
    let lost = one.register("d1f0a4c2-6f0e-4b7e-8a59-0b1c7e5c2a10", "n2", "its state was lost");
    assert_eq!((lost.status, &lost.body), (200, &first.body), "it gets its record");

    let own = json!([{ "address": one.address(), "usdc": "0x989680" }]);
    call(rpc, "automaton_fund", &own);
    // As viem reads a balance.
    let word = format!("{:0>64}", hex::encode(one.address()));
    let asked = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{{"data":"0x70a08231{word}","to":"{USDC}"}},"latest"]}}"#
    );
    let read = fetch(rpc, "POST /", &[("Content-Type", "application/json")], Some(&asked));
    assert!(read.body.contains("989680\""), "{read:?}");
    let bought = one.buy();
    assert_eq!((&bought["credits_cents"], &bought["status"]), (&json!(500), &json!("settled")));
    assert_eq!(one.balance(""), 500);
    let bare = [("Authorization", one.key.as_str())];
    let models = one.bare("GET /v1/models", "", &bare, None).json();
    let row = &models["data"][0];
    assert!(row["id"] == "gpt-5.2" && row["provider"] == "other", "{models}");
    assert_eq!(row["pricing"]["input_per_million"], 1, "{models}");
}

/// Its turns, those of its orchestrator, and one with the model of a low balance.
fn thinks(one: &Reference<'_>) {
    let path = "POST /v1/chat/completions";
    let ask = |model: &str, messages: &str| {
        let body = format!(
            r#"{{"model":"{model}","messages":{messages},"stream":false,"max_completion_tokens":8192,"tools":{TOOLS},"tool_choice":"auto"}}"#
        );
        one.ask(path, "", Some(&body)).json()
    };
    let began = r#"[{"role":"system","content":"You are Ada."},{"role":"user","content":"[2026-01-02] Wake."}"#;
    let turn = ask("gpt-5.2", &format!("{began}]"));
    let choice = &turn["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{turn}");
    let called = &choice["message"]["tool_calls"][0];
    assert_eq!(called["function"]["name"], "check_credits", "{turn}");
    let usage = |name: &str| turn["usage"][name].as_u64().unwrap();
    assert_eq!(usage("prompt_tokens") + usage("completion_tokens"), usage("total_tokens"));
    let id = called["id"].as_str().unwrap();
    let call = format!(
        r#"{{"role":"assistant","content":"I look at my balance.","tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"check_credits","arguments":"{{}}"}}}}]}}"#
    );
    let result =
        format!(r#"{{"role":"tool","content":"Credit balance: $5.00","tool_call_id":"{id}"}}"#);
    let second = ask("gpt-5-mini", &format!("{began},{call},{result}]"));
    assert_eq!(second["choices"][0]["message"]["content"], "I can live.", "{second}");
    // The other path of the reference has another client, with another form of the key.
    let bearer = format!("Bearer {}", one.key);
    let headers = [
        ("accept", "application/json"),
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let body = r#"{"model":"gpt-4.1","messages":[{"role":"user","content":"Plan."}],"max_tokens":4096,"stream":false}"#;
    let planned = one.bare(path, "`Bearer` and `max_tokens`", &headers, Some(body));
    assert!(planned.json()["choices"][0]["message"]["content"].is_string(), "{planned:?}");
    let unknown = r#"{"model":"gpt-9","messages":[{"role":"user","content":"Plan."}],"stream":false,"max_tokens":16}"#;
    assert_eq!(one.ask(path, "a model that is not offered", Some(unknown)).status, 404);
}

/// Makes a machine for a child, and does there what it does for one; its id.
fn spawns(one: &Reference<'_>, child: &Reference<'_>) -> String {
    let wanted = r#"{"name":"automaton-child-ada-2","vcpu":1,"memory_mb":1024,"disk_gb":10}"#;
    let poor = child.ask("POST /v1/sandboxes", "without credits", Some(wanted));
    let details = &poor.json()["details"];
    assert_eq!((poor.status, &poor.json()["code"]), (402, &json!("INSUFFICIENT_CREDITS")));
    assert!(details["required_cents"].as_u64() > details["current_balance_cents"].as_u64());
    let made = one.ask("POST /v1/sandboxes", "", Some(wanted)).json();
    assert_eq!((&made["status"], &made["memory_mb"]), (&json!("running"), &json!(1024)), "{made}");
    let id = made["id"].as_str().unwrap();
    let listed = one.ask("GET /v1/sandboxes", "", None).json();
    assert_eq!(listed["sandboxes"][0]["id"], id, "{listed}");
    let path = |rest: &str| format!("/v1/sandboxes/{id}{rest}");
    let exec = |name: &str, command: &str, timeout: u32| {
        let command = serde_json::to_string(&format!("cd /root && {command}")).unwrap();
        let body = format!(r#"{{"command":{command},"timeout":{timeout}}}"#);
        let ran = one.twice(&format!("POST {}", path("/exec")), "", name, &body);
        assert_eq!(ran.status, 200, "{command}: {ran:?}");
        ran.json()
    };
    // Nothing is fetched there, and the reference does not look whether it was.
    exec("01A", "apt-get update -qq && apt-get install -y -qq nodejs npm git curl", 120_000);
    exec("01B", "git clone -q https://127.0.0.1:9/automaton.git 2>&1", 180_000);
    let write = |to: &str, content: &str| {
        let content = serde_json::to_string(content).unwrap();
        let body = format!(r#"{{"path":"{to}","content":{content}}}"#);
        let wrote = one.ask(&format!("POST {}", path("/files/upload/json")), "", Some(&body));
        assert_eq!(wrote.status, 200, "{to}: {wrote:?}");
    };
    let genesis = r#"{"name":"ada-2","genesisPrompt":"Live well, too.","chainType":"evm"}"#;
    write("/root/.automaton/genesis.json", genesis);
    write("~/.automaton/constitution.md", "# Never harm\n");
    write("/tmp/automaton", CHILD);
    for (at, content) in [
        ("%2Froot%2F.automaton%2Fgenesis.json", genesis),
        ("~%2F.automaton%2Fconstitution.md", "# Never harm\n"),
        ("%2Ftmp%2Fautomaton", CHILD),
    ] {
        let line = format!("GET {}?path={at}", path("/files/read"));
        assert_eq!(one.ask(&line, "", None).body, content, "{at}");
    }
    let none = format!("GET {}?path=%2Froot%2Fnone", path("/files/read"));
    assert_eq!(one.ask(&none, "a file that is not there", None).status, 404);
    let link = "mkdir -p /usr/local/bin; mv /tmp/automaton /usr/local/bin; \
                chmod +x /usr/local/bin/automaton";
    exec("01C", link, 30_000);
    let begun = exec("01D", "echo once >> runs; automaton --init 2>&1", 60_000);
    let said = begun["stdout"].as_str().unwrap();
    assert!(said.contains("0x6CA6d1e2D5347Bfab1d91e883F1915560e09129D"), "{begun}");
    assert_eq!(exec("01E", "cat runs", 30_000)["stdout"], "once\n", "what is sent twice runs once");
    let strange = format!("POST /v1/sandboxes/{id}/exec");
    let denied = child.ask(&strange, "another's", Some(r#"{"command":"cd /root && id"}"#));
    assert_eq!(denied.status, 403, "{denied:?}");
    id.to_owned()
}

/// Publishes a port, which whoever knows no names of ours can reach, and takes it back.
fn serves(one: &Reference<'_>, id: &str) {
    let server = "mkdir -p site; echo from the machine > site/index.html; \
                  (busybox httpd -p 127.0.0.1:3000 -h site || nohup python3 -m http.server 3000 \
                  --bind 127.0.0.1 --directory site) >/dev/null 2>&1 &";
    let body = json!({ "command": format!("cd /root && {server}") }).to_string();
    one.ask(&format!("POST /v1/sandboxes/{id}/exec"), "", Some(&body));
    let expose = format!("POST /v1/sandboxes/{id}/ports/expose");
    let told = one.ask(&expose, "", Some(r#"{"port":3000}"#)).json();
    let url = told["public_url"].as_str().unwrap().strip_prefix(one.origin).unwrap().to_owned();
    let visit = || fetch(one.origin, &format!("GET {url}"), &[], None);
    let answered = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        visit().status == 200
    });
    assert!(answered && visit().body == "from the machine\n", "{told}: {:?}", visit());
    one.ask(&format!("DELETE /v1/sandboxes/{id}/ports/3000"), "", None);
    assert_eq!(visit().status, 404);
}

/// Funds its child, over both paths, and asks for what is not sold here.
fn pays(one: &Reference<'_>, child: &Reference<'_>) {
    let to = |to: &str, cents: u32| {
        format!(r#"{{"to_address":"{to}","amount_cents":{cents},"note":"fund child"}}"#)
    };
    let known = to(&child.address().to_string(), 50);
    let first = one.twice("POST /v1/credits/transfer", "", "01F", &known).json();
    let again = one.twice("POST /v1/credits/transfers", "", "01F", &known).json();
    assert_eq!(first["transfer_id"], again["transfer_id"], "one name is one transfer");
    assert_eq!(child.balance(""), 50);
    for (whom, cents, note, status) in [
        (format!("0x{}", "0".repeat(40)), 50, "to nobody", 422),
        (child.address().to_string(), 60_000, "of more than there is", 402),
    ] {
        let name = format!("01{cents}");
        let told = one.twice("POST /v1/credits/transfer", note, &name, &to(&whom, cents));
        assert_eq!(told.status, status, "{note}: {told:?}");
    }
    let records = r#"{"type":"A","host":"@","value":"127.0.0.1","ttl":3600}"#;
    for (line, body) in [
        ("GET /v1/domains/search?query=ada&tlds=com%2Cai", None),
        ("POST /v1/domains/register", Some(r#"{"domain":"ada.example","years":1}"#)),
        ("GET /v1/domains/ada.example/dns", None),
        ("POST /v1/domains/ada.example/dns", Some(records)),
        ("DELETE /v1/domains/ada.example/dns/1", None),
    ] {
        let told = one.ask(line, "", body);
        assert_eq!((told.status, &told.json()["code"]), (422, &json!("NOT_OFFERED")), "{line}");
    }
}

/// What its heartbeat asks until it sleeps. Its distress signal stays in its own database.
fn beats(one: &Reference<'_>, id: &str) {
    assert!((300..500).contains(&one.balance("")));
    let alive = r#"{"command":"cd /root && echo alive","timeout":5000}"#;
    let ran = one.ask(&format!("POST /v1/sandboxes/{id}/exec"), "", Some(alive)).json();
    assert_eq!((&ran["stdout"], &ran["exit_code"]), (&json!("alive\n"), &json!(0)), "{ran}");
    let bare = [("Authorization", one.key.as_str())];
    assert_eq!(one.bare("GET /v1/models", "", &bare, None).status, 200);
}
