//! `x402 fetch`: a request by the creator's hand, paid from the wallet if it asks.
//!
//! The creator spells the server out, so it may be paid, and may be on this machine.
//! What is paid is bound by the cap and by the signer's ceilings all the same.

use std::io::Write as _;

use automaton_agent::treasury::{FetchOutcome, PaidFetch};
use automaton_core::money::MicroUsdc;
use automaton_core::payment::PaymentReason;
use automaton_core::wire::control::ControlRequest;
use automaton_net::{Header, HttpMethod, HttpRequest};
use automaton_policy::PaymentLimits;
use automaton_store::Store;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::payment::PaymentPlace;
use super::wallet::{SIGNER_ENDS_WITHIN, keystore_of, open};
use super::{CommandContext, with_store};
use crate::args::{PaymentArgs, usdc};
use crate::config::values::HttpUrl;
use crate::control;
use crate::error::CliError;
use crate::home;
use crate::http::{origin, url};
use crate::role::signer::home_of;

/// Commands for x402.
#[derive(Debug, Subcommand)]
pub(crate) enum X402Command {
    /// Request a URL, and pay for it once if it asks for no more than that
    Fetch(FetchArgs),
}

/// Arguments of `x402 fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// URL to request
    pub(crate) url: HttpUrl,
    /// The most that it may cost, in USDC
    #[arg(long, value_name = "USDC", default_value = "1", value_parser = usdc)]
    pub(crate) max: MicroUsdc,
    /// A body of JSON, which is posted
    #[arg(long, value_name = "JSON")]
    pub(crate) post: Option<String>,
    /// Means of payment.
    #[command(flatten)]
    pub(crate) payment: PaymentArgs,
}

/// Response, as `--json` prints it.
#[derive(Serialize)]
struct FetchView {
    status: u16,
    payment: Option<String>,
    paid_usdc: Option<MicroUsdc>,
    settled: Option<bool>,
    body: String,
}

/// Does what was asked.
pub(crate) fn run(context: &CommandContext, command: &X402Command) -> Result<(), CliError> {
    let X402Command::Fetch(args) = command;
    let (home, file) = context.inhabited()?;
    keystore_of(&home)?;
    if control::ask(&home, &ControlRequest::Status).is_ok() {
        let what = "the automaton runs, and one process alone may hold its wallet and write to its \
                    record; the cap of this request and its server are yours, and a running \
                    automaton keeps to the limits that it was started with";
        return Err(CliError::user(what).hint(
            "end it with `automaton stop` before, or have it make the request: \
             `automaton send \"Fetch URL\"`, with the host in `x402AllowedDomains`",
        ));
    }
    let errand = errand(args)?;
    let limits = limits(args)?;
    let place = PaymentPlace::find(context, &home, &file, &args.payment)?;
    args.payment.passphrase.check(context, &home_of(&home))?;
    let _lock = home::lock(&home)?;
    let FetchOutcome { reply, paid } = with_store(&home, async |store: &Store| {
        let spelled = limits.x402_hosts.clone();
        let (treasury, mut signer) =
            open(context, store, &home, &place, &args.payment.passphrase, &spelled).await?;
        let treasury = treasury.with_limits(limits)?;
        let brought = treasury.fetch(errand).await;
        // The signer ends when its socket is closed.
        drop(treasury);
        signer.wait_timeout(SIGNER_ENDS_WITHIN)?;
        Ok(brought?)
    })?;
    let shown = FetchView {
        status: reply.status,
        payment: paid.map(|paid| paid.id.to_string()),
        paid_usdc: paid.map(|paid| paid.amount),
        settled: paid.map(|paid| paid.settled),
        body: String::from_utf8_lossy(&reply.body).into_owned(),
    };
    let told = match paid {
        Some(paid) if paid.settled => format!("paid {} (payment {})", paid.amount, paid.id),
        Some(paid) => format!("paid {}, not confirmed yet (payment {})", paid.amount, paid.id),
        None => "nothing was paid".to_owned(),
    };
    crate::ui::say(&format!("status {}, {told}", shown.status));
    match context.format {
        crate::ui::Format::Json => context.format.answer(&shown, String::new),
        // The body is data, whatever it holds, but for a terminal.
        crate::ui::Format::Text => {
            let written =
                std::io::stdout().write_all(&crate::ui::fit(&std::io::stdout(), &reply.body));
            written.map_err(|error| CliError::internal("cannot write the answer", &error))
        }
    }
}

fn errand(args: &FetchArgs) -> Result<PaidFetch, CliError> {
    let method = if args.post.is_some() { HttpMethod::Post } else { HttpMethod::Get };
    let mut request = HttpRequest::new(method, url(args.url.as_str())?);
    if let Some(body) = &args.post {
        request.headers.push(Header::Open("content-type", "application/json".to_owned()));
        request.body = body.clone().into_bytes();
    }
    let why = PaymentReason::auto_topup(&format!("the creator requests {}", args.url.as_str()));
    Ok(PaidFetch { request, cap: args.max, why })
}

/// The creator's own cap, for this server alone, without asking or keeping back, and
/// whatever else was spent lately.
fn limits(args: &FetchArgs) -> Result<PaymentLimits, CliError> {
    let none = automaton_core::money::Microcents::ZERO;
    let cap = args.max.face_value().map_err(|error| CliError::user("--max").because(&error))?;
    let x402_hosts = vec![origin(args.url.as_str())?.to_string()];
    let most = automaton_core::money::Microcents::new(i64::MAX);
    Ok(PaymentLimits {
        x402_max: cap,
        x402_hour: most,
        x402_day: most,
        x402_hosts,
        reserve: none,
        ask_above: cap,
        ..PaymentLimits::default()
    })
}
