//! The model's server as it is: what it says of itself, what it refuses, and a stop while it
//! answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use automaton_core::event::Event;
use automaton_testkit::world::{ProcessOutput, World};
use serde_json::json;

use super::livelihood::check_books;
use super::{paying_world, world};

/// How long a run may take, on a machine that does other things too.
const LIMIT: Duration = Duration::from_secs(120);

/// What a server does with a question.
#[derive(Clone, Copy)]
pub(crate) enum Mood {
    /// Refuses it.
    Refuses(u16, &'static str),
    /// Never ends its answer.
    Hangs,
    /// Answers.
    Answers,
    /// Answers, and gives this reason for the end.
    Ends(&'static str),
    /// Calls a tool, and tells of the tokens what nobody can count with.
    Miscounts,
    /// Answers what has no more than so many tokens, and refuses the rest.
    Takes(usize),
}

/// A server of the chat-completions format with one model.
pub(crate) struct Server {
    pub(crate) url: String,
    mood: Mutex<Mood>,
    asked: AtomicU32,
    /// How often it was asked for vectors.
    pub(crate) embedded: AtomicU32,
    /// What it was last asked, and with which headers.
    last: Mutex<serde_json::Value>,
    head: Mutex<String>,
}

/// What is no count of tokens, one after the other.
const MISCOUNTS: [&str; 6] = [
    "null",
    "-5",
    r#""many""#,
    r#"{"prompt_tokens":1000000000000000000,"completion_tokens":3}"#,
    r#"{"prompt_tokens":1e309,"completion_tokens":1e309}"#,
    r#"{"prompt_tokens":60000,"completion_tokens":3}"#,
];

/// An answer that calls a tool, with one of them.
fn miscounted(nth: usize) -> String {
    let arguments = format!(r#"{{"command":"echo {nth}"}}"#);
    let function = json!({ "name": "exec", "arguments": arguments });
    let calls = json!([{ "index": 0, "id": "c", "function": function }]);
    let delta = json!({ "content": "Again.", "tool_calls": calls });
    let choices = json!([{ "delta": delta, "finish_reason": "tool_calls" }]);
    let usage = MISCOUNTS[nth % MISCOUNTS.len()];
    let piece = format!(r#"{{"choices":{choices},"took":1e309}}"#);
    format!("data: {piece}\n\ndata: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n")
}

/// An answer in Anthropic's format.
const MESSAGES: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude\",\"usage\":",
    "{\"input_tokens\":9,\"cache_creation_input_tokens\":40,\"cache_read_input_tokens\":50,",
    "\"output_tokens\":1}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Fine.\"}}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

/// Its answer in other formats, by the end of the path at which each is asked.
const OTHERS: [(&str, &str, &str); 4] = [
    ("/v1/messages", "text/event-stream", MESSAGES),
    (
        "/v1/responses",
        "text/event-stream",
        concat!(
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Fine.\"}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":",
            "{\"input_tokens\":99,\"output_tokens\":3}}}\n\n",
        ),
    ),
    (
        "/api/chat",
        "application/x-ndjson",
        concat!(
            "{\"message\":{\"content\":\"Fine.\"},\"done\":false}\n",
            "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",",
            "\"prompt_eval_count\":99,\"eval_count\":3}\n",
        ),
    ),
    (
        ":streamGenerateContent?alt=sse",
        "text/event-stream",
        concat!(
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Fine.\"}]},",
            "\"finishReason\":\"STOP\"}],\"usageMetadata\":",
            "{\"promptTokenCount\":99,\"candidatesTokenCount\":3}}\n\n",
        ),
    ),
];

/// What Ollama says of a model, and what Gemini lists.
const SHOWN: &str = r#"{"model_info":{"qwen3.context_length":40960}}"#;
const LISTED: &str = r#"{"models":[{"name":"models/gemini-2.5-pro","inputTokenLimit":60000,
    "outputTokenLimit":8192}]}"#;

/// What it lists.
const MODELS: &str = r#"{"data":[{"id":"big-one","context_length":50000,"max_output_tokens":2000},
    {"id":"small-one"},{"id":"claude-sonnet-4-5-20250929"},{"id":"claude-haiku-4-5-20251001"},
    {"id":"gpt-5.2"},{"id":"llama-3.3-70b-versatile"}]}"#;

