//! The tools that are built in, in the order in which the model reads of them.
//!
//! The order and the texts are part of the prompt's stable beginning: they must never depend on
//! anything that changes while the automaton lives. Each tool describes itself in its own file;
//! a new one is that file and its line here.

use std::sync::Arc;

use automaton_core::tool::{Effect, ToolCategory, ToolName, ToolSpec};

use crate::tool::Tool;
use crate::{financial, machines, memory, models, self_mod, social, survival, vm};

/// Every built-in tool.
static BUILT_IN: &[&dyn Tool] = &[
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
    &memory::set_goal::TOOL,
    &memory::complete_goal::TOOL,
    &memory::save_procedure::TOOL,
    &memory::recall_procedure::TOOL,
    &memory::note_about_agent::TOOL,
    &memory::review_memory::TOOL,
    &memory::forget::TOOL,
    &self_mod::update_soul::TOOL,
    &self_mod::reflect_on_soul::TOOL,
    &self_mod::view_soul::TOOL,
    &self_mod::view_soul_history::TOOL,
    &social::send_message::TOOL,
    &survival::sleep::TOOL,
    &survival::choose_tools::TOOL,
    &survival::system_synopsis::TOOL,
    &survival::heartbeat_ping::TOOL,
    &survival::distress_signal::TOOL,
    &survival::enter_low_compute::TOOL,
    &self_mod::modify_heartbeat::TOOL,
    &self_mod::update_genesis_prompt::TOOL,
    &models::list_models::TOOL,
    &models::switch_model::TOOL,
    &models::check_inference_spending::TOOL,
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

/// Returns the built-in tools, for an agent to begin with.
#[must_use]
pub fn tools() -> Vec<Arc<dyn Tool>> {
    BUILT_IN.iter().map(|tool| Arc::new(*tool) as Arc<dyn Tool>).collect()
}

/// Returns the built-in tool with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Tool> {
    BUILT_IN.iter().copied().find(|tool| tool.spec().name.as_str() == name)
}

/// Returns the built-in tools of a full list, in order.
#[must_use]
pub fn specs() -> Vec<ToolSpec> {
    let full = BUILT_IN.iter().filter(|tool| tool.profile().is_in_full_list());
    full.map(|tool| tool.spec().clone()).collect()
}

/// Returns whether a built-in tool only reads the automaton's own status: its money, its models,
/// its machines and itself. Files, memory and processes are its work.
#[must_use]
pub fn reads_status(name: &str) -> bool {
    find(name).is_some_and(|tool| {
        let spec = tool.spec();
        let category = spec.category;
        spec.effect == Effect::Observes
            && matches!(category, ToolCategory::Financial | ToolCategory::Survival)
            && tool.profile().is_in_full_list()
    })
}

/// Returns the name of the tool that runs commands.
#[must_use]
pub fn commands() -> ToolName {
    vm::exec::TOOL.spec().name.clone()
}

/// Returns the name of the tool that opens ports to everybody.
#[must_use]
pub fn publishing() -> ToolName {
    machines::expose_port::TOOL.spec().name.clone()
}

#[cfg(test)]
mod renames;
#[cfg(test)]
mod tests;
