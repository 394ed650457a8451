//! `bench model`: how well a model chooses tools, on questions that each have one right call.
//!
//! Nothing that it calls is run, and nothing is written into any record: what the answers cost is
//! its caller's, told at the end, and bounded before each question.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use automaton::cmd::CommandContext;
use automaton::cmd::model::configured_model;
use automaton::error::CliError;
use automaton::process::runtime;
use automaton::ui::{self, Format};
use automaton_agent::{OfferRules, ToolSet};
use automaton_core::money::Microcents;
use automaton_core::tool::ToolSpec;
use automaton_inference::{
    CompletionRequest, InferenceError, Message, NoTokenSink, Provider, RawCall,
};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::model_tasks;
use crate::product;

const QUESTIONS: &str = include_str!("../../../../assets/bench/questions.jsonl");
const RULES: &str = include_str!("../../../../assets/bench/rules.md");

/// The longest file of questions that is read, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// The most tokens of an answer.
const ANSWER_TOKENS: u32 = 512;

/// Arguments of `bench model`.
#[derive(Debug, Args)]
pub(crate) struct ModelBenchArgs {
    /// A file of questions: one JSON object a line, with `ask`, `tool` and `arguments`
    /// [default: 45 questions over all tools]
    #[arg(long, value_name = "FILE")]
    questions: Option<PathBuf>,
    /// The most that the answers may cost together
    #[arg(long, value_name = "CENTS", default_value_t = 100)]
    max_cents: u32,
    /// Have the model do thirteen small jobs instead, each in a home of its own, and tell which
    /// are solved
    #[arg(long, conflicts_with_all = ["questions", "max_cents"])]
    tasks: bool,
    /// One job, by its name; may be given more than once [default: all]
    #[arg(long = "task", value_name = "NAME", requires = "tasks")]
    task_names: Vec<String>,
}

/// A question with its one right call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolQuestion {
    ask: String,
    tool: String,
    /// Expected arguments: a value, or `contains` or `ends` with a text.
    arguments: Map<String, Value>,
}

/// Grade of one answer.
#[derive(Debug, Serialize)]
struct GradedAnswer {
    ask: String,
    wanted: String,
    /// The tool that was called.
    called: Option<String>,
    /// True if the call fits its tool's schema.
    valid: bool,
    /// True for the right tool, and for its right arguments.
    tool: bool,
    arguments: bool,
    /// Failure, if there was no answer at all.
    failed: Option<String>,
    ms: i64,
}

/// A model's words, on one line and without control characters.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Results of a model.
#[derive(Debug, Serialize)]
struct ModelBenchReport {
    model: String,
    tools: usize,
    questions: usize,
    calls: usize,
    valid: usize,
    right_tool: usize,
    right_arguments: usize,
    /// Questions whose tool the model is not offered.
    not_offered: usize,
    cost: Microcents,
    median_ms: i64,
    answers: Vec<GradedAnswer>,
}

/// Asks the configured model all questions.
pub(crate) fn run(context: &CommandContext, args: &ModelBenchArgs) -> Result<(), CliError> {
    if args.tasks {
        return model_tasks::run(context, &args.task_names);
    }
    let questions = questions(args.questions.as_deref())?;
    let report = runtime()?.block_on(async {
        let model = configured_model(context, product()?).await?;
        let most = Microcents::new(i64::from(args.max_cents) * Microcents::PER_CENT);
        ask_all(&*model, &questions, most, context.format).await
    })?;
    context.format.answer(&report, || in_words(&report))
}

