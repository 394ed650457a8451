//! The money, over the treasury's one door.
//!
//! A purchase that takes long goes on behind the door when the call is over; it
//! must never be cancelled with it.

use std::sync::Arc;

use automaton_core::error::ErrorClass;
use automaton_core::money::MicroUsdc;
use automaton_core::payment::PaymentReason;
use automaton_net::{Header, HttpMethod, HttpRequest};
use automaton_tools::HandleError;
use automaton_tools::context::{
    self, Balances, CreditTransferRequest, FetchResult, HandleFuture, TopUpReceipt, WebMethod,
    WebRequest,
};

use crate::treasury::{FetchOutcome, PaidFetch, Treasury};

/// The money of one automaton, if it has any.
pub(crate) struct OptionalTreasury(Option<Arc<Treasury>>);

impl OptionalTreasury {
    pub(super) const fn new(treasury: Option<Arc<Treasury>>) -> Self {
        Self(treasury)
    }

    /// The treasury. Its tools are not offered where there is none.
    fn treasury(&self) -> Result<&Arc<Treasury>, HandleError> {
        let none = || HandleError {
            kind: ErrorClass::User,
            message: "there is no wallet".to_owned(),
            hint: None,
        };
        self.0.as_ref().ok_or_else(none)
    }
}

impl context::TreasuryHandle for OptionalTreasury {
    fn balances(&self) -> HandleFuture<'_, Balances> {
        Box::pin(async move { Ok(self.treasury()?.balances().await) })
    }

    fn top_up(&self, usd: u32, cause: PaymentReason) -> HandleFuture<'_, TopUpReceipt> {
        Box::pin(async move {
            let treasury = self.treasury()?;
            let bought = treasury.buy_with_timeout(usd, cause).await;
            let bought = bought.map_err(|error| HandleError::from_error(&error))?;
            let balances = treasury.balances().await;
            let usd = bought.usd;
            let paid = bought.amount;
            let settled = bought.settled;
            Ok(TopUpReceipt { usd, paid, settled, balances })
        })
    }

    fn transfer(
        &self,
        gift: CreditTransferRequest,
        cause: PaymentReason,
    ) -> HandleFuture<'_, context::TransferReceipt> {
        Box::pin(async move {
            let treasury = self.treasury()?;
            let to = gift.to.parse().map_err(|_| unfit(&gift.to, "is no address"))?;
            let given = treasury.transfer(to, gift.cents, cause).await;
            let given = given.map_err(|error| HandleError::from_error(&error))?;
            let balances = treasury.balances().await;
            let to = given.to.to_string();
            let amount = given.amount;
            let transfer = given.transfer;
            Ok(context::TransferReceipt { to, amount, transfer, balances })
        })
    }

    fn fetch(&self, request: WebRequest, cause: PaymentReason) -> HandleFuture<'_, FetchResult> {
        Box::pin(async move {
            let treasury = self.treasury()?;
            let brought = treasury.fetch(errand(request, cause)?).await;
            let FetchOutcome { reply, paid } =
                brought.map_err(|error| HandleError::from_error(&error))?;
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            let paid = paid.map(|paid| (paid.amount, paid.settled));
            Ok(FetchResult { status: reply.status, body, paid })
        })
    }
}

fn unfit(what: &str, why: &str) -> HandleError {
    let what: String = what.chars().filter(|letter| !letter.is_control()).take(80).collect();
    HandleError { kind: ErrorClass::User, message: format!("'{what}' {why}"), hint: None }
}

fn errand(asked: WebRequest, cause: PaymentReason) -> Result<PaidFetch, HandleError> {
    let url = asked.url.parse().map_err(|_| unfit(&asked.url, "is no URL"))?;
    let method = match asked.verb {
        WebMethod::Get => HttpMethod::Get,
        WebMethod::Post => HttpMethod::Post,
        WebMethod::Put => HttpMethod::Put,
        WebMethod::Patch => HttpMethod::Patch,
        WebMethod::Delete => HttpMethod::Delete,
    };
    let mut request = HttpRequest::new(method, url);
    let named = |(name, value)| Header::Named(name, value);
    request.headers = asked.headers.into_iter().map(named).collect();
    request.body = asked.body.into_bytes();
    let cap = MicroUsdc::from_cents(asked.cap_cents)
        .map_err(|_| unfit(&asked.cap_cents.to_string(), "cents are more than there are"))?;
    Ok(PaidFetch { request, cap, why: cause })
}
