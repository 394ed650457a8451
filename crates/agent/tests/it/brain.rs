//! A model that does what a test tells it, and checks what it is shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use std::time::Duration;

use automaton_core::id::CallId;
use automaton_core::money::Microcents;
use automaton_core::record::Usage;
use automaton_inference::cost::{TokenCounts, price};
use automaton_inference::{
    BoxFuture, ChatRole, Completion, CompletionRequest, FinishReason, InferenceError, Message,
    ModelInfo, Provider, RawCall, TokenCountSource, TokenSink, catalogue,
};
use serde_json::{Value, json};

/// Tokens that the descriptions of the tools have.
const TOOLS_TOKENS: u32 = 2000;

/// What the model does when it is asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Move {
    /// Says something and calls nothing.
    Say(&'static str),
    /// Says nothing and calls nothing.
    Nothing,
    /// Calls tools, with arguments as JSON.
    Call(Vec<(&'static str, Value)>),
    /// Calls a tool with arguments that are no JSON.
    Garble,
    /// Talks until it is cut off.
    Babble,
    /// Gives no answer.
    Fail,
    /// Says that it is not paid.
    Unpaid,
    /// Is asked with a key that it does not accept.
    Locked,
    /// Wants to be left alone for so many seconds.
    Busy(u64),
    /// Is withheld by its provider.
    Withheld,
}

/// Writes a file.
pub(crate) fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({ "path": path, "content": content }))
}

/// Sleeps for a second.
pub(crate) fn sleep() -> (&'static str, Value) {
    ("sleep", json!({ "duration_seconds": 1 }))
}

/// A model that makes one move after the other, and the last one for ever.
pub(crate) struct Brain {
    info: ModelInfo,
    moves: Mutex<Vec<Move>>,
    last: Move,
    seen: Mutex<Vec<Vec<Arc<Message>>>>,
    offered: Mutex<Vec<String>>,
    longest: Mutex<Vec<u32>>,
    questions: Mutex<Vec<Option<String>>>,
    poison: Option<&'static str>,
    chars_max: Option<usize>,
    names: Option<u32>,
    priced: bool,
    hands_over: Option<&'static str>,
}

impl Brain {
    pub(crate) fn new(window: u32, moves: &[Move], last: Move) -> Self {
        let mut info = catalogue::model("gpt-5.2").unwrap();
        info.context_tokens = window;
        info.id = "scripted".into();
        let moves = Mutex::new(moves.iter().rev().cloned().collect());
        let (seen, offered, longest) = (Mutex::default(), Mutex::default(), Mutex::default());
        let questions = Mutex::default();
        let (poison, chars_max, names, priced, hands_over) = (None, None, None, false, None);
        Self {
            info,
            moves,
            last,
            seen,
            offered,
            longest,
            questions,
            poison,
            chars_max,
            names,
            priced,
            hands_over,
        }
    }

    /// The same under another name.
    pub(crate) fn called(mut self, name: &str) -> Self {
        self.info.id = name.into();
        self
    }

    /// A model that needs leading by the hand.
    pub(crate) fn that_is_weak(mut self) -> Self {
        self.info.weak = true;
        self
    }

    /// A model whose answers cost what so long a question and a short answer cost at the
    /// catalogue's prices.
    pub(crate) fn that_costs(self) -> Self {
        Self { priced: true, ..self }
    }

    /// A model whose answers cost nothing.
    pub(crate) fn that_is_free(mut self) -> Self {
        self.info.prices = Default::default();
        self
    }

    /// A model that says this where it has no tools.
    pub(crate) fn that_hands_over(self, words: &'static str) -> Self {
        Self { hands_over: Some(words), ..self }
    }

    /// How many tokens each answer might have.
    pub(crate) fn longest(&self) -> Vec<u32> {
        self.longest.lock().unwrap().clone()
    }

    /// What each question was called.
    pub(crate) fn questions(&self) -> Vec<Option<String>> {
        self.questions.lock().unwrap().clone()
    }

    /// The tools that it was offered last.
    pub(crate) fn offered(&self) -> Vec<String> {
        self.offered.lock().unwrap().clone()
    }

    /// A model whose server rejects every request in which this text stands.
    pub(crate) fn that_rejects(self, poison: &'static str) -> Self {
        Self { poison: Some(poison), ..self }
    }

    /// A model whose server takes no more than so many characters.
    pub(crate) fn that_takes(self, chars_max: usize) -> Self {
        Self { chars_max: Some(chars_max), ..self }
    }

    /// A model whose server takes no more than so many tokens, tools included, and says so,
    /// as often as a wake asks.
    pub(crate) fn that_names(self, tokens: u32) -> Self {
        Self { names: Some(tokens), ..self }
    }

    /// All conversations that it was shown.
    pub(crate) fn seen(&self) -> Vec<Vec<Arc<Message>>> {
        self.seen.lock().unwrap().clone()
    }

    /// The text of the last message that it was shown at each question.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.seen().iter().map(|messages| messages.last().unwrap().content.clone()).collect()
    }
}

/// A conversation must fit, and show each call's result exactly once.
pub(crate) fn check(messages: &[Arc<Message>], window: u32) {
    let mut open: BTreeMap<CallId, u32> = BTreeMap::new();
    let mut chars = 0;
    for message in messages {
        chars += message.content.chars().count();
        for call in &message.calls {
            chars += call.arguments.chars().count() + call.tool.len();
            assert_eq!(open.insert(call.id, 0), None, "a call is shown twice");
        }
        if let Some(answered) = message.answers {
            *open.get_mut(&answered).expect("a result of no call") += 1;
        }
    }
    assert!(open.values().all(|results| *results == 1), "a call without its one result: {open:?}");
    assert!(chars / 4 <= window as usize, "{chars} characters in a window of {window} tokens");
    assert_eq!(messages.iter().filter(|message| message.role == ChatRole::System).count(), 1);
}

