//! What was sold and what is published, over restarts, and what of it was told.

use automaton_core::id::CallId;
use automaton_core::money::MicroUsdc;
use automaton_core::record::{WakeCause, WakeSource};
use automaton_core::time::{HOUR, Timestamp};
use automaton_core::trust::{Label, Labelled};
use automaton_store::{AccountPage, Cursor, PortSales, PublicationState, PublishedPort, Store};

use super::World;

const CLOUD: &str = "http://cloud.test";

fn sold(port: u16, sales: u64) -> PortSales {
    PortSales {
        machine: "m".parse().unwrap(),
        port,
        sales,
        amount: MicroUsdc::new(sales * 10_000),
        last_at: Timestamp::from_millis(i64::from(port)),
    }
}

/// Books a page that ends at a sale, after another one.
async fn book(store: &Store, since: i64, to: i64, sold: Vec<PortSales>) -> bool {
    let cursor = |sale| Cursor { entry: 0, sale };
    let page = AccountPage { entries: Vec::new(), sold };
    store.book_account(CLOUD.to_owned(), cursor(since), cursor(to), page).await.unwrap()
}

/// The ports and counts of the message that is sent now, if one is.
async fn told(store: &Store) -> Option<String> {
    let words = |sold: &[PortSales]| {
        let parts: Vec<String> =
            sold.iter().map(|it| format!("{}:{}", it.port, it.sales)).collect();
        Labelled::new(Label::Own, "runtime", parts.join(" "))
    };
    store.tell_sales(HOUR, words).await.unwrap().map(|(_, body)| body.text)
}

#[tokio::test]
async fn a_sale_is_counted_once_and_told_once() {
    let mut world = World::born().await;
    assert_eq!(told(&world.store).await, None);
    assert!(book(&world.store, 0, 1, vec![sold(8080, 1)]).await);
    assert!(!book(&world.store, 0, 1, vec![sold(8080, 1)]).await, "the page is booked already");
    assert_eq!(told(&world.store).await.as_deref(), Some("8080:1"), "the first one at once");
    assert!(book(&world.store, 1, 900, vec![sold(8080, 700), sold(8081, 199)]).await);
    assert_eq!(told(&world.store).await, None, "not twice an hour");
    world.crash();
    world.advance(HOUR.as_millis() - 1);
    assert_eq!(told(&world.store).await, None);
    world.advance(1);
    assert_eq!(told(&world.store).await.as_deref(), Some("8081:199 8080:700"));
    world.advance(HOUR.as_millis());
    assert_eq!(told(&world.store).await, None, "there is nothing new");
    let all = world.reader().port_sales().unwrap();
    assert_eq!(all, [sold(8081, 199), sold(8080, 701)]);
}

#[tokio::test]
async fn a_port_that_was_being_opened_again_is_found_so_after_a_crash() {
    let mut world = World::born().await;
    let call: CallId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
    let published = PublishedPort {
        port: 8080,
        price: Some("0.01".to_owned()),
        url: "http://8080-x.localhost:1".to_owned(),
        commands: vec!["python3 -m http.server 8080".to_owned()],
        call,
        turn: "01ARZ3NDEKTSV4RRFFQ69G5FAW".parse().unwrap(),
        state: PublicationState::Open,
    };
    let published_again = published.clone();
    world.store.note_published(published.clone()).await.unwrap();
    world.crash();
    assert_eq!(world.store.published_ports().await.unwrap(), std::slice::from_ref(&published));
    world.store.begin_reopening(8080, "ALLOWED No rule objects.".to_owned()).await.unwrap();
    world.crash();
    let found = world.reader().published_ports().unwrap();
    let reopening = PublishedPort { state: PublicationState::Reopening, ..published.clone() };
    assert_eq!(found, [reopening]);
    world.store.note_published(PublishedPort { price: None, ..published.clone() }).await.unwrap();
    let found = world.store.published_ports().await.unwrap();
    assert_eq!(found, [PublishedPort { price: None, ..published }]);
    let reason = Labelled::new(Label::Own, "heartbeat", "Port 8080 is gone.");
    let wake = WakeCause { source: WakeSource::Heartbeat, reason };
    world.store.give_up_published(8080, wake.clone()).await.unwrap();
    world.crash();
    assert_eq!(world.store.published_ports().await.unwrap(), []);
    let woken: Vec<WakeCause> =
        world.store.pending_wakes().await.unwrap().into_iter().map(|(_, cause)| cause).collect();
    assert_eq!(woken, [wake]);
    world.store.note_published(published_again).await.unwrap();
    world.store.forget_published(8080).await.unwrap();
    assert_eq!(world.store.published_ports().await.unwrap(), []);
}
