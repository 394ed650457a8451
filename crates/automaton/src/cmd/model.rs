//! `model`: what the automaton thinks with, why, and what that costs.
//!
//! It only looks, but for `use`: which model may think is the creator's to say, and no limit on
//! what it may cost is changed here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use automaton_core::model::{ChoiceOutcome, ChoiceStep, InferenceTask, ModelChoice, ModelId};
use automaton_core::money::Microcents;
use automaton_core::pnl::beginning_of;
use automaton_core::tier::{ModelTier, SurvivalTier};
use automaton_core::time::{Clock, SystemClock};
use automaton_core::wire::control::{ControlRequest, ControlResponse, ModelStatus};
use automaton_inference::Provider;
use automaton_inference::routing::RoutingMatrix;
use automaton_sandbox::{Launcher, probe};
use automaton_store::ModelSpend;
use clap::{Args, Subcommand};

use super::CommandContext;
use super::pull::{self, PullArgs};
use super::send::send_or_store;
use crate::args::LabArgs;
use crate::config::file::{self, FILE_NAME};
use crate::control::{self, ControlError, unexpected};
use crate::error::CliError;
use crate::home::no_automaton;
use crate::local_models::{self, LocalModelEntry};
use crate::process::runtime;
use crate::role::provider;
use crate::ui::text::plain;
use crate::ui::units::size;
use crate::ui::{self, Format, table};
use crate::view::models::{
    CeilingView, ConfiguredModelsView, LocalModelView, LocalModelsView, ModelChoiceView,
    ModelListOutput, ModelSpendReportView, ModelSpendView, ModelUseView,
};

/// The word for the model that the configuration names.
const USUAL: &str = "usual";

/// Commands for models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// List the models that it may think with, and the rules by which one is chosen
    List,
    /// Explain why a model answered: what came before it, and what became of that
    Why {
        /// The number of the turn [default: the last one]
        turn: Option<u64>,
    },
    /// Show what the answers of each model cost
    Spend(SpendArgs),
    /// Ask the model 45 questions, of which each wants one call of one tool, and grade its calls
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Bench(LabArgs),
    /// Bring the file of a model that thinks on this machine, verified
    Pull(PullArgs),
    /// Have another model think in the usual one's place; `usual` takes that back
    Use {
        /// The model
        model: String,
    },
}

/// Arguments of `model spend`.
#[derive(Debug, Args)]
pub(crate) struct SpendArgs {
    /// Number of days, today included, in UTC
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
}

pub(crate) fn run(context: &CommandContext, command: &ModelCommand) -> Result<(), CliError> {
    match command {
        ModelCommand::List => list(context),
        ModelCommand::Why { turn } => why(context, *turn),
        ModelCommand::Spend(args) => spend(context, args),
        // It is the laboratory's.
        ModelCommand::Bench(_) => Ok(()),
        ModelCommand::Pull(args) => pull::run(context, args),
        ModelCommand::Use { model } => choose(context, model),
    }
}

/// The usual model of an automaton's configuration, started or reached for whoever tries it.
/// `program` is the automaton's, which starts what runs in the sandbox.
///
/// # Errors
/// When there is no automaton, or the model cannot be used.
pub async fn configured_model(
    context: &CommandContext,
    program: PathBuf,
) -> Result<Arc<dyn Provider>, CliError> {
    let (home, file) = context.inhabited()?;
    let mut resolved = context.resolve(&home, &file)?;
    provider::discover_models(&mut resolved.brain).await;
    let launcher = Launcher::new(program);
    let probe = probe(&launcher);
    let models = provider::registry(&resolved, &launcher, &probe, Arc::new(SystemClock)).await?;
    Ok(Arc::clone(&models.usual().provider))
}

