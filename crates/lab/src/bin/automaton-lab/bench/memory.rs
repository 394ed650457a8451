//! `bench memory`: how well the memory finds what it was told, and how fast.
//!
//! What was said, and the question that asks for it in other words, are pairs of a file, anyone's
//! with `--pairs`; all of them are remembered among as many other events as are wanted, as messages
//! of the creator, and each question is answered as a turn's is. A pair's fact may have an older one
//! before it, which must not come first. Languages are told apart. Times are those of the store's own
//! thread, without a model.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use automaton::cmd::{CommandContext, id_generator};
use automaton::error::CliError;
use automaton::home::make_directory;
use automaton::process;
use automaton_core::faults::NoFaults;
use automaton_core::memory::{MemoryId, MemoryQuery, MemoryTier, NewMemory};
use automaton_core::time::{Clock, SystemClock};
use automaton_core::trust::{Label, Labelled};
use automaton_memory::recall::{RecallOptions, rank};
use automaton_store::Store;
use clap::Args;
use serde::Serialize;
use tokio::time::Instant;

/// Our own pairs.
const PAIRS: &str = include_str!("../../../../assets/bench/memory.tsv");

/// What lies between an older fact and the one that took its place.
const REPLACED_BY: &str = " || ";

/// Events that are written in one transaction while the memory is filled.
const BATCH: u32 = 1_000;

/// Items that are written one by one, as a turn writes them.
const WRITES: u32 = 500;

/// Words of which the other events are made.
const WORDS: [&str; 40] = [
    "server", "invoice", "garden", "report", "customer", "index", "cable", "harbour", "meeting",
    "test", "release", "kitchen", "budget", "letter", "engine", "market", "photo", "ticket",
    "backup", "price", "window", "school", "river", "winter", "doctor", "printer", "contract",
    "train", "answer", "folder", "network", "password", "market", "monday", "sister", "project",
    "coffee", "station", "weather", "machine",
];

/// What is measured, and among how much.
#[derive(Debug, Args)]
pub(crate) struct BenchMemoryArgs {
    /// Other events that are remembered beside the pairs
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=2_000_000))]
    rows: u32,
    /// Pairs of your own: kind, language, what was said and the question, with tabs between them
    #[arg(long)]
    pairs: Option<PathBuf>,
}

/// A fact and a question for it.
struct RecallPair {
    kind: String,
    language: String,
    older: Option<String>,
    said: String,
    asked: String,
}

/// How often what was asked for came first, among the first five and ten.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct RecallQuality {
    asked: u32,
    first: u32,
    first_five: u32,
    first_ten: u32,
    /// The mean of one through the place, in thousandths, times `asked`.
    reciprocal_sum_permille: u32,
}

impl RecallQuality {
    fn add(&mut self, place: Option<usize>) {
        self.asked += 1;
        let Some(place) = place else { return };
        self.first += u32::from(place == 0);
        self.first_five += u32::from(place < 5);
        self.first_ten += u32::from(place < 10);
        self.reciprocal_sum_permille += 1_000 / u32::try_from(place + 1).unwrap_or(u32::MAX);
    }

    fn words(&self) -> String {
        let of = |count: u32| count * 100 / self.asked.max(1);
        let mean = self.reciprocal_sum_permille / self.asked.max(1);
        format!(
            "R@1 {:>3} %  R@5 {:>3} %  R@10 {:>3} %  MRR {}.{:03}  of {}",
            of(self.first),
            of(self.first_five),
            of(self.first_ten),
            mean / 1_000,
            mean % 1_000,
            self.asked
        )
    }
}

/// What was measured.
#[derive(Debug, Serialize)]
struct MemoryMeasurement {
    rows: u64,
    database_bytes: u64,
    /// By kind, of the first language, which is English in ours.
    kinds: BTreeMap<String, RecallQuality>,
    /// By language, all kinds.
    languages: BTreeMap<String, RecallQuality>,
    search_p50_us: u64,
    search_p95_us: u64,
    write_p50_us: u64,
    write_p95_us: u64,
}

