//! The scripted world that a life is measured against, from outside.
//!
//! It answers as a model and as a cloud, and times each question by one clock: what
//! lies between an answer and the next question is the automaton's own. Below `/__mock`
//! it says what it saw. Only loopback and a server that was named are ever asked.

use std::collections::BTreeMap;
use std::time::Duration;

use automaton::error::CliError;
use automaton::{http, process};
use automaton_net::{Header, HttpClient, HttpMethod, HttpRequest, Url};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// The largest log that is read, in bytes.
const LOG_BYTES_MAX: u64 = 1 << 28;
/// Interval at which the world is read.
const POLL: Duration = Duration::from_millis(20);
/// Time without progress after which the bench fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A world that runs.
pub(super) struct MockWorld {
    client: HttpClient,
    base: String,
    runtime: Runtime,
}

/// Progress of the script.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct MockState {
    /// Questions that it answered.
    pub(super) turn: u64,
    /// True if the script has ended with a sleep.
    pub(super) asleep: bool,
    /// Tools that the script called and that were not offered, with how often.
    pub(super) unknown_tools: BTreeMap<String, u64>,
    /// Requested paths that do not exist, with their counts.
    pub(super) not_found: BTreeMap<String, u64>,
}

/// One request that it saw. Times are of one monotonic clock.
#[derive(Debug, Deserialize)]
pub(super) struct MockRequest {
    path: String,
    #[serde(rename = "t_in")]
    pub(super) asked_ns: u64,
    #[serde(rename = "t_out")]
    pub(super) answered_ns: u64,
    /// Which question it was, where it was one to the model.
    pub(super) turn: Option<u64>,
    /// Length in bytes.
    #[serde(rename = "in")]
    pub(super) bytes: Option<u64>,
    /// CPU time of all processes that are watched.
    pub(super) cpu_ns: Option<u64>,
    /// Their resident memory; what they share counts in each.
    pub(super) rss_kb: Option<u64>,
    /// The size of the database that is watched.
    pub(super) db_bytes: Option<u64>,
}

impl MockWorld {
    /// The world at a URL.
    ///
    /// # Errors
    /// When that is none.
    pub(super) fn at(url: &str) -> Result<Self, CliError> {
        let client = http::client([url])?;
        let base = url.trim_end_matches('/').to_owned();
        Ok(Self { client, base, runtime: process::runtime()? })
    }

    /// Its base URL.
    pub(super) fn url(&self) -> &str {
        &self.base
    }

    /// Lets its script begin anew.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn reset(&self) -> Result<(), CliError> {
        self.post("reset", &json!({}))
    }

    /// Has it watch a process, its children, and a database.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn watch(&self, pid: u32, database: Option<&str>) -> Result<(), CliError> {
        self.post("watch", &json!({ "pid": pid, "db": database }))
    }

    /// Returns the progress.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn standing(&self) -> Result<MockState, CliError> {
        self.ask(HttpMethod::Get, "/__mock/state", Vec::new())
    }

    /// Asks its model the same question, of so many bytes, so many times.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn ask_again(&self, bytes: usize, times: u32) -> Result<(), CliError> {
        let text = json!([{ "role": "user", "content": "x".repeat(bytes) }]);
        // One without tools is none of its script's.
        let tools = json!([{ "type": "function", "function": { "name": "exec" } }]);
        let body = json!({ "model": "mock", "messages": text, "tools": tools }).to_string();
        // What lies between two questions is no more than the copy that is sent.
        let questions = vec![body.into_bytes(); usize::try_from(times).unwrap_or(0)];
        for question in questions {
            let _answer: IgnoredAny =
                self.ask(HttpMethod::Post, "/v1/chat/completions", question)?;
        }
        Ok(())
    }

    /// Everything that it saw since the reset, in the order of its clock.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn read_log(&self) -> Result<Vec<MockRequest>, CliError> {
        let mut seen: Vec<MockRequest> = self.ask(HttpMethod::Get, "/__mock/log", Vec::new())?;
        seen.sort_by_key(|seen| seen.asked_ns);
        Ok(seen)
    }

    /// A moment of its clock that is now: when it had answered something trivial.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn now_ns(&self) -> Result<u64, CliError> {
        const TRIVIAL: &str = "/v1/models";
        let _models: IgnoredAny = self.ask(HttpMethod::Get, TRIVIAL, Vec::new())?;
        let mark = self.read_log()?.into_iter().rev().find(|seen| seen.path == TRIVIAL);
        mark.map(|mark| mark.answered_ns)
            .ok_or_else(|| self.strange("its log does not have a request that it just answered"))
    }

    /// Waits until it stands as wanted.
    ///
    /// # Errors
    /// When it does not move for a minute.
    pub(super) fn wait(&self, wanted: impl Fn(&MockState) -> bool) -> Result<MockState, CliError> {
        let mut turn = 0;
        let mut since = Instant::now();
        loop {
            let standing = self.standing()?;
            if wanted(&standing) {
                return Ok(standing);
            }
            if standing.turn != turn {
                (turn, since) = (standing.turn, Instant::now());
            }
            if since.elapsed() > PATIENCE {
                return Err(self.strange(&format!("nothing asks it after question {turn}")));
            }
            std::thread::sleep(POLL);
        }
    }

    fn post(&self, what: &str, body: &impl Serialize) -> Result<(), CliError> {
        let body = serde_json::to_vec(body)
            .map_err(|error| CliError::internal("cannot write to the world", &error))?;
        let _answer: IgnoredAny = self.ask(HttpMethod::Post, &format!("/__mock/{what}"), body)?;
        Ok(())
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: HttpMethod,
        path: &str,
        body: Vec<u8>,
    ) -> Result<T, CliError> {
        let url: Url = http::url(&format!("{}{path}", self.base))?;
        let headers = vec![Header::Open("content-type", "application/json".to_owned())];
        let new = HttpRequest::new(method, url);
        let request = HttpRequest { body, headers, body_bytes_max: LOG_BYTES_MAX, ..new };
        let reply = self.runtime.block_on(async {
            let response = self.client.request(request).await?;
            response.read().await
        })?;
        if reply.status != 200 {
            return Err(self.strange(&format!("{path} is answered with status {}", reply.status)));
        }
        serde_json::from_slice(&reply.body).map_err(|error| {
            self.strange(&format!("{path} is answered in words of its own: {error}"))
        })
    }

    fn strange(&self, what: &str) -> CliError {
        CliError::user(format!("the world at {} cannot be measured against: {what}", self.base))
            .hint("it has to answer questions to a model, and /__mock/{state,log,watch,reset}")
    }
}
