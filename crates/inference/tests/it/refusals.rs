//! What the creator has to mend is told with its remedy, and what a server says of itself is
//! learnt before it is asked.

use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::Classified as _;
use automaton_core::secret::Secret;
use automaton_core::time::SystemClock;
use automaton_inference::providers::http::probe::{ModelListing, probe};
use automaton_inference::providers::http::{ApiAuth, ApiFormat, Endpoint, HttpProvider, Remedies};
use automaton_inference::{InferenceError, ModelHosting, NoTokenSink, Provider as _, catalogue};
use automaton_net::{HttpClient, HttpClientConfig};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::server::{KEY, ask, spawn};

/// Serves these routes; the base URL.
async fn serve(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    spawn(async move { axum::serve(listener, routes).await.unwrap() });
    base
}

fn client(base: &str) -> HttpClient {
    let allow_private_origins = vec![base.parse().unwrap()];
    HttpClient::new(HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() })
        .unwrap()
}

fn refuses(status: u16, headers: &'static [(&'static str, &'static str)], body: &Value) -> Router {
    let (status, body) = (StatusCode::from_u16(status).unwrap(), body.to_string());
    let mut all = axum::http::HeaderMap::new();
    for (name, value) in headers {
        all.insert(*name, value.parse().unwrap());
    }
    Router::new().route("/v1/chat/completions", post(move || async move { (status, all, body) }))
}

async fn refused(routes: Router, behind_cloud: bool) -> InferenceError {
    let base = serve(routes).await;
    let auth = ApiAuth::Bearer(Secret::new(KEY.to_owned()));
    let said = |text: &str| Some(text.to_owned());
    let remedies = Remedies {
        key: said("change the key"),
        behind_cloud,
        model: said("name another"),
        window: said("tell the window"),
    };
    let info = catalogue::own_model("qwen3:8").unwrap();
    let endpoint = Endpoint { remedies, ..Endpoint::new(&base, auth, info) };
    let provider = HttpProvider::new(client(&base), endpoint, Arc::new(SystemClock)).unwrap();
    provider.complete(&ask(), &NoTokenSink).await.unwrap_err()
}

#[tokio::test]
async fn each_refusal_has_its_own_remedy_and_its_number_of_tries() {
    let table = [
        (401, json!({"error": {"message": "bad key"}}), "change the key", 1),
        (403, json!({"error": {"message": "no"}}), "change the key", 1),
        (404, json!({"error": {"message": "model 'qwen3:8' not found"}}), "name another", 1),
        (400, json!({"error": {"message": "qwen3:8 does not support tools"}}), "name another", 1),
        (400, json!({"error": {"message": "maximum context length is 8"}}), "tell the window", 4),
    ];
    for (status, body, remedy, tries) in table {
        let error = refused(refuses(status, &[], &body), false).await;
        let hint = error.hint().unwrap();
        assert!(hint.contains(remedy), "{status}: {hint}");
        assert_eq!(error.tries_max(), tries, "{status}");
        assert!(error.costs_nothing());
        assert!(!error.outline().contains("qwen"), "a server's words stay out of it");
    }
    let busy = refused(refuses(503, &[], &json!({"error": "busy"})), false).await;
    assert_eq!((busy.tries_max(), busy.wait()), (u32::MAX, None));
}

#[tokio::test]
async fn behind_a_cloud_the_key_is_that_of_the_server_behind_it() {
    let of_cloud = json!({"error": "no account has this key", "code": "UNAUTHORIZED"});
    let error = refused(refuses(401, &[], &of_cloud), true).await;
    assert!(!error.hint().unwrap().contains("change the key"));
    let behind = json!({"error": "the server does not accept it (401)", "code": "UPSTREAM_KEY"});
    let error = refused(refuses(502, &[], &behind), true).await;
    assert_eq!(error.hint().as_deref(), Some("change the key"));
    assert_eq!(error.tries_max(), 1);
}

#[tokio::test]
async fn a_model_that_is_not_there_is_told_with_those_that_are() {
    let names = ["llama3.3:70b", "qwen3:8b", "qwen3:14b", "gemma3:4b"];
    let rows: Vec<Value> = names.into_iter().map(|id| json!({ "id": id })).collect();
    let list = json!({ "data": rows }).to_string();
    let routes = refuses(404, &[], &json!({"error": {"message": "not found"}}))
        .route("/v1/models", get(move || async move { list }));
    let hint = refused(routes, false).await.hint().unwrap();
    assert_eq!(hint, "name another; the server has: qwen3:8b, qwen3:14b, gemma3:4b, llama3.3:70b");
    let nothing = refuses(404, &[], &json!({"error": "404 page not found"}));
    let hint = refused(nothing, false).await.hint().unwrap();
    assert!(hint.contains("the server's address is not"), "{hint}");
}

/// Two minutes, by the server's own clock.
const DATED: &[(&str, &str)] =
    &[("retry-after", "Sun, 06 Nov 1994 08:51:37 GMT"), ("date", "Sun, 06 Nov 1994 08:49:37 GMT")];

