//! One answer: the prompt evaluated, a tool chosen, the rest written.
//!
//! Without tools on offer the answer is plain text. With them a weak model has to call one; another
//! calls one, says something and calls one, or only says something. A call is written for it where
//! it would say nothing at all. It must never
//! hand out a call that is not whole JSON of the tool's schema, and a schema that is not
//! understood must never lead to an answer that is not bound by it.

use std::io;

use automaton_core::wire::brain::{
    LocalModelCall, LocalModelCompletion, LocalModelCompletionRequest, LocalModelFinishReason,
    LocalModelMessage, LocalModelTool,
};
use llama_cpp_2::llama_backend::LlamaBackend;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::Value;
use thiserror::Error;

use crate::choose::{GUIDE_CONTEXT_TOKENS, Guide, Starts, Unguided};
use crate::grammar::{Freedom, Narrowing, call_schema, shortest_arguments};
use crate::render::{Renderer, Unrenderable};
use crate::sample::Sampler;
use crate::session::{Broken, Session, Shape};
use crate::watch::Stopwatch;
use crate::write::{Rules, Sink, Writer, Written};

/// A model with fewer parameters is weak: it is not told of the tools, a guide chooses one, and
/// it is not offered optional properties.
const WEAK_BELOW_PARAMETERS: u64 = 1_000_000_000;
/// Tokens that must be free behind a prompt for an answer to be worth starting.
const ROOM_TOKENS_MIN: usize = 64;
/// Tokens kept back from the limit for ending a call, besides those of its shortest
/// arguments: for values that cannot be empty.
const CLOSING_TOKENS: usize = 12;
/// What ends strings and objects, best first. Quotes come before bare braces, which
/// within a string are text.
const CLOSERS: [&str; 5] = ["\"}}", "\"}", "\"", "}}", "}"];
/// Characters of a string without a limit of its own, for each token of the answer.
const CHARS_PER_TOKEN: u64 = 4;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum Trouble {
    /// The conversation could not be rendered.
    #[error(transparent)]
    Render(#[from] Unrenderable),
    /// Prompt and answer do not fit into the window.
    #[error(
        "the conversation has {prompt_tokens} tokens, and {room} of the context of \
         {context_tokens} must stay free for the answer"
    )]
    TooLong {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens that must be free.
        room: usize,
        /// Size of the window.
        context_tokens: u32,
    },
    /// A schema is not understood.
    #[error("the parameters of the tool {tool} could not be made into a grammar: {reason}")]
    Schema {
        /// The tool's name.
        tool: String,
        /// What the grammar library says.
        reason: String,
    },
    /// The model failed.
    #[error(transparent)]
    Model(#[from] Broken),
    /// The grammar failed while an answer was written.
    #[error("the grammar failed: {0}")]
    Grammar(String),
    /// Whoever asked is gone.
    #[error("the answer could not be delivered")]
    Deliver(#[source] io::Error),
}

impl From<Unguided> for Trouble {
    fn from(error: Unguided) -> Self {
        match error {
            Unguided::Render(error) => Self::Render(error),
            Unguided::Model(error) => Self::Model(error),
        }
    }
}

/// A model with its conversation.
pub struct Brain<'model> {
    model: &'model LlamaModel,
    renderer: Renderer<'model>,
    session: Session<'model>,
    factory: ParserFactory,
    closers: Vec<LlamaToken>,
    toolbox: Toolbox,
    /// What stands before a call.
    call_mark: Vec<LlamaToken>,
    /// Chooses tools for a weak model.
    guide: Option<Guide<'model>>,
}

/// What is prepared for a list of tools.
#[derive(Default)]
struct Toolbox {
    tools: Vec<LocalModelTool>,
    string_chars_max: u64,
    matchers: Vec<Matcher>,
    closing_tokens: Vec<usize>,
    starts: Starts,
}

