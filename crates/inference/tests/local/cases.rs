//! What the provider does with helpers that live, die, hang and lie.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::{Classified as _, ErrorClass, chain};
use automaton_core::time::SystemClock;
use automaton_inference::providers::local::{LocalModel, LocalModelConfig, LocalModelDeadlines};
use automaton_inference::{
    Completion, CompletionRequest, FinishReason, InferenceError, LocalModelError, Message,
    NoTokenSink, Provider as _,
};
use automaton_sandbox::{Launcher, probe};
use tempfile::TempDir;

/// Every case with its name.
pub(crate) const ALL: &[(&str, fn())] = &[
    ("a_helper_answers_and_sees_nothing_of_the_host", answers),
    ("a_helper_that_dies_is_started_again", dies),
    ("a_helper_that_died_in_between_is_not_noticed", died_in_between),
    ("a_helper_that_hangs_is_ended_and_started_again", hangs),
    ("a_helper_that_lies_is_ended_and_started_again", lies),
    ("an_answer_that_is_given_up_does_not_leak_into_the_next", given_up),
    ("a_helper_that_dies_again_and_again_is_given_up", too_often),
    ("a_stopped_helper_is_started_by_the_next_question", stopped),
    ("a_helper_that_nobody_asks_is_unloaded_and_loaded_again", idle),
    ("a_model_that_cannot_be_used_is_explained", unusable),
];

struct World {
    directory: TempDir,
    config: LocalModelConfig,
}

/// A model file that says this, and patience for tests.
fn world(model: &str) -> World {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.gguf");
    std::fs::write(&path, model).unwrap();
    let own = std::env::current_exe().unwrap();
    let launcher = Launcher::new(own.clone());
    let config = LocalModelConfig {
        probe: probe(&launcher),
        launcher,
        helper: own,
        model: path,
        threads: 1,
        context_tokens: 1024,
        memory_bytes: 256 << 20,
        sha256: None,
        deadlines: LocalModelDeadlines {
            hello: Duration::from_secs(5),
            idle: Duration::from_millis(800),
            total: Duration::from_secs(20),
        },
    };
    World { directory, config }
}

fn run(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(case);
}

async fn start(world: &World) -> Result<LocalModel, InferenceError> {
    LocalModel::start(world.config.clone(), Arc::new(SystemClock)).await
}

async fn tell(local: &LocalModel, text: &str) -> Result<Completion, InferenceError> {
    let ask = CompletionRequest {
        messages: vec![Message::system("rules").into(), Message::user(text).into()],
        tools: Arc::default(),
        left_out: Vec::new(),
        max_tokens: 10,
        seed: 1,
        temperature_milli: 0,
        name: None,
        silence: None,
    };
    local.complete(&ask, &NoTokenSink).await
}

async fn lives(local: &LocalModel) {
    assert_eq!(tell(local, "hello").await.unwrap().text, "you said hello");
}

fn helper(error: &InferenceError) -> &LocalModelError {
    match error {
        InferenceError::Helper(error) => error,
        other => panic!("{other}"),
    }
}

fn answers() {
    run(async {
        let world = world("good");
        let local = start(&world).await.unwrap();
        assert!(local.model().weak);
        assert_eq!(local.model().context_tokens, 1024);
        lives(&local).await;
        let reply = tell(&local, "look around").await.unwrap();
        assert_eq!((reply.text.as_str(), reply.finish), ("", FinishReason::Stop));
        assert_eq!((reply.usage.prompt_tokens, reply.usage.cached_tokens), (10, 4));
        assert_eq!(reply.usage.cost.units(), 0);
    });
}

fn dies() {
    run(async {
        let world = world("good");
        let local = start(&world).await.unwrap();
        let error = tell(&local, "die").await.unwrap_err();
        let shown = chain(&error).to_string();
        assert!(shown.contains("code 3") && shown.contains("out of luck"), "{shown}");
        assert_eq!(error.kind(), ErrorClass::Transient);
        lives(&local).await;
    });
}

fn died_in_between() {
    run(async {
        let world = world("good");
        let local = start(&world).await.unwrap();
        tell(&local, "die afterwards").await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        lives(&local).await;
    });
}

