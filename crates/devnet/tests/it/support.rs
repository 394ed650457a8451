//! A chain on a free port, a client for it, and signing accounts.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::{Eip712Domain, SolCall, sol};
use automaton_core::faults::{Faults, NoFaults};
use automaton_core::money::MicroUsdc;
use automaton_core::time::Timestamp;
use automaton_devnet::{CHAIN_ID, Devnet, DevnetConfig, DevnetError};
use automaton_testkit::clock::FakeClock;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The time at which the chains of these tests begin, in seconds.
pub(crate) const NOW: u64 = 1_767_323_100;

sol! {
    interface Token {
        event Transfer(address indexed from, address indexed to, uint256 value);
        event Approval(address indexed owner, address indexed spender, uint256 value);
        event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
        event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);

        function name() external view returns (string);
        function symbol() external view returns (string);
        function version() external view returns (string);
        function decimals() external view returns (uint8);
        function totalSupply() external view returns (uint256);
        function owner() external view returns (address);
        function balanceOf(address account) external view returns (uint256);
        function allowance(address owner, address spender) external view returns (uint256);
        function nonces(address owner) external view returns (uint256);
        function authorizationState(address authorizer, bytes32 nonce) external view returns (bool);
        function DOMAIN_SEPARATOR() external view returns (bytes32);
        function PERMIT_TYPEHASH() external view returns (bytes32);
        function TRANSFER_WITH_AUTHORIZATION_TYPEHASH() external view returns (bytes32);
        function RECEIVE_WITH_AUTHORIZATION_TYPEHASH() external view returns (bytes32);
        function CANCEL_AUTHORIZATION_TYPEHASH() external view returns (bytes32);

        function transfer(address to, uint256 value) external returns (bool);
        function approve(address spender, uint256 value) external returns (bool);
        function transferFrom(address from, address to, uint256 value) external returns (bool);
        function mint(address to, uint256 value) external;
        function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external;
        function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external;
        function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature) external;
        function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external;
        function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature) external;
        function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external;
        function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature) external;
    }
}

/// The signed messages, by EIP-712.
pub(crate) mod typed {
    alloy_sol_types::sol! {
        struct TransferWithAuthorization { address from; address to; uint256 value; uint256 validAfter; uint256 validBefore; bytes32 nonce; }
        struct ReceiveWithAuthorization { address from; address to; uint256 value; uint256 validAfter; uint256 validBefore; bytes32 nonce; }
        struct CancelAuthorization { address authorizer; bytes32 nonce; }
        struct Permit { address owner; address spender; uint256 value; uint256 nonce; uint256 deadline; }
    }
}

/// An error of JSON-RPC.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<String>,
}

