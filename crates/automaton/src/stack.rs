//! Local services of an automaton: a folder beside its home with a dev chain and a cloud.
//!
//! ```text
//! stack.json   where both listen     chain/      the dev chain's log
//! prices.json  what thinking costs   cloud/      the cloud's database
//! gas/         the signer's home of the account that pays the cloud's transactions
//! ```
//!
//! The agent's sandbox cannot reach any of it. The wallet's passphrase is in a file
//! of the signer's home, which is for a dev chain alone, where nothing is worth
//! anything; a wallet that was made elsewhere must never get one.

mod upstreams;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use alloy_primitives::{Address, address, hex};
use automaton_agent::ANSWER_TOKENS;
use automaton_cloud::MachinesConfig;
use automaton_core::entropy::{Entropy, SystemEntropy};
use automaton_core::error::ErrorClass;
use automaton_core::event::Service;
use automaton_core::model::ModelId;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::{USDC_NAME, USDC_VERSION};
use automaton_devnet::{CHAIN_ID, Devnet};
use automaton_inference::ModelInfo;
use automaton_signer::keystore::{self, Keystore};
use automaton_signer::{PassphraseSource, SignerHome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::config::resolve::{Brain, HttpBrain, ResolvedConfig};
use crate::config::values::{BareOrigin, EgressTarget, HostPattern};
use crate::error::{CliError, CliErrors};
use crate::home::{make_directory, write_atomically};
use crate::process;
use crate::role::provider;
use crate::role::service::{ChainLaunchConfig, ServiceBackend};
use crate::role::signer::{PassphraseLocation, SignerLaunchConfig, TokenLaunchConfig, home_of};
use crate::text_file;

/// Files of the folder.
const PASSPHRASE: &str = "passphrase";
const PLACES: &str = "stack.json";
const PRICES: &str = "prices.json";
/// File for the operator's settings of rented machines: that part of a cloud's configuration.
const MACHINES: &str = "machines.json";
const KEYSTORE: &str = "keystore.json";

/// Tries for the address of a service: longer than one takes to end.
const TRIES: u32 = 40;
const GAS_FOLDER: &str = "gas";
/// The largest file of the folder that people write, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Gift for a new wallet: as much as four of the smallest tier.
const GIFT: MicroUsdc = MicroUsdc::new(20_000_000);

/// The first two accounts of every dev chain, whose keys everybody knows: one pays
/// the cloud's gas, the other is its till. The passphrase of a key that everybody
/// knows keeps no secret, and its derivation takes no time.
const GAS_TEXT: &str = include_str!("../assets/gas.json");
const GAS_PASSPHRASE: &str = "dev";
const GAS: Address = address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
const PAY_TO: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");

/// Default prices.
const PRICES_TEXT: &str = include_str!("../assets/prices.json");

/// Addresses of a stack's services, once they listen.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceAddresses {
    chain: Option<SocketAddr>,
    cloud: Option<SocketAddr>,
}

/// Prices in microcents per million tokens.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StackPrices {
    input_microcents_per_million: Microcents,
    cached_microcents_per_million: Microcents,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cache_write_microcents_per_million: Option<Microcents>,
    output_microcents_per_million: Microcents,
}

/// The file with prices: of models by their names, and of every other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceList {
    input_microcents_per_million: Microcents,
    cached_microcents_per_million: Microcents,
    output_microcents_per_million: Microcents,
    #[serde(default)]
    models: BTreeMap<ModelId, StackPrices>,
}

impl PriceList {
    /// Returns the price of a model: the file's row for it, else its own prices if somebody pays
    /// them, else the file's row for all others.
    fn price_of(&self, model: &ModelInfo, has_prices: bool) -> StackPrices {
        let others = || StackPrices {
            input_microcents_per_million: self.input_microcents_per_million,
            cached_microcents_per_million: self.cached_microcents_per_million,
            cache_write_microcents_per_million: None,
            output_microcents_per_million: self.output_microcents_per_million,
        };
        let own = || StackPrices {
            input_microcents_per_million: model.prices.input_per_million,
            cached_microcents_per_million: model.prices.cached_per_million,
            cache_write_microcents_per_million: model.prices.cache_write_per_million,
            output_microcents_per_million: model.prices.output_per_million,
        };
        let usual = || if has_prices { own() } else { others() };
        self.models.get(&model.id).copied().unwrap_or_else(usual)
    }
}