fn hangs() {
    run(async {
        let world = world("good");
        let local = start(&world).await.unwrap();
        let error = tell(&local, "hang").await.unwrap_err();
        assert!(matches!(helper(&error), LocalModelError::Hung { .. }), "{error}");
        lives(&local).await;
    });
}

fn lies() {
    run(async {
        let world = world("good");
        let local = start(&world).await.unwrap();
        let error = tell(&local, "lie").await.unwrap_err();
        let shown = chain(&error).to_string();
        assert!(matches!(helper(&error), LocalModelError::Protocol { .. }), "{shown}");
        assert!(shown.contains("teapot"), "{shown}");
        lives(&local).await;
    });
}

fn given_up() {
    run(async {
        let world = world("good");
        let local = start(&world).await.unwrap();
        let given_up = tokio::time::timeout(Duration::from_millis(200), tell(&local, "hang")).await;
        assert!(given_up.is_err());
        lives(&local).await;
    });
}

fn too_often() {
    run(async {
        let world = world("good");
        let local = start(&world).await.unwrap();
        for _ in 0..6 {
            let error = tell(&local, "die").await.unwrap_err();
            assert!(matches!(helper(&error), LocalModelError::Died { .. }), "{error}");
        }
        let error = tell(&local, "hello").await.unwrap_err();
        assert!(matches!(helper(&error), LocalModelError::GivenUp { starts: 6 }), "{error}");
        assert!(error.hint().is_some());
    });
}

fn stopped() {
    run(async {
        let world = world("good");
        let local = start(&world).await.unwrap();
        local.stop().await;
        local.stop().await;
        lives(&local).await;
    });
}

fn idle() {
    run(async {
        let world = world("good");
        let local = start(&world).await.unwrap();
        // More often than a helper that dies may be started.
        for _ in 0..8 {
            lives(&local).await;
            let is_ended = local.unload_after(Duration::from_secs(3600)).await;
            assert!(!is_ended, "it was asked a moment ago");
            assert!(local.unload_after(Duration::ZERO).await);
            assert!(!local.unload_after(Duration::ZERO).await, "it is gone already");
        }
        let later = LocalModel::on_demand(world.config.clone(), Arc::new(SystemClock)).await;
        let later = later.unwrap();
        assert!(!later.unload_after(Duration::ZERO).await, "a first question loads it");
        lives(&later).await;
        assert!(later.unload_after(Duration::ZERO).await);
    });
}

fn unusable() {
    run(async {
        let truncated = world("truncated");
        let error = start(&truncated).await.err().unwrap();
        let (shown, path) = (chain(&error).to_string(), truncated.config.model.display());
        assert!(matches!(helper(&error), LocalModelError::NotReady { .. }), "{shown}");
        assert!(shown.contains(&format!("{path} ends before its tensors do")), "{shown}");
        assert_eq!((error.kind(), error.hint().is_some()), (ErrorClass::Config, true));

        let error = start(&world("old")).await.err().unwrap();
        assert!(matches!(helper(&error), LocalModelError::Version { .. }), "{error}");

        let mut sleeping = world("sleeping");
        sleeping.config.deadlines.hello = Duration::from_millis(500);
        let error = start(&sleeping).await.err().unwrap();
        assert!(matches!(helper(&error), LocalModelError::Slow { .. }), "{error}");

        let mut other = world("good");
        other.config.sha256 = Some("0".repeat(64));
        let error = start(&other).await.err().unwrap();
        assert!(matches!(helper(&error), LocalModelError::Changed { .. }), "{error}");

        let mut missing = world("good");
        missing.config.model = missing.directory.path().join("none.gguf");
        let error = start(&missing).await.err().unwrap();
        assert!(matches!(helper(&error), LocalModelError::Unreadable { .. }), "{error}");

        let mut no_helper = world("good");
        no_helper.config.helper = PathBuf::from("/nonexistent/automaton-llama");
        let error = start(&no_helper).await.err().unwrap();
        assert!(chain(&error).to_string().contains("sandbox"), "{}", chain(&error));
    });
}
