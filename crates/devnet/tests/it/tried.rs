//! Tests of tentative calls: with overrides, in blocks, and access lists.

use alloy_primitives::{Address, B256, U64, U256, hex};
use automaton_devnet::Devnet;
use serde_json::{Value, json};

use crate::support::{NOW, World, account};

/// Code that returns the balance of its caller.
const BALANCE: &str = "0x33315f5260205ff3";
/// Code that returns its first slot.
const SLOT: &str = "0x5f545f5260205ff3";
/// Code that returns TIMESTAMP, NUMBER and COINBASE.
const BLOCK: &str = "0x425f52436020524160405260605ff3";
/// Code that adds one to its first slot and returns it.
const COUNT: &str = "0x5f546001015f555f545f5260205ff3";

fn word(number: u64) -> Value {
    json!(B256::from(U256::from(number)))
}

fn number(value: &Value) -> u64 {
    let value: U64 = serde_json::from_value(value.clone()).unwrap();
    value.to()
}

#[tokio::test]
async fn a_call_is_tried_under_other_accounts_and_none_of_it_stays() {
    let world = World::new().await;
    let ada = world.funded(1).await.address();
    let other = Address::repeat_byte(0xcd);
    let call = json!({ "from": ada, "to": other, "data": "0x" });
    let tried =
        async |overrides: Value| world.ask("eth_call", json!([call, "latest", overrides])).await;
    let ether = 10_u64.pow(18);
    assert_eq!(tried(json!({ other.to_string(): { "code": BALANCE } })).await, Ok(word(ether)));
    let changed =
        json!({ other.to_string(): { "code": BALANCE }, ada.to_string(): { "balance": "0x5" } });
    assert_eq!(tried(changed).await, Ok(word(5)));
    let slot = |key: &str| {
        let slots = json!({ B256::ZERO.to_string(): word(7) });
        json!({ other.to_string(): { "code": SLOT, key: slots } })
    };
    assert_eq!(tried(slot("state")).await, Ok(word(7)));
    assert_eq!(tried(slot("stateDiff")).await, Ok(word(7)));
    assert_eq!(tried(json!({})).await, Ok(json!("0x")));
    assert_eq!(world.ask("eth_getCode", json!([other])).await, Ok(json!("0x")));

    // The token's first slot is its supply: a list replaces all slots, a difference some.
    let usdc = Devnet::usdc();
    let supply = async |overrides: Value| {
        let read = json!({ "to": usdc, "data": "0x18160ddd" });
        world.ask("eth_call", json!([read, "latest", overrides])).await
    };
    assert_eq!(supply(Value::Null).await, Ok(word(20_000_000)));
    let elsewhere = json!({ B256::repeat_byte(9).to_string(): word(1) });
    let usdc = usdc.to_string();
    let kept = json!({ usdc.clone(): { "stateDiff": elsewhere } });
    assert_eq!(supply(kept).await, Ok(word(20_000_000)));
    assert_eq!(supply(json!({ usdc.clone(): { "state": elsewhere } })).await, Ok(word(0)));
    // A changed balance leaves code and storage as they are.
    assert_eq!(supply(json!({ usdc: { "balance": "0x1" } })).await, Ok(word(20_000_000)));

    let refused = async |overrides: Value, words: &str| {
        let told = tried(overrides).await.unwrap_err();
        assert_eq!(told.code, -32602, "{told:?}");
        assert!(told.message.contains(words), "{told:?}");
    };
    refused(json!({ other.to_string(): { "state": {}, "stateDiff": {} } }), "both").await;
    refused(json!({ other.to_string(): { "storage": {} } }), "unknown field").await;
    refused(json!({ other.to_string(): { "movePrecompileToAddress": ada } }), "movePrecompile")
        .await;
    refused(json!({ other.to_string(): { "code": "0xef0100" } }), "its code cannot be used").await;
}

