//! Reports of sales to the creator and the model.
//!
//! The account's history is the truth and the store adds it up. The creator gets a message
//! of the first sales at once and then at most one an hour, however many visitors come. The
//! model reads the sums in the status of its prompt. They are numbers of the cloud's ledger,
//! never words of a visitor, so they take nothing away from a turn's label.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use automaton_core::event::Event;
use automaton_core::money::MicroUsdc;
use automaton_core::time::{HOUR, Timestamp};
use automaton_core::trust::{Label, Labelled};
use automaton_store::{PortSales, StoreError, total_amount};
use tokio::time::sleep;

use super::Treasury;

/// The time between the first visitor to a port that sells and the reading of the history: a
/// few more may come meanwhile, and are read with it.
const READ_AFTER: Duration = Duration::from_secs(1);

/// The source of messages that the runtime writes: the webhook gets them, too.
const SOURCE: &str = "runtime";

/// Ports that a text names. More are counted.
const PORTS_MAX: usize = 5;

impl Treasury {
    /// Notes that a port which sells has a visitor, whose payment the history tells soon.
    pub(crate) fn note_paying_visitor(&self) {
        self.paying_visitor.notify_one();
    }

    /// Reads the history soon after visitors to ports that sell, for as long as it is polled.
    pub(crate) async fn watch_sales(self: Arc<Self>) {
        loop {
            self.paying_visitor.notified().await;
            sleep(READ_AFTER).await;
            self.read_history().await;
        }
    }

    /// Reads what was sold before this process began.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn load_sales(&self) -> Result<(), StoreError> {
        let sold = self.store.port_sales().await?;
        *self.sold.lock().unwrap_or_else(PoisonError::into_inner) = sold;
        Ok(())
    }

    /// Returns the sentence about sales that the status of a prompt has; `None` where nothing
    /// was ever sold.
    pub(crate) fn sales_in_words(&self) -> Option<String> {
        let sold = self.sold.lock().unwrap_or_else(PoisonError::into_inner);
        status_sentence(&sold)
    }

    /// Tells the creator of new sales, at once or with the next digest.
    pub(super) async fn tell_sales(&self) -> Result<(), StoreError> {
        self.load_sales().await?;
        if let Some((message, body)) = self.store.tell_sales(HOUR, message_of).await? {
            let recipient = "creator".to_owned();
            self.emit(Event::MessageSent { message, recipient, body });
        }
        Ok(())
    }
}

/// Returns the sentence about sales that the status of a prompt has; `None` where there are none.
pub(crate) fn status_sentence(sold: &[PortSales]) -> Option<String> {
    (!sold.is_empty()).then(|| format!("Sold so far: {}.", in_words(sold)))
}

fn message_of(sold: &[PortSales]) -> Labelled {
    let since = sold.iter().map(|one| one.last_at).max().unwrap_or(Timestamp::EPOCH);
    let text = format!(
        "Sold: {}. The last request was at {since}. `automaton pnl --by service` shows all.",
        in_words(sold)
    );
    Labelled::new(Label::Own, SOURCE, text)
}

/// The sums for each port, and in all where there are several.
fn in_words(sold: &[PortSales]) -> String {
    let requests = |sales: u64| match sales {
        1 => "1 request".to_owned(),
        some => format!("{some} requests"),
    };
    let one =
        |it: &PortSales| format!("{} to port {} for {}", requests(it.sales), it.port, it.amount);
    let mut text = sold.iter().take(PORTS_MAX).map(one).collect::<Vec<_>>().join(", ");
    if let Some(more) = sold.get(PORTS_MAX..).filter(|more| !more.is_empty()) {
        text.push_str(&format!(", and to {} ports more", more.len()));
    }
    if sold.len() > 1 {
        let sales = sold.iter().fold(0_u64, |sum, it| sum.saturating_add(it.sales));
        // silent-ok: more than can be counted is shown as the sum for each port alone.
        let amount = total_amount(sold).unwrap_or(MicroUsdc::ZERO);
        text.push_str(&format!("; {} for {amount} in all", requests(sales)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sold(port: u16, sales: u64, cents: u64) -> PortSales {
        PortSales {
            machine: "m".parse().unwrap(),
            port,
            sales,
            amount: MicroUsdc::from_cents(cents).unwrap(),
            last_at: Timestamp::from_millis(1_000),
        }
    }

    #[test]
    fn a_message_of_sales_is_short_however_many_there_are() {
        let body = message_of(&[sold(8080, 1, 1)]);
        assert_eq!(
            body.text,
            "Sold: 1 request to port 8080 for 0.01 USDC. The last request was at \
             1970-01-01T00:00:01.000Z. `automaton pnl --by service` shows all."
        );
        assert_eq!(body.label, Label::Own, "no word of a visitor is in it");
        let many: Vec<PortSales> = (1..=40).map(|port| sold(port, 1_000, 10)).collect();
        let text = message_of(&many).text;
        assert!(text.contains("1000 requests to port 5 for 0.10 USDC, and to 35 ports more"));
        assert!(text.contains("; 40000 requests for 4.00 USDC in all."), "{text}");
        assert!(text.len() < 400, "{text}");
    }
}
