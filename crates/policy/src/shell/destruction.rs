//! Pure: commands that may delete, overwrite or move away files of the workspace.
//!
//! The answer decides only whether a snapshot is taken first, so that doubt is a yes: a script
//! that cannot be read, and a program that is not known to be harmless.

use super::{ShellCommand, commands, discards_work};

/// Programs that change no file that is there, whatever their arguments.
const HARMLESS: [&str; 85] = [
    "",
    ":",
    "[",
    "alias",
    "basename",
    "bc",
    "break",
    "cal",
    "cat",
    "cd",
    "cksum",
    "clear",
    "cmp",
    "comm",
    "command",
    "continue",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "env",
    "exit",
    "export",
    "expr",
    "false",
    "fgrep",
    "file",
    "fold",
    "getconf",
    "getopts",
    "grep",
    "head",
    "hexdump",
    "hostname",
    "id",
    "jobs",
    "join",
    "jq",
    "less",
    "local",
    "ls",
    "md5sum",
    "mkdir",
    "mktemp",
    "more",
    "nl",
    "nproc",
    "od",
    "paste",
    "popd",
    "printenv",
    "printf",
    "ps",
    "pushd",
    "pwd",
    "read",
    "readlink",
    "realpath",
    "return",
    "rg",
    "seq",
    "set",
    "sha256sum",
    "shift",
    "sleep",
    "sort",
    "stat",
    "strings",
    "tail",
    "test",
    "touch",
    "tr",
    "true",
    "type",
    "umask",
    "uname",
    "uniq",
    "wait",
    "wc",
    "which",
    "whoami",
];
/// Commands of git that change no file of the working tree.
const GIT_HARMLESS: [&str; 18] = [
    "add",
    "blame",
    "branch",
    "commit",
    "config",
    "describe",
    "diff",
    "fetch",
    "grep",
    "help",
    "init",
    "log",
    "ls-files",
    "remote",
    "rev-parse",
    "show",
    "status",
    "tag",
];
/// Options of git that come before the command and take the next word.
const GIT_VALUES: [&str; 5] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace"];
/// Programs that run code which is one of their arguments.
const INTERPRETERS: [&str; 6] = ["python", "perl", "ruby", "node", "php", "deno"];
/// Words of code that changes no file and runs nothing that could: without any of these it only
/// computes and prints.
const CODE_WORDS: [&str; 24] = [
    "rm",
    "unlink",
    "remove",
    "delete",
    "trunc",
    "rename",
    "replace",
    "move",
    "clear",
    "write",
    "open",
    "system",
    "exec",
    "spawn",
    "popen",
    "subprocess",
    "shutil",
    "import(",
    "require",
    "eval",
    "fs",
    "os.",
    "`",
    "path",
];

/// Returns true if a script may delete, empty, overwrite or move away files.
#[must_use]
pub fn may_delete(script: &str) -> bool {
    match commands(script) {
        Ok(commands) => commands.iter().any(is_doubtful),
        Err(_) => true,
    }
}

fn is_doubtful(command: &ShellCommand) -> bool {
    let arguments = command.arguments();
    let has = |any: &[&str]| arguments.iter().any(|word| any.contains(&word.as_str()));
    if empties_by_redirection(command) {
        return true;
    }
    match command.program() {
        program if HARMLESS.contains(&program) => program == "sort" && has(&["-o"]),
        "sed" => {
            arguments.iter().any(|word| word.starts_with("-i") || word.starts_with("--in-place"))
        }
        "awk" | "gawk" | "mawk" => {
            arguments.iter().any(|word| word.contains(['>', '|']) || word.contains("system"))
        }
        "tee" => !has(&["-a", "--append"]),
        "find" => arguments.iter().any(|word| word == "-delete" || word.starts_with("-fprint")),
        "git" => !is_harmless_git(arguments),
        program if INTERPRETERS.iter().any(|name| program.starts_with(name)) => {
            !runs_harmless_code(command)
        }
        _ => true,
    }
}

