//! Pure: an answer in blocks, one after the other, out of pieces of chat completions.
//!
//! The text and the first call are written as they come, further calls when the answer ends. The
//! end is written apart, since whoever charges for an answer does so before its end, and tells what
//! was charged.

use std::fmt;

use automaton_core::wire::chat::ChatUsage;

use super::assemble::{AssembledReply, Assembler, AssemblyError, StreamPiece};
use super::format::{ApiFormat, FormatReader};
use crate::provider::{FinishReason, RawCall};

/// An event of a stream: its name and its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFrame {
    /// The name, which the data has as its `type`, too.
    pub name: &'static str,
    /// The data, as JSON.
    pub data: String,
}

/// A part of one block. There is one block at a time.
#[derive(Debug, Clone, Copy)]
pub(super) enum BlockPart<'a> {
    /// A text begins.
    TextBegin,
    /// More of the text.
    TextMore(&'a str),
    /// A call begins.
    CallBegin(CallHead<'a>),
    /// More of its arguments.
    CallMore(&'a str),
    /// It ends, cut off or not.
    End { is_cut: bool },
}

/// Start of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallHead<'a> {
    /// Its place among the calls of the answer.
    pub(super) place: usize,
    /// The server's id.
    pub(super) id: Option<&'a str>,
    /// Its tool.
    pub(super) name: &'a str,
}

/// A format of answers that are made of blocks.
pub(super) trait BlockFormat: fmt::Debug + Send {
    /// An answer begins.
    fn begin(&mut self) -> Vec<EventFrame>;

    /// A part of the block with this number.
    fn part(&mut self, index: usize, part: BlockPart<'_>) -> Vec<EventFrame>;

    /// An answer ends, whose blocks have all ended.
    fn end(&mut self, finish: FinishReason, usage: &ChatUsage) -> Vec<EventFrame>;

    /// A whole answer as one document.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write_reply(
        &mut self,
        reply: &AssembledReply,
        usage: &ChatUsage,
    ) -> Result<Vec<u8>, serde_json::Error>;
}

/// Writes one answer.
#[derive(Debug)]
pub struct ReplyWriter {
    format: Box<dyn BlockFormat>,
    reader: FormatReader,
    reply: Assembler,
    begun: bool,
    /// Blocks that have ended.
    ended: usize,
    text_open: bool,
    /// Bytes that are written of the arguments of the first call, once its block is open.
    first_call: Option<usize>,
    /// Text that came after the first call.
    late: String,
    /// Text that was held back until the answer ended.
    held: String,
}

impl ReplyWriter {
    pub(super) fn new(format: Box<dyn BlockFormat>) -> Self {
        Self {
            format,
            reader: ApiFormat::ChatCompletions.reader(),
            reply: Assembler::default(),
            begun: false,
            ended: 0,
            text_open: false,
            first_call: None,
            late: String::new(),
            held: String::new(),
        }
    }

    /// The frames for a piece of chat completions, or for a whole reply, and whether it was the last.
    ///
    /// # Errors
    /// What the server says went wrong, or that it is no reply.
    pub fn take(&mut self, data: &str) -> Result<(Vec<EventFrame>, bool), String> {
        let chunk = match self.reader.passed_on(data)? {
            StreamPiece::Done => {
                self.done();
                return Ok((Vec::new(), true));
            }
            StreamPiece::Chunk(chunk) | StreamPiece::Last(chunk) => chunk,
        };
        let text = self.reply.take(chunk).map_err(AssemblyError::into_text)?;
        let mut frames = Vec::new();
        if !self.begun {
            self.begun = true;
            frames.extend(self.format.begin());
        }
        self.write_text(&text, &mut frames);
        self.write_first_call(&mut frames);
        Ok((frames, false))
    }

    /// The server said that this is all, though perhaps not why.
    pub fn done(&mut self) {
        let rest = self.reply.end(FinishReason::Stop);
        self.held.push_str(&rest);
    }

    fn write_text(&mut self, text: &str, frames: &mut Vec<EventFrame>) {
        if self.first_call.is_some() {
            self.late.push_str(text);
        } else if !text.is_empty() {
            if !self.text_open {
                self.text_open = true;
                frames.extend(self.format.part(self.ended, BlockPart::TextBegin));
            }
            frames.extend(self.format.part(self.ended, BlockPart::TextMore(text)));
        }
    }

    /// Returns true if there is text or a call.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.reply.has_output()
    }

    /// Returns true if the answer has ended.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.reply.has_ended()
    }

    /// Bytes of what was said and called.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.reply.bytes()
    }

    /// The last frames of a stream, with the counts that are charged.
    ///
    /// # Errors
    /// When the answer has no end.
    pub fn end(mut self, usage: &ChatUsage) -> Result<Vec<EventFrame>, String> {
        let reply = std::mem::take(&mut self.reply).finish().map_err(AssemblyError::into_text)?;
        let mut frames = Vec::new();
        let held = std::mem::take(&mut self.held);
        self.write_text(&held, &mut frames);
        let begun = usize::from(self.first_call.is_some());
        if let (Some(written), Some(call)) = (self.first_call, reply.calls.first()) {
            // What may have been replaced was held back.
            let rest = call.arguments.get(written..).filter(|rest| !rest.is_empty());
            let more = rest.map(|rest| self.format.part(self.ended, BlockPart::CallMore(rest)));
            frames.extend(more.into_iter().flatten());
        }
        let late = Some(std::mem::take(&mut self.late)).filter(|text| !text.is_empty());
        let mut left = reply.calls.len() - begun + usize::from(late.is_some());
        // What was cut off was the last of it.
        let is_cut = |left: usize| reply.finish == FinishReason::Length && left == 0;
        if self.text_open || self.first_call.is_some() {
            frames.extend(self.close(is_cut(left)));
        }
        for (place, call) in reply.calls.iter().enumerate().skip(begun) {
            left -= 1;
            frames.extend(self.format.part(self.ended, BlockPart::CallBegin(head(place, call))));
            frames.extend(self.format.part(self.ended, BlockPart::CallMore(&call.arguments)));
            frames.extend(self.close(is_cut(left)));
        }
        if let Some(text) = late {
            frames.extend(self.format.part(self.ended, BlockPart::TextBegin));
            frames.extend(self.format.part(self.ended, BlockPart::TextMore(&text)));
            frames.extend(self.close(is_cut(0)));
        }
        frames.extend(self.format.end(reply.finish, usage));
        Ok(frames)
    }

    /// The answer as one document, with the counts that are charged.
    ///
    /// # Errors
    /// When it has no end, or cannot be written.
    pub fn finish_whole(mut self, usage: &ChatUsage) -> Result<Vec<u8>, String> {
        let reply = std::mem::take(&mut self.reply).finish().map_err(AssemblyError::into_text)?;
        self.format.write_reply(&reply, usage).map_err(|error| error.to_string())
    }

    fn close(&mut self, is_cut: bool) -> Vec<EventFrame> {
        let index = self.ended;
        self.ended += 1;
        self.format.part(index, BlockPart::End { is_cut })
    }

    /// Writes what is new of the first call.
    fn write_first_call(&mut self, frames: &mut Vec<EventFrame>) {
        let Some(call) = self.reply.first_call().filter(|call| !call.name.is_empty()) else {
            return;
        };
        if self.first_call.is_none() {
            if std::mem::take(&mut self.text_open) {
                frames.extend(self.format.part(self.ended, BlockPart::End { is_cut: false }));
                self.ended += 1;
            }
            let head = CallHead { place: 0, id: call.id.as_deref(), name: &call.name };
            frames.extend(self.format.part(self.ended, BlockPart::CallBegin(head)));
        }
        let written = self.first_call.unwrap_or(0);
        let settled = call.settled_arguments();
        if let Some(news) = settled.get(written..).filter(|news| !news.is_empty()) {
            frames.extend(self.format.part(self.ended, BlockPart::CallMore(news)));
        }
        self.first_call = Some(settled.len().max(written));
    }
}

impl EventFrame {
    pub(super) fn new(name: &'static str, data: &serde_json::Value) -> Self {
        Self { name, data: data.to_string() }
    }
}

/// Returns the start of a call.
pub(super) fn head(place: usize, call: &RawCall) -> CallHead<'_> {
    CallHead { place, id: call.provider_id.as_deref(), name: &call.tool }
}
