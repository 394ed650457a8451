//! `logs`: what happened, from the log of events.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::event::{EventName, StampedEvent};
use clap::Args;

use super::CommandContext;
use crate::config::file::LogLevel;
use crate::error::CliError;
use crate::log::{FILE_NAME, older};
use crate::ui::pretty::{EventPrinter, ThoughtDisplay, TimeColumn};
use crate::ui::{self, ColorMode, Format};

/// Interval at which a followed log is read.
const POLL: Duration = Duration::from_millis(250);

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Number of latest events
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    lines: usize,
    /// Go on with what happens from now on
    #[arg(short, long)]
    follow: bool,
    /// Only what matters as much, or more
    #[arg(long, value_name = "LEVEL", value_enum)]
    level: Option<LogLevel>,
    /// Only events of this name, or of names that begin with it, as `alert`; may be repeated
    #[arg(long, value_name = "NAME")]
    event: Vec<String>,
}

impl LogsArgs {
    /// Returns true if a line is wanted. A line that is no event of ours is not.
    fn wants(&self, line: &str) -> bool {
        let fits = |name: &str| {
            let begins = |wanted: &String| {
                name.strip_prefix(wanted.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            self.event.is_empty() || self.event.iter().any(begins)
        };
        serde_json::from_str::<EventName>(line).is_ok_and(|named| fits(&named.event))
            && serde_json::from_str::<StampedEvent>(line).is_ok_and(|stamped| {
                self.level.is_none_or(|level| stamped.event.report().level >= level.into())
            })
    }
}

/// Shows the last events, and goes on with those to come.
pub(crate) fn run(context: &CommandContext, args: &LogsArgs) -> Result<(), CliError> {
    let (home, _) = context.inhabited()?;
    let path = home.join(FILE_NAME);
    let failed = |error: io::Error| CliError::internal("cannot read the log", &error);
    let mut show = shower(context);
    let mut all = Vec::new();
    for file in [older(&path), path.clone()].iter().map(|path| open(path)) {
        if let Some(file) = file.map_err(failed)? {
            for line in BufReader::new(file).lines() {
                all.push(line.map_err(failed)?);
            }
        }
    }
    let mut tail = args.follow.then(|| Tail::at_end(path));
    all.retain(|line| args.wants(line));
    for line in &all[all.len().saturating_sub(args.lines)..] {
        show(line)?;
    }
    while let Some(tail) = &mut tail {
        for line in tail.next_lines().map_err(failed)? {
            if args.wants(&line) {
                show(&line)?;
            }
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn shower(context: &CommandContext) -> impl FnMut(&str) -> Result<(), CliError> {
    let format = context.format;
    let paint = ColorMode::of_stdout(&context.environment);
    let pretty = EventPrinter::new(io::stdout(), paint, ThoughtDisplay::Whole, TimeColumn::Shown);
    let mut pretty = pretty.on(context.screen());
    move |line: &str| match (format, serde_json::from_str::<StampedEvent>(line)) {
        (Format::Json, Ok(_)) => ui::line(line),
        (Format::Text, Ok(event)) => pretty.show(&event).map_err(|error| CliError::output(&error)),
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

    /// The lines that were completed since the last call. When the log began anew, what
    /// was still unread of the file before goes first.
    fn next_lines(&mut self) -> io::Result<Vec<String>> {
        let mut complete = Vec::new();
        let Some(file) = open(&self.path)? else { return Ok(complete) };
        let inode = file.metadata()?.ino();
        if inode != self.inode {
            if let Some(before) = open(&older(&self.path))?
                && before.metadata()?.ino() == self.inode
            {
                self.read(before, &mut complete)?;
            }
            (self.offset, self.inode) = (0, inode);
            self.partial.clear();
        }
        self.read(file, &mut complete)?;
        Ok(complete)
    }

    /// Reads on from where the last read ended.
    fn read(&mut self, mut file: File, complete: &mut Vec<String>) -> io::Result<()> {
        self.offset = file.seek(SeekFrom::Start(self.offset))?;
        let mut reader = BufReader::new(file);
        loop {
            let read = reader.read_line(&mut self.partial)?;
            self.offset = self.offset.saturating_add(read as u64);
            if !self.partial.ends_with('\n') {
                return Ok(());
            }
            complete.push(std::mem::take(&mut self.partial).trim_end().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_log_is_followed_over_the_end_of_its_file() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE_NAME);
        std::fs::write(&path, "old\n").unwrap();
        let mut tail = Tail::at_end(path.clone());
        let append = |text: &str| {
            let file = File::options().append(true).create(true).open(&path);
            file.unwrap().write_all(text.as_bytes()).unwrap();
        };
        append("one\nhal");
        assert_eq!(tail.next_lines().unwrap(), ["one"]);
        append("f\nlast\n");
        std::fs::rename(&path, older(&path)).unwrap();
        append("new\n");
        assert_eq!(tail.next_lines().unwrap(), ["half", "last", "new"]);
        append("newer\n");
        assert_eq!(tail.next_lines().unwrap(), ["newer"]);
    }

    #[test]
    fn only_what_is_asked_for_is_shown() {
        let wants = |level, event: &[&str], line: &str| {
            let event = event.iter().map(|&name| name.to_owned()).collect();
            LogsArgs { lines: 1, follow: false, level, event }.wants(line)
        };
        let stopped = r#"{"at":7,"event":"agent.stopped","reason":"x"}"#;
        let restarted = r#"{"at":7,"event":"agent.restarted","death":"x","restarts":1}"#;
        assert!(wants(None, &[], stopped) && wants(None, &["agent"], stopped));
        assert!(wants(None, &["turn", "agent.stopped"], stopped));
        assert!(!wants(None, &["agent.stop"], stopped) && !wants(None, &["turn"], stopped));
        assert!(!wants(Some(LogLevel::Warn), &[], stopped));
        assert!(wants(Some(LogLevel::Error), &["agent"], restarted));
        assert!(!wants(None, &[], r#"{"at":7,"event":"agent.stop"#), "cut off by a crash");
    }
}
