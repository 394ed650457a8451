//! `provision`, `credits`: an account with a cloud, and what is on it.

use automaton_client::CloudClient;
use automaton_core::money::Microcents;
use automaton_core::time::{Clock, SystemClock};
use automaton_wallet::SignerClient;

use super::CommandContext;
use super::payment::{CloudKey, CloudNames};
use super::wallet::{SIGNER_ENDS_WITHIN, keystore_of};
use crate::account::{ApiAccount, KEY_FILE};
use crate::args::{ProvisionArgs, RemoteFlags};
use crate::error::CliError;
use crate::http::{client, origin};
use crate::process::{executable, runtime};
use crate::role::signer::{self, SignerLaunchConfig, home_of};
use crate::ui::units::or_unknown;
use crate::view::wallet::AccountView;

/// Signs in to a cloud, and keeps the key that it gives.
pub(crate) fn run(context: &CommandContext, args: &ProvisionArgs) -> Result<(), CliError> {
    let (home, file) = context.inhabited()?;
    keystore_of(&home)?;
    let flags = RemoteFlags { cloud: args.cloud.clone(), ..RemoteFlags::default() };
    let url = CloudNames::new(context, &home, &file, &flags)?.cloud()?;
    let url = url.as_str();
    let cloud = CloudClient::new(client([url])?, url)?;
    let audience = cloud.audience()?;
    args.passphrase.check(context, &home_of(&home))?;
    let config = SignerLaunchConfig {
        home: home_of(&home),
        passphrase: args.passphrase.location(context, &home_of(&home))?,
        audiences: vec![(audience.domain, audience.uri, args.chain)],
        ..SignerLaunchConfig::default()
    };
    let (address, account) = runtime()?.block_on(async {
        let mut signer = signer::start(&executable()?, &config)?;
        let client = SignerClient::open(signer.socket).await?;
        let now = SystemClock.now();
        let account = ApiAccount::open(&cloud, url, &client, now, args.chain).await?;
        let address = client.address();
        // The signer ends when its socket is closed.
        drop(client);
        signer.child.wait_timeout(SIGNER_ENDS_WITHIN)?;
        Ok::<_, CliError>((address, account))
    })?;
    account.write(&home)?;
    let cloud = origin(url)?.to_string();
    let path = home.join(KEY_FILE);
    let view = AccountView { cloud: cloud.clone(), address, key: path.clone() };
    context.format.answer(&view, || {
        format!("Wallet {address} has an account with {cloud}; its key is in {}", path.display())
    })
}

/// The cloud at a URL.
///
/// # Errors
/// When it is none.
pub(super) fn client_of(url: &str) -> Result<CloudClient, CliError> {
    Ok(CloudClient::new(client([url])?, url)?)
}

/// Shows what is on the account.
pub(crate) fn credits(context: &CommandContext) -> Result<(), CliError> {
    let (home, file) = context.inhabited()?;
    let found = CloudKey::find(context, &home, &file)?;
    let CloudKey { cloud: url, key, .. } = &found;
    let cloud = client_of(url)?;
    let balance = runtime()?.block_on(cloud.balance(key));
    let balance = balance.map_err(|error| found.explain(error.into()))?;
    let cents = balance.cents();
    context.format.answer(&balance, || {
        let credits = cents.and_then(|cents| Microcents::from_cents(cents).ok());
        format!("Balance: {} of credits with {url}", or_unknown(credits))
    })
}
