//! `bench model --tasks`: small jobs that the configured model does in a home of its own.
//!
//! Each job is done by the real program: its prompt, its tools, its sandbox. A job is solved if
//! the files or the answer are as they have to be, whatever the model says of its work. The home
//! of the caller is read for its brain alone, and never written.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use automaton::cmd::CommandContext;
use automaton::config::file::FILE_NAME;
use automaton::error::CliError;
use automaton::ui::{self, Format};
use automaton_core::event::Event;
use automaton_testkit::world::World;
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::product;

const TASKS: &str = include_str!("../../../../assets/bench/model_tasks.json");

/// Turns that a job may take.
const TURNS_MAX: &str = "10";
/// Time that a job may take.
const TIME_MAX: Duration = Duration::from_secs(900);

/// A job.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelTask {
    name: String,
    /// The creator's message.
    ask: String,
    /// Files of the workspace before it, by name.
    files: BTreeMap<String, String>,
    check: TaskCheck,
}

/// Conditions that all hold if a job is solved.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskCheck {
    /// A file that is there.
    file: Option<String>,
    /// All numbers that stand in the file, in order.
    numbers: Option<Vec<i64>>,
    /// A pattern that the file's text has.
    matches: Option<String>,
    /// A file that is gone.
    gone: Option<String>,
    /// A pattern that the answer to the creator has.
    answer: Option<String>,
}

/// The outcome of one job.
#[derive(Debug, Serialize)]
struct TaskOutcome {
    task: String,
    solved: bool,
    /// Missing results, if it is not solved.
    lacks: Vec<String>,
    turns: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    completion_tokens: u64,
    seconds: u64,
}

/// All outcomes.
#[derive(Debug, Serialize)]
struct ModelTasksReport {
    solved: usize,
    tasks: Vec<TaskOutcome>,
}

/// Has the model of the caller's home do each job, and tells which are solved.
///
/// # Errors
/// When the caller's home names no brain, there is no such job, or no home can be made for one.
pub(super) fn run(context: &CommandContext, names: &[String]) -> Result<(), CliError> {
    let tasks = chosen_tasks(names)?;
    let brain = configured_brain(&context.inhabited_folder()?.join(FILE_NAME))?;
    let mut outcomes = Vec::new();
    for task in &tasks {
        let outcome = run_task(task, &brain)?;
        if context.format == Format::Text {
            ui::say(&line(&outcome));
        }
        outcomes.push(outcome);
    }
    let solved = outcomes.iter().filter(|outcome| outcome.solved).count();
    let report = ModelTasksReport { solved, tasks: outcomes };
    context.format.answer(&report, || format!("{solved} of {} solved", report.tasks.len()))
}

fn chosen_tasks(names: &[String]) -> Result<Vec<ModelTask>, CliError> {
    let all: Vec<ModelTask> = serde_json::from_str(TASKS)
        .map_err(|error| CliError::internal("the built-in jobs cannot be read", &error))?;
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|task| task.name != **name)) {
        let known: Vec<&str> = all.iter().map(|task| task.name.as_str()).collect();
        return Err(CliError::user(format!("there is no job '{unknown}'"))
            .hint(format!("one of: {}", known.join(", "))));
    }
    Ok(all.into_iter().filter(|task| names.is_empty() || names.contains(&task.name)).collect())
}

/// Returns the `brain` of a configuration.
fn configured_brain(file: &Path) -> Result<Value, CliError> {
    let shown = file.display();
    let text = fs::read_to_string(file)
        .map_err(|error| CliError::user(format!("cannot read {shown}")).because(&error))?;
    let config: Value = serde_json::from_str(&text)
        .map_err(|error| CliError::user(format!("{shown} is no JSON")).because(&error))?;
    config.get("brain").cloned().ok_or_else(|| {
        CliError::user(format!("{shown} names no `brain`")).hint(
            "start it once with `automaton up --model FILE` or `--brain URL --brain-model NAME`",
        )
    })
}

fn run_task(task: &ModelTask, brain: &Value) -> Result<TaskOutcome, CliError> {
    let world = World::new(product()?)?;
    let config = json!({
        "name": "bench",
        "genesisPrompt": "Do what your creator asks, and rest when it is done.",
        "brain": brain,
    });
    world.write_home(FILE_NAME, &config.to_string())?;
    let workspace = world.home().join("workspace");
    fs::create_dir(&workspace).map_err(|error| CliError::internal("a workspace", &error))?;
    for (name, text) in &task.files {
        fs::write(workspace.join(name), text)
            .map_err(|error| CliError::internal("a file of a job", &error))?;
    }
    let began = Instant::now();
    let run = world.up(&["--direct", "--turns", TURNS_MAX, "--ask", &task.ask])?;
    let ended = run.finish_within(TIME_MAX)?;
    let mut outcome = TaskOutcome {
        task: task.name.clone(),
        solved: false,
        lacks: Vec::new(),
        turns: 0,
        prompt_tokens: 0,
        cached_tokens: 0,
        completion_tokens: 0,
        seconds: began.elapsed().as_secs(),
    };
    let mut answer = String::new();
    for stamped in ended.events {
        match stamped.event {
            Event::InferenceCompleted {
                prompt_tokens, cached_tokens, completion_tokens, ..
            } => {
                outcome.turns += 1;
                outcome.prompt_tokens += u64::from(prompt_tokens);
                outcome.cached_tokens += u64::from(cached_tokens);
                outcome.completion_tokens += u64::from(completion_tokens);
            }
            Event::MessageSent { body, .. } => {
                answer.push_str(&body.text);
                answer.push('\n');
            }
            _ => {}
        }
    }
    outcome.lacks = unmet(&task.check, &workspace, &answer)?;
    outcome.solved = outcome.lacks.is_empty();
    Ok(outcome)
}

