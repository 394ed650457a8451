//! Metered calls in front of a scripted model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use automaton_core::time::Span;
use automaton_core::wire::cloud::REPLAYED;
use automaton_script::model::ScriptServer;
use automaton_script::story::Story;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post as route;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::messages;
use crate::world::{Reply, Wallet, World, get, post};

/// The prices of the world's model: a token of the prompt and one of the answer.
pub(crate) const PRICES: (i64, i64) = (200, 1000);

pub(crate) async fn funded(upstream: &str) -> (World, String) {
    funded_before(format!(r#"{{"base_url":"{upstream}"}}"#)).await
}

/// The same with this as the cloud's upstream.
pub(crate) async fn funded_before(upstream: String) -> (World, String) {
    let world = World::with(upstream, None).await;
    let wallet = Wallet::new(1);
    let key = world.key(&wallet).await;
    world.give(&wallet, 20);
    assert_eq!(world.pay(&wallet, wallet.authorize(5, 1)).await.status, 200);
    (world, key)
}

pub(crate) async fn script(steps: &[&str]) -> ScriptServer {
    let steps: String = steps.iter().map(|say| format!("[[step]]\nsay = \"{say}\"\n")).collect();
    let story = Story::parse("test", &format!("title = \"t\"\n{steps}")).unwrap();
    ScriptServer::start(story).await.unwrap()
}

fn body(text: &str, more: &str) -> String {
    format!(r#"{{"model":"script","messages":[{{"role":"user","content":"{text}"}}]{more}}}"#)
}

async fn ask(world: &World, authorization: &str, body: &str) -> Reply {
    let headers = [("Authorization", authorization), ("Content-Type", "application/json")];
    post(world.at(), "/v1/chat/completions", &headers, body).await
}

pub(crate) fn cost(usage: &Value) -> i64 {
    usage["prompt_tokens"].as_i64().unwrap() * PRICES.0
        + usage["completion_tokens"].as_i64().unwrap() * PRICES.1
}

#[tokio::test]
async fn a_call_costs_what_the_upstream_counted() {
    let server = script(&["I am here."]).await;
    let (world, key) = funded(&server.base_url()).await;
    let before = world.balance(&key).await;
    let reply = ask(&world, &key, &body("Hello", r#","stream":false,"max_tokens":50"#)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let json = reply.json();
    assert_eq!(json["choices"][0]["message"]["content"], "I am here.");
    assert!(cost(&json["usage"]) > 0);
    assert_eq!(before - world.balance(&key).await, cost(&json["usage"]));
}

/// An upstream that gives each question an answer of its own, `Answer 1.` first, but for those
/// that say `Bad` or `Busy`.
pub(crate) async fn counting() -> String {
    counting_behind(Arc::new(Semaphore::new(1000))).await
}

/// The same, that answers so many questions as it is let.
async fn counting_behind(gate: Arc<Semaphore>) -> String {
    let asked = Arc::new(AtomicUsize::new(0));
    let answer = move |question: axum::Json<Value>| {
        let (gate, asked) = (Arc::clone(&gate), Arc::clone(&asked));
        async move {
            gate.acquire().await.unwrap().forget();
            let refusal = match question["messages"][0]["content"].as_str() {
                Some("Bad") => Some((StatusCode::BAD_REQUEST, "bad_value")),
                Some("Busy") => Some((StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded")),
                _ => None,
            };
            if let Some((status, code)) = refusal {
                let error = json!({ "message": "No such thing", "type": "x", "code": code });
                return (status, axum::Json(json!({ "error": error })));
            }
            let nth = asked.fetch_add(1, Ordering::SeqCst) + 1;
            let message = json!({ "role": "assistant", "content": format!("Answer {nth}.") });
            let usage = json!({ "prompt_tokens": 7, "completion_tokens": nth });
            let choices = json!([{ "index": 0, "message": message, "finish_reason": "stop" }]);
            (StatusCode::OK, axum::Json(json!({ "choices": choices, "usage": usage })))
        }
    };
    serve(Router::new().route("/v1/chat/completions", route(answer))).await
}

pub(crate) async fn serve(app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    #[expect(clippy::disallowed_methods, reason = "the runtime of the test ends it")]
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}/v1")
}

fn said(reply: &Reply) -> String {
    reply.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn five_equal_questions_have_five_answers_and_five_charges() {
    let (world, key) = funded(&counting().await).await;
    let before = world.balance(&key).await;
    let asked = body("Vote", "");
    let votes = futures_util::future::join_all((0..5).map(|_| ask(&world, &key, &asked))).await;
    let mut answers: Vec<String> = votes.iter().map(said).collect();
    answers.sort_unstable();
    let all: Vec<String> = (1..=5).map(|nth| format!("Answer {nth}.")).collect();
    assert_eq!(answers, all);
    assert!(votes.iter().all(|vote| vote.header(REPLAYED).is_none()), "{votes:?}");
    let costs: i64 = votes.iter().map(|vote| cost(&vote.json()["usage"])).sum();
    assert_eq!(before - world.balance(&key).await, costs);
    // And one after another: who asks again wants another answer.
    assert_eq!(said(&ask(&world, &key, &asked).await), "Answer 6.");
}

#[tokio::test]
async fn a_stream_costs_the_same_and_ends_after_the_charge() {
    let server = script(&["One two three."]).await;
    let (world, key) = funded(&server.base_url()).await;
    let before = world.balance(&key).await;
    let more = r#","stream":true,"stream_options":{"include_usage":true}"#;
    let reply = ask(&world, &key, &body("Count", more)).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let events: Vec<&str> = reply.body.split("\n\n").filter(|event| !event.is_empty()).collect();
    assert_eq!(events.last(), Some(&"data: [DONE]"));
    let usage = events.iter().rev().nth(1).unwrap().strip_prefix("data: ").unwrap();
    let usage: Value = serde_json::from_str(usage).unwrap();
    assert_eq!(before - world.balance(&key).await, cost(&usage["usage"]));
    // Who did not ask for the usage gets no piece without choices.
    let quiet = ask(&world, &key, &body("Count", r#","stream":true"#)).await;
    assert!(!quiet.body.contains(r#""choices":[]"#), "{}", quiet.body);
    assert!(quiet.body.ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn without_credits_nothing_is_asked() {
    let server = script(&["Never."]).await;
    let world = World::with_upstream(&server.base_url()).await;
    let key = world.key(&Wallet::new(1)).await;
    let reply = ask(&world, &key, &body("Hello", "")).await;
    assert_eq!(reply.status, 402);
    let json = reply.json();
    assert_eq!(json["code"], "INSUFFICIENT_CREDITS");
    assert_eq!(json["details"]["current_balance_cents"], 0);
    assert_eq!(json["details"]["required_cents"], 2, "what the call can cost");
    assert!(server.open_step().is_some(), "the upstream was asked");
    assert_eq!(ask(&world, "nonsense", &body("Hello", "")).await.status, 401);
    // With credits the same request is no repetition of the refused one.
    let wallet = Wallet::new(1);
    world.give(&wallet, 20);
    assert_eq!(world.pay(&wallet, wallet.authorize(5, 1)).await.status, 200);
    assert_eq!(ask(&world, &key, &body("Hello", "")).await.status, 200);
}

/// A world in which somebody asked this, hung up before the answer, and was charged; what it cost.
async fn hung_up(asked: &str) -> (World, String, i64) {
    let gate = Arc::new(Semaphore::new(0));
    let (world, key) = funded(&counting_behind(Arc::clone(&gate)).await).await;
    let before = world.balance(&key).await;
    let headers = [("Authorization", key.as_str())];
    let line = "POST /v1/chat/completions";
    let stream = crate::world::open(world.at(), line, &headers, asked).await;
    crate::world::until("the call is begun", async || world.held(&key).await > 0).await;
    drop(stream);
    gate.add_permits(1000);
    crate::world::until("the call is charged", async || world.balance(&key).await < before).await;
    let charged = before - world.balance(&key).await;
    (world, key, charged)
}

#[tokio::test]
async fn a_client_that_hangs_up_is_charged_and_finds_its_answer_once() {
    let asked = body("Hello", "");
    let (world, key, charged) = hung_up(&asked).await;
    let before = world.balance(&key).await;
    let other = world.key(&Wallet::new(1)).await;
    assert_eq!(said(&ask(&world, &other, &asked).await), "Answer 2.", "it is of another key");
    let reply = ask(&world, &key, &asked).await;
    assert_eq!((said(&reply).as_str(), cost(&reply.json()["usage"])), ("Answer 1.", charged));
    assert_eq!(said(&ask(&world, &key, &asked).await), "Answer 3.", "it is nobody's now");
    let (second, third) = (7 * PRICES.0 + 2 * PRICES.1, 7 * PRICES.0 + 3 * PRICES.1);
    assert_eq!(before - world.balance(&key).await, second + third, "it was charged once");
}

#[tokio::test]
async fn who_comes_back_after_two_minutes_asks_anew() {
    let (world, key, _) = hung_up(&body("Hello", "")).await;
    world.clock.step(Span::from_secs(121));
    assert_eq!(said(&ask(&world, &key, &body("Hello", "")).await), "Answer 2.");
}

#[tokio::test]
async fn a_key_belongs_to_one_body() {
    let server = script(&["One.", "Two."]).await;
    let (world, key) = funded(&server.base_url()).await;
    let send = async |text: &str| {
        let headers = [("Authorization", key.as_str()), ("Idempotency-Key", "k")];
        post(world.at(), "/v1/chat/completions", &headers, &body(text, "")).await
    };
    let first = send("Hello").await;
    let before = world.balance(&key).await;
    let again = send("Hello").await;
    assert_eq!(again.body, first.body);
    assert_eq!((first.header(REPLAYED), again.header(REPLAYED)), (None, Some("true")));
    assert_eq!(send("Other").await.status, 409);
    assert_eq!(world.balance(&key).await, before);
}

#[tokio::test]
async fn a_failure_costs_nothing_and_can_be_repeated() {
    let steps = r#"title = "t"
[[step]]
say = "At last."
faults = ["status:503", "status:400", "cut"]
"#;
    let server = ScriptServer::start(Story::parse("test", steps).unwrap()).await.unwrap();
    let (world, key) = funded(&server.base_url()).await;
    let before = world.balance(&key).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(ask(&world, &key, &body("Hello", "")).await.status);
        if seen.len() < 4 {
            assert_eq!(world.balance(&key).await, before);
        }
    }
    assert_eq!(seen, [502, 400, 502, 200]);
    for (bad, status) in [("{}", 400), (r#"{"model":"x","messages":[]}"#, 404)] {
        assert_eq!(ask(&world, &key, bad).await.status, status, "{bad}");
    }
}

/// An upstream that answers whatever it is asked with this.
async fn parrot(kind: &'static str, text: &'static str) -> String {
    let answer = move || async move { ([("content-type", kind)], text) };
    serve(Router::new().route("/v1/chat/completions", route(answer))).await
}

/// A cloud before a server that speaks Anthropic's format and says the same to everybody.
pub(crate) async fn funded_before_anthropic() -> (World, String) {
    let usage = json!({ "input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 7 });
    let answer = move |body: String| {
        let asked: Value = serde_json::from_str(&body).unwrap();
        let is_known = asked["max_tokens"].is_u64() && asked["messages"][0]["role"] == "user";
        let text = "I am here, all of me.";
        let whole = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
            "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn", "usage": usage,
        });
        let delta = |text: &str| json!({ "type": "text_delta", "text": text });
        let events = [
            json!({ "type": "message_start", "message": { "id": "msg_1", "usage": usage } }),
            json!({ "type": "content_block_start", "index": 0,
                "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "ping" }),
            json!({ "type": "content_block_delta", "index": 0, "delta": delta(&text[..5]) }),
            json!({ "type": "content_block_delta", "index": 0, "delta": delta(&text[5..]) }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
                "usage": { "output_tokens": 7 } }),
            json!({ "type": "message_stop" }),
        ];
        let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let (kind, said) = match asked["stream"].as_bool() {
            Some(true) => ("text/event-stream", events),
            _ => ("application/json", whole.to_string()),
        };
        let status = if is_known { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        async move { (status, [("content-type", kind)], said) }
    };
    let url = serve(Router::new().route("/v1/messages", route(answer))).await;
    let format = r#""format":"anthropic_messages""#;
    funded_before(format!(r#"{{"base_url":"{url}",{format}}}"#)).await
}

#[tokio::test]
async fn a_model_behind_anthropics_format_is_sold_in_the_usual_one() {
    let (world, key) = funded_before_anthropic().await;
    let before = world.balance(&key).await;
    let reply = ask(&world, &key, &body("Hello", r#","max_tokens":50"#)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let whole = reply.json();
    let choice = &whole["choices"][0];
    assert_eq!(choice["message"]["content"], "I am here, all of me.");
    assert_eq!(
        (&choice["finish_reason"], &whole["object"]),
        (&json!("stop"), &json!("chat.completion"))
    );
    assert_eq!(whole["usage"]["prompt_tokens"], 25);
    assert_eq!(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 5);
    assert_eq!(before - world.balance(&key).await, cost(&whole["usage"]));

    let more = r#","stream":true,"max_tokens":50"#;
    let reply = ask(&world, &key, &body("Hello again", more)).await;
    let events = reply.body.split("\n\n").filter_map(|event| event.strip_prefix("data: {"));
    let events: Vec<Value> =
        events.map(|event| serde_json::from_str(&format!("{{{event}")).unwrap()).collect();
    let said = events.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str());
    assert_eq!(said.collect::<String>(), "I am here, all of me.");
    assert!(events.iter().all(|it| it["usage"].is_null()), "nobody asked for that: {}", reply.body);
    assert!(events.iter().any(|it| it["choices"][0]["finish_reason"] == "stop"), "{}", reply.body);
    assert!(events.iter().all(|it| it["object"] == "chat.completion.chunk"), "{}", reply.body);
    assert_eq!(before - world.balance(&key).await, 2 * cost(&whole["usage"]));
    // What the format cannot say is refused, and costs nothing.
    let reply = ask(&world, &key, &body("Hello", r#","n":2"#)).await;
    assert_eq!(reply.status, 400, "{reply:?}");
    assert_eq!(before - world.balance(&key).await, 2 * cost(&whole["usage"]));
}

/// An answer with this usage: whole, and as a stream with the usage at its end.
fn answers(usage: &str) -> [(&'static str, &'static str); 2] {
    let end = r#""finish_reason":"stop""#;
    let choice = |name: &str| format!(r#"[{{"{name}":{{"content":"0123456"}},"index":0,{end}}}]"#);
    let whole = format!(r#"{{"choices":{},"usage":{usage}}}"#, choice("message"));
    let pieces = format!(
        "data: {{\"choices\":{}}}\n\ndata: {{\"choices\":[],\"usage\":{usage}}}\n\n",
        choice("delta")
    );
    [("application/json", whole.leak()), ("text/event-stream", pieces.leak())]
}

#[tokio::test]
async fn a_count_that_cannot_be_is_estimated_once_told_and_charged() {
    let counts = [
        "null",
        "-5",
        r#""many""#,
        "{}",
        r#"{"prompt_tokens":-5,"completion_tokens":3}"#,
        r#"{"prompt_tokens":"7","completion_tokens":3}"#,
        r#"{"prompt_tokens":1000000000000000000,"completion_tokens":3}"#,
        r#"{"prompt_tokens":1e309,"completion_tokens":1e309}"#,
        r#"{"prompt_tokens":9000,"completion_tokens":3}"#,
        r#"{"prompt_tokens":7,"completion_tokens":9000}"#,
    ];
    for count in counts {
        let [whole, pieces] = answers(count);
        let (world, key) = funded(&parrot(whole.0, whole.1).await).await;
        let before = world.balance(&key).await;
        let asked = body("Hello", "");
        let reply = ask(&world, &key, &asked).await;
        assert_eq!((reply.status, reply.header("x-usage-estimated")), (200, Some("true")));
        // A token for each three bytes, of the request and of the text.
        let tokens = (i64::try_from(asked.len()).unwrap() + 2) / 3;
        let json = reply.json();
        let usage = &json["usage"];
        assert_eq!(
            (&usage["prompt_tokens"], &usage["completion_tokens"]),
            (&tokens.into(), &3.into())
        );
        assert_eq!(usage["estimated"], true, "{count}: {}", reply.body);
        assert_eq!(before - world.balance(&key).await, cost(usage), "{count}");
        for named in ["id", "object", "created", "model"] {
            assert!(!json[named].is_null(), "{named}: {}", reply.body);
        }

        let (world, key) = funded(&parrot(pieces.0, pieces.1).await).await;
        let before = world.balance(&key).await;
        let more = r#","stream":true,"stream_options":{"include_usage":true}"#;
        let reply = ask(&world, &key, &body("Hello", more)).await;
        let events = reply.body.split("\n\n").filter_map(|event| event.strip_prefix("data: {"));
        let events: Vec<Value> =
            events.map(|event| serde_json::from_str(&format!("{{{event}")).unwrap()).collect();
        let told: Vec<_> = events.iter().filter(|event| !event["usage"].is_null()).collect();
        assert!(
            told.len() == 1 && told[0]["usage"]["estimated"] == true,
            "{count}: {}",
            reply.body
        );
        assert_eq!(before - world.balance(&key).await, cost(&told[0]["usage"]), "{count}");
        assert!(events.iter().all(|event| event["created"].is_i64()), "{}", reply.body);
        // Who wants no usage is told in a comment.
        let quiet = ask(&world, &key, &body("Hello", r#","stream":true"#)).await;
        assert!(quiet.body.contains("\n\n: usage was not reported; "), "{}", quiet.body);
        assert!(!quiet.body.contains("prompt_tokens"), "{}", quiet.body);
    }
}

#[tokio::test]
async fn counts_with_null_beside_them_are_charged_as_they_are() {
    let usage = r#"{"prompt_tokens":7,"completion_tokens":3,"total_tokens":null,
        "prompt_tokens_details":{"cached_tokens":null},"completion_tokens_details":null}"#;
    for (kind, text) in answers(&usage.replace('\n', "")) {
        let more = if kind == "application/json" { "" } else { r#","stream":true"# };
        let (world, key) = funded(&parrot(kind, text).await).await;
        let before = world.balance(&key).await;
        let reply = ask(&world, &key, &body("Hello", more)).await;
        assert_eq!((reply.status, reply.header("x-usage-estimated")), (200, None), "{reply:?}");
        assert!(!reply.body.contains("usage was not reported"), "{}", reply.body);
        let charged = cost(&json!({"prompt_tokens": 7, "completion_tokens": 3}));
        assert_eq!(before - world.balance(&key).await, charged, "{kind}");
    }
}

#[tokio::test]
async fn an_answer_that_the_upstream_broke_off_costs_nothing() {
    let choice = |name: &str| {
        let said = r#"{"content":"0123456"}"#;
        format!(r#"{{"choices":[{{"index":0,"{name}":{said},"finish_reason":"network_error"}}]}}"#)
    };
    for (kind, text, more) in [
        ("application/json", choice("message"), ""),
        ("text/event-stream", format!("data: {}\n\n", choice("delta")), r#","stream":true"#),
    ] {
        let (world, key) = funded(&parrot(kind, text.leak()).await).await;
        let before = world.balance(&key).await;
        let reply = ask(&world, &key, &body("Hello", more)).await;
        assert!(!reply.body.contains("0123456"), "{}", reply.body);
        assert_eq!((world.balance(&key).await, world.held(&key).await), (before, 0), "{kind}");
    }
}

/// The pieces of a stream of chat completions, one for each end of a choice.
fn ends(ends: &[(u32, Option<&str>)]) -> String {
    let pieces = ends.iter().map(|(index, end)| {
        let said = json!({ "content": "0123456" });
        let choice = json!({ "index": index, "delta": said, "finish_reason": end });
        format!("data: {}\n\n", json!({ "choices": [choice] }))
    });
    pieces.collect()
}

#[tokio::test]
async fn a_stream_that_does_not_say_that_it_ended_is_no_whole_answer_and_costs_nothing() {
    let counted = json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 3 } });
    let counted = format!("data: {counted}\n\n");
    let cut = [(0, None), (0, Some(""))];
    for (stream, is_whole) in [
        (ends(&cut), false),
        // Some count with each piece, so that a count is no end.
        (ends(&cut) + &counted, false),
        (ends(&[(0, Some("stop")), (1, None)]), false),
        (ends(&[(0, Some("stop")), (1, Some("length"))]), true),
        (ends(&[(0, Some("an unknown word"))]), true),
        (ends(&cut) + "data: [DONE]\n\n", true),
    ] {
        let (world, key) = funded(&parrot("text/event-stream", stream.clone().leak()).await).await;
        let before = world.balance(&key).await;
        let reply = ask(&world, &key, &body("Hello", r#","stream":true"#)).await;
        assert_eq!((reply.status, reply.body.contains("0123456")), (200, true), "{stream}");
        assert_eq!(reply.body.contains("[DONE]"), is_whole, "{stream}: {}", reply.body);
        let paid = before - world.balance(&key).await;
        assert_eq!((paid > 0, world.held(&key).await), (is_whole, 0), "{stream}");
        let last = reply.body.trim_end().rsplit_once("data: ").unwrap().1;
        if !is_whole {
            let told: Value = serde_json::from_str(last).unwrap();
            assert_eq!(told["error"]["type"], "server_error", "{stream}: {told}");
        }
        // Clients of Anthropic's format are told by its event.
        let asked = messages::body(r#","stream":true"#);
        let reply = messages::ask(&world, &key, &asked).await;
        let has = |name: &str| reply.body.contains(&format!("event: {name}\n"));
        if stream.contains("\"index\":1") {
            // The format has one answer.
            continue;
        }
        assert_eq!((has("message_stop"), has("error")), (is_whole, !is_whole), "{stream}");
    }
}

#[tokio::test]
async fn a_stream_is_passed_on_whatever_the_upstream_calls_it() {
    let [(_, whole), (_, pieces)] = answers(r#"{"prompt_tokens":7,"completion_tokens":3}"#);
    for kind in ["application/json", "text/plain"] {
        let (world, key) = funded(&parrot(kind, pieces).await).await;
        let reply = ask(&world, &key, &body("Hello", r#","stream":true"#)).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(reply.body.contains("0123456"), "{kind}: {}", reply.body);
    }
    // Nobody could read a document in the place of a stream.
    let (world, key) = funded(&parrot("application/json", whole).await).await;
    let before = world.balance(&key).await;
    let reply = ask(&world, &key, &body("Hello", r#","stream":true"#)).await;
    assert_eq!((reply.status, reply.json()["code"].as_str()), (502, Some("UPSTREAM_REFUSED")));
    assert_eq!(world.balance(&key).await, before);
    let (world, key) =
        funded(&parrot("application/json", format!("\u{FEFF}{whole}").leak()).await).await;
    let reply = ask(&world, &key, &body("Hello", "")).await;
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "0123456", "{reply:?}");
}

#[tokio::test]
async fn an_error_in_the_place_of_an_answer_costs_nothing() {
    let text = r#"{"error":{"message":"overloaded","code":503}}"#;
    let (world, key) = funded(&parrot("application/json", text).await).await;
    let before = world.balance(&key).await;
    let reply = ask(&world, &key, &body("Hello", "")).await;
    assert_eq!((reply.status, reply.json()["code"].as_str()), (502, Some("UPSTREAM_FAILED")));
    assert_eq!((world.balance(&key).await, world.held(&key).await), (before, 0));
}

#[tokio::test]
async fn more_than_was_set_aside_is_charged_and_told_as_that() {
    let [(kind, text), _] = answers(r#"{"prompt_tokens":7,"completion_tokens":2000}"#);
    let (world, key) = funded(&parrot(kind, text).await).await;
    let before = world.balance(&key).await;
    let reply = ask(&world, &key, &body("Hello", r#","max_tokens":5"#)).await;
    let usage = reply.json()["usage"].clone();
    assert_eq!((&usage["completion_tokens"], &usage["estimated"]), (&5.into(), &true.into()));
    assert_eq!(before - world.balance(&key).await, cost(&usage));
}

#[tokio::test]
async fn what_is_set_aside_fits_the_question() {
    let steps = "title = \"t\"\n[[step]]\nsay = \"Never.\"\nfaults = [\"hang\"]\n";
    let server = ScriptServer::start(Story::parse("test", steps).unwrap()).await.unwrap();
    let (world, key) = funded(&server.base_url()).await;
    let headers = [("Authorization", key.as_str())];
    // A prompt of more bytes than the window has tokens.
    let asked = body(&"x".repeat(50_000), r#","max_completion_tokens":10"#);
    let _stream =
        crate::world::open(world.at(), "POST /v1/chat/completions", &headers, &asked).await;
    crate::world::until("credits are set aside", async || world.held(&key).await > 0).await;
    // One more, since each of two parts of a prompt may be rounded up.
    assert_eq!(world.held(&key).await, 8192 * PRICES.0 + 10 * PRICES.1 + 1);
}

#[tokio::test]
async fn eighty_small_questions_at_once_are_answered() {
    let [(kind, text), _] = answers(r#"{"prompt_tokens":7,"completion_tokens":3}"#);
    let (world, key) = funded(&parrot(kind, text).await).await;
    let asked: Vec<String> =
        (0..80).map(|n| body(&format!("What is {n}?"), r#","max_tokens":5"#)).collect();
    let replies = asked.iter().map(|asked| ask(&world, &key, asked));
    for reply in futures_util::future::join_all(replies).await {
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    assert_eq!(world.held(&key).await, 0);
}

#[tokio::test]
async fn a_refusal_has_the_form_that_clients_of_openai_read() {
    let (world, key) = funded(&wall(429, "{}").await).await;
    let poor = world.key(&Wallet::new(2)).await;
    let chat = "/v1/chat/completions";
    let check = |reply: &Reply, status: u16, kind: &str, code: &str, param: Option<&str>| {
        let json = reply.json();
        let error = &json["error"];
        assert_eq!(reply.status, status, "{}", reply.body);
        assert_eq!(
            (&error["type"], &error["code"]),
            (&kind.into(), &code.into()),
            "{}",
            reply.body
        );
        assert_eq!(error["param"].as_str(), param, "{}", reply.body);
        assert!(!error["message"].as_str().unwrap().is_empty(), "{}", reply.body);
        assert!(json["code"].is_string() && json["details"].is_object(), "{}", reply.body);
        assert_eq!(reply.header("content-type"), Some("application/json"));
    };
    let asked = body("Hello", "");
    let invalid = "invalid_request_error";
    check(&ask(&world, &key, "{").await, 400, invalid, "invalid_request", None);
    let no_messages = r#"{"model":"script"}"#;
    check(&ask(&world, &key, no_messages).await, 400, invalid, "invalid_request", Some("messages"));
    let field = body("Hello", r#","max_tokens":-1"#);
    check(&ask(&world, &key, &field).await, 400, invalid, "invalid_request", Some("max_tokens"));
    let nobody = ask(&world, "nonsense", &asked).await;
    check(&nobody, 401, "authentication_error", "invalid_api_key", None);
    let broke = ask(&world, &poor, &asked).await;
    check(&broke, 402, "insufficient_quota", "insufficient_quota", None);
    let told = broke.json();
    assert_eq!(told["details"]["available_microcents"], 0);
    assert!(told["details"]["required_microcents"].as_i64() > Some(0), "{}", broke.body);
    let words = told["error"]["message"].as_str().unwrap();
    assert!(words.contains("an answer of at most 1000"), "{words}");
    let other = asked.replace("script", "other");
    check(&ask(&world, &key, &other).await, 404, invalid, "model_not_found", Some("model"));
    let busy = ask(&world, &key, &asked).await;
    check(&busy, 429, "rate_limit_error", "rate_limit_exceeded", None);
    assert_eq!(busy.header("retry-after"), Some("40"));
    let none = get(world.at(), "/v1/models/other", &[]).await;
    check(&none, 404, invalid, "model_not_found", Some("model"));
    // Whoever refuses: the router, and the one who reads the body.
    check(&get(world.at(), chat, &[]).await, 405, invalid, "method_not_allowed", None);
    check(&get(world.at(), "/v1/models/a/b", &[]).await, 404, invalid, "not_found", None);
    let large = ask(&world, &key, &body(&"x".repeat(9 << 20), "")).await;
    check(&large, 413, invalid, "payload_too_large", None);
    // Elsewhere a refusal is as it was.
    let elsewhere = get(world.at(), "/v1/credits/balance", &[]).await;
    assert!(elsewhere.json()["error"].is_string(), "{}", elsewhere.body);

    let theirs =
        r#"{"error":{"message":"no such thing","type":"x","code":"bad_value","param":"top_p"}}"#;
    let (world, key) = funded(&wall(400, theirs).await).await;
    let reply = ask(&world, &key, &asked).await;
    check(&reply, 400, invalid, "bad_value", Some("top_p"));
    assert_eq!(reply.json()["error"]["message"], "no such thing", "unwrapped once");
}

#[tokio::test]
async fn a_model_is_shown_by_its_id_and_says_since_when() {
    let world = World::new().await;
    let row = get(world.at(), "/v1/models/script", &[]).await.json();
    assert_eq!((&row["id"], &row["object"]), (&"script".into(), &"model".into()));
    assert_eq!(row["created"], crate::world::NOW / 1000);
    assert_eq!(get(world.at(), "/v1/models", &[]).await.json()["data"][0], row);
}

#[tokio::test]
async fn an_upstream_that_does_not_stream_is_refused_and_costs_nothing() {
    let text = r#"{"choices":[{"message":{"role":"assistant","content":"0123456"}}],"usage":null}"#;
    let (world, key) = funded(&parrot("application/json; charset=utf-8", text).await).await;
    let before = world.balance(&key).await;
    let reply = ask(&world, &key, &body("Hello", r#","stream":true"#)).await;
    assert_eq!(reply.status, 502, "{}", reply.body);
    assert!(reply.body.contains("the model cannot stream"), "{}", reply.body);
    assert_eq!((world.balance(&key).await, world.held(&key).await), (before, 0));
}

#[tokio::test]
async fn a_call_that_a_crash_cut_off_costs_nothing() {
    let steps = "title = \"t\"\n[[step]]\nsay = \"Never.\"\nfaults = [\"hang\"]\n";
    let server = ScriptServer::start(Story::parse("test", steps).unwrap()).await.unwrap();
    let (world, key) = funded(&server.base_url()).await;
    let before = world.balance(&key).await;
    let headers = [("Authorization", key.as_str())];
    let asked = body("Hello", "");
    let _stream =
        crate::world::open(world.at(), "POST /v1/chat/completions", &headers, &asked).await;
    crate::world::until("credits are set aside", async || world.held(&key).await > 0).await;
    assert_eq!(world.balance(&key).await, before, "what is set aside still counts");
    let world = world.crash().await;
    assert_eq!((world.balance(&key).await, world.held(&key).await), (before, 0));
}

/// An upstream that refuses whatever it is asked, and lists two models.
async fn wall(status: u16, body: &'static str) -> String {
    let status = StatusCode::from_u16(status).unwrap();
    let refuse = move || async move { (status, [("retry-after", "40")], body) };
    let list = axum::routing::get(async || r#"{"data":[{"id":"script-2"},{"id":"other"}]}"#);
    serve(Router::new().route("/v1/chat/completions", route(refuse)).route("/v1/models", list))
        .await
}

#[tokio::test]
async fn what_asking_again_does_not_mend_is_told_with_a_code_of_its_own() {
    let table = [
        (401, r#"{"error":{"message":"bad key"}}"#, 502, "UPSTREAM_KEY", "key (401)"),
        (400, r#"{"error":{"message":"no such field"}}"#, 400, "UPSTREAM_REFUSED", "no such field"),
        (404, r#"{"error":{"message":"none"}}"#, 404, "MODEL_NOT_FOUND", "has: script-2, other"),
        (400, r#"{"error":"x does not support tools"}"#, 400, "TOOLS_UNSUPPORTED", "tools"),
        (400, r#"{"error":"context length"}"#, 400, "CONTEXT_LENGTH_EXCEEDED", "context"),
        (400, r#"{"error":"no such field"}"#, 400, "UPSTREAM_REFUSED", "field"),
        (429, "{}", 429, "UPSTREAM_REFUSED", "busy"),
        (500, "{}", 502, "UPSTREAM_REFUSED", "cannot be used now"),
    ];
    for (said, body_said, status, code, words) in table {
        let (world, key) = funded(&wall(said, body_said).await).await;
        let before = world.balance(&key).await;
        let reply = ask(&world, &key, &body("Hello", "")).await;
        let json = reply.json();
        assert_eq!((reply.status, json["code"].as_str()), (status, Some(code)), "{}", reply.body);
        let message = json["error"]["message"].as_str().unwrap();
        assert!(message.contains(words) && !message.contains('{'), "{}", reply.body);
        let wait = (status == 429).then_some("40");
        assert_eq!(reply.header("retry-after"), wait, "{said}");
        assert_eq!((world.balance(&key).await, world.held(&key).await), (before, 0));
    }
}

#[tokio::test]
async fn who_did_not_hear_an_answer_finds_what_it_cost_by_its_key() {
    let steps = "title = \"t\"\n[[step]]\nsay = \"At last.\"\nfaults = [\"hang\"]\n";
    let server = ScriptServer::start(Story::parse("test", steps).unwrap()).await.unwrap();
    let (world, key) = funded(&server.base_url()).await;
    let call = async |world: &World, name: &str, of: &str| {
        get(world.at(), &format!("/v1/calls/{name}"), &[("Authorization", of)]).await
    };
    let headers = |name| [("Authorization", key.as_str()), ("Idempotency-Key", name)];
    let (line, asked) = ("POST /v1/chat/completions", body("Hello", ""));
    let stream = crate::world::open(world.at(), line, &headers("one"), &asked).await;
    crate::world::until("credits are set aside", async || world.held(&key).await > 0).await;
    assert_eq!(call(&world, "one", &key).await.json()["state"], "open");
    drop(stream);
    let world = world.crash().await;
    assert_eq!(call(&world, "one", &key).await.json()["state"], "released");

    let before = world.balance(&key).await;
    let reply = post(world.at(), "/v1/chat/completions", &headers("two"), &asked).await;
    let usage = reply.json()["usage"].clone();
    let found = call(&world, "two", &key).await.json();
    let charged = found["charged_microcents"].as_i64();
    assert_eq!((found["state"].as_str(), charged), (Some("settled"), Some(cost(&usage))));
    assert_eq!(found["completion_tokens"], usage["completion_tokens"]);
    assert_eq!(before - world.balance(&key).await, cost(&usage));

    let none = call(&world, "three", &key).await;
    assert_eq!((none.status, none.json()["code"].as_str()), (404, Some("NO_SUCH_CALL")));
    let stranger = world.key(&Wallet::new(2)).await;
    assert_eq!(call(&world, "two", &stranger).await.status, 404, "nobody else's");
    assert_eq!(call(&world, "two", "nonsense").await.status, 401);
}
