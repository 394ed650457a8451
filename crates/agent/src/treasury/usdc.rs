//! Payments in USDC, by whatever they are for: signed once, and over when the chain
//! says so.
//!
//! What was signed can be used by whoever has it until its time is over; so nothing
//! but the chain ends it, and nobody's word is taken for it. There must never be a
//! second signature for a payment.

use automaton_core::error::{Classified, ErrorClass, chain};
use automaton_core::faults::FaultPoint;
use automaton_core::id::PaymentId;
use automaton_core::payment::{Money, NewPayment, Payment, SignedPayment};
use automaton_store::PaymentStep;
use automaton_wallet::SignerClientError;
use automaton_wallet::x402::SelectedOffer;

use super::{PaymentContext, Treasury, TreasuryError};

/// State of a signed authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthorizationStatus {
    /// The money has moved.
    Used,
    /// It was not used, and cannot be any more.
    Void,
    /// It can be used yet.
    Open,
}

impl Treasury {
    /// Has a payment signed that is written down, and stores what was signed.
    pub(super) async fn sign(
        &self,
        id: PaymentId,
        chosen: &SelectedOffer,
    ) -> Result<SignedPayment, TreasuryError> {
        let payment =
            match self.payment_context.signer.pay(id, chosen, &self.payment_context.token).await {
                Ok(payment) => payment,
                // It may have signed, and is asked for the same payment again.
                Err(error) if is_no_response(&error) => return Err(error.into()),
                Err(error) => {
                    let reason = chain(&error).to_string();
                    self.fail(id, reason).await?;
                    return Err(error.into());
                }
            };
        self.reach(FaultPoint::PaymentReceived);
        let nonce = payment.payload.authorization.nonce;
        let (header, value) = chosen
            .offer
            .payment(payment.payload, &id.to_string())
            .map_err(TreasuryError::Encode)?;
        let header = header.to_owned();
        let signed = SignedPayment { header, value, nonce, valid_before: payment.valid_before };
        self.store.store_signed_payment(id, signed.clone()).await?;
        self.reach(FaultPoint::PaymentSigned);
        Ok(signed)
    }

    pub(super) async fn fail(&self, id: PaymentId, reason: String) -> Result<(), TreasuryError> {
        Ok(self.store.advance_payment(id, PaymentStep::Failed(reason)).await?)
    }

    /// Returns the amount on the wallet's own chain.
    pub(super) fn money(&self, chosen: &SelectedOffer) -> Money {
        let PaymentContext { signer, token, .. } = &self.payment_context;
        let asset = token.contract;
        let payer = signer.address();
        Money::Usdc { chain: token.chain.0, asset, payer, amount: chosen.amount }
    }

    /// Returns true if a payment is one of this wallet, on this chain.
    pub(super) fn is_here(&self, payment: &NewPayment) -> bool {
        let PaymentContext { signer, token, .. } = &self.payment_context;
        match payment.money {
            Money::Usdc { chain, asset, payer, .. } => {
                (payer, chain, asset) == (signer.address(), token.chain.0, token.contract)
            }
            Money::Credits { .. } => payment.origin == self.payment_context.origin,
        }
    }

    /// Returns true if the chain has seen a payment.
    pub(super) async fn used(
        &self,
        payment: &NewPayment,
        signed: &SignedPayment,
    ) -> Result<bool, TreasuryError> {
        let Money::Usdc { asset, payer, .. } = payment.money else { return Ok(false) };
        Ok(self.payment_context.chain.authorization(asset, payer, signed.nonce).await?.used)
    }

    /// Returns the state of a payment, by state and time of one block: no later block can use a
    /// payment that this one shows as unused and expired. Our clock has no influence.
    async fn authorization_status(
        &self,
        payment: &NewPayment,
        signed: &SignedPayment,
    ) -> Result<AuthorizationStatus, TreasuryError> {
        let Money::Usdc { asset, payer, .. } = payment.money else {
            return Ok(AuthorizationStatus::Open);
        };
        let seen = self.payment_context.chain.authorization(asset, payer, signed.nonce).await?;
        Ok(match (seen.used, seen.at >= signed.valid_before) {
            (true, _) => AuthorizationStatus::Used,
            (false, true) => AuthorizationStatus::Void,
            (false, false) => AuthorizationStatus::Open,
        })
    }

    /// Brings what was signed to its end where the chain has one; what it is then.
    pub(super) async fn close(
        &self,
        payment: &Payment,
        signed: &SignedPayment,
    ) -> Result<AuthorizationStatus, TreasuryError> {
        let status = self.authorization_status(&payment.terms, signed).await?;
        let step = match status {
            AuthorizationStatus::Used => PaymentStep::Settled(payment.transaction.clone()),
            AuthorizationStatus::Void => PaymentStep::Expired,
            AuthorizationStatus::Open => return Ok(status),
        };
        self.store.advance_payment(payment.id, step).await?;
        if status == AuthorizationStatus::Used {
            self.reach(FaultPoint::PaymentBooked);
        }
        Ok(status)
    }
}

/// Returns true if the signer did not answer, rather than refuse.
fn is_no_response(error: &SignerClientError) -> bool {
    error.kind() == ErrorClass::Transient || matches!(error, SignerClientError::Cut)
}
