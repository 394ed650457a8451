//! `bench memory`: how well the memory finds what it was told, and how fast.
//!
//! What was said, and the question that asks for it in other words, are pairs of files, anyone's
//! with `--pairs`; all of them are remembered among as many other events as are wanted, as messages
//! of the creator, and each question is answered as a turn's is: by its words, by what it means to
//! the built-in vectors or to a model of `--embeddings`, and by both. A pair's fact may have an
//! older one before it, which must not come first. Authors and languages are told apart. Times are
//! those of the store's own thread, without a model.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use automaton::cmd::{CommandContext, id_generator};
use automaton::error::CliError;
use automaton::home::make_directory;
use automaton::process;
use automaton_core::embedding::{Embedding, EmbeddingVector};
use automaton_core::faults::NoFaults;
use automaton_core::memory::{MemoryId, MemoryQuery, MemoryTier, NewMemory};
use automaton_core::time::{Clock, SystemClock};
use automaton_core::trust::{Label, Labelled};
use automaton_inference::{BuiltInEmbedder, Embedder, LocalEmbedder};
use automaton_memory::parts::embedded_texts;
use automaton_memory::recall::{RecallOptions, rank};
use automaton_store::Store;
use clap::Args;
use serde::Serialize;
use tokio::time::Instant;

use super::recall_pairs::{self, RecallPair};
use super::{own_pid, proc_number};

/// Other events that get a true vector; those of the rest point anywhere, since a text takes the
/// model some milliseconds.
const TRUE_VECTORS: usize = 1_000;

/// Events that are written in one transaction while the memory is filled.
const BATCH: u32 = 1_000;

/// Items that are written one by one, as a turn writes them.
const WRITES: u32 = 500;

/// Prefix of the other events.
const FILLER: &str = "Note";

/// Words of which the other events are made.
const WORDS: [&str; 40] = [
    "server", "invoice", "garden", "report", "customer", "index", "cable", "harbour", "meeting",
    "test", "release", "kitchen", "budget", "letter", "engine", "market", "photo", "ticket",
    "backup", "price", "window", "school", "river", "winter", "doctor", "printer", "contract",
    "train", "answer", "folder", "network", "password", "market", "monday", "sister", "project",
    "coffee", "station", "weather", "machine",
];

/// Arguments of the bench.
#[derive(Debug, Args)]
pub(crate) struct BenchMemoryArgs {
    /// Other events that are remembered beside the pairs
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=2_000_000))]
    rows: u32,
    /// Pairs of your own, a file for each author: kind, language, what was said and the question,
    /// with tabs between them; without a question it is remembered and never asked for. What others
    /// said begins with who it was: [peer anna]
    #[arg(long)]
    pairs: Vec<PathBuf>,
    /// The folder of an embedding model, in place of the built-in vectors
    #[arg(long, value_name = "FOLDER")]
    embeddings: Option<PathBuf>,
    /// Look by words alone
    #[arg(long, conflicts_with = "embeddings")]
    words: bool,
}

/// Embedder, and the number of other events that it gets.
struct MeasuredEmbedder<'a> {
    embedder: &'a dyn Embedder,
    true_vectors: usize,
}

const BUILT_IN: MeasuredEmbedder<'static> =
    MeasuredEmbedder { embedder: &BuiltInEmbedder, true_vectors: usize::MAX };

/// By what it is looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecallMode {
    Words,
    Vectors,
    Fused,
}

/// Share of expected items in first place, among the first five and the first ten.
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

/// Quality of each search mode.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct QualityByMode {
    words: RecallQuality,
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors: Option<RecallQuality>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fused: Option<RecallQuality>,
}

impl QualityByMode {
    fn add(&mut self, mode: RecallMode, place: Option<usize>) {
        match mode {
            RecallMode::Words => self.words.add(place),
            RecallMode::Vectors => self.vectors.get_or_insert_default().add(place),
            RecallMode::Fused => self.fused.get_or_insert_default().add(place),
        }
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let rows = [("words", Some(self.words)), ("vectors", self.vectors), ("fused", self.fused)];
        let row = |(mode, quality): (&str, Option<RecallQuality>)| {
            Some(format!("{name:<12} {mode:<8} {}", quality?.words()))
        };
        rows.into_iter().filter_map(row).collect()
    }
}

/// The median, and what one in twenty takes longer than, in microseconds.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct BenchLatency {
    p50_us: u64,
    p95_us: u64,
}

impl BenchLatency {
    fn from_times(mut times: Vec<std::time::Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let time = times.get(times.len().saturating_sub(1) * percent / 100);
            time.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
        };
        Self { p50_us: at(50), p95_us: at(95) }
    }

    fn line(self, what: &str) -> String {
        format!("{what:<22} p50 {:>7} us  p95 {:>7} us", self.p50_us, self.p95_us)
    }
}

