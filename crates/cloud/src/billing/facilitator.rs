//! Pure: payments: what we ask for, and what we take.
//!
//! Chain, token, payee and price come from our own configuration; of a payment
//! everything is compared with them before anything is stored. Codes of refusal
//! are those that x402's SDKs emit.

use alloy_primitives::{Address, B256, Signature, U256};
use automaton_core::money::MicroUsdc;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::facilitator::{
    FacilitatorRequest, PaymentRequirements, SupportedKind,
};
use automaton_core::wire::x402::{
    Authorization, ChainId, EXACT, ExactPayload, Extra, PaymentPayload, TokenDomain, atomic,
    identifier, v1, v2,
};

/// The shortest remaining validity of an authorization, in seconds: time for a transaction to reach
/// a block.
const VALID_SECS_MIN: u64 = 6;

/// The reason why a payment is refused: a code of x402's SDKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentRefusal(pub &'static str);

/// The nonce of the authorization was used before.
pub const NONCE_USED: PaymentRefusal = PaymentRefusal("invalid_exact_evm_nonce_already_used");
/// The payer has too little.
pub const INSUFFICIENT_BALANCE: PaymentRefusal =
    PaymentRefusal("invalid_exact_evm_insufficient_balance");
/// The simulation of the transfer failed.
pub const SIMULATION_FAILED: PaymentRefusal =
    PaymentRefusal("invalid_exact_evm_transaction_simulation_failed");
/// The transfer is in a block and did nothing.
pub const TRANSACTION_FAILED: PaymentRefusal =
    PaymentRefusal("invalid_exact_evm_transaction_failed");
/// The authorization ends too soon, or has ended.
pub const VALID_BEFORE: PaymentRefusal =
    PaymentRefusal("invalid_exact_evm_payload_authorization_valid_before");

/// The seller asks for what is no payment at all.
const REQUIREMENTS: PaymentRefusal = PaymentRefusal("invalid_payment_requirements");
/// Another scheme than `exact`.
const SCHEME: PaymentRefusal = PaymentRefusal("invalid_exact_evm_scheme");
/// Another chain.
const NETWORK: PaymentRefusal = PaymentRefusal("invalid_exact_evm_network_mismatch");
/// Another payee.
const RECIPIENT: PaymentRefusal = PaymentRefusal("invalid_exact_evm_recipient_mismatch");
/// Another amount.
const VALUE: PaymentRefusal = PaymentRefusal("invalid_exact_evm_authorization_value");
/// Another token.
const ASSET: PaymentRefusal = PaymentRefusal("invalid_exact_evm_eip3009_not_supported");
/// Another way to authorize a transfer.
const METHOD: PaymentRefusal = PaymentRefusal("unsupported_payload_type");

/// The terms of payment.
#[derive(Debug, Clone)]
pub struct PaymentTerms {
    /// The token, with its chain.
    pub token: TokenDomain,
    /// The recipient of payments.
    pub pay_to: Address,
    /// The validity of an authorization, in seconds, at most 300.
    pub timeout_secs: u64,
}

/// An offer for sale.
#[derive(Debug, Clone)]
pub struct SaleOffer {
    /// The URL of the purchase.
    pub url: String,
    /// The description of the thing for sale.
    pub description: String,
    /// The media type of the answer.
    pub mime_type: &'static str,
    /// The recipient of the payment.
    pub pay_to: Address,
    /// The price.
    pub price: MicroUsdc,
}

impl SaleOffer {
    /// Returns the price of credits for a number of US dollars, in base units of USDC.
    #[must_use]
    pub fn price_of(usd: u32) -> MicroUsdc {
        MicroUsdc::new(u64::from(usd) * 1_000_000)
    }
}

impl PaymentTerms {
    /// The demand of version 1, for the body.
    #[must_use]
    pub fn demand_v1(&self, offer: &SaleOffer, error: &str) -> v1::PaymentRequiredV1 {
        let one = v1::PaymentRequirementsV1 {
            scheme: EXACT.to_owned(),
            network: self.token.chain.v1_name(),
            max_amount_required: offer.price.units().to_string(),
            asset: self.token.contract.to_string(),
            pay_to: offer.pay_to.to_string(),
            resource: offer.url.clone(),
            description: offer.description.clone(),
            mime_type: offer.mime_type.to_owned(),
            max_timeout_seconds: self.timeout_secs,
            extra: Some(self.extra()),
        };
        v1::PaymentRequiredV1 { version: v1::VERSION, error: error.to_owned(), accepts: vec![one] }
    }

    /// The demand of version 2, for the header.
    #[must_use]
    pub fn demand_v2(&self, offer: &SaleOffer, error: &str) -> v2::PaymentRequiredV2 {
        v2::PaymentRequiredV2 {
            version: v2::VERSION,
            error: Some(error.to_owned()),
            resource: v2::ResourceInfo {
                url: offer.url.clone(),
                description: Some(offer.description.clone()),
                mime_type: Some(offer.mime_type.to_owned()),
            },
            accepts: vec![self.requirements_v2(offer)],
            extensions: Some(identifier::offered()),
        }
    }

