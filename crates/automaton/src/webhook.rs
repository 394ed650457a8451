//! Posts alerts, pleas, questions and what the runtime tells the creator to the operator's
//! webhook.
//!
//! The supervisor does this, so the agent knows neither the address nor whether anybody
//! listens. The address may hold a secret: it must never be told.

use automaton_core::event::{Event, StampedEvent};
use automaton_net::Url;
use serde::Serialize;

use crate::delivery_queue::{Delivery, DeliveryFailure, DeliveryQueue};
use crate::error::CliError;
use crate::http::url;

/// Body of a delivery: the event as `--json` shows it, with the automaton's name.
#[derive(Serialize)]
struct WebhookBody<'a> {
    automaton: &'a str,
    #[serde(flatten)]
    event: &'a StampedEvent,
}

/// A webhook and what is on the way to it.
#[derive(Debug)]
pub(crate) struct Webhook {
    automaton: String,
    url: Url,
    queue: DeliveryQueue,
}

impl Webhook {
    /// Begins to deliver. `allowed` are the private origins that may be reached.
    ///
    /// # Errors
    /// When an address is none.
    pub(crate) fn start(to: &str, allowed: &[String], automaton: &str) -> Result<Self, CliError> {
        let courier = DeliveryQueue::start(allowed)?;
        Ok(Self { automaton: automaton.to_owned(), url: url(to)?, queue: courier })
    }

    /// Takes an event, if it is one for the webhook; what is to be told when it cannot.
    pub(crate) fn take(&self, stamped: &StampedEvent) -> Option<Event> {
        if !stamped.event.report().webhook {
            return None;
        }
        let about = match &stamped.event {
            // Several may be asked at once.
            Event::ApprovalAsked { approval, .. } => Some(approval.to_string()),
            Event::MessageSent { message, .. } => Some(message.to_string()),
            _ => None,
        };
        let name = stamped.event.name();
        let posted = WebhookBody { automaton: &self.automaton, event: stamped };
        let about = about.unwrap_or_else(|| stamped.at.as_millis().to_string());
        let key = format!("{name}-{about}");
        let taken = match serde_json::to_vec(&posted) {
            Ok(body) => self.queue.take(Delivery::json(name, key, &self.url, body)),
            Err(error) => Err(DeliveryFailure { name, error: error.to_string() }),
        };
        taken.err().map(failure_event)
    }

    /// The next event that could not be delivered. Cancel-safe.
    pub(crate) async fn next_failure(&mut self) -> Event {
        failure_event(self.queue.next_lost().await)
    }

    /// Waits a moment for what is not delivered yet, and ends.
    pub(crate) async fn end(self) {
        self.queue.end().await;
    }
}

