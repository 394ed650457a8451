//! Pure: rules for the files that a call may name.
//!
//! They use only the text of the path. The handle that opens a file deals with links on the disk.
//! Names are compared without case, since a disk may ignore case too. A path must never be judged
//! by anything but its resolved names.

use super::{LiftedBy, Rule, deny_if, quoted};
use crate::decision::{ReasonCode, RuleId};
use crate::intents::IntentProfile;
use crate::intents::IntentTarget::{Reads, Writes};
use crate::shell::folder::{matches_glob, may_begin};

/// The path of the workspace in the sandbox.
const WORKSPACE: &str = "/root";
/// The longest path, in bytes: the kernel's `PATH_MAX` without its NUL.
const PATH_BYTES_MAX: usize = 4095;
/// The longest name within a path, in bytes: `NAME_MAX`.
const NAME_BYTES_MAX: usize = 255;

/// Files that contain secrets in any folder.
const SECRET_FILES: [&str; 5] = [".env", "wallet.json", "automaton.json", "api-key", ".netrc"];
/// Name endings of files with keys.
const SECRET_ENDINGS: [&str; 2] = [".key", ".pem"];
/// Name beginnings of files with secrets.
const SECRET_BEGINNINGS: [&str; 6] =
    [".env.", "private-key", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
/// Name endings of templates, which list settings and contain no secrets.
const TEMPLATE_ENDINGS: [&str; 8] =
    [".example", ".sample", ".template", ".dist", ".tmpl", ".tpl", ".default", ".defaults"];
/// Name endings that editors give to backup files.
const BACKUP_ENDINGS: [&str; 4] = [".bak", ".orig", ".old", "~"];
/// Words in the name of a file with the public half of a key.
const PUBLIC_WORDS: [&str; 4] = ["pub", "public", "pubkey", "publickey"];
/// Words in the name of a file with the private half of a key.
const PRIVATE_WORDS: [&str; 4] = ["priv", "private", "privkey", "secret"];
/// Wildcards of shell patterns.
const WILDCARDS: [char; 3] = ['*', '?', '['];
/// The fewest characters before a wildcard with which a pattern targets files of that name.
const PREFIX_CHARS_MIN: usize = 2;
/// Folders in which programs keep keys and logins.
const SECRET_FOLDERS: [&str; 8] =
    [".ssh", ".gnupg", ".gpg", ".aws", ".azure", ".gcloud", ".kube", ".docker"];
/// Folders that belong to the automaton's runtime. They are elsewhere, and a copy in the
/// workspace would mislead.
pub(super) const RUNTIME_FOLDERS: [&str; 3] =
    [".automaton", ".automaton-signer", ".automaton-cloud-signer"];
/// Files of the runtime. Only their own tools change them, if any do.
const RUNTIME_FILES: [&str; 6] =
    ["constitution.md", "soul.md", "heartbeat.yml", "automaton.json", "wallet.json", "state.db"];
/// Files and folders that other programs execute unasked, such as the creator's shell or git if
/// they enter the workspace.
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
            let fault = resolve_names(path).err();
            deny_if(fault.is_some(), || {
                let why = fault.map_or("", PathFault::words);
                format!("The path {} {why}.", quoted(path))
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
            let secret = resolve_names(path)
                .is_ok_and(|names| is_secret(&names) || is_in_runtime_folder(&names));
            deny_if(secret, || format!("The name of {} says that it holds some.", quoted(path)))
        },
    },
    Rule {
        id: RuleId::new("path.runtime"),
        code: ReasonCode::ProtectedFile,
        sentence: "The runtime's own files lie outside the workspace and change through tools.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Some(Writes(path)) = IntentProfile::new(intent).target else { return Ok(None) };
            let runtime = resolve_names(path).is_ok_and(|names| is_runtime(&names));
            deny_if(runtime, || format!("Writing {} would change nothing.", quoted(path)))
        },
    },
    Rule {
        id: RuleId::new("path.executed"),
        code: ReasonCode::ProtectedFile,
        sentence: "Files that other programs execute or obey unasked are not written directly.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Some(Writes(path)) = IntentProfile::new(intent).target else { return Ok(None) };
            let executed = resolve_names(path).is_ok_and(|names| {
                names.iter().any(|name| EXECUTED.contains(&name.to_ascii_lowercase().as_str()))
            });
            deny_if(executed, || format!("{} is one of them.", quoted(path)))
        },
    },
];

/// Returns true if a file's name does not suggest keys or logins. Files that must not be read one
/// by one must not be read in passing either.
#[must_use]
pub fn may_be_read(path: &str) -> bool {
    resolve_names(path).is_ok_and(|names| !is_secret(&names) && !is_in_runtime_folder(&names))
}

/// The reason why a text names nothing within the workspace.
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

/// Returns the names of a path within the workspace, outermost first, with `.`, `..` and doubled
/// slashes resolved. `x`, `~/x` and `/root/x` are the same file.
fn resolve_names(path: &str) -> Result<Vec<&str>, PathFault> {
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

/// Returns true if a file's name or folder says that it contains secrets. A shell pattern counts
/// if it may match such a file and targets that name.
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

/// Returns true if a file name, in lower case, is that of a settings template or of the public
/// half of a key.
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

/// Returns true if a path leads into a folder of the runtime. The model must not read the
/// runtime's files, and a copy would mislead.
fn is_in_runtime_folder(names: &[&str]) -> bool {
    names.iter().any(|name| RUNTIME_FOLDERS.iter().any(|folder| name.eq_ignore_ascii_case(folder)))
}

/// Returns true if a path names the runtime's folder, or looks like one of its files at the top
/// of the workspace.
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
            if let Ok(found) = resolve_names(&path) {
                prop_assert!(found.iter().all(|name| !["", ".", ".."].contains(name)));
                let again = format!("/root/{}", found.join("/"));
                prop_assert_eq!(resolve_names(&again), Ok(found));
            }
        }
    }
}
