//! Payments in USDC, by whatever they are for: signed once, and over when the chain
//! says so.
//!
//! What was signed can be used by whoever has it until its time is over; so nothing
//! but the chain ends it, and nobody's word is taken for it. There must never be a
//! second signature for a payment.

use automaton_core::error::{Classified, Kind, chain};
use automaton_core::faults::FaultPoint;
use automaton_core::id::IntentId;
use automaton_core::spend::{Money, NewSpend, SignedSpend, Spend};
use automaton_store::SpendStep;
use automaton_wallet::PurseError;
use automaton_wallet::x402::Chosen;

use super::{Till, Treasury, TreasuryError};

/// What became of something that was signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
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
        id: IntentId,
        chosen: &Chosen,
    ) -> Result<SignedSpend, TreasuryError> {
        let payment = match self.till.purse.pay(id, chosen, &self.till.token).await {
            Ok(payment) => payment,
            // It may have signed, and is asked for the same payment again.
            Err(error) if is_silence(&error) => return Err(error.into()),
            Err(error) => {
                let reason = chain(&error).to_string();
                self.fail(id, reason).await?;
                return Err(error.into());
            }
        };
        self.reach(FaultPoint::SpendReceived);
        let nonce = payment.payload.authorization.nonce;
        let (header, value) = chosen
            .offer
            .payment(payment.payload, &id.to_string())
            .map_err(TreasuryError::Encode)?;
        let header = header.to_owned();
        let signed = SignedSpend { header, value, nonce, valid_before: payment.valid_before };
        self.store.spend_signed(id, signed.clone()).await?;
        self.reach(FaultPoint::SpendSigned);
        Ok(signed)
    }

    pub(super) async fn fail(&self, id: IntentId, reason: String) -> Result<(), TreasuryError> {
        Ok(self.store.step_spend(id, SpendStep::Failed(reason)).await?)
    }

    /// What is paid with, on the wallet's own chain.
    pub(super) fn money(&self, chosen: &Chosen) -> Money {
        let Till { purse, token, .. } = &self.till;
        let (asset, payer) = (token.contract, purse.address());
        Money::Usdc { chain: token.chain.0, asset, payer, amount: chosen.amount }
    }

    /// Whether a payment is one of this wallet, on this chain.
    pub(super) fn is_here(&self, spend: &NewSpend) -> bool {
        let Till { purse, token, .. } = &self.till;
        match spend.money {
            Money::Usdc { chain, asset, payer, .. } => {
                (payer, chain, asset) == (purse.address(), token.chain.0, token.contract)
            }
            Money::Credits { .. } => spend.origin == self.till.origin,
        }
    }

    /// Whether the chain has seen a payment.
    pub(super) async fn used(
        &self,
        spend: &NewSpend,
        signed: &SignedSpend,
    ) -> Result<bool, TreasuryError> {
        let Money::Usdc { asset, payer, .. } = spend.money else { return Ok(false) };
        Ok(self.till.chain.authorization(asset, payer, signed.nonce).await?.used)
    }

    /// What became of a payment, by one block's own state and time: no later block can
    /// use what it shows as unused and late. Our clock has no say in it.
    async fn fate(&self, spend: &NewSpend, signed: &SignedSpend) -> Result<Fate, TreasuryError> {
        let Money::Usdc { asset, payer, .. } = spend.money else { return Ok(Fate::Open) };
        let seen = self.till.chain.authorization(asset, payer, signed.nonce).await?;
        Ok(match (seen.used, seen.at >= signed.valid_before) {
            (true, _) => Fate::Used,
            (false, true) => Fate::Void,
            (false, false) => Fate::Open,
        })
    }

    /// Brings what was signed to its end where the chain has one; what it is then.
    pub(super) async fn close(
        &self,
        spend: &Spend,
        signed: &SignedSpend,
    ) -> Result<Fate, TreasuryError> {
        let fate = self.fate(&spend.spend, signed).await?;
        let step = match fate {
            Fate::Used => SpendStep::Settled(spend.transaction.clone()),
            Fate::Void => SpendStep::Expired,
            Fate::Open => return Ok(fate),
        };
        self.store.step_spend(spend.id, step).await?;
        if fate == Fate::Used {
            self.reach(FaultPoint::SpendBooked);
        }
        Ok(fate)
    }
}

/// Whether the signer said nothing, rather than no.
fn is_silence(error: &PurseError) -> bool {
    error.kind() == Kind::Transient || matches!(error, PurseError::Cut)
}
