//! Tests of the contracts at addresses that are the same on every chain.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use alloy_consensus::TxEip1559;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address, aliases::U48, keccak256};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::{Eip712Domain, SolCall, SolError, SolStruct, SolValue, sol};
use automaton_core::faults::NoFaults;
use automaton_core::money::MicroUsdc;
use automaton_core::time::Timestamp;
use automaton_devnet::{CHAIN_ID, Devnet, DevnetConfig};
use automaton_testkit::clock::FakeClock;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{NOW, Token, World, account, sign, succeeded};

const CREATE2: Address = address!("0x4e59b44847b379578588920cA78FbF26c0B4956C");
const MULTICALL: Address = address!("0xcA11bde05977b3631167028862bE2a173976CA11");
const PERMIT2: Address = address!("0x000000000022D473030F116dDEE9F6B43aC78BA3");
const X402_EXACT: Address = address!("0x402085c248EeA27D92E8b30b2C58ed07f9E20001");

sol! {
    struct Call3 { address target; bool allowFailure; bytes callData; }
    struct Call3Value { address target; bool allowFailure; uint256 value; bytes callData; }
    struct CallResult { bool success; bytes returnData; }

    interface Multicall3 {
        function aggregate3(Call3[] calls) external payable returns (CallResult[] results);
        function aggregate3Value(Call3Value[] calls) external payable returns (CallResult[] results);
        function getEthBalance(address addr) external view returns (uint256 balance);
        function getBlockNumber() external view returns (uint256 number);
        function getChainId() external view returns (uint256 id);
    }

    struct TokenPermissions { address token; uint256 amount; }
    struct PermitTransferFromRequest { TokenPermissions permitted; uint256 nonce; uint256 deadline; }
    struct SignatureTransferDetails { address to; uint256 requestedAmount; }
    struct PermitDetails { address token; uint160 amount; uint48 expiration; uint48 nonce; }
    struct PermitSingle { PermitDetails details; address spender; uint256 sigDeadline; }
    struct Witness { address to; uint256 validAfter; }

    interface Permit2 {
        error InvalidNonce();
        error InvalidSigner();
        error InvalidAmount(uint256 maxAmount);
        error SignatureExpired(uint256 signatureDeadline);
        error AllowanceExpired(uint256 deadline);
        error InsufficientAllowance(uint256 amount);

        function DOMAIN_SEPARATOR() external view returns (bytes32);
        function permitTransferFrom(PermitTransferFromRequest permit, SignatureTransferDetails details, address owner, bytes signature) external;
        function permit(address owner, PermitSingle permitSingle, bytes signature) external;
        function transferFrom(address from, address to, uint160 amount, address token) external;
        function approve(address token, address spender, uint160 amount, uint48 expiration) external;
        function invalidateUnorderedNonces(uint256 wordPos, uint256 mask) external;
    }

    interface X402Exact {
        function settle(PermitTransferFromRequest permit, address owner, Witness witness, bytes signature) external;
    }
}

/// The signed messages, by EIP-712.
mod typed {
    alloy_sol_types::sol! {
        struct TokenPermissions { address token; uint256 amount; }
        struct PermitTransferFrom { TokenPermissions permitted; address spender; uint256 nonce; uint256 deadline; }
        struct Witness { address to; uint256 validAfter; }
        struct PermitWitnessTransferFrom { TokenPermissions permitted; address spender; uint256 nonce; uint256 deadline; Witness witness; }
        struct PermitDetails { address token; uint160 amount; uint48 expiration; uint48 nonce; }
        struct PermitSingle { PermitDetails details; address spender; uint256 sigDeadline; }
    }
}

/// Returns Permit2's domain: a name, and no version.
fn domain() -> Eip712Domain {
    alloy_sol_types::eip712_domain! {
        name: "Permit2",
        chain_id: CHAIN_ID,
        verifying_contract: PERMIT2,
    }
}

fn signature(of: &PrivateKeySigner, message: &impl SolStruct) -> Bytes {
    of.sign_hash_sync(&message.eip712_signing_hash(&domain())).unwrap().as_bytes().into()
}

async fn call<C: SolCall>(world: &World, to: Address, from: Address, call: C) -> C::Return {
    let request = json!({ "from": from, "to": to, "data": Bytes::from(call.abi_encode()) });
    let output = world.ask("eth_call", json!([request, "latest"])).await.unwrap();
    let output: Bytes = serde_json::from_value(output).unwrap();
    C::abi_decode_returns(&output).unwrap()
}

