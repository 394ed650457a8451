//! The account's history: gifts, costs of machines, sales.
//!
//! It is read on from where it was left, oldest first, and each page is booked with how far
//! it reaches. A machine is charged each minute and may sell a cent at a time, so what a page
//! tells of a machine, or of a port of one, and a day is one booking, which names it. Nothing
//! must ever be left out between two pages, however much is added meanwhile.

use std::collections::BTreeMap;

use alloy_primitives::Address;
use automaton_client::HistoryPage;
use automaton_core::error::{Classified, ErrorClass, chain};
use automaton_core::event::{Event, SaleReport};
use automaton_core::money::{Microcents, MoneyError};
use automaton_core::time::DAY;
use automaton_core::wire::cloud::{EntryKind, HistoryEntry, HistoryReply, SaleEntry};
use automaton_store::{AccountPage, Cursor, LedgerCategory, PortSales, Revenue};

use super::{PaymentContext, Treasury, TreasuryError};

/// Entries that are asked for at once.
const PAGE: u32 = 100;
/// Distance between pages: the rest allows for entries that are added meanwhile.
const STEP: u64 = 90;
/// Pages of one look; the next one goes on.
const PAGES_MAX: u32 = 200;
/// Sales of a page that have an event each. More are summed up for each port.
const SALE_EVENTS_MAX: usize = 10;

impl Treasury {
    /// Books what the cloud's history tells; what cannot be read now is read the next time.
    pub(crate) async fn read_history(&self) {
        let _alone = self.history_lock.lock().await;
        if let Err(error) = self.read_and_tell().await {
            let kind = error.kind();
            let hint = error.hint();
            let error = format!("the account's history was not read: {}", chain(&error));
            self.emit(Event::ErrorReported { kind, error, hint });
        }
    }

    async fn read_and_tell(&self) -> Result<(), TreasuryError> {
        self.read_on().await?;
        self.tell_sales().await?;
        Ok(())
    }

    async fn read_on(&self) -> Result<(), TreasuryError> {
        let PaymentContext { cloud, key: Some(key), origin, .. } = &self.payment_context else {
            return Ok(());
        };
        let mut known = self.store.account_cursor(origin.clone()).await?;
        let mut offset = 0;
        for _ in 0..PAGES_MAX {
            let page = cloud.history(key, HistoryPage { limit: PAGE, offset }).await?;
            if offset == 0 && is_reset(&page, known) {
                let why = "the account's history begins anew: what it tells is not booked, since \
                           some of it may have been";
                self.emit(Event::ErrorReported {
                    kind: ErrorClass::Upstream,
                    error: why.to_owned(),
                    hint: Some("Ask who runs the cloud whether its database is another.".into()),
                });
                return Ok(());
            }
            if !covers(&page, known) {
                offset = (offset * 2).max(STEP);
                continue;
            }
            let entries = page.history.iter().map(|entry| entry.id);
            let sales = page.sales.iter().map(|sale| sale.id);
            let to = Cursor {
                entry: entries.fold(known.entry, i64::max),
                sale: sales.fold(known.sale, i64::max),
            };
            if to != known {
                let entries = new_entries(origin, &page, known, self.creator)?;
                let sold = new_sales(&page, known)?;
                let told = AccountPage { entries, sold: sold.by_port };
                if !self.store.book_account(origin.clone(), known, to, told).await? {
                    break;
                }
                sold.events.into_iter().for_each(|event| self.emit(event));
                known = to;
            }
            if offset == 0 {
                break;
            }
            offset = offset.saturating_sub(STEP);
        }
        Ok(())
    }
}

/// The sales of a page that are not known.
struct NewSales {
    by_port: Vec<PortSales>,
    events: Vec<Event>,
}

/// Reads the sales of a page that are not known: the sums for each port, and an event for each
/// sale, or for each port where there are many.
fn new_sales(page: &HistoryReply, known: Cursor) -> Result<NewSales, MoneyError> {
    let new: Vec<&SaleEntry> = page.sales.iter().rev().filter(|it| it.id > known.sale).collect();
    let mut by_port: Vec<PortSales> = Vec::new();
    for sale in &new {
        let SaleEntry { machine, port, amount_micro_usdc: amount, at_ms: at, .. } = sale;
        match by_port.iter_mut().find(|sum| sum.machine == *machine && sum.port == *port) {
            Some(sum) => {
                sum.sales += 1;
                sum.amount = sum.amount.plus(*amount)?;
                sum.last_at = sum.last_at.max(*at);
            }
            None => by_port.push(PortSales {
                machine: machine.clone(),
                port: *port,
                sales: 1,
                amount: *amount,
                last_at: *at,
            }),
        }
    }
    let events = match new.len() <= SALE_EVENTS_MAX {
        true => new.into_iter().map(sale_event).collect(),
        false => by_port.iter().map(sales_event).collect(),
    };
    Ok(NewSales { by_port, events })
}

