//! An EVM dev chain in this process, with a dollar token and a faucet.
//!
//! ```text
//! alloy, viem, cast ──JSON-RPC──▶ rpc ──▶ node ──▶ chain ──▶ revm
//! └▶ pool ┘└──▶ journal (chain.log)
//! ```
//!
//! Each transaction is mined at once, in a block with those that arrived while the previous block
//! was written. With a folder, each operation is on disk before it is answered, and a start
//! repeats them all. It must never be taken for a chain with value: the faucet gives to
//! everybody.

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

/// The default chain id, CAIP-2 `eip155:31337`.
pub const CHAIN_ID: u64 = ChainId::DEV.0;

/// The time that open requests have when the chain stops.
const GRACE: Duration = Duration::from_secs(5);

/// The configuration of a dev chain.
pub struct DevnetConfig {
    /// The address to listen on. Port 0 takes a free port.
    pub listen: SocketAddr,
    /// The folder that stores the chain. Without one the chain ends with the process.
    pub data: Option<PathBuf>,
    /// The chain id.
    pub chain_id: u64,
    /// The clock of its blocks.
    pub clock: Arc<dyn Clock>,
    /// The rehearsed crashes.
    pub faults: Arc<dyn Faults>,
}

/// A running dev chain. Dropping it ends the chain.
pub struct Devnet {
    address: SocketAddr,
    node: Arc<Mutex<Node>>,
    /// Dropping this ends open connections.
    stop: watch::Sender<()>,
    tasks: JoinSet<()>,
}

impl Devnet {
    /// Begins a chain or resumes the one in the folder, and serves it.
    ///
    /// # Errors
    /// Fails if the address is in use, or the folder's log cannot be used.
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

    /// Returns the URL for clients: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the listening address.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the token's address on a chain with the default id.
    #[must_use]
    pub const fn usdc() -> Address {
        Self::usdc_of(CHAIN_ID)
    }

    /// Returns the token's address on a chain: the published address of USDC, if there is one.
    #[must_use]
    pub const fn usdc_of(chain_id: u64) -> Address {
        chain::usdc_of(ChainId(chain_id))
    }

    /// Gives an account token or wei or both from the faucet. Returns the hash of the last
    /// transaction. A contract may refuse the wei, which the receipt tells.
    ///
    /// # Errors
    /// Fails if nothing is given, or the chain cannot store it.
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

    /// Mines an empty block, so that the chain's time advances.
    ///
    /// # Errors
    /// Fails if the chain cannot store it.
    pub async fn mine(&self) -> Result<(), DevnetError> {
        let mut node = Arc::clone(&self.node).lock_owned().await;
        let mined = tokio::task::spawn_blocking(move || {
            let time = node.time();
            node.act(ChainOperation::Mine { time })
        });
        mined.await.map_err(|_| DevnetError::Crashed)??;
        Ok(())
    }

    /// Stops the server. Open requests have five seconds. An operation in progress is stored in
    /// any case.
    pub async fn stop(self) {
        let Self { node, stop, mut tasks, .. } = self;
        drop(stop);
        // The pool closes with the last request.
        let ended = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tasks.abort_all();
        }
        // A holder of the lock is still writing.
        drop(node.lock().await);
    }
}
