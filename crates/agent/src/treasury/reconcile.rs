//! Reconciliation of every open payment with chain and cloud.
//!
//! At the start, at each look, and with each heartbeat. What was sent is asked about
//! or sent again with the same bytes; what nobody can have any more is given up.
//! Nothing is ever begun here, and no difference is adjusted in silence.

use std::sync::Arc;

use automaton_core::error::{Classified, chain};
use automaton_core::event::Event;
use automaton_core::payment::{Payment, PaymentState, Rail};
use automaton_core::time::Span;

use super::topup::TOP_UP;
use super::{Treasury, TreasuryError};

/// Time for which an approval of a request is valid.
const APPROVED_FOR: Span = Span::from_secs(24 * 60 * 60);

impl Treasury {
    /// Brings every open payment but a purchase of credits as far as it goes. The
    /// caller holds the door. One that fails does not keep the others.
    pub(super) async fn reconcile(&self) -> Result<(), TreasuryError> {
        self.store.expire_approvals().await?;
        for open in self.store.open_payments().await? {
            if open.terms.request == TOP_UP {
                continue;
            }
            if let Err(error) = self.resume(open).await {
                let kind = error.kind();
                let hint = error.hint();
                let error = chain(&error).to_string();
                self.emit(Event::PaymentFailed { kind, error, hint });
            }
        }
        Ok(())
    }

    async fn resume(&self, open: Payment) -> Result<(), TreasuryError> {
        if !self.is_here(&open.terms) {
            return Ok(());
        }
        match (open.state, open.terms.money.rail(), &open.signed) {
            (PaymentState::Proposed, ..) => Ok(()),
            (_, Rail::Usdc, Some(signed)) => self.close(&open, signed).await.map(|_| ()),
            // A call that died before it sent anything is told as such, and not done
            // behind the model's back; what the creator approved is.
            (PaymentState::Approved, ..) if !self.store.is_confirmed(open.id).await? => {
                let reason = "the process died before anything was signed or sent";
                self.fail(open.id, reason.to_owned()).await
            }
            // It is paid when the request is made again, within a day of the answer.
            (_, Rail::Usdc, None) => {
                let waited = self.deps.ids.now().since(open.changed_at);
                if waited < APPROVED_FOR {
                    return Ok(());
                }
                self.fail(open.id, "it was approved, and not asked for again".to_owned()).await
            }
            (_, Rail::Credits, _) => {
                let given = self.carry_out(open).await;
                self.tell_given(&given);
                given.map(|_| ())
            }
        }
    }

    /// Looks after open payments in the heartbeat, and compares the books; what there
    /// is to say of them.
    ///
    /// # Errors
    /// [`TreasuryError::UnderWay`] while somebody else is at it; when the record cannot
    /// be read.
    pub async fn reconcile_open(self: &Arc<Self>) -> Result<String, TreasuryError> {
        let open = self
            .with_topup_lock(async move |treasury, kept| {
                treasury.reconcile().await?;
                let open = treasury.store.open_payments().await;
                drop(kept);
                Ok::<_, TreasuryError>(open?)
            })
            .await??;
        let waiting = open.iter().filter(|one| one.state == PaymentState::Proposed).count();
        let books = self.compared().await?;
        let agree = books.agree();
        let waits =
            |one: &Payment| matches!(one.state, PaymentState::Proposed | PaymentState::Approved);
        if !agree && !books.has_gaps() && open.iter().all(waits) {
            self.emit(Event::BooksChecked { books, agree });
        }
        let standing = match (agree, books.has_gaps()) {
            (true, _) => "the books agree",
            (false, true) => "a ledger could not be read",
            (false, false) => "the books differ",
        };
        Ok(format!("{} payments open, {waiting} waiting for approval; {standing}", open.len()))
    }
}