/// Returns the data of a call's revert.
async fn revert<C: SolCall>(world: &World, to: Address, from: Address, call: C) -> Bytes {
    let request = json!({ "from": from, "to": to, "data": Bytes::from(call.abi_encode()) });
    let told = world.ask("eth_call", json!([request, "latest"])).await.unwrap_err();
    told.data.unwrap().parse().unwrap()
}

async fn send<C: SolCall>(world: &World, from: &PrivateKeySigner, to: Address, call: C) -> Value {
    let hash = world.send(from, TxKind::Call(to), call.abi_encode()).await.unwrap();
    let receipt = world.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    assert!(succeeded(&receipt), "{receipt}");
    receipt
}

#[tokio::test]
async fn the_code_is_there_from_the_first_block() {
    let world = World::new().await;
    for (at, code, sum) in [
        (
            CREATE2,
            include_str!("../../contracts/Create2Deployer.hex"),
            include_str!("../../contracts/Create2Deployer.sha256"),
        ),
        (
            MULTICALL,
            include_str!("../../contracts/Multicall3.hex"),
            include_str!("../../contracts/Multicall3.sha256"),
        ),
        (
            PERMIT2,
            include_str!("../../contracts/Permit2.hex"),
            include_str!("../../contracts/Permit2.sha256"),
        ),
        (
            X402_EXACT,
            include_str!("../../contracts/ExactPermit2Proxy.hex"),
            include_str!("../../contracts/ExactPermit2Proxy.sha256"),
        ),
    ] {
        let there = world.ask("eth_getCode", json!([at, "latest"])).await.unwrap();
        assert_eq!(there, json!(format!("0x{}", code.trim_end())), "{at}");
        let code = alloy_primitives::hex::decode(code.trim_end()).unwrap();
        assert_eq!(alloy_primitives::hex::encode(Sha256::digest(code)), sum.trim_end(), "{at}");
        assert_eq!(world.ask("eth_getTransactionCount", json!([at])).await, Ok(json!("0x1")));
    }
    // Tools check the hash of this code before they use it.
    let code = include_str!("../../contracts/Create2Deployer.hex").trim_end();
    assert_eq!(
        keccak256(alloy_primitives::hex::decode(code).unwrap()).to_string(),
        "0x2fa86add0aed31f33a762c9d88e807c475bd51d0f52bd0955754b2608f7e4989"
    );
}

#[tokio::test]
async fn a_contract_is_made_at_an_address_that_its_code_and_salt_say() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    // Copies and returns eight bytes: a contract that returns its caller's balance.
    let creation = alloy_primitives::hex!("6008600a5f3960085ff333315f5260205ff3");
    let salt = B256::repeat_byte(7);
    let input = [salt.as_slice(), &creation].concat();
    let hash = world.send(&ada, TxKind::Call(CREATE2), input.clone()).await.unwrap();
    let receipt = world.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    assert!(succeeded(&receipt));
    let made = CREATE2.create2_from_code(salt, creation);
    let code = world.ask("eth_getCode", json!([made, "latest"])).await.unwrap();
    assert_eq!(code, json!("0x33315f5260205ff3"));
    // A second deployment fails, and another salt would give its address.
    let request = |input: Vec<u8>| json!([{ "to": CREATE2, "data": Bytes::from(input) }]);
    let told = world.ask("eth_call", request(input)).await.unwrap_err();
    assert_eq!((told.code, told.data.as_deref()), (3, Some("0x")));
    let other = [B256::ZERO.as_slice(), &creation].concat();
    let told = world.ask("eth_call", request(other)).await.unwrap();
    assert_eq!(told, json!(CREATE2.create2_from_code(B256::ZERO, creation)));
}