/// Characters of a conversation.
fn chars_of(ask: &CompletionRequest) -> usize {
    let chars = ask.messages.iter().map(|message| {
        let calls = message.calls.iter().map(|call| call.arguments.len());
        message.content.len() + calls.sum::<usize>()
    });
    chars.sum()
}

impl Provider for Brain {
    fn model(&self) -> &ModelInfo {
        &self.info
    }

    fn complete<'a>(
        &'a self,
        ask: &'a CompletionRequest,
        sink: &'a dyn TokenSink,
    ) -> BoxFuture<'a, Result<Completion, InferenceError>> {
        Box::pin(async move {
            check(&ask.messages, self.info.context_tokens);
            self.seen.lock().unwrap().push(ask.messages.clone());
            self.longest.lock().unwrap().push(ask.max_tokens);
            self.questions.lock().unwrap().push(ask.name.clone());
            *self.offered.lock().unwrap() =
                ask.tools.iter().map(|tool| tool.name.to_string()).collect();
            if let Some(poison) = self.poison
                && ask.messages.iter().any(|message| message.content.contains(poison))
            {
                let (endpoint, text) = ("the scripted model".to_owned(), "no".to_owned());
                return Err(InferenceError::Status { endpoint, status: 400, text });
            }
            let chars = chars_of(ask);
            if self.chars_max.is_some_and(|most| chars > most) {
                return Err(too_long(None));
            }
            let tools = ask.tools.iter().map(|tool| json!(tool.parameters).to_string().len());
            let tokens = u32::try_from((chars + tools.sum::<usize>()) / 4).unwrap();
            let often = self.seen.lock().unwrap().len() > 4;
            if self.names.is_some_and(|most| tokens + ask.max_tokens > most) && !often {
                return Err(too_long(self.names));
            }
            let hands_over = self.hands_over.filter(|_| ask.tools.is_empty()).map(Move::Say);
            let next = || self.moves.lock().unwrap().pop().unwrap_or_else(|| self.last.clone());
            let chosen = hands_over.unwrap_or_else(next);
            let (text, calls, finish) = match chosen {
                Move::Say(text) => (text.to_owned(), Vec::new(), FinishReason::Stop),
                Move::Nothing => (String::new(), Vec::new(), FinishReason::Stop),
                Move::Babble => ("and so on ".repeat(5000), Vec::new(), FinishReason::Length),
                Move::Garble => {
                    (String::new(), vec![raw("exec", "{\"command\":")], FinishReason::Length)
                }
                Move::Call(calls) => {
                    let calls = calls.iter().map(|(tool, args)| raw(tool, &args.to_string()));
                    (String::new(), calls.collect(), FinishReason::ToolCalls)
                }
                Move::Withheld => (String::new(), Vec::new(), FinishReason::Filtered),
                refuses @ (Move::Locked | Move::Busy(_) | Move::Unpaid | Move::Fail) => {
                    return Err(refusal(&refuses));
                }
            };
            sink.text(&text);
            let (tokens, cost) = if self.priced {
                let text = |message: &Arc<Message>| message.content.len();
                let prompt: usize = ask.messages.iter().map(text).sum();
                let prompt = TOOLS_TOKENS + u32::try_from(prompt / 4).unwrap();
                let tokens = TokenCounts { prompt, cached: 0, cache_write: 0, completion: 150 };
                (tokens, price(&self.info.prices, tokens).unwrap())
            } else {
                (
                    TokenCounts { prompt: 1, cached: 0, cache_write: 0, completion: 1 },
                    Microcents::new(5),
                )
            };
            let usage = Usage {
                model: self.info.id.to_string(),
                prompt_tokens: tokens.prompt,
                cached_tokens: 0,
                completion_tokens: tokens.completion,
                cost,
                estimated: false,
                first_token_ms: 0,
                total_ms: 0,
                unknown_end: None,
            };
            Ok(Completion { text, calls, finish, usage, counted: TokenCountSource::Reported })
        })
    }
}

fn too_long(window: Option<u32>) -> InferenceError {
    let remedy = Some("set `brain.contextTokens`".to_owned());
    InferenceError::TooLong { text: "too long".to_owned(), window, remedy }
}

/// How a move fails that is no answer.
fn refusal(chosen: &Move) -> InferenceError {
    let endpoint = "the scripted model".to_owned();
    match chosen {
        Move::Locked => InferenceError::Unauthorised {
            endpoint,
            status: 401,
            text: "wrong".to_owned(),
            remedy: Some("set the environment variable KEY".to_owned()),
        },
        Move::Busy(seconds) => InferenceError::Busy {
            endpoint,
            status: 429,
            text: "slow down".to_owned(),
            wait: Duration::from_secs(*seconds),
        },
        Move::Unpaid => InferenceError::NoCredits { endpoint, text: "402".to_owned() },
        _ => InferenceError::Cut { endpoint, source: None },
    }
}

/// A call with a provider's id that is the same in every turn.
fn raw(tool: &str, arguments: &str) -> RawCall {
    let provider_id = Some("call_0".to_owned());
    RawCall { provider_id, tool: tool.to_owned(), arguments: arguments.to_owned() }
}
