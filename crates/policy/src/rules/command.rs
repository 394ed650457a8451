//! Pure: refuses, early and with an explanation, commands that would harm the automaton.
//!
//! The sandbox decides what a command can reach: the runtime's home, its processes and its keys
//! are not there. These rules tell a model that its attempt is wrong, and leave a trace in the
//! record. They must never be counted as a defence, and should not disturb ordinary work.

mod secrets;
mod whole;

use automaton_core::intent::Intent;

use self::secrets::{is_own, is_runtime_file, reads_secrets};
use self::whole::{code_takes_whole, takes_whole};
use super::{LiftedBy, Rule, RuleCheck, RuleFinding, RuleResult, quoted};
use crate::decision::{ReasonCode, RuleId};
use crate::intents::{IntentProfile, IntentTarget};
use crate::shell::find::read_find;
use crate::shell::operands::read_operands;
use crate::shell::{self, ShellCommand};

/// Programs that remove, move, overwrite or lock their arguments.
const DESTROYERS: [&str; 15] = [
    "rm", "rmdir", "unlink", "shred", "truncate", "mv", "cp", "dd", "chmod", "chown", "chattr",
    "wipe", "tee", "ln", "install",
];
/// Programs that run code from an argument.
const INTERPRETERS: [&str; 6] = ["python", "perl", "ruby", "node", "php", "awk"];
/// Statements that change a database.
const CHANGES: [&str; 7] = ["drop", "delete", "truncate", "update", "insert", "replace", "alter"];
/// Words that make a service manager stop or disable something.
const ENDINGS: [&str; 5] = ["stop", "disable", "kill", "mask", "restart"];

/// Names of code that enforces an automaton's limits, in case its sources are present.
const SAFETY_CODE: [&str; 5] =
    ["injection-defense", "self-mod/code", "audit-log", "policy-engine", "policy-rules"];
/// Programs that run others. Ending all processes of such a name ends unrelated ones.
const RUNTIMES: [&str; 9] =
    ["node", "python", "python3", "sh", "bash", "java", "deno", "bun", "index.js"];
/// Programs that connect to servers.
const CLIENTS: [&str; 6] = ["curl", "wget", "http", "https", "nc", "ncat"];
/// Parts of a request that moves credits.
const TRANSFERS: [&str; 3] = ["credits/transfer", "CONWAY_API_KEY", "AUTOMATON_BRAIN_KEY"];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: RuleId::new("command.syntax"),
        code: ReasonCode::ValidationFailed,
        sentence: "A command is a shell script that can be read to its end.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Some(IntentTarget::Runs(command)) = IntentProfile::new(intent).target else {
                return Ok(None);
            };
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

/// Creates a rule that forbids commands.
const fn rule(id: &'static str, sentence: &'static str, check: RuleCheck) -> Rule {
    Rule {
        id: RuleId::new(id),
        code: ReasonCode::ForbiddenCommand,
        sentence,
        lifted_by: LiftedBy::Nobody,
        check,
    }
}

/// All checks, for a script that was parsed once.
const CHECKS: [fn(&ShellCommand, ScriptLocation) -> bool; 7] = [
    destroys,
    changes_safety,
    kills,
    reads_secrets,
    lists_environment,
    changes_records,
    moves_money,
];

/// Returns true if none of these rules objects to an intent. It parses a script once, while each
/// rule alone would parse it again.
pub(super) fn none_objects(intent: &Intent) -> bool {
    let Some(IntentTarget::Runs(command)) = IntentProfile::new(intent).target else { return true };
    shell::commands(command)
        .is_ok_and(|commands| CHECKS.iter().all(|check| find_offender(&commands, *check).is_none()))
}

/// Refuses a script if one of its commands does the forbidden action.
fn deny_each(intent: &Intent, does: fn(&ShellCommand, ScriptLocation) -> bool) -> RuleResult {
    let Some(IntentTarget::Runs(command)) = IntentProfile::new(intent).target else {
        return Ok(None);
    };
    let commands = shell::commands(command)?;
    Ok(find_offender(&commands, does).map(|command| {
        RuleFinding::Deny(format!("This is not done: {}.", quoted(&command.words.join(" "))))
    }))
}

/// Returns the first command that does the forbidden action. If the script enters the runtime's
/// folder, plain names are names in there.
fn find_offender(
    commands: &[ShellCommand],
    does: fn(&ShellCommand, ScriptLocation) -> bool,
) -> Option<&ShellCommand> {
    let goes = |c: &ShellCommand| {
        ["cd", "pushd"].contains(&c.program())
            && c.arguments().iter().any(|a| is_own(a, c.folder.as_deref()))
    };
    let within =
        if commands.iter().any(goes) { ScriptLocation::Home } else { ScriptLocation::Workspace };
    commands.iter().find(|command| does(command, within))
}

/// The folder of a script when it names a file without a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScriptLocation {
    /// The runtime's own folder.
    Home,
    /// Anywhere else.
    Workspace,
}

fn destroys(command: &ShellCommand, within: ScriptLocation) -> bool {
    let folder = command.folder.as_deref();
    let touches_own = |word: &str| {
        is_own(word, folder)
            || is_runtime_file(word, folder)
            || (within == ScriptLocation::Home && !is_flag(word))
    };
    takes_whole(command)
        || (runs_code(command.program())
            && code_of(command).any(|code| code_takes_whole(code, folder)))
        || changed_files(command).iter().any(|word| touches_own(word))
        || command.writes.iter().any(|word| touches_own(word))
}

/// Returns the words that name the files that a command removes, moves, overwrites or locks.
fn changed_files(command: &ShellCommand) -> Vec<String> {
    if command.program() == "find" {
        let found = read_find(command.arguments());
        return if found.deletes { found.paths } else { Vec::new() };
    }
    let operands = read_operands(command);
    match DESTROYERS.contains(&command.program()) || operands.edits {
        true => operands.files.iter().map(|word| (*word).to_owned()).collect(),
        false => Vec::new(),
    }
}

/// Returns the texts that may be code of an interpreter.
fn code_of(command: &ShellCommand) -> impl Iterator<Item = &String> {
    command.arguments().iter().chain(&command.inputs)
}

/// Returns true if a program runs code from its arguments.
fn runs_code(program: &str) -> bool {
    INTERPRETERS.iter().any(|name| program.starts_with(name))
}

fn changes_safety(command: &ShellCommand, _: ScriptLocation) -> bool {
    let is_safety = |word: &String| SAFETY_CODE.iter().any(|name| word.contains(name));
    let arguments = command.arguments();
    match command.program() {
        // The last argument is the target. The others are only read.
        "cp" | "install" | "ln" => {
            return arguments.last().is_some_and(is_safety) || command.writes.iter().any(is_safety);
        }
        "dd" => {
            let is_output = |word: &&String| word.starts_with("of=");
            return arguments.iter().filter(is_output).any(is_safety);
        }
        _ => {}
    }
    changed_files(command).iter().any(is_safety) || command.writes.iter().any(is_safety)
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

fn changes_records(command: &ShellCommand, _: ScriptLocation) -> bool {
    let is_record =
        |word: &String| is_own(word, None) || word.rsplit('/').next() == Some("state.db");
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

#[cfg(test)]
mod tests;
