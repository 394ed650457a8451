//! Pure: an early, explained "no" to commands that would harm the automaton.
//!
//! What a command can reach is decided by the sandbox: the runtime's home, its
//! processes and its keys are not there. These rules tell a model that tries
//! that it tried the wrong thing, and leave a trace in the record. They must
//! never be counted as a defence, and should leave ordinary work alone.

use automaton_core::intent::Intent;

use super::{Finding, Rule, RuleResult, path, shown};
use crate::decision::{ReasonCode, RuleId};
use crate::shell::{self, Command};

/// Programs that remove, move, overwrite or lock what they are given.
const DESTROYERS: [&str; 16] = [
    "rm", "rmdir", "unlink", "shred", "truncate", "mv", "cp", "dd", "chmod", "chown", "chattr",
    "wipe", "tee", "ln", "install", "sed",
];
/// Programs that show or copy what is in a file.
const READERS: [&str; 36] = [
    "cat", "tac", "less", "more", "head", "tail", "nl", "cut", "sort", "uniq", "paste", "grep",
    "egrep", "fgrep", "rg", "sed", "awk", "gawk", "diff", "xxd", "od", "hexdump", "strings",
    "base32", "base64", "cp", "mv", "ln", "scp", "rsync", "tar", "zip", "gzip", "curl", "source",
    ".",
];
/// Readers whose first argument that is no option is a pattern or a program.
const PATTERN_FIRST: [&str; 7] = ["grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk"];
/// Programs that run code which is one of their arguments.
const INTERPRETERS: [&str; 6] = ["python", "perl", "ruby", "node", "php", "awk"];
/// What code names when it is after the runtime's folder or after secrets.
const TELLTALES: [&str; 6] =
    [".automaton", "wallet.json", "private-key", "/environ", ".ssh/", ".gnupg/"];
/// Statements that change a database.
const CHANGES: [&str; 7] = ["drop", "delete", "truncate", "update", "insert", "replace", "alter"];
/// What makes a service manager end or disable something.
const ENDINGS: [&str; 5] = ["stop", "disable", "kill", "mask", "restart"];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: RuleId::new("command.self_destruction"),
        code: ReasonCode::ForbiddenCommand,
        sentence: "The automaton does not destroy its own home or its whole workspace.",
        check: |intent, _| deny_each(intent, destroys),
    },
    Rule {
        id: RuleId::new("command.kill"),
        code: ReasonCode::ForbiddenCommand,
        sentence: "The automaton does not end itself or its machine; to rest it has `sleep`.",
        check: |intent, _| deny_each(intent, kills),
    },
    Rule {
        id: RuleId::new("command.secrets"),
        code: ReasonCode::ForbiddenCommand,
        sentence: "Files that hold keys or logins are not read.",
        check: |intent, _| deny_each(intent, reads_secrets),
    },
    Rule {
        id: RuleId::new("command.records"),
        code: ReasonCode::ForbiddenCommand,
        sentence: "The automaton does not change the record of its life.",
        check: |intent, _| deny_each(intent, changes_records),
    },
];

/// Refuses a script when one of its commands does what it should not. `within`
/// tells whether the script went into the runtime's folder, so that plain names
/// are names in there.
fn deny_each(intent: &Intent, does: fn(&Command, within: Within) -> bool) -> RuleResult {
    let Intent::Exec { command, .. } = intent else { return Ok(None) };
    let commands = shell::commands(command)?;
    let goes = |c: &Command| {
        ["cd", "pushd"].contains(&c.program()) && c.arguments().iter().any(|a| is_own(a))
    };
    let within = if commands.iter().any(goes) { Within::Home } else { Within::Workspace };
    let culprit = commands.iter().find(|command| does(command, within));
    Ok(culprit.map(|command| {
        Finding::Deny(format!("This is not done: {}.", shown(&command.words.join(" "))))
    }))
}

/// Where a script is when it names a file without a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// The runtime's own folder.
    Home,
    /// Anywhere else.
    Workspace,
}

fn destroys(command: &Command, within: Within) -> bool {
    let touches_own = |word: &String| is_own(word) || (within == Within::Home && !is_flag(word));
    let program = command.program();
    let arguments = command.arguments();
    let deletes = arguments.iter().any(|a| ["-delete", "-exec", "-execdir"].contains(&a.as_str()));
    let is_find = program == "find" && deletes;
    let is_destroyer = DESTROYERS.contains(&program) || is_find;
    let removes_all = (program == "rm" || is_find)
        && arguments.iter().any(|word| is_everything(word) || word == "--no-preserve-root");
    removes_all
        || (is_destroyer && arguments.iter().any(touches_own))
        || command.writes.iter().any(touches_own)
}

