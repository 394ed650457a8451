//! Tests of the token: the promises of EIP-20, EIP-2612 and EIP-3009, and its refusals.

use alloy_primitives::{Address, B256, Bytes, Signature, U256, b256, keccak256};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::{SolCall, SolEvent, SolStruct};
use automaton_devnet::Devnet;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{NOW, Token, World, account, domain, succeeded, typed};

/// The order of secp256k1.
const ORDER: U256 = U256::from_be_bytes(
    b256!("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141").0,
);

fn transfer(from: Address, to: Address, value: u64) -> typed::TransferWithAuthorization {
    typed::TransferWithAuthorization {
        from,
        to,
        value: U256::from(value),
        validAfter: U256::from(NOW - 600),
        validBefore: U256::from(NOW + 600),
        nonce: keccak256("the first payment"),
    }
}

fn signature(signer: &PrivateKeySigner, message: &impl SolStruct) -> Signature {
    signer.sign_hash_sync(&message.eip712_signing_hash(&domain())).unwrap()
}

fn v(signature: &Signature) -> u8 {
    27 + u8::from(signature.v())
}

fn r(signature: &Signature) -> B256 {
    signature.r().into()
}

fn s(signature: &Signature) -> B256 {
    signature.s().into()
}

/// Returns the call with the three parts of a signature.
fn in_parts(
    m: &typed::TransferWithAuthorization,
    by: &Signature,
) -> Token::transferWithAuthorization_0Call {
    Token::transferWithAuthorization_0Call {
        from: m.from,
        to: m.to,
        value: m.value,
        validAfter: m.validAfter,
        validBefore: m.validBefore,
        nonce: m.nonce,
        v: v(by),
        r: r(by),
        s: s(by),
    }
}

/// Returns the call with the signature in one piece.
fn in_one(
    m: &typed::TransferWithAuthorization,
    signature: Bytes,
) -> Token::transferWithAuthorization_1Call {
    Token::transferWithAuthorization_1Call {
        from: m.from,
        to: m.to,
        value: m.value,
        validAfter: m.validAfter,
        validBefore: m.validBefore,
        nonce: m.nonce,
        signature,
    }
}

fn topics(receipt: &Value) -> Vec<B256> {
    let logs = receipt["logs"].as_array().unwrap();
    logs.iter().map(|log| serde_json::from_value(log["topics"][0].clone()).unwrap()).collect()
}

#[test]
fn the_committed_bytecode_has_the_committed_checksum() {
    let code = include_str!("../../contracts/UsdCoin.hex").trim_end();
    let code = alloy_primitives::hex::decode(code).unwrap();
    let sum = alloy_primitives::hex::encode(Sha256::digest(&code));
    assert_eq!(sum, include_str!("../../contracts/UsdCoin.sha256").trim_end());
}

#[test]
fn selectors_and_topics_are_those_of_the_standard() {
    assert_eq!(Token::transferWithAuthorization_0Call::SELECTOR, [0xe3, 0xee, 0x16, 0x0e]);
    assert_eq!(Token::transferWithAuthorization_1Call::SELECTOR, [0xcf, 0x09, 0x29, 0x95]);
    assert_eq!(Token::receiveWithAuthorization_0Call::SELECTOR, [0xef, 0x55, 0xbe, 0xc6]);
    assert_eq!(Token::receiveWithAuthorization_1Call::SELECTOR, [0x88, 0xb7, 0xab, 0x63]);
    assert_eq!(Token::cancelAuthorization_0Call::SELECTOR, [0x5a, 0x04, 0x9a, 0x70]);
    assert_eq!(Token::cancelAuthorization_1Call::SELECTOR, [0xb7, 0xb7, 0x28, 0x99]);
    assert_eq!(Token::authorizationStateCall::SELECTOR, [0xe9, 0x4a, 0x01, 0x02]);
    let used = b256!("0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5");
    let canceled = b256!("0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81");
    assert_eq!(Token::AuthorizationUsed::SIGNATURE_HASH, used);
    assert_eq!(Token::AuthorizationCanceled::SIGNATURE_HASH, canceled);
}