/// What Ollama lists.
const TAGS: &str = r#"{"models":[{"name":"qwen3","model":"qwen3"}]}"#;

/// Where it says what models it has.
const LISTS: [(&str, &str); 5] = [
    ("/v1/models", MODELS),
    ("/api/show", SHOWN),
    ("/api/tags", TAGS),
    ("/v1/v1beta/models?pageSize=1000", LISTED),
    ("/v1beta/models?pageSize=1000", LISTED),
];

/// That, to whoever asks for it.
fn listed(path: &str, body: &[u8]) -> (u16, &'static str, String) {
    let has_it = path != "/api/show" || String::from_utf8_lossy(body).contains("qwen3");
    match LISTS.iter().find(|(known, _)| has_it && *known == path) {
        Some((_, list)) => (200, "application/json", (*list).to_owned()),
        None => (404, "application/json", "{}".to_owned()),
    }
}

impl Server {
    /// Waits until it was asked so often.
    fn wait_for_questions(&self, count: u32) {
        let step = Duration::from_millis(10);
        for _ in 0..LIMIT.as_millis() / step.as_millis() {
            if self.asked() >= count {
                return;
            }
            std::thread::sleep(step);
        }
        panic!("asked {} times of {count}", self.asked());
    }

    pub(crate) fn start(mood: Mood) -> Arc<Self> {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap(), mood)
    }

    /// Starts it at a listener.
    pub(crate) fn listen(listener: TcpListener, mood: Mood) -> Arc<Self> {
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (asked, embedded) = (AtomicU32::new(0), AtomicU32::new(0));
        let (last, head) = (Mutex::default(), Mutex::default());
        let server = Arc::new(Self { url, mood: Mutex::new(mood), asked, embedded, last, head });
        let serving = Arc::clone(&server);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let serving = Arc::clone(&serving);
                std::thread::spawn(move || serving.serve(stream.unwrap()));
            }
        });
        server
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }

    /// Remembers what is asked; how often it was asked before.
    fn note(&self, head: &str, body: &[u8]) -> usize {
        *self.last.lock().unwrap() = serde_json::from_slice(body).unwrap();
        *self.head.lock().unwrap() = head.to_lowercase();
        self.asked.fetch_add(1, Ordering::SeqCst) as usize
    }

    /// Vectors by one word that they have or lack, for two tokens a text.
    fn embedded(&self, body: &[u8]) -> String {
        self.embedded.fetch_add(1, Ordering::SeqCst);
        let asked: serde_json::Value = serde_json::from_slice(body).unwrap();
        let texts = asked["input"].as_array().unwrap();
        let row = |(index, text): (usize, &serde_json::Value)| {
            let is_of_boats = text.as_str().unwrap().contains("boat");
            let vector = if is_of_boats { [1.0, 0.0] } else { [0.0, 1.0] };
            json!({ "index": index, "embedding": vector })
        };
        let data: Vec<_> = texts.iter().enumerate().map(row).collect();
        json!({ "data": data, "usage": { "prompt_tokens": texts.len() * 2 } }).to_string()
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some((name, value)) = line.trim_end().split_once(": ")
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.parse().unwrap();
            }
            if line.trim_end().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let other = OTHERS.iter().find(|(end, ..)| path.ends_with(end));
        let (status, media, body) = match path.as_str() {
            _ if other.is_some() => {
                self.note(&head, &body);
                let (_, media, body) = other.unwrap();
                (200, *media, (*body).to_owned())
            }
            "/v1/chat/completions" => {
                let nth = self.note(&head, &body);
                let tokens = body.len() / 4;
                let mood = *self.mood.lock().unwrap();
                match mood {
                    Mood::Takes(most) if tokens > most => {
                        let text = format!(
                            "This model's maximum context length is {most} tokens. However, your \
                             request has {tokens} input tokens."
                        );
                        let body = json!({ "error": { "message": text } }).to_string();
                        (400, "application/json", body)
                    }
                    Mood::Refuses(status, text) => {
                        let body = json!({ "error": { "message": text } }).to_string();
                        (status, "application/json", body)
                    }
                    Mood::Hangs => {
                        let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"Well\"}}]}\n\n";
                        let head = "HTTP/1.1 200 .\r\ncontent-type: text/event-stream";
                        write!(stream, "{head}\r\n\r\n{piece}").unwrap();
                        // Until its client has gone.
                        reader.read_to_end(&mut Vec::new()).ok();
                        return;
                    }
                    Mood::Miscounts => (200, "text/event-stream", miscounted(nth)),
                    Mood::Answers | Mood::Takes(_) | Mood::Ends(_) => {
                        let end = if let Mood::Ends(word) = mood { word } else { "stop" };
                        let piece = json!({
                            "choices": [{ "delta": { "content": "Fine." }, "finish_reason": end }],
                            "usage": { "prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12 },
                        });
                        (200, "text/event-stream", format!("data: {piece}\n\ndata: [DONE]\n\n"))
                    }
                }
            }
            "/v1/embeddings" => (200, "application/json", self.embedded(&body)),
            path => listed(path, &body),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status} .\r\ncontent-type: {media}\r\nconnection: close");
        // A client that has gone needs no answer.
        write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").ok();
    }
}

