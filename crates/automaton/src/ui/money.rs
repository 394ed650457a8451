//! Events of money and of the processes behind it, as a person reads them.
//!
//! Amounts are shown in full: a sum that is rounded cannot be checked. What could
//! not be read must never look like nothing.

use std::fmt::Display;

use automaton_core::books::Books;
use automaton_core::event::{Event, Service};
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::Span;

use super::pretty::Style::{self, Bad, Good, Mail, Quiet};
use super::text::{plain, short};

/// The words of an event of money.
pub(super) fn words(event: &Event) -> Option<(Style, String)> {
    service_words(event).or_else(|| purchase_words(event))
}

fn service_words(event: &Event) -> Option<(Style, String)> {
    let told = match event {
        Event::ServiceReady { service, url, took_ms } => {
            let at = url.as_ref().map(|url| format!(" at {}", plain(url))).unwrap_or_default();
            let took = Span::from_millis(*took_ms);
            (Quiet, format!("{}{at}, ready in {took}", service.name()))
        }
        Event::ServiceRestarted { service, death, restarts } => {
            let name = service.name();
            (Bad, format!("the {name} died ({}) and was started again ({restarts})", plain(death)))
        }
        Event::WalletCreated { address } => (
            Good,
            format!(
                "wallet: {}, a key that only the {} has",
                plain(address),
                Service::Signer.name()
            ),
        ),
        Event::WalletFunded { amount, transaction, .. } => {
            (Good, format!("wallet: the faucet gave {amount} by {}", plain(transaction)))
        }
        Event::AccountOpened { cloud, .. } => {
            (Good, format!("account: signed in to {}", plain(cloud)))
        }
        _ => return None,
    };
    Some(told)
}

fn purchase_words(event: &Event) -> Option<(Style, String)> {
    let told = match event {
        Event::BalancesRead { credits, usdc, tier } => {
            let tier = tier.map_or_else(String::new, |tier| format!(": {tier}"));
            (Quiet, format!("balances: {} of credits, {}{tier}", known(*credits), known(*usdc)))
        }
        Event::TopupDemanded { usd, amount, payee } => (
            Mail,
            format!(
                "top-up: 402, the cloud wants {amount} for ${usd} of credits, paid to {}",
                plain(payee)
            ),
        ),
        Event::TopupPending { payment, amount } => {
            (Mail, format!("top-up: {amount} accepted, not confirmed yet (payment {payment})"))
        }
        Event::TopupSettled { amount, transaction, credits, .. } => {
            let by =
                transaction.as_ref().map(|tx| format!(" by {}", plain(tx))).unwrap_or_default();
            (Good, format!("top-up: paid {amount}{by}; credits are {} now", known(*credits)))
        }
        Event::TopupFailed { error, hint, .. } => {
            let hint = hint.as_ref().map(|hint| format!(" ({})", plain(hint))).unwrap_or_default();
            (Bad, format!("top-up: {}{hint}", short(error, 2000)))
        }
        Event::ApprovalAsked { summary, .. } => (
            Mail,
            format!("your approval is asked (`automaton approvals list`): {}", short(summary, 300)),
        ),
        Event::CreditsTransferred { to, amount, transfer, .. } => {
            (Good, format!("transfer: {amount} of credits to {} ({})", plain(to), plain(transfer)))
        }
        Event::RequestPaid { origin, amount, settled, .. } => {
            let standing = if *settled { "" } else { ", not confirmed yet" };
            (Good, format!("request: paid {amount} to {}{standing}", plain(origin)))
        }
        Event::PaymentFailed { error, hint, .. } => {
            let hint = hint.as_ref().map(|hint| format!(" ({})", plain(hint))).unwrap_or_default();
            (Bad, format!("payment: {}{hint}", short(error, 2000)))
        }
        Event::BooksChecked { books, agree } => {
            let verdict = if *agree {
                "all four books agree"
            } else if books.has_gaps() {
                "not all books could be read"
            } else {
                "THE BOOKS DIFFER"
            };
            (if *agree { Good } else { Bad }, format!("books: {}: {verdict}", told(books)))
        }
        _ => return None,
    };
    Some(told)
}

/// The check that a person can repeat.
fn told(books: &Books) -> String {
    let Books { answers, prompt_tokens, cached_tokens, completion_tokens, computed, .. } = books;
    // silent-ok: a difference that cannot be computed is shown as unknown.
    let gone: Option<Microcents> = books.gone().ok().flatten();
    let given_up = if books.given_up == MicroUsdc::ZERO {
        String::new()
    } else {
        format!(" (up to {} of it given up unsent)", books.given_up)
    };
    // silent-ok: as above.
    let lost = gone.and_then(|gone| gone.minus(*computed).ok()).filter(|_| books.unheard > 0);
    let lost = lost.map_or_else(String::new, |lost| {
        format!(" ({lost} of it for up to {} answers that were never heard)", books.unheard)
    });
    let rented = if books.rented == Microcents::ZERO {
        String::new()
    } else {
        format!(", and {} for machines", books.rented)
    };
    format!(
        "{answers} answers, {prompt_tokens} tokens read ({cached_tokens} from a cache) and \
         {completion_tokens} written; tokens × price {computed}, credits gone {}{lost}{rented}; paid {}, \
         signed {}{given_up}, moved on the chain {}",
        known(gone),
        books.paid,
        known(books.signed),
        known(books.moved)
    )
}

fn known<T: Display>(amount: Option<T>) -> String {
    amount.map_or_else(|| "unknown".to_owned(), |amount| amount.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_does_not_look_like_nothing() {
        let unread = Event::BalancesRead { credits: None, usdc: None, tier: None };
        let (_, text) = words(&unread).unwrap();
        assert_eq!(text, "balances: unknown of credits, unknown");
    }

    #[test]
    fn books_that_differ_say_so() {
        let books = Books { computed: Microcents::new(1), ..Books::default() };
        let (style, text) = words(&Event::BooksChecked { books, agree: books.agree() }).unwrap();
        assert_eq!(style, Bad);
        assert!(text.contains("tokens × price $0.00000001, credits gone unknown"), "{text}");
        assert!(text.ends_with("not all books could be read"), "{text}");
        let nothing = Some(MicroUsdc::ZERO);
        let read = Books { left: Some(Microcents::ZERO), moved: nothing, signed: nothing, ..books };
        let (_, text) = words(&Event::BooksChecked { books: read, agree: read.agree() }).unwrap();
        assert!(text.ends_with("THE BOOKS DIFFER"), "{text}");
    }
}
