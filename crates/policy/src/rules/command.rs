//! Pure: an early, explained "no" to commands that would harm the automaton.
//!
//! What a command can reach is decided by the sandbox: the runtime's home, its
//! processes and its keys are not there. These rules tell a model that tries
//! that it tried the wrong thing, and leave a trace in the record. They must
//! never be counted as a defence, and should leave ordinary work alone.

use automaton_core::intent::Intent;

use super::{
    IntentTarget, LiftedBy, Rule, RuleCheck, RuleFinding, RuleResult, path, shown, target,
};
use crate::decision::{ReasonCode, RuleId};
use crate::shell::{self, ShellCommand};

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

/// Code that keeps an automaton in its bounds, by its names where its parts lie open.
const SAFETY_CODE: [&str; 5] =
    ["injection-defense", "self-mod/code", "audit-log", "policy-engine", "policy-rules"];
/// Programs that run others: ending all that have such a name ends what nobody meant.
const RUNTIMES: [&str; 9] =
    ["node", "python", "python3", "sh", "bash", "java", "deno", "bun", "index.js"];
/// Programs that speak to servers.
const CLIENTS: [&str; 6] = ["curl", "wget", "http", "https", "nc", "ncat"];
/// What stands in a request that moves credits.
const TRANSFERS: [&str; 3] = ["credits/transfer", "CONWAY_API_KEY", "AUTOMATON_BRAIN_KEY"];
/// Options with which an interpreter changes a file in its place.
const IN_PLACE: [&str; 3] = ["-i", "-pi", "--in-place"];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: RuleId::new("command.syntax"),
        code: ReasonCode::ValidationFailed,
        sentence: "A command is a shell script that can be read to its end.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Some(IntentTarget::Runs(command)) = target(intent) else { return Ok(None) };
            Ok(shell::commands(command).err().map(|why| RuleFinding::Deny(format!("Here {why}."))))
        },
    },
    rule(
        "command.self_destruction",
        "The automaton does not destroy its own home or its whole workspace.",
        |intent, _| deny_each(intent, destroys),
    ),
    rule(
        "command.safety_code",
        "Code that keeps an automaton in its bounds is not changed from a shell.",
        |intent, _| deny_each(intent, changes_safety),
    ),
    rule(
        "command.kill",
        "The automaton does not end itself or its machine; to rest it has `sleep`.",
        |intent, _| deny_each(intent, kills),
    ),
    rule("command.secrets", "Files that hold keys or logins are not read.", |intent, _| {
        deny_each(intent, reads_secrets)
    }),
    rule(
        "command.environment",
        "The whole environment is not printed; name the variable, as in `printenv PATH`.",
        |intent, _| deny_each(intent, lists_environment),
    ),
    rule("command.records", "The automaton does not change the record of its life.", |i, _| {
        deny_each(i, changes_records)
    }),
    rule(
        "command.treasury",
        "Money moves by the tools that are made for it, never by a request from a shell.",
        |intent, _| deny_each(intent, moves_money),
    ),
];

/// A rule that forbids commands.
const fn rule(id: &'static str, sentence: &'static str, check: RuleCheck) -> Rule {
    Rule {
        id: RuleId::new(id),
        code: ReasonCode::ForbiddenCommand,
        sentence,
        lifted_by: LiftedBy::Nobody,
        check,
    }
}

/// What the rules look for, in a script that was read once.
const CHECKS: [fn(&ShellCommand, ScriptLocation) -> bool; 7] = [
    destroys,
    changes_safety,
    kills,
    reads_secrets,
    lists_environment,
    changes_records,
    moves_money,
];

/// Whether none of these rules has anything against an intent. It reads a script once,
/// where each rule would read it for itself.
pub(super) fn none_objects(intent: &Intent) -> bool {
    let Some(IntentTarget::Runs(command)) = target(intent) else { return true };
    shell::commands(command)
        .is_ok_and(|commands| CHECKS.iter().all(|check| culprit(&commands, *check).is_none()))
}

/// Refuses a script when one of its commands does what it should not.
fn deny_each(intent: &Intent, does: fn(&ShellCommand, ScriptLocation) -> bool) -> RuleResult {
    let Some(IntentTarget::Runs(command)) = target(intent) else { return Ok(None) };
    let commands = shell::commands(command)?;
    Ok(culprit(&commands, does).map(|command| {
        RuleFinding::Deny(format!("This is not done: {}.", shown(&command.words.join(" "))))
    }))
}

/// The first command that does what it should not. It is told whether the script went
/// into the runtime's folder, so that plain names are names in there.
fn culprit(
    commands: &[ShellCommand],
    does: fn(&ShellCommand, ScriptLocation) -> bool,
) -> Option<&ShellCommand> {
    let goes = |c: &ShellCommand| {
        ["cd", "pushd"].contains(&c.program()) && c.arguments().iter().any(|a| is_own(a))
    };
    let within =
        if commands.iter().any(goes) { ScriptLocation::Home } else { ScriptLocation::Workspace };
    commands.iter().find(|command| does(command, within))
}

/// Where a script is when it names a file without a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScriptLocation {
    /// The runtime's own folder.
    Home,
    /// Anywhere else.
    Workspace,
}