#[tokio::test]
async fn a_server_says_how_long_it_wants_to_be_left_alone() {
    let busy = json!({"error": {"message": "slow down"}});
    let wait = async |headers: &'static [(&'static str, &'static str)]| {
        refused(refuses(429, headers, &busy), false).await.wait().map(|wait| wait.as_secs())
    };
    assert_eq!(wait(&[("retry-after", "7")]).await, Some(7));
    assert_eq!(wait(DATED).await, Some(120));
    assert_eq!(wait(&[]).await, None);
    assert_eq!(wait(&[("retry-after", "soon")]).await, None);
}

async fn learn(base: &str, models: &[&str]) -> ModelListing {
    let format = ApiFormat::default();
    probe(&client(base), base, format, &ApiAuth::None, ModelHosting::Here, models).await.unwrap()
}

#[tokio::test]
async fn a_server_is_asked_for_its_window_wherever_its_kind_tells_it() {
    let listed = json!({"data": [{"id": "m", "max_model_len": 32_768}, {"id": "n"}]}).to_string();
    let vllm = Router::new().route("/v1/models", get(move || async move { listed }));
    let served = learn(&serve(vllm).await, &["m", "n"]).await;
    assert_eq!(served.listed, ["m", "n"]);
    assert_eq!(served.claims_of(&"m".into()).context_tokens, Some(32_768));
    assert_eq!(served.claims_of(&"n".into()).context_tokens, None);

    let show = json!({
        "parameters": "num_ctx 16384", "model_info": {"qwen3.context_length": 40_960},
    });
    let ollama = Router::new()
        .route("/v1/models", get(async || json!({"data": [{"id": "m"}]}).to_string()))
        .route(
            "/api/show",
            post(async move |body: String| {
                assert_eq!(body, r#"{"model":"m"}"#);
                show.to_string()
            }),
        );
    assert_eq!(
        learn(&serve(ollama).await, &["m"]).await.claims_of(&"m".into()).context_tokens,
        Some(16_384)
    );

    let props = json!({"default_generation_settings": {"n_ctx": 65_536}}).to_string();
    let llama = Router::new().route("/props", get(move || async move { props }));
    assert_eq!(
        learn(&serve(llama).await, &["m"]).await.claims_of(&"m".into()).context_tokens,
        Some(65_536)
    );
}

#[tokio::test]
async fn each_format_lists_its_models_and_their_windows_elsewhere() {
    let learn = async |base: &str, format, place, model: &str| {
        let auth = ApiAuth::usual(format, Some(Secret::new(KEY.to_owned())));
        let client = client(base.trim_end_matches("/v1"));
        probe(&client, base, format, &auth, place, &[model]).await.unwrap()
    };
    let tags = json!({"models": [{"name": "qwen3:latest", "model": "qwen3:latest"}]}).to_string();
    for (parameters, own, wanted) in [
        ("num_ctx 32768", 40_960, 32_768),
        ("num_ctx 999999", 40_960, 40_960),
        ("stop \"x\"", 40_960, 16_384),
        ("", 2048, 2048),
    ] {
        let show = json!({"parameters": parameters, "model_info": {"qwen3.context_length": own}});
        let tags = tags.clone();
        let routes = Router::new()
            .route("/api/tags", get(async || tags))
            .route("/api/show", post(async move |_: String| show.to_string()));
        let base = format!("{}/v1", serve(routes).await);
        for place in [ModelHosting::Here, ModelHosting::Hosted] {
            let served = learn(&base, ApiFormat::Ollama, place, "qwen3").await;
            assert!(served.lists(&"qwen3".into()), "{served:?}");
            assert_eq!(
                served.claims_of(&"qwen3".into()).context_tokens,
                Some(wanted),
                "{parameters}"
            );
        }
    }
    let row = json!({"name": "models/gemini-2.5-pro", "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536});
    let list = json!({ "models": [row] }).to_string();
    let routes = Router::new().route("/v1beta/models", get(async || list));
    let base = serve(routes).await;
    let served = learn(&base, ApiFormat::Gemini, ModelHosting::Hosted, "gemini-2.5-pro").await;
    let said = served.claims_of(&"gemini-2.5-pro".into());
    assert_eq!(served.listed, ["gemini-2.5-pro"]);
    assert_eq!((said.context_tokens, said.max_output_tokens), (Some(1_048_576), Some(65_536)));
}

#[tokio::test]
async fn a_server_that_does_not_say_is_no_failure_and_is_not_waited_for() {
    let odd = Router::new().route("/v1/models", get(async || "<html>"));
    assert_eq!(learn(&serve(odd).await, &["m"]).await, ModelListing::default());
    assert_eq!(learn("http://127.0.0.1:1", &["m"]).await, ModelListing::default());
    let silent = Router::new().route(
        "/v1/models",
        get(async || {
            tokio::time::sleep(Duration::from_secs(60)).await;
            ""
        }),
    );
    let (base, begun) = (serve(silent).await, tokio::time::Instant::now());
    assert_eq!(learn(&base, &["m"]).await, ModelListing::default());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
