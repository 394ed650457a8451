//! `prompt`: what the model would see now, and what each layer costs.

use automaton_agent::prompt::transcript;
use serde_json::json;

use super::live::runtime;
use super::{Context, mint};
use crate::args::BrainFlags;
use crate::config::resolve;
use crate::error::Failure;
use crate::home;
use crate::role::{agent, provider};
use crate::stack;
use crate::ui::{self, Format, text::plain};

/// Shows the prompt of the next turn. It only looks.
pub(crate) fn run(context: &Context) -> Result<(), Failure> {
    let (home, file, reader) = context.record()?;
    let mut resolved =
        resolve::resolve(&home, &file, &BrainFlags::default(), &context.environment)?;
    runtime()?.block_on(provider::learn(&mut resolved.brain));
    let character = home::read_character(&home, Some(reader.life()?.constitution_sha256))?;
    let model = provider::describe(&resolved.brain)?;
    let settings = agent::settings((&resolved, &resolved.egress.unread().open()), None, character);
    let has_money = stack::is_there(&home);
    let prompt = automaton_agent::preview(&settings, &reader, &model, &mint(), has_money)?;
    if context.format == Format::Json {
        let layers: Vec<_> = prompt
            .layers
            .iter()
            .map(|layer| {
                json!({ "name": layer.name, "tokens": layer.tokens, "cap_tokens": layer.cap_tokens })
            })
            .collect();
        let messages: Vec<_> = prompt
            .messages
            .iter()
            .map(|message| {
                json!({ "role": format!("{:?}", message.role).to_lowercase(), "content": message.content })
            })
            .collect();
        let window = prompt.window_tokens;
        return ui::json(
            &json!({ "messages": messages, "layers": layers, "tools_tokens": prompt.tools_tokens,
                "window_tokens": window }),
        );
    }
    ui::line(&plain(&transcript(&prompt.messages)))?;
    let mut sum = 0_u32;
    for layer in &prompt.layers {
        sum = sum.saturating_add(layer.tokens);
        let (name, tokens, cap) = (layer.name, layer.tokens, layer.cap_tokens);
        ui::line(&format!("{name:<14} {tokens:>6} tokens of {cap}"))?;
    }
    let tools = prompt.tools_tokens;
    ui::line(&format!("{:<14} {tools:>6} tokens, sent beside it", "schemas"))?;
    let sum = sum.saturating_add(tools);
    ui::line(&format!("{:<14} {sum:>6} tokens of {}", "together", prompt.window_tokens))
}
