//! Asks a node of a chain over JSON-RPC.
//!
//! Public nodes refuse what is too much for them in many ways: with status 429, or with status
//! 200 and an error under a number or words of their own. All of them are asked again, at most
//! three times. A node that stays busy is an error of its own, [`ChainError::Busy`], and must
//! never be taken for a refusal of what was asked.

mod refusal;

use automaton_core::error::Classified;
use automaton_net::{
    Deadlines, FullResponse, Header, HttpClient, HttpMethod, HttpRequest, NetError, Retry, Url,
    redact,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use refusal::NodeRefusal;

/// The largest answer that is read, in bytes. It holds the receipt of any transaction.
const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Characters of a node's own words that an error shows.
const WORDS_CHARS_MAX: usize = 300;

/// A chain could not be read.
#[derive(Debug, thiserror::Error, Classified)]
pub enum ChainError {
    /// The node did not answer.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The node is asked more than it answers.
    #[error("{node} is too busy to answer {method}: {words}")]
    #[class(Transient, hint = "try again in a while, or name another node with --rpc or `rpcUrl`")]
    Busy {
        /// The node.
        node: String,
        /// The method.
        method: &'static str,
        /// The node's words.
        words: String,
    },
    /// The answer is longer than any that is read.
    #[error("the answer of {node} to {method} is larger than {limit_bytes} bytes and is not read")]
    #[class(Upstream, hint = "name another node with --rpc or `rpcUrl`; the limit is fixed")]
    TooLarge {
        /// The node.
        node: String,
        /// The method.
        method: &'static str,
        /// The limit.
        limit_bytes: u64,
    },
    /// The node answered with an error.
    #[error("{node} refused {method}: {words}")]
    #[class(Upstream)]
    Refused {
        /// The node.
        node: String,
        /// The method.
        method: &'static str,
        /// The node's words.
        words: String,
    },
    /// The answer is none.
    #[error("{node} answered {method} with what is no answer to it: {what}")]
    #[class(Upstream)]
    Malformed {
        /// The node.
        node: String,
        /// The method.
        method: &'static str,
        /// The defect.
        what: String,
    },
    /// The node serves another chain.
    #[error("{node} serves the chain {found}, not {wanted}")]
    #[class(Config, hint = "name a node of the chain that the wallet is on, or another chain")]
    OtherChain {
        /// The node.
        node: String,
        /// The chain that the configuration names.
        wanted: u64,
        /// The node's.
        found: u64,
    },
}

/// A node, and the client that reaches it.
#[derive(Debug, Clone)]
pub struct NodeClient {
    client: HttpClient,
    url: Url,
    deadlines: Deadlines,
}

#[derive(Serialize)]
struct NodeRequest<'a, P> {
    jsonrpc: &'static str,
    id: u32,
    method: &'a str,
    params: P,
}

#[derive(Deserialize)]
struct NodeResponse {
    #[serde(default, deserialize_with = "if_present")]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<NodeRefusal>,
}

/// Reads a result that may be `null`, which is another answer than none.
fn if_present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

impl NodeClient {
    /// A node at a URL, asked within the usual deadlines.
    #[must_use]
    pub fn new(client: HttpClient, url: Url) -> Self {
        Self { client, url, deadlines: Deadlines::default() }
    }

    /// The same node, asked within other deadlines.
    #[must_use]
    pub fn within(self, deadlines: Deadlines) -> Self {
        Self { deadlines, ..self }
    }

    /// Asks for something. `retry` says after which failures the question is repeated; one that
    /// the node was too busy for is repeated unless it is [`Retry::Never`].
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn ask<T: DeserializeOwned>(
        &self,
        retry: Retry,
        method: &'static str,
        params: impl Serialize + Send,
    ) -> Result<T, ChainError> {
        let request = self.request(retry, method, params)?;
        self.send(method, request).await
    }

    /// Asks for something of which only the fields outside of lists are read, such as a block
    /// without its transactions. The answer may be as large as it likes.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn ask_without_lists<T: DeserializeOwned>(
        &self,
        retry: Retry,
        method: &'static str,
        params: impl Serialize + Send,
    ) -> Result<T, ChainError> {
        let mut request = self.request(retry, method, params)?;
        request.empties_lists = true;
        self.send(method, request).await
    }

    /// The node's address, without secrets.
    #[must_use]
    pub fn name(&self) -> String {
        redact::url(&self.url)
    }

    /// The error of an answer that does not fit its question.
    pub(crate) fn malformed(&self, method: &'static str, what: String) -> ChainError {
        ChainError::Malformed { node: self.name(), method, what }
    }

    fn request(
        &self,
        retry: Retry,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<HttpRequest, ChainError> {
        let question = NodeRequest { jsonrpc: "2.0", id: 1, method, params };
        let mut request = HttpRequest::new(HttpMethod::Post, self.url.clone());
        request.headers = vec![Header::Open("content-type", "application/json".to_owned())];
        request.body_bytes_max = ANSWER_BYTES_MAX;
        request.deadlines = self.deadlines;
        request.retry = retry;
        request.body = serde_json::to_vec(&question)
            .map_err(|error| self.malformed(method, error.to_string()))?;
        Ok(request)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: &'static str,
        request: HttpRequest,
    ) -> Result<T, ChainError> {
        let sent = self.client.request_judged(request, |answer| busy_words(answer).is_some());
        let answer = sent.await.map_err(|error| match error {
            NetError::TooLarge { limit_bytes, .. } => {
                ChainError::TooLarge { node: self.name(), method, limit_bytes }
            }
            other => ChainError::Net(other),
        })?;
        if let Some(words) = busy_words(&answer) {
            return Err(ChainError::Busy {
                node: self.name(),
                method,
                words: redact_words(&words),
            });
        }
        let status = answer.status;
        let response: NodeResponse = serde_json::from_slice(&answer.body)
            .map_err(|error| self.malformed(method, format!("status {status}, {error}")))?;
        match (response.error, response.result) {
            (Some(refusal), _) => {
                let words = redact_words(&refusal.to_string());
                Err(ChainError::Refused { node: self.name(), method, words })
            }
            (None, Some(result)) => serde_json::from_str(result.get())
                .map_err(|error| self.malformed(method, error.to_string())),
            (None, None) => Err(self.malformed(method, "it has no result".to_owned())),
        }
    }
}

fn redact_words(words: &str) -> String {
    redact::text(words, &[], WORDS_CHARS_MAX)
}

/// The words by which an answer says that the node was too busy; `None` when it does not.
fn busy_words(answer: &FullResponse) -> Option<String> {
    // silent-ok: an answer that is no JSON is judged by its status and its text.
    match serde_json::from_slice::<NodeResponse>(&answer.body).ok() {
        Some(NodeResponse { error: Some(refusal), .. }) => {
            let is_busy = refusal.is_busy() || answer.status == 429;
            is_busy.then(|| refusal.to_string())
        }
        Some(NodeResponse { result: Some(_), .. }) => None,
        Some(_) | None => {
            let text = String::from_utf8_lossy(&answer.body);
            let is_busy =
                answer.status == 429 || answer.status >= 500 || refusal::is_short_and_busy(&text);
            is_busy.then(|| format!("status {}, {}", answer.status, text.trim()))
        }
    }
}

#[cfg(test)]
mod tests;