#[tokio::test]
async fn a_call_and_its_gas_are_tried_under_another_block() {
    let world = World::new().await;
    let ada = world.funded(1).await.address();
    let to = Address::repeat_byte(0xcd);
    let code = json!({ to.to_string(): { "code": BLOCK } });
    let block = json!({ "time": "0x5", "number": "0x6", "feeRecipient": Address::repeat_byte(7) });
    let told = world.ask("eth_call", json!([{ "to": to }, "latest", code, block])).await.unwrap();
    let told = hex::decode(told.as_str().unwrap()).unwrap();
    let words: Vec<U256> = told.chunks(32).map(U256::from_be_slice).collect();
    assert_eq!(words[..2], [U256::from(5), U256::from(6)]);
    assert_eq!(words[2], U256::from_be_slice(Address::repeat_byte(7).as_slice()));

    let poor = account(9).address();
    let request = json!({ "from": poor, "to": ada, "value": "0x1" });
    let told = world.ask("eth_estimateGas", json!([request, "latest"])).await.unwrap_err();
    assert!(told.message.contains("insufficient funds"), "{told:?}");
    let rich = json!({ poor.to_string(): { "balance": "0x1" } });
    let gas = world.ask("eth_estimateGas", json!([request, "latest", rich])).await;
    assert_eq!(gas, Ok(json!("0x5208")));
}

#[tokio::test]
async fn a_list_names_what_a_call_touches() {
    let world = World::new().await;
    let ada = world.funded(1).await.address();
    let usdc = Devnet::usdc();
    let list = async |request: Value| {
        world.ask("eth_createAccessList", json!([request, "latest"])).await.unwrap()
    };
    // The supply is the token's first slot.
    let read = list(json!({ "from": ada, "to": usdc, "data": "0x18160ddd" })).await;
    assert_eq!(read["accessList"], json!([{ "address": usdc, "storageKeys": [B256::ZERO] }]));
    assert!(number(&read["gasUsed"]) > 21_000, "{read}");
    assert!(read.get("error").is_none());
    // A transfer of ether touches only warm accounts.
    let plain = list(json!({ "from": ada, "to": account(2).address(), "value": "0x1" })).await;
    assert_eq!(plain, json!({ "accessList": [], "gasUsed": "0x5208" }));
    // With the list a call costs the reported gas, and a failing call has a list too.
    let data = "0xa9059cbb000000000000000000000000000000000000000000000000000000000000000700000000000000000000000000000000000000000000000000000000ffffffff";
    let failing = list(json!({ "from": ada, "to": usdc, "data": data })).await;
    let error = failing["error"].as_str().unwrap();
    assert_eq!(error, "execution reverted: transfer amount exceeds balance");
    assert_eq!(failing["accessList"][0]["storageKeys"].as_array().unwrap().len(), 1);
    let told = world.ask("eth_createAccessList", json!([{ "from": ada, "to": usdc, "nonce": [] }]));
    assert_eq!(told.await.unwrap_err().code, -32602);
}

#[tokio::test]
async fn blocks_of_calls_are_tried_one_after_the_other() {
    let world = World::new().await;
    let ada = world.funded(1).await.address();
    let counter = Address::repeat_byte(0xcd);
    let count = json!({ "from": ada, "to": counter });
    let blocks = json!([
        {
            "stateOverrides": { counter.to_string(): { "code": COUNT } },
            "calls": [count, count],
        },
        { "blockOverrides": { "time": NOW + 60, "number": "0x5" }, "calls": [count] },
        { "calls": [{ "from": ada, "to": Devnet::usdc(), "data": "0x00000000" }] },
    ]);
    let told = world.ask("eth_simulateV1", json!([{ "blockStateCalls": blocks }, "latest"])).await;
    let told = told.unwrap();
    let told = told.as_array().unwrap();
    // The faucet made two blocks; the gap up to the fifth is filled with an empty one.
    let numbers: Vec<u64> = told.iter().map(|block| number(&block["number"])).collect();
    assert_eq!(numbers, [3, 4, 5, 6]);
    let times: Vec<u64> = told.iter().map(|block| number(&block["timestamp"])).collect();
    assert_eq!(times, [NOW, NOW + 1, NOW + 60, NOW + 61]);
    for pair in told.windows(2) {
        assert_eq!(pair[1]["parentHash"], pair[0]["hash"]);
    }
    let returned = |block: usize, call: usize| told[block]["calls"][call]["returnData"].clone();
    assert_eq!([returned(0, 0), returned(0, 1), returned(2, 0)], [word(1), word(2), word(3)]);
    assert_eq!(told[1]["calls"], json!([]));
    assert_eq!(told[0]["transactions"].as_array().unwrap().len(), 2);
    let failed = &told[3]["calls"][0];
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("0x0"), &json!(3)));
    let code = world.ask("eth_getCode", json!([counter])).await;
    assert_eq!(
        (code, world.ask("eth_blockNumber", json!([])).await),
        (Ok(json!("0x")), Ok(json!("0x2")))
    );
}