/// A chain and its clock.
pub(crate) struct World {
    pub(crate) devnet: Devnet,
    pub(crate) clock: FakeClock,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::open(None, Arc::new(NoFaults)).await.unwrap()
    }

    pub(crate) async fn open(
        data: Option<&Path>,
        faults: Arc<dyn Faults>,
    ) -> Result<Self, DevnetError> {
        let clock = FakeClock::at(Timestamp::from_millis(NOW as i64 * 1000));
        let devnet = Devnet::start(DevnetConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            data: data.map(Path::to_owned),
            chain_id: CHAIN_ID,
            clock: Arc::new(clock.clone()),
            faults,
        })
        .await?;
        Ok(Self { devnet, clock })
    }

    pub(crate) fn set_time(&self, seconds: u64) {
        self.clock.set(Timestamp::from_millis(seconds as i64 * 1000));
    }

    /// Calls a method.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Value, Told> {
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let (status, body) = post(self.devnet.addr(), &request.to_string()).await;
        assert_eq!(status, 200, "{body}");
        let reply: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&reply["jsonrpc"], &reply["id"]), (&json!("2.0"), &json!(7)));
        match reply.get("error") {
            None => Ok(reply["result"].clone()),
            Some(error) => Err(Told {
                code: error["code"].as_i64().unwrap(),
                message: error["message"].as_str().unwrap().to_owned(),
                data: error["data"].as_str().map(str::to_owned),
            }),
        }
    }

    /// Calls the token and decodes the result.
    pub(crate) async fn view<C: SolCall>(&self, call: C) -> C::Return {
        let request = json!({"to": Devnet::usdc(), "data": Bytes::from(call.abi_encode())});
        let output = self.ask("eth_call", json!([request, "latest"])).await.unwrap();
        let output: Bytes = serde_json::from_value(output).unwrap();
        C::abi_decode_returns(&output).unwrap()
    }

    pub(crate) async fn balance(&self, of: Address) -> u64 {
        self.view(Token::balanceOfCall { account: of }).await.to()
    }

    /// Sends a transaction of the account with fees and nonce filled in. Returns its hash.
    pub(crate) async fn send(
        &self,
        from: &PrivateKeySigner,
        to: TxKind,
        input: Vec<u8>,
    ) -> Result<B256, Told> {
        let raw = self.signed(from, to, input).await;
        let hash = self.ask("eth_sendRawTransaction", json!([raw])).await?;
        Ok(serde_json::from_value(hash).unwrap())
    }

    /// Returns the bytes of such a transaction.
    pub(crate) async fn signed(
        &self,
        from: &PrivateKeySigner,
        to: TxKind,
        input: Vec<u8>,
    ) -> Bytes {
        let nonce = self.ask("eth_getTransactionCount", json!([from.address(), "latest"])).await;
        let nonce: U256 = serde_json::from_value(nonce.unwrap()).unwrap();
        let tx = TxEip1559 {
            chain_id: CHAIN_ID,
            nonce: nonce.to(),
            gas_limit: 3_000_000,
            max_fee_per_gas: 3_000_000_000,
            max_priority_fee_per_gas: 1,
            to,
            value: U256::ZERO,
            access_list: Default::default(),
            input: input.into(),
        };
        sign(from, tx)
    }

    /// Sends a call of the token. Returns the receipt.
    pub(crate) async fn token<C: SolCall>(&self, from: &PrivateKeySigner, call: C) -> Value {
        let to = TxKind::Call(Devnet::usdc());
        let hash = self.send(from, to, call.abi_encode()).await.unwrap();
        self.ask("eth_getTransactionReceipt", json!([hash])).await.unwrap()
    }

    /// Returns the reason why a call of the token would fail.
    pub(crate) async fn refusal<C: SolCall>(&self, from: Address, call: C) -> String {
        let data = Bytes::from(call.abi_encode());
        let request = json!({"from": from, "to": Devnet::usdc(), "data": data});
        let told = self.ask("eth_call", json!([request])).await.unwrap_err();
        assert_eq!(told.code, 3, "{told:?}");
        told.message.strip_prefix("execution reverted: ").unwrap().to_owned()
    }

    /// Creates an account with 20 USDC and one ether.
    pub(crate) async fn funded(&self, seed: u8) -> PrivateKeySigner {
        let signer = account(seed);
        let ether = U256::from(10_u64.pow(18));
        self.devnet.fund(signer.address(), MicroUsdc::new(20_000_000), ether).await.unwrap();
        signer
    }
}

/// Returns true if a receipt shows success.
pub(crate) fn succeeded(receipt: &Value) -> bool {
    match receipt["status"].as_str().unwrap() {
        "0x1" => true,
        "0x0" => false,
        other => panic!("status {other}"),
    }
}

pub(crate) fn account(seed: u8) -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&B256::repeat_byte(seed)).unwrap()
}

pub(crate) fn sign<T: SignableTransaction<alloy_primitives::Signature>>(
    from: &PrivateKeySigner,
    tx: T,
) -> Bytes
where
    TxEnvelope: From<alloy_consensus::Signed<T>>,
{
    let signature = from.sign_hash_sync(&tx.signature_hash()).unwrap();
    TxEnvelope::from(tx.into_signed(signature)).encoded_2718().into()
}

/// Returns the domain in which the token's messages are signed.
pub(crate) fn domain() -> Eip712Domain {
    alloy_sol_types::eip712_domain! {
        name: "USD Coin",
        version: "2",
        chain_id: CHAIN_ID,
        verifying_contract: Devnet::usdc(),
    }
}

/// Sends a body. Returns status and body of the response.
pub(crate) async fn post(to: SocketAddr, body: &str) -> (u16, String) {
    post_as(to, "application/json", body).await
}

pub(crate) async fn post_as(to: SocketAddr, kind: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {to}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}