    fn requirements_v2(&self, offer: &SaleOffer) -> v2::PaymentRequirementsV2 {
        v2::PaymentRequirementsV2 {
            scheme: EXACT.to_owned(),
            network: self.token.chain.to_string(),
            amount: offer.price.units().to_string(),
            asset: self.token.contract.to_string(),
            pay_to: offer.pay_to.to_string(),
            max_timeout_seconds: self.timeout_secs,
            extra: Some(self.extra()),
        }
    }

    fn extra(&self) -> Extra {
        Extra {
            name: Some(self.token.name.clone()),
            version: Some(self.token.version.clone()),
            asset_transfer_method: None,
        }
    }

    /// Compares a payment with what we ask for. What only the chain knows, the
    /// nonce and the balance, is left to the caller.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(
        &self,
        payment: &PaymentPayload,
        offer: &SaleOffer,
        now: Timestamp,
    ) -> Result<(), PaymentRefusal> {
        let due = ExpectedPayment { payee: offer.pay_to, amount: U256::from(offer.price.units()) };
        self.check_named(payment)?;
        if let PaymentPayload::V2(payment) = payment {
            self.check_demand(RequirementsView::from(&payment.accepted), due)?;
        }
        self.check_signed(payment.payload(), due)?;
        self.check_time(&payment.payload().authorization, now)
    }

    /// Compares a payment with what another seller asks for: the seller names payee and
    /// amount, chain and token are ours. Returns the amount. The time is left to
    /// [`check_time`](Self::check_time).
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check_for(&self, request: &FacilitatorRequest) -> Result<MicroUsdc, PaymentRefusal> {
        let (version, demand) = match &request.payment_requirements {
            PaymentRequirements::V1(demand) => (v1::VERSION, RequirementsView::from(demand)),
            PaymentRequirements::V2(demand) => (v2::VERSION, RequirementsView::from(demand)),
        };
        let same = match &request.payment_payload {
            PaymentPayload::V1(payment) => payment.version == version && version == v1::VERSION,
            PaymentPayload::V2(payment) => payment.version == version && version == v2::VERSION,
        };
        if !same || request.version != version {
            return Err(PaymentRefusal("invalid_x402_version"));
        }
        // silent-ok: a payee that is no address and an amount in other than digits
        // are nobody's demand.
        let payee: Option<Address> = demand.pay_to.parse().ok();
        let payee = payee.ok_or(REQUIREMENTS)?;
        let amount = atomic(demand.amount).ok_or(REQUIREMENTS)?;
        let units: u64 = amount.try_into().map_err(|_| REQUIREMENTS)?;
        let due = ExpectedPayment { payee, amount };
        if units == 0 || units > i64::MAX.unsigned_abs() {
            return Err(REQUIREMENTS);
        }
        self.check_named(&request.payment_payload)?;
        self.check_demand(demand, due)?;
        self.check_domain(demand.extra)?;
        if let PaymentPayload::V2(payment) = &request.payment_payload {
            self.check_demand(RequirementsView::from(&payment.accepted), due)?;
        }
        self.check_signed(request.payment_payload.payload(), due)?;
        Ok(MicroUsdc::new(units))
    }

    /// Checks that an authorization is valid now, and long enough for a transaction to
    /// reach a block.
    ///
    /// # Errors
    /// Fails if it is valid at another time.
    pub fn check_time(
        &self,
        authorization: &Authorization,
        now: Timestamp,
    ) -> Result<(), PaymentRefusal> {
        let now = U256::from(now.as_millis().max(0).unsigned_abs() / 1000);
        if authorization.valid_before < now + U256::from(VALID_SECS_MIN) {
            return Err(VALID_BEFORE);
        }
        if authorization.valid_after > now {
            return Err(PaymentRefusal("invalid_exact_evm_payload_authorization_valid_after"));
        }
        Ok(())
    }

    /// Returns whether the payer signed exactly this authorization, for our token.
    #[must_use]
    pub fn is_signed(&self, payload: &ExactPayload) -> bool {
        let digest = self.token.transfer_digest(&payload.authorization);
        signer(&payload.signature, digest) == Some(payload.authorization.from)
    }

    /// Returns the kinds of payments that we settle for others, in both versions.
    #[must_use]
    pub fn ways(&self) -> Vec<SupportedKind> {
        let way = |version, network| SupportedKind {
            version,
            scheme: EXACT.to_owned(),
            network,
            extra: Some(self.extra()),
        };
        let chain = self.token.chain;
        vec![way(v1::VERSION, chain.v1_name()), way(v2::VERSION, chain.to_string())]
    }

    /// The payment names the scheme and the chain.
    fn check_named(&self, payment: &PaymentPayload) -> Result<(), PaymentRefusal> {
        let (scheme, network) = match payment {
            PaymentPayload::V1(payment) => (&payment.scheme, &payment.network),
            PaymentPayload::V2(payment) => (&payment.accepted.scheme, &payment.accepted.network),
        };
        self.check_way(scheme, network)
    }

    /// The scheme is ours, and the chain.
    fn check_way(&self, scheme: &str, network: &str) -> Result<(), PaymentRefusal> {
        if scheme != EXACT {
            return Err(SCHEME);
        }
        if ChainId::parse(network) != Some(self.token.chain) {
            return Err(NETWORK);
        }
        Ok(())
    }

    /// Checks that the demanded or accepted terms name our token and the expected amount.
    fn check_demand(
        &self,
        demand: RequirementsView<'_>,
        due: ExpectedPayment,
    ) -> Result<(), PaymentRefusal> {
        // silent-ok: a text that is no address is not the one.
        let is = |text: &str, address: Address| text.parse().ok() == Some(address);
        self.check_way(demand.scheme, demand.network)?;
        if atomic(demand.amount) != Some(due.amount) {
            return Err(VALUE);
        }
        if !is(demand.pay_to, due.payee) {
            return Err(RECIPIENT);
        }
        if !is(demand.asset, self.token.contract) {
            return Err(ASSET);
        }
        let method = demand.extra.and_then(|extra| extra.asset_transfer_method.as_deref());
        if method.is_some_and(|method| method != "eip3009") {
            return Err(METHOD);
        }
        Ok(())
    }

    /// The seller knows what the token calls itself.
    fn check_domain(&self, extra: Option<&Extra>) -> Result<(), PaymentRefusal> {
        let named = extra.and_then(|extra| Some((extra.name.as_ref()?, extra.version.as_ref()?)));
        let (name, version) =
            named.ok_or(PaymentRefusal("invalid_exact_evm_missing_eip712_domain"))?;
        if *name != self.token.name {
            return Err(PaymentRefusal("invalid_exact_evm_token_name_mismatch"));
        }
        if *version != self.token.version {
            return Err(PaymentRefusal("invalid_exact_evm_token_version_mismatch"));
        }
        Ok(())
    }

    /// Checks that the authorization pays what is due and that its payer signed it.
    fn check_signed(
        &self,
        payload: &ExactPayload,
        due: ExpectedPayment,
    ) -> Result<(), PaymentRefusal> {
        let authorization = &payload.authorization;
        if authorization.to != due.payee {
            return Err(RECIPIENT);
        }
        if authorization.value != due.amount {
            return Err(VALUE);
        }
        // Recovering under our own domain also says that the payer meant our token.
        if !self.is_signed(payload) {
            return Err(PaymentRefusal("invalid_exact_evm_signature"));
        }
        Ok(())
    }
}