fn kills(command: &Command, _: Within) -> bool {
    let arguments = command.arguments();
    let names_us = || arguments.iter().any(|word| word.to_lowercase().contains("automaton"));
    match command.program() {
        "kill" => {
            names_us()
                || arguments.iter().skip(1).any(|a| a == "1" || a == "-1")
                || arguments == ["1"]
        }
        "pkill" | "killall" => names_us(),
        "systemctl" | "service" => {
            names_us() && arguments.iter().any(|word| ENDINGS.contains(&word.as_str()))
        }
        "shutdown" | "reboot" | "halt" | "poweroff" => true,
        _ => false,
    }
}

fn reads_secrets(command: &Command, within: Within) -> bool {
    let program = command.program();
    let reads = READERS.contains(&program);
    let secret = |word: &String| is_secret(word) || (within == Within::Home && !is_flag(word));
    let runs_code = INTERPRETERS.iter().any(|name| program.starts_with(name));
    let code = command.arguments().iter().chain(&command.inputs);
    (reads && files(command).any(secret))
        || command.reads.iter().any(secret)
        || (runs_code && code.into_iter().any(|code| TELLTALES.iter().any(|t| code.contains(t))))
}

/// The arguments that may be files: not the pattern or program that some of the
/// readers take first.
fn files(command: &Command) -> impl Iterator<Item = &String> {
    let is_pattern = |word: &&String| !is_flag(word);
    let arguments = command.arguments().iter();
    let pattern = match PATTERN_FIRST.contains(&command.program()) {
        true => arguments.clone().find(is_pattern),
        false => None,
    };
    arguments.filter(move |word| !pattern.is_some_and(|pattern| std::ptr::eq(pattern, *word)))
}

fn changes_records(command: &Command, _: Within) -> bool {
    let is_record = |word: &String| is_own(word) || word.rsplit('/').next() == Some("state.db");
    let text = command.arguments().iter().chain(&command.inputs);
    let statements = text.map(|text| text.to_lowercase()).collect::<Vec<_>>().join("\n");
    let mut words = statements.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    command.program().starts_with("sqlite")
        && command.arguments().iter().any(is_record)
        && words.any(|word| CHANGES.contains(&word))
}

fn is_flag(word: &str) -> bool {
    word.starts_with('-')
}

/// Whether a word names everything there is: the root, the workspace, or all in it.
fn is_everything(word: &str) -> bool {
    let names: Vec<&str> = word.split('/').filter(|name| !["", "."].contains(name)).collect();
    match names.as_slice() {
        [] => word.starts_with('/'),
        ["*" | ".*"] => word.starts_with('/'),
        ["~"] | ["~", "*" | ".*" | ".."] => true,
        ["root"] | ["root", "*" | ".*" | ".."] => word.starts_with('/'),
        _ => false,
    }
}

/// The names in a path, or in the value of an option such as `of=path`.
fn names_in(word: &str) -> impl Iterator<Item = &str> {
    word.split(['/', '=', ':', '@', '<', '>']).filter(|name| !name.is_empty())
}

/// Whether a word names the runtime's own folder or something in it.
fn is_own(word: &str) -> bool {
    names_in(word).any(|name| {
        let lower = name.to_ascii_lowercase();
        path::RUNTIME_FOLDERS.iter().any(|folder| matches(&lower, folder))
    })
}

/// Whether a word names something in the runtime's folder, a file that holds
/// secrets, or the place where the system keeps such.
fn is_secret(word: &str) -> bool {
    let names: Vec<&str> = names_in(word).collect();
    let system =
        matches!(names.as_slice(), [.., "etc", "shadow" | "gshadow"] | [.., "proc", _, "environ"]);
    let is_file = !is_flag(word) || word.contains('=');
    system || is_own(word) || (is_file && path::is_secret(&names))
}

/// Whether a name with `*` and `?` in it matches a hidden name. As in a shell,
/// only a pattern that itself begins with a dot matches one.
fn matches(pattern: &str, name: &str) -> bool {
    fn from(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([b'*', rest @ ..], []) => from(rest, name),
            ([b'*', rest @ ..], [_, tail @ ..]) => from(rest, name) || from(pattern, tail),
            ([b'?', rest @ ..], [_, tail @ ..]) => from(rest, tail),
            ([one, rest @ ..], [other, tail @ ..]) => one == other && from(rest, tail),
            _ => false,
        }
    }
    // Many stars cost exponentially many steps; so many match anything anyway.
    const STARS_MAX: usize = 4;
    let stars = pattern.bytes().filter(|b| *b == b'*').count();
    pattern.starts_with('.') && (stars > STARS_MAX || from(pattern.as_bytes(), name.as_bytes()))
}

#[cfg(test)]
mod tests;