fn up(world: &World, more: &[&str]) -> ProcessOutput {
    let mut arguments = vec!["--turns", "1", "--ask", "Hello"];
    arguments.extend(more);
    world.up(&arguments).unwrap().finish_within(LIMIT).unwrap()
}

#[test]
fn a_key_that_is_refused_is_tried_once_and_told_where_it_is() {
    for (make, whom) in [(world as fn() -> World, "direct"), (paying_world, "through its cloud")] {
        let server = Server::start(Mood::Refuses(401, "Incorrect API key"));
        let finished = up(&make().brain(&server.url), &["--brain-model", "big-one"]);
        assert_eq!(finished.code, Some(1), "{whom}: {}", finished.stderr);
        assert_eq!(server.asked(), 1, "{whom}");
        let name = "set the environment variable AUTOMATON_BRAIN_KEY";
        assert!(finished.stderr.contains(name), "{whom}: {}", finished.stderr);

        let world = make();
        let brain = json!({ "kind": "http", "url": server.url, "apiKey": "sk-wrong-key-0001" });
        let file = json!({ "name": "A", "genesisPrompt": "Be.", "brain": brain });
        world.write_home("automaton.json", &file.to_string()).unwrap();
        let finished = up(&world, &[]);
        assert_eq!(server.asked(), 2, "{whom}");
        assert!(finished.stderr.contains("`brain.apiKey`"), "{whom}: {}", finished.stderr);
        assert!(!finished.stderr.contains("sk-wrong"), "{whom}: {}", finished.stderr);
    }
}

#[test]
fn a_model_that_is_not_there_is_not_asked_and_told_with_those_that_are() {
    for (make, whom) in [(world as fn() -> World, "direct"), (paying_world, "through its cloud")] {
        let server = Server::start(Mood::Refuses(404, "model 'big-on' not found"));
        let finished = up(&make().brain(&server.url), &["--brain-model", "big-on"]);
        assert_eq!((finished.code, server.asked()), (Some(1), 0), "{whom}: {}", finished.stderr);
        for words in ["big-one, small-one", "--brain-model"] {
            assert!(finished.stderr.contains(words), "{whom}: {}", finished.stderr);
        }
    }
}

/// The window and the note with which the model was announced.
fn ready(finished: &ProcessOutput) -> (u32, String) {
    let ready = finished.events.iter().find_map(|stamped| match &stamped.event {
        Event::BrainReady { context_tokens, note, .. } => {
            Some((*context_tokens, note.clone().unwrap_or_default()))
        }
        _ => None,
    });
    ready.unwrap_or_else(|| panic!("{}", finished.stderr))
}

#[test]
fn the_window_is_the_servers_unless_its_creator_says_another() {
    for (make, whom) in [(world as fn() -> World, "direct"), (paying_world, "through its cloud")] {
        let server = Server::start(Mood::Answers);
        let of = |more: &[&str]| {
            let finished = up(&make().brain(&server.url), more);
            assert_eq!(finished.code, Some(0), "{whom}: {}", finished.stderr);
            ready(&finished)
        };
        assert_eq!(of(&["--brain-model", "big-one"]), (50_000, String::new()), "{whom}");
        let said = ["--brain-model", "big-one", "--context-tokens", "20000"];
        assert_eq!(of(&said), (20_000, String::new()), "{whom}");
        let (window, note) = of(&["--brain-model", "small-one"]);
        assert_eq!(window, 8192, "{whom}");
        assert!(note.contains("small-one") && note.contains("`brain.contextTokens`"), "{note}");
    }
}

