//! Pure: events of money and of the processes behind it, as a person reads them.
//!
//! What the books say is shown in full: a sum that is rounded cannot be checked. What could
//! not be read must never look like nothing.

use automaton_core::books::Books;
use automaton_core::event::{Event, PaidRequest, ReopenedPort, SaleReport, Service};
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::Span;

use super::phrases;
use super::text::{plain, short};
use super::units::{balance, brief, many, number, or_unknown, price, span};
use super::words::Style::{self, Bad, Good, Mail, Quiet};
use super::words::{PhraseContext, about, again, remedy};

/// The words of what it lives from.
pub(super) fn services(wording: &mut PhraseContext<'_>, event: &Event) -> Option<(Style, String)> {
    let told = match event {
        // That it works shows in what follows.
        Event::ServiceReady { .. } | Event::AccountOpened { .. } if wording.is_brief() => {
            return None;
        }
        Event::ServiceReady { service, url, took_ms } => {
            let at = url.as_ref().map(|url| format!(" at {}", plain(url))).unwrap_or_default();
            let took = span(Span::from_millis(*took_ms));
            (Quiet, format!("The {}{at} is ready, in {took}", service.name()))
        }
        Event::ServiceRestarted { service, death, restarts } => {
            let name = service.name();
            let death = plain(death);
            let times = again(*restarts);
            (Bad, format!("The {name} died ({death}) and was started again{times}"))
        }
        // Told with what the faucet gives it.
        Event::WalletCreated { address } if wording.is_brief() => {
            wording.before.wallet = Some(address.clone());
            return None;
        }
        Event::WalletCreated { address } => {
            let signer = Service::Signer.name();
            (Good, format!("Wallet {}, with a key that only the {signer} has", plain(address)))
        }
        Event::WalletFunded { address, amount, .. } if wording.is_brief() => {
            wording.before.wallet = None;
            let address = brief(&plain(address));
            (Good, format!("Test wallet {address} with {amount} on a chain of its own"))
        }
        Event::WalletFunded { address, amount, transaction } => {
            let address = plain(address);
            let by = plain(transaction);
            (Good, format!("Test wallet {address}: the faucet gave {amount} by {by}"))
        }
        Event::AccountOpened { cloud, .. } => (Good, format!("Signed in to {}", plain(cloud))),
        about!(process turn life mail alert top_up payment snapshot silent) => return None,
    };
    Some(told)
}

/// The words of credits that are bought.
pub(super) fn top_ups(wording: &mut PhraseContext<'_>, event: &Event) -> Option<(Style, String)> {
    let told = match event {
        Event::BalancesRead { credits: Some(_), usdc: Some(_), .. } if wording.is_brief() => {
            return None;
        }
        Event::BalancesRead { credits, usdc, tier } => {
            let tier = tier.map_or_else(String::new, |tier| format!(" ({})", phrases::tier(tier)));
            let credits = or_unknown(credits.map(balance));
            let usdc = or_unknown(*usdc);
            (Quiet, format!("Balance: {credits} of credits{tier}, {usdc} in the wallet"))
        }
        Event::TopupDemanded { usd, amount, payee } => {
            wording.before.buying = Some(*usd);
            if wording.is_brief() {
                return None;
            }
            let payee = plain(payee);
            (Mail, format!("The cloud wants {amount} for ${usd}.00 of credits, paid to {payee}"))
        }
        Event::TopupPending { amount, .. } if wording.is_brief() => {
            (Mail, format!("{amount} for credits sent; waiting for the chain to confirm it"))
        }
        Event::TopupPending { payment, amount } => {
            (Mail, format!("{amount} for credits sent, not confirmed yet (payment {payment})"))
        }
        Event::TopupSettled { amount, transaction, credits, .. } => {
            let bought = wording.before.buying.take();
            let bought = bought.map_or_else(String::new, |usd| format!("${usd}.00 of "));
            let by = transaction.as_ref().filter(|_| !wording.is_brief());
            let by = by.map(|hash| format!(" by {}", plain(hash))).unwrap_or_default();
            let left = match credits {
                Some(left) if bought.is_empty() => format!("; the balance is {}", balance(*left)),
                _ => String::new(),
            };
            (Good, format!("Bought {bought}credits for {amount}{by}{left}"))
        }
        Event::TopupFailed { error, hint, .. } => {
            let error = short(error, 2000);
            let hint = remedy(hint.as_deref());
            (Bad, format!("No credits bought: {error}{hint}"))
        }
        about!(process turn life mail alert service payment snapshot silent) => return None,
    };
    Some(told)
}

