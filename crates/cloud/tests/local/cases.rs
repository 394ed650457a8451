//! Questions to a model in the sandbox, their cost, and the offer of the model.

use std::sync::{Arc, Mutex};

use automaton_core::time::SystemClock;
use automaton_core::wire::cloud::ModelsReply;
use automaton_inference::providers::http::{ApiAuth, Endpoint, HttpProvider};
use automaton_inference::{
    CompletionRequest, FinishReason, InferenceError, Message, Provider, RequestDialect,
    TokenCountSource, TokenSink, catalogue,
};
use automaton_net::{HttpClient, HttpClientConfig};
use automaton_sandbox::Launcher;

use crate::world::{Reply, Wallet, World, get, post};

/// Every case with its name.
pub(crate) const ALL: &[(&str, fn())] = &[
    ("a_model_of_our_own_is_metered_like_any_other", metered),
    ("our_client_is_led_to_it_by_what_the_cloud_says_of_it", led),
];

struct Town {
    world: World,
    key: String,
    _files: tempfile::TempDir,
}

fn run<T>(case: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(case)
}

/// A cloud with a model in its sandbox, and somebody with five dollars.
async fn town() -> Town {
    let files = tempfile::tempdir().unwrap();
    let model = files.path().join("model.gguf");
    std::fs::write(&model, "good").unwrap();
    let own = std::env::current_exe().unwrap();
    let upstream = serde_json::json!({ "local": { "model": model, "helper": own } });
    let world = World::with(upstream.to_string(), Some(Launcher::new(own))).await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 20);
    assert_eq!(world.pay(&wallet, wallet.authorize(5, 1)).await.status, 200);
    Town { world, key, _files: files }
}

impl Town {
    async fn ask(&self, text: &str, more: &str) -> Reply {
        let body = format!(
            r#"{{"model":"script","messages":[{{"role":"user","content":"{text}"}}]{more}}}"#
        );
        let headers = [("Authorization", self.key.as_str())];
        post(self.world.at(), "/v1/chat/completions", &headers, &body).await
    }
}

/// Ten tokens of the prompt and three of the answer.
const COST: i64 = 10 * 200 + 3 * 1000;

fn metered() {
    run(async {
        let town = town().await;
        let before = town.world.balance(&town.key).await;
        let whole = town.ask("hello", "").await;
        let json = whole.json();
        assert_eq!((whole.status, &json["object"]), (200, &"chat.completion".into()), "{json}");
        assert_eq!(json["choices"][0]["message"]["content"], "you said hello");
        assert_eq!(json["choices"][0]["finish_reason"], "stop");
        assert_eq!(json["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
        assert_eq!(before - town.world.balance(&town.key).await, COST);

        let stream = town.ask("hello", r#","stream":true"#).await;
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
        assert!(stream.body.contains(r#""content":"you said hello""#), "{}", stream.body);
        assert!(stream.body.ends_with("data: [DONE]\n\n"), "{}", stream.body);
        assert!(!stream.body.contains(r#""choices":[]"#), "usage that nobody asked for");
        assert_eq!(before - town.world.balance(&town.key).await, 2 * COST);

        // What fails costs nothing, and the model lives on.
        let died = town.ask("die", "").await;
        assert_eq!((died.status, died.json()["code"].as_str()), (502, Some("UPSTREAM_FAILED")));
        let many = town.ask("hello", r#","n":2"#).await;
        assert_eq!((many.status, many.json()["code"].as_str()), (400, Some("UPSTREAM_REFUSED")));
        assert_eq!(town.ask("again", "").await.status, 200);
        assert_eq!(before - town.world.balance(&town.key).await, 3 * COST);
        assert_eq!(town.world.held(&town.key).await, 0);
    });
}

/// The text that was shown as it came.
#[derive(Default)]
struct Shown(Mutex<String>);

impl TokenSink for Shown {
    fn text(&self, piece: &str) {
        self.0.lock().unwrap().push_str(piece);
    }
}

fn led() {
    run(async {
        let town = town().await;
        let url = town.world.cloud.url();
        let list = get(town.world.at(), "/v1/models", &[]).await;
        let list: ModelsReply = serde_json::from_str(&list.body).unwrap();
        let info = catalogue::served(&list.data[0]);
        assert_eq!(
            (info.weak, info.dialect, info.context_tokens),
            (true, RequestDialect::Guided, 8192)
        );
        assert!(info.note.as_ref().is_some_and(|note| note.contains("135 million")));

        let origin = url.parse().unwrap();
        let allow_private_origins = vec![origin];
        let client = HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() };
        let bearer =
            |key: &str| ApiAuth::Bearer(automaton_core::secret::Secret::new(key.to_owned()));
        let endpoint = Endpoint::new(url, bearer(&town.key), info);
        let client = HttpClient::new(client).unwrap();
        let cloud = HttpProvider::new(client, endpoint, Arc::new(SystemClock)).unwrap();
        let asked = |text: &str| CompletionRequest {
            messages: vec![Message::system("rules").into(), Message::user(text).into()],
            tools: Arc::default(),
            left_out: Vec::new(),
            max_tokens: 10,
            seed: 1,
            temperature_milli: 0,
            name: Some(format!("the question {text}")),
            silence: None,
        };
        let (before, shown) = (town.world.balance(&town.key).await, Shown::default());
        let reply = cloud.complete(&asked("hello"), &shown).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.finish), ("you said hello", FinishReason::Stop));
        assert_eq!(shown.0.into_inner().unwrap(), "you said hello");
        assert_eq!((reply.usage.cached_tokens, reply.counted), (4, TokenCountSource::Reported));
        // Both reckon alike.
        let charged = before - town.world.balance(&town.key).await;
        assert_eq!(reply.usage.cost.units(), charged);
        // The same by its name is the same answer, and is charged once.
        let again = cloud.complete(&asked("hello"), &Shown::default()).await.unwrap();
        assert_eq!((again.text, again.usage.cost), (reply.text, reply.usage.cost));
        assert_eq!(before - town.world.balance(&town.key).await, charged);

        let error = cloud.complete(&asked("be short"), &Shown::default()).await.unwrap_err();
        assert!(matches!(error, InferenceError::TooLong { .. }), "{error}");
    });
}