/// The stack of one automaton.
#[derive(Debug)]
pub(crate) struct Stack {
    folder: PathBuf,
    signer: PathBuf,
    passphrase: PassphraseLocation,
    places: ServiceAddresses,
    prices: PriceList,
    machine_egress: Vec<EgressTarget>,
    /// The automaton's wallet.
    pub(crate) wallet: Address,
    /// True if the wallet was made just now.
    pub(crate) is_new: bool,
}

/// The file with the passphrase in the home of a signer, where a stack made its key.
pub(crate) fn passphrase_file(signer: &Path) -> Option<PathBuf> {
    let own = signer.join(PASSPHRASE);
    own.exists().then_some(own)
}

/// The URL of the dev chain of a home's stack, once it has served somewhere.
///
/// # Errors
/// When the stack's file is damaged.
pub(crate) fn chain_of(home: &Path) -> Result<Option<String>, CliError> {
    let places: ServiceAddresses = read_or(&folder_of(home).join(PLACES), "{}")?;
    Ok(places.chain.map(|address| format!("http://{address}")))
}

/// The URLs of chain and cloud of a home's stack, once both have served somewhere.
///
/// # Errors
/// When the stack's file is damaged.
pub(crate) fn addresses(home: &Path) -> Result<Option<(String, String)>, CliError> {
    let places: ServiceAddresses = read_or(&folder_of(home).join(PLACES), "{}")?;
    let url = |address| format!("http://{address}");
    Ok(places.chain.zip(places.cloud).map(|(chain, cloud)| (url(chain), url(cloud))))
}

/// Returns true if a cloud's URL is that of a home's stack.
///
/// # Errors
/// When the stack's file is damaged.
pub(crate) fn is_cloud_of(home: &Path, cloud: &str) -> Result<bool, CliError> {
    Ok(addresses(home)?.is_some_and(|(_, own)| own == cloud))
}

/// The folder of the stack that belongs to a home: beside it, never in it.
pub(crate) fn folder_of(home: &Path) -> PathBuf {
    let mut name = home.file_name().unwrap_or_default().to_owned();
    name.push("-dev");
    home.with_file_name(name)
}

/// Looks at everything with which the stack of a home would be opened, and makes nothing.
pub(crate) fn check(home: &Path, given: Option<&PassphraseLocation>, wrong: &mut CliErrors) {
    let folder = folder_of(home);
    wrong.take(check_ours(&folder));
    wrong.take(read_or::<PriceList>(&folder.join(PRICES), PRICES_TEXT));
    wrong.take(read_or::<Option<MachinesConfig>>(&folder.join(MACHINES), "null"));
    let places =
        wrong.take(read_or::<ServiceAddresses>(&folder.join(PLACES), "{}")).unwrap_or_default();
    for (service, place) in [(Service::Chain, places.chain), (Service::Cloud, places.cloud)] {
        wrong.take(place.map_or(Ok(()), |at| {
            process::check_free(at, TRIES).map_err(|failure| failure.hint(stays_there(at, service)))
        }));
    }
    let signer = home_of(home);
    let keystore = signer.join(KEYSTORE);
    let wallet = keystore.exists().then(|| {
        let read = Keystore::read(&keystore).map_err(CliError::from);
        wrong.take(read.and_then(|keystore| address_of(&keystore)))
    });
    let passphrase = given.map_or_else(|| signer.join(PASSPHRASE), |place| place.path().to_owned());
    if let (Some(Some(wallet)), false) = (wallet, passphrase.exists()) {
        wrong.take(Err::<(), _>(unknown_passphrase(wallet)));
    }
}

/// Returns the remedy for an address that another program uses.
pub(crate) fn stays_there(place: SocketAddr, service: Service) -> String {
    format!(
        "end the program that has {place}, which is where this automaton's {} always was; or \
         remove stack.json from the folder of its dev stack, and it takes another place",
        service.name()
    )
}

fn unknown_passphrase(wallet: Address) -> CliError {
    let what = format!("the wallet {wallet} was made with a passphrase of its own");
    CliError::user(what).hint("give it with --passphrase-file FILE")
}