fn destroys(command: &ShellCommand, within: ScriptLocation) -> bool {
    let touches_own = |word: &String| {
        is_own(word) || is_runtime_file(word) || (within == ScriptLocation::Home && !is_flag(word))
    };
    let program = command.program();
    let arguments = command.arguments();
    let deletes = arguments.iter().any(|a| ["-delete", "-exec", "-execdir"].contains(&a.as_str()));
    let is_find = program == "find" && deletes;
    let is_destroyer = DESTROYERS.contains(&program) || is_find;
    let removes_all = (program == "rm" || is_find)
        && arguments.iter().any(|word| is_everything(word) || word == "--no-preserve-root");
    removes_all
        || (is_destroyer && !is_listing_sed(command) && arguments.iter().any(touches_own))
        || command.writes.iter().any(touches_own)
}

/// Whether a program is one that runs code among its arguments.
fn runs_code(program: &str) -> bool {
    INTERPRETERS.iter().any(|name| program.starts_with(name))
}

/// Whether it is a `sed` that only prints.
fn is_listing_sed(command: &ShellCommand) -> bool {
    command.program() == "sed" && !in_place(command)
}

/// Whether a program changes files where they are.
fn in_place(command: &ShellCommand) -> bool {
    command.arguments().iter().any(|word| IN_PLACE.iter().any(|flag| word.starts_with(flag)))
}

fn changes_safety(command: &ShellCommand, _: ScriptLocation) -> bool {
    let is_safety = |word: &String| SAFETY_CODE.iter().any(|name| word.contains(name));
    let arguments = command.arguments();
    let program = command.program();
    let deletes = program == "find" && arguments.iter().any(|word| word == "-delete");
    let changes = match program {
        "sed" => in_place(command),
        // The last one is where to; the others are only read.
        "cp" | "install" | "ln" => {
            return arguments.last().is_some_and(is_safety) || command.writes.iter().any(is_safety);
        }
        "dd" => {
            let is_output = |word: &&String| word.starts_with("of=");
            return arguments.iter().filter(is_output).any(is_safety);
        }
        program => DESTROYERS.contains(&program) || (runs_code(program) && in_place(command)),
    };
    ((changes || deletes) && arguments.iter().any(is_safety))
        || command.writes.iter().any(is_safety)
}

fn lists_environment(command: &ShellCommand, _: ScriptLocation) -> bool {
    let arguments = command.arguments();
    match command.program() {
        "env" => arguments.iter().all(|word| is_flag(word)),
        "printenv" | "set" => arguments.is_empty(),
        "export" | "declare" | "typeset" => {
            arguments.iter().all(|word| is_flag(word) && word.contains(['p', 'x']))
                && !arguments.is_empty()
        }
        _ => false,
    }
}

fn moves_money(command: &ShellCommand, _: ScriptLocation) -> bool {
    let speaks = CLIENTS.contains(&command.program()) || runs_code(command.program());
    let text = command.arguments().iter().chain(&command.inputs);
    speaks && text.into_iter().any(|word| TRANSFERS.iter().any(|name| word.contains(name)))
}

fn kills(command: &ShellCommand, _: ScriptLocation) -> bool {
    let arguments = command.arguments();
    let names_us = || arguments.iter().any(|word| word.to_lowercase().contains("automaton"));
    match command.program() {
        "kill" => {
            names_us()
                || arguments.iter().any(|word| word.contains("index.js"))
                || arguments.iter().skip(1).any(|a| a == "1" || a == "-1")
                || arguments == ["1"]
        }
        "pkill" | "killall" => {
            let by_name =
                |word: &String| word.split_whitespace().any(|name| RUNTIMES.contains(&name));
            names_us() || arguments.iter().any(by_name)
        }
        "systemctl" | "service" => {
            names_us() && arguments.iter().any(|word| ENDINGS.contains(&word.as_str()))
        }
        "shutdown" | "reboot" | "halt" | "poweroff" => true,
        _ => false,
    }
}

fn reads_secrets(command: &ShellCommand, within: ScriptLocation) -> bool {
    let program = command.program();
    let reads = READERS.contains(&program);
    let secret =
        |word: &String| is_secret(word) || (within == ScriptLocation::Home && !is_flag(word));
    let code = command.arguments().iter().chain(&command.inputs);
    (reads && files(command).any(secret))
        || command.reads.iter().any(secret)
        || (runs_code(program)
            && code.into_iter().any(|code| TELLTALES.iter().any(|t| code.contains(t))))
}

/// The arguments that may be files: not the pattern or program that some of the
/// readers take first.
fn files(command: &ShellCommand) -> impl Iterator<Item = &String> {
    let is_pattern = |word: &&String| !is_flag(word);
    let arguments = command.arguments().iter();
    let pattern = match PATTERN_FIRST.contains(&command.program()) {
        true => arguments.clone().find(is_pattern),
        false => None,
    };
    arguments.filter(move |word| !pattern.is_some_and(|pattern| std::ptr::eq(pattern, *word)))
}

fn changes_records(command: &ShellCommand, _: ScriptLocation) -> bool {
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

/// Whether a word names one of the runtime's files where a copy might lie: at the top of
/// the workspace.
fn is_runtime_file(word: &str) -> bool {
    let names: Vec<&str> = word.split('/').filter(|name| !["", ".", "~"].contains(name)).collect();
    let names = if word.starts_with("/root/") { names.get(1..).unwrap_or(&[]) } else { &names };
    path::is_runtime(names)
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
            ([b'[', set @ ..], [_, tail @ ..]) => {
                // Any character will do for a set: it may only match too much.
                let end = set.iter().position(|b| *b == b']').map_or(set.len(), |at| at + 1);
                from(set.get(end..).unwrap_or(&[]), tail)
            }
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