#[tokio::test]
async fn many_calls_are_made_in_one() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    let balance = Token::balanceOfCall { account: ada.address() }.abi_encode();
    let one =
        |target, allow, data: Vec<u8>| Call3 { target, allowFailure: allow, callData: data.into() };
    let ether = Multicall3::getEthBalanceCall { addr: ada.address() }.abi_encode();
    let calls = vec![
        one(Devnet::usdc(), false, balance),
        one(MULTICALL, false, ether),
        one(Devnet::usdc(), true, vec![0; 4]),
    ];
    let told = call(&world, MULTICALL, ada.address(), Multicall3::aggregate3Call { calls }).await;
    let good: Vec<bool> = told.iter().map(|one| one.success).collect();
    assert_eq!(good, [true, true, false]);
    let word = |at: usize| U256::abi_decode(&told[at].returnData).unwrap();
    assert_eq!(word(0), U256::from(20_000_000));
    let wei = world.ask("eth_getBalance", json!([ada.address()])).await.unwrap();
    assert_eq!(json!(word(1)), wei);
    let failing =
        Multicall3::aggregate3Call { calls: vec![one(Devnet::usdc(), false, vec![0; 4])] };
    let told = revert(&world, MULTICALL, ada.address(), failing).await;
    let reason = alloy_sol_types::Revert::abi_decode(&told).unwrap().reason;
    assert_eq!(reason, "Multicall3: call failed");
    let value = Call3Value {
        target: ada.address(),
        allowFailure: true,
        value: U256::from(5),
        callData: Bytes::new(),
    };
    let told = revert(
        &world,
        MULTICALL,
        ada.address(),
        Multicall3::aggregate3ValueCall { calls: vec![value] },
    );
    let reason = alloy_sol_types::Revert::abi_decode(&told.await).unwrap().reason;
    assert_eq!(reason, "Multicall3: value mismatch");
    assert_eq!(
        call(&world, MULTICALL, ada.address(), Multicall3::getBlockNumberCall {}).await,
        U256::from(2)
    );
    assert_eq!(
        call(&world, MULTICALL, ada.address(), Multicall3::getChainIdCall {}).await,
        U256::from(CHAIN_ID)
    );
}

/// Ada, who has approved Permit2 for all of her tokens, and Bob, who spends.
async fn approved(world: &World) -> (PrivateKeySigner, PrivateKeySigner) {
    let ada = world.funded(1).await;
    let bob = world.funded(2).await;
    let approve = Token::approveCall { spender: PERMIT2, value: U256::MAX };
    assert!(succeeded(&world.token(&ada, approve).await));
    (ada, bob)
}

#[tokio::test]
async fn a_signed_transfer_is_made_once_by_whom_it_names() {
    let world = World::new().await;
    let (ada, bob) = approved(&world).await;
    let to = account(7).address();
    assert_eq!(
        call(&world, PERMIT2, to, Permit2::DOMAIN_SEPARATORCall {}).await,
        domain().separator()
    );
    let token = Devnet::usdc();
    let amount = U256::from(500);
    let nonce = U256::from(300);
    let deadline = U256::from(NOW + 60);
    let message = typed::PermitTransferFrom {
        permitted: typed::TokenPermissions { token, amount },
        spender: bob.address(),
        nonce,
        deadline,
    };
    let asked = |requested: u64| Permit2::permitTransferFromCall {
        permit: PermitTransferFromRequest {
            permitted: TokenPermissions { token, amount },
            nonce,
            deadline,
        },
        details: SignatureTransferDetails { to, requestedAmount: U256::from(requested) },
        owner: ada.address(),
        signature: signature(&ada, &message),
    };
    let refused = async |from: Address, call| revert(&world, PERMIT2, from, call).await;
    let wrong = refused(ada.address(), asked(400)).await;
    assert_eq!(wrong, Permit2::InvalidSigner {}.abi_encode(), "another spender");
    let wrong = refused(bob.address(), asked(501)).await;
    assert_eq!(wrong, Permit2::InvalidAmount { maxAmount: amount }.abi_encode());
    send(&world, &bob, PERMIT2, asked(400)).await;
    assert_eq!(world.balance(to).await, 400);
    let wrong = refused(bob.address(), asked(1)).await;
    assert_eq!(wrong, Permit2::InvalidNonce {}.abi_encode(), "a second time");
    world.set_time(NOW + 61);
    let wrong = refused(bob.address(), asked(1)).await;
    assert_eq!(wrong, Permit2::SignatureExpired { signatureDeadline: deadline }.abi_encode());
}

#[tokio::test]
async fn a_signed_allowance_is_spent_and_ends() {
    let world = World::new().await;
    let (ada, bob) = approved(&world).await;
    let to = account(7).address();
    let token = Devnet::usdc();
    let amount = alloy_primitives::aliases::U160::from(500);
    let expiration = U48::from(NOW + 60);
    let nonce = U48::ZERO;
    let sig_deadline = U256::from(NOW + 30);
    let message = typed::PermitSingle {
        details: typed::PermitDetails { token, amount, expiration, nonce },
        spender: bob.address(),
        sigDeadline: sig_deadline,
    };
    let permit = Permit2::permitCall {
        owner: ada.address(),
        permitSingle: PermitSingle {
            details: PermitDetails { token, amount, expiration, nonce },
            spender: bob.address(),
            sigDeadline: sig_deadline,
        },
        signature: signature(&ada, &message),
    };
    send(&world, &bob, PERMIT2, permit.clone()).await;
    let wrong = revert(&world, PERMIT2, bob.address(), permit).await;
    assert_eq!(wrong, Permit2::InvalidNonce {}.abi_encode());
    let spend = |amount: u64| Permit2::transferFromCall {
        from: ada.address(),
        to,
        amount: alloy_primitives::aliases::U160::from(amount),
        token,
    };
    send(&world, &bob, PERMIT2, spend(400)).await;
    assert_eq!(world.balance(to).await, 400);
    let wrong = revert(&world, PERMIT2, bob.address(), spend(101)).await;
    assert_eq!(wrong, Permit2::InsufficientAllowance { amount: U256::from(100) }.abi_encode());
    world.set_time(NOW + 61);
    let wrong = revert(&world, PERMIT2, bob.address(), spend(1)).await;
    assert_eq!(wrong, Permit2::AllowanceExpired { deadline: U256::from(NOW + 60) }.abi_encode());
}