impl Stack {
    /// Opens the stack of a home; makes what is missing, the wallet too.
    ///
    /// # Errors
    /// When a file of it is damaged or cannot be written, or the wallet was made
    /// elsewhere and no place of its passphrase is given.
    pub(crate) fn open(home: &Path, given: Option<PassphraseLocation>) -> Result<Self, CliError> {
        let folder = folder_of(home);
        check_ours(&folder)?;
        make_directory(&folder).map_err(|error| unusable(&folder, &error))?;
        let places = read_or(&folder.join(PLACES), "{}")?;
        let prices = read_or(&folder.join(PRICES), PRICES_TEXT)?;
        write_if_missing(&folder.join(PRICES), PRICES_TEXT)?;
        let gas = folder.join(GAS_FOLDER);
        write_if_missing(&SignerHome::make(&gas)?.keystore(), GAS_TEXT)?;
        write_if_missing(&gas.join(PASSPHRASE), GAS_PASSPHRASE)?;
        let signer = SignerHome::make(&home_of(home))?;
        let own = home_of(home).join(PASSPHRASE);
        let is_new = !signer.keystore().exists();
        let mut drawn = [0; 32];
        SystemEntropy.fill(&mut drawn);
        let drawn = hex::encode(drawn);
        if is_new && given.is_none() {
            write_if_missing(&own, &drawn)?;
        }
        let passphrase = given.unwrap_or(PassphraseLocation::File(own));
        let wallet = if is_new {
            let secret = PassphraseSource::from(passphrase.clone()).read()?;
            // One that was there before may be a person's.
            let is_drawn = secret.reveal() == drawn;
            let create =
                if is_drawn { keystore::create_with_random_passphrase } else { keystore::create };
            create(&signer.keystore(), &secret, &SystemEntropy)?
        } else {
            address_of(&Keystore::read(&signer.keystore())?)?
        };
        if !passphrase.path().exists() {
            return Err(unknown_passphrase(wallet));
        }
        let signer = home_of(home);
        let machine_egress = Vec::new();
        Ok(Self { folder, signer, passphrase, places, prices, machine_egress, wallet, is_new })
    }

    /// The same with a cloud whose machines may reach these.
    pub(crate) fn letting_machines_reach(self, machine_egress: Vec<EgressTarget>) -> Self {
        Self { machine_egress, ..self }
    }

    /// Returns the configuration of its dev chain.
    pub(crate) fn chain(&self) -> ServiceBackend {
        ServiceBackend::Chain(ChainLaunchConfig {
            data: self.folder.join("chain"),
            gas: GAS,
            gift: Some((self.wallet, GIFT)),
        })
    }

    /// Returns the configuration of its cloud, in front of the automaton's brain. It sells the
    /// default model and the cheaper ones of these names at current prices, on a chain at `rpc`.
    ///
    /// # Errors
    /// When the brain cannot be behind a cloud, or its key cannot be written.
    pub(crate) fn cloud(
        &self,
        resolved: &ResolvedConfig,
        cheaper: &[ModelId],
        rpc: &str,
        now: Timestamp,
    ) -> Result<ServiceBackend, CliError> {
        // Each with whether somebody pays what it is said to cost.
        let mut infos = vec![(provider::describe(&resolved.brain)?, is_priced(&resolved.brain))];
        // What thinks makes no vectors.
        let talks = |name: &ModelId| infos[0].0.id == *name || cheaper.contains(name);
        let vectors = resolved.bought_embeddings().filter(|name| !talks(name));
        let others = [cheaper, vectors.as_slice()].concat();
        if let Brain::Http(http) = &resolved.brain {
            for name in &others {
                infos.push((provider::served_by(http, name)?, is_priced_at(http)));
            }
        }
        // One that several sell is asked of the first alone, at whose price it is sold.
        for (server, name) in provider::stand_ins(resolved) {
            if infos.iter().all(|(info, _)| info.id != *name) {
                infos.push((provider::served_by(server, name)?, is_priced_at(server)));
            }
        }
        let schedule = resolved.model_strategy.price_schedule();
        for (info, is_priced) in &mut infos {
            if let Some(prices) = schedule.at(&info.id, now) {
                (info.prices, *is_priced) = (prices, true);
            }
        }
        let unsaid = resolved.max_tokens_per_turn.unwrap_or(ANSWER_TOKENS);
        let longest = |info: &ModelInfo| info.max_output_tokens.unwrap_or(unsaid);
        let sold = |(info, priced): &(ModelInfo, bool)| ModelFile {
            id: info.id.clone(),
            // What its creator pays for elsewhere costs as much here, so that budgets hold.
            prices: self.prices.price_of(info, *priced),
            context_window: info.context_tokens,
            max_output_tokens: longest(info).min(info.context_tokens),
            supports_tools: true,
            embeddings: vectors.as_ref() == Some(&info.id),
        };
        let config = CloudFile {
            data: self.folder.join("cloud"),
            chain: ChainFile {
                id: CHAIN_ID,
                rpc_url: rpc,
                asset: Devnet::usdc(),
                pay_to: PAY_TO,
                gas_signer: GasFile {
                    home: self.folder.join(GAS_FOLDER),
                    passphrase_file: self.folder.join(GAS_FOLDER).join(PASSPHRASE),
                },
                gas_per_day_wei: i64::MAX,
            },
            upstreams: self.upstreams(resolved, &others)?,
            models: infos.iter().map(sold).collect(),
            machines: self.machines()?,
        };
        serde_json::to_string(&config)
            .map(ServiceBackend::Cloud)
            .map_err(|error| CliError::internal("cannot write the cloud's configuration", &error))
    }

