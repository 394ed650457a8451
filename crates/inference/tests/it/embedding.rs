//! A model of meanings in a folder: its vectors, and what is told of files that are none.

use std::fs;
use std::sync::{Arc, Mutex};

use automaton_core::error::{Classified, ErrorClass, chain};
use automaton_core::model::ModelId;
use automaton_inference::providers::http::ApiAuth;
use automaton_inference::{
    Embedder as _, EmbeddingError, EmbeddingServer, LocalEmbedder, ServedEmbedder,
};
use automaton_net::{HttpClient, HttpClientConfig, Origin, Url};
use automaton_testkit::embedding::{write_model, write_mpnet_model};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::server::spawn;

const WORDS: [&[&str]; 3] = [&["car", "vehicle"], &["boat"], &["red"]];

async fn similarity(embedder: &LocalEmbedder, left: &str, right: &str) -> i32 {
    let found = embedder.embed(vec![left.to_owned(), right.to_owned()]).await.unwrap();
    found.vectors[0].similarity(&found.vectors[1].to_bytes())
}

#[tokio::test]
async fn what_means_the_same_points_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path(), &WORDS).unwrap();
    let embedder = LocalEmbedder::new(folder.path().to_owned(), None);
    assert!(similarity(&embedder, "a Car!", "vehicle").await > 990);
    assert!(similarity(&embedder, "car", "boat").await.abs() < 10);
    let both = similarity(&embedder, "red car", "my vehicle").await;
    assert!((600..800).contains(&both), "{both}");
    // What it knows nothing of has no direction, and is like nothing.
    assert_eq!(similarity(&embedder, "zeppelin", "zeppelin").await, 0);
    let none = embedder.embed(Vec::new()).await.unwrap();
    assert_eq!((none.vectors.len(), none.model.len()), (0, 16));
}

#[tokio::test]
async fn a_model_of_the_other_family_is_read_by_its_own_names() {
    let folder = tempfile::tempdir().unwrap();
    write_mpnet_model(folder.path(), &WORDS).unwrap();
    let embedder = LocalEmbedder::new(folder.path().to_owned(), None);
    assert!(similarity(&embedder, "a Car!", "vehicle").await > 990);
    assert!(similarity(&embedder, "car", "boat").await.abs() < 10);
    let config = fs::read_to_string(folder.path().join("config.json")).unwrap();
    let told = async |from: &str, to: &str| {
        fs::write(folder.path().join("config.json"), config.replace(from, to)).unwrap();
        let embedder = LocalEmbedder::new(folder.path().to_owned(), None);
        chain(&embedder.embed(Vec::new()).await.unwrap_err()).to_string()
    };
    let buckets = "\"relative_attention_num_buckets\":8";
    let other = told(buckets, "\"relative_attention_num_buckets\":16").await;
    assert!(other.contains("[8, 2], and not [16, 2]"), "{other}");
    let none = told(buckets, "\"relative_attention_num_buckets\":0").await;
    assert!(none.contains("0 buckets"), "{none}");
    let bert = told("\"mpnet\"", "\"bert\"").await;
    assert!(bert.contains("no [CLS]"), "{bert}");
}

#[tokio::test]
async fn what_is_no_model_is_told_with_what_does_not_fit() {
    let told = async |spoil: &dyn Fn(&std::path::Path)| {
        let folder = tempfile::tempdir().unwrap();
        write_model(folder.path(), &WORDS).unwrap();
        spoil(folder.path());
        let embedder = LocalEmbedder::new(folder.path().to_owned(), None);
        let error = embedder.embed(vec!["car".to_owned()]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorClass::Config);
        assert!(error.hint().unwrap().contains("config.json"));
        chain(&error).to_string()
    };
    let write = |name: &'static str, text: &'static str| {
        move |folder: &std::path::Path| fs::write(folder.join(name), text).unwrap()
    };
    let gone = told(&|folder| fs::remove_file(folder.join("vocab.txt")).unwrap()).await;
    assert!(gone.contains("vocab.txt") && gone.contains("No such file"), "{gone}");
    let none = told(&write("config.json", "{}")).await;
    assert!(none.contains("config.json: missing field"), "{none}");
    let none = told(&write("vocab.txt", "car\nboat")).await;
    assert!(none.contains("no [CLS]"), "{none}");
    let none = told(&write("model.safetensors", "\u{8}\0\0\0\0\0\0\0{}      ")).await;
    assert!(none.contains("embeddings.word_embeddings.weight"), "{none}");
    let other = told(&|folder| {
        let text = fs::read_to_string(folder.join("config.json")).unwrap();
        let text = text.replace("\"hidden_size\":16", "\"hidden_size\":32");
        fs::write(folder.join("config.json"), text).unwrap();
    });
    let other = other.await;
    assert!(other.contains("[8, 16], and not [8, 32]"), "{other}");
    let roberta = told(&|folder| {
        let text = fs::read_to_string(folder.join("config.json")).unwrap();
        fs::write(folder.join("config.json"), text.replace("bert", "roberta")).unwrap();
    });
    assert!(roberta.await.contains("'roberta'"));
}

