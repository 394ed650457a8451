//! `logs`: what happened, from the log of events.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::event::Stamped;

use super::Context;
use crate::error::Failure;
use crate::log::{FILE_NAME, older};
use crate::ui::pretty::{Pretty, Thoughts, Times};
use crate::ui::{self, Format, Paint};

/// How often a followed log is looked at.
const POLL: Duration = Duration::from_millis(250);

/// Shows the last events, and goes on with those to come.
pub(crate) fn run(context: &Context, count: usize, follow: bool) -> Result<(), Failure> {
    let (home, _) = context.inhabited()?;
    let path = home.join(FILE_NAME);
    let failed = |error: io::Error| Failure::internal("cannot read the log", &error);
    let mut show = shower(context);
    let mut all = Vec::new();
    for file in [older(&path), path.clone()].iter().map(|path| open(path)) {
        if let Some(file) = file.map_err(failed)? {
            for line in BufReader::new(file).lines() {
                all.push(line.map_err(failed)?);
            }
        }
    }
    let mut tail = follow.then(|| Tail::at_end(path));
    for line in &all[all.len().saturating_sub(count)..] {
        show(line)?;
    }
    while let Some(tail) = &mut tail {
        for line in tail.next_lines().map_err(failed)? {
            show(&line)?;
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn shower(context: &Context) -> impl FnMut(&str) -> Result<(), Failure> {
    let format = context.format;
    let paint = Paint::of_stdout(&context.environment);
    let mut pretty = Pretty::new(io::stdout(), paint, Thoughts::Whole, Times::Shown);
    move |line: &str| match (format, serde_json::from_str::<Stamped>(line)) {
        (Format::Json, Ok(_)) => ui::line(line),
        (Format::Text, Ok(event)) => pretty.show(&event).map_err(|error| Failure::output(&error)),
        // silent-ok: the last line may be cut off by a crash, or be of a newer program.
        (_, Err(_)) => Ok(()),
    }
}

/// A file, unless it is not there.
fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// The end of a log that grows, and now and then begins anew.
struct Tail {
    path: PathBuf,
    offset: u64,
    inode: u64,
    partial: String,
}

impl Tail {
    fn at_end(path: PathBuf) -> Self {
        let (offset, inode) =
            std::fs::metadata(&path).map_or((0, 0), |found| (found.len(), found.ino()));
        Self { path, offset, inode, partial: String::new() }
    }

    fn next_lines(&mut self) -> io::Result<Vec<String>> {
        let Some(mut file) = open(&self.path)? else { return Ok(Vec::new()) };
        let inode = file.metadata()?.ino();
        if inode != self.inode {
            (self.offset, self.inode) = (0, inode);
            self.partial.clear();
        }
        self.offset = file.seek(SeekFrom::Start(self.offset))?;
        let mut reader = BufReader::new(file);
        let mut complete = Vec::new();
        loop {
            let read = reader.read_line(&mut self.partial)?;
            self.offset = self.offset.saturating_add(read as u64);
            if !self.partial.ends_with('\n') {
                return Ok(complete);
            }
            complete.push(std::mem::take(&mut self.partial).trim_end().to_owned());
        }
    }
}
