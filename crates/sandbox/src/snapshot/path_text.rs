//! Pure: a path as text, and back to the same bytes.
//!
//! A name in the workspace may be any bytes. Bytes that are no UTF-8 are written as `%FF`, control
//! characters and `%` too, so that one path is one line and each text is one path.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Writes a path as text.
pub(crate) fn encode(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '%' || c.is_control() {
                let mut bytes = [0; 4];
                escape(&mut text, c.encode_utf8(&mut bytes).as_bytes());
            } else {
                text.push(c);
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

fn escape(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // silent-ok: a string takes what is written to it.
        write!(text, "%{byte:02X}").ok();
    }
}

/// Reads what [`encode`] wrote; nothing where it is not that.
pub(crate) fn decode(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let value = |digit: &u8| char::from(*digit).to_digit(16);
        let (high, low) = (value(digits.first()?)?, value(digits.get(1)?)?);
        // silent-ok: two hexadecimal digits are one byte.
        bytes.push(u8::try_from(high * 16 + low).ok()?);
        rest = after;
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_path_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let path = PathBuf::from(OsString::from_vec(bytes));
            let text = encode(&path);
            prop_assert!(!text.contains(char::is_control));
            prop_assert_eq!(decode(&text), Some(path));
        }

        #[test]
        fn no_text_breaks_the_reader(text in ".*") {
            decode(&text);
        }
    }

    #[test]
    fn plain_names_stay_plain() {
        assert_eq!(encode(Path::new("notes/für 1.md")), "notes/für 1.md");
        assert_eq!(decode("a%2"), None);
        assert_eq!(decode("a%zz"), None);
    }
}
