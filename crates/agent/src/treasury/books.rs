//! Comparison of four ledgers of the same money.
//!
//! Nothing is corrected here, and what cannot be read is missing rather than
//! taken from another ledger.

use std::time::Duration;

use automaton_core::books::Books;
use automaton_core::error::{Classified, chain};
use automaton_core::event::Event;
use automaton_core::money::{MicroUsdc, Microcents, MoneyError};
use automaton_core::payment::{Payment, PaymentState, Purpose};
use automaton_core::time::Span;
use tokio::time::timeout;

use super::balances::in_time;
use super::{Treasury, TreasuryError};

/// Number of further reads of a ledger that cannot be read, and the time between them.
const RETRIES: u32 = 3;
const RETRY_AFTER: Duration = Duration::from_millis(700);
/// The longest that comparing takes, whatever does not answer, and of it the wait for
/// a purchase that is under way.
const WITHIN: Duration = Duration::from_secs(8);
/// Time after its end from which a payment is no longer checked.
const FINAL_AFTER: Span = Span::from_secs(60 * 60);
const LOCK_WITHIN: Duration = Duration::from_secs(2);

impl Treasury {
    /// The books.
    ///
    /// # Errors
    /// When the automaton's own record cannot be read or added up.
    pub async fn books(&self) -> Result<Books, TreasuryError> {
        // One that is under way would stand half in the books; it is not waited for
        // for ever, and is found by whoever compares.
        let _alone = timeout(LOCK_WITHIN, self.topup_lock.lock()).await;
        let payments = self.store.payments().await?;
        let totals = self.store.totals().await?;
        let unsettled = self.unsettled().await?;
        let of = |state| payments.iter().filter(move |payment| payment.state == state);
        let settled: Vec<&Payment> = of(PaymentState::Settled).collect();
        let bought = worth(of(PaymentState::Settled), Purpose::TopUp)?;
        let signed: Vec<&Payment> =
            payments.iter().filter(|payment| payment.signed.is_some()).collect();
        let open = || payments.iter().filter(|payment| !payment.state.is_over());
        let sent = open().filter(|payment| payment.signed.is_some());
        let (left, moved, standing) = tokio::join!(
            self.credits(),
            in_time(self.moved(&signed)),
            in_time(self.payment_context.signer.standing()),
        );
        Ok(Books {
            answers: totals.answers,
            prompt_tokens: totals.prompt_tokens,
            cached_tokens: totals.cached_tokens,
            completion_tokens: totals.completion_tokens,
            estimated: totals.estimated,
            computed: totals.cost,
            unsettled: totals.unsettled,
            bought,
            pending: worth(sent, Purpose::TopUp)?,
            sent: worth(of(PaymentState::Settled), Purpose::Transfer)?,
            in_doubt: worth(open(), Purpose::Transfer)?,
            unheard: unsettled.charged,
            unsettled_most: unsettled.most,
            received: self.store.received().await?,
            rented: self.store.rented().await?,
            left,
            paid: sum(settled.iter().copied())?,
            unconfirmed: sum(open().filter(|payment| payment.signed.is_some()))?,
            moved: moved.flatten(),
            recorded: sum(signed.iter().copied())?,
            given_up: sum(of(PaymentState::Failed))?,
            signed: standing.map(|standing| standing.spent.ever),
        })
    }

    /// The books with what the account's history tells. Where they differ it is read once
    /// more: a machine's next minute may have been charged in between.
    ///
    /// # Errors
    /// As [`Treasury::books`].
    pub(super) async fn compared(&self) -> Result<Books, TreasuryError> {
        self.read_history().await;
        let books = self.books().await?;
        if books.agree() || books.has_gaps() {
            return Ok(books);
        }
        self.read_history().await;
        self.books().await
    }

    /// Compares the books, and tells what came of it. A cloud and a chain that cannot be
    /// read are asked again, since they may just be starting anew.
    pub(crate) async fn check_books(&self) {
        let mut books = Err(TreasuryError::Late);
        let reading = async {
            books = self.compared().await;
            for _ in 0..RETRIES {
                if !books.as_ref().is_ok_and(Books::may_be_filled) {
                    break;
                }
                tokio::time::sleep(RETRY_AFTER).await;
                books = self.compared().await;
            }
        };
        // silent-ok: what was read until then is told, with its gaps.
        timeout(WITHIN, reading).await.ok();
        self.emit(match books {
            Ok(books) => Event::BooksChecked { books, agree: books.agree() },
            Err(error) => Event::ErrorReported {
                kind: error.kind(),
                error: format!("the books could not be compared: {}", chain(&error)),
                hint: error.hint(),
            },
        });
    }

    /// Returns the chain's sum of all signed payments; `None` if some are on another chain.
    async fn moved(&self, all: &[&Payment]) -> Result<Option<MicroUsdc>, TreasuryError> {
        let mut moved = MicroUsdc::ZERO;
        let now = self.deps.ids.now();
        for one in all {
            let Payment { terms: payment, signed, state, changed_at, .. } = one;
            // What the chain has ended long ago stays ended.
            let used = match signed {
                _ if state.is_over() && now.since(*changed_at) > FINAL_AFTER => {
                    *state == PaymentState::Settled
                }
                Some(signed) if self.is_here(payment) => self.used(payment, signed).await?,
                Some(_) | None => return Ok(None),
            };
            if used {
                moved = moved.plus(payment.money.usdc())?;
            }
        }
        Ok(Some(moved))
    }
}

fn sum<'a>(payments: impl IntoIterator<Item = &'a Payment>) -> Result<MicroUsdc, MoneyError> {
    payments
        .into_iter()
        .try_fold(MicroUsdc::ZERO, |sum, payment| sum.plus(payment.terms.money.usdc()))
}

/// Returns the worth of payments for a purpose together.
fn worth<'a>(
    payments: impl IntoIterator<Item = &'a Payment>,
    purpose: Purpose,
) -> Result<Microcents, MoneyError> {
    let of = payments.into_iter().filter(|payment| payment.terms.purpose == purpose);
    of.map(|payment| payment.terms.money.worth())
        .try_fold(Microcents::ZERO, |sum, worth| sum.plus(worth?))
}
