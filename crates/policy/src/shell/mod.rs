//! Pure: what a shell script is about, read from its syntax tree.
//!
//! A library parses the grammar of bash; the walk over its tree puts in what is known
//! before anything runs: quotes, variables, here documents, what `echo` and its like
//! print into a substitution, a pipe or a file, and the scripts that are handed to
//! `sh -c`, `eval`, `xargs` or `find -exec`. It is no shell: loops run once for each
//! known value, every branch counts, and what only the run will tell stays as it is
//! written. It must never be relied upon to stop anything; the sandbox does that. It
//! may only see too much, and it gives up loudly.
//!
//! **Why rable.** It is Rust without `unsafe`, its one dependency is thiserror, its
//! licence is MIT, it is held to bash 5.3 by several thousand cases and its tree goes
//! down into words. yash-syntax is under the GPL; brush-parser brings 75 packages, global
//! caches and words as text; conch-parser ended in 2019; tree-sitter-bash is C that would
//! read hostile text in the process that decides. Two things of it need containing: it is
//! recursive, and some texts take it time that grows with the cube of what is nested, or
//! faster with stray backticks. So [`nesting`] bounds both before it is called: 60 KB of
//! hostile text take at most a quarter of a second without optimisation, ordinary commands
//! a few microseconds. Should it panic, that is caught and a refusal.

pub(crate) mod destruction;
mod documents;
mod expand;
pub(crate) mod find;
pub(crate) mod folder;
mod nesting;
pub(crate) mod operands;
mod programs;
mod redirect;
mod say;
mod walk;

/// Scripts within scripts that are followed.
const DEPTH_MAX: u32 = 8;
/// What is read of all scripts and put in for all values together, in bytes.
const READ_BYTES_MAX: usize = 1024 * 1024;

/// Why a script was not read to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScriptError {
    /// Scripts lie within scripts.
    #[error("the command has more than {DEPTH_MAX} commands within each other")]
    Deep,
    /// The scripts are long in sum.
    #[error("the command and those within it have more than {READ_BYTES_MAX} bytes")]
    Long,
    /// Too much is open at once for the parser.
    #[error(
        "too many brackets, quotes and substitutions lie within each other; \
             write the script into a file and run that"
    )]
    Nested,
    /// It is no script.
    #[error("it is no shell script: line {line}: {what}")]
    Syntax {
        /// Where, from 1.
        line: usize,
        /// What the parser says.
        what: String,
    },
    /// A text looked like a here document and is none.
    #[error("what looks like a here document is none; write the text with write_file")]
    Document,
    /// The parser broke down.
    #[error("the parser of shell scripts broke down over it; write it in a simpler way")]
    Broken,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShellCommand {
    /// The program and its arguments, without what only says how it runs. Empty for a
    /// lone redirection.
    pub(crate) words: Vec<String>,
    /// Files that it reads by redirection.
    pub(crate) reads: Vec<String>,
    /// Files that it writes by redirection.
    pub(crate) writes: Vec<String>,
    /// What is known of its standard input: here documents, and what is piped into it.
    pub(crate) inputs: Vec<String>,
    /// The folder that it runs in. `None` if only the run will tell.
    pub(crate) folder: Option<String>,
}

impl ShellCommand {
    /// The program's name without its folder.
    pub(crate) fn program(&self) -> &str {
        base(self.words.first().map_or("", String::as_str))
    }

    /// What follows the program.
    pub(crate) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or(&[])
    }
}

/// The last name of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Programs that delete what they are given.
const DELETERS: [&str; 5] = ["rm", "rmdir", "unlink", "shred", "truncate"];
/// Folders of what is made anew when it is gone.
const MADE_ANEW: [&str; 7] =
    ["target", "build", "dist", "node_modules", "__pycache__", ".cache", "tmp"];

/// The simple commands of a script and of all scripts within it.
pub(crate) fn commands(script: &str) -> Result<Vec<ShellCommand>, ScriptError> {
    let mut walk = walk::ShellWalker::default();
    walk.script(script, None)?;
    Ok(walk.found)
}

/// Whether a script deletes what nothing makes anew. Overwriting is not looked for: files are
/// written all the time.
pub(crate) fn deletes(script: &str) -> bool {
    // What comes through a pipe is told to nobody.
    let is_told = !script.contains("xargs");
    commands(script).is_ok_and(|commands| {
        commands.iter().any(|command| {
            let arguments = command.arguments();
            let mut words = arguments.iter().filter(|word| !word.starts_with('-')).peekable();
            match command.program() {
                "find" => arguments.iter().any(|word| word == "-delete"),
                "git" => loses(arguments),
                program => {
                    let is_kept = words.peek().is_some() && words.all(|path| is_made_anew(path));
                    DELETERS.contains(&program) && !(is_kept && is_told)
                }
            }
        })
    })
}

/// Whether a command of git forgets what was not committed.
fn loses(arguments: &[String]) -> bool {
    let mut words = arguments.iter().map(String::as_str);
    let mut command = words.next();
    while let Some(word) = command.filter(|word| word.starts_with('-')) {
        command = if word == "-C" || word == "-c" { words.nth(1) } else { words.next() };
    }
    let has = |any: &[&str]| arguments.iter().any(|word| any.contains(&word.as_str()));
    match command {
        Some("clean") => !has(&["-n", "--dry-run"]),
        Some("reset") => has(&["--hard", "--merge"]),
        Some("restore") => !has(&["--staged"]) || has(&["--worktree"]),
        Some("checkout" | "switch") => has(&["--", ".", "-f", "--force"]),
        Some("stash") => has(&["drop", "clear"]),
        Some("branch") => has(&["-D", "--delete", "-d"]),
        Some("rm") => !has(&["--cached"]),
        _ => false,
    }
}

/// Whether a path is in a folder, at the top of the workspace, of what is made anew.
fn is_made_anew(path: &str) -> bool {
    let inside = ["/root/", "~/", "./", "/"].iter().find_map(|home| path.strip_prefix(home));
    let path = inside.unwrap_or(path);
    let top = path.split('/').next().unwrap_or_default();
    MADE_ANEW.contains(&top) && !path.split('/').any(|name| name == "..")
}

#[cfg(test)]
mod tests;
