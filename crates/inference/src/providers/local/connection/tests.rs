//! Helpers that behave, and helpers that do not.

use std::sync::Mutex;

use automaton_core::wire::brain::LocalModelFinishReason;
use proptest::prelude::*;
use tokio::io::{DuplexStream, duplex};

use super::*;
use crate::provider::NoTokenSink;

const HELLO: &str =
    r#"{"say":"hello","version":1,"model":"m","parameters":1,"context_tokens":512,"load_ms":2}"#;
const DONE: &str = r#"{"say":"done","text":"hi you","calls":[{"name":"sleep","arguments":"{}"}],"finish":"stop","prompt_tokens":3,"cached_tokens":1,"completion_tokens":2,"first_token_ms":4,"total_ms":5}"#;

/// Patience of a test. Time is paused: it passes as soon as nothing else can.
const DEADLINES: LocalModelDeadlines = LocalModelDeadlines {
    hello: Duration::from_secs(5),
    idle: Duration::from_secs(7),
    total: Duration::from_secs(20),
};

fn request() -> LocalModelCompletionRequest {
    LocalModelCompletionRequest {
        messages: Vec::new(),
        tools: Vec::new(),
        left_out: Vec::new(),
        max_tokens: 9,
        seed: 0,
        temperature_milli: 0,
    }
}

/// A helper that has said all this already, and holds its end open.
async fn saying(text: &[u8]) -> (LocalModelConnection<DuplexStream>, DuplexStream) {
    let (ours, mut theirs) = duplex(text.len().max(1 << 16));
    theirs.write_all(text).await.unwrap();
    (LocalModelConnection::new(ours), theirs)
}

/// Returns the outcome of a request to a helper that sends this and then ends.
async fn asked(text: &str) -> Result<LocalModelCompletion, LocalModelConnectionError> {
    let (mut link, mut theirs) = saying(text.as_bytes()).await;
    theirs.shutdown().await.unwrap();
    link.complete(&request(), &NoTokenSink, DEADLINES).await
}

#[derive(Default)]
struct Heard(Mutex<String>);