fn questions(path: Option<&Path>) -> Result<Vec<ToolQuestion>, CliError> {
    let text = match path {
        None => QUESTIONS.to_owned(),
        Some(path) => {
            let shown = path.display();
            let unreadable = |error| CliError::user(format!("cannot read {shown}")).because(&error);
            if std::fs::metadata(path).map_err(unreadable)?.len() > BYTES_MAX {
                return Err(CliError::user(format!("{shown} has more than {BYTES_MAX} bytes")));
            }
            std::fs::read_to_string(path).map_err(unreadable)?
        }
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let questions: Vec<_> = lines
        .map(|(nth, line)| {
            serde_json::from_str(line).map_err(|error| {
                CliError::user(format!("line {} is no question: {error}", nth + 1)).hint(
                    "write {\"ask\": TEXT, \"tool\": NAME, \"arguments\": {NAME: VALUE, …}} on one line",
                )
            })
        })
        .collect::<Result<_, _>>()?;
    if questions.is_empty() { Err(CliError::user("there are no questions")) } else { Ok(questions) }
}

async fn ask_all(
    model: &dyn Provider,
    questions: &[ToolQuestion],
    most: Microcents,
    format: Format,
) -> Result<ModelBenchReport, CliError> {
    // As for one that has money, so that all tools are there.
    let set = ToolSet::built_in()?;
    let rules = OfferRules { has_money: true, network: None };
    let tools: Arc<[ToolSpec]> = set.available(model.model(), &rules).into();
    let mut cost = Microcents::ZERO;
    let mut answers = Vec::new();
    for question in questions {
        let ask = CompletionRequest {
            messages: vec![
                Message::system(RULES.trim()).into(),
                Message::user(&question.ask).into(),
            ],
            tools: Arc::clone(&tools),
            left_out: Vec::new(),
            max_tokens: ANSWER_TOKENS,
            seed: 1,
            temperature_milli: 0,
            name: None,
            silence: None,
        };
        let next = automaton_agent::at_most(model.model(), &ask)
            .map_err(|error| CliError::internal("the price cannot be counted", &error))?;
        if cost.plus(next).is_ok_and(|sum| sum > most) {
            let what = format!("the next answer may cost {next}, and {cost} of {most} are spent");
            return Err(CliError::user(what).hint("--max-cents says what all may cost"));
        }
        let (graded, paid) = graded(model, &set, question, &ask).await?;
        cost = cost.plus(paid).map_err(|error| CliError::internal("the cost", &error))?;
        if format == Format::Text {
            ui::say(&line(&graded));
        }
        answers.push(graded);
    }
    Ok(report(model, &tools, cost, answers))
}

async fn graded(
    model: &dyn Provider,
    set: &ToolSet,
    question: &ToolQuestion,
    ask: &CompletionRequest,
) -> Result<(GradedAnswer, Microcents), InferenceError> {
    let ToolQuestion { ask: asked, tool, arguments } = question;
    let mut graded = GradedAnswer {
        ask: asked.clone(),
        wanted: tool.clone(),
        called: None,
        valid: false,
        tool: false,
        arguments: false,
        failed: None,
        ms: 0,
    };
    let answered = match model.complete(ask, &NoTokenSink).await {
        Ok(answered) => answered,
        // What a person has to mend, no further question changes.
        Err(error) if error.tries_max() == 1 => return Err(error),
        Err(error) => {
            graded.failed = Some(error.outline().to_owned());
            return Ok((graded, Microcents::ZERO));
        }
    };
    graded.ms = answered.usage.total_ms;
    if let Some(call) = answered.calls.first() {
        graded.called = Some(call.tool.clone());
        graded.tool = call.tool == *tool;
        let read = read(set, &ask.tools, call);
        graded.valid = read.is_some();
        graded.arguments =
            graded.tool && read.is_some_and(|read| arguments.iter().all(|it| fits(&read, it)));
    }
    Ok((graded, answered.usage.cost))
}

/// The arguments of a call that fits its tool's schema.
fn read(set: &ToolSet, offered: &[ToolSpec], call: &RawCall) -> Option<Value> {
    // silent-ok: a call that does not fit is counted as one.
    set.parse_call(offered, call).ok().map(|parsed| parsed.checked.arguments)
}

/// Returns true if an argument is the expected one.
fn fits(said: &Value, (name, wanted): (&String, &Value)) -> bool {
    let said = said.get(name).unwrap_or(&Value::Null);
    let text = |value: &Value| value.as_str().map(str::to_lowercase);
    match (wanted.get("contains").and_then(text), wanted.get("ends").and_then(text)) {
        (Some(part), _) => text(said).is_some_and(|said| said.contains(&part)),
        (_, Some(end)) => text(said).is_some_and(|said| said.trim_end_matches('/').ends_with(&end)),
        (None, None) => said == wanted,
    }
}

fn report(
    model: &dyn Provider,
    tools: &[ToolSpec],
    cost: Microcents,
    answers: Vec<GradedAnswer>,
) -> ModelBenchReport {
    let count = |is: fn(&GradedAnswer) -> bool| answers.iter().filter(|it| is(it)).count();
    let is_offered = |it: &&GradedAnswer| tools.iter().any(|tool| tool.name.as_str() == it.wanted);
    let mut times: Vec<i64> = answers.iter().map(|it| it.ms).collect();
    times.sort_unstable();
    ModelBenchReport {
        model: model.model().id.to_string(),
        tools: tools.len(),
        questions: answers.len(),
        calls: count(|it| it.called.is_some()),
        valid: count(|it| it.valid),
        right_tool: count(|it| it.tool),
        right_arguments: count(|it| it.arguments),
        not_offered: answers.len() - answers.iter().filter(is_offered).count(),
        cost,
        median_ms: times.get(times.len() / 2).copied().unwrap_or_default(),
        answers,
    }
}

fn line(graded: &GradedAnswer) -> String {
    let GradedAnswer { ask, wanted, called, valid, tool, arguments, failed, .. } = graded;
    let mark = if *arguments { "right  " } else { "wrong  " };
    let why = match (failed, called) {
        (Some(why), _) => plain(why),
        (None, None) => "no call".to_owned(),
        (None, Some(called)) if !tool => format!("{} called", plain(called)),
        (None, Some(_)) if !valid => "arguments that the tool does not take".to_owned(),
        (None, Some(_)) if !arguments => "other arguments".to_owned(),
        (None, Some(_)) => String::new(),
    };
    let why = if why.is_empty() { why } else { format!(" ({why})") };
    format!("{mark} {wanted}: {}{why}", plain(ask))
}

fn in_words(report: &ModelBenchReport) -> String {
    let ModelBenchReport { model, tools, questions, calls, valid, .. } = report;
    let ModelBenchReport { right_tool, right_arguments, not_offered, cost, median_ms, .. } = report;
    format!(
        "{}, {tools} tools, {questions} questions: the right tool {right_tool} times, with the \
         right arguments {right_arguments} times. {valid} of {calls} calls fit their tool's schema. \
         {not_offered} questions want a tool that it is not offered. {cost}, {median_ms} ms an \
         answer (median).",
        plain(model)
    )
}

#[cfg(test)]
mod tests {
    use automaton_tools::list;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_question_has_a_call_that_its_tool_takes() {
        let all = questions(None).unwrap();
        assert_eq!(all.len(), 45);
        let mut asked: Vec<&str> = all.iter().map(|question| question.tool.as_str()).collect();
        asked.sort_unstable();
        asked.dedup();
        let tools = list::specs();
        let missing: Vec<_> = tools
            .iter()
            .map(|tool| tool.name.as_str())
            .filter(|name| !asked.contains(name))
            .collect();
        assert_eq!(missing, ["list_sandboxes", "remove_port"], "the others are asked for");
        for ToolQuestion { ask, tool, arguments } in &all {
            let spec = tools.iter().find(|spec| spec.name.as_str() == *tool).unwrap();
            let known = spec.parameters["properties"].as_object().unwrap();
            assert!(arguments.keys().all(|name| known.contains_key(name)), "{ask}");
        }
    }

    #[test]
    fn arguments_are_equal_contain_or_end() {
        let said = json!({ "path": "./src/", "n": 3 });
        let check = |name: &str, wanted: Value| fits(&said, (&name.to_owned(), &wanted));
        assert!(check("n", json!(3)) && !check("n", json!(4)) && !check("m", json!(3)));
        assert!(
            check("path", json!({ "ends": "src" })) && check("path", json!({"contains": "SR"}))
        );
        assert!(!check("path", json!({ "ends": "x" })) && !check("m", json!({ "contains": "" })));
    }

    #[test]
    fn a_bad_question_is_told_by_its_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "{\"ask\": \"a\", \"tool\": \"exec\", \"arguments\": {}}\n{}\n",
        )
        .unwrap();
        let told = questions(Some(file.path())).unwrap_err().to_string();
        assert!(told.contains("line 2"), "{told}");
        std::fs::write(file.path(), "\n").unwrap();
        questions(Some(file.path())).unwrap_err();
    }
}
