//! What became of every payment that is not over, asked of whoever knows.
//!
//! At the start, at each look, and with each heartbeat. What was sent is asked about
//! or sent again with the same bytes; what nobody can have any more is given up.
//! Nothing is ever begun here, and no difference is adjusted in silence.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use automaton_client::Page;
use automaton_core::error::{Classified, chain};
use automaton_core::event::Event;
use automaton_core::money::Microcents;
use automaton_core::spend::{Rail, Spend, SpendState};
use automaton_core::time::Span;
use automaton_core::wire::cloud::{EntryKind, HistoryEntry};
use automaton_store::Revenue;

use super::door::TOP_UP;
use super::{Till, Treasury, TreasuryError};

/// How long an approval of a request is good for.
const APPROVED_FOR: Span = Span::from_secs(24 * 60 * 60);
/// Entries of the account's history that are asked for at once, and how often.
const PAGE: u32 = 100;
const PAGES_MAX: u64 = 200;

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
            // It is paid when the request is made again, within a day of the answer.
            (_, Rail::Usdc, None) => {
                let waited = self.around.mint.now().since(open.changed_at);
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

    /// Books what others gave, as the cloud's history tells it; what cannot be read now
    /// is read the next time.
    pub(super) async fn income(&self) {
        if let Err(error) = self.read_income().await {
            let (kind, hint) = (error.kind(), error.hint());
            let error = format!("the account's history was not read: {}", chain(&error));
            self.emit(Event::ErrorReported { kind, error, hint });
        }
    }

    async fn read_income(&self) -> Result<(), TreasuryError> {
        let Till { cloud, key: Some(key), origin, .. } = &self.till else { return Ok(()) };
        let known = self.heard_of.load(Ordering::SeqCst);
        let mut newest = known;
        for page in 0..PAGES_MAX {
            let page = Page { limit: PAGE, offset: u64::from(PAGE) * page };
            let entries = cloud.history(key, page).await?.history;
            let news = entries.iter().filter(|entry| entry.id > known);
            for entry in news.clone().filter(|entry| is_income(entry)) {
                self.book_income(origin, entry).await?;
            }
            newest = news.clone().map(|entry| entry.id).fold(newest, i64::max);
            // An older one, or the end: everything before was looked at.
            if news.count() < usize::try_from(PAGE).unwrap_or(usize::MAX) {
                break;
            }
        }
        self.heard_of.fetch_max(newest, Ordering::SeqCst);
        Ok(())
    }

    async fn book_income(&self, origin: &str, entry: &HistoryEntry) -> Result<(), TreasuryError> {
        let (amount, at) = (entry.amount_microcents, entry.at_ms);
        let from = entry.counterparty.clone().unwrap_or_else(|| origin.to_owned());
        // silent-ok: whoever is no address is not the creator.
        let funded = self.creator.is_some() && from.parse().ok() == self.creator;
        let income = Revenue { key: format!("{origin} {}", entry.id), amount, from, at };
        if funded {
            self.store.book_funding(income).await?;
        } else {
            self.store.book_revenue(income).await?;
        }
        Ok(())
    }

    /// Looks after open payments in the heartbeat, and compares the books; what there
    /// is to say of them.
    ///
    /// # Errors
    /// [`TreasuryError::UnderWay`] while somebody else is at it; when the record cannot
    /// be read.
    pub async fn look_after(self: &Arc<Self>) -> Result<String, TreasuryError> {
        let open = self
            .behind_the_door(async move |treasury, kept| {
                treasury.reconcile().await?;
                let open = treasury.store.open_spends().await;
                drop(kept);
                Ok::<_, TreasuryError>(open?)
            })
            .await??;
        let waiting = open.iter().filter(|one| one.state == SpendState::Proposed).count();
        self.income().await;
        let books = self.books().await?;
        let agree = books.agree();
        let waits = |one: &Spend| matches!(one.state, SpendState::Proposed | SpendState::Approved);
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

/// Whether an entry is credits from somebody else: given, bought for us, or given back.
fn is_income(entry: &HistoryEntry) -> bool {
    let by_others = match entry.kind {
        EntryKind::Transfer | EntryKind::Refund => true,
        EntryKind::Purchase => entry.counterparty.is_some(),
        EntryKind::Charge => false,
    };
    by_others && entry.amount_microcents > Microcents::ZERO
}