/// Results.
#[derive(Debug, Default, Serialize)]
struct MemoryMeasurement {
    rows: u64,
    database_bytes: u64,
    /// By author and by kind, of the first language, which is English in ours.
    authors: BTreeMap<String, QualityByMode>,
    kinds: BTreeMap<String, QualityByMode>,
    all: QualityByMode,
    /// By language, all kinds.
    languages: BTreeMap<String, QualityByMode>,
    words: BenchLatency,
    #[serde(skip_serializing_if = "Option::is_none")]
    fused: Option<BenchLatency>,
    /// Until a question has its vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<BenchLatency>,
    two_writes: BenchLatency,
    /// The most memory that the process had, with the embedding model, in KiB.
    peak_kib: u64,
}

/// Measures, and tells.
///
/// # Errors
/// When a pair is none, or the database cannot be made.
pub(super) fn run(context: &CommandContext, args: &BenchMemoryArgs) -> Result<(), CliError> {
    let pairs = recall_pairs::read(&args.pairs)?;
    let scratch = context.scratch()?;
    let home = scratch.home();
    let failed = |error| CliError::internal("cannot make a memory to measure", &error);
    make_directory(&home).map_err(failed)?;
    let database = home.join("state.db");
    let store = Store::open(&database, id_generator(), Arc::new(NoFaults))?;
    let model = args.embeddings.clone().map(|folder| LocalEmbedder::new(folder, None));
    let embedder = match &model {
        Some(model) => MeasuredEmbedder { embedder: model, true_vectors: TRUE_VECTORS },
        None => BUILT_IN,
    };
    let work = measure(store, args.rows, &pairs, (!args.words).then_some(&embedder));
    let mut measured = process::runtime()?.block_on(work)?;
    measured.database_bytes = fs::metadata(&database).map_or(0, |file| file.len());
    measured.peak_kib = proc_number(own_pid(), "status", "VmHWM:").unwrap_or(0);
    context.format.answer(&measured, || in_words(&measured))
}

async fn measure(
    store: Store,
    rows: u32,
    pairs: &[RecallPair],
    embedder: Option<&MeasuredEmbedder<'_>>,
) -> Result<MemoryMeasurement, CliError> {
    fill(&store, rows / 2, 0).await?;
    for older in pairs.iter().filter_map(|pair| pair.older.as_ref()) {
        store.remember(creator_memory(older.clone())).await?;
    }
    let mut ids: Vec<MemoryId> = Vec::new();
    for pair in pairs {
        let body = Labelled::new(pair.label, &pair.source, pair.said.clone());
        let memory = NewMemory { body, ..creator_memory(String::new()) };
        ids.push(store.remember(memory).await?.id());
    }
    fill(&store, rows - rows / 2, 1).await?;
    let mut measured =
        MemoryMeasurement { rows: store.count_memories().await?, ..MemoryMeasurement::default() };
    let mut meant = vec![None; pairs.len()];
    if let Some(embedder) = embedder {
        embed_all(&store, embedder).await?;
        let mut times = Vec::new();
        for (meant, pair) in meant.iter_mut().zip(pairs).filter(|(_, pair)| pair.is_asked()) {
            let began = Instant::now();
            let found = embedder.embedder.embed(vec![pair.asked.clone()]).await?;
            times.push(began.elapsed());
            *meant = found.into_first();
        }
        measured.question = Some(BenchLatency::from_times(times));
    }
    let modes: &[RecallMode] = match embedder {
        Some(_) => &[RecallMode::Words, RecallMode::Vectors, RecallMode::Fused],
        None => &[RecallMode::Words],
    };
    let first = pairs.first().map(|pair| pair.language.clone()).unwrap_or_default();
    for mode in modes {
        let mut times = Vec::new();
        let all = pairs.iter().zip(&ids).zip(&meant);
        for ((pair, id), meant) in all.filter(|((pair, _), _)| pair.is_asked()) {
            let began = Instant::now();
            let place = ask(&store, *mode, pair, meant.as_ref(), *id).await?;
            times.push(began.elapsed());
            measured.languages.entry(pair.language.clone()).or_default().add(*mode, place);
            if pair.language == first {
                measured.all.add(*mode, place);
                measured.kinds.entry(pair.kind.clone()).or_default().add(*mode, place);
                measured.authors.entry(pair.author.clone()).or_default().add(*mode, place);
            }
        }
        match mode {
            RecallMode::Words => measured.words = BenchLatency::from_times(times),
            RecallMode::Vectors => {}
            RecallMode::Fused => measured.fused = Some(BenchLatency::from_times(times)),
        }
    }
    let mut times = Vec::new();
    for nth in 0..WRITES {
        let memories = vec![creator_memory(sentence(nth, 2)), creator_memory(sentence(nth, 3))];
        let began = Instant::now();
        store.remember_all(memories).await?;
        times.push(began.elapsed());
    }
    measured.two_writes = BenchLatency::from_times(times);
    store.close().await?;
    Ok(measured)
}

