//! Every tool there is, in the order in which the model reads of them.
//!
//! The order and the texts are part of the prompt's stable beginning: they must
//! never depend on anything that changes while the automaton lives.

use automaton_core::tool::{ToolCategory, ToolName, ToolSpec};

use crate::tool::Tool;
use crate::{financial, machines, memory, self_mod, social, survival, vm};

/// Every tool.
pub static TOOLS: &[&dyn Tool] = &[
    &vm::exec::TOOL,
    &vm::start_process::TOOL,
    &vm::read_process::TOOL,
    &vm::stop_process::TOOL,
    &vm::write_file::TOOL,
    &vm::read_file::TOOL,
    &vm::edit_file::TOOL,
    &vm::list_files::TOOL,
    &vm::search_files::TOOL,
    &memory::remember_fact::TOOL,
    &memory::recall_facts::TOOL,
    &social::send_message::TOOL,
    &survival::sleep::TOOL,
    &survival::system_synopsis::TOOL,
    &survival::heartbeat_ping::TOOL,
    &survival::distress_signal::TOOL,
    &survival::enter_low_compute::TOOL,
    &self_mod::modify_heartbeat::TOOL,
    &financial::check_credits::TOOL,
    &financial::check_usdc_balance::TOOL,
    &financial::topup_credits::TOOL,
    &financial::transfer_credits::TOOL,
    &financial::x402_fetch::TOOL,
    &machines::create_sandbox::TOOL,
    &machines::list_sandboxes::TOOL,
    &machines::delete_sandbox::TOOL,
    &machines::expose_port::TOOL,
    &machines::remove_port::TOOL,
];

/// Tools of other families that only one has a use for who lives from money.
const OF_A_LIVELIHOOD: [&str; 5] =
    ["heartbeat_ping", "distress_signal", "enter_low_compute", "expose_port", "remove_port"];

/// Tools that do better what commands do too, for models that know how to use them.
const OF_A_WORKER: [&str; 6] =
    ["start_process", "read_process", "stop_process", "edit_file", "list_files", "search_files"];

/// The tool with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Tool> {
    TOOLS.iter().copied().find(|tool| tool.spec().name.as_str() == name)
}

/// What every tool is, in order.
#[must_use]
pub fn specs() -> Vec<ToolSpec> {
    TOOLS.iter().map(|tool| tool.spec().clone()).collect()
}

/// The same for an automaton that has no money, or cannot be trusted to buy.
#[must_use]
pub fn without_money() -> Vec<ToolSpec> {
    let costs_nothing = |spec: &ToolSpec| {
        let name = spec.name.as_str();
        spec.category != ToolCategory::Financial && !OF_A_LIVELIHOOD.contains(&name)
    };
    specs().into_iter().filter(costs_nothing).collect()
}

/// The same for a model that is too weak to be trusted with money or with itself.
#[must_use]
pub fn simple() -> Vec<ToolSpec> {
    let is_simple = |spec: &ToolSpec| {
        spec.category != ToolCategory::SelfMod && !OF_A_WORKER.contains(&spec.name.as_str())
    };
    without_money().into_iter().filter(is_simple).collect()
}

/// The name of the tool that runs commands.
#[must_use]
pub fn commands() -> ToolName {
    vm::exec::TOOL.spec().name.clone()
}

/// Has the tool that runs commands tell what these may reach.
pub fn tell_network(specs: &mut [ToolSpec], words: &str) {
    specs.iter_mut().for_each(|spec| vm::exec::tell_network(spec, words));
}

#[cfg(test)]
mod tests;