impl<'model> Brain<'model> {
    /// Sets up context, template and grammars for a loaded model.
    ///
    /// # Errors
    /// [`Trouble`] when a part of it cannot be made.
    pub fn open(
        backend: &LlamaBackend,
        model: &'model LlamaModel,
        shape: Shape,
    ) -> Result<Self, Trouble> {
        let factory = ParserFactory::new_simple(&LlamaSampler::llguidance_tok_env(model));
        let mut factory = factory.map_err(|error| Trouble::Grammar(error.to_string()))?;
        factory.quiet();
        let weak = model.n_params() < WEAK_BELOW_PARAMETERS;
        let renderer = Renderer::new(model, !weak)?;
        let closers = CLOSERS.iter().map(|text| renderer.written(text));
        let closers = closers.filter(|tokens| tokens.len() == 1).flatten().collect();
        let small = Shape { context_tokens: GUIDE_CONTEXT_TOKENS, ..shape };
        let guide =
            if weak { Some(Guide::new(Session::open(backend, model, small)?)) } else { None };
        Ok(Self {
            model,
            call_mark: renderer.call_mark(),
            renderer,
            session: Session::open(backend, model, shape)?,
            factory,
            closers,
            toolbox: Toolbox::default(),
            guide,
        })
    }

    /// Size of the context window, in tokens.
    #[must_use]
    pub fn context_tokens(&self) -> u32 {
        self.session.context_tokens()
    }

    /// Tokens of a conversation as it would be rendered.
    ///
    /// # Errors
    /// [`Trouble::Render`].
    pub fn count(&self, messages: &[LocalModelMessage]) -> Result<usize, Trouble> {
        Ok(self.renderer.prompt(messages, &[])?.len())
    }

    /// Answers a conversation.
    ///
    /// # Errors
    /// [`Trouble`]; the next request is not affected by it.
    pub fn complete(
        &mut self,
        ask: &LocalModelCompletionRequest,
        sink: &mut Sink<'_>,
    ) -> Result<LocalModelCompletion, Trouble> {
        let watch = Stopwatch::start();
        // A guide tells a weak model of the tools.
        let told = if self.guide.is_none() { ask.tools.as_slice() } else { &[] };
        let prompt = self.renderer.prompt(&ask.messages, told)?;
        let limit = self.token_limit(&prompt, ask.max_tokens)?;
        let offered: Vec<usize> = (0..ask.tools.len())
            .filter(|index| !ask.left_out.contains(&ask.tools[*index].name))
            .collect();
        let mut sampler = Sampler::new(ask.temperature_milli, ask.seed);
        let cached = self.session.common(&prompt);
        let mut first_token_ms = None;
        let said = match self.guide {
            // A weak model does nothing unless it has to.
            Some(_) if !offered.is_empty() => None,
            _ => {
                self.session.feed(&prompt)?;
                first_token_ms = Some(watch.millis());
                Some(self.writer(&mut sampler, limit, sink).prose(!offered.is_empty())?)
            }
        };
        let text = said.as_ref().map_or_else(String::new, Written::text);
        let (mut calls, mut before) = (Vec::new(), prompt.clone());
        // A model that says nothing at all has not understood that a call is due.
        let is_silent = text.is_empty() && !offered.is_empty();
        let written = match said {
            Some(said) if !said.calls && !is_silent => said,
            Some(said) if said.tokens + ROOM_TOKENS_MIN > limit && !text.is_empty() => {
                Written { finish: LocalModelFinishReason::Length, ..said }
            }
            said => {
                self.prepare(ask)?;
                if !text.is_empty() {
                    before.extend(self.renderer.written(&format!("{text}\n")));
                }
                let room = limit.saturating_sub(before.len() - prompt.len());
                let chosen = self.choose(ask, &before, &offered, &mut sampler)?;
                first_token_ms.get_or_insert_with(|| watch.millis());
                let rules = self.toolbox.rules(chosen);
                let mut written = self.writer(&mut sampler, room, sink).call(rules)?;
                calls.extend(whole_call(&ask.tools[chosen], &written.bytes));
                if calls.is_empty() {
                    written.finish = LocalModelFinishReason::Length;
                }
                written.tokens += said.map_or(0, |said| said.tokens);
                written
            }
        };
        Ok(LocalModelCompletion {
            text,
            calls,
            finish: written.finish,
            prompt_tokens: number(prompt.len()),
            cached_tokens: number(cached),
            completion_tokens: number(written.tokens),
            first_token_ms: first_token_ms.unwrap_or_default(),
            total_ms: watch.millis(),
        })
    }

    /// Tokens that an answer to `prompt` may have.
    fn token_limit(&self, prompt: &[LlamaToken], max_tokens: u32) -> Result<usize, Trouble> {
        let context_tokens = self.context_tokens();
        let room = (context_tokens as usize).saturating_sub(prompt.len());
        if room < ROOM_TOKENS_MIN {
            let prompt_tokens = prompt.len();
            return Err(Trouble::TooLong { prompt_tokens, room: ROOM_TOKENS_MIN, context_tokens });
        }
        Ok(room.min(max_tokens as usize).max(1))
    }

