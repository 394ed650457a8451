//! Every tool there is, in the order in which the model reads of them.
//!
//! The order and the texts are part of the prompt's stable beginning: they must
//! never depend on anything that changes while the automaton lives.

use automaton_core::tool::{Effect, ToolCategory, ToolName, ToolSpec};

pub use crate::survival::choose_tools::ToolFamily;
use crate::tool::Tool;
use crate::{financial, machines, memory, models, self_mod, social, survival, vm};

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

/// Tools of other families that only one has a use for who lives from money.
const OF_A_LIVELIHOOD: [&str; 5] =
    ["heartbeat_ping", "distress_signal", "enter_low_compute", "expose_port", "remove_port"];

/// Tools that wait for more than the last credits.
const OF_BETTER_TIMES: [&str; 11] = [
    "exec",
    "start_process",
    "write_file",
    "edit_file",
    "modify_heartbeat",
    "update_soul",
    "update_genesis_prompt",
    "transfer_credits",
    "x402_fetch",
    "create_sandbox",
    "stop_process",
];

/// Tools for whoever may think with more than one model, or pays for one.
const OF_A_CHOICE: [&str; 3] = ["list_models", "switch_model", "check_inference_spending"];

/// Tools that do better what commands do too, for models that know how to use them.
const OF_A_WORKER: [&str; 6] =
    ["start_process", "read_process", "stop_process", "edit_file", "list_files", "search_files"];

/// Tools for whoever keeps a memory in order, beyond facts, and looks at itself.
const OF_A_MIND: [&str; 12] = [
    "set_goal",
    "complete_goal",
    "save_procedure",
    "recall_procedure",
    "note_about_agent",
    "review_memory",
    "forget",
    "update_soul",
    "reflect_on_soul",
    "view_soul",
    "view_soul_history",
    "update_genesis_prompt",
];

/// The tool with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Tool> {
    TOOLS.iter().copied().find(|tool| tool.spec().name.as_str() == name)
}

/// What every tool is, in order, but for the one that chooses among them.
#[must_use]
pub fn specs() -> Vec<ToolSpec> {
    let all = TOOLS.iter().map(|tool| tool.spec().clone());
    all.filter(|spec| spec.name.as_str() != CHOOSER).collect()
}

/// The tool by which a weak model gets the tools of a family.
pub const CHOOSER: &str = "choose_tools";

/// Tools that every family has: to answer, to rest and to choose another one.
const OF_EVERY_FAMILY: [&str; 3] = ["send_message", "sleep", CHOOSER];

/// Returns whether a tool only reads the automaton's own status: its money, its models, its
/// machines and itself. Files, memory and processes are its work.
#[must_use]
pub fn reads_status(name: &str) -> bool {
    let of_status =
        |spec: &ToolSpec| matches!(spec.category, ToolCategory::Financial | ToolCategory::Survival);
    let spec = find(name).map(|tool| tool.spec()).filter(|_| name != CHOOSER);
    spec.is_some_and(|spec| spec.effect == Effect::Observes && of_status(spec))
}

/// The family of a tool; none of those that every family has.
#[must_use]
pub fn family_of(name: &str) -> Option<ToolFamily> {
    if OF_EVERY_FAMILY.contains(&name) {
        return None;
    }
    let category = find(name)?.spec().category;
    Some(match name {
        "exec" | "start_process" | "read_process" | "stop_process" => ToolFamily::Commands,
        "list_models" | "switch_model" | "check_inference_spending" => ToolFamily::Models,
        "create_sandbox" | "list_sandboxes" | "delete_sandbox" | "expose_port" | "remove_port" => {
            ToolFamily::Machines
        }
        _ => match category {
            ToolCategory::Memory => ToolFamily::Memory,
            ToolCategory::Financial => ToolFamily::Money,
            ToolCategory::Survival | ToolCategory::SelfMod => ToolFamily::Life,
            _ => ToolFamily::Files,
        },
    })
}