#[tokio::test]
async fn a_payment_by_permit2_reaches_whom_the_payer_signed() {
    let world = World::new().await;
    let (ada, bob) = approved(&world).await;
    let shop = account(7).address();
    let token = Devnet::usdc();
    let amount = U256::from(10_000);
    let nonce = U256::from(1);
    let deadline = U256::from(NOW + 60);
    let message = typed::PermitWitnessTransferFrom {
        permitted: typed::TokenPermissions { token, amount },
        spender: X402_EXACT,
        nonce,
        deadline,
        witness: typed::Witness { to: shop, validAfter: U256::from(NOW - 5) },
    };
    let settle = |to: Address| X402Exact::settleCall {
        permit: PermitTransferFromRequest {
            permitted: TokenPermissions { token, amount },
            nonce,
            deadline,
        },
        owner: ada.address(),
        witness: Witness { to, validAfter: U256::from(NOW - 5) },
        signature: signature(&ada, &message),
    };
    let wrong = revert(&world, X402_EXACT, bob.address(), settle(bob.address())).await;
    assert_eq!(wrong, Permit2::InvalidSigner {}.abi_encode(), "another payee");
    send(&world, &bob, X402_EXACT, settle(shop)).await;
    assert_eq!(
        (world.balance(shop).await, world.balance(ada.address()).await),
        (10_000, 19_990_000)
    );
}

#[tokio::test]
async fn a_registry_that_is_not_here_is_not_registered_with() {
    let clock = Arc::new(FakeClock::at(Timestamp::from_millis(NOW as i64 * 1000)));
    let identity = "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432";
    let of_test_network = "0x8004A818BFB912233c491871b3d84c89A494BD9e";
    for (chain_id, missing, free) in
        [(8453, identity, of_test_network), (84532, of_test_network, identity)]
    {
        let devnet = Devnet::start(DevnetConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            data: None,
            chain_id,
            clock: clock.clone(),
            faults: Arc::new(NoFaults),
        })
        .await
        .unwrap();
        let world = World { devnet, clock: (*clock).clone() };
        let ada = account(1);
        let ether = U256::from(10_u64.pow(18));
        world.devnet.fund(ada.address(), MicroUsdc::ZERO, ether).await.unwrap();
        let register = |to: &str| TxEip1559 {
            chain_id,
            gas_limit: 100_000,
            max_fee_per_gas: 3_000_000_000,
            to: TxKind::Call(to.parse().unwrap()),
            input: vec![0x1a, 0xa3, 0xa0, 0x08].into(),
            ..TxEip1559::default()
        };
        let raw = sign(&ada, register(missing));
        let call = json!({ "to": missing, "data": "0x0d8e6e2c" });
        for (method, params) in [
            ("eth_sendRawTransaction", json!([raw])),
            ("eth_call", json!([call, "latest"])),
            ("eth_estimateGas", json!([call])),
            ("eth_createAccessList", json!([call])),
            ("eth_simulateV1", json!([{ "blockStateCalls": [{ "calls": [call] }] }])),
        ] {
            let told = world.ask(method, params).await.unwrap_err();
            assert_eq!(told.code, -32000, "{method}: {told:?}");
            let named = format!("no code at {missing}, where the identity registry of ERC-8004");
            assert!(told.message.contains(&named), "{method}: {told:?}");
        }
        assert_eq!(world.ask("eth_blockNumber", json!([])).await, Ok(json!("0x1")));
        world.ask("eth_sendRawTransaction", json!([sign(&ada, register(free))])).await.unwrap();
        let code = json!({ missing: { "code": "0x5f5ff3" } });
        assert_eq!(world.ask("eth_call", json!([call, "latest", code])).await, Ok(json!("0x")));
    }
}