fn failure_event(DeliveryFailure { name: lost, error }: DeliveryFailure) -> Event {
    Event::WebhookFailed { lost, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery_queue::{GRACE, QUEUE};
    use automaton_core::entropy::SystemEntropy;
    use automaton_core::id::IdGenerator;
    use automaton_core::time::{SystemClock, Timestamp};
    use automaton_core::trust::{Label, Labelled};
    use automaton_core::vitals::DistressLevel;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;

    fn plea() -> StampedEvent {
        let event = Event::PleaSent { plea: DistressLevel::Low, text: "Send USDC".to_owned() };
        StampedEvent { at: Timestamp::from_millis(7), event }
    }

    /// Answers each request with the next status; gives what was posted, and the keys.
    fn server(statuses: Vec<u16>) -> (String, std::thread::JoinHandle<Vec<(String, String)>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            let mut got = Vec::new();
            for status in statuses {
                let (stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut length = 0;
                let mut key = String::new();
                loop {
                    let mut line = String::new();
                    lines.read_line(&mut line).unwrap();
                    match line.trim().split_once(": ") {
                        Some(("content-length", value)) => length = value.parse().unwrap(),
                        Some(("idempotency-key", value)) => key = value.to_owned(),
                        None if line.trim().is_empty() => break,
                        _ => {}
                    }
                }
                let mut body = vec![0; length];
                lines.read_exact(&mut body).unwrap();
                let mut stream = stream;
                let head = "content-length: 0\r\nconnection: close\r\n\r\n";
                write!(stream, "HTTP/1.1 {status} X\r\n{head}").unwrap();
                got.push((key, String::from_utf8(body).unwrap()));
            }
            got
        });
        (url, serving)
    }

    #[tokio::test]
    async fn what_fails_is_sent_again_under_the_same_key() {
        let (url, serving) = server(vec![503, 200]);
        let hook = Webhook::start(&format!("{url}/secret"), &[url], "Ada").unwrap();
        assert_eq!(hook.take(&plea()), None);
        let other = Event::AgentStopped { reason: "x".to_owned() };
        assert_eq!(hook.take(&StampedEvent { at: Timestamp::EPOCH, event: other }), None);
        hook.end().await;
        let got = serving.join().unwrap();
        assert_eq!(got[0], got[1]);
        assert_eq!(got[0].0, "plea.sent-7");
        let body =
            r#"{"automaton":"Ada","at":7,"event":"plea.sent","plea":"low","text":"Send USDC"}"#;
        assert_eq!(got[0].1, body);
    }

    #[tokio::test]
    async fn questions_and_what_the_creator_is_told_are_posted() {
        let (url, serving) = server(vec![200, 200, 200, 200]);
        let hook = Webhook::start(&url, std::slice::from_ref(&url), "Ada").unwrap();
        let ids = IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
        let asked = || {
            let call = Some(ids.id());
            let summary = "exec ls".to_owned();
            Event::ApprovalAsked { approval: ids.id(), payment: None, call, summary }
        };
        let sent = |source: &str| Event::MessageSent {
            message: ids.id(),
            recipient: "creator".to_owned(),
            body: Labelled::new(Label::Own, source, "Stopped: 30 answers used."),
        };
        for event in [asked(), asked(), sent("agent"), sent("runtime")] {
            assert_eq!(hook.take(&StampedEvent { at: Timestamp::EPOCH, event }), None);
        }
        hook.end().await;
        let posted = serving.join().unwrap();
        let mut keys: Vec<_> = posted.iter().map(|(key, _)| key.clone()).collect();
        keys.dedup();
        assert_eq!(keys.len(), 4, "two questions of one moment are two: {keys:?}");
        assert!(keys[1].starts_with("approval.asked-") && keys[2].starts_with("message.sent-"));
        let asked: serde_json::Value = serde_json::from_str(&posted[0].1).unwrap();
        let id = asked["approval"].as_str().unwrap();
        assert_eq!(posted[0].0, format!("approval.asked-{id}"), "it can be answered by this id");
        assert_ne!(asked["call"], asked["approval"]);
    }

    #[tokio::test]
    async fn a_refusal_is_told_without_the_address() {
        let (url, serving) = server(vec![404]);
        let mut hook = Webhook::start(&format!("{url}/secret"), &[url], "Ada").unwrap();
        hook.take(&plea());
        let Event::WebhookFailed { lost, error } = hook.next_failure().await else { panic!() };
        assert_eq!((lost.as_str(), error.as_str()), ("plea.sent", "it answered 404"));
        serving.join().unwrap();
        let mut hook = Webhook::start("http://10.0.0.1/secret", &[], "Ada").unwrap();
        hook.take(&plea());
        let Event::WebhookFailed { error, .. } = hook.next_failure().await else { panic!() };
        assert!(error.contains("10.0.0.1") && !error.contains("secret"), "{error}");
    }

    #[tokio::test]
    async fn the_queue_is_short_and_a_server_that_hangs_delays_nobody() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let hook = Webhook::start(&url, std::slice::from_ref(&url), "Ada").unwrap();
        let dropped = (0..100).filter_map(|_| hook.take(&plea())).count();
        assert_eq!(dropped, 100 - QUEUE);
        let begun = tokio::time::Instant::now();
        hook.end().await;
        assert!(begun.elapsed() < GRACE * 2);
    }
}