    fn machines(&self) -> Result<MachinesSource<'_>, CliError> {
        let path = self.folder.join(MACHINES);
        let file: Option<Box<RawValue>> = read_or(&path, "null")?;
        match file {
            None => Ok(MachinesSource::Flags(MachinesFile {
                egress: StackEgressFile::from_targets(&self.machine_egress),
            })),
            Some(file) if self.machine_egress.is_empty() => Ok(MachinesSource::File(file)),
            Some(_) => {
                let what = format!("{} says what machines are, so no flag can", path.display());
                Err(CliError::user(what).hint("list what they may reach there, as `egress`"))
            }
        }
    }

    /// Returns the configuration of its signer, for an agent that pays a cloud.
    pub(crate) fn signer(&self, audiences: Vec<(String, String, u64)>) -> SignerLaunchConfig {
        SignerLaunchConfig {
            home: self.signer.clone(),
            passphrase: Some(self.passphrase.clone()),
            tokens: vec![token()],
            audiences,
            ..SignerLaunchConfig::default()
        }
    }

    /// Returns the address of a service: the earlier one, or any.
    pub(crate) fn address_of(&self, service: Service) -> SocketAddr {
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        match service {
            Service::Chain => self.places.chain,
            Service::Cloud => self.places.cloud,
            Service::Signer => None,
        }
        .unwrap_or(anywhere)
    }

    /// Keeps where a service listens, so that it is found there again: payments
    /// and API keys are for that address.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn remember(&mut self, service: Service, at: SocketAddr) -> Result<(), CliError> {
        let place = match service {
            Service::Chain => &mut self.places.chain,
            Service::Cloud => &mut self.places.cloud,
            Service::Signer => return Ok(()),
        };
        if *place == Some(at) {
            return Ok(());
        }
        *place = Some(at);
        let text = serde_json::to_vec(&self.places)
            .map_err(|error| CliError::internal("cannot write stack.json", &error))?;
        write_atomically(&self.folder.join(PLACES), &text, 0o600)
    }
}

/// The token of every dev chain of ours, with its EIP-712 domain.
#[must_use]
pub fn token() -> TokenLaunchConfig {
    TokenLaunchConfig {
        chain_id: CHAIN_ID,
        address: Devnet::usdc(),
        name: USDC_NAME.to_owned(),
        version: USDC_VERSION.to_owned(),
    }
}

/// Returns true if somebody pays the prices of a brain.
fn is_priced(brain: &Brain) -> bool {
    matches!(brain, Brain::Http(http) if is_priced_at(http))
}

fn is_priced_at(http: &HttpBrain) -> bool {
    http.said.prices.is_some() || !provider::is_here(&http.url)
}

