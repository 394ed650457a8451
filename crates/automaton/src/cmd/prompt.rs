//! `prompt`: what the next request to the model would hold, and what each part of it costs.

use automaton_agent::Preview;
use automaton_agent::prompt::transcript;

use super::{CommandContext, id_generator};
use crate::error::CliError;
use crate::home;
use crate::process::runtime;
use crate::role::embedder::embedder;
use crate::role::{agent, provider};
use crate::stack;
use crate::ui::{self, Format, text::plain};
use crate::view::memory::PromptView;

/// Shows the prompt of the next turn and the tools beside it. It only looks.
pub(crate) fn run(context: &CommandContext) -> Result<(), CliError> {
    let (home, file, reader) = context.record()?;
    let mut resolved = context.resolve(&home, &file)?;
    let runtime = runtime()?;
    runtime.block_on(provider::discover_models(&mut resolved.brain));
    let constitution = home::read_constitution(&home, Some(reader.life()?.constitution_sha256))?;
    let model = provider::describe(&resolved.brain)?;
    let settings = agent::settings(&resolved, &resolved.egress.unread().open(), None, constitution);
    // What others' cloud takes it tells when it is asked; its own has a list.
    let has_stack = resolved.remote.is_none() && stack::is_there(&home);
    let has_money = resolved.remote.is_some() || has_stack;
    let model = match has_stack {
        true => stack::as_sold(&home, &resolved.brain, model)?,
        false => model,
    };
    let ids = id_generator();
    let embedder = embedder(&home, resolved.embeddings.as_ref())?;
    let embedder = embedder.as_deref();
    let preview = automaton_agent::preview(&settings, &reader, &model, &ids, has_money, embedder);
    let preview = runtime.block_on(preview)?;
    let Preview { prompt, tools, left_out } = &preview;
    if context.format == Format::Json {
        return ui::json(&PromptView::from(&preview));
    }
    ui::line(&plain(&transcript(&prompt.messages)))?;
    ui::line("--- tools, sent beside it")?;
    for tool in tools {
        let out = if left_out.contains(&tool.name) { " (left out this time)" } else { "" };
        ui::line(&plain(&format!("{}{out}: {}", tool.name, tool.description)))?;
        ui::line(&plain(&format!("    {}", tool.parameters)))?;
    }
    ui::line("--- tokens")?;
    let mut sum = 0_u32;
    for layer in &prompt.layers {
        sum = sum.saturating_add(layer.tokens);
        let name = layer.name;
        let tokens = layer.tokens;
        let cap = layer.cap_tokens;
        ui::line(&format!("{name:<14} {tokens:>6} tokens of {cap}"))?;
    }
    let tools = prompt.tools_tokens;
    ui::line(&format!("{:<14} {tools:>6} tokens, sent beside it", "schemas"))?;
    let sum = sum.saturating_add(tools);
    ui::line(&format!("{:<14} {sum:>6} tokens of {}", "together", prompt.window_tokens))
}