/// Gives all that is remembered a vector.
async fn embed_all(store: &Store, measured: &MeasuredEmbedder<'_>) -> Result<(), CliError> {
    let MeasuredEmbedder { embedder, true_vectors } = *measured;
    let model = embedder.embed(Vec::new()).await?.model;
    let one = embedder.embed(vec![FILLER.to_owned()]).await?.vectors;
    let dimensions = one.first().map_or(0, EmbeddingVector::dimensions);
    let mut fillers = 0;
    loop {
        let items = store.without_vector(model.clone(), BATCH).await?;
        let Some(last) = items.last().map(|item| item.id) else { return Ok(()) };
        let mut vectors = Vec::new();
        for item in &items {
            let is_filler = is_filler(&item.body.text);
            fillers += usize::from(is_filler);
            let made = match is_filler && fillers > true_vectors {
                true => vec![anywhere(item.id, dimensions)],
                false => embedder.embed(embedded_texts(item)).await?.vectors,
            };
            vectors.extend(made.into_iter().map(|vector| (item.id, vector)));
        }
        store.keep_vectors(model.clone(), last, vectors).await?;
    }
}

/// A direction that nothing chose, of so many numbers.
fn anywhere(id: MemoryId, dimensions: usize) -> EmbeddingVector {
    let mut state = id.0.cast_unsigned();
    let next = || {
        state = next_of(state);
        // The highest byte of the state.
        state.to_be_bytes()[0].cast_signed()
    };
    EmbeddingVector::new(std::iter::repeat_with(next).take(dimensions).collect())
}

/// At which place an item is found, from 0.
async fn ask(
    store: &Store,
    mode: RecallMode,
    pair: &RecallPair,
    meant: Option<&Embedding>,
    id: MemoryId,
) -> Result<Option<usize>, CliError> {
    let query = MemoryQuery {
        text: (mode != RecallMode::Vectors).then(|| pair.asked.clone()),
        embedding: meant.filter(|_| mode != RecallMode::Words).cloned(),
        least_trusted: Some(pair.label.meet(Label::Own)),
        limit: 200,
        ..MemoryQuery::default()
    };
    let wanted = RecallOptions {
        limit: 10,
        least_trusted: pair.label.meet(Label::Own),
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
        let batch = (next..upto).map(|nth| creator_memory(sentence(nth, salt))).collect();
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
            state = next_of(state);
            let at = usize::try_from(state >> 33).unwrap_or(0) % WORDS.len();
            WORDS[at]
        })
        .collect();
    format!("{FILLER} {salt}-{nth}: {}.", words.join(" "))
}

/// Returns true if a text is one of these sentences.
fn is_filler(text: &str) -> bool {
    text.starts_with(FILLER)
}

/// The next state of a linear congruential generator, by Knuth's MMIX constants.
const fn next_of(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

fn creator_memory(text: String) -> NewMemory {
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

fn in_words(measured: &MemoryMeasurement) -> String {
    let MemoryMeasurement { rows, database_bytes, authors, kinds, languages, .. } = measured;
    let mut lines = vec![format!("{rows} items, {} KiB of database", database_bytes / 1024)];
    for table in [kinds, authors, languages] {
        lines.push(String::new());
        lines.extend(table.iter().flat_map(|(name, quality)| quality.lines(name)));
    }
    lines.push(String::new());
    lines.extend(measured.all.lines("all"));
    lines.push(String::new());
    lines.push(measured.words.line("a search by words"));
    lines.extend(measured.fused.map(|times| times.line("by words and vectors")));
    lines.extend(measured.question.map(|times| times.line("a question's vector")));
    lines.push(measured.two_writes.line("two writes"));
    lines.push(format!("at most {} MiB of memory", measured.peak_kib / 1024));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_said_is_found_among_others() {
        let dir = tempfile::tempdir().unwrap();
        let store =
            Store::open(&dir.path().join("state.db"), id_generator(), Arc::new(NoFaults)).unwrap();
        let pairs = recall_pairs::read(&[]).unwrap();
        let measured = measure(store, 500, &pairs, Some(&BUILT_IN)).await.unwrap();
        // Most of the others' questions share no word with what they ask for.
        let first = measured.authors["first"];
        // Endings, compounds and umlauts of German; who said it.
        let german = measured.languages["de"].words;
        let of_kind = |kind: &str| measured.kinds[kind].words;
        for (found, percent) in [
            (first.words, 85),
            (first.fused.unwrap(), 93),
            (german, 85),
            (of_kind("source"), 95),
            (measured.all.words, 33),
            (measured.all.fused.unwrap(), 50),
        ] {
            assert!(found.first_five * 100 >= found.asked * percent, "{found:?}");
        }
        // Of other languages words find as much as they did.
        let spanish = measured.languages["es"];
        assert_eq!(spanish.fused.unwrap().first_five, spanish.words.first_five);
    }
}
