//! What the wallet reads from a chain, over JSON-RPC.
//!
//! Only reads: whoever settles a payment sends the transaction. A read that
//! fails is an error of its own and must never become a balance of zero.

use alloy_primitives::{Address, B256, U256, hex};
use automaton_core::money::MicroUsdc;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::ChainId;
use automaton_net::{HttpClient, Retry, Url};
use serde::{Deserialize, Serialize};

use crate::node::{ChainError, NodeClient};

/// `balanceOf(address)`, by EIP-20.
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];
/// `authorizationState(address,bytes32)`, by EIP-3009.
const AUTHORIZATION_STATE: [u8; 4] = [0xe9, 0x4a, 0x01, 0x02];
/// `DOMAIN_SEPARATOR()`, by EIP-2612.
const DOMAIN_SEPARATOR: [u8; 4] = [0x36, 0x44, 0xe5, 0x15];
/// Asks for a block.
const BLOCK: &str = "eth_getBlockByNumber";
/// Words by which nodes say that they do not have a block.
const UNKNOWN_BLOCK_WORDS: [&str; 6] = [
    "not found",
    "unknown block",
    "missing trie",
    "not currently canonical",
    "not available",
    "pruned",
];
/// How often a block is asked about that a node does not know, or no longer.
const BLOCKS_MAX: u32 = 3;

/// One chain, through one node.
#[derive(Debug, Clone)]
pub struct ChainClient {
    node: NodeClient,
    id: u64,
    confirmations: u64,
}

/// What is read of a block.
#[derive(Deserialize)]
struct BlockHeader {
    number: Option<String>,
    hash: Option<B256>,
    timestamp: String,
}

/// A block by its hash, by EIP-1898: a node that does not have it, or has
/// another one in its place by now, refuses.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BlockRef {
    block_hash: B256,
    require_canonical: bool,
}

/// What one block says of an authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthorizationState {
    /// Whether it was used or cancelled by then.
    pub used: bool,
    /// The block's time, which no later block is before.
    pub at: Timestamp,
}

/// A call that changes nothing.
#[derive(Serialize)]
struct EthCall {
    to: Address,
    data: String,
}

/// Whom the faucet of the dev chain funds.
#[derive(Serialize)]
struct FaucetRequest {
    address: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    usdc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wei: Option<String>,
}

impl ChainClient {
    /// A chain through a node that serves it.
    ///
    /// # Errors
    /// When the node does not answer, or serves another chain than `id`.
    pub async fn connect(client: HttpClient, url: Url, id: u64) -> Result<Self, ChainError> {
        let confirmations = ChainId(id).confirmations();
        let node = NodeClient::new(client, url);
        let chain = Self { node, id, confirmations };
        let method = "eth_chainId";
        // A node that cannot be reached is not asked again: a wrong address is told at once.
        let answer: String = chain.node.ask(Retry::WhenRefused, method, [(); 0]).await?;
        let found = number(&answer).map_err(|what| chain.malformed(method, what))?;
        if found != id {
            return Err(ChainError::OtherChain { node: chain.node.name(), wanted: id, found });
        }
        Ok(chain)
    }

    /// The same with another number of blocks that have to come after one before what
    /// it says is taken for good.
    #[must_use]
    pub fn confirmed_by(self, confirmations: u64) -> Self {
        Self { confirmations, ..self }
    }

