//! Every tool there is, in the order in which the model reads of them.
//!
//! The order and the texts are part of the prompt's stable beginning: they must
//! never depend on anything that changes while the automaton lives.

use automaton_core::tool::{Category, ToolSpec};

use crate::tool::Tool;
use crate::{financial, memory, social, survival, vm};

/// Every tool.
pub static TOOLS: &[&dyn Tool] = &[
    &vm::exec::TOOL,
    &vm::write_file::TOOL,
    &vm::read_file::TOOL,
    &memory::remember_fact::TOOL,
    &memory::recall_facts::TOOL,
    &social::send_message::TOOL,
    &survival::sleep::TOOL,
    &survival::system_synopsis::TOOL,
    &financial::check_credits::TOOL,
    &financial::check_usdc_balance::TOOL,
    &financial::topup_credits::TOOL,
    &financial::transfer_credits::TOOL,
    &financial::x402_fetch::TOOL,
];

/// The tool with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Tool> {
    TOOLS.iter().copied().find(|tool| tool.spec().name.as_str() == name)
}

/// What every tool is, in order.
#[must_use]
pub fn specs() -> Vec<ToolSpec> {
    TOOLS.iter().map(|tool| tool.spec()).collect()
}

/// The same for an automaton that has no money, or cannot be trusted to buy.
#[must_use]
pub fn moneyless() -> Vec<ToolSpec> {
    specs().into_iter().filter(|spec| spec.category != Category::Financial).collect()
}

#[cfg(test)]
mod tests;