/// The words of money that goes out, and of the books.
pub(super) fn payments(wording: &PhraseContext<'_>, event: &Event) -> Option<(Style, String)> {
    let told = match event {
        Event::ApprovalAsked { approval, summary, .. } => {
            let summary = short(summary, 300);
            (
                Mail,
                format!(
                    "It asks for your approval (`automaton approvals approve {approval}` or `deny`): {summary}"
                ),
            )
        }
        Event::CreditsTransferred { to, amount, transfer, .. } => {
            let id =
                if wording.is_brief() { String::new() } else { format!(" ({})", plain(transfer)) };
            (Good, format!("Gave {amount} of credits to {}{id}", plain(to)))
        }
        Event::RequestPaid(PaidRequest { origin, amount, settled, .. }) => {
            let standing = if *settled { "" } else { ", not confirmed yet" };
            (Good, format!("Paid {amount} to {} for a request{standing}", plain(origin)))
        }
        Event::SaleSettled(SaleReport { port, sales, amount, payer, transaction, .. }) => {
            let requests = many(*sales, "request");
            let payer = payer.as_ref().filter(|_| !wording.is_brief());
            let payer = payer.map(|payer| format!(" by {}", plain(payer))).unwrap_or_default();
            let hash = transaction.as_ref().filter(|_| !wording.is_brief());
            let hash = hash.map(|hash| format!(" ({})", plain(hash))).unwrap_or_default();
            (Good, format!("Sold {requests} to port {port} for {amount}{payer}{hash}"))
        }
        Event::PortReopened(ReopenedPort { port, url }) => {
            (Good, format!("Port {port} and its server are open again at {}", plain(url)))
        }
        Event::PaymentFailed { error, hint, .. } => {
            let error = short(error, 2000);
            let hint = remedy(hint.as_deref());
            (Bad, format!("Not paid: {error}{hint}"))
        }
        Event::BooksChecked { books, agree: true } if wording.is_brief() => {
            // silent-ok: a difference that cannot be computed is shown as unknown.
            let gone = or_unknown(books.gone().ok().flatten().map(price));
            let answers = many(books.answers, "answer");
            (Good, format!("Spent {gone} of credits on {answers}; all four books agree"))
        }
        Event::BooksChecked { books, agree } => {
            let verdict = if *agree {
                "all four agree"
            } else if books.has_gaps() {
                "not all could be read"
            } else {
                "THEY DIFFER"
            };
            let style = if *agree { Good } else { Bad };
            (
                style,
                format!(
                    "Books of agent, signer, cloud and chain: {}: {verdict}",
                    books_formula(books)
                ),
            )
        }
        about!(process turn life mail alert service top_up snapshot silent) => return None,
    };
    Some(told)
}

/// The check that a person can repeat.
fn books_formula(books: &Books) -> String {
    let Books { answers, prompt_tokens, cached_tokens, completion_tokens, computed, .. } = books;
    // silent-ok: a difference that cannot be computed is shown as unknown.
    let gone: Option<Microcents> = books.gone().ok().flatten();
    let given_up = if books.given_up == MicroUsdc::ZERO {
        String::new()
    } else {
        format!(" (up to {} of it given up unsent)", books.given_up)
    };
    // silent-ok: as above.
    let lost = gone.and_then(|gone| gone.minus(*computed).ok()).filter(|_| books.unsettled > 0);
    let lost = lost.map_or_else(String::new, |lost| {
        format!(
            " ({lost} of it for up to {} that were never heard)",
            many(books.unsettled, "answer")
        )
    });
    let rented = if books.rented == Microcents::ZERO {
        String::new()
    } else {
        format!(", and {} for machines", books.rented)
    };
    let estimated = match books.estimated {
        0 => String::new(),
        some => format!(" (of {} the tokens are an estimate)", number(some)),
    };
    let answers = format!("{}{estimated}", many(*answers, "answer"));
    let read = many(*prompt_tokens, "token");
    let cached = number(*cached_tokens);
    let wrote = number(*completion_tokens);
    format!(
        "{answers}, {read} read ({cached} from a cache) and {wrote} written; tokens × price \
         {computed}, credits gone {}{lost}{rented}; paid {}, signed {}{given_up}, moved on the \
         chain {}",
        or_unknown(gone),
        books.paid,
        or_unknown(books.signed),
        or_unknown(books.moved)
    )
}

#[cfg(test)]
mod tests {
    use automaton_core::time::Timestamp;

    use super::*;
    use crate::ui::when::WallClock;
    use crate::ui::words::{PriorOutput, Verbosity};

    fn told_in(detail: Verbosity, event: &Event) -> Option<(Style, String)> {
        let when = &WallClock::utc();
        let before = &mut PriorOutput::default();
        PhraseContext { detail, at: Timestamp::EPOCH, when, user_home: None, before }.words(event)
    }

    #[test]
    fn what_is_unknown_does_not_look_like_nothing() {
        let unread = Event::BalancesRead { credits: None, usdc: None, tier: None };
        for detail in [Verbosity::Brief, Verbosity::Full] {
            let (_, text) = told_in(detail, &unread).unwrap();
            assert_eq!(text, "Balance: unknown of credits, unknown in the wallet");
        }
    }

    #[test]
    fn books_that_differ_say_so_in_full() {
        let books = Books { computed: Microcents::new(1), ..Books::default() };
        let checked = Event::BooksChecked { books, agree: books.agree() };
        let (style, text) = told_in(Verbosity::Brief, &checked).unwrap();
        assert_eq!(style, Bad);
        assert!(text.contains("tokens × price $0.00000001, credits gone unknown"), "{text}");
        assert!(text.ends_with("not all could be read"), "{text}");
        let nothing = Some(MicroUsdc::ZERO);
        let read = Books { left: Some(Microcents::ZERO), moved: nothing, signed: nothing, ..books };
        let checked = Event::BooksChecked { books: read, agree: read.agree() };
        let (_, text) = told_in(Verbosity::Brief, &checked).unwrap();
        assert!(text.ends_with("THEY DIFFER"), "{text}");
    }
}
