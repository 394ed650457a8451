//! `wallet new`, `wallet show`, `fund`, `topup`: the creator's hand on the money.
//!
//! The key is made and used by the signer alone; here are its address and what
//! it buys. A purchase takes the home's lock, since two processes must never
//! write to one life.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, U256};
use automaton_agent::NoEvents;
use automaton_agent::treasury::{PaymentContext, TopUpOutcome, Treasury, TreasuryDeps};
use automaton_client::CloudClient;
use automaton_cloud::CloudConfig;
use automaton_core::entropy::SystemEntropy;
use automaton_core::faults::NoFaults;
use automaton_core::money::MicroUsdc;
use automaton_core::secret::Secret;
use automaton_core::wire::cloud::TIERS_USD;
use automaton_core::wire::control::{
    ControlRequest, ControlResponse, PURCHASE_MAX, PurchaseReport,
};
use automaton_core::wire::x402::ChainId;
use automaton_sandbox::SystemBootClock;
use automaton_sandbox::process::Child;
use automaton_signer::keystore::{self, Keystore, KeystoreError};
use automaton_signer::{CreatorAction, CreatorProof, PassphraseSource, SignerHome};
use automaton_store::Store;
use automaton_wallet::{ChainClient, SignerClient};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;

use super::limits::ask_signer;
use super::passphrase::PassphraseArgs;
use super::payment::{CloudNames, FaucetNode, PaymentPlace};
use super::{CommandContext, id_generator, with_store};
use crate::args::{FundArgs, TopUpArgs, WalletCommand};
use crate::config::file::FILE_NAME;
use crate::config::network::PaymentNetwork;
use crate::config::remote::CONWAY_URL;
use crate::control::{self, ControlError};
use crate::error::CliError;
use crate::home;
use crate::http::{client, origin, url};
use crate::process::{executable, runtime};
use crate::role::signer::{self, SignerLaunchConfig, TokenLaunchConfig, home_of};
use crate::ui::text::plain;
use crate::view::wallet::{
    FundOutput, FundRequestView, FundedGasView, FundedView, NewWalletView, PurchaseReceiptView,
    WalletView,
};

/// USDC that `fund` gives where nothing else is said.
const FUND_USDC: MicroUsdc = MicroUsdc::new(20_000_000);
/// Millionths of an ether that `fund --gas` gives where nothing else is said: one ether.
const FUND_ETHER: MicroUsdc = MicroUsdc::new(1_000_000);
/// Wei in a millionth of an ether.
const WEI_PER_MILLIONTH: u64 = 1_000_000_000_000;
/// The file with the encrypted key, in the signer's home.
const KEYSTORE: &str = "keystore.json";

/// Time that the signer may take to end.
pub(super) const SIGNER_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Does what was asked of the wallet.
pub(crate) fn run(context: &CommandContext, command: &WalletCommand) -> Result<(), CliError> {
    let automaton = context.home()?;
    match command {
        WalletCommand::New { passphrase_file, creator } => {
            check_no_key(&automaton)?;
            let words = match passphrase_file.clone() {
                Some(file) => PassphraseSource::File(file).read_new()?,
                None => PassphraseSource::NewTerminal.read_new()?,
            };
            begin(context, words, *creator, |to, words| keystore::create(to, words, &SystemEntropy))
        }
        WalletCommand::Import { file, passphrase_file, creator } => {
            check_no_key(&automaton)?;
            Keystore::read(file).map_err(|error| foreign(file, error))?;
            let source = passphrase_file.clone();
            // It opens the other file, so that its length is not ours to choose.
            let words = source.map_or(PassphraseSource::Terminal, PassphraseSource::File).read()?;
            begin(context, words, *creator, |to, words| {
                keystore::import(file, to, words, &SystemEntropy)
            })
        }
        WalletCommand::Show => {
            let address = keystore_of(&automaton)?.address();
            let known = || address.map_or_else(|| "no address".to_owned(), |a| a.to_string());
            context.format.answer(&WalletView { address }, known)
        }
    }
}

/// Checks that there is no key yet, before anybody is asked for anything.
fn check_no_key(automaton: &Path) -> Result<(), CliError> {
    let path = home_of(automaton).join(KEYSTORE);
    if path.symlink_metadata().is_ok() {
        Err(KeystoreError::Exists { path }.into())
    } else {
        Ok(())
    }
}

