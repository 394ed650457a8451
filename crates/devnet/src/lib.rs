//! An EVM dev chain in the process, with a dollar token and a faucet.
//!
//! ```text
//! alloy, viem, cast ──JSON-RPC──▶ rpc ──▶ node ──▶ chain ──▶ revm
//!                                  └▶ pool ┘└──▶ journal (chain.log)
//! ```
//!
//! Each transaction is mined at once, in a block with those that came while the
//! block before was written. With a folder, each act is on disk before it is answered, and a start does them all again. It
//! must never be taken for a chain with value: the faucet gives to everybody.

pub mod baseline;
mod chain;
mod error;
mod journal;
mod node;
mod pool;
mod rpc;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, B256, U256};
use automaton_core::faults::Faults;
use automaton_core::money::MicroUsdc;
use automaton_core::time::Clock;
use automaton_core::wire::x402::ChainId;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

pub use chain::ChainRefusal;
pub use error::DevnetError;

use chain::{ChainOperation, OperationOutcome};
use node::Node;
use pool::TransactionPool;
use rpc::RpcState;

/// The chain id of a dev chain where nobody wants another; CAIP-2 `eip155:31337`.
pub const CHAIN_ID: u64 = ChainId::DEV.0;

/// How long requests that are being answered may take when the chain stops.
const GRACE: Duration = Duration::from_secs(5);

/// What a dev chain is started with.
pub struct DevnetConfig {
    /// Where it listens; port 0 takes one that is free.
    pub listen: SocketAddr,
    /// The folder that holds it; without one it is gone at the end.
    pub data: Option<PathBuf>,
    /// Its id.
    pub chain_id: u64,
    /// What its blocks take their time from.
    pub clock: Arc<dyn Clock>,
    /// Where a crash is rehearsed.
    pub faults: Arc<dyn Faults>,
}

/// A running dev chain. It ends when this is dropped.
pub struct Devnet {
    address: SocketAddr,
    node: Arc<Mutex<Node>>,
    /// Closing this lets open connections end.
    stop: watch::Sender<()>,
    tasks: JoinSet<()>,
}

impl Devnet {
    /// Begins a chain or takes up the one in the folder, and serves it.
    ///
    /// # Errors
    /// The address is taken, or the folder's log cannot be used.
    pub async fn start(config: DevnetConfig) -> Result<Self, DevnetError> {
        let DevnetConfig { listen, data, chain_id, clock, faults } = config;
        let opened = tokio::task::spawn_blocking(move || {
            Node::open(chain_id, data.as_deref(), clock, faults)
        });
        let node = Arc::new(Mutex::new(opened.await.map_err(|_| DevnetError::Crashed)??));
        let failed = |source| DevnetError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (stop, stopped) = watch::channel(());
        let mut tasks = JoinSet::new();
        let (pool, blocks) = TransactionPool::new();
        tasks.spawn(pool::mine(Arc::clone(&node), blocks));
        let state = RpcState::new(Arc::clone(&node), pool, stopped.clone());
        tasks.spawn(rpc::serve(listener, state, stopped));
        Ok(Self { address, node, stop, tasks })
    }

    /// What a client is configured with: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The token's address on a chain with the usual id.
    #[must_use]
    pub const fn usdc() -> Address {
        Self::usdc_of(CHAIN_ID)
    }

    /// The token's address on a chain of an id: where USDC is known to be, if it is.
    #[must_use]
    pub const fn usdc_of(chain_id: u64) -> Address {
        chain::usdc_of(ChainId(chain_id))
    }

    /// Gives an account token and wei from the faucet, at least one of them.
    /// Returns the hash of the last transaction that this took; a contract may
    /// refuse the wei, which its receipt tells.
    ///
    /// # Errors
    /// Nothing is given, or the chain cannot store it.
    pub async fn fund(&self, to: Address, usdc: MicroUsdc, wei: U256) -> Result<B256, DevnetError> {
        let mut node = Arc::clone(&self.node).lock_owned().await;
        let funded = tokio::task::spawn_blocking(move || {
            let time = node.time();
            node.act(ChainOperation::Fund { to, usdc: usdc.units(), wei, time })
        });
        let OperationOutcome::Mined(hash) = funded.await.map_err(|_| DevnetError::Crashed)?? else {
            return Err(DevnetError::Crashed);
        };
        Ok(hash)
    }

    /// Mines a block with nothing in it, so that the chain's time goes on.
    ///
    /// # Errors
    /// The chain cannot store it.
    pub async fn mine(&self) -> Result<(), DevnetError> {
        let mut node = Arc::clone(&self.node).lock_owned().await;
        let mined = tokio::task::spawn_blocking(move || {
            let time = node.time();
            node.act(ChainOperation::Mine { time })
        });
        mined.await.map_err(|_| DevnetError::Crashed)??;
        Ok(())
    }

    /// Ends the server. Requests that are being answered have five seconds; an
    /// act that was begun is stored in any case.
    pub async fn stop(self) {
        let Self { node, stop, mut tasks, .. } = self;
        drop(stop);
        // The pool closes with the last request.
        let ended = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tasks.abort_all();
        }
        // Whoever holds the node is still writing.
        drop(node.lock().await);
    }
}