#[tokio::test]
async fn it_says_what_it_is() {
    let world = World::new().await;
    assert_eq!(world.view(Token::nameCall {}).await, "USD Coin");
    assert_eq!(world.view(Token::symbolCall {}).await, "USDC");
    assert_eq!(world.view(Token::versionCall {}).await, "2");
    assert_eq!(world.view(Token::decimalsCall {}).await, 6);
    assert_eq!(world.view(Token::totalSupplyCall {}).await, U256::ZERO);
    assert_eq!(world.view(Token::DOMAIN_SEPARATORCall {}).await, domain().separator());
    let hashes = [
        (
            world.view(Token::TRANSFER_WITH_AUTHORIZATION_TYPEHASHCall {}).await,
            b256!("0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267"),
        ),
        (
            world.view(Token::RECEIVE_WITH_AUTHORIZATION_TYPEHASHCall {}).await,
            b256!("0xd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de8"),
        ),
        (
            world.view(Token::CANCEL_AUTHORIZATION_TYPEHASHCall {}).await,
            b256!("0x158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a1597429"),
        ),
        (
            world.view(Token::PERMIT_TYPEHASHCall {}).await,
            b256!("0x6e71edae12b1b97f4d1f60370fef10105fa2faae0126114a169c64845d6126c9"),
        ),
    ];
    for (found, expected) in hashes {
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn it_moves_by_transfer_and_allowance() {
    let world = World::new().await;
    let ada = world.funded(1).await;
    let bob = world.funded(2).await;
    let a = ada.address();
    let b = bob.address();
    let receipt = world.token(&ada, Token::transferCall { to: b, value: U256::from(5) }).await;
    assert!(succeeded(&receipt));
    assert_eq!(topics(&receipt), [Token::Transfer::SIGNATURE_HASH]);
    assert_eq!((world.balance(a).await, world.balance(b).await), (19_999_995, 20_000_005));

    let pull = |value| Token::transferFromCall { from: a, to: b, value };
    let allowance = "transfer amount exceeds allowance";
    assert_eq!(world.refusal(b, pull(U256::ONE)).await, allowance);
    world.token(&ada, Token::approveCall { spender: b, value: U256::from(7) }).await;
    assert!(succeeded(&world.token(&bob, pull(U256::from(4))).await));
    let left = world.view(Token::allowanceCall { owner: a, spender: b }).await;
    assert_eq!(left, U256::from(3));
    assert_eq!(world.refusal(b, pull(U256::from(4))).await, allowance);
    world.token(&ada, Token::approveCall { spender: b, value: U256::MAX }).await;
    assert!(succeeded(&world.token(&bob, pull(U256::from(4))).await));
    let left = world.view(Token::allowanceCall { owner: a, spender: b }).await;
    assert_eq!(left, U256::MAX, "an endless allowance stays endless");

    let much = Token::transferCall { to: b, value: U256::from(20_000_000) };
    assert_eq!(world.refusal(a, much).await, "transfer amount exceeds balance");
    let nobody = Token::transferCall { to: Address::ZERO, value: U256::ONE };
    assert_eq!(world.refusal(a, nobody).await, "transfer to the zero address");
    let mint = Token::mintCall { to: a, value: U256::ONE };
    assert_eq!(world.refusal(a, mint).await, "caller is not the owner");
    assert_eq!(world.view(Token::totalSupplyCall {}).await, U256::from(40_000_000));
}

#[tokio::test]
async fn an_authorization_is_good_once_and_in_both_forms() {
    let world = World::new().await;
    let payer = world.funded(1).await;
    let relay = world.funded(2).await;
    let to = account(3).address();
    for (paid, piece) in [false, true].into_iter().enumerate() {
        let mut message = transfer(payer.address(), to, 5_000_000);
        message.nonce = B256::repeat_byte(u8::try_from(paid).unwrap());
        let signed = signature(&payer, &message);
        let state =
            Token::authorizationStateCall { authorizer: payer.address(), nonce: message.nonce };
        assert!(!world.view(state.clone()).await);
        let receipt = if piece {
            world.token(&relay, in_one(&message, signed.as_bytes().into())).await
        } else {
            world.token(&relay, in_parts(&message, &signed)).await
        };
        assert!(succeeded(&receipt), "{receipt}");
        let expected = [Token::AuthorizationUsed::SIGNATURE_HASH, Token::Transfer::SIGNATURE_HASH];
        assert_eq!(topics(&receipt), expected);
        assert_eq!(world.balance(to).await, 5_000_000 * (paid as u64 + 1));
        assert!(world.view(state).await);

        let again = world.token(&relay, in_parts(&message, &signed)).await;
        assert!(!succeeded(&again));
        assert_eq!(again["logs"], json!([]), "what is reverted logs nothing");
        let again = world.refusal(relay.address(), in_parts(&message, &signed)).await;
        assert_eq!(again, "authorization is used or canceled");
    }
}

#[tokio::test]
async fn both_ends_of_the_window_are_exclusive() {
    let world = World::new().await;
    let payer = world.funded(1).await;
    let message = transfer(payer.address(), account(3).address(), 1);
    let call = in_parts(&message, &signature(&payer, &message));
    let data = Bytes::from(call.abi_encode());
    let request = json!([{"from": payer.address(), "to": Devnet::usdc(), "data": data}]);
    world.set_time(NOW + 599);
    assert!(world.ask("eth_call", request.clone()).await.is_ok());
    world.set_time(NOW + 600);
    let expired = world.refusal(payer.address(), call.clone()).await;
    assert_eq!(expired, "authorization is expired");

    let early = World::new().await;
    let payer = early.funded(1).await;
    let mut message = message;
    message.validAfter = U256::from(NOW + 100);
    let call = in_parts(&message, &signature(&payer, &message));
    early.set_time(NOW + 100);
    let refused = early.refusal(payer.address(), call.clone()).await;
    assert_eq!(refused, "authorization is not yet valid");
    early.set_time(NOW + 101);
    assert!(succeeded(&early.token(&payer, call).await));
}

#[tokio::test]
async fn a_cancelled_authorization_is_void() {
    let world = World::new().await;
    let payer = world.funded(1).await;
    let message = transfer(payer.address(), account(3).address(), 1);
    let authorizer = payer.address();
    let nonce = message.nonce;
    let cancel = signature(&payer, &typed::CancelAuthorization { authorizer, nonce });
    let by_stranger = signature(&account(9), &typed::CancelAuthorization { authorizer, nonce });
    let parts = |by: &Signature| Token::cancelAuthorization_0Call {
        authorizer,
        nonce,
        v: v(by),
        r: r(by),
        s: s(by),
    };
    assert_eq!(world.refusal(authorizer, parts(&by_stranger)).await, "invalid signature");
    let piece =
        Token::cancelAuthorization_1Call { authorizer, nonce, signature: cancel.as_bytes().into() };
    let receipt = world.token(&payer, piece).await;
    assert_eq!(topics(&receipt), [Token::AuthorizationCanceled::SIGNATURE_HASH]);
    let spent = in_parts(&message, &signature(&payer, &message));
    let void = "authorization is used or canceled";
    assert_eq!(world.refusal(authorizer, spent).await, void);
    assert_eq!(world.refusal(authorizer, parts(&cancel)).await, void);
}

#[tokio::test]
async fn a_wrong_signature_moves_nothing() {
    let world = World::new().await;
    let payer = world.funded(1).await;
    let from = payer.address();
    let message = transfer(from, account(3).address(), 1);
    let good = signature(&payer, &message);
    let check = async |call: Token::transferWithAuthorization_0Call| {
        assert_eq!(world.refusal(from, call).await, "invalid signature");
    };
    check(in_parts(&message, &signature(&account(9), &message))).await;
    check(in_parts(&transfer(from, account(4).address(), 1), &good)).await;
    check(in_parts(&transfer(from, account(3).address(), 2), &good)).await;
    // The second form of the same signature, which ecrecover would take.
    let twin = Signature::new(good.r(), ORDER - good.s(), !good.v());
    check(in_parts(&message, &twin)).await;
    check(Token::transferWithAuthorization_0Call { v: 0, ..in_parts(&message, &good) }).await;
    // Nobody recovers to the zero address.
    let mut nobody = message.clone();
    nobody.from = Address::ZERO;
    let zero = Signature::new(U256::ZERO, U256::ZERO, false);
    check(in_parts(&nobody, &zero)).await;
    for length in [0, 64, 66] {
        let mut bytes = good.as_bytes().to_vec();
        bytes.resize(length, 0);
        let refused = world.refusal(from, in_one(&message, bytes.into())).await;
        assert_eq!(refused, "invalid signature", "{length} bytes");
    }
    assert!(succeeded(&world.token(&payer, in_parts(&message, &good)).await));
}

#[tokio::test]
async fn only_the_payee_receives() {
    let world = World::new().await;
    let payer = world.funded(1).await;
    let payee = world.funded(3).await;
    let m = transfer(payer.address(), payee.address(), 9);
    let typed::TransferWithAuthorization { from, to, value, validAfter, validBefore, nonce } = m;
    let message =
        typed::ReceiveWithAuthorization { from, to, value, validAfter, validBefore, nonce };
    let signed = signature(&payer, &message);
    let piece = Token::receiveWithAuthorization_1Call {
        from,
        to,
        value,
        validAfter,
        validBefore,
        nonce,
        signature: signed.as_bytes().into(),
    };
    assert_eq!(world.refusal(from, piece.clone()).await, "caller must be the payee");
    assert!(succeeded(&world.token(&payee, piece).await));
    let parts = Token::receiveWithAuthorization_0Call {
        from,
        to,
        value,
        validAfter,
        validBefore,
        nonce,
        v: v(&signed),
        r: r(&signed),
        s: s(&signed),
    };
    assert_eq!(world.refusal(to, parts).await, "authorization is used or canceled");
    assert_eq!(world.balance(to).await, 20_000_009);
}

#[tokio::test]
async fn a_permit_is_good_once_and_until_its_deadline() {
    let world = World::new().await;
    let owner = world.funded(1).await;
    let spender = world.funded(2).await;
    let permit = |nonce, deadline| typed::Permit {
        owner: owner.address(),
        spender: spender.address(),
        value: U256::from(11),
        nonce: U256::from(nonce),
        deadline: U256::from(deadline),
    };
    let call = |m: typed::Permit| {
        let by = signature(&owner, &m);
        let typed::Permit { owner, spender, value, deadline, .. } = m;
        Token::permitCall { owner, spender, value, deadline, v: v(&by), r: r(&by), s: s(&by) }
    };
    let late = call(permit(0, NOW - 1));
    assert_eq!(world.refusal(spender.address(), late).await, "permit is expired");
    let good = call(permit(0, NOW + 60));
    let receipt = world.token(&spender, good.clone()).await;
    assert_eq!(topics(&receipt), [Token::Approval::SIGNATURE_HASH]);
    assert_eq!(world.refusal(spender.address(), good).await, "invalid signature");
    let owner = owner.address();
    let spender = spender.address();
    assert_eq!(world.view(Token::allowanceCall { owner, spender }).await, U256::from(11));
    assert_eq!(world.view(Token::noncesCall { owner }).await, U256::ONE);
}