/// The tools of a family, of an automaton that has these, with those that every family has.
#[must_use]
pub fn family(family: ToolFamily, has_money: bool) -> Vec<ToolSpec> {
    let has = if has_money { specs() } else { without_money() };
    let is_wanted = |spec: &ToolSpec| family_of(spec.name.as_str()) == Some(family);
    let every = |spec: &ToolSpec| OF_EVERY_FAMILY.contains(&spec.name.as_str());
    let common = TOOLS.iter().map(|tool| tool.spec().clone()).filter(every);
    has.into_iter().filter(is_wanted).chain(common).collect()
}

/// The same without those for a choice among models, which a small window has no room for.
#[must_use]
pub fn without_choice() -> Vec<ToolSpec> {
    let is_left = |spec: &ToolSpec| !OF_A_CHOICE.contains(&spec.name.as_str());
    specs().into_iter().filter(is_left).collect()
}

/// These tools without those that keep a memory in order, which a small window has no room for.
#[must_use]
pub fn without_mind(mut tools: Vec<ToolSpec>) -> Vec<ToolSpec> {
    tools.retain(|spec| !OF_A_MIND.contains(&spec.name.as_str()));
    tools
}

/// The same for an automaton whose models cost something, though it has no money of its own.
#[must_use]
pub fn on_account() -> Vec<ToolSpec> {
    let is_left =
        |spec: &ToolSpec| costs_nothing(spec) || OF_A_CHOICE.contains(&spec.name.as_str());
    specs().into_iter().filter(is_left).collect()
}

/// The same for an automaton that has no money, or cannot be trusted to buy.
#[must_use]
pub fn without_money() -> Vec<ToolSpec> {
    specs().into_iter().filter(costs_nothing).collect()
}

/// Whether a tool has nothing to do with money.
fn costs_nothing(spec: &ToolSpec) -> bool {
    let name = spec.name.as_str();
    spec.category != ToolCategory::Financial && !OF_A_LIVELIHOOD.contains(&name)
}

/// The same for a model that is too weak to be trusted with money or with itself.
#[must_use]
pub fn simple() -> Vec<ToolSpec> {
    let is_simple = |spec: &ToolSpec| {
        let name = spec.name.as_str();
        spec.category != ToolCategory::SelfMod && !OF_A_WORKER.contains(&name)
    };
    let chooser = TOOLS.iter().map(|tool| tool.spec().clone());
    let chooser = chooser.filter(|spec| spec.name.as_str() == CHOOSER);
    without_mind(without_money()).into_iter().filter(is_simple).chain(chooser).collect()
}

/// Tools that a model with a compact prompt is offered first: to work on files, to run commands,
/// to remember, to answer and to rest. The tool that chooses a family stands last.
const OF_A_COMPACT_PROMPT: [&str; 8] = [
    "exec",
    "write_file",
    "read_file",
    "remember_fact",
    "recall_facts",
    "send_message",
    "sleep",
    CHOOSER,
];

/// Returns the tools that a model with a compact prompt is offered first.
#[must_use]
pub fn compact() -> Vec<ToolSpec> {
    let all = TOOLS.iter().map(|tool| tool.spec().clone());
    all.filter(|spec| OF_A_COMPACT_PROMPT.contains(&spec.name.as_str())).collect()
}

/// Whether a tool is for staying alive: what is left in the last credits.
#[must_use]
pub fn keeps_alive(spec: &ToolSpec) -> bool {
    !OF_BETTER_TIMES.contains(&spec.name.as_str())
}

/// The name of the tool that runs commands.
#[must_use]
pub fn commands() -> ToolName {
    vm::exec::TOOL.spec().name.clone()
}

/// The tool that opens ports to everybody.
pub fn publishing() -> ToolName {
    machines::expose_port::TOOL.spec().name.clone()
}

/// Has the tool that runs commands tell what these may reach.
pub fn tell_network(specs: &mut [ToolSpec], words: &str) {
    specs.iter_mut().for_each(|spec| vm::exec::tell_network(spec, words));
}

#[cfg(test)]
mod tests;