#[tokio::test]
async fn transfers_are_shown_as_logs_where_that_is_wanted() {
    let world = World::new().await;
    let ada = world.funded(1).await.address();
    let to = account(2).address();
    let failing = Address::repeat_byte(0xcd);
    let asked = |trace: bool| {
        json!([{
            "traceTransfers": trace,
            "blockStateCalls": [{
                "stateOverrides": { failing.to_string(): { "code": "0x5f5ffd" } },
                "calls": [
                    { "from": ada, "to": to, "value": "0x7" },
                    { "from": ada, "to": failing, "value": "0x7" },
                ],
            }],
        }])
    };
    let told = world.ask("eth_simulateV1", asked(true)).await.unwrap();
    let logs = told[0]["calls"][0]["logs"].as_array().unwrap();
    assert_eq!(logs.len(), 1);
    assert_eq!(logs[0]["address"], "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");
    assert_eq!(logs[0]["topics"][2], json!(to.into_word()));
    assert_eq!((&logs[0]["data"], &logs[0]["blockNumber"]), (&word(7), &json!("0x3")));
    assert_eq!(told[0]["calls"][1]["logs"], json!([]), "a transfer that failed");
    let plain = world.ask("eth_simulateV1", asked(false)).await.unwrap();
    assert_eq!(plain[0]["calls"][0]["logs"], json!([]));
}

#[tokio::test]
async fn a_simulation_that_cannot_be_is_refused_by_its_number() {
    let world = World::new().await;
    let ada = world.funded(1).await.address();
    let refused = async |payload: Value, code: i64| {
        let told = world.ask("eth_simulateV1", json!([payload, "latest"])).await.unwrap_err();
        assert_eq!(told.code, code, "{payload}: {told:?}");
    };
    let call =
        |more: Value| json!({ "validation": true, "blockStateCalls": [{ "calls": [more] }] });
    let block = |overrides: Value| json!({ "blockStateCalls": [{ "blockOverrides": overrides }] });
    refused(json!({ "blockStateCalls": [] }), -32602).await;
    refused(block(json!({ "number": "0x2" })), -38020).await;
    refused(block(json!({ "time": "0x1" })), -38021).await;
    refused(block(json!({ "number": "0x200" })), -38026).await;
    let fee = "0x77359400";
    let tip = "0x0";
    let paid = json!({ "from": ada, "to": ada, "maxFeePerGas": fee, "maxPriorityFeePerGas": tip });
    let with = |key: &str, value: Value| {
        let mut paid = paid.clone();
        paid[key] = value;
        call(paid)
    };
    refused(with("nonce", json!("0x9")), -38011).await;
    refused(with("maxFeePerGas", json!("0x1")), -38012).await;
    refused(with("gas", json!("0x5000")), -38013).await;
    refused(with("value", json!(U256::MAX >> 1)), -38014).await;
    refused(with("gas", json!("0x1c9c381")), -38015).await;
    let good = with("gas", json!("0x5208"));
    let told = world.ask("eth_simulateV1", json!([good])).await.unwrap();
    assert_eq!(told[0]["calls"][0]["status"], "0x1");
    assert_eq!(world.ask("eth_blobBaseFee", json!([])).await, Ok(json!("0x1")));
}