/// Explains why the keystore of another wallet cannot be read.
fn foreign(file: &Path, error: KeystoreError) -> CliError {
    match error {
        KeystoreError::Missing { .. } => {
            CliError::user(format!("there is no file {}", file.display()))
                .hint("name the keystore file of the other wallet; nothing was changed")
        }
        other => other.into(),
    }
}

/// Brings a key into the home's signer, and names the creator to it.
fn begin(
    context: &CommandContext,
    words: Secret,
    creator: Option<Address>,
    bring: impl FnOnce(&Path, &Secret) -> Result<Address, KeystoreError>,
) -> Result<(), CliError> {
    let home = SignerHome::make(&home_of(&context.home()?))?;
    let file = home.keystore();
    let address = bring(&file, &words)?;
    if let Some(creator) = creator {
        ask_signer(
            &home_of(&context.home()?),
            &CreatorAction::Creator(creator),
            Some(CreatorProof::Passphrase(words)),
        )?;
    }
    let view = NewWalletView { address, keystore: file.clone(), creator };
    context
        .format
        .answer(&view, || format!("Wallet {address}; its key is encrypted in {}", file.display()))
}

/// Has a dev chain's faucet give the wallet some USDC, or shows where to send it.
pub(crate) fn fund(context: &CommandContext, args: &FundArgs) -> Result<(), CliError> {
    if args.gas {
        return fund_gas(context, args);
    }
    let usdc = args.amount.unwrap_or(FUND_USDC);
    let home = context.home()?;
    let keystore = keystore_of(&home)?;
    let address =
        keystore.address().ok_or_else(|| CliError::user("the wallet's file names no address"))?;
    let named = CloudNames::read(context, &home)?;
    let network = named.network()?;
    let faucet = match &args.rpc {
        Some(rpc) => {
            let rpc = rpc.as_str().to_owned();
            let chain_id = args.chain.unwrap_or(ChainId::DEV.0);
            Some(FaucetNode { rpc, chain_id, own: false })
        }
        None => named.faucet(&home, &network)?,
    };
    let Some(faucet) = faucet else {
        return ask_for_funds(context, address, usdc, &network);
    };
    let funded = runtime()?.block_on(async {
        let client = client([faucet.rpc.as_str()])?;
        let chain = ChainClient::connect(client, url(&faucet.rpc)?, faucet.chain_id).await?;
        Ok::<_, CliError>(chain.fund(address, usdc).await?)
    });
    let transaction = funded.map_err(|failure| faucet.explain(failure))?;
    let view = FundedView { address, usdc, transaction: transaction.clone() };
    context.format.answer(&FundOutput::Usdc(view), || {
        format!("Wallet {address} got {usdc}, by transaction {transaction}")
    })
}

/// Has a dev chain's faucet give ether to the account that pays a cloud's gas: the one that the
/// cloud's configuration names, else the wallet of the home.
fn fund_gas(context: &CommandContext, args: &FundArgs) -> Result<(), CliError> {
    let (account, rpc, chain_id, own) = match &args.config {
        Some(path) => {
            let config = CloudConfig::read(path)?;
            let chain = config.chain;
            let keystore = SignerHome::open(&chain.gas_signer.home)?.keystore();
            (Keystore::read(&keystore)?.address(), chain.rpc_url.url().to_string(), chain.id, false)
        }
        None => {
            let home = context.home()?;
            let address = keystore_of(&home)?.address();
            let node = match &args.rpc {
                Some(rpc) => {
                    let chain_id = args.chain.unwrap_or(ChainId::DEV.0);
                    Some(FaucetNode { rpc: rpc.as_str().to_owned(), chain_id, own: false })
                }
                None => {
                    let named = CloudNames::read(context, &home)?;
                    named.faucet(&home, &named.network()?)?
                }
            };
            let node = node.ok_or_else(|| {
                CliError::user("no chain with a faucet is named: ether is sent by hand elsewhere")
                    .hint("give --config with the cloud's configuration, or --rpc URL")
            })?;
            (address, node.rpc, node.chain_id, node.own)
        }
    };
    let address = account.ok_or_else(|| CliError::user("the wallet's file names no address"))?;
    let amount = args.amount.unwrap_or(FUND_ETHER);
    let wei = U256::from(amount.units()) * U256::from(WEI_PER_MILLIONTH);
    let node = FaucetNode { rpc, chain_id, own };
    let funded = runtime()?.block_on(async {
        let client = client([node.rpc.as_str()])?;
        let chain = ChainClient::connect(client, url(&node.rpc)?, node.chain_id).await?;
        Ok::<_, CliError>(chain.fund_gas(address, wei).await?)
    });
    funded.map_err(|failure| node.explain(failure))?;
    let view = FundedGasView { address, wei: wei.to_string() };
    context.format.answer(&FundOutput::Gas(view), || {
        format!("Account {address} got {} ether for gas", amount.decimal())
    })
}