    /// The chain's id, by EIP-155.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The time of the latest block, which no later block is before.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn time(&self) -> Result<Timestamp, ChainError> {
        self.latest().await.map(|(_, at)| at)
    }

    /// The latest block, with its time.
    async fn latest(&self) -> Result<(BlockHeader, Timestamp), ChainError> {
        self.block("latest").await
    }

    /// The latest block that no fork undoes, with its time.
    async fn finalized_block(&self) -> Result<(BlockHeader, Timestamp), ChainError> {
        let (latest, at) = self.latest().await?;
        if self.confirmations == 0 {
            return Ok((latest, at));
        }
        let none = || self.malformed(BLOCK, "it has no number".to_owned());
        let newest = latest.number.as_deref().ok_or_else(none)?;
        let newest = number(newest).map_err(|what| self.malformed(BLOCK, what))?;
        self.block(&format!("{:#x}", newest.saturating_sub(self.confirmations))).await
    }

    async fn block(&self, which: &str) -> Result<(BlockHeader, Timestamp), ChainError> {
        let method = BLOCK;
        let block: BlockHeader =
            self.node.ask_without_lists(Retry::Question, method, (which, false)).await?;
        let seconds = number(&block.timestamp).map_err(|what| self.malformed(method, what))?;
        let millis = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
        Ok((block, Timestamp::from_millis(millis)))
    }

    /// How much of a token with six decimals an address holds, in the latest block.
    ///
    /// # Errors
    /// [`ChainError`]; then the balance is unknown.
    pub async fn balance(&self, token: Address, owner: Address) -> Result<MicroUsdc, ChainError> {
        let word = self.read(token, BALANCE_OF, &[owner.into_word()], "latest").await?;
        // More than fits is as good as the most that does.
        Ok(MicroUsdc::new(word.try_into().unwrap_or(u64::MAX)))
    }

    /// How much of the chain's own coin an address has to pay gas with, in wei.
    ///
    /// # Errors
    /// [`ChainError`]; then it is unknown.
    pub async fn wei(&self, owner: Address) -> Result<U256, ChainError> {
        let method = "eth_getBalance";
        let answer: String = self.node.ask(Retry::Question, method, (owner, "latest")).await?;
        answer.parse().map_err(|_| self.malformed(method, format!("'{answer}' is no number")))
    }

    /// What one block says of an authorization that no fork undoes: state and time
    /// are of the same one. Used or cancelled, it is void. Behind an address there may be
    /// many nodes, and the time of one beside the state of another that lags would show a
    /// payment as void that was made.
    ///
    /// # Errors
    /// [`ChainError`]; then it is unknown.
    pub async fn authorization(
        &self,
        token: Address,
        authorizer: Address,
        nonce: B256,
    ) -> Result<AuthorizationState, ChainError> {
        let words = [authorizer.into_word(), nonce];
        let mut asked = 0;
        loop {
            let (block, at) = self.finalized_block().await?;
            let none = || self.malformed(BLOCK, "it has no hash".to_owned());
            let block_hash = block.hash.ok_or_else(none)?;
            let by_hash = BlockRef { block_hash, require_canonical: true };
            asked += 1;
            match self.read(token, AUTHORIZATION_STATE, &words, by_hash).await {
                Ok(state) => return Ok(AuthorizationState { used: !state.is_zero(), at }),
                Err(error) if !is_unknown_block(&error) => {
                    let used = self.state_by_number(token, &words, &block, error).await?;
                    return Ok(AuthorizationState { used, at });
                }
                Err(_) if asked < BLOCKS_MAX => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether an authorization was used by a block that is named by its number, for nodes that
    /// do not know EIP-1898. The number means the same block before and after the question.
    async fn state_by_number(
        &self,
        token: Address,
        words: &[B256],
        block: &BlockHeader,
        refusal: ChainError,
    ) -> Result<bool, ChainError> {
        let (ChainError::Refused { .. }, Some(number)) = (&refusal, &block.number) else {
            return Err(refusal);
        };
        let state = self.read(token, AUTHORIZATION_STATE, words, number).await?;
        let (again, _) = self.block(number).await?;
        if again.hash != block.hash {
            let what = "the block changed while it was read".to_owned();
            return Err(self.malformed("eth_call", what));
        }
        Ok(!state.is_zero())
    }

    /// How a token names itself in what is signed for it: the separator of its EIP-712 domain.
    ///
    /// # Errors
    /// [`ChainError`]; a contract without one refuses, or answers what is none.
    pub async fn domain_separator(&self, token: Address) -> Result<B256, ChainError> {
        self.read(token, DOMAIN_SEPARATOR, &[], "latest").await.map(B256::from)
    }

    /// Has the faucet of our own dev chain give an address some of its dollar
    /// token; the hash of the transaction.
    ///
    /// # Errors
    /// [`ChainError`]; other chains have no faucet and refuse.
    pub async fn fund(&self, to: Address, amount: MicroUsdc) -> Result<String, ChainError> {
        let usdc = Some(format!("{:#x}", amount.units()));
        let funding = FaucetRequest { address: to, usdc, wei: None };
        self.node.ask(Retry::Never, "automaton_fund", [funding]).await
    }

    /// Has the faucet of a dev chain give an account ether, which pays for gas.
    ///
    /// # Errors
    /// [`ChainError`]; other chains have no faucet and refuse.
    pub async fn fund_gas(&self, to: Address, wei: U256) -> Result<(), ChainError> {
        let funding = FaucetRequest { address: to, usdc: None, wei: Some(format!("{wei:#x}")) };
        // Nothing of the token moves, so there may be no transaction to name.
        self.node.ask::<Option<String>>(Retry::Never, "automaton_fund", [funding]).await.map(drop)
    }

    /// Calls a function that gives one word, in the state after a block.
    async fn read(
        &self,
        to: Address,
        function: [u8; 4],
        words: &[B256],
        block: impl Serialize + Send,
    ) -> Result<U256, ChainError> {
        let method = "eth_call";
        let call = EthCall { to, data: calldata(function, words) };
        let answer: String = self.node.ask(Retry::Question, method, (call, block)).await?;
        word(&answer).map_err(|what| self.malformed(method, what))
    }

    fn malformed(&self, method: &'static str, what: String) -> ChainError {
        self.node.malformed(method, what)
    }
}

/// Whether a node refused a question because it does not have the block, or has another one in
/// its place by now. Nodes have no common number for that.
fn is_unknown_block(error: &ChainError) -> bool {
    let ChainError::Refused { words, .. } = error else { return false };
    let words = words.to_lowercase();
    UNKNOWN_BLOCK_WORDS.iter().any(|unknown| words.contains(unknown))
}

/// A call's data: the function's selector and its words.
fn calldata(function: [u8; 4], words: &[B256]) -> String {
    let words = words.iter().flat_map(|word| word.as_slice());
    let bytes: Vec<u8> = function.iter().chain(words).copied().collect();
    hex::encode_prefixed(bytes)
}

/// A number as the chain writes it: hexadecimal, after `0x`.
fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").ok_or_else(|| format!("'{text}' is no number"))?;
    u64::from_str_radix(digits, 16).map_err(|error| error.to_string())
}

/// The one word of an answer. An address without code answers nothing at all.
fn word(answer: &str) -> Result<U256, String> {
    let bytes = hex::decode(answer).map_err(|error| error.to_string())?;
    if bytes.is_empty() {
        return Err("there is no contract at that address".to_owned());
    }
    let bytes: [u8; 32] =
        bytes.try_into().map_err(|bytes: Vec<u8>| format!("{} bytes, not 32", bytes.len()))?;
    Ok(U256::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests;