/// Returns a sentence for each condition that does not hold.
fn unmet(check: &TaskCheck, workspace: &Path, answer: &str) -> Result<Vec<String>, CliError> {
    let mut lacks = Vec::new();
    if let Some(name) = &check.file {
        match fs::read_to_string(workspace.join(name)) {
            Err(error) => lacks.push(format!("{name}: {error}")),
            Ok(text) => lacks.extend(unmet_in_file(check, name, &text)?),
        }
    }
    if let Some(name) = check.gone.as_deref().filter(|name| workspace.join(name).exists()) {
        lacks.push(format!("{name} is still there"));
    }
    if let Some(wanted) = &check.answer
        && !pattern(wanted)?.is_match(answer)
    {
        lacks.push(format!("the answer was: {:?}", shorten(answer)));
    }
    Ok(lacks)
}

fn unmet_in_file(check: &TaskCheck, name: &str, text: &str) -> Result<Option<String>, CliError> {
    let numbers = || {
        let words = text.split(|c: char| !c.is_ascii_digit() && c != '-');
        // silent-ok: a word that is no number is passed over.
        words.filter_map(|word| word.parse::<i64>().ok()).collect::<Vec<_>>()
    };
    let has_numbers = check.numbers.as_ref().is_none_or(|wanted| numbers() == *wanted);
    let has_pattern = match &check.matches {
        Some(wanted) => pattern(wanted)?.is_match(text),
        None => true,
    };
    Ok((!has_numbers || !has_pattern).then(|| format!("{name} has: {:?}", shorten(text))))
}

fn pattern(text: &str) -> Result<Regex, CliError> {
    Regex::new(text).map_err(|error| CliError::internal("a pattern of a job", &error))
}

/// Returns the beginning of a text, for one line of a report.
fn shorten(text: &str) -> String {
    const CHARS_MAX: usize = 120;
    text.trim().chars().take(CHARS_MAX).collect()
}

fn line(outcome: &TaskOutcome) -> String {
    let TaskOutcome { task, turns, prompt_tokens, cached_tokens, completion_tokens, .. } = outcome;
    let mark = if outcome.solved { "solved" } else { "NOT   " };
    let mut line = format!(
        "{mark} {task:<14} {:>4} s {turns:>3} turns, read {prompt_tokens} ({cached_tokens} cached), \
         wrote {completion_tokens}",
        outcome.seconds
    );
    for lack in &outcome.lacks {
        line.push_str(&format!("\n         {lack}"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_is_unsolved_at_first_and_has_a_name_of_its_own() {
        let tasks = chosen_tasks(&[]).unwrap();
        assert_eq!(tasks.len(), 13);
        for task in &tasks {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in &task.files {
                fs::write(folder.path().join(name), text).unwrap();
            }
            assert_ne!(unmet(&task.check, folder.path(), "").unwrap(), [""; 0], "{}", task.name);
            let same = tasks.iter().filter(|other| other.name == task.name).count();
            assert_eq!(same, 1, "{}", task.name);
        }
    }

    #[test]
    fn a_job_is_solved_by_its_files_and_its_answer() {
        let folder = tempfile::tempdir().unwrap();
        let check = |name: &str, answer: &str| {
            let tasks = chosen_tasks(&[name.to_owned()]).unwrap();
            unmet(&tasks[0].check, folder.path(), answer).unwrap()
        };
        fs::write(folder.path().join("total.txt"), "Sum: 1832\n").unwrap();
        assert_eq!(check("sum", "Done."), [""; 0]);
        fs::write(folder.path().join("total.txt"), "1831\n").unwrap();
        assert_eq!(check("sum", "1832"), ["total.txt has: \"1831\""]);
        assert_eq!(check("count-lines", "It has 7 lines."), [""; 0]);
        assert_eq!(check("count-lines", "17"), ["the answer was: \"17\""]);
        fs::write(folder.path().join("final.txt"), "All is said.").unwrap();
        fs::write(folder.path().join("draft.txt"), "").unwrap();
        assert_eq!(check("rename", ""), ["draft.txt is still there"]);
    }

    #[test]
    fn an_unknown_job_is_refused_with_the_names_of_all() {
        let refused = chosen_tasks(&["prime".to_owned()]).unwrap_err();
        assert!(refused.to_string().contains("there is no job 'prime'"), "{refused}");
    }
}
