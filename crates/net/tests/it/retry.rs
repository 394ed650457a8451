//! Repeats of requests, and origins that are left alone.

use std::time::Duration;

use automaton_core::error::{Classified as _, ErrorClass};
use automaton_core::secret::Secret;
use automaton_net::error::DeadlineKind;
use automaton_net::{Deadlines, Header, HttpClient, HttpMethod, HttpRequest, NetError, Retry};
use tokio::time::Instant;

use crate::server::{SILENCE, Script, patient, script};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
const DOWN: &str = "HTTP/1.1 503 Down\r\ncontent-length: 4\r\nconnection: close\r\n\r\ndown";
const HANGS_UP: &str = "";
const LONG: Duration = Duration::from_secs(600);

fn get(server: &Script) -> HttpRequest {
    HttpRequest {
        retry: Retry::Idempotent,
        ..HttpRequest::new(HttpMethod::Get, server.url.clone())
    }
}

async fn status(client: &HttpClient, request: HttpRequest) -> Result<u16, NetError> {
    client.request(request).await.map(|response| response.status)
}

fn with_status(status: u16) -> String {
    format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

#[tokio::test]
async fn a_server_that_recovers_is_asked_until_it_answers() {
    let late = with_status(504);
    for failures in [
        vec![],
        vec![DOWN],
        vec![HANGS_UP],
        vec![DOWN, HANGS_UP, DOWN],
        vec![HANGS_UP, late.as_str()],
    ] {
        let answers: Vec<_> = failures.iter().copied().chain([OK]).collect();
        let server = script(&answers).await;
        let client = patient(&server, LONG);
        let answer = client.request(get(&server)).await.unwrap().read().await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"ok"[..]));
        assert_eq!(server.heard().len(), failures.len() + 1);
    }
}

#[tokio::test]
async fn the_last_answer_is_given_when_all_failed() {
    let server = script(&[HANGS_UP, HANGS_UP, HANGS_UP, DOWN]).await;
    let begun = Instant::now();
    let answer = patient(&server, LONG).request(get(&server)).await.unwrap().read().await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (503, &b"down"[..]));
    assert_eq!(server.heard().len(), 4);
    // 10, 20 and 40 ms.
    assert!(begun.elapsed() >= Duration::from_millis(70), "{:?}", begun.elapsed());
    let server = script(&[DOWN, DOWN, DOWN, HANGS_UP]).await;
    let error = status(&patient(&server, LONG), get(&server)).await.unwrap_err();
    assert!(matches!(error, NetError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_asked_again() {
    let server = script(&[SILENCE, SILENCE, OK]).await;
    let deadlines = Deadlines { idle: Duration::from_millis(100), total: LONG };
    let request = HttpRequest { deadlines, ..get(&server) };
    assert_eq!(status(&patient(&server, LONG), request).await.unwrap(), 200);
    assert_eq!(server.heard().len(), 3);
}

#[tokio::test]
async fn only_what_the_caller_says_is_sent_again() {
    let server = script(&[DOWN]).await;
    let client = patient(&server, Duration::ZERO);
    let send = async |request: HttpRequest| {
        let before = server.heard().len();
        let outcome = status(&client, request).await;
        (outcome, server.heard().len() - before)
    };
    let post = HttpRequest { method: HttpMethod::Post, body: b"{}".to_vec(), ..get(&server) };
    let (outcome, sent) = send(HttpRequest { retry: Retry::Never, ..get(&server) }).await;
    assert_eq!((outcome.unwrap(), sent), (503, 1));
    let (outcome, sent) = send(post.clone()).await;
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), sent), (ErrorClass::Internal, 0), "{error}");
    let paid = Header::Secret("X-Payment", Secret::new("e30=".to_owned()));
    let (outcome, sent) = send(HttpRequest { headers: vec![paid], ..get(&server) }).await;
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), sent), (ErrorClass::Internal, 0), "{error}");
    let (outcome, sent) = send(HttpRequest { retry: Retry::Question, ..post.clone() }).await;
    assert_eq!((outcome.unwrap(), sent), (503, 4));
    let key = Some("one-and-the-same".to_owned());
    let (outcome, sent) = send(HttpRequest { idempotency_key: key, ..post }).await;
    assert_eq!((outcome.unwrap(), sent), (503, 4));
    for request in &server.heard()[server.heard().len() - 4..] {
        assert!(request.contains("idempotency-key: one-and-the-same\r\n"), "{request}");
        assert!(request.ends_with("\r\n\r\n{}"), "{request}");
    }
}

#[tokio::test]
async fn what_is_no_failure_is_not_sent_again() {
    for status in [200, 400, 401, 402, 404, 409, 501] {
        let server = script(&[&with_status(status), OK]).await;
        let answer = patient(&server, LONG).request(get(&server)).await.unwrap();
        assert_eq!((answer.status, server.heard().len()), (status, 1));
    }
}