/// The recipient and amount that a payment has to have.
#[derive(Debug, Clone, Copy)]
struct ExpectedPayment {
    payee: Address,
    amount: U256,
}

/// A demand of either version.
#[derive(Debug, Clone, Copy)]
struct RequirementsView<'a> {
    scheme: &'a str,
    network: &'a str,
    amount: &'a str,
    asset: &'a str,
    pay_to: &'a str,
    extra: Option<&'a Extra>,
}

impl<'a> From<&'a v1::PaymentRequirementsV1> for RequirementsView<'a> {
    fn from(demand: &'a v1::PaymentRequirementsV1) -> Self {
        Self {
            scheme: &demand.scheme,
            network: &demand.network,
            amount: &demand.max_amount_required,
            asset: &demand.asset,
            pay_to: &demand.pay_to,
            extra: demand.extra.as_ref(),
        }
    }
}

impl<'a> From<&'a v2::PaymentRequirementsV2> for RequirementsView<'a> {
    fn from(demand: &'a v2::PaymentRequirementsV2) -> Self {
        Self {
            scheme: &demand.scheme,
            network: &demand.network,
            amount: &demand.amount,
            asset: &demand.asset,
            pay_to: &demand.pay_to,
            extra: demand.extra.as_ref(),
        }
    }
}

/// Returns the account that signed a hash; `None` when the signature is none of an account:
/// r, s and v, where v is 27 or 28, or 0 or 1 from some wallets. Each signature has a twin with
/// n − s in the place of s, which tokens refuse (EIP-2): here it is none, too.
#[must_use]
pub fn signer(signature: &[u8], digest: B256) -> Option<Address> {
    let shaped = signature.len() == 65 && matches!(signature[64], 0 | 1 | 27 | 28);
    // silent-ok: a signature that does not recover has no signer.
    let signature = shaped.then(|| Signature::from_raw(signature).ok()).flatten()?;
    if signature.normalize_s().is_some() {
        return None;
    }
    signature.recover_address_from_prehash(&digest).ok()
}

#[cfg(test)]
mod tests;