impl TokenSink for Heard {
    fn text(&self, piece: &str) {
        self.0.lock().unwrap().push_str(piece);
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_exchange() {
    let text = format!(
        "{HELLO}\n{{\"say\":\"token\",\"text\":\"hi \"}}\n{{\"say\":\"token\",\"text\":\"you\"}}\n{DONE}\n"
    );
    let (mut link, mut theirs) = saying(text.as_bytes()).await;
    assert_eq!(link.hello(DEADLINES.hello).await.unwrap().context_tokens, 512);
    let heard = Heard::default();
    let done = link.complete(&request(), &heard, DEADLINES).await.unwrap();
    assert_eq!((done.text.as_str(), done.finish), ("hi you", LocalModelFinishReason::Stop));
    assert_eq!(heard.0.into_inner().unwrap(), "hi you");
    drop(link);
    let mut sent = String::new();
    theirs.read_to_string(&mut sent).await.unwrap();
    let read: LocalModelRequest = serde_json::from_str(sent.strip_suffix('\n').unwrap()).unwrap();
    assert_eq!(read, LocalModelRequest::Complete(request()));
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_leaves_the_link_usable() {
    let failed = r#"{"say":"failed","code":"too_long","message":"900 tokens\n of 512"}"#;
    let (mut link, _theirs) = saying(format!("{failed}\n{DONE}\n").as_bytes()).await;
    let error = link.complete(&request(), &NoTokenSink, DEADLINES).await.unwrap_err();
    let message = "900 tokens of 512".to_owned();
    assert_eq!(
        error,
        LocalModelConnectionError::Answer { code: LocalModelFailureCode::TooLong, message }
    );
    assert!(link.complete(&request(), &NoTokenSink, DEADLINES).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_dies_is_gone() {
    for text in ["", "{\"say\":\"tok", "{\"say\":\"token\",\"text\":\"a\"}\n", DONE] {
        assert_eq!(asked(text).await, Err(LocalModelConnectionError::Closed), "{text}");
    }
    let (mut link, theirs) = saying(b"").await;
    drop(theirs);
    assert_eq!(link.hello(DEADLINES.hello).await, Err(LocalModelConnectionError::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_says_nonsense_is_found_out() {
    let token = "{\"say\":\"token\",\"text\":\"a\"}\n";
    for text in [
        "\n".to_owned(),
        "hello\n".to_owned(),
        "\u{0}\u{1}\n".to_owned(),
        "{\"say\":\"sing\"}\n".to_owned(),
        "{\"say\":\"token\"}\n".to_owned(),
        "{\"say\":\"token\",\"text\":\"a\",\"more\":1}\n".to_owned(),
        format!("{token}{HELLO}\n"),
        format!("{token}{{\"say\":\"counted\",\"tokens\":1}}\n"),
    ] {
        let error = asked(&text).await.unwrap_err();
        assert!(matches!(error, LocalModelConnectionError::Protocol(_)), "{text}: {error:?}");
    }
    for text in [format!("{DONE}\n"), token.to_owned()] {
        let (mut link, _theirs) = saying(text.as_bytes()).await;
        let error = link.hello(DEADLINES.hello).await.unwrap_err();
        assert!(matches!(error, LocalModelConnectionError::Protocol(_)), "{text}: {error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_version_is_refused() {
    let hello = HELLO.replace("\"version\":1", "\"version\":2");
    let (mut link, _theirs) = saying(format!("{hello}\n").as_bytes()).await;
    assert_eq!(link.hello(DEADLINES.hello).await, Err(LocalModelConnectionError::Version(2)));
}

#[tokio::test(start_paused = true)]
async fn a_line_without_end_is_not_read_to_its_end() {
    let error = asked(&"x".repeat(LINE_BYTES_MAX + 10)).await.unwrap_err();
    assert!(matches!(error, LocalModelConnectionError::Protocol(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_end_is_not_shown_to_its_end() {
    let token = format!("{{\"say\":\"token\",\"text\":\"{}\"}}\n", "x".repeat(1 << 20));
    let error = asked(&token.repeat(5)).await.unwrap_err();
    assert!(matches!(error, LocalModelConnectionError::Protocol(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_helper_is_given_up() {
    let (mut link, _theirs) = saying(b"").await;
    assert_eq!(
        link.hello(DEADLINES.hello).await,
        Err(LocalModelConnectionError::Slow(DEADLINES.hello))
    );
    let (mut link, _theirs) = saying(b"{\"say\":\"token\",\"text\":\"a\"}\n").await;
    let error = link.complete(&request(), &NoTokenSink, DEADLINES).await.unwrap_err();
    assert_eq!(error, LocalModelConnectionError::Hung(DEADLINES.idle));
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_does_not_listen_is_given_up() {
    let (ours, _theirs) = duplex(16);
    let mut long = request();
    long.left_out = vec!["x".repeat(1 << 16)];
    let error =
        LocalModelConnection::new(ours).complete(&long, &NoTokenSink, DEADLINES).await.unwrap_err();
    assert_eq!(error, LocalModelConnectionError::Hung(DEADLINES.idle));
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_never_gets_done_is_given_up() {
    let (ours, mut theirs) = duplex(1 << 16);
    let mut link = LocalModelConnection::new(ours);
    let drip = async {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if theirs.write_all(b"{\"say\":\"token\",\"text\":\"a\"}\n").await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let question = request();
    let error = tokio::select! {
        answer = link.complete(&question, &NoTokenSink, DEADLINES) => answer.unwrap_err(),
        () = drip => unreachable!("it drips for ever"),
    };
    assert_eq!(error, LocalModelConnectionError::Slow(DEADLINES.total));
}

#[tokio::test(start_paused = true)]
async fn a_request_beyond_a_line_is_not_sent() {
    let (mut link, _theirs) = saying(format!("{DONE}\n").as_bytes()).await;
    let mut long = request();
    long.left_out = vec!["x".repeat(LINE_BYTES_MAX)];
    let error = link.complete(&long, &NoTokenSink, DEADLINES).await.unwrap_err();
    assert!(
        matches!(
            error,
            LocalModelConnectionError::Answer { code: LocalModelFailureCode::TooLong, .. }
        ),
        "{error:?}"
    );
    assert!(link.complete(&request(), &NoTokenSink, DEADLINES).await.is_ok());
}

proptest! {
    #[test]
    fn any_bytes_end_in_an_answer_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (mut link, _theirs) = saying(&bytes).await;
            let answer = link.complete(&request(), &NoTokenSink, DEADLINES).await;
            assert!(answer.is_err());
        });
    }
}