/// Shows the address, and a request of EIP-681 for USDC on its chain that a phone reads.
fn ask_for_funds(
    context: &CommandContext,
    address: Address,
    amount: MicroUsdc,
    network: &PaymentNetwork,
) -> Result<(), CliError> {
    let PaymentNetwork { name, usdc, chain_id, .. } = network;
    let units = amount.units();
    let chain = chain_id.get();
    let uri = format!("ethereum:{usdc}@{chain}/transfer?address={address}&uint256={units}");
    let code = QrCode::new(&uri)
        .map_err(|error| CliError::internal("cannot draw the address", &error))?
        .render::<Dense1x2>()
        .build();
    let view = FundRequestView { address, usdc: amount, uri: uri.clone() };
    context.format.answer(&FundOutput::Request(view), || {
        format!("{code}\n\nSend {amount} on {name} to {address}\n{uri}")
    })
}

/// Checks that credits are sold for so many dollars.
fn check_tier(usd: u32) -> Result<(), CliError> {
    if TIERS_USD.contains(&usd) {
        return Ok(());
    }
    let tiers = TIERS_USD.map(|usd| usd.to_string()).join(", ");
    let what = format!("credits are sold for {tiers} US dollars, not for {usd}");
    Err(CliError::user(what).hint("name one of these amounts"))
}

/// Buys credits: by the automaton itself while it runs, since one process alone may write to
/// its record and hold its wallet.
pub(crate) fn top_up(context: &CommandContext, args: &TopUpArgs) -> Result<(), CliError> {
    check_tier(args.usd)?;
    let (home, file) = context.inhabited()?;
    keystore_of(&home)?;
    if let Some(bought) = ask_to_buy(&home, args)? {
        // silent-ok: without a network that is known no address of an explorer is shown.
        let place = PaymentPlace::find(context, &home, &file, &args.payment).ok();
        let network = place.as_ref().map(|place| &place.network);
        return show_purchase(context, args.usd, network, &bought);
    }
    let place = PaymentPlace::find(context, &home, &file, &args.payment)?.with_cloud()?;
    args.payment.passphrase.check(context, &home_of(&home))?;
    let _lock = home::lock(&home)?;
    let passphrase = &args.payment.passphrase;
    let bought = with_store(&home, async |store: &Store| {
        let (treasury, mut signer) = open(context, store, &home, &place, passphrase, &[]).await?;
        let bought = treasury.buy(args.usd).await;
        // The signer ends when its socket is closed.
        drop(treasury);
        signer.wait_timeout(SIGNER_ENDS_WITHIN)?;
        Ok(bought?)
    })?;
    let TopUpOutcome { id, usd, amount, transaction, settled, held_up } = bought;
    let bought = PurchaseReport { payment: id, usd, amount, transaction, settled, held_up };
    show_purchase(context, args.usd, Some(&place.network), &bought)
}

/// Has the automaton of a home buy, if it runs.
///
/// # Errors
/// When it refuses or does not answer, or flags name another cloud or chain than its own.
fn ask_to_buy(home: &Path, args: &TopUpArgs) -> Result<Option<PurchaseReport>, CliError> {
    let asked = match control::ask(home, &ControlRequest::Status) {
        Err(ControlError::NotRunning) => return Ok(None),
        _ if args.payment.names_a_place() => {
            let what = "the automaton runs, and buys with the cloud and the chain that it has";
            return Err(CliError::user(what).hint(
                "leave out --cloud, --rpc, --network, --chain and --usdc, or stop it before",
            ));
        }
        _ => control::ask_within(home, &ControlRequest::TopUp { usd: args.usd }, PURCHASE_MAX),
    };
    match asked {
        Ok(ControlResponse::Bought(bought)) => Ok(Some(bought)),
        Ok(other) => Err(control::unexpected(other)),
        Err(silence) => Err(CliError::from(silence)
            .hint("ask again: a purchase that was begun is gone on with, and paid for once")),
    }
}