/// Returns true if a command only makes files empty: `> notes.md`, `cat /dev/null > notes.md`.
fn empties_by_redirection(command: &ShellCommand) -> bool {
    let writes_nothing = match command.program() {
        "" | ":" | "true" => true,
        "cat" => command.arguments().iter().chain(&command.reads).any(|word| word == "/dev/null"),
        "echo" | "printf" => command.arguments().iter().all(|word| word == "-n" || word.is_empty()),
        _ => false,
    };
    let is_file = |word: &String| !word.starts_with("/dev/") && !word.starts_with('&');
    writes_nothing && command.writes.iter().any(is_file)
}

fn is_harmless_git(arguments: &[String]) -> bool {
    let mut words = arguments.iter().map(String::as_str);
    let mut command = words.next();
    while let Some(option) = command.filter(|word| word.starts_with('-')) {
        if GIT_VALUES.contains(&option) {
            words.next();
        }
        command = words.next();
    }
    command.is_none_or(|command| GIT_HARMLESS.contains(&command)) && !discards_work(arguments)
}

/// Returns true if an interpreter runs code that stands in the command and only computes. A
/// script in a file may do anything.
fn runs_harmless_code(command: &ShellCommand) -> bool {
    let arguments = command.arguments();
    let asks = ["--version", "-V", "-v"];
    if arguments.len() == 1 && arguments.iter().any(|word| asks.contains(&word.as_str())) {
        return true;
    }
    let inline =
        arguments.first().is_some_and(|word| ["-c", "-e", "-r", "-p"].contains(&word.as_str()));
    let fed = (arguments.is_empty() || arguments == ["-"]) && !command.inputs.is_empty();
    let mut code = arguments.iter().skip(1).chain(&command.inputs);
    (inline || fed) && code.all(|code| !CODE_WORDS.iter().any(|word| code.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_delete_is_a_yes_and_so_is_doubt() {
        let doubtful = [
            "rm -rf site",
            "rm notes.md",
            "find . -name '*.md' -delete",
            "find . -type f -exec rm {} +",
            "ls | xargs rm",
            "git clean -fdx",
            "git checkout -- .",
            "git -C site reset --hard",
            "git pull",
            "mv notes /tmp",
            "rsync -a --delete a/ b/",
            "shred -u key",
            "truncate -s 0 log",
            "> notes.md",
            ": > notes.md",
            "cat /dev/null > notes.md",
            "echo -n > notes.md",
            "python3 clean.py",
            "python3 -c 'import shutil; shutil.rmtree(\"site\")'",
            "node -e 'require(\"fs\").rmSync(\"a\")'",
            "perl -e 'unlink glob \"*\"'",
            "python3 - <<'EOF'\nimport os\nos.remove('a')\nEOF",
            "make clean",
            "cargo clean",
            "npm ci",
            "./build.sh",
            "bash -c 'rm -rf site'",
            "cp -r a b",
            "dd if=/dev/zero of=notes.md",
            "sed -i s/a/b/ notes.md",
            "echo x | tee notes.md",
            "chmod -R 000 site",
            "tar xf a.tar",
            "f() { rm a; }; f",
            "if true; then rm a; fi",
            "unknown-program",
            "awk '{print > \"a\"}' b",
            "((((((",
        ];
        for command in doubtful {
            assert!(may_delete(command), "{command}");
        }
    }

    #[test]
    fn what_only_looks_or_makes_new_files_is_a_no() {
        let harmless = [
            "ls -la",
            "cat notes.md | grep -n x | head -5",
            "echo hello > new.txt",
            "echo more >> log.txt",
            "mkdir -p site && cd site && touch index.html",
            "cat > page.html <<'EOF'\n<p>rm -rf</p>\nEOF",
            "git status && git log --oneline -5 && git add . && git commit -m x",
            "git -C site diff",
            "python3 -c 'print(6 * 7)'",
            "python3 --version; node -v",
            "find . -name '*.rs'",
            "for f in *; do wc -l \"$f\"; done",
            "sed -n 1,5p notes.md",
            "ls 2>/dev/null",
            "sleep 1; date",
            "awk '{print $1}' a",
        ];
        for command in harmless {
            assert!(!may_delete(command), "{command}");
        }
    }
}
