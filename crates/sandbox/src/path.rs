//! Pure: paths by which the agent names files of its workspace.
//!
//! `~/x`, `x` and `/root/x` are the same file, here and inside the sandbox. A [`WorkspacePath`]
//! can never name anything outside. [`crate::fs`] handles links on the disk.

use std::fmt;
use std::path::Path;

use automaton_core::error::Classified;
use thiserror::Error;

use crate::spec::HOME_INSIDE;

/// The longest accepted path, in bytes: the kernel's `PATH_MAX` without its NUL.
const PATH_BYTES_MAX: usize = 4095;
/// The longest accepted name, in bytes: `NAME_MAX`.
const NAME_BYTES_MAX: usize = 255;

/// A path within the workspace, without `.`, `..` and doubled slashes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(String);

/// The reason why a text is not a path within the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Error, Classified)]
pub enum PathError {
    /// The text is empty.
    #[error("the path is empty")]
    #[class(User, hint = "Give a path relative to {HOME_INSIDE}, such as `notes/today.md`.")]
    Empty,
    /// The path contains a NUL byte.
    #[error("the path contains a NUL byte")]
    #[class(User, hint = "Give a path relative to {HOME_INSIDE}, such as `notes/today.md`.")]
    Nul,
    /// The path, or one of its names, is longer than the system permits.
    #[error("the path is too long ({bytes} bytes)")]
    #[class(User, hint = "Give a path relative to {HOME_INSIDE}, such as `notes/today.md`.")]
    TooLong {
        /// The length in bytes.
        bytes: usize,
    },
    /// The path is absolute and not below the workspace.
    #[error("{path:?} is not in the workspace, which is {HOME_INSIDE}")]
    #[class(Denied, hint = "Give a path relative to {HOME_INSIDE}, such as `notes/today.md`.")]
    Outside {
        /// The path.
        path: String,
    },
    /// The path's `..` parts lead above the workspace.
    #[error("{path:?} leads out of the workspace")]
    #[class(Denied, hint = "Give a path relative to {HOME_INSIDE}, such as `notes/today.md`.")]
    Above {
        /// The path.
        path: String,
    },
    /// The path starts with another user's home.
    #[error("{path:?} names the home of another user")]
    #[class(Denied, hint = "Give a path relative to {HOME_INSIDE}, such as `notes/today.md`.")]
    OtherHome {
        /// The path.
        path: String,
    },
}

impl WorkspacePath {
    /// Parses a path as a model or a person writes it.
    ///
    /// # Errors
    /// Fails if it does not name something within the workspace.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.contains('\0') {
            return Err(PathError::Nul);
        }
        if text.len() > PATH_BYTES_MAX {
            return Err(PathError::TooLong { bytes: text.len() });
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in relative(text)?.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() {
                        return Err(PathError::Above { path: text.to_owned() });
                    }
                }
                name if name.len() > NAME_BYTES_MAX => {
                    return Err(PathError::TooLong { bytes: name.len() });
                }
                name => parts.push(name),
            }
        }
        Ok(Self(parts.join("/")))
    }

    /// Returns the path of the workspace itself.
    #[must_use]
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// Returns true if this is the workspace itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the path relative to the workspace, or `.` for the workspace itself.
    #[must_use]
    pub fn relative(&self) -> &Path {
        Path::new(if self.is_root() { "." } else { &self.0 })
    }

    /// Returns the names of the path, outermost first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }
}

/// Returns the part of `text` that is relative to the workspace.
fn relative(text: &str) -> Result<&str, PathError> {
    for home in ["~", HOME_INSIDE] {
        if let Some(rest) = text.strip_prefix(home)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return Ok(rest);
        }
    }
    match text.chars().next() {
        Some('~') => Err(PathError::OtherHome { path: text.to_owned() }),
        Some('/') => Err(PathError::Outside { path: text.to_owned() }),
        _ => Ok(text),
    }
}

impl fmt::Display for WorkspacePath {
    /// Formats the path as it is inside the sandbox.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HOME_INSIDE)?;
        if !self.is_root() {
            write!(f, "/{}", self.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use automaton_core::error::ErrorClass;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_three_spellings_are_one() {
        for text in ["~/a/b", "a/b", "/root/a/b", "./a//b/", "a/c/../b", "/root/./a/b"] {
            assert_eq!(WorkspacePath::parse(text).unwrap().to_string(), "/root/a/b", "{text}");
        }
        for text in ["~", "~/", ".", "/root", "a/..", "./"] {
            assert!(WorkspacePath::parse(text).unwrap().is_root(), "{text}");
        }
    }

    #[test]
    fn what_is_outside_is_refused() {
        let denied = [
            "/etc/passwd",
            "/",
            "..",
            "a/../..",
            "~/..",
            "/root/..",
            "/root/../etc",
            "/rootkit",
            "~root/x",
            "/root/a/../../b",
            "../root/a",
        ];
        for text in denied {
            assert_eq!(
                WorkspacePath::parse(text).unwrap_err().kind(),
                ErrorClass::Denied,
                "{text}"
            );
        }
        assert_eq!(WorkspacePath::parse(""), Err(PathError::Empty));
        assert_eq!(WorkspacePath::parse("a\0b"), Err(PathError::Nul));
        let long = "x".repeat(256);
        assert_eq!(WorkspacePath::parse(&long), Err(PathError::TooLong { bytes: 256 }));
        assert!(WorkspacePath::parse(&"x/".repeat(2100)).is_err());
    }

    proptest! {
        #[test]
        fn any_accepted_path_stays_within(text in "(~|/root|/|\\.\\.|\\.|[a-c~]{1,3}|//){0,9}(/(\\.\\.|\\.|[a-c]{1,2}|é)){0,6}/?") {
            if let Ok(path) = WorkspacePath::parse(&text) {
                prop_assert!(path.relative().is_relative());
                prop_assert!(path.names().all(|name| !["", ".", ".."].contains(&name)));
                prop_assert!(!path.relative().to_string_lossy().contains("//"));
                // Every form of the result parses to the same path.
                let inside = path.to_string();
                prop_assert_eq!(&WorkspacePath::parse(&inside).unwrap(), &path);
                let home = inside.replacen("/root", "~", 1);
                prop_assert_eq!(&WorkspacePath::parse(&home).unwrap(), &path);
            }
        }

        #[test]
        fn climbing_is_refused_however_deep(depth in 0usize..6, extra in 1usize..4) {
            let text = format!("{}{}x", "a/".repeat(depth), "../".repeat(depth + extra));
            let above = matches!(WorkspacePath::parse(&text), Err(PathError::Above { .. }));
            prop_assert!(above);
        }
    }
}
