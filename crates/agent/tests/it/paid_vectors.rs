//! Vectors that a cloud sells: booked before they are asked for, and paid once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use automaton_agent::PaidEmbedder;
use automaton_core::error::chain;
use automaton_core::faults::NoFaults;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::model::ModelId;
use automaton_core::money::Microcents;
use automaton_core::secret::Secret;
use automaton_core::wire::cloud::{ModelPricing, ModelRow};
use automaton_inference::providers::http::ApiAuth;
use automaton_inference::{Embedder as _, EmbeddingServer, ModelPrices};
use automaton_net::{HttpClient, HttpClientConfig, Origin, Url};
use automaton_store::Store;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::json;
use tokio::net::TcpListener;

use crate::life::{Home, ids};

const ONE: &str = r#"{"data":[{"index":0,"embedding":[1.0,0.5]}],"usage":{"prompt_tokens":7}}"#;

/// A cent for a million tokens, ten of them a microcent.
const PRICE: i64 = 100_000;

/// What a cloud does next.
#[derive(Debug, Clone, Copy)]
enum Next {
    Says(u16, &'static str),
    /// Begins its answer, and breaks off.
    BreaksOff,
    /// Never answers.
    Hangs,
}

/// A cloud, the names that it was asked with, and one that buys there.
struct Shop {
    embedder: PaidEmbedder,
    store: Store,
    names: Arc<Mutex<Vec<String>>>,
    _home: Home,
}

impl Shop {
    #[expect(clippy::disallowed_methods, reason = "a server ends with its test")]
    async fn open(next: &[Next], ceilings: InferenceCeilings) -> Self {
        let names = Arc::<Mutex<Vec<String>>>::default();
        let (kept, next) =
            (Arc::clone(&names), Arc::new(Mutex::new(VecDeque::from(next.to_vec()))));
        let answer = async move |headers: HeaderMap, _: Bytes| -> Response {
            assert_eq!(headers["authorization"], "cnwy_k_test");
            let name = headers["idempotency-key"].to_str().unwrap().to_owned();
            kept.lock().unwrap().push(name);
            let next = next.lock().unwrap().pop_front().unwrap();
            match next {
                Next::Says(status, text) => {
                    (StatusCode::from_u16(status).unwrap(), text).into_response()
                }
                Next::BreaksOff => ([("content-length", "9000")], ONE).into_response(),
                Next::Hangs => std::future::pending().await,
            }
        };
        let app = Router::new().route("/v1/embeddings", post(answer));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/embeddings", listener.local_addr().unwrap());
        let url: Url = url.parse().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let allow_private_origins = vec![Origin::from_url(&url).unwrap()];
        let config = HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() };
        let auth = ApiAuth::Raw(Secret::new("cnwy_k_test".to_owned()));
        let client = HttpClient::new(config).unwrap();
        let server = EmbeddingServer::new(client, url, ModelId::from("small"), auth);
        let input_per_million = Microcents::new(PRICE);
        let prices = ModelPrices { input_per_million, ..ModelPrices::default() };
        let home = Home::new();
        let store = home.store(Arc::new(NoFaults)).await;
        let books = (store.clone(), ids());
        let embedder = PaidEmbedder::new(server, prices, "cloud".to_owned(), ceilings, books);
        Self { embedder, store, names, _home: home }
    }

    /// What comes of one text: its vector's length, or what failed.
    async fn buy(&self) -> Result<usize, String> {
        let found = self.embedder.embed(vec!["a boat".to_owned()]).await;
        found.map(|it| it.vectors[0].to_bytes().len()).map_err(|error| chain(&error).to_string())
    }

    /// What is booked, what was counted, and how many answers are open.
    async fn books(&self) -> (i64, i64, usize) {
        let booked = self.store.thinking_cost().await.unwrap().day;
        let counted = self.store.totals().await.unwrap().cost;
        (booked.units(), counted.units(), self.store.unsettled_costs().await.unwrap().len())
    }