    /// Makes grammars of the tools, unless it was done for the last request.
    fn prepare(&mut self, ask: &LocalModelCompletionRequest) -> Result<(), Trouble> {
        let string_chars_max = u64::from(ask.max_tokens) * CHARS_PER_TOKEN;
        let box_ = &self.toolbox;
        if box_.tools == ask.tools && box_.string_chars_max == string_chars_max {
            return Ok(());
        }
        let freedom = if self.guide.is_some() { Freedom::Little } else { Freedom::Full };
        let narrowing = Narrowing { string_chars_max, freedom };
        let starts = Starts::new(&ask.tools, &self.renderer);
        let mut matchers = Vec::with_capacity(ask.tools.len());
        for (tool, rest) in ask.tools.iter().zip(&starts.rests) {
            let grammar = TopLevelGrammar::from_json_schema(call_schema(tool, narrowing));
            let mut matcher = Matcher::new(self.factory.create_parser(grammar));
            let start: Vec<u32> =
                starts.shared.iter().chain(rest).map(|token| token.0.cast_unsigned()).collect();
            let consumed = matcher.consume_tokens(&start);
            let reason = matcher.get_error().or(consumed.err().map(|error| error.to_string()));
            if let Some(reason) = reason {
                return Err(Trouble::Schema { tool: tool.name.clone(), reason });
            }
            matchers.push(matcher);
        }
        let closing = |tool| self.renderer.written(&shortest_arguments(tool)).len();
        let closing_tokens = ask.tools.iter().map(|tool| closing(tool) + CLOSING_TOKENS).collect();
        let tools = ask.tools.clone();
        self.toolbox = Toolbox { tools, string_chars_max, matchers, closing_tokens, starts };
        Ok(())
    }

    /// Chooses one of the tools that are offered, and evaluates the prompt with the
    /// beginning of a call of it.
    fn choose(
        &mut self,
        ask: &LocalModelCompletionRequest,
        prompt: &[LlamaToken],
        offered: &[usize],
        sampler: &mut Sampler,
    ) -> Result<usize, Trouble> {
        let starts = &self.toolbox.starts;
        let before = [prompt, &self.call_mark, &starts.shared].concat();
        let scores = match &mut self.guide {
            _ if offered.len() == 1 => Vec::new(),
            Some(guide) => guide.scores(&ask.messages, &ask.tools, starts, &self.renderer)?,
            None => {
                self.session.feed(&before)?;
                self.session.score(&starts.names())?
            }
        };
        let score = |index: &usize| scores.get(*index).copied().unwrap_or(0.0);
        let chosen = offered[sampler.choose(offered.iter().map(score)).unwrap_or(0)];
        self.session.feed(&[before.as_slice(), &starts.rests[chosen]].concat())?;
        Ok(chosen)
    }

    fn writer<'a, 'sink>(
        &'a mut self,
        sampler: &'a mut Sampler,
        limit: usize,
        sink: &'a mut Sink<'sink>,
    ) -> Writer<'a, 'model, 'sink> {
        let vocab = self.model.vocab();
        let (closers, call) = (&self.closers, self.call_mark.first().copied());
        Writer { session: &mut self.session, vocab, closers, call, sampler, limit, sink }
    }
}

impl Toolbox {
    /// What the rest of a call of the tool at `index` is written under.
    fn rules(&self, index: usize) -> Rules {
        Rules {
            matcher: self.matchers[index].deep_clone(),
            started: self.starts.shared.len() + self.starts.rests[index].len(),
            closing_tokens: self.closing_tokens[index],
        }
    }
}

/// The call of which `rest` is what follows its beginning; None when it was cut off.
fn whole_call(tool: &LocalModelTool, rest: &[u8]) -> Option<LocalModelCall> {
    // The last brace is the call's own.
    let arguments = std::str::from_utf8(rest).ok()?.trim().strip_suffix('}')?;
    let whole = matches!(serde_json::from_str(arguments), Ok(Value::Object(_)));
    whole.then(|| LocalModelCall { name: tool.name.clone(), arguments: arguments.to_owned() })
}

/// A count for the wire.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
