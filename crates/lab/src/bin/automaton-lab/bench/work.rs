//! `bench work`: what a model gets done, by its window.
//!
//! Each task has a solver that knows nothing but what the request shows, so that a task
//! that is not solved is one for which the runtime did not show enough, or did not let the
//! model work long enough.

use std::collections::BTreeMap;

use automaton::cmd::CommandContext;
use automaton::error::CliError;
use automaton::process::runtime;
use automaton::role::usual_limits;
use automaton::ui::Format;
use automaton_core::money::Microcents;
use automaton_lab::work::{
    self as lab, CommandHost, WorkConditions, WorkMeasurement, WorkMemory, WorkTask,
};
use clap::Args;
use serde::Serialize;

use crate::product;

/// The windows that are measured, in tokens.
const WINDOWS: [u32; 4] = [8_192, 32_768, 131_072, 400_000];

/// Arguments of the bench.
#[derive(Debug, Args)]
pub(crate) struct BenchWorkArgs {
    /// One task, by its name; may be given more than once [default: all]
    #[arg(long = "task", value_name = "NAME")]
    tasks: Vec<String>,
    /// A window in tokens; may be given more than once [default: 8192, 32768, 131072, 400000]
    #[arg(long = "window", value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1024..=2_000_000))]
    windows: Vec<u32>,
    /// The model whose prices and dialect hold; one that the catalogue does not name is dear
    #[arg(long, value_name = "ID", default_value = lab::USUAL_MODEL)]
    model: String,
    /// Show the model nothing of what the runtime remembers
    #[arg(long)]
    without_memory: bool,
    /// Name no budget: the limits are those of an automaton.json that says nothing of them
    #[arg(long)]
    defaults: bool,
    /// Name the tasks and measure nothing
    #[arg(long)]
    list: bool,
    /// Fail when a task is not solved
    #[arg(long)]
    require: bool,
}

/// A task without what is made of it.
#[derive(Debug, Serialize)]
struct WorkTaskSummary {
    name: &'static str,
    what: &'static str,
}

/// Measures, and tells.
///
/// # Errors
/// When a name is no task's, no life can be led here, or a task is not solved that has to be.
pub(super) fn run(context: &CommandContext, args: &BenchWorkArgs) -> Result<(), CliError> {
    let tasks = chosen(&args.tasks)?;
    if args.list {
        let named = tasks.iter().map(|task| WorkTaskSummary { name: task.name, what: task.what });
        for named in named {
            context.format.answer(&named, || format!("{:<16} {}", named.name, named.what))?;
        }
        return Ok(());
    }
    let windows = if args.windows.is_empty() { &WINDOWS[..] } else { &args.windows };
    let machine = CommandHost::new(product()?);
    let runtime = runtime()?;
    let memory = if args.without_memory { WorkMemory::Hidden } else { WorkMemory::Shown };
    let (limits, budgets) = if args.defaults { usual_limits()? } else { lab::named_limits() };
    let mut all = Vec::new();
    for task in tasks {
        for window in windows {
            let model = args.model.as_str();
            let conditions = WorkConditions { model, window: *window, memory, limits, budgets };
            let measured = runtime.block_on(lab::measure(task, conditions, &machine));
            let measured = measured
                .map_err(|error| CliError::internal("cannot lead a life to work", &error))?;
            context.format.answer(&measured, || words(&measured))?;
            all.push(measured);
        }
    }
    let unsolved = all.iter().filter(|measured| !measured.solved).count();
    if matches!(context.format, Format::Text) {
        context.format.answer(&(), || summary(&all))?;
    }
    match unsolved {
        0 => Ok(()),
        _ if !args.require => Ok(()),
        _ => Err(CliError::user(format!("{unsolved} of {} were not solved", all.len()))),
    }
}

/// The tasks with these names, or all.
fn chosen(names: &[String]) -> Result<Vec<&'static WorkTask>, CliError> {
    if names.is_empty() {
        return Ok(lab::all().collect());
    }
    let find = |name: &String| {
        let known = || lab::all().map(|task| task.name).collect::<Vec<_>>().join(", ");
        lab::all().find(|task| task.name == name).ok_or_else(|| {
            CliError::user(format!("there is no task `{name}`"))
                .hint(format!("one of: {}", known()))
        })
    };
    names.iter().map(find).collect()
}

fn words(measured: &WorkMeasurement) -> String {
    let WorkMeasurement { task, window, turns, prompt_tokens, cached_tokens, .. } = measured;
    let solved = if measured.solved { "solved" } else { "NOT   " };
    let thousands = |tokens: u64| tokens.div_ceil(1000);
    let mut line = format!(
        "{task:<16} {:>4}k {solved} {turns:>4} turns {:>6}k in ({:>5}k cached) {:>4}k out {:>6} {:>6} ms",
        window.div_ceil(1024),
        thousands(*prompt_tokens),
        thousands(*cached_tokens),
        thousands(measured.completion_tokens),
        dollars(measured.cost),
        measured.took_ms,
    );
    if measured.rested_s > 0 {
        line.push_str(&format!(", rested {} min", measured.rested_s / 60));
    }
    if measured.overruns > 0 {
        line.push_str(&format!(", {} requests over the window", measured.overruns));
    }
    if !measured.solved {
        let ended = measured.ended.map_or("it did not end", |reason| reason.sentence());
        for why in measured
            .missing
            .iter()
            .map(|it| format!("it missed {it}"))
            .chain(measured.lacks.iter().cloned().chain([ended.to_owned()]))
        {
            line.push_str(&format!("\n                       {why}"));
        }
    }
    line
}

/// An amount in whole cents, rounded up.
fn dollars(amount: Microcents) -> String {
    let cents = amount.cents_ceil();
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// The sums of all tasks at one window.
#[derive(Default)]
struct WindowTotals {
    solved: usize,
    tasks: usize,
    turns: u64,
    tokens: u64,
    cost_units: i64,
}

/// Returns the number of solved tasks at each window.
fn summary(all: &[WorkMeasurement]) -> String {
    let mut windows: BTreeMap<u32, WindowTotals> = BTreeMap::new();
    for measured in all {
        let row = windows.entry(measured.window).or_default();
        row.solved += usize::from(measured.solved);
        row.tasks += 1;
        row.turns += measured.turns;
        row.tokens += measured.prompt_tokens + measured.completion_tokens;
        row.cost_units = row.cost_units.saturating_add(measured.cost.units());
    }
    let rows = windows.iter().map(|(window, row)| {
        let WindowTotals { solved, tasks, turns, tokens, cost_units } = row;
        let cost = dollars(Microcents::new(*cost_units));
        format!(
            "{window:>7} tokens: {solved} of {tasks} solved, {turns} turns, {tokens} tokens, {cost}"
        )
    });
    rows.collect::<Vec<_>>().join("\n")
}
