//! Pure: which files a call may name.
//!
//! Works on the text of the path alone; links on the disk are the business of
//! the handle that opens it. Names are compared without regard to case, since
//! a disk may not regard it either. A path must never be judged by anything
//! but its resolved names.

use super::{LiftedBy, Rule, deny_if, shown};
use crate::decision::{ReasonCode, RuleId};
use crate::intents::IntentProfile;
use crate::intents::IntentTarget::{Reads, Writes};
use crate::shell::folder::{matches_glob, may_begin};

/// Where the sandbox shows the workspace.
const WORKSPACE: &str = "/root";
/// Longest path, in bytes: the kernel's `PATH_MAX` without its NUL.
const PATH_BYTES_MAX: usize = 4095;
/// Longest name within a path, in bytes: `NAME_MAX`.
const NAME_BYTES_MAX: usize = 255;

/// Files that hold secrets, wherever they lie.
const SECRET_FILES: [&str; 5] = [".env", "wallet.json", "automaton.json", "api-key", ".netrc"];
/// Ends of names of files that hold keys.
const SECRET_ENDINGS: [&str; 2] = [".key", ".pem"];
/// Beginnings of names of files that hold secrets.
const SECRET_BEGINNINGS: [&str; 6] =
    [".env.", "private-key", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
/// Ends of names of templates, which say which settings there are and hold none.
const TEMPLATE_ENDINGS: [&str; 8] =
    [".example", ".sample", ".template", ".dist", ".tmpl", ".tpl", ".default", ".defaults"];
/// Ends of names that an editor gives to the file as it was.
const BACKUP_ENDINGS: [&str; 4] = [".bak", ".orig", ".old", "~"];
/// Words in the name of a file that holds the public half of a key.
const PUBLIC_WORDS: [&str; 4] = ["pub", "public", "pubkey", "publickey"];
/// Words in the name of a file that holds the other half.
const PRIVATE_WORDS: [&str; 4] = ["priv", "private", "privkey", "secret"];
/// Characters of a pattern of a shell.
const WILDCARDS: [char; 3] = ['*', '?', '['];
/// Fewest characters before a wildcard with which a pattern is after files of that name.
const PREFIX_CHARS_MIN: usize = 2;
/// Folders in which programs keep keys and logins.
const SECRET_FOLDERS: [&str; 8] =
    [".ssh", ".gnupg", ".gpg", ".aws", ".azure", ".gcloud", ".kube", ".docker"];
/// Folders that belong to the automaton's runtime. They lie elsewhere; a copy
/// in the workspace would only mislead.
pub(super) const RUNTIME_FOLDERS: [&str; 3] =
    [".automaton", ".automaton-signer", ".automaton-cloud-signer"];
/// Files of the runtime, which change through their own tools if at all.
const RUNTIME_FILES: [&str; 6] =
    ["constitution.md", "soul.md", "heartbeat.yml", "automaton.json", "wallet.json", "state.db"];
/// Files and folders that other programs execute without being asked to: the
/// creator's own shell or git may one day look into the workspace.
const EXECUTED: [&str; 11] = [
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".envrc",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".npmrc",
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: RuleId::new("path.workspace"),
        code: ReasonCode::PathTraversal,
        sentence: "Files are named within the workspace, which is /root.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Some(Reads(path) | Writes(path)) = IntentProfile::new(intent).target else {
                return Ok(None);
            };
            let fault = names(path).err();
            deny_if(fault.is_some(), || {
                let why = fault.map_or("", PathFault::words);
                format!("The path {} {why}.", shown(path))
            })
        },
    },
    Rule {
        id: RuleId::new("path.secrets"),
        code: ReasonCode::SensitiveFileRead,
        sentence: "Files that hold keys or logins are not read.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Some(Reads(path)) = IntentProfile::new(intent).target else { return Ok(None) };
            let secret = names(path).is_ok_and(|names| is_secret(&names) || is_inside(&names));
            deny_if(secret, || format!("The name of {} says that it holds some.", shown(path)))
        },
    },
    Rule {
        id: RuleId::new("path.runtime"),
        code: ReasonCode::ProtectedFile,
        sentence: "The runtime's own files lie outside the workspace and change through tools.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Some(Writes(path)) = IntentProfile::new(intent).target else { return Ok(None) };
            let runtime = names(path).is_ok_and(|names| is_runtime(&names));
            deny_if(runtime, || format!("Writing {} would change nothing.", shown(path)))
        },
    },
    Rule {
        id: RuleId::new("path.executed"),
        code: ReasonCode::ProtectedFile,
        sentence: "Files that other programs execute or obey unasked are not written directly.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Some(Writes(path)) = IntentProfile::new(intent).target else { return Ok(None) };
            let executed = names(path).is_ok_and(|names| {
                names.iter().any(|name| EXECUTED.contains(&name.to_ascii_lowercase().as_str()))
            });
            deny_if(executed, || format!("{} is one of them.", shown(path)))
        },
    },
];

