//! The beginning of an answer, until something is said.
//!
//! While nothing but an opening has come, another upstream may still be asked. Must never pass the
//! opening on alone, nor keep it back once there is more.

use bytes::Bytes;

use super::Recording;
use crate::billing::price::Metering;

/// Pieces of an answer on their way to the recording.
pub(super) struct HeldBack<'a> {
    recording: &'a Recording,
    /// The opening; none once it was passed on.
    opening: Option<Vec<Bytes>>,
}

impl<'a> HeldBack<'a> {
    pub(super) const fn new(recording: &'a Recording) -> Self {
        Self { recording, opening: Some(Vec::new()) }
    }

    pub(super) const fn recording(&self) -> &Recording {
        self.recording
    }

    /// Returns whether anything was passed on.
    pub(super) const fn is_shown(&self) -> bool {
        self.opening.is_none()
    }

    /// A piece, which says something or belongs to the opening.
    pub(super) fn push(&mut self, piece: Bytes, has_content: bool) {
        match &mut self.opening {
            Some(opening) if !has_content => opening.push(piece),
            _ => {
                self.pass(Metering::Reported);
                self.recording.push(piece);
            }
        }
    }

    /// The last piece, which is passed on in any case.
    pub(super) fn finish(mut self, piece: Bytes, metering: Metering) {
        self.pass(metering);
        self.recording.finish(piece);
    }

    fn pass(&mut self, metering: Metering) {
        let Some(opening) = self.opening.take() else { return };
        self.recording.begin(metering);
        opening.into_iter().for_each(|piece| self.recording.push(piece));
    }
}
