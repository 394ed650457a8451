//! What became of every payment that is not over, asked of whoever knows.
//!
//! At the start, at each look, and with each heartbeat. What was sent is asked about
//! or sent again with the same bytes; what nobody can have any more is given up.
//! Nothing is ever begun here, and no difference is adjusted in silence.

use automaton_core::error::{Classified, chain};
use automaton_core::event::Event;
use automaton_core::spend::{Purpose, Rail, Spend, SpendState};

use super::door::TOP_UP;
use super::{Treasury, TreasuryError};

impl Treasury {
    /// Brings every open payment but a purchase of credits as far as it goes. The
    /// caller holds the door. One that fails does not keep the others.
    pub(super) async fn reconcile(&self) -> Result<(), TreasuryError> {
        self.store.lapse_approvals().await?;
        for open in self.store.open_spends().await? {
            if open.spend.request == TOP_UP {
                continue;
            }
            if let Err(error) = self.resume(open).await {
                let (kind, hint) = (error.kind(), error.hint());
                let error = chain(&error).to_string();
                self.emit(Event::PaymentFailed { kind, error, hint });
            }
        }
        Ok(())
    }

    async fn resume(&self, open: Spend) -> Result<(), TreasuryError> {
        if !self.is_here(&open.spend) {
            return Ok(());
        }
        match (open.state, open.spend.money.rail(), &open.signed) {
            (SpendState::Proposed, ..) => Ok(()),
            (_, Rail::Usdc, Some(signed)) => self.close(&open, signed).await.map(|_| ()),
            // A call that died before it sent anything is told as such, and not done
            // behind the model's back; what the creator approved is.
            (SpendState::Approved, ..) if !self.store.is_confirmed(open.id).await? => {
                let reason = "the process died before anything was signed or sent";
                self.fail(open.id, reason.to_owned()).await
            }
            // It is paid when the request is made again.
            (_, Rail::Usdc, None) => Ok(()),
            (_, Rail::Credits, _) => {
                let given = self.carry_out(open).await;
                self.tell_given(&given);
                given.map(|_| ())
            }
        }
    }

    /// Looks after open payments in the heartbeat; what there is to say of them.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) async fn look_after(&self) -> Result<String, TreasuryError> {
        let _alone = self.door.lock().await;
        self.reconcile().await?;
        let open = self.store.open_spends().await?;
        let waiting = open.iter().filter(|one| one.state == SpendState::Proposed).count();
        let credits = open.iter().filter(|one| one.spend.purpose == Purpose::TopUp).count();
        Ok(format!(
            "{} payments are open, of which {credits} for credits; {waiting} wait for approval",
            open.len()
        ))
    }
}
