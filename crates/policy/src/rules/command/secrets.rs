//! Pure: commands that read files of keys and logins, and words that name the runtime's own.

use super::{ScriptLocation, code_of, is_flag, runs_code};
use crate::rules::path;
use crate::shell::ShellCommand;
use crate::shell::folder::{matches_glob, resolve};
use crate::shell::operands::read_operands;

/// Programs that show or copy the content of files.
const READERS: [&str; 44] = [
    "cat", "tac", "less", "more", "head", "tail", "nl", "cut", "sort", "uniq", "paste", "grep",
    "egrep", "fgrep", "zgrep", "rg", "ag", "sed", "awk", "gawk", "mawk", "nawk", "perl", "ruby",
    "jq", "yq", "diff", "xxd", "od", "hexdump", "strings", "base32", "base64", "cp", "mv", "ln",
    "scp", "rsync", "tar", "zip", "gzip", "curl", "source", ".",
];
/// Readers whose last operand is the file that they write.
const COPIERS: [&str; 5] = ["cp", "mv", "ln", "scp", "rsync"];
/// Names in code that looks for the runtime's folder or for secrets.
const TELLTALES: [&str; 6] =
    [".automaton", "wallet.json", "private-key", "/environ", ".ssh/", ".gnupg/"];
/// Code with which a filter opens other files or runs other programs.
const OPENERS: [&str; 9] = ["getline", "system", "open", "exec", "qx", "`", "<", "|", "require"];

/// Returns true if a command reads a file that holds keys or logins.
pub(super) fn reads_secrets(command: &ShellCommand, within: ScriptLocation) -> bool {
    let folder = command.folder.as_deref();
    let secret =
        |word: &str| is_secret(word, folder) || (within == ScriptLocation::Home && !is_flag(word));
    let reads = READERS.contains(&command.program());
    (reads && read_files(command).into_iter().any(secret))
        || command.reads.iter().any(|word| secret(word))
        || (runs_code(command.program()) && code_names_secrets(command))
}

/// Returns the words that name what a command reads. The last operand of a copy is written, as
/// in `cp .env.example .env`.
fn read_files(command: &ShellCommand) -> Vec<&str> {
    let mut files = read_operands(command).files;
    let is_target_first = |word: &&str| word.starts_with("-t") || word.starts_with("--target");
    let operands = files.iter().filter(|word| !is_flag(word)).count();
    let copies = COPIERS.contains(&command.program()) && !files.iter().any(is_target_first);
    if copies && operands > 1 && files.last().is_some_and(|word| !is_flag(word)) {
        files.pop();
    }
    files
}

/// Returns true if code in a programming language names secrets. The program of a filter
/// counts only if it can open files: its patterns name nothing.
fn code_names_secrets(command: &ShellCommand) -> bool {
    let opens = |code: &&str| OPENERS.iter().any(|opener| code.contains(opener));
    match is_filter(command) {
        true => read_operands(command).code.into_iter().filter(opens).any(names_secret),
        false => code_of(command).any(|code| names_secret(code)),
    }
}

/// Returns true if a program is run over the lines of files, as `awk` and `perl -p` do.
fn is_filter(command: &ShellCommand) -> bool {
    let loops = |word: &String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        letters.starts_with(|c: char| c.is_ascii_alphanumeric())
            && letters.split('e').next().is_some_and(|before| before.contains(['n', 'p']))
    };
    match command.program() {
        "perl" | "ruby" => command.arguments().iter().any(loops),
        program => program.ends_with("awk"),
    }
}

/// Returns true if a word within code is a path of secrets.
fn names_secret(code: &str) -> bool {
    let is_end = |c: char| c.is_whitespace() || "\"'`()[]{},;|".contains(c);
    code.split(is_end).any(|word| {
        let file = word.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        TELLTALES.iter().any(|telltale| word.contains(telltale)) && !path::is_public(&file)
    })
}

/// Returns the names in a path, or in the value of an option such as `of=path`.
fn names_in(word: &str) -> impl Iterator<Item = &str> {
    word.split(['/', '=', ':', '@', '<', '>']).filter(|name| !name.is_empty())
}

/// Returns true if a word names the runtime's own folder or something in it. A pattern does
/// so only where that folder may lie: at the top of a home.
pub(super) fn is_own(word: &str, folder: Option<&str>) -> bool {
    let named =
        |name: &str| path::RUNTIME_FOLDERS.iter().any(|folder| name.eq_ignore_ascii_case(folder));
    let matched = |name: &str| {
        let lower = name.to_ascii_lowercase();
        path::RUNTIME_FOLDERS.iter().any(|folder| matches_glob(&lower, folder))
    };
    let in_home = |names: &[&str]| {
        names.iter().enumerate().any(|(at, name)| {
            matches!(names.get(..at), Some([] | ["root"] | ["home", _])) && matched(name)
        })
    };
    let mut values = word.split(['=', ':', '@', '<', '>']).filter(|value| !value.is_empty());
    names_in(word).any(named)
        || values.any(|value| match resolve(value, folder) {
            Some(names) => in_home(&names),
            None => value.split('/').any(matched),
        })
}

/// Returns true if a word names one of the runtime's files where a copy might lie: at the top
/// of the workspace.
pub(super) fn is_runtime_file(word: &str, folder: Option<&str>) -> bool {
    match resolve(word, folder).as_deref() {
        Some(["root", inside @ ..]) => path::is_runtime(inside),
        Some(_) => false,
        None => path::is_runtime(&names_in(word).collect::<Vec<_>>()),
    }
}

/// Returns true if a word names something in the runtime's folder, a file that holds
/// secrets, or the place where the system keeps such. A URL names no file.
fn is_secret(word: &str, folder: Option<&str>) -> bool {
    let names: Vec<&str> = names_in(word).collect();
    let system =
        matches!(names.as_slice(), [.., "etc", "shadow" | "gshadow"] | [.., "proc", _, "environ"]);
    let is_file = !is_flag(word) || word.contains('=');
    let is_url = word.contains("://") && !word.starts_with("file:");
    !is_url && (system || is_own(word, folder) || (is_file && path::is_secret(&names)))
}
