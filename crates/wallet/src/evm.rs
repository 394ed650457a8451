//! The automaton's view of its chain: balances, authorizations, and the dev chain's faucet.
//!
//! Nothing here sends a transaction: whoever is paid settles a payment. A read that fails is an
//! error and must never become a balance of zero.

use alloy_primitives::{Address, B256, U256};
use automaton_core::money::MicroUsdc;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::ChainId;
use automaton_net::{HttpClient, Retry, Url};
use serde::Serialize;

use crate::rpc::{BlockHash, BlockHeader, BlockTag, ChainError, NodeClient, RpcClient};
use crate::token::Token;

/// The words by which nodes say that they do not have a block.
const UNKNOWN_BLOCK_WORDS: [&str; 6] = [
    "not found",
    "unknown block",
    "missing trie",
    "not currently canonical",
    "not available",
    "pruned",
];
/// The most blocks that are asked about if the node does not know them, or no longer does.
const BLOCKS_MAX: u32 = 3;

/// One chain, through one node.
#[derive(Debug, Clone)]
pub struct ChainClient {
    rpc: RpcClient,
    id: u64,
}

/// The state of an authorization in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthorizationState {
    /// The authorization was used or cancelled by then.
    pub used: bool,
    /// The block's time, which no later block is before.
    pub at: Timestamp,
}

/// A request to the faucet of the dev chain.
#[derive(Serialize)]
struct FaucetRequest {
    address: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    usdc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wei: Option<String>,
}

impl ChainClient {
    /// Connects to a chain through a node that serves it.
    ///
    /// # Errors
    /// Fails if the node does not answer, or serves another chain than `id`.
    pub async fn connect(client: HttpClient, url: Url, id: u64) -> Result<Self, ChainError> {
        let node = NodeClient::new(client, url);
        let rpc = RpcClient::new(node, ChainId(id).confirmations());
        // An unreachable node is not asked again: a wrong address is reported at once.
        let found = rpc.clone().with_retry(Retry::WhenRefused).chain_id().await?;
        if found != id {
            return Err(ChainError::OtherChain { node: rpc.node().name(), wanted: id, found });
        }
        Ok(Self { rpc, id })
    }

    /// Replaces the number of blocks that have to come after one before it is final.
    #[must_use]
    pub fn confirmed_by(self, confirmations: u64) -> Self {
        Self { rpc: self.rpc.with_confirmations(confirmations), ..self }
    }

    /// Returns the chain's id, by EIP-155.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Returns the client of the chain's JSON-RPC interface.
    #[must_use]
    pub const fn rpc(&self) -> &RpcClient {
        &self.rpc
    }

    /// Reads the time of the latest block, which no later block is before.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn time(&self) -> Result<Timestamp, ChainError> {
        let block = self.rpc.header(BlockTag::Latest).await?;
        self.rpc.block_field(block.time, "time")
    }

    /// Reads the balance of a token with six decimals in the latest block.
    ///
    /// # Errors
    /// [`ChainError`]; then the balance is unknown.
    pub async fn balance(&self, token: Address, owner: Address) -> Result<MicroUsdc, ChainError> {
        let function = Token::balanceOfCall { account: owner };
        let balance = self.rpc.call(token, &function, BlockTag::Latest).await?;
        // More than fits is as good as the most that does.
        Ok(MicroUsdc::new(balance.try_into().unwrap_or(u64::MAX)))
    }

    /// Reads the balance of the chain's own coin, which pays for gas, in wei.
    ///
    /// # Errors
    /// [`ChainError`]; then it is unknown.
    pub async fn wei(&self, owner: Address) -> Result<U256, ChainError> {
        self.rpc.coin_balance(owner).await
    }

    /// Reads the state of an authorization in a final block. State and time are of the same
    /// block, and a used authorization is void. Behind one address there may be many nodes: the
    /// time of one beside the state of another that lags would show a payment as void that was
    /// made.
    ///
    /// # Errors
    /// [`ChainError`]; then it is unknown.
    pub async fn authorization(
        &self,
        token: Address,
        authorizer: Address,
        nonce: B256,
    ) -> Result<AuthorizationState, ChainError> {
        let function = Token::authorizationStateCall { authorizer, nonce };
        let mut asked = 0;
        loop {
            let block = self.rpc.final_header().await?;
            let at = self.rpc.block_field(block.time, "time")?;
            let hash = self.rpc.block_field(block.hash, "hash")?;
            asked += 1;
            match self.rpc.call(token, &function, BlockHash::canonical(hash)).await {
                Ok(used) => return Ok(AuthorizationState { used, at }),
                Err(error) if !is_unknown_block(&error) => {
                    let used = self.state_by_number(token, &function, &block, error).await?;
                    return Ok(AuthorizationState { used, at });
                }
                Err(_) if asked < BLOCKS_MAX => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the state of an authorization in a block by its number, for nodes that do not know
    /// EIP-1898. The number has to mean the same block before and after the question.
    async fn state_by_number(
        &self,
        token: Address,
        function: &Token::authorizationStateCall,
        block: &BlockHeader,
        refusal: ChainError,
    ) -> Result<bool, ChainError> {
        let (ChainError::Refused { .. }, Some(number)) = (&refusal, block.number) else {
            return Err(refusal);
        };
        let number = BlockTag::Number(number);
        let used = self.rpc.call(token, function, number).await?;
        let again = self.rpc.header(number).await?;
        if again.hash != block.hash {
            let what = "the block changed while it was read".to_owned();
            return Err(self.rpc.node().malformed("eth_call", what));
        }
        Ok(used)
    }

    /// Reads the separator of a token's EIP-712 domain, by which the token names itself in signed
    /// payments.
    ///
    /// # Errors
    /// [`ChainError`]; a contract without one refuses, or answers with something else.
    pub async fn domain_separator(&self, token: Address) -> Result<B256, ChainError> {
        self.rpc.call(token, &Token::DOMAIN_SEPARATORCall {}, BlockTag::Latest).await
    }

    /// Has the faucet of our own dev chain give an address some of its dollar token. Returns the
    /// hash of the transaction.
    ///
    /// # Errors
    /// [`ChainError`]; other chains have no faucet and refuse.
    pub async fn fund(&self, to: Address, amount: MicroUsdc) -> Result<String, ChainError> {
        let usdc = Some(format!("{:#x}", amount.units()));
        let funding = FaucetRequest { address: to, usdc, wei: None };
        self.rpc.node().ask(Retry::Never, "automaton_fund", [funding]).await
    }

    /// Has the faucet of a dev chain give an account ether, which pays for gas.
    ///
    /// # Errors
    /// [`ChainError`]; other chains have no faucet and refuse.
    pub async fn fund_gas(&self, to: Address, wei: U256) -> Result<(), ChainError> {
        let funding = FaucetRequest { address: to, usdc: None, wei: Some(format!("{wei:#x}")) };
        // Nothing of the token moves, so there may be no transaction to name.
        let node = self.rpc.node();
        node.ask::<Option<String>>(Retry::Never, "automaton_fund", [funding]).await.map(drop)
    }
}

/// Returns whether a node refused a question because it does not have the block, or has another
/// one in its place by now. Nodes have no common number for that.
fn is_unknown_block(error: &ChainError) -> bool {
    let ChainError::Refused { words, .. } = error else { return false };
    let words = words.to_lowercase();
    UNKNOWN_BLOCK_WORDS.iter().any(|unknown| words.contains(unknown))
}

#[cfg(test)]
mod tests;
