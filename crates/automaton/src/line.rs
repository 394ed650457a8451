//! Lines of another process, each of a limited length.
//!
//! Whoever writes them must never be able to fill this program's memory.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The next line, with its end; `None` at the end of all. Cancel-safe: what was read of a line
/// is kept in `partial`.
///
/// # Errors
/// When nothing can be read, or the line has more than `bytes_max` bytes.
pub(crate) async fn next(
    stream: &mut (impl AsyncBufRead + Unpin),
    partial: &mut Vec<u8>,
    bytes_max: usize,
) -> io::Result<Option<Vec<u8>>> {
    loop {
        let chunk = stream.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(None);
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(chunk.len(), |end| end + 1);
        partial.extend_from_slice(&chunk[..taken]);
        stream.consume(taken);
        if partial.len() > bytes_max {
            return Err(io::Error::other("its line is too long"));
        }
        if end.is_some() {
            return Ok(Some(std::mem::take(partial)));
        }
    }
}