#[tokio::test]
async fn weights_that_are_not_those_that_were_agreed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path(), &WORDS).unwrap();
    let embedder = LocalEmbedder::new(folder.path().to_owned(), Some("07".repeat(32)));
    let error = embedder.embed(Vec::new()).await.unwrap_err();
    let EmbeddingError::Hash { found, .. } = &error else { panic!("{error:?}") };
    let embedder = LocalEmbedder::new(folder.path().to_owned(), Some(found.clone()));
    embedder.embed(Vec::new()).await.unwrap();
}

#[tokio::test]
async fn the_same_weights_read_otherwise_are_another_model() {
    let folder = tempfile::tempdir().unwrap();
    let name = async || {
        let embedder = LocalEmbedder::new(folder.path().to_owned(), None);
        embedder.embed(Vec::new()).await.unwrap().model
    };
    write_model(folder.path(), &WORDS).unwrap();
    let first = name().await;
    assert_eq!(name().await, first);
    fs::create_dir(folder.path().join("1_Pooling")).unwrap();
    let pooling = r#"{"pooling_mode_cls_token": true}"#;
    fs::write(folder.path().join("1_Pooling/config.json"), pooling).unwrap();
    let by_first_piece = name().await;
    assert_ne!(by_first_piece, first);
    let words = fs::read_to_string(folder.path().join("vocab.txt")).unwrap();
    fs::write(folder.path().join("vocab.txt"), words.replace("boat", "ship")).unwrap();
    assert_ne!(name().await, by_first_piece);
}

/// An embedder whose server gives this status and answer, and what it was asked.
async fn served(status: u16, answer: &'static str) -> (ServedEmbedder, Arc<Mutex<Vec<Value>>>) {
    let asked = Arc::<Mutex<Vec<Value>>>::default();
    let keep = Arc::clone(&asked);
    let handle = async move |Json(ask): Json<Value>| {
        keep.lock().unwrap().push(ask);
        (StatusCode::from_u16(status).unwrap(), answer)
    };
    let app = Router::new().route("/v1/embeddings", post(handle));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Url =
        format!("http://{}/v1/embeddings", listener.local_addr().unwrap()).parse().unwrap();
    spawn(async move { axum::serve(listener, app).await.unwrap() });
    let allow_private_origins = vec![Origin::from_url(&url).unwrap()];
    let config = HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() };
    let (client, model) = (HttpClient::new(config).unwrap(), ModelId::from("minilm"));
    (ServedEmbedder::new(EmbeddingServer::new(client, url, model, ApiAuth::None)), asked)
}

#[tokio::test]
async fn a_servers_vectors_are_taken_in_the_order_of_their_texts() {
    let rows = r#"{"object":"list","data":[{"index":1,"embedding":[0.5,-0.5]},
        {"index":0,"embedding":[0.0,0.25]}],"model":"minilm","usage":{"prompt_tokens":2}}"#;
    let (embedder, asked) = served(200, rows).await;
    let none = embedder.embed(Vec::new()).await.unwrap();
    assert!(asked.lock().unwrap().is_empty(), "nothing is asked for nothing");
    let long = "x".repeat(3_000);
    let found = embedder.embed(vec!["one".to_owned(), long]).await.unwrap();
    assert_eq!(found.model, none.model);
    assert_eq!(found.vectors[0].to_bytes(), [0, 127]);
    assert_eq!(found.vectors[1].to_bytes(), [127, 129]);
    let asked = asked.lock().unwrap();
    assert_eq!((&asked[0]["model"], &asked[0]["input"][0]), (&"minilm".into(), &"one".into()));
    assert_eq!(asked[0]["input"][1].as_str().unwrap().len(), 2_000);
}

#[tokio::test]
async fn a_server_that_gives_no_vectors_is_told_with_what_it_said() {
    let one = r#"{"data":[{"index":0,"embedding":[1.0]}]}"#;
    for (status, answer, part) in [
        (
            404,
            r#"{"error":"model minilm not found"}"#,
            "has no model 'minilm': model minilm not found",
        ),
        (200, "<html>", "expected value"),
        (200, one, "1 vectors for 2 texts"),
        (
            200,
            r#"{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[1]}]}"#,
            "a vector that is none",
        ),
        (
            200,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
            "2 vectors for 2",
        ),
    ] {
        let (embedder, _) = served(status, answer).await;
        let error = embedder.embed(vec!["a".to_owned(), "b".to_owned()]).await.unwrap_err();
        let told = chain(&error).to_string();
        assert!(told.contains(part) && told.contains("/v1/embeddings"), "{told}");
        assert!(error.hint().is_some());
    }
}
