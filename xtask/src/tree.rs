//! The files of the repository: what git tracks, and what it would track.
//!
//! Reads, and asks git; must never write.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// The folder that holds this workspace, found upwards from the current one.
pub(crate) fn root() -> Result<PathBuf> {
    let start = std::env::current_dir().context("cannot tell the current folder")?;
    let mut folder = start.as_path();
    loop {
        if folder.join("xtask/layers.toml").is_file() {
            return Ok(folder.to_path_buf());
        }
        match folder.parent() {
            Some(parent) => folder = parent,
            None => bail!("{} is not inside the repository: run this there", start.display()),
        }
    }
}

/// A file of the repository that is text, with its path from the root.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every text file that is tracked, or untracked and not ignored, in order of path.
pub(crate) fn text_files(root: &Path) -> Result<Vec<TextFile>> {
    let listed =
        git(root, &["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"])?;
    let mut files = Vec::new();
    for path in listed.lines() {
        let full = root.join(path);
        // A path that git knows may be gone from the work tree, or be a link to a folder.
        if !full.is_file() {
            continue;
        }
        let bytes = fs::read(&full).with_context(|| format!("cannot read {path}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(TextFile { path: path.to_owned(), text });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The text of a file as it stood before its latest change: in the last commit
/// when the work tree differs from it, else in the parent of the commit that
/// last touched it. Nothing when the file is new.
pub(crate) fn previous_text(root: &Path, path: &str) -> Result<Option<String>> {
    let now = fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
    let committed = git(root, &["show", &format!("HEAD:{path}")]).ok();
    if committed.as_deref() != Some(now.as_str()) {
        return Ok(committed);
    }
    let last = git(root, &["log", "-n", "1", "--format=%H", "--", path])?;
    Ok(git(root, &["show", &format!("{}^:{path}", last.trim())]).ok())
}

/// What a command of git prints.
fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    output("git", root, &[&["-c", "core.quotePath=false"], arguments].concat())
}

/// What `cargo` prints when it runs at the root.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Result<String> {
    output("cargo", root, arguments)
}

#[expect(clippy::disallowed_methods, reason = "git and cargo are trusted, and xtask is no product")]
fn output(program: &str, root: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.current_dir(root).args(arguments);
    let done = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let talk = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{command:?} failed: {}", talk.trim());
    String::from_utf8(done.stdout).with_context(|| format!("{command:?} printed no UTF-8"))
}