/// A model as the cloud of a home's stack sells it.
///
/// # Errors
/// When the file with the prices is damaged.
pub(crate) fn as_sold(home: &Path, brain: &Brain, info: ModelInfo) -> Result<ModelInfo, CliError> {
    let list: PriceList = read_or(&folder_of(home).join(PRICES), PRICES_TEXT)?;
    let sold = list.price_of(&info, is_priced(brain));
    let prices = automaton_inference::ModelPrices {
        input_per_million: sold.input_microcents_per_million,
        cached_per_million: sold.cached_microcents_per_million,
        cache_write_per_million: sold.cache_write_microcents_per_million,
        output_per_million: sold.output_microcents_per_million,
    };
    Ok(ModelInfo { prices, ..info })
}

/// Returns true if the home has a stack.
pub(crate) fn is_there(home: &Path) -> bool {
    folder_of(home).join(PRICES).exists()
}

/// Checks that a folder that is there already is a stack, or holds nothing.
fn check_ours(folder: &Path) -> Result<(), CliError> {
    let mut entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| unusable(folder, &error))?,
    };
    if folder.join(PRICES).exists() || entries.next().is_none() {
        return Ok(());
    }
    let what = format!("{} is not empty and no dev stack is there", folder.display());
    Err(CliError::new(ErrorClass::Config, what)
        .hint("name another home with --home, or think without a cloud: --direct"))
}

fn address_of(keystore: &Keystore) -> Result<Address, CliError> {
    keystore.address().ok_or_else(|| CliError::user("the wallet's file names no address"))
}

fn unusable(path: &Path, error: &io::Error) -> CliError {
    CliError::new(ErrorClass::Config, format!("cannot use {}", path.display())).because(error)
}

/// Reads a file of the stack, or what is there when there is none.
fn read_or<T: for<'de> Deserialize<'de>>(path: &Path, usual: &str) -> Result<T, CliError> {
    let text = text_file::read_optional(path, FILE_BYTES_MAX);
    let text = text.map_err(|error| unusable(path, &error))?.unwrap_or_else(|| usual.to_owned());
    serde_json::from_str(&text).map_err(|error| {
        CliError::new(ErrorClass::Config, format!("{} is damaged", path.display()))
            .because(&text_file::corrected(&error))
            .hint("correct it, or remove it to begin with the usual one")
    })
}

fn write_if_missing(path: &Path, text: &str) -> Result<(), CliError> {
    match text_file::is_there(path).map_err(|error| unusable(path, &error))? {
        true => Ok(()),
        false => write_atomically(path, text.as_bytes(), 0o600),
    }
}

/// The configuration of a cloud, as `automaton cloud --config` reads it too.
#[derive(Serialize)]
struct CloudFile<'a> {
    data: PathBuf,
    chain: ChainFile<'a>,
    upstreams: Vec<upstreams::StackUpstream<'a>>,
    models: Vec<ModelFile>,
    machines: MachinesSource<'a>,
}

/// Source of the settings for machines: a file, or flags.
#[derive(Serialize)]
#[serde(untagged)]
enum MachinesSource<'a> {
    File(Box<RawValue>),
    Flags(MachinesFile<'a>),
}

#[derive(Serialize)]
struct MachinesFile<'a> {
    egress: StackEgressFile<'a>,
}

#[derive(Default, Serialize)]
struct StackEgressFile<'a> {
    hosts: Vec<&'a HostPattern>,
    origins: Vec<&'a BareOrigin>,
}

impl<'a> StackEgressFile<'a> {
    fn from_targets(places: &'a [EgressTarget]) -> Self {
        let mut file = Self::default();
        for place in places {
            match place {
                EgressTarget::Host(host) => file.hosts.push(host),
                EgressTarget::Origin(origin) => file.origins.push(origin),
            }
        }
        file
    }
}

#[derive(Serialize)]
struct ChainFile<'a> {
    id: u64,
    rpc_url: &'a str,
    asset: Address,
    pay_to: Address,
    gas_signer: GasFile,
    /// As good as none: a dev chain's faucet gives more.
    gas_per_day_wei: i64,
}

#[derive(Serialize)]
struct GasFile {
    home: PathBuf,
    passphrase_file: PathBuf,
}

#[derive(Serialize)]
struct ModelFile {
    id: ModelId,
    #[serde(flatten)]
    prices: StackPrices,
    context_window: u32,
    max_output_tokens: u32,
    supports_tools: bool,
    embeddings: bool,
}
