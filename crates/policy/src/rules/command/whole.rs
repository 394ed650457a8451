//! Pure: commands that delete, lock, empty or move away all of the workspace.
//!
//! The workspace is the one thing that the sandbox lets a command destroy. A part of it, or
//! files that a test picks, are the model's own business.

use crate::shell::ShellCommand;
use crate::shell::find::read_find;
use crate::shell::folder::{is_whole, resolve, resolve_path};

/// Programs that delete their arguments.
const REMOVERS: [&str; 9] =
    ["rm", "srm", "shred", "wipe", "truncate", "rimraf", "trash", "trash-put", "unlink"];
/// Calls of programming languages that delete a folder recursively.
const REMOVING_CALLS: [&str; 6] =
    ["rmtree", "rmSync", "rmdirSync", "rm_rf", "remove_tree", "removeSync"];
/// Git options before the subcommand that take the next word.
const GIT_VALUES: [&str; 4] = ["-c", "--git-dir", "--work-tree", "--namespace"];

/// Returns true if a command does away with the whole workspace.
pub(super) fn takes_whole(command: &ShellCommand) -> bool {
    let arguments = command.arguments();
    let folder = command.folder.as_deref();
    let any_whole = |words: &[&str]| words.iter().any(|word| names_whole(word, folder));
    match command.program() {
        "find" => {
            let found = read_find(arguments);
            found.deletes && found.paths.iter().any(|path| names_whole(path, folder))
        }
        "chmod" => locks(arguments, folder),
        "mv" => moves_away(arguments, folder),
        "rsync" => empties_by_copy(arguments, folder),
        "git" => cleans(arguments, folder),
        "tar" | "bsdtar" if has_option(arguments, '\0', "--remove-files") => {
            let into = value_of(arguments, "-C", "--directory").unwrap_or(".");
            let into = resolve_path(into, folder);
            operands(arguments).iter().any(|word| names_whole(word, into.as_deref()))
        }
        "zip" if has_option(arguments, 'm', "--move") => any_whole(&operands(arguments)),
        program if REMOVERS.contains(&program) => {
            arguments.iter().any(|word| word == "--no-preserve-root")
                || any_whole(&operands(arguments))
        }
        _ => false,
    }
}

/// Returns true if code in a programming language deletes the whole workspace.
pub(super) fn code_takes_whole(code: &str, folder: Option<&str>) -> bool {
    let quoted = || code.split(['"', '\'', '`']);
    REMOVING_CALLS.iter().any(|call| code.contains(call))
        && quoted().any(|word| !word.contains([' ', '(']) && names_whole(word, folder))
}

/// Returns true if a word names the whole workspace.
fn names_whole(word: &str, folder: Option<&str>) -> bool {
    resolve(word, folder).is_some_and(|names| is_whole(&names))
}

/// Returns true if a word names the workspace or something in it.
fn is_inside(word: &str, folder: Option<&str>) -> bool {
    resolve(word, folder).is_some_and(|names| names.first() == Some(&"root"))
}

/// Returns the arguments that are not options.
fn operands(arguments: &[String]) -> Vec<&str> {
    let ends = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let (before, after) = arguments.split_at(ends);
    let plain = before.iter().filter(|word| !word.starts_with('-'));
    plain.chain(after.iter().skip(1)).map(String::as_str).collect()
}

/// Returns true if an option is given, by its letter or its name.
fn has_option(arguments: &[String], letter: char, name: &str) -> bool {
    arguments.iter().take_while(|word| *word != "--").any(|word| {
        let is_cluster = word.starts_with('-') && !word.starts_with("--");
        word == name || (is_cluster && word.contains(letter))
    })
}

/// Returns the value of an option.
fn value_of<'a>(arguments: &'a [String], short: &str, long: &str) -> Option<&'a str> {
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if word == short || word == long {
            return words.next();
        }
        let joined = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
        let close = word.strip_prefix(short).filter(|rest| !rest.is_empty());
        if joined.or(close).is_some() && !(word.starts_with("--") && joined.is_none()) {
            return joined.or(close);
        }
    }
    None
}

