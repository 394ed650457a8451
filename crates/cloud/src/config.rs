//! The operator's configuration: one JSON file.
//!
//! Every URL here is spelled out by the operator and may be private. Secrets are in separate files
//! that only their owner can read. No client request can change the configuration.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use alloy_primitives::Address;
use automaton_core::file_text;
use automaton_core::model::ModelId;
use automaton_core::money::Microcents;
use automaton_core::secret::Secret;
use automaton_core::time::Span;
use automaton_core::wire::x402::{ChainId, TokenDomain};
use automaton_net::{Origin, Url};
use automaton_sandbox::process::effective_user;
use automaton_wallet::transactions::FeePolicy;
use serde::Deserialize;

use crate::billing::facilitator::PaymentTerms;
use crate::billing::price::TokenPrices;
use crate::error::CloudError;
use crate::machines::egress::MachineEgressConfig;

mod upstream;

pub use upstream::{CallLimits, ServerConfig, TokenLimitName, UpstreamConfig, UpstreamKind};

/// The longest that clients accept an authorization to be valid, in seconds.
const TIMEOUT_SECS_MAX: u64 = 300;

/// The most blocks that may be waited for: the state of older ones is not kept by
/// every node.
const CONFIRMATIONS_MAX: u64 = 100;

/// The configuration of a cloud.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudConfig {
    /// The address to listen on; port 0 picks any free port.
    #[serde(default = "any_port")]
    pub listen: SocketAddr,
    /// The folder of the database, created if it is missing.
    pub data: PathBuf,
    /// The URL that clients use, where it is not the address itself.
    pub public_url: Option<HttpUrl>,
    /// Domains in whose name clients may sign in, besides our own host.
    #[serde(default = "usual_domains")]
    pub sign_in_domains: Vec<String>,
    /// The balance that a wallet needs before a call that costs something, in cents. By default
    /// only the highest possible cost of the call is needed.
    #[serde(default)]
    pub minimum_balance_cents: u32,
    /// Addresses of proxies in front of the cloud, whose connections are those of many clients
    /// and do not count as one address's; this machine's own never do.
    #[serde(default)]
    pub proxies: Vec<IpAddr>,
    /// The amount that a wallet may transfer in 24 hours by all of its API keys, in cents, until
    /// its automaton's creator allows more.
    #[serde(default = "usual_transfers")]
    pub transfer_daily_cents: u32,
    /// The chain and the token of payments.
    pub chain: ChainConfig,
    /// The upstream, if there is only one.
    pub upstream: Option<UpstreamConfig>,
    /// The upstreams in the order in which they are asked, if there are several.
    #[serde(default)]
    pub upstreams: Vec<UpstreamConfig>,
    /// The models that clients are offered.
    pub models: Vec<OfferedModel>,
    /// The limits on calls of models.
    #[serde(default)]
    pub call_limits: CallLimits,
    /// The machines for rent.
    #[serde(default)]
    pub machines: MachinesConfig,
}

/// The machines for rent.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MachinesConfig {
    /// Machines are for rent.
    pub enabled: bool,
    /// The most machines of one wallet.
    pub per_owner: u32,
    /// The most machines that run at a time.
    pub in_all: u32,
    /// GiB of disk that are promised in all, by default as many as are asked for. Disks are
    /// counted and not set apart: with less than there is, no machine takes what another was
    /// promised.
    pub disk_gib: Option<u32>,
    /// The free space that the machines' file system must keep, in GiB; by default 1, or a
    /// hundredth of the file system if that is more.
    pub free_gib_min: Option<u32>,
    /// The domain of the ports' host names: `{port}-{machine}.{domain}`. Every such name has to
    /// resolve to this server.
    pub domain: String,
    /// The URL of a port that is its `public_url`: `path` for clients that cannot resolve the
    /// names.
    pub public_url: PublicUrlForm,
    /// The region that clients are shown.
    pub region: String,
    /// The hosts that programs in machines may reach; none by default.
    pub egress: MachineEgressConfig,
    /// The folder that each new one begins with a copy of, laid out as a machine sees it: `root`,
    /// `usr/local`, `opt`, `srv`, `home` and `var/lib`. Nothing by default.
    pub template: Option<PathBuf>,
    /// The container engine. Without it machines are sandboxed processes on this host.
    pub podman: Option<PodmanConfig>,
}

/// The two ways to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublicUrlForm {
    /// Under a host name of its own.
    #[default]
    Name,
    /// Under a path of the cloud's own URL.
    Path,
}

/// A podman that machines are containers of.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodmanConfig {
    /// The socket of its API.
    pub socket: PathBuf,
    /// The image that each machine begins with, as podman names it.
    pub image: String,
}

impl Default for MachinesConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            per_owner: 10,
            in_all: 50,
            disk_gib: None,
            free_gib_min: None,
            domain: "localhost".to_owned(),
            public_url: PublicUrlForm::default(),
            region: "local".to_owned(),
            egress: MachineEgressConfig::default(),
            template: None,
            podman: None,
        }
    }
}