#[test]
fn a_server_that_takes_a_fraction_of_what_was_said_is_asked_with_what_it_names() {
    for (make, whom) in [(world as fn() -> World, "direct"), (paying_world, "through its cloud")] {
        let server = Server::start(Mood::Takes(3000));
        let home = make().brain(&server.url);
        let finished = up(&home, &["--brain-model", "big-one", "--context-tokens", "50000"]);
        assert_eq!(finished.code, Some(0), "{whom}: {}", finished.stderr);
        assert!((2..=3).contains(&server.asked()), "{whom}: {}", server.asked());
        let failed = finished.events.iter().find_map(|stamped| match &stamped.event {
            Event::TurnFailed { error, .. } => Some(error.clone()),
            _ => None,
        });
        let failed = failed.unwrap();
        assert!(failed.contains("taken to be 50000, and its server says 3000"), "{whom}: {failed}");
    }
}

#[test]
fn a_dialect_that_its_creator_names_is_spoken() {
    for (make, whom) in [(world as fn() -> World, "direct"), (paying_world, "through its cloud")] {
        let (server, home) = (Server::start(Mood::Answers), make());
        let home = home.brain(&server.url);
        let fields = |more: &[&str]| {
            let finished = up(&home, &[&["--brain-model", "small-one"], more].concat());
            assert_eq!(finished.code, Some(0), "{whom}: {}", finished.stderr);
            let last = server.last.lock().unwrap();
            ["seed", "temperature", "max_tokens", "max_completion_tokens"]
                .map(|field| last.get(field).is_some())
        };
        assert_eq!(fields(&["--dialect", "plain"]), [false, false, true, false], "{whom}");
        assert_eq!(fields(&[]), [false, false, true, false], "{whom}: it is written down");
        assert_eq!(fields(&["--dialect", "reasoning"]), [false, false, false, true], "{whom}");
        assert_eq!(fields(&["--dialect", "classic"]), [true, true, true, false], "{whom}");
    }
}

