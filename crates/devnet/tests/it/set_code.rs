//! Tests of accounts with the code of a contract, by EIP-7702.

use alloy_consensus::TxEip7702;
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, Bytes, TxKind, U64, U256};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use automaton_devnet::CHAIN_ID;
use serde_json::json;

use crate::support::{World, account, sign, succeeded};

/// Authorizes the code of a contract for the account, at this nonce.
fn authorize(signer: &PrivateKeySigner, code: Address, nonce: u64) -> SignedAuthorization {
    let authorization = Authorization { chain_id: U256::from(CHAIN_ID), address: code, nonce };
    let signature = signer.sign_hash_sync(&authorization.signature_hash()).unwrap();
    authorization.into_signed(signature)
}

fn transaction(nonce: u64, to: Address, authorization: SignedAuthorization) -> TxEip7702 {
    TxEip7702 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit: 200_000,
        max_fee_per_gas: 3_000_000_000,
        max_priority_fee_per_gas: 1,
        to,
        authorization_list: vec![authorization],
        ..TxEip7702::default()
    }
}

#[tokio::test]
async fn an_account_takes_the_code_of_a_contract_and_gives_it_up() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    let bob = world.funded(2).await;
    // A contract that returns its own balance: ADDRESS BALANCE PUSH0 MSTORE PUSH1 32 PUSH0 RETURN,
    // deployed by code that copies it.
    let creation = "0x6008600a5f3960085ff330315f5260205ff3".parse::<Bytes>().unwrap();
    let hash = world.send(&bob, TxKind::Create, creation.to_vec()).await.unwrap();
    let receipt = world.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    assert!(succeeded(&receipt));
    let code: Address = serde_json::from_value(receipt["contractAddress"].clone()).unwrap();

    // Bob pays for it, and Ada has signed.
    let authorization = authorize(&ada, code, 0);
    let asked =
        json!({ "from": bob.address(), "to": ada.address(), "authorizationList": [authorization] });
    let gas = world.ask("eth_estimateGas", json!([asked])).await.unwrap();
    let gas: U64 = serde_json::from_value(gas).unwrap();
    assert!((46_000..60_000).contains(&gas.to::<u64>()), "{gas}");
    let raw = sign(&bob, transaction(1, ada.address(), authorization.clone()));
    let hash = world.ask("eth_sendRawTransaction", json!([raw])).await.unwrap();
    let receipt = world.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    assert_eq!((&receipt["status"], &receipt["type"]), (&json!("0x1"), &json!("0x4")));
    let shown = world.ask("eth_getTransactionByHash", json!([hash])).await.unwrap();
    assert_eq!(shown["authorizationList"], json!([authorization]));
    let delegation = format!("0xef0100{}", &code.to_string().to_lowercase()[2..]);
    let code_of = async || world.ask("eth_getCode", json!([ada.address(), "latest"])).await;
    assert_eq!(code_of().await, Ok(json!(delegation)));
    let balance = world.ask("eth_getBalance", json!([ada.address()])).await.unwrap();
    let balance: U256 = serde_json::from_value(balance).unwrap();
    let told = world.ask("eth_call", json!([{ "to": ada.address() }])).await.unwrap();
    assert_eq!(told, json!(alloy_primitives::B256::from(balance)));
    // The account still signs for itself, and its nonce has advanced.
    let raw = sign(&ada, transaction(1, ada.address(), authorize(&ada, Address::ZERO, 2)));
    world.ask("eth_sendRawTransaction", json!([raw])).await.unwrap();
    assert_eq!(code_of().await, Ok(json!("0x")));
}

#[tokio::test]
async fn a_list_that_is_of_no_use_changes_nothing_and_blobs_are_refused() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    let contract = Address::repeat_byte(0xc0);
    // With a nonce that is not the account's next one.
    let raw = sign(&ada, transaction(0, ada.address(), authorize(&ada, contract, 7)));
    let hash = world.ask("eth_sendRawTransaction", json!([raw])).await.unwrap();
    let receipt = world.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    assert!(succeeded(&receipt));
    assert_eq!(world.ask("eth_getCode", json!([ada.address()])).await, Ok(json!("0x")));

    let blob = json!({
        "from": ada.address(), "to": contract, "maxFeePerBlobGas": "0x1",
        "blobVersionedHashes": [alloy_primitives::B256::repeat_byte(1)],
    });
    for method in ["eth_estimateGas", "eth_call", "eth_createAccessList"] {
        let told = world.ask(method, json!([blob])).await.unwrap_err();
        let words = "transactions of type 3 are not supported; send type 0, 1, 2 or 4";
        assert_eq!((told.code, told.message.as_str()), (-32602, words), "{method}");
    }
    let account = account(9).address();
    let empty = json!({ "from": account, "to": account, "authorizationList": [] });
    let told = world.ask("eth_estimateGas", json!([empty])).await.unwrap_err();
    assert!(told.message.contains("empty authorization list"), "{told:?}");
}