/// A URL of the configuration, http or https.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct HttpUrl {
    url: Url,
    origin: Origin,
}

impl TryFrom<String> for HttpUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let url = Url::parse(&text).map_err(|error| format!("'{text}' is no URL: {error}"))?;
        let origin = Origin::from_url(&url).map_err(|error| error.to_string())?;
        Ok(Self { url, origin })
    }
}

impl HttpUrl {
    /// The URL.
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// Its scheme, host and port.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn usual_domains() -> Vec<String> {
    vec!["conway.tech".to_owned()]
}

const fn usual_transfers() -> u32 {
    25_000
}

/// The chain that payments are made on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainConfig {
    /// Its id.
    pub id: u64,
    /// A node's JSON-RPC.
    pub rpc_url: HttpUrl,
    /// The USDC contract; known for Base and its test network.
    pub asset: Option<Address>,
    /// Its name in its EIP-712 domain, if it is not the usual one.
    pub token_name: Option<String>,
    /// The recipient of payments.
    pub pay_to: Address,
    /// The signer of the account that pays gas.
    pub gas_signer: GasSigner,
    /// The validity of an authorization, in seconds, at most 300.
    #[serde(default = "usual_timeout")]
    pub max_timeout_seconds: u64,
    /// The number of blocks after a payment's block before it is credited; by default none on a dev
    /// chain and 2 elsewhere.
    pub confirmations: Option<u64>,
    /// The time that a transaction may be in no block before one with higher fees replaces it, in
    /// seconds.
    #[serde(default = "usual_patience")]
    pub replace_after_seconds: u32,
    /// The most that is paid for a unit of gas, in wei.
    #[serde(default = "usual_fee_max")]
    pub fee_max_wei: u64,
    /// The most that is paid for gas within any 24 hours, in wei.
    #[serde(default = "usual_gas_per_day")]
    pub gas_per_day_wei: u64,
}

/// The signer of the account that pays gas. Its key is in a process of its own, which is started
/// beside the cloud.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GasSigner {
    /// Its home.
    pub home: PathBuf,
    /// A file with the passphrase of its key; without one it is asked for.
    pub passphrase_file: Option<PathBuf>,
}

const fn usual_timeout() -> u64 {
    TIMEOUT_SECS_MAX
}

const fn usual_patience() -> u32 {
    30
}

/// An ether.
const fn usual_gas_per_day() -> u64 {
    1_000_000_000_000_000_000
}

/// A hundred gwei: with that, a transfer costs less than a hundredth of an ether.
const fn usual_fee_max() -> u64 {
    100_000_000_000
}

/// A model that is offered.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferedModel {
    /// Its id here.
    pub id: ModelId,
    /// Its id at the upstream, where that differs.
    upstream_id: Option<ModelId>,
    /// Its name for people.
    pub display_name: Option<String>,
    /// The price of a million tokens of the prompt.
    input_microcents_per_million: Microcents,
    /// The price of those that the upstream had in a cache; by default the same.
    cached_microcents_per_million: Option<Microcents>,
    /// The price of those that the upstream wrote into a cache; by default that of the prompt.
    cache_write_microcents_per_million: Option<Microcents>,
    /// The price of a million tokens of the answer.
    output_microcents_per_million: Microcents,
    /// The most tokens of prompt and answer together.
    pub context_window: u32,
    /// The most tokens of an answer.
    pub max_output_tokens: u32,
    /// The model calls tools.
    #[serde(default)]
    pub supports_tools: bool,
    /// The model accepts pictures.
    #[serde(default)]
    pub supports_vision: bool,
    /// The model makes embeddings and nothing else.
    #[serde(default)]
    pub embeddings: bool,
    /// The model needs short prompts and few tools. Local models bring this with them.
    #[serde(default)]
    pub weak: bool,
    /// A note about the model for people.
    pub note: Option<String>,
}

impl OfferedModel {
    /// Returns the prices of the model's tokens.
    #[must_use]
    pub fn prices(&self) -> TokenPrices {
        let input = self.input_microcents_per_million;
        let cached = self.cached_microcents_per_million.unwrap_or(input);
        let cache_write = self.cache_write_microcents_per_million.unwrap_or(input);
        TokenPrices { input, cached, cache_write, output: self.output_microcents_per_million }
    }

    /// Returns the model's name at the upstream.
    #[must_use]
    pub fn upstream_id(&self) -> &ModelId {
        self.upstream_id.as_ref().unwrap_or(&self.id)
    }
}

