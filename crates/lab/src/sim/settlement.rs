//! The chain as one life of the cloud has it.
//!
//! It ends with that life, so that nothing of a dead cloud reaches the chain.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use automaton_cloud::billing::settlement::{
    ChainFuture, Settlement, SettlementError, SettlementTransaction, TransactionInclusion,
    TransferEvent,
};
use automaton_cloud::db::{Fees, Submission};
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::{Authorization, ExactPayload};

use super::chain::SimChain;
use super::disk::CrashSwitch;

/// The way of one life to the chain.
pub(super) struct SimSettlement {
    pub(super) chain: Arc<SimChain>,
    pub(super) fuse: Arc<CrashSwitch>,
}

impl SimSettlement {
    /// Returns the chain's answer, unless the caller is dead.
    fn ask<'a, T: Send + 'a>(
        &'a self,
        ask: impl FnOnce(&SimChain) -> Result<T, SettlementError> + Send + 'a,
    ) -> ChainFuture<'a, T> {
        Box::pin(async move {
            if self.fuse.is_dead() {
                return Err(SettlementError::Unavailable("the cloud is gone".into()));
            }
            ask(&self.chain)
        })
    }
}

impl Settlement for SimSettlement {
    fn payer(&self) -> Address {
        Address::repeat_byte(0x6A)
    }

    fn time(&self) -> ChainFuture<'_, Timestamp> {
        self.ask(|chain| Ok(chain.firm_time()))
    }

    fn authorization_used<'a>(&'a self, authorization: &'a Authorization) -> ChainFuture<'a, bool> {
        let payer = authorization.from;
        let nonce = authorization.nonce;
        self.ask(move |chain| Ok(chain.is_used(payer, nonce, u64::MAX)))
    }

    fn balance(&self, holder: Address) -> ChainFuture<'_, U256> {
        self.ask(move |chain| Ok(chain.balance(holder, u64::MAX)))
    }

    fn simulate<'a>(
        &'a self,
        authorization: &'a Authorization,
        signature: &'a Bytes,
    ) -> ChainFuture<'a, u64> {
        let payload =
            ExactPayload { signature: signature.clone(), authorization: authorization.clone() };
        self.ask(move |chain| chain.simulate(&payload))
    }

    fn fees(&self) -> ChainFuture<'_, Fees> {
        self.ask(|_| Ok(SimChain::fees()))
    }

    fn sign<'a>(&'a self, order: &'a SettlementTransaction<'a>) -> ChainFuture<'a, Submission> {
        self.ask(|chain| Ok(chain.sign(order)))
    }

    fn broadcast<'a>(&'a self, raw: &'a Bytes) -> ChainFuture<'a, ()> {
        self.ask(move |chain| {
            chain.broadcast(raw);
            Ok(())
        })
    }

    fn outcome(&self, transaction: B256) -> ChainFuture<'_, Option<TransactionInclusion>> {
        self.ask(move |chain| Ok(chain.outcome(transaction)))
    }

    fn gas_nonce(&self) -> ChainFuture<'_, u64> {
        self.ask(move |chain| Ok(chain.gas_nonce()))
    }

    fn transfer_of<'a>(
        &'a self,
        authorization: &'a Authorization,
    ) -> ChainFuture<'a, Option<TransferEvent>> {
        self.ask(move |chain| Ok(chain.transfer_of(authorization)))
    }
}
