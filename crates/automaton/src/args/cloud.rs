//! Flags for the cloud and the chain of an automaton.

use clap::Args;

use crate::config::values::HttpUrl;

/// Flags for cloud and chain.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RemoteFlags {
    /// The cloud that it lives from [default: $CONWAY_API_URL, else `conwayApiUrl` of
    /// automaton.json, else one of its own]
    #[arg(long, value_name = "URL")]
    pub(crate) cloud: Option<HttpUrl>,
    /// A node of the wallet's chain [default: $AUTOMATON_RPC_URL, else `rpcUrl` of automaton.json]
    #[arg(long, value_name = "URL")]
    pub(crate) rpc: Option<HttpUrl>,
    /// The wallet's network: base, base-sepolia, dev, or one of `networks` of automaton.json
    /// [default: `network` of automaton.json, else base]
    #[arg(long, value_name = "NAME")]
    pub(crate) network: Option<String>,
}