/// Lists what the running automaton has, or what the configuration says of one that does not run;
/// where nobody lives, what could think here.
fn list(context: &CommandContext) -> Result<(), CliError> {
    let home = context.home()?;
    if file::read(&home.join(FILE_NAME))?.is_none() {
        return list_local(context, &home, &no_automaton(&home));
    }
    let (home, file) = context.inhabited()?;
    let mut resolved = context.resolve(&home, &file)?;
    let models = match control::ask(&home, &ControlRequest::Models) {
        Ok(ControlResponse::Models { models }) => models,
        Ok(other) => return Err(unexpected(other)),
        Err(ControlError::NotRunning) => {
            runtime()?.block_on(provider::discover_models(&mut resolved.brain));
            provider::configured(&resolved, SystemClock.now())?
        }
        Err(lost) => return Err(lost.into()),
    };
    let matrix = RoutingMatrix::built_in()?.with(&resolved.model_strategy.routing);
    let local = LocalModels::read(&home)?;
    if context.format == Format::Json {
        let view = ConfiguredModelsView { models, rules: (&matrix).into(), local: local.view() };
        return ui::json(&ModelListOutput::Configured(view));
    }
    let head = ["Model", "Served by", "Window", "In", "Out", "For"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(models.iter().map(model_row)).collect();
    ui::line(&table::list(&rows, context.screen().width()))?;
    local.lines().iter().try_for_each(|line| ui::line(line))?;
    ui::line("In and out: US dollars for a million tokens of a prompt and of an answer.")?;
    ui::line("")?;
    let tasks = InferenceTask::ALL.map(|task| task.name().to_owned());
    let mut rules = vec![vec!["Tier".to_owned()]];
    rules[0].extend(tasks);
    for tier in SurvivalTier::ALL.into_iter().rev() {
        let cells = InferenceTask::ALL.map(|task| matrix.words(tier, task));
        rules.push(std::iter::once(tier.to_string()).chain(cells).collect());
    }
    let rules: Vec<[String; 6]> = rules
        .into_iter()
        .map(|row| std::array::from_fn(|at| row.get(at).cloned().unwrap_or_default()))
        .collect();
    ui::line(&table::list(&rules, context.screen().width()))
}

/// Models that think on this machine.
struct LocalModels {
    /// Those whose files are here, with their sizes in bytes.
    here: Vec<(LocalModelEntry, u64)>,
    /// Those of the catalogue that are not.
    catalogue: Vec<LocalModelEntry>,
}

impl LocalModels {
    fn read(home: &Path) -> Result<Self, CliError> {
        let here = local_models::pulled(home)?;
        let mut catalogue = local_models::catalogue(home)?;
        catalogue.retain(|entry| here.iter().all(|(known, _)| known.name != entry.name));
        Ok(Self { here, catalogue })
    }

    /// Builds their view.
    fn view(&self) -> LocalModelsView {
        let Self { here, catalogue } = self;
        LocalModelsView {
            here: here.iter().map(|(entry, _)| entry.into()).collect(),
            catalogue: catalogue.iter().map(LocalModelView::from).collect(),
        }
    }

    /// A line for each.
    fn lines(&self) -> Vec<String> {
        let here = self.here.iter().map(|(LocalModelEntry { name, .. }, bytes)| {
            let size = size(*bytes);
            format!("{name}: {size} on this machine (`./up --model {name}`, or `automaton model use {name}` while it lives)")
        });
        let catalogue = self.catalogue.iter().map(|entry| {
            let LocalModelEntry { name, url, bytes, licence, context_tokens, note, .. } = entry;
            let known = [
                bytes.map(size),
                licence.clone(),
                context_tokens.map(|tokens| format!("window {tokens} tokens")),
                note.clone(),
                url.as_ref().map(|_| format!("`automaton model pull {name}` brings it here")),
            ];
            let known: Vec<String> = known.into_iter().flatten().collect();
            plain(&format!("{name}: {}", known.join(", ")))
        });
        here.chain(catalogue).collect()
    }
}

/// Lists the models that could think on this machine, and says why there are no others.
fn list_local(context: &CommandContext, home: &Path, why: &CliError) -> Result<(), CliError> {
    let local = LocalModels::read(home)?;
    context.format.answer(&ModelListOutput::Local(local.view()), || {
        let mut lines = local.lines();
        lines.push(format!("Others are listed once there is one: {}.", why.what));
        lines.join("\n")
    })
}

fn model_row(row: &ModelStatus) -> [String; 6] {
    let roles = row.roles.iter().map(|role| ModelTier::name(*role));
    let marks = [
        (row.thinks, "thinks now"),
        (row.chosen, "chosen"),
        (row.avoided, "failed lately"),
        (row.weak, "weak"),
    ];
    let marks = marks.into_iter().filter_map(|(is, mark)| is.then_some(mark));
    let marks: Vec<&str> = roles.chain(marks).collect();
    let price = |price: Microcents| match price {
        Microcents::ZERO => "free".to_owned(),
        price => price.to_string(),
    };
    [
        plain(row.model.as_str()),
        plain(&row.seller),
        row.context_tokens.to_string(),
        price(row.input_per_million),
        price(row.output_per_million),
        if marks.is_empty() { "-".to_owned() } else { marks.join(", ") },
    ]
}

/// Explains a choice.
fn why(context: &CommandContext, turn: Option<u64>) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let Some((turn, choice)) = reader.model_choice(turn)? else {
        let what = match turn {
            Some(turn) => format!("turn {turn} asked no model, or there is no such turn"),
            None => "it has asked no model yet".to_owned(),
        };
        return Err(CliError::user(what).hint("`automaton turns` lists its turns"));
    };
    let view = ModelChoiceView { turn, choice };
    context.format.answer(&view, || in_words(turn, &view.choice))
}

