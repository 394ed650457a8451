//! Pure: where a tool belongs, whom it is offered to and what its calls are worth.
//!
//! Each tool states its own profile beside its name. Everything that chooses among tools, judges
//! their place in a turn or remembers their calls reads the profile and never the name.

use automaton_core::names::Names;
use serde::Deserialize;

/// A group of tools that belong together. A model that cannot take all tools at once is offered
/// one family at a time.
/// Its [`name`](Self::name) is the one for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum ToolFamily {
    /// Commands and the processes that they start.
    Commands,
    /// Files of the workspace, and everything that has no other family.
    Files,
    /// Memory.
    Memory,
    /// The agent's own state, schedule and purpose.
    Life,
    /// Models.
    Models,
    /// Balances and payments.
    Money,
    /// Rented machines and open ports.
    Machines,
}

/// The families in which a tool is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyMembership {
    /// One family.
    One(ToolFamily),
    /// Every family.
    Every,
    /// Every family and every other shortened list, and never the full list: the tool chooses a
    /// family, which nobody needs who is offered all tools.
    Chooser,
}

/// The means without which an agent has no use for a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// None.
    Nothing,
    /// Credits of its own.
    Money,
    /// Several models, or one that costs something.
    ModelChoice,
}

/// The models that are offered a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolAudience {
    /// All models.
    Everyone,
    /// All models but weak ones.
    Strong,
    /// Strong models whose context window has room for more than the essential tools.
    Roomy,
}

/// The importance of a call for the memory, the least important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkClass {
    /// Upkeep, and looking at things.
    Maintenance,
    /// Work on files, machines or money.
    Productive,
    /// Messages, and notes about others.
    Communication,
    /// Changes to the agent's own course.
    Strategic,
}

/// The properties of a tool that decide when it is offered and how its calls are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolProfile {
    /// The families in which it is offered.
    pub family: FamilyMembership,
    /// The means that it needs.
    pub requires: Requirement,
    /// The models that are offered it.
    pub audience: ToolAudience,
    /// True if a model with a compact prompt is offered it from the start.
    pub in_compact_prompt: bool,
    /// True if it may be called in the critical tier, where only the last credits are left.
    pub in_critical_tier: bool,
    /// The importance of its calls.
    pub class: WorkClass,
    /// The reason that the later calls of a turn are given when this tool ended the turn, after
    /// "Not run: ". A tool without one does not end the turn.
    pub ends_turn: Option<&'static str>,
    /// The sentence of its description that the list of reachable hosts replaces, where commands
    /// may reach any.
    pub no_network_note: Option<&'static str>,
    /// The words that follow an argument of a call that was done, when history shortens it: where
    /// the rest can be read.
    pub shortened_note: Option<&'static str>,
    /// True if its calls leave a command running after the turn.
    pub leaves_command_running: bool,
    /// True if an event of its own shows the text that its call sends.
    pub sends_message: bool,
}

impl ToolProfile {
    /// Returns the profile of a tool of a family that needs nothing, is offered to all models and
    /// does upkeep.
    #[must_use]
    pub const fn new(family: ToolFamily) -> Self {
        Self {
            family: FamilyMembership::One(family),
            requires: Requirement::Nothing,
            audience: ToolAudience::Everyone,
            in_compact_prompt: false,
            in_critical_tier: true,
            class: WorkClass::Maintenance,
            ends_turn: None,
            no_network_note: None,
            shortened_note: None,
            leaves_command_running: false,
            sends_message: false,
        }
    }

    /// Returns whether a full list has the tool, and not only shortened ones.
    #[must_use]
    pub const fn is_in_full_list(&self) -> bool {
        !matches!(self.family, FamilyMembership::Chooser)
    }

    /// Returns whether the tool is offered in every family.
    #[must_use]
    pub const fn is_in_every_family(&self) -> bool {
        matches!(self.family, FamilyMembership::Every | FamilyMembership::Chooser)
    }

    /// Returns the one family of the tool, if it has one.
    #[must_use]
    pub const fn one_family(&self) -> Option<ToolFamily> {
        match self.family {
            FamilyMembership::One(family) => Some(family),
            FamilyMembership::Every | FamilyMembership::Chooser => None,
        }
    }
}
