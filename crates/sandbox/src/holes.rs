//! Finds the data in sparse files.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::unistd::{Whence, lseek};

/// Returns the next range of data in a file at or after `from`: the offset of its first byte, and
/// the offset after its last byte. Returns `None` if only a hole follows. A file system without
/// holes reports the whole file as data. Moves the file's read position.
///
/// # Errors
/// Fails if the system reports an error.
pub fn next_data(file: &File, from: u64) -> io::Result<Option<(u64, u64)>> {
    let seek = |at: u64, whence| {
        let at = i64::try_from(at).map_err(|_| Errno::EOVERFLOW)?;
        lseek(file, at, whence).map(i64::cast_unsigned)
    };
    let begin = match seek(from, Whence::SeekData) {
        Ok(begin) => begin,
        Err(Errno::ENXIO) => return Ok(None),
        Err(Errno::EINVAL) => from,
        Err(errno) => return Err(errno.into()),
    };
    let end = match seek(begin, Whence::SeekHole) {
        Ok(end) => end,
        Err(Errno::ENXIO) => return Ok(None),
        Err(Errno::EINVAL) => file.metadata()?.len(),
        Err(errno) => return Err(errno.into()),
    };
    Ok(Some((begin, end)).filter(|(begin, end)| begin < end))
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};

    use super::*;

    #[test]
    fn what_a_file_holds_is_told_and_its_holes_are_not() {
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(next_data(&file, 0).unwrap(), None, "an empty file");
        let mib = 1 << 20;
        file.seek(SeekFrom::Start(mib)).unwrap();
        file.write_all(&[1; 10]).unwrap();
        file.set_len(3 * mib).unwrap();
        let (begin, end) = next_data(&file, 0).unwrap().unwrap();
        // A file system may round to blocks, or not support holes.
        assert!(begin <= mib && end >= mib + 10 && end <= 3 * mib, "{begin} to {end}");
        if begin > 0 {
            assert_eq!(next_data(&file, end).unwrap(), None, "the rest is a hole");
        }
        assert_eq!(next_data(&file, 3 * mib).unwrap(), None, "after its end");
    }
}
