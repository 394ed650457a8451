//! Pure: reads the effects of a shell script from its syntax tree.
//!
//! A library parses the grammar of bash. The walk over the tree evaluates everything that is
//! known before running: quotes, variables, here documents, the output of `echo` and similar
//! programs in a substitution, a pipe or a file, and scripts passed to `sh -c`, `eval`, `xargs`
//! or `find -exec`. It is not a shell: loops run once for each known value, every branch counts,
//! and text that is known only at run time stays as written. It must never be relied upon to stop
//! anything. The sandbox does that. It may see too much but not too little, and it gives up with
//! an error.
//!
//! **Why rable.** It is Rust without `unsafe`, its one dependency is thiserror, its licence is
//! MIT, it is tested against bash 5.3 with several thousand cases, and its tree includes the
//! parts of words. yash-syntax is under the GPL. brush-parser brings 75 packages, global caches
//! and words as text. conch-parser ended in 2019. tree-sitter-bash is C that would read hostile
//! text in the deciding process. Two properties of rable need containment: it is recursive, and
//! on some texts its time grows with the cube of the nesting, or faster with stray backticks. So
//! [`nesting`] bounds both before the call: 60 KB of hostile text take at most a quarter of a
//! second without optimisation, ordinary commands a few microseconds. A panic is caught and
//! becomes a refusal.

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

/// The deepest nesting of scripts that is followed.
const DEPTH_MAX: u32 = 8;
/// The most bytes of all scripts and substituted values together.
const READ_BYTES_MAX: usize = 1024 * 1024;

/// The reason why a script was not read to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScriptError {
    /// Scripts are nested too deeply.
    #[error("the command has more than {DEPTH_MAX} commands within each other")]
    Deep,
    /// The scripts are too long in total.
    #[error("the command and those within it have more than {READ_BYTES_MAX} bytes")]
    Long,
    /// Too many delimiters are open at once for the parser.
    #[error(
        "too many brackets, quotes and substitutions lie within each other; \
             write the script into a file and run that"
    )]
    Nested,
    /// The text is not a valid script.
    #[error("it is no shell script: line {line}: {what}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The parser's message.
        what: String,
    },
    /// A text looked like a here document but is none.
    #[error("what looks like a here document is none; write the text with write_file")]
    Document,
    /// The parser panicked.
    #[error("the parser of shell scripts broke down over it; write it in a simpler way")]
    Broken,
}

/// A simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShellCommand {
    /// The program and its arguments, without wrappers. Empty for a lone redirection.
    pub(crate) words: Vec<String>,
    /// Files read by redirection.
    pub(crate) reads: Vec<String>,
    /// Files written by redirection.
    pub(crate) writes: Vec<String>,
    /// The known standard input: here documents and piped output.
    pub(crate) inputs: Vec<String>,
    /// The working directory, or `None` if it is known only at run time.
    pub(crate) folder: Option<String>,
}

impl ShellCommand {
    /// Returns the program's name without its folder.
    pub(crate) fn program(&self) -> &str {
        base_name(self.words.first().map_or("", String::as_str))
    }

    /// Returns the arguments.
    pub(crate) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or(&[])
    }
}

/// Returns the last name of a path.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Programs that delete their arguments.
const DELETERS: [&str; 5] = ["rm", "rmdir", "unlink", "shred", "truncate"];
/// Folders whose content is regenerated when it is gone.
const MADE_ANEW: [&str; 7] =
    ["target", "build", "dist", "node_modules", "__pycache__", ".cache", "tmp"];

/// Returns the simple commands of a script and of all scripts within it.
pub(crate) fn commands(script: &str) -> Result<Vec<ShellCommand>, ScriptError> {
    let mut walk = walk::ShellWalker::default();
    walk.walk_script(script, None)?;
    Ok(walk.found)
}

/// Returns true if a script deletes something that is not regenerated. Overwriting does not
/// count: files are written all the time.
pub(crate) fn deletes(script: &str) -> bool {
    // Arguments that come through a pipe are unknown.
    let is_told = !script.contains("xargs");
    commands(script).is_ok_and(|commands| {
        commands.iter().any(|command| {
            let arguments = command.arguments();
            let mut words = arguments.iter().filter(|word| !word.starts_with('-')).peekable();
            match command.program() {
                "find" => arguments.iter().any(|word| word == "-delete"),
                "git" => discards_work(arguments),
                program => {
                    let is_kept = words.peek().is_some() && words.all(|path| is_regenerated(path));
                    DELETERS.contains(&program) && !(is_kept && is_told)
                }
            }
        })
    })
}

/// Returns true if a git command discards uncommitted work.
fn discards_work(arguments: &[String]) -> bool {
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

/// Returns true if a path is in a folder at the top of the workspace whose content is
/// regenerated.
fn is_regenerated(path: &str) -> bool {
    let inside = ["/root/", "~/", "./", "/"].iter().find_map(|home| path.strip_prefix(home));
    let path = inside.unwrap_or(path);
    let top = path.split('/').next().unwrap_or_default();
    MADE_ANEW.contains(&top) && !path.split('/').any(|name| name == "..")
}

#[cfg(test)]
mod tests;