/// Whether the name of a file says that it holds no keys or logins: those that are not read
/// one by one are not read by the way either.
#[must_use]
pub fn may_be_read(path: &str) -> bool {
    names(path).is_ok_and(|names| !is_secret(&names) && !is_inside(&names))
}

/// Why a text names nothing within the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathFault {
    Empty,
    Nul,
    TooLong,
    OtherHome,
    Outside,
    Above,
}

impl PathFault {
    const fn words(self) -> &'static str {
        match self {
            Self::Empty => "is empty",
            Self::Nul => "contains a NUL byte",
            Self::TooLong => "is too long",
            Self::OtherHome => "is in the home of somebody else",
            Self::Outside => "is elsewhere",
            Self::Above => "leads out of it",
        }
    }
}

/// The names of a path within the workspace, outermost first, with `.`, `..`
/// and doubled slashes resolved. `x`, `~/x` and `/root/x` are the same file.
fn names(path: &str) -> Result<Vec<&str>, PathFault> {
    if path.is_empty() {
        return Err(PathFault::Empty);
    }
    if path.contains('\0') {
        return Err(PathFault::Nul);
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(PathFault::TooLong);
    }
    let rest = match (path.strip_prefix('~'), path.strip_prefix(WORKSPACE)) {
        (Some(rest), _) if !(rest.is_empty() || rest.starts_with('/')) => {
            return Err(PathFault::OtherHome);
        }
        (Some(rest), _) => rest,
        (None, Some(rest)) if rest.is_empty() || rest.starts_with('/') => rest,
        (None, _) if path.starts_with('/') => return Err(PathFault::Outside),
        (None, _) => path,
    };
    let mut names = Vec::new();
    for name in rest.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop().ok_or(PathFault::Above)?;
            }
            name if name.len() > NAME_BYTES_MAX => return Err(PathFault::TooLong),
            name => names.push(name),
        }
    }
    Ok(names)
}

/// Returns true if a file holds secrets by its name, or lies where they are kept. A pattern
/// of a shell does if it may match such a file and is about that name.
pub(super) fn is_secret(names: &[&str]) -> bool {
    let lower: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    let Some(file) = lower.last() else { return false };
    if is_public(file) {
        return false;
    }
    let begins = |beginning: &str| {
        let known = file.find(WILDCARDS).unwrap_or_default();
        file.starts_with(beginning) || (known >= PREFIX_CHARS_MIN && may_begin(file, beginning))
    };
    SECRET_FILES.iter().any(|secret| is_named(file, secret))
        || SECRET_ENDINGS.iter().any(|ending| file.ends_with(ending))
        || SECRET_BEGINNINGS.iter().any(|beginning| begins(beginning))
        || lower.iter().any(|name| SECRET_FOLDERS.iter().any(|folder| is_named(name, folder)))
}

/// Returns true if a name is this one, or a pattern of hidden names that matches it.
fn is_named(name: &str, secret: &str) -> bool {
    let is_pattern = name.starts_with('.') && name.contains(WILDCARDS);
    name == secret || (is_pattern && matches_glob(name, secret))
}

/// Returns true if the name of a file, in lower case, says that it is a template of settings
/// or the public half of a key.
pub(super) fn is_public(file: &str) -> bool {
    let original = BACKUP_ENDINGS.iter().find_map(|ending| file.strip_suffix(ending));
    let original = original.unwrap_or(file);
    if TEMPLATE_ENDINGS.iter().any(|ending| original.ends_with(ending)) {
        return true;
    }
    if file.ends_with(".pub") {
        return !file.starts_with(".env");
    }
    let has = |any: &[&str]| file.split(|c: char| !c.is_alphanumeric()).any(|w| any.contains(&w));
    let is_key = SECRET_ENDINGS.iter().any(|ending| file.ends_with(ending));
    is_key && !file.contains(WILDCARDS) && has(&PUBLIC_WORDS) && !has(&PRIVATE_WORDS)
}

/// Whether a path leads into a folder of the runtime: what lies there is not the model's
/// to read, and a copy would only mislead.
fn is_inside(names: &[&str]) -> bool {
    names.iter().any(|name| RUNTIME_FOLDERS.iter().any(|folder| name.eq_ignore_ascii_case(folder)))
}

