//! `provision`, `credits`: an account with a cloud, and what is on it.
//!
//! The wallet signs in, and the cloud gives an API key for it. The key rests in
//! a file of the home that only its owner can read, together with the origin
//! that it is for: it must never be sent to another one.

use std::fs;
use std::io;
use std::path::Path;

use automaton_client::Cloud;
use automaton_core::secret::Secret;
use automaton_core::time::{Clock, SystemClock};
use automaton_wallet::Purse;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Context;
use super::live::{executable, runtime};
use super::wallet::{SIGNER_ENDS_WITHIN, client, cloud_of, keystore_of, origin};
use crate::args::ProvisionArgs;
use crate::error::Failure;
use crate::home;
use crate::role::signer::{self, SignerCharter, home_of};

/// What the key is called at the cloud.
const KEY_NAME: &str = "conway-automaton";
/// The file of the home that holds it.
const KEY_FILE: &str = "cloud-key.json";

/// An API key, and whom it is for.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    cloud: String,
    key: String,
}

/// Signs in to a cloud, and keeps the key that it gives.
pub(crate) fn run(context: &Context, args: &ProvisionArgs) -> Result<(), Failure> {
    let (home, file) = context.inhabited()?;
    let url = cloud_of(args.cloud.as_ref(), &file)?;
    keystore_of(&home)?;
    let cloud = Cloud::new(client([url.as_str()])?, url.as_str())?;
    let audience = cloud.audience()?;
    let charter = SignerCharter {
        home: home_of(&home),
        passphrase_file: args.passphrase_file.clone(),
        tokens: Vec::new(),
        audiences: vec![(audience.domain, audience.uri, args.chain)],
    };
    let (address, key) = runtime()?.block_on(async {
        let mut signer = signer::start(&executable()?, &charter)?;
        let purse = Purse::open(signer.socket).await?;
        let (nonce, now) = (cloud.nonce().await?, SystemClock.now());
        let message = cloud.sign_in(purse.address(), nonce, now, args.chain)?;
        let signature = purse.sign_in(&message).await?;
        // The signer ends when its socket is closed.
        drop(purse);
        signer.child.wait_timeout(SIGNER_ENDS_WITHIN)?;
        let token = cloud.verify(&message, &signature).await?;
        Ok::<_, Failure>((message.address, cloud.create_key(&token, KEY_NAME).await?))
    })?;
    keep(&home, &KeyFile { cloud: url.as_str().to_owned(), key: key.reveal().to_owned() })?;
    let (cloud, path) = (origin(url.as_str())?.to_string(), home.join(KEY_FILE));
    context.format.answer(&json!({ "cloud": cloud, "address": address, "key": path }), || {
        format!("{address} has an account with {cloud}; its key is in {}", path.display())
    })
}

/// Shows what is on the account.
pub(crate) fn credits(context: &Context) -> Result<(), Failure> {
    let (home, _) = context.inhabited()?;
    let KeyFile { cloud: url, key } = read(&home)?;
    let cloud = Cloud::new(client([url.as_str()])?, &url)?;
    let balance = runtime()?.block_on(cloud.balance(&Secret::new(key)))?;
    let cents = balance.cents();
    context.format.answer(&balance, || {
        cents.map_or_else(|| "unknown".to_owned(), |cents| format!("{cents} cents"))
    })
}

fn keep(home: &Path, file: &KeyFile) -> Result<(), Failure> {
    let text = serde_json::to_vec(file)
        .map_err(|error| Failure::internal("cannot write the cloud's key", &error))?;
    home::write_atomically(&home.join(KEY_FILE), &text, 0o600)
}

fn read(home: &Path) -> Result<KeyFile, Failure> {
    let path = home.join(KEY_FILE);
    let text = fs::read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::user("the automaton has no account with a cloud")
            .hint("make one with `automaton provision --cloud URL`"),
        _ => Failure::user(format!("cannot read {}", path.display())).because(&error),
    })?;
    serde_json::from_slice(&text).map_err(|error| {
        Failure::user(format!("{} is no key of a cloud", path.display()))
            .because(&error)
            .hint("make a new one with `automaton provision`")
    })
}