fn sale_event(sale: &SaleEntry) -> Event {
    Event::SaleSettled(SaleReport {
        machine: sale.machine.clone(),
        port: sale.port,
        sales: 1,
        amount: sale.amount_micro_usdc,
        payer: Some(sale.payer.clone()),
        transaction: Some(sale.transaction.clone()),
    })
}

fn sales_event(sum: &PortSales) -> Event {
    Event::SaleSettled(SaleReport {
        machine: sum.machine.clone(),
        port: sum.port,
        sales: sum.sales,
        amount: sum.amount,
        payer: None,
        transaction: None,
    })
}

/// Returns true if a page reaches back to the known position, so that no entry is missed.
fn covers(page: &HistoryReply, known: Cursor) -> bool {
    let oldest = |count: usize, oldest: Option<i64>, known: i64| {
        count < PAGE as usize || oldest.is_none_or(|oldest| oldest <= known)
    };
    oldest(page.history.len(), page.history.last().map(|it| it.id), known.entry)
        && oldest(page.sales.len(), page.sales.last().map(|it| it.id), known.sale)
}

/// Returns true if the newest entry of a history is older than the known position: it is another
/// history.
fn is_reset(page: &HistoryReply, known: Cursor) -> bool {
    page.history.first().map_or(0, |it| it.id) < known.entry
        || page.sales.first().map_or(0, |it| it.id) < known.sale
}

/// Returns the new entries of a page, for booking.
fn new_entries(
    origin: &str,
    page: &HistoryReply,
    known: Cursor,
    creator: Option<Address>,
) -> Result<Vec<(LedgerCategory, Revenue)>, MoneyError> {
    // silent-ok: whoever is no address is not the creator.
    let is_creator = |from: &str| creator.is_some() && from.parse().ok() == creator;
    let kind = |from: &str| {
        if is_creator(from) { LedgerCategory::Funding } else { LedgerCategory::Revenue }
    };
    let mut told = Vec::new();
    let mut sums: BTreeMap<_, (LedgerCategory, Revenue)> = BTreeMap::new();
    let mut add = |category: LedgerCategory, one: Revenue| -> Result<(), MoneyError> {
        let day = one.at.as_millis().div_euclid(DAY.as_millis());
        let sum = sums.entry((category.name(), one.from.clone(), day));
        let (_, sum) =
            sum.or_insert((category, Revenue { amount: Microcents::ZERO, ..one.clone() }));
        *sum = Revenue { amount: sum.amount.plus(one.amount)?, ..one };
        Ok(())
    };
    for entry in page.history.iter().rev().filter(|entry| entry.id > known.entry) {
        let HistoryEntry { id, amount_microcents: amount, at_ms: at, .. } = *entry;
        let key = format!("{origin} {id}");
        if is_income(entry) {
            let from = entry.counterparty.clone().unwrap_or_else(|| origin.to_owned());
            told.push((kind(&from), Revenue { key, amount, from, at }));
        } else if entry.kind == EntryKind::Machine && amount < Microcents::ZERO {
            let from = format!("machine {}", entry.description.as_deref().unwrap_or("unknown"));
            let amount = Microcents::ZERO.minus(amount)?;
            add(LedgerCategory::Machine, Revenue { key, amount, from, at })?;
        }
    }
    for sale in page.sales.iter().rev().filter(|sale| sale.id > known.sale) {
        let SaleEntry { id, machine, port, amount_micro_usdc, at_ms: at, .. } = sale;
        let key = format!("sale:{origin} {id}");
        let amount = amount_micro_usdc.face_value()?;
        let from = format!("machine {machine}:{port}");
        add(kind(&sale.payer), Revenue { key, amount, from, at: *at })?;
    }
    told.extend(sums.into_values().filter(|(_, sum)| sum.amount > Microcents::ZERO));
    Ok(told)
}

/// Returns true if an entry is credits from somebody else: a gift, a purchase for us, or a
/// refund.
fn is_income(entry: &HistoryEntry) -> bool {
    let by_others = match entry.kind {
        EntryKind::Transfer | EntryKind::Refund => true,
        EntryKind::Purchase => entry.counterparty.is_some(),
        EntryKind::Charge | EntryKind::Machine => false,
    };
    by_others && entry.amount_microcents > Microcents::ZERO
}