/// Whether a path names the runtime's own folder, or looks like one of its
/// files at the top of the workspace.
pub(super) fn is_runtime(names: &[&str]) -> bool {
    let lower: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    let file = match lower.as_slice() {
        [file] => file.strip_suffix("-wal").or(file.strip_suffix("-shm")).unwrap_or(file),
        _ => "",
    };
    RUNTIME_FILES.contains(&file)
        || lower.iter().any(|name| RUNTIME_FOLDERS.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{answering, objections};
    use automaton_core::intent::Intent;
    use automaton_core::trust::Label;
    use proptest::prelude::*;

    fn read(path: &str) -> Vec<&'static str> {
        objections(&Intent::ReadPath { path: path.to_owned() }, &answering(Label::Creator))
    }

    fn write(path: &str) -> Vec<&'static str> {
        let intent = Intent::WritePath { path: path.to_owned(), bytes: 1 };
        objections(&intent, &answering(Label::Creator))
    }

    #[test]
    fn the_workspace_and_nothing_else() {
        for path in
            ["a", "~/a/b.txt", "/root/a", "a/../b", "~", ".", "a//b", "ä/日本", "~/.cache/x"]
        {
            assert!(read(path).is_empty() && write(path).is_empty(), "{path}");
        }
        let long = "x".repeat(256);
        let deep = "x/".repeat(2100);
        let bad = [
            "",
            "a\0b",
            "/etc/passwd",
            "/",
            "..",
            "a/../..",
            "~/..",
            "/root/..",
            "/rootkit",
            "~root/x",
            "/root/../etc/shadow",
            "/proc/self/environ",
            &long,
            &deep,
        ];
        for path in bad {
            assert_eq!(read(path), ["path.workspace"], "{path}");
            assert_eq!(write(path), ["path.workspace"], "{path}");
        }
    }

    #[test]
    fn secrets_are_not_read() {
        let secret = [
            ".env",
            "app/.env",
            ".env.local",
            "x/../.ENV",
            "server.key",
            "tls/cert.PEM",
            "wallet.json",
            "Wallet.JSON",
            "automaton.json",
            "private-key",
            "private-key.txt",
            "api-key",
            "~/.ssh/config",
            ".aws/credentials",
            "id_rsa",
            ".ssh/id_ed25519",
            "id_ecdsa",
            ".env.example.local",
            ".env.pub",
            "private-public.pem",
            ".//.env",
            ".env/",
            "~/.automaton/state.db",
            ".Automaton/x",
        ];
        for path in secret {
            assert_eq!(read(path), ["path.secrets"], "{path}");
        }
        let ordinary = [
            "test-wallet.json",
            "my-config.json",
            "config.json",
            "environment",
            "keys.md",
            "pem.txt",
            "my-private-key-notes.md",
            "ssh/config",
            "x.keys",
            "env",
            ".env.example",
            "app/.env.production.SAMPLE",
            ".env.template",
            ".env.dist",
            "id_rsa.pub",
            ".ssh/id_ed25519.pub",
            "jwt-public.pem",
            "keys/server.pub.key",
        ];
        for path in ordinary {
            assert!(read(path).is_empty(), "{path}");
        }
    }

    #[test]
    fn what_others_obey_is_not_written() {
        let runtime = [
            ".automaton/x",
            "~/.Automaton/state.db",
            "SOUL.md",
            "/root/constitution.md",
            "state.db-wal",
            "heartbeat.yml",
            "a/../automaton.json",
            "a/.automaton",
            "~/.automaton/heartbeat.yml",
            "~/.automaton/inference-providers.json",
            "Wallet.json",
        ];
        for path in runtime {
            assert_eq!(write(path), ["path.runtime"], "{path}");
        }
        let executed = [".git/hooks/pre-commit", "repo/.GIT/config", ".bashrc", "a/.envrc", ".git"];
        for path in executed {
            assert_eq!(write(path), ["path.executed"], "{path}");
        }
        let ordinary = [
            "docs/soul.md",
            "game/state.db",
            "package.json",
            "git/hooks",
            ".gitignore",
            ".github/workflows/ci.yml",
            "barcode.ts",
            "WORKLOG.md",
        ];
        for path in ordinary {
            assert!(write(path).is_empty(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn resolved_names_are_plain_and_stable(path in "(~|/root|/|\\.\\.|[a-c.~]{0,3})(/(\\.\\.|\\.|[a-c]{0,2}|é)){0,8}/?") {
            if let Ok(found) = names(&path) {
                prop_assert!(found.iter().all(|name| !["", ".", ".."].contains(name)));
                let again = format!("/root/{}", found.join("/"));
                prop_assert_eq!(names(&again), Ok(found));
            }
        }
    }
}
