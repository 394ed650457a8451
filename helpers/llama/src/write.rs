//! The loop that writes an answer token by token.
//!
//! A call is written under the grammar of its tool. When a value repeats itself or the
//! limit comes near, the call is not thrown away: it is steered to the nearest end of
//! the value or of the call. This must never choose a token that the grammar forbids.

use std::io;

use automaton_core::wire::brain::LocalModelFinishReason;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::vocab::LlamaVocab;
use llguidance::Matcher;

use crate::generate::Trouble;
use crate::guard;
use crate::sample::Sampler;
use crate::session::Session;
use crate::spot::{Spotted, spot};

/// Where the pieces of an answer's text go as they come.
pub type Sink<'a> = dyn FnMut(&str) -> io::Result<()> + 'a;

/// The grammar that a call is written under.
pub struct Rules {
    /// The grammar, which has read the part of the call that is already there.
    pub matcher: Matcher,
    /// Tokens of that part.
    pub started: usize,
    /// Tokens to keep back from the limit for the end of the call.
    pub closing_tokens: usize,
}

/// Where the next token should lead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steer {
    /// Wherever the model likes.
    Free,
    /// To the end of the value and of the call.
    End,
}

/// What was written, and how it ended.
pub struct Written {
    /// The text.
    pub bytes: Vec<u8>,
    /// Tokens generated, with those that were already there and those taken back.
    pub tokens: usize,
    /// Why it ended.
    pub finish: LocalModelFinishReason,
    /// Whether it ended because the model calls a tool.
    pub calls: bool,
}

impl Written {
    /// It as a text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}

/// Writes behind what a session has evaluated.
pub struct Writer<'a, 'model, 'sink> {
    /// The conversation.
    pub session: &'a mut Session<'model>,
    /// The model's vocabulary.
    pub vocab: LlamaVocab<'model>,
    /// Tokens that end strings and objects, best first.
    pub closers: &'a [LlamaToken],
    /// The token with which the model says that it calls a tool.
    pub call: Option<LlamaToken>,
    /// Chooses among what is allowed.
    pub sampler: &'a mut Sampler,
    /// The most tokens of the answer.
    pub limit: usize,
    /// Where plain text goes.
    pub sink: &'a mut Sink<'sink>,
}

impl Writer<'_, '_, '_> {
    /// Plain text, until the model ends it or, where it may, calls a tool: by its mark, or by
    /// beginning with the call.
    ///
    /// # Errors
    /// [`Trouble`] when the model fails or the text cannot be delivered.
    pub fn prose(mut self, may_call: bool) -> Result<Written, Trouble> {
        let mut tokens = Vec::new();
        let (mut bytes, mut shown, mut calls) = (Vec::new(), 0, false);
        let mut begins = if may_call { Spotted::Maybe } else { Spotted::Text };
        let finish = loop {
            if tokens.len() >= self.limit {
                break LocalModelFinishReason::Length;
            }
            let logits = self.session.logits().iter().map(|logit| f64::from(*logit));
            let token = token_at(self.sampler.choose(logits))?;
            calls = may_call && self.call == Some(token);
            if calls || self.vocab.is_eog(token) {
                break LocalModelFinishReason::Stop;
            }
            tokens.push(token);
            bytes.extend(self.vocab.token_to_piece(token, false, None));
            if begins == Spotted::Maybe {
                begins = spot(valid(&bytes));
            }
            if begins == Spotted::Call {
                calls = true;
                bytes.clear();
                break LocalModelFinishReason::Stop;
            }
            if begins == Spotted::Text {
                shown += self.show(&bytes[shown..])?;
            }
            if guard::repeated(&tokens).is_some() {
                break LocalModelFinishReason::Repetition;
            }
            self.session.extend(&[token])?;
        };
        self.show(&bytes[shown..])?;
        Ok(Written { bytes, tokens: tokens.len(), finish, calls })
    }

    /// Delivers what of these bytes is whole; how many of them that is.
    fn show(&mut self, bytes: &[u8]) -> Result<usize, Trouble> {
        let whole = valid(bytes);
        if !whole.is_empty() {
            (self.sink)(whole).map_err(Trouble::Deliver)?;
        }
        Ok(whole.len())
    }

    /// The rest of a call. It is whole unless the limit left no room for its end.
    ///
    /// # Errors
    /// [`Trouble`] when the model or the grammar fails.
    pub fn call(mut self, mut rules: Rules) -> Result<Written, Trouble> {
        let base = self.session.tokens().to_vec();
        let mut tokens: Vec<LlamaToken> = Vec::new();
        let mut dropped = 0;
        let (mut finish, mut steer) = (LocalModelFinishReason::Stop, Steer::Free);
        while rules.started + tokens.len() < self.limit {
            let used = rules.started + tokens.len();
            if used + rules.closing_tokens >= self.limit {
                steer = Steer::End;
                finish = if finish == LocalModelFinishReason::Stop {
                    LocalModelFinishReason::Length
                } else {
                    finish
                };
            }
            let token = self.allowed(&mut rules.matcher, steer)?;
            rules.matcher.consume_token(token.0.cast_unsigned()).map_err(grammar)?;
            tokens.push(token);
            if rules.matcher.is_stopped() {
                break;
            }
            match guard::repeated(&tokens) {
                Some(kept) if steer == Steer::Free => {
                    // The value that goes round is ended, the others are still written.
                    (finish, steer) = (LocalModelFinishReason::Repetition, Steer::End);
                    rules.matcher.rollback(tokens.len() - kept).map_err(grammar)?;
                    dropped += tokens.len() - kept;
                    tokens.truncate(kept);
                    self.session.feed(&[base.as_slice(), &tokens].concat())?;
                }
                _ => {
                    steer = Steer::Free;
                    self.session.extend(&[token])?;
                }
            }
        }
        let bytes = tokens.iter().flat_map(|token| self.vocab.token_to_piece(*token, false, None));
        let count = rules.started + tokens.len() + dropped;
        Ok(Written { bytes: bytes.collect(), tokens: count, finish, calls: true })
    }

    /// A token that the grammar allows: the sampler's choice, or one that brings the
    /// end nearer.
    fn allowed(&mut self, matcher: &mut Matcher, steer: Steer) -> Result<LlamaToken, Trouble> {
        let mask = matcher.compute_mask_or_eos().map_err(grammar)?;
        let may = |token: &LlamaToken| mask.is_allowed(token.0.cast_unsigned());
        let closer = self.closers.iter().copied().find(may);
        if let Some(closer) = closer.filter(|_| steer == Steer::End) {
            return Ok(closer);
        }
        token_at(self.sampler.choose((0_i32..).zip(self.session.logits()).map(|(token, logit)| {
            if may(&LlamaToken(token)) { f64::from(*logit) } else { f64::NEG_INFINITY }
        })))
    }
}

/// The characters that are whole: one may be spread over several tokens.
fn valid(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// The token at a place of the vocabulary.
fn token_at(index: Option<usize>) -> Result<LlamaToken, Trouble> {
    let token = index.and_then(|index| i32::try_from(index).ok());
    token.map(LlamaToken).ok_or_else(|| Trouble::Grammar("no token is allowed".to_owned()))
}

/// A failure of the grammar library.
fn grammar(error: impl std::fmt::Display) -> Trouble {
    Trouble::Grammar(error.to_string())
}