/// Returns true if a `chmod` removes the owner's right to read, write or enter. For entries named
/// by a pattern only the right to read counts: files need no other.
fn locks(arguments: &[String], folder: Option<&str>) -> bool {
    let is_option = |word: &&String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        word.starts_with("--")
            || (!letters.is_empty() && letters.chars().all(|c| "RvfchHLP".contains(c)))
    };
    let mut words = arguments.iter().filter(|word| !is_option(word)).map(String::as_str);
    let Some(mode) = words.next() else { return false };
    let deep = has_option(arguments, 'R', "--recursive") && mode != "-R";
    words.any(|word| {
        let rights = if deep || !word.ends_with('*') { "rwx" } else { "r" };
        names_whole(word, folder) && mode_locks(mode, rights)
    })
}

/// Returns true if a mode of `chmod` leaves the owner without one of these rights.
fn mode_locks(mode: &str, needed: &str) -> bool {
    if mode.chars().all(|c| c.is_digit(8)) {
        let owner = mode.chars().rev().nth(2).and_then(|digit| digit.to_digit(8)).unwrap_or(0);
        let value = |right: char| match right {
            'r' => 4,
            'w' => 2,
            _ => 1,
        };
        return needed.chars().any(|right| owner & value(right) == 0);
    }
    mode.split(',').any(|clause| {
        let at = clause.find(['+', '-', '=']).unwrap_or(clause.len());
        let (who, change) = clause.split_at(at);
        let concerns_owner = who.is_empty() || who.contains(['u', 'a']);
        let rights = change.get(1..).unwrap_or_default();
        let names = |right: char| rights.contains(right) || (right == 'x' && rights.contains('X'));
        let takes = match change.chars().next() {
            Some('-') => needed.chars().any(names),
            Some('=') => !needed.chars().all(names) && !rights.contains(['u', 'g', 'o']),
            _ => false,
        };
        concerns_owner && takes
    })
}

/// Returns true if a `mv` takes all of the workspace out of it.
fn moves_away(arguments: &[String], folder: Option<&str>) -> bool {
    let mut words = operands(arguments);
    let target = value_of(arguments, "-t", "--target-directory");
    let target = target.or_else(|| words.pop());
    let moves_whole = words.iter().any(|word| Some(*word) != target && names_whole(word, folder));
    moves_whole && !target.is_some_and(|target| is_inside(target, folder))
}

/// Returns true if an `rsync` deletes everything that its source lacks, or moves everything away.
fn empties_by_copy(arguments: &[String], folder: Option<&str>) -> bool {
    let words = operands(arguments);
    let Some((target, sources)) = words.split_last() else { return false };
    let has = |name: &str| arguments.iter().any(|word| word.starts_with(name));
    let tries = has_option(arguments, 'n', "--dry-run");
    let moves = has("--remove-source-files") && !is_inside(target, folder);
    let deletes = has("--del");
    !tries
        && ((deletes && names_whole(target, folder))
            || (moves && sources.iter().any(|word| names_whole(word, folder))))
}

/// Returns true if a `git clean` or `git rm` affects the whole workspace.
fn cleans(arguments: &[String], folder: Option<&str>) -> bool {
    let mut folder = folder.map(str::to_owned);
    let mut words = arguments.iter().map(String::as_str);
    let mut command = words.next();
    while let Some(option) = command.filter(|word| word.starts_with('-')) {
        if option == "-C" {
            let into = words.next().unwrap_or_default();
            folder = resolve_path(into, folder.as_deref());
        } else if GIT_VALUES.contains(&option) {
            words.next();
        }
        command = words.next();
    }
    let rest: Vec<String> = words.map(str::to_owned).collect();
    let paths = operands(&rest);
    let whole = |word: &&str| *word == ":/" || names_whole(word, folder.as_deref());
    match command {
        Some("clean") => {
            let forced = has_option(&rest, 'f', "--force");
            let only_shown = has_option(&rest, 'n', "--dry-run");
            // `-X` deletes only ignored files.
            let picks = has_option(&rest, 'X', "") || has_option(&rest, 'i', "--interactive");
            let all = if paths.is_empty() { whole(&".") } else { paths.iter().any(whole) };
            forced && !only_shown && !picks && all
        }
        Some("rm") => !has_option(&rest, 'n', "--cached") && paths.iter().any(whole),
        _ => false,
    }
}