/// Measures, and tells.
///
/// # Errors
/// When a pair is none, or the database cannot be made.
pub(super) fn run(context: &CommandContext, args: &BenchMemoryArgs) -> Result<(), CliError> {
    let text = match &args.pairs {
        None => PAIRS.to_owned(),
        Some(file) => fs::read_to_string(file).map_err(|error| {
            CliError::user(format!("cannot read {}", file.display())).because(&error)
        })?,
    };
    let pairs = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| pair(at + 1, line))
        .collect::<Result<Vec<_>, _>>()?;
    let scratch = context.scratch()?;
    let home = scratch.home();
    let failed = |error| CliError::internal("cannot make a memory to measure", &error);
    make_directory(&home).map_err(failed)?;
    let database = home.join("state.db");
    let store = Store::open(&database, id_generator(), Arc::new(NoFaults))?;
    let mut measured = process::runtime()?.block_on(measure(store, args.rows, &pairs))?;
    measured.database_bytes = fs::metadata(&database).map_or(0, |file| file.len());
    context.format.answer(&measured, || in_words(&measured))
}

fn pair(line: usize, text: &str) -> Result<RecallPair, CliError> {
    let parts: Vec<&str> = text.split('\t').collect();
    let [kind, language, said, asked] = parts[..] else {
        let what = format!("line {line} is no pair: it has {} parts, not 4", parts.len());
        return Err(CliError::user(what).hint("kind, language, what was said, the question"));
    };
    let (older, said) = match said.split_once(REPLACED_BY) {
        Some((older, said)) => (Some(older.to_owned()), said),
        None => (None, said),
    };
    Ok(RecallPair {
        kind: kind.to_owned(),
        language: language.to_owned(),
        older,
        said: said.to_owned(),
        asked: asked.to_owned(),
    })
}

async fn measure(
    store: Store,
    rows: u32,
    pairs: &[RecallPair],
) -> Result<MemoryMeasurement, CliError> {
    fill(&store, rows / 2, 0).await?;
    for older in pairs.iter().filter_map(|pair| pair.older.as_ref()) {
        store.remember(said(older.clone())).await?;
    }
    let mut ids: Vec<MemoryId> = Vec::new();
    for pair in pairs {
        ids.push(store.remember(said(pair.said.clone())).await?.id());
    }
    fill(&store, rows - rows / 2, 1).await?;
    let mut measured = MemoryMeasurement {
        rows: store.count_memories().await?,
        database_bytes: 0,
        kinds: BTreeMap::new(),
        languages: BTreeMap::new(),
        search_p50_us: 0,
        search_p95_us: 0,
        write_p50_us: 0,
        write_p95_us: 0,
    };
    let first = pairs.first().map(|pair| pair.language.clone()).unwrap_or_default();
    let mut times = Vec::new();
    for (pair, id) in pairs.iter().zip(ids) {
        let began = Instant::now();
        let place = ask(&store, &pair.asked, id).await?;
        times.push(began.elapsed());
        measured.languages.entry(pair.language.clone()).or_default().add(place);
        if pair.language == first {
            measured.kinds.entry(pair.kind.clone()).or_default().add(place);
        }
    }
    (measured.search_p50_us, measured.search_p95_us) = percentiles(times);
    let mut times = Vec::new();
    for nth in 0..WRITES {
        let memories = vec![said(sentence(nth, 2)), said(sentence(nth, 3))];
        let began = Instant::now();
        store.remember_all(memories).await?;
        times.push(began.elapsed());
    }
    (measured.write_p50_us, measured.write_p95_us) = percentiles(times);
    store.close().await?;
    Ok(measured)
}

