//! Pure: the halves of characters in the pieces of one reply, joined over its pieces.
//!
//! Each field has a joiner of its own: the text, and the arguments of each call. Bytes that are no text become
//! U+FFFD in words. In a call they are an error, since nobody knows what it would do.

use std::collections::BTreeMap;

use automaton_core::wire::chat::{ChatChunk, ChunkDelta};
use serde_json::Value;

use super::assemble::{AssemblyError, StreamPiece, WHOLE_REPLY};
use super::pieces;
use crate::halves::{self, HalfJoiner};

/// The fields of one reply.
#[derive(Debug, Default)]
pub(super) struct JoinedReply {
    text: HalfJoiner,
    /// The arguments that wait for the other half of a character, by the number of their call.
    arguments: BTreeMap<u32, HalfJoiner>,
}

impl JoinedReply {
    /// Takes the next piece and gives it with whole characters.
    ///
    /// # Errors
    /// When a call holds bytes that are no text.
    pub(super) fn join(&mut self, piece: StreamPiece) -> Result<StreamPiece, AssemblyError> {
        Ok(match piece {
            StreamPiece::Chunk(chunk) => StreamPiece::Chunk(self.join_chunk(chunk, false)?),
            StreamPiece::Last(chunk) => StreamPiece::Last(self.join_chunk(chunk, true)?),
            StreamPiece::Done if self.is_empty() => StreamPiece::Done,
            StreamPiece::Done => {
                let rest = pieces::chunk(ChunkDelta::default(), None);
                StreamPiece::Last(self.join_chunk(rest, true)?)
            }
        })
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.arguments.is_empty()
    }

    fn join_chunk(
        &mut self,
        mut chunk: ChatChunk,
        is_last: bool,
    ) -> Result<ChatChunk, AssemblyError> {
        join_in_place(&mut chunk.id);
        join_in_place(&mut chunk.model);
        for choice in &mut chunk.choices {
            if choice.index != 0 {
                choice.delta.content.iter_mut().for_each(join_in_place);
                continue;
            }
            self.join_delta(&mut choice.delta)?;
            let is_whole = chunk.object == WHOLE_REPLY;
            if is_last || is_whole || choice.finish_reason.is_some() {
                self.end(&mut choice.delta)?;
            }
        }
        // A reply may say in a piece of its own that it ended.
        if is_last && chunk.choices.is_empty() && !self.is_empty() {
            let mut rest = ChunkDelta::default();
            self.end(&mut rest)?;
            chunk.choices = pieces::chunk(rest, None).choices;
        }
        Ok(chunk)
    }

    fn join_delta(&mut self, delta: &mut ChunkDelta) -> Result<(), AssemblyError> {
        if let Some(text) = &mut delta.content {
            *text = self.text.push(text);
        }
        for call in delta.tool_calls.iter_mut().flatten() {
            call.id.iter_mut().for_each(join_in_place);
            if let Some(name) = &mut call.function.name {
                let mut joiner = HalfJoiner::default();
                let joined = joiner.push(name) + &joiner.finish();
                check_whole(&joiner)?;
                *name = joined;
            }
            let Some(arguments) = &mut call.function.arguments else { continue };
            let mut joiner = self.arguments.remove(&call.index).unwrap_or_default();
            *arguments = joiner.push(arguments);
            check_whole(&joiner)?;
            if !joiner.is_empty() {
                self.arguments.insert(call.index, joiner);
            }
        }
        Ok(())
    }

    /// Ends all fields: a half that waits stays alone.
    fn end(&mut self, delta: &mut ChunkDelta) -> Result<(), AssemblyError> {
        let rest = self.text.finish();
        if !rest.is_empty() {
            delta.content.get_or_insert_default().push_str(&rest);
        }
        for (index, mut joiner) in std::mem::take(&mut self.arguments) {
            let place = usize::try_from(index).unwrap_or(usize::MAX);
            let more = pieces::call(place, None, None, Some(joiner.finish()));
            check_whole(&joiner)?;
            delta.tool_calls.get_or_insert_default().push(more);
        }
        Ok(())
    }
}

fn check_whole(joiner: &HalfJoiner) -> Result<(), AssemblyError> {
    match joiner.has_lost() {
        true => Err(AssemblyError::NoReply("a call of it holds bytes that are no text".to_owned())),
        false => Ok(()),
    }
}

fn join_in_place(text: &mut String) {
    if let std::borrow::Cow::Owned(joined) = halves::join_text(text) {
        *text = joined;
    }
}

/// Joins the halves in all texts of a value that is complete.
pub(super) fn join_value(value: &mut Value) {
    match value {
        Value::String(text) => join_in_place(text),
        Value::Array(items) => items.iter_mut().for_each(join_value),
        Value::Object(fields) => fields.values_mut().for_each(join_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