fn in_words(turn: u64, choice: &ModelChoice) -> String {
    let ModelChoice { task, tier, chosen, steps } = choice;
    let means = match tier {
        Some(tier) => format!("its credits were {tier}"),
        None => "it lives from no credits".to_owned(),
    };
    let mut lines = vec![format!("Turn {turn}, {task}: {means}.")];
    if let Some(chosen) = chosen {
        lines.push(format!("{} was chosen in the usual model's place.", plain(chosen.as_str())));
    }
    for ChoiceStep { model, seller, outcome, why } in steps {
        let model = plain(model.as_str());
        let seller = plain(seller);
        let became = match outcome {
            ChoiceOutcome::Answered => "answered",
            ChoiceOutcome::Failed => "was asked and did not answer",
            ChoiceOutcome::TooDear => "was too dear",
            ChoiceOutcome::Skipped => "was not to be asked",
        };
        let why = if why.is_empty() { String::new() } else { format!(": {}", plain(why)) };
        lines.push(format!("{model} of {seller} {became}{why}"));
    }
    lines.join("\n")
}

/// Shows what models cost.
fn spend(context: &CommandContext, args: &SpendArgs) -> Result<(), CliError> {
    let (home, file, reader) = context.record()?;
    let since = beginning_of(args.days, SystemClock.now());
    let models = reader.spend_by_model(since)?;
    let spent = reader.thinking_cost(SystemClock.now())?;
    let resolved = context.resolve(&home, &file)?;
    let ceilings = resolved.ceilings();
    let of: Vec<_> = ceilings
        .each(&spent)
        .map(|(scope, spent, limit)| CeilingView { key: scope.key().to_owned(), spent, limit })
        .collect();
    let rows = models.iter().map(ModelSpendView::from).collect();
    let view = ModelSpendReportView { since, models: rows, ceilings: of };
    context.format.answer(&view, || {
        let head = ["Model", "Answers", "Read", "Cached", "Written", "Cost"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(head).chain(models.iter().map(spend_row)).collect();
        let mut text = table::list(&rows, context.screen().width());
        for (scope, spent, limit) in ceilings.each(&spent) {
            text.push_str(&format!("\n{spent} of {limit} used {scope} (`{}`)", scope.key()));
        }
        text
    })
}

fn spend_row(row: &ModelSpend) -> [String; 6] {
    [
        plain(row.model.as_str()),
        row.answers.to_string(),
        row.prompt_tokens.to_string(),
        row.cached_tokens.to_string(),
        row.completion_tokens.to_string(),
        row.cost.to_string(),
    ]
}

/// Has a model think.
fn choose(context: &CommandContext, model: &str) -> Result<(), CliError> {
    let (home, _) = context.inhabited()?;
    let model = Some(model).filter(|name| *name != USUAL).map(ModelId::from);
    let (answer, running) =
        send_or_store(&home, &ControlRequest::UseModel { model: model.clone() })?;
    let ControlResponse::ModelChosen { model } = answer else { return Err(unexpected(answer)) };
    let view = ModelUseView { model, running };
    context.format.answer(&view, || {
        let who = view.model.as_ref().map_or("the usual model", ModelId::as_str);
        let when = if running { "from its next turn on" } else { "when it runs, if it is served" };
        format!("{} thinks {when}.", plain(who))
    })
}