/// At which place an item is found, from 0.
async fn ask(store: &Store, asked: &str, id: MemoryId) -> Result<Option<usize>, CliError> {
    let query = MemoryQuery {
        text: Some(asked.to_owned()),
        least_trusted: Some(Label::Own),
        limit: 200,
        ..MemoryQuery::default()
    };
    let wanted = RecallOptions {
        limit: 10,
        least_trusted: Label::Own,
        strength_min: 20,
        events_before: None,
        now: SystemClock.now(),
    };
    let found = rank(&store.memories(query).await?, &wanted);
    Ok(found.iter().position(|item| item.id == id))
}

async fn fill(store: &Store, rows: u32, salt: u32) -> Result<(), CliError> {
    let mut next = 0;
    while next < rows {
        let upto = (next + BATCH).min(rows);
        let batch = (next..upto).map(|nth| said(sentence(nth, salt))).collect();
        store.remember_all(batch).await?;
        next = upto;
    }
    Ok(())
}

/// A sentence like those of others, of ten words with a number of its own.
fn sentence(nth: u32, salt: u32) -> String {
    let mut state = u64::from(nth) * 4 + u64::from(salt) + 1;
    let words: Vec<&str> = (0..10)
        .map(|_| {
            // A linear congruential generator, by Knuth's MMIX constants.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(state >> 33).unwrap_or(0) % WORDS.len();
            WORDS[at]
        })
        .collect();
    format!("Note {salt}-{nth}: {}.", words.join(" "))
}

fn said(text: String) -> NewMemory {
    NewMemory {
        tier: MemoryTier::Episodic,
        kind: "message".to_owned(),
        name: String::new(),
        body: Labelled::new(Label::Creator, "creator", text),
        strength: 80,
        turn: None,
        lasts: None,
    }
}

fn percentiles(mut times: Vec<std::time::Duration>) -> (u64, u64) {
    times.sort_unstable();
    let at = |percent: usize| {
        let time = times.get(times.len().saturating_sub(1) * percent / 100);
        time.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    };
    (at(50), at(95))
}

fn in_words(measured: &MemoryMeasurement) -> String {
    let MemoryMeasurement { rows, database_bytes, kinds, languages, .. } = measured;
    let mut lines =
        vec![format!("{rows} items, {} KiB of database", database_bytes / 1024), String::new()];
    let row = |(name, quality): (&String, &RecallQuality)| format!("{name:<12}{}", quality.words());
    lines.extend(kinds.iter().map(row));
    lines.push(String::new());
    lines.extend(languages.iter().map(row));
    lines.push(String::new());
    let MemoryMeasurement { search_p50_us, search_p95_us, write_p50_us, write_p95_us, .. } =
        measured;
    lines.push(format!("a search      p50 {search_p50_us:>7} us  p95 {search_p95_us:>7} us"));
    lines.push(format!("two writes    p50 {write_p50_us:>7} us  p95 {write_p95_us:>7} us"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_pairs_are_pairs_and_bad_ones_are_told_by_their_line() {
        let pairs: Vec<_> =
            PAIRS.lines().enumerate().map(|(at, line)| pair(at + 1, line).ok().unwrap()).collect();
        assert!(pairs.len() >= 90 && pairs.iter().any(|pair| pair.older.is_some()));
        let error = pair(3, "a\tb").err().unwrap().to_string();
        assert!(error.contains("line 3"), "{error}");
    }

    #[tokio::test]
    async fn what_was_said_is_found_among_others() {
        let dir = tempfile::tempdir().unwrap();
        let store =
            Store::open(&dir.path().join("state.db"), id_generator(), Arc::new(NoFaults)).unwrap();
        let pairs: Vec<_> =
            PAIRS.lines().enumerate().map(|(at, line)| pair(at + 1, line).ok().unwrap()).collect();
        let measured = measure(store, 500, &pairs).await.ok().unwrap();
        let english = measured.languages["en"];
        assert!(english.first_five * 100 >= english.asked * 75, "{english:?}");
    }
}