#[tokio::test]
async fn a_server_says_when_to_come_back() {
    let busy =
        "HTTP/1.1 429 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let server = script(&[busy, OK]).await;
    let begun = Instant::now();
    assert_eq!(status(&patient(&server, LONG), get(&server)).await.unwrap(), 200);
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    // A wait that the deadline does not allow is not begun.
    let server = script(&[busy, OK]).await;
    let deadlines = Deadlines { total: Duration::from_millis(900), ..Deadlines::default() };
    let begun = Instant::now();
    let request = HttpRequest { deadlines, ..get(&server) };
    assert_eq!(status(&patient(&server, LONG), request).await.unwrap(), 429);
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn all_attempts_share_one_deadline_and_end_with_the_future() {
    let server = script(&[HANGS_UP]).await;
    let client = patient(&server, Duration::ZERO);
    let dropped = tokio::time::timeout(Duration::from_millis(15), client.request(get(&server)));
    assert!(dropped.await.is_err());
    tokio::time::sleep(Duration::from_millis(100)).await;
    // The third one would come 30 ms after the first; all four within 70.
    assert!(server.heard().len() <= 2, "{}", server.heard().len());
    // One answer drips: the deadline counts from the first attempt.
    let slow = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx";
    let server = script(&[DOWN, slow]).await;
    let deadlines = Deadlines { idle: LONG, total: Duration::from_millis(300) };
    let request = HttpRequest { deadlines, ..get(&server) };
    let outcome = patient(&server, LONG).request(request).await.unwrap().read().await;
    let error = outcome.unwrap_err();
    let cut = matches!(error, NetError::BrokenOff { .. });
    assert!(
        cut || matches!(error, NetError::TimedOut { late: DeadlineKind::Total(_), .. }),
        "{error}"
    );
}

#[tokio::test]
async fn an_origin_that_fails_is_left_alone_by_all_clones() {
    let server = script(&[DOWN, HANGS_UP, DOWN, HANGS_UP, DOWN, OK]).await;
    let rest = Duration::from_millis(300);
    let client = patient(&server, rest);
    // Within its repeats the first request makes four failures, the second one.
    assert!(status(&client, get(&server)).await.is_err());
    assert_eq!(status(&client.clone(), get(&server)).await.unwrap(), 503);
    assert_eq!(server.heard().len(), 5);
    let error = status(&client.clone(), get(&server)).await.unwrap_err();
    assert!(matches!(error, NetError::CircuitOpen { .. }), "{error}");
    assert!(error.to_string().contains(&server.origin.to_string()), "{error}");
    assert_eq!((error.kind(), server.heard().len()), (ErrorClass::Transient, 5));
    tokio::time::sleep(rest).await;
    assert_eq!(status(&client, get(&server)).await.unwrap(), 200);
}

#[tokio::test]
async fn a_refusal_of_the_servers_is_a_sign_of_life() {
    let refusal = with_status(404);
    let server = script(&[DOWN, DOWN, DOWN, DOWN, &refusal, DOWN, DOWN, DOWN, DOWN, OK]).await;
    let client = patient(&server, LONG);
    for wanted in [503, 404, 503, 200] {
        assert_eq!(status(&client, get(&server)).await.unwrap(), wanted);
    }
}

#[tokio::test]
async fn an_answer_that_its_caller_judges_busy_is_asked_for_again() {
    let busy = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy";
    let is_busy = |answer: &automaton_net::FullResponse| answer.body == b"busy";
    let question = |server: &Script| HttpRequest {
        retry: Retry::Question,
        ..HttpRequest::new(HttpMethod::Post, server.url.clone())
    };
    let server = script(&[busy, DOWN, busy, OK]).await;
    let client = patient(&server, LONG);
    let answer = client.request_judged(question(&server), is_busy).await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"ok"[..]));
    assert_eq!(server.heard().len(), 4);
    let server = script(&[busy]).await;
    let client = patient(&server, LONG);
    let answer = client.request_judged(question(&server), is_busy).await.unwrap();
    assert_eq!((answer.body.as_slice(), server.heard().len()), (&b"busy"[..], 4));
    let once = HttpRequest { retry: Retry::Never, ..question(&server) };
    client.request_judged(once, is_busy).await.unwrap();
    assert_eq!(server.heard().len(), 5);
}

#[tokio::test]
async fn a_server_that_is_gone_is_not_asked_again_where_only_refusals_are() {
    let request = |server: &Script| HttpRequest { retry: Retry::WhenRefused, ..get(server) };
    let server = script(&[HANGS_UP, OK]).await;
    let error = status(&patient(&server, LONG), request(&server)).await.unwrap_err();
    assert!(matches!(error, NetError::Unreachable { .. }), "{error}");
    assert_eq!(server.heard().len(), 1);
    let many = with_status(429);
    let server = script(&[&many, OK]).await;
    assert_eq!(status(&patient(&server, LONG), request(&server)).await.unwrap(), 200);
}

#[tokio::test]
async fn a_cap_does_not_count_the_lists_that_are_emptied() {
    let body = format!(r#"{{"a":[{}1],"b":2}}"#, "1,".repeat(5_000));
    let told = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let server = script(&[&told]).await;
    let client = patient(&server, LONG);
    let request = HttpRequest { body_bytes_max: 14, empties_lists: true, ..get(&server) };
    let answer = client.request(request.clone()).await.unwrap().read().await.unwrap();
    assert_eq!(answer.body, br#"{"a":[],"b":2}"#);
    for request in [
        HttpRequest { body_bytes_max: 13, ..request.clone() },
        HttpRequest { empties_lists: false, ..request },
    ] {
        let limit = request.body_bytes_max;
        let outcome = match client.request(request).await {
            Ok(answer) => answer.read().await.map(drop),
            Err(error) => Err(error),
        };
        let error = outcome.unwrap_err();
        let is_named =
            matches!(error, NetError::TooLarge { limit_bytes, .. } if limit_bytes == limit);
        assert!(is_named, "{error}");
    }
}
