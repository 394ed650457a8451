//! Both balances, read once and shared.
//!
//! One reader at a time; a reading is good for a while, and at once worth nothing
//! when money has moved. What could not be read is missing. It must never be
//! taken for nothing, and buys nothing.

use std::error::Error;
use std::future::Future;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use automaton_core::error::chain;
use automaton_core::event::Event;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::Span;
use tokio::time::timeout;
use tracing::warn;

use super::{Balances, PaymentContext, Treasury, TreasuryError};

/// Time for which a reading is valid.
const GOOD_FOR: Span = Span::from_secs(30);

/// The longest that one number is waited for.
const READ_MAX: Duration = Duration::from_secs(10);

/// A reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedBalances {
    /// The epoch in which the reading began.
    epoch: u64,
    balances: Balances,
}

impl Treasury {
    /// Returns the known balances.
    pub async fn balances(&self) -> Balances {
        let mut last = self.reading.lock().await;
        let now = self.deps.ids.now();
        let epoch = self.epoch.load(Ordering::SeqCst);
        let good = |reading: &CachedBalances| {
            // A clock that was set back makes a reading old, not young.
            let at = reading.balances.at;
            reading.epoch == epoch && at <= now && now.since(at) < GOOD_FOR
        };
        if let Some(reading) = last.filter(good) {
            return reading.balances;
        }
        let (credits, usdc, noted) =
            tokio::join!(self.credits(), in_time(self.usdc()), self.note_time());
        // silent-ok: time that is not noted frees nothing, and the next reading notes it.
        noted.ok();
        let balances = Balances { at: now, credits, usdc };
        *last = Some(CachedBalances { epoch, balances });
        if balances.tier().is_some_and(|tier| !tier.is_poor()) {
            self.failing.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        self.emit(Event::BalancesRead { credits, usdc, tier: balances.tier() });
        balances
    }

    /// The cloud refuses a request for want of credits: the next look reads what there is,
    /// and buys more at any tier.
    pub fn note_refusal(&self) {
        self.out_of_credits.store(true, Ordering::SeqCst);
        self.forget_balances();
    }

    /// Has the balances read anew: money has moved, or may have.
    pub(crate) fn forget_balances(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// Balances of which nothing is known.
    pub(super) fn unknown(&self) -> Balances {
        Balances { at: self.deps.ids.now(), credits: None, usdc: None }
    }

    /// Returns the USDC of the wallet.
    ///
    /// # Errors
    /// [`TreasuryError::Chain`]; then it is unknown.
    pub async fn usdc(&self) -> Result<MicroUsdc, TreasuryError> {
        let PaymentContext { chain, token, signer, .. } = &self.payment_context;
        Ok(chain.balance(token.contract, signer.address()).await?)
    }

    /// Returns the cloud's balance, exactly if the cloud tells it exactly.
    pub(super) async fn credits(&self) -> Option<Microcents> {
        let PaymentContext { cloud, key, .. } = &self.payment_context;
        let reply = in_time(cloud.balance(key.as_ref()?)).await?;
        // silent-ok: more cents than can be counted are not known.
        reply.balance_microcents.or_else(|| Microcents::from_cents(reply.cents()?).ok())
    }
}

/// Returns the value if it was read in time.
pub(super) async fn in_time<T, E: Error + 'static>(
    read: impl Future<Output = Result<T, E>>,
) -> Option<T> {
    match timeout(READ_MAX, read).await {
        Ok(Ok(balance)) => Some(balance),
        Ok(Err(error)) => {
            warn!(error = %chain(&error), "a balance cannot be read");
            None
        }
        Err(_) => {
            warn!("a balance could not be read within {READ_MAX:?}");
            None
        }
    }
}