#[test]
fn what_flags_say_of_a_model_is_written_down_and_stays_with_it() {
    let (server, world) = (Server::start(Mood::Answers), world());
    let flags = ["--max-output-tokens", "700", "--prices", "1.25,10,0.125"];
    let mut first = vec!["--brain-model", "small-one", "--context-tokens", "30000"];
    first.extend(flags);
    let home = world.brain(&server.url);
    assert_eq!(ready(&up(&home, &first)).0, 30_000);
    let text = std::fs::read_to_string(home.home().join("automaton.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let brain = &file["brain"];
    assert_eq!((&brain["contextTokens"], &brain["maxOutputTokens"]), (&json!(30_000), &json!(700)));
    let prices = json!({
        "inputPerMillion": "1.25", "cachedPerMillion": "0.125", "outputPerMillion": "10.00",
    });
    assert_eq!(brain["prices"], prices);
    assert_eq!(ready(&up(&home, &["--brain-model", "small-one"])).0, 30_000);
    assert_eq!(ready(&up(&home, &["--brain-model", "big-one"])).0, 50_000, "another model");
}

#[test]
fn what_is_to_be_known_of_a_model_is_noted_once_however_often_its_agent_starts() {
    let server = Server::start(Mood::Hangs);
    let run = world().brain(&server.url).up(&["--brain-model", "small-one"]).unwrap();
    // Its first words are kept back until they are known to be no thoughts.
    server.wait_for_questions(1);
    run.kill_agent().unwrap();
    server.wait_for_questions(2);
    run.signal("TERM").unwrap();
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.stderr.matches("Note: ").count(), 1, "{}", finished.stderr);
}

#[test]
fn a_stop_in_the_middle_of_an_answer_is_quick_and_no_failure_later() {
    let server = Server::start(Mood::Hangs);
    let world = paying_world().brain(&server.url);
    let run = world.up(&["--brain-model", "big-one", "--ask", "Hello"]).unwrap();
    server.wait_for_questions(1);
    assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
    let finished = run.finish_within(LIMIT).unwrap();
    // The server never answers; who waited for that would not be here.
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    *server.mood.lock().unwrap() = Mood::Answers;
    let again = up(&world, &[]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    for stamped in finished.events.iter().chain(&again.events) {
        let failed = matches!(
            &stamped.event,
            Event::ErrorReported { .. } | Event::TurnFailed { .. } | Event::MessageFailed { .. }
        );
        assert!(!failed, "{stamped:?}");
    }
    let books = again.events.iter().rev().find_map(|stamped| match &stamped.event {
        Event::BooksChecked { books, .. } => Some(*books),
        _ => None,
    });
    assert_eq!(books.unwrap().unsettled, 0, "settled by its name");
}

#[test]
fn an_unknown_reason_for_the_end_of_an_answer_is_told_with_its_turn() {
    let server = Server::start(Mood::Ends("quota_\u{1b}[2Jsoft"));
    let world = world().brain(&server.url);
    let finished = up(&world, &["--brain-model", "big-one"]);
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    let told = finished.events.iter().find_map(|stamped| match &stamped.event {
        Event::InferenceCompleted { unknown_end, .. } => unknown_end.clone(),
        _ => None,
    });
    assert!(told.is_some_and(|word| word.starts_with("quota_")), "{}", finished.stdout);
    let turn = world.command(&["turn", "1"]).unwrap().stdout;
    let end = "; the server ended it with \"quota_";
    assert!(turn.contains(end) && turn.contains("an unknown reason"), "{turn}");
    assert!(!turn.contains('\u{1b}'), "{turn:?}");
}

#[test]
fn what_a_server_miscounts_is_estimated_once_and_all_books_agree() {
    let server = Server::start(Mood::Miscounts);
    let world = paying_world().brain(&server.url);
    let turns = MISCOUNTS.len().to_string();
    let arguments = ["--brain-model", "big-one", "--turns", &turns, "--ask", "Count"];
    let finished = world.up(&arguments).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    let books = check_books(&finished.events, "miscounted");
    assert_eq!((books.answers, books.estimated, books.unsettled), (6, 6, 0), "{books:?}");
    assert_eq!(books.gone().unwrap(), Some(books.computed), "exactly");
    let told = finished.events.iter().filter_map(|stamped| match &stamped.event {
        Event::InferenceCompleted { estimated, cost, .. } => Some((*estimated, cost.units())),
        _ => None,
    });
    let told: Vec<(bool, i64)> = told.collect();
    assert!(told.iter().all(|(estimated, cost)| *estimated && *cost > 0), "{told:?}");
    assert_eq!(told.iter().map(|(_, cost)| cost).sum::<i64>(), books.computed.units());
    let failed = |event: &Event| matches!(event, Event::TurnFailed { .. });
    assert!(!finished.events.iter().any(|stamped| failed(&stamped.event)), "{}", finished.stdout);
}

#[test]
fn a_key_in_the_environment_is_found_told_and_spent_on_with_care() {
    for (make, whom) in [(world as fn() -> World, "direct"), (paying_world, "through its cloud")] {
        let server = Server::start(Mood::Answers);
        let world = make()
            .variable("ANTHROPIC_API_KEY", "sk-ant-0123456789")
            .variable("ANTHROPIC_BASE_URL", server.url.trim_end_matches("/v1"));
        let finished = up(&world, &[]);
        assert_eq!(finished.code, Some(0), "{whom}: {}", finished.stderr);
        for words in [
            "ANTHROPIC_API_KEY is set: claude-sonnet-4-5 of Anthropic can think for it",
            "$3.00 for a million tokens that it reads",
            "at most $1.00 a day",
        ] {
            assert!(finished.stderr.contains(words), "{whom}: {words}\n{}", finished.stderr);
        }
        assert!(server.asked() > 0, "{whom}");
        assert!(!finished.stdout.contains("not to be had"), "{whom}: {}", finished.stdout);
        let head = server.head.lock().unwrap().clone();
        assert!(head.contains("x-api-key: sk-ant-0123456789"), "{whom}: {head}");
        assert!(head.contains("anthropic-version: 2023-06-01"), "{whom}: {head}");
        let asked = server.last.lock().unwrap().clone();
        assert_eq!(asked["messages"][0]["role"], "user", "{whom}");
        assert!(asked["tools"][0]["input_schema"].is_object(), "{whom}");
        let text = std::fs::read_to_string(world.home().join("automaton.json")).unwrap();
        let file: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(!text.contains("sk-ant"), "{whom}: a key is not written down");
        assert_eq!(file["brain"]["format"], "anthropicMessages", "{whom}");
        assert_eq!(file["treasuryPolicy"]["maxInferenceDailyCents"], 100, "{whom}");
        // In microcents: 9 at 300, 40 into the cache at 375, 50 out of it at 30, 3 at 1,500.
        let cost = finished.events.iter().find_map(|stamped| match &stamped.event {
            Event::TurnCommitted { cost, .. } => Some(cost.units()),
            _ => None,
        });
        match whom {
            "direct" => assert_eq!(cost, Some(9 * 300 + 40 * 375 + 50 * 30 + 3 * 1500)),
            // What a server on this machine costs is the cloud's to say.
            _ => drop(check_books(&finished.events, "anthropic")),
        }
        // Its own cloud has the key in a file for this user alone, for as long as there is one.
        let kept = world.dir().join("home-dev/upstream.key");
        assert_eq!(kept.exists(), whom != "direct", "{whom}");
        if whom != "direct" {
            let mode = std::fs::metadata(&kept).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{whom}");
        }
        // What was found once is written down, and the key is looked for where it was.
        let again = up(&world, &[]);
        assert_eq!(again.code, Some(0), "{whom}: {}", again.stderr);
        assert!(!again.stderr.contains("is set:"), "{whom}: {}", again.stderr);
        let other = Server::start(Mood::Answers);
        let other = up(&world, &["--brain", &other.url, "--brain-model", "big-one"]);
        assert_eq!(other.code, Some(0), "{whom}: {}", other.stderr);
        assert!(!kept.exists(), "{whom}: the key of a seller that is not asked any more");
    }
}

#[test]
fn a_seller_is_known_by_its_name_and_says_which_key_it_wants() {
    let finished = up(&world().arg("--brain").arg("anthropic"), &[]);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("ANTHROPIC_API_KEY"), "{}", finished.stderr);
    let server = Server::start(Mood::Answers);
    let world = world()
        .variable("OPENAI_API_KEY", "sk-0123456789")
        .variable("OPENAI_BASE_URL", &server.url)
        .arg("--brain")
        .arg("openai");
    let finished = up(&world, &["--brain-model", "big-one"]);
    assert_eq!((finished.code, server.asked()), (Some(0), 1), "{}", finished.stderr);
}

/// Two sellers, of whom the first is out of order: the turn ends with the second, is paid once,
/// and whoever asks is told why.
#[test]
fn a_turn_goes_on_at_another_seller_and_says_why() {
    for (mood, why) in [
        (Mood::Refuses(500, "the database is away"), "Its server answered with status 500."),
        (Mood::Refuses(429, "slow down"), "Its server answered with status 429."),
        (Mood::Refuses(401, "who are you?"), "does not accept the key"),
        (Mood::Refuses(402, "pay first"), "no credits left"),
    ] {
        let (first, second) = (Server::start(mood), Server::start(Mood::Answers));
        let world = world()
            .variable("OPENAI_API_KEY", "sk-first-0123456789")
            .variable("OPENAI_BASE_URL", &first.url)
            .variable("GROQ_API_KEY", "gsk-second-0123456789")
            .variable("GROQ_BASE_URL", &second.url);
        let finished = up(&world, &[]);
        assert_eq!(finished.code, Some(0), "{why}: {}", finished.stderr);
        assert!(finished.stderr.contains("groq is asked"), "{}", finished.stderr);
        assert_eq!((first.asked() > 0, second.asked()), (true, 1), "{why}");
        assert!(!second.head.lock().unwrap().contains("sk-first"), "a key is its seller's alone");
        let explained = world.command(&["model", "why"]).unwrap().stdout;
        assert!(explained.contains("was asked and did not answer"), "{explained}");
        assert!(explained.contains(why) && !explained.contains("database"), "{explained}");
        assert!(explained.contains("llama-3.3-70b-versatile"), "{explained}");
        // 9 tokens at the catalogue's price for the one and 3 for the other: once.
        let spent = world.command(&["model", "spend", "--json"]).unwrap().stdout;
        let spent: serde_json::Value = serde_json::from_str(&spent).unwrap();
        assert_eq!(spent["models"].as_array().unwrap().len(), 1, "{spent}");
        let costs: Vec<_> = finished
            .events
            .iter()
            .filter_map(|stamped| match &stamped.event {
                Event::TurnCommitted { cost, .. } => Some(cost.units()),
                _ => None,
            })
            .collect();
        let cost = &spent["models"][0]["cost"];
        assert_eq!((costs.len(), spent["ceilings"][0]["spent"] == *cost), (1, true), "{spent}");
        // The rules, the models, and a choice that holds for the next start.
        let listed = world.command(&["model", "list"]).unwrap().stdout;
        for words in ["gpt-5.2", "llama-3.3-70b-versatile", "agent_turn", "low_compute"] {
            assert!(listed.contains(words), "{words}: {listed}");
        }
        let used = world.command(&["model", "use", "llama-3.3-70b-versatile"]).unwrap();
        assert_eq!(used.code, Some(0), "{}", used.stderr);
        let before = first.asked();
        assert_eq!(up(&world, &[]).code, Some(0));
        assert_eq!((first.asked(), second.asked()), (before, 2), "the chosen one is asked first");
        assert_eq!(world.command(&["model", "use", "usual"]).unwrap().code, Some(0));
    }
}

/// The same behind its own cloud, which has the keys; the agent has none.
#[test]
fn a_turn_goes_on_at_another_seller_behind_its_cloud() {
    let (first, second) = (Server::start(Mood::Refuses(500, "away")), Server::start(Mood::Answers));
    let world = paying_world()
        .variable("OPENAI_API_KEY", "sk-first-0123456789")
        .variable("OPENAI_BASE_URL", &first.url)
        .variable("GROQ_API_KEY", "gsk-second-0123456789")
        .variable("GROQ_BASE_URL", &second.url);
    let finished = up(&world, &[]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!((first.asked() > 0, second.asked()), (true, 1));
    let explained = world.command(&["model", "why"]).unwrap().stdout;
    assert!(explained.contains("llama-3.3-70b-versatile of its own cloud answered"), "{explained}");
    let dev = world.dir().join("home-dev");
    for (name, key) in [("upstream.key", "sk-first"), ("upstream-1.key", "gsk-second")] {
        assert!(std::fs::read_to_string(dev.join(name)).unwrap().starts_with(key), "{name}");
    }
    check_books(&finished.events, "two sellers");
}

/// What the server was last asked, once it answered in a turn.
fn asked(server: &Server, finished: &ProcessOutput, whom: &str) -> serde_json::Value {
    assert_eq!((finished.code, server.asked()), (Some(0), 1), "{whom}: {}", finished.stderr);
    let counted = finished.events.iter().find_map(|stamped| match &stamped.event {
        Event::InferenceCompleted { prompt_tokens, estimated, .. } => {
            Some((*prompt_tokens, *estimated))
        }
        _ => None,
    });
    assert_eq!(counted, Some((99, false)), "{whom}");
    server.last.lock().unwrap().clone()
}

#[test]
fn a_server_is_asked_in_the_format_that_its_creator_names() {
    for (make, whom) in [(world as fn() -> World, "direct"), (paying_world, "through its cloud")] {
        let named = |format: &str, model: &str| {
            let (server, world) = (Server::start(Mood::Answers), make());
            let brain = json!({ "kind": "http", "url": server.url, "format": format,
                "model": model, "apiKey": "k-0123456789" });
            let file = json!({ "name": "A", "genesisPrompt": "Be.", "brain": brain });
            world.write_home("automaton.json", &file.to_string()).unwrap();
            let finished = up(&world, &[]);
            if whom != "direct" {
                // Each format's end is known, so that the answer is charged.
                check_books(&finished.events, &format!("{format} {whom}"));
            }
            (ready(&finished).0, asked(&server, &finished, &format!("{format} {whom}")))
        };
        let (_, body) = named("responses", "big-one");
        assert_eq!(body["store"], false, "{whom}");
        assert!(body["tools"][0]["name"].is_string(), "{whom}");
        let (window, body) = named("ollama", "qwen3");
        // As many as are asked for, so that nothing is cut off in silence.
        assert_eq!((window, &body["options"]["num_ctx"]), (16_384, &json!(16_384)), "{whom}");
        assert!(body["tools"][0]["function"]["parameters"].is_object(), "{whom}");
        let (_, body) = named("gemini", "gemini-2.5-pro");
        let tools = &body["tools"][0]["functionDeclarations"];
        assert!(tools[0]["parametersJsonSchema"].is_object(), "{whom}");
    }
}

#[test]
fn ollama_and_gemini_are_asked_in_their_own_formats_where_their_variables_lead() {
    let server = Server::start(Mood::Answers);
    let root = server.url.trim_end_matches("/v1");
    let world = world().variable("OLLAMA_BASE_URL", root);
    let finished = up(&world, &["--brain-model", "qwen3"]);
    let body = asked(&server, &finished, "ollama");
    assert_eq!(body["options"]["num_ctx"], 16_384);
    let server = Server::start(Mood::Answers);
    let root = server.url.trim_end_matches("/v1");
    let world = super::world().variable("OLLAMA_HOST", root.trim_start_matches("http://"));
    let finished = up(&world, &["--brain-model", "qwen3", "--context-tokens", "20000"]);
    assert_eq!(asked(&server, &finished, "its host")["options"]["num_ctx"], 20_000);
    let text = std::fs::read_to_string(world.home().join("automaton.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let wanted = json!({ "kind": "http", "url": root, "format": "ollama", "model": "qwen3",
        "contextTokens": 20_000 });
    assert_eq!(file["brain"], wanted, "for the next start");
    let server = Server::start(Mood::Answers);
    let root = server.url.trim_end_matches("/v1");
    let world = super::world()
        .variable("GEMINI_API_KEY", "AIza-0123456789")
        .variable("GEMINI_BASE_URL", root);
    let finished = up(&world, &[]);
    assert!(asked(&server, &finished, "gemini")["contents"].is_array());
    assert_eq!(ready(&finished).0, 60_000, "as it says itself");
    let head = server.head.lock().unwrap().clone();
    assert!(head.contains("x-goog-api-key: aiza-0123456789"), "{head}");
}

#[test]
fn the_version_of_anthropics_format_is_the_one_that_is_named() {
    for (make, whom) in [(world as fn() -> World, "direct"), (paying_world, "through its cloud")] {
        let (server, world) = (Server::start(Mood::Answers), make());
        let brain = json!({ "kind": "http", "url": server.url, "format": "anthropicMessages",
            "model": "claude-sonnet-4-5", "apiKey": "k-0123456789" });
        let strategy = json!({ "anthropicApiVersion": "2099-01-01" });
        let file = json!({ "name": "A", "genesisPrompt": "Be.", "brain": brain,
            "modelStrategy": strategy });
        world.write_home("automaton.json", &file.to_string()).unwrap();
        let asked = asked(&server, &up(&world, &[]), whom);
        assert!(asked["messages"].is_array(), "{whom}");
        let head = server.head.lock().unwrap().clone();
        assert!(head.contains("anthropic-version: 2099-01-01"), "{whom}: {head}");
    }
}

#[test]
fn a_model_costs_what_its_creator_says_from_the_day_on() {
    let prices = |dollars: &str| json!({ "inputPerMillion": dollars, "outputPerMillion": dollars });
    let schedule = json!([
        { "model": "claude-*", "from": "2024-02-29", "prices": prices("2") },
        { "model": "claude-*", "from": "2999-01-01", "prices": prices("9") },
        { "model": "claude-sonnet-4-5", "prices": prices("7") },
    ]);
    for (make, whom) in [(world as fn() -> World, "direct"), (paying_world, "through its cloud")] {
        let (server, world) = (Server::start(Mood::Answers), make());
        let brain = json!({ "kind": "http", "url": server.url, "format": "anthropicMessages",
            "model": "claude-sonnet-4-5", "apiKey": "k-0123456789" });
        let file = json!({ "name": "A", "genesisPrompt": "Be.", "brain": brain,
            "modelStrategy": { "prices": schedule } });
        world.write_home("automaton.json", &file.to_string()).unwrap();
        let finished = up(&world, &[]);
        let cost = finished.events.iter().find_map(|stamped| match &stamped.event {
            Event::TurnCommitted { cost, .. } => Some(cost.units()),
            _ => None,
        });
        assert_eq!(cost, Some(102 * 200), "{whom}: {}", finished.stderr);
        let listed = world.command(&["model", "list", "--json"]).unwrap().stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed["models"][0]["input_per_million"], 200_000_000, "{whom}");
    }
    let file = r#"{"modelStrategy": {"prices": [{"model": "m", "from": "2026-02-30",
        "prices": {"inputPerMillion": "1", "outputPerMillion": "1"}}]}}"#;
    let world = world();
    world.write_home("automaton.json", file).unwrap();
    let refused = world.command(&["model", "list"]).unwrap();
    assert!(refused.stderr.contains("'2026-02-30' is no day such as 2026-12-01"), "{refused:?}");
}