impl CloudConfig {
    /// Reads the file. A relative `data` begins at the working directory, and so does every
    /// other relative path in the file.
    ///
    /// # Errors
    /// Fails if it cannot be read, or is no configuration.
    pub fn read(path: &Path) -> Result<Self, CloudError> {
        let file = |source| CloudError::File { path: path.to_owned(), source };
        let bytes = fs::read(path).map_err(file)?;
        let defect = |defect| file(io::Error::new(io::ErrorKind::InvalidData, defect));
        let text = file_text::decode(&bytes).map_err(defect)?;
        let mut config = Self::parse(text).map_err(|error| match error {
            CloudError::Config(what) => CloudError::Config(format!("{}: {what}", path.display())),
            other => other,
        })?;
        // Containers are told of folders of the host, which have whole paths.
        config.data = std::path::absolute(&config.data).map_err(file)?;
        Ok(config)
    }

    /// Reads the text of the file.
    ///
    /// # Errors
    /// Fails if it is no configuration.
    pub fn parse(text: &str) -> Result<Self, CloudError> {
        let wrong = |error: serde_json::Error| {
            CloudError::Config(file_text::with_correction(&error.to_string()))
        };
        let config: Self = serde_json::from_str(text).map_err(wrong)?;
        config.check().map_err(CloudError::Config)?;
        Ok(config)
    }

    /// Returns the upstreams in the order in which they are asked.
    pub fn upstreams(&self) -> impl Iterator<Item = &UpstreamConfig> {
        self.upstream.iter().chain(&self.upstreams)
    }

    fn check(&self) -> Result<(), String> {
        if self.models.is_empty() {
            return Err("models is empty".to_owned());
        }
        for (at, model) in self.models.iter().enumerate() {
            let TokenPrices { input, cached, cache_write, output } = model.prices();
            if [input, cached, cache_write, output]
                .into_iter()
                .any(|price| price < Microcents::ZERO)
            {
                return Err(format!("the model '{}' has a negative price", model.id));
            }
            if self.models[..at].iter().any(|other| other.id == model.id) {
                return Err(format!("the model '{}' is there twice", model.id));
            }
        }
        upstream::check(self)?;
        let domain = &self.machines.domain;
        let is_plain =
            |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "-.".contains(it);
        if domain.is_empty() || !domain.chars().all(is_plain) {
            return Err(format!("machines.domain is '{domain}', and no host name in lower case"));
        }
        if !(30..=TIMEOUT_SECS_MAX).contains(&self.chain.max_timeout_seconds) {
            return Err(format!("max_timeout_seconds must be from 30 to {TIMEOUT_SECS_MAX}"));
        }
        if self.chain.confirmations() > CONFIRMATIONS_MAX {
            return Err(format!("chain.confirmations must be at most {CONFIRMATIONS_MAX}"));
        }
        if self.chain.fee_max_wei == 0 || self.chain.replace_after_seconds == 0 {
            return Err("chain.fee_max_wei and replace_after_seconds must be at least 1".to_owned());
        }
        Ok(())
    }
}

impl ChainConfig {
    /// Returns the terms of payment, with the token from our own table or as it is spelled out.
    ///
    /// # Errors
    /// Fails if no token is named on a chain that is not in the table.
    pub(crate) fn terms(&self) -> Result<PaymentTerms, CloudError> {
        let chain = ChainId(self.id);
        let contract = self.asset.or(chain.usdc()).ok_or_else(|| {
            CloudError::Config(format!("chain.asset is needed on the chain {chain}"))
        })?;
        let mut token = TokenDomain::usdc(chain, contract);
        if let Some(name) = &self.token_name {
            token.name.clone_from(name);
        }
        Ok(PaymentTerms { token, pay_to: self.pay_to, timeout_secs: self.max_timeout_seconds })
    }

    /// The contract of the token.
    ///
    /// # Errors
    /// Fails if none is named on a chain that is not in our table.
    pub fn token(&self) -> Result<Address, CloudError> {
        Ok(self.terms()?.token.contract)
    }

    /// Returns the number of blocks that make a block final.
    #[must_use]
    pub(crate) fn confirmations(&self) -> u64 {
        self.confirmations.unwrap_or(ChainId(self.id).confirmations())
    }

    /// Returns the rules for fees and replacement of transactions.
    #[must_use]
    pub(crate) fn fee_policy(&self) -> FeePolicy {
        let replace_after = Span::from_secs(self.replace_after_seconds.into());
        FeePolicy { replace_after, fee_max: self.fee_max_wei }
    }
}

/// The only line of a file that nobody else may read.
pub(crate) fn secret(path: &Path) -> Result<Secret, CloudError> {
    let file = |source| CloudError::File { path: path.to_owned(), source };
    let about = fs::metadata(path).map_err(file)?;
    if about.mode() & 0o077 != 0 {
        return Err(CloudError::Exposed(path.to_owned()));
    }
    if about.uid() != effective_user() {
        return Err(CloudError::Foreign { path: path.to_owned(), owner: about.uid() });
    }
    let bytes = fs::read(path).map_err(file)?;
    let defect = |defect| file(io::Error::new(io::ErrorKind::InvalidData, defect));
    Ok(Secret::new(file_text::decode(&bytes).map_err(defect)?.trim().to_owned()))
}