/// Shows a purchase of credits.
fn show_purchase(
    context: &CommandContext,
    wanted: u32,
    network: Option<&PaymentNetwork>,
    bought: &PurchaseReport,
) -> Result<(), CliError> {
    let PurchaseReport { payment, usd, amount, transaction, settled, held_up } = bought;
    let receipt = PurchaseReceiptView {
        payment: payment.to_string(),
        paid_usdc: *amount,
        transaction: transaction.clone(),
        settled: *settled,
        credits_usd: *usd,
        held_up: held_up.clone(),
    };
    context.format.answer(&receipt, || {
        let standing = match (settled, held_up) {
            (true, _) => String::new(),
            (false, None) => ", accepted but not confirmed yet".to_owned(),
            (false, Some(why)) => {
                format!(", accepted, but the cloud cannot settle it now: {}", plain(why))
            }
        };
        let seen = |hash| network.and_then(|it| it.transaction_url(hash));
        let seen = |hash| seen(hash).map(|url| format!(", {url}")).unwrap_or_default();
        let by = |hash| format!("\nTransaction {}{}", plain(hash), seen(hash));
        let by = transaction.as_deref().map(by).unwrap_or_default();
        let told = format!("${usd}.00 of credits for {amount}{standing}{by}\nPayment {payment}");
        if *usd == wanted {
            return format!("Bought {told}");
        }
        let when = if *settled { "to buy them now" } else { "when this one is over" };
        format!(
            "Went on with the purchase that was open: {told}\n${wanted}.00 of credits were not \
             begun: run `automaton topup {wanted}` again {when}"
        )
    })
}

/// The encrypted key of an automaton.
///
/// # Errors
/// When it has none, or the file is no keystore.
pub(super) fn keystore_of(automaton: &Path) -> Result<Keystore, CliError> {
    let path = home_of(automaton);
    if !path.exists() {
        if !automaton.join(FILE_NAME).exists() {
            return Err(home::no_automaton(automaton));
        }
        let what = format!("the automaton in {} has no wallet", automaton.display());
        return Err(CliError::user(what).hint("make one with `automaton wallet new`"));
    }
    Ok(Keystore::read(&SignerHome::open(&path)?.keystore())?)
}

/// Opens the one door to the wallet: signer, chain and cloud.
pub(super) async fn open(
    context: &CommandContext,
    store: &Store,
    home: &Path,
    place: &PaymentPlace,
    passphrase: &PassphraseArgs,
    spelled: &[String],
) -> Result<(Treasury, Child), CliError> {
    let PaymentPlace { cloud, rpc, network, .. } = place;
    // Whoever pays a seller alone asks no cloud.
    let cloud = cloud.as_deref().unwrap_or(CONWAY_URL);
    let token = network.token();
    let config = SignerLaunchConfig {
        home: home_of(home),
        passphrase: passphrase.location(context, &home_of(home))?,
        tokens: vec![TokenLaunchConfig::from(network)],
        ..SignerLaunchConfig::default()
    };
    let spelled = spelled.iter().map(String::as_str);
    let client = client(spelled.chain([cloud, rpc.as_str()]))?;
    let chain = ChainClient::connect(client.clone(), url(rpc)?, network.chain_id.get()).await;
    let chain = chain.map_err(|error| place.explain(error.into()))?;
    let chain = chain.confirmed_by(network.confirmations.get());
    // silent-ok: where it is unknown, no time passed since the last payment.
    let chain_time = chain.time().await.ok();
    let config = SignerLaunchConfig { chain_time, ..config };
    let signer = signer::start(&executable()?, &config)?;
    let payment_context = PaymentContext {
        cloud: CloudClient::new(client.clone(), cloud)?,
        net: client,
        origin: origin(cloud)?.to_string(),
        key: None,
        signer: SignerClient::open(signer.socket).await?,
        chain,
        token,
    };
    let around = TreasuryDeps {
        ids: id_generator(),
        boot: Arc::new(SystemBootClock),
        faults: Arc::new(NoFaults),
        events: Arc::new(NoEvents),
    };
    Ok((Treasury::new(store.clone(), payment_context, around), signer.child))
}