    fn asked(&self) -> Vec<String> {
        self.names.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn vectors_cost_what_the_cloud_counted_and_a_refusal_nothing() {
    let none = r#"{"error":{"message":"insufficient credits"}}"#;
    let next = [Next::Says(200, ONE), Next::Says(402, none), Next::Says(200, ONE)];
    let shop = Shop::open(&next, InferenceCeilings::default()).await;
    assert_eq!(shop.embedder.embed(Vec::new()).await.unwrap().model, "small of a server");
    assert!(shop.asked().is_empty(), "nothing is asked for nothing");
    // Seven tokens at a tenth of a microcent, rounded up.
    assert_eq!((shop.buy().await, shop.books().await), (Ok(2), (1, 1, 0)));
    let refused = shop.buy().await.unwrap_err();
    assert!(refused.contains("insufficient credits"), "{refused}");
    assert_eq!(shop.books().await, (1, 1, 0));
    let price = Microcents::new(100 * PRICE);
    let pricing = ModelPricing::new(price, price, None, Microcents::ZERO).unwrap();
    let sold: ModelRow =
        serde_json::from_value(json!({ "id": "small", "pricing": pricing })).unwrap();
    shop.embedder.reprice(&[sold]);
    assert_eq!((shop.buy().await, shop.books().await), (Ok(2), (71, 71, 0)), "at the new price");
    let names = shop.asked();
    assert!(names.len() == 3 && names[0] != names[1] && names[1] != names[2], "{names:?}");
}

#[tokio::test]
async fn an_answer_that_got_lost_is_asked_for_once_more_by_its_name_and_then_stays_booked() {
    let next = [Next::BreaksOff, Next::Says(200, ONE), Next::BreaksOff, Next::BreaksOff];
    let shop = Shop::open(&next, InferenceCeilings::default()).await;
    assert_eq!((shop.buy().await, shop.books().await), (Ok(2), (1, 1, 0)));
    shop.buy().await.unwrap_err();
    let (booked, counted, open) = shop.books().await;
    // The most that it can have cost: a token a byte, and some for what a model adds.
    assert!((30..50).contains(&booked), "{booked}");
    assert_eq!((counted, open), (1, 1));
    let names = shop.asked();
    assert_eq!((&names[0], &names[2]), (&names[1], &names[3]));
    assert_ne!(names[1], names[2]);
}

#[tokio::test]
async fn what_would_pass_a_ceiling_or_is_no_answer_is_told_and_keeps_its_booking() {
    let per_day = Some(Microcents::new(40));
    let ceilings = InferenceCeilings { per_day, ..InferenceCeilings::default() };
    let shop = Shop::open(&[Next::Says(200, "{}")], ceilings).await;
    let bad = shop.buy().await.unwrap_err();
    assert!(bad.contains("missing field `data`"), "{bad}");
    let (booked, counted, open) = shop.books().await;
    assert!((30..=40).contains(&booked), "{booked}");
    assert_eq!((counted, open), (0, 1), "it may have been charged");
    let over = shop.buy().await.unwrap_err();
    assert!(over.contains("vectors are not bought") && over.contains("maxInference"), "{over}");
    assert_eq!(shop.asked().len(), 1, "it was not asked");
}

#[tokio::test]
async fn who_stops_waiting_leaves_it_booked_until_the_cloud_says_what_it_cost() {
    let shop = Shop::open(&[Next::Hangs], InferenceCeilings::default()).await;
    let asked = async {
        while shop.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        // It is on its way: nobody else may settle it.
        assert_eq!(shop.store.unsettled_costs().await.unwrap().len(), 0);
    };
    tokio::select! {
        bought = shop.buy() => panic!("{bought:?}"),
        () = asked => {}
    }
    let (booked, counted, open) = shop.books().await;
    assert!((30..50).contains(&booked), "{booked}");
    assert_eq!((counted, open), (0, 1));
    let lost = shop.store.unsettled_costs().await.unwrap().pop().unwrap();
    assert_eq!(
        (lost.reservation.name(), lost.cloud.as_deref()),
        (shop.asked()[0].clone(), Some("cloud"))
    );
}

#[tokio::test]
async fn what_cannot_be_booked_is_not_asked_for() {
    let shop = Shop::open(&[], InferenceCeilings::default()).await;
    shop.store.clone().close().await.unwrap();
    let told = shop.buy().await.unwrap_err();
    assert!(told.contains("vectors are not bought"), "{told}");
    assert!(shop.asked().is_empty());
}
