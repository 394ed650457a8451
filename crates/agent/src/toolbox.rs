//! The tools of an agent: which there are, which a turn offers, and how a call is read.
//!
//! Tools come and go while the agent runs. Each change makes a new [`ToolSet`], and a turn keeps
//! the set that it began with: what it offers, judges and runs is one list. The tools that a
//! model is usually offered are chosen once for each set, so that the beginning of the prompt
//! changes only when the tools do. Nothing here may know a tool by its name.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use automaton_core::error::Classified;
use automaton_core::record::{CallRecord, CallStatus};
use automaton_core::tool::{ToolName, ToolSpec};
use automaton_inference::{
    CallFault, CheckedCall, Checker, FaultKind, InferenceError, ModelInfo, ModelPrices, RawCall,
};
use automaton_tools::{
    CallDigest, FamilyMembership, PreparedCall, Requirement, Tool, ToolAudience, ToolFamily,
    WorkClass, chosen_family, list,
};

use crate::prompt;

/// A tool was not added or removed.
#[derive(Debug, thiserror::Error, Classified)]
pub enum ToolboxError {
    /// There is a tool of this name already.
    #[error("there is a tool '{0}' already")]
    #[class(User, hint = "remove the other one first, or give this one another name")]
    Taken(ToolName),
    /// There is no tool of this name.
    #[error("no tool '{0}' can be removed, since there is none")]
    #[class(User)]
    Missing(ToolName),
    /// The schema of its arguments cannot be used.
    #[error(transparent)]
    Schema(#[from] InferenceError),
}

/// The tools of one agent, which may change while it runs.
pub struct Toolbox {
    current: RwLock<Arc<ToolSet>>,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox").field("current", &self.current()).finish()
    }
}

impl Toolbox {
    /// Begins with these tools.
    ///
    /// # Errors
    /// If two have the same name, or a schema cannot be used.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Result<Self, ToolboxError> {
        Ok(Self { current: RwLock::new(Arc::new(ToolSet::new(tools)?)) })
    }

    /// Begins with the built-in tools.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn built_in() -> Result<Self, ToolboxError> {
        Self::new(list::tools())
    }

    /// Returns the tools as they are now.
    #[must_use]
    pub fn current(&self) -> Arc<ToolSet> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a tool behind the others. The next turn has it; a running one does not.
    ///
    /// # Errors
    /// If the name is taken, or the schema cannot be used; nothing is changed then.
    pub fn add(&self, tool: Arc<dyn Tool>) -> Result<(), ToolboxError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(current.with(tool)?);
        Ok(())
    }

    /// Removes a tool. A turn that runs keeps it to its end.
    ///
    /// # Errors
    /// If there is no tool of this name.
    pub fn remove(&self, name: &ToolName) -> Result<(), ToolboxError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(current.without(name)?);
        Ok(())
    }
}

/// The tools at one moment, which never change.
#[derive(Clone)]
pub struct ToolSet {
    /// The number of changes before this set.
    version: u64,
    tools: Vec<Arc<dyn Tool>>,
    checker: Checker,
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        f.debug_struct("ToolSet").field("version", &self.version).field("tools", &names).finish()
    }
}

impl ToolSet {
    /// Makes a set of these tools.
    ///
    /// # Errors
    /// As [`Toolbox::new`].
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Result<Self, ToolboxError> {
        let empty = Self { version: 0, tools: Vec::new(), checker: Checker::default() };
        tools.into_iter().try_fold(empty, Self::and)
    }

    /// Makes the set of the built-in tools.
    ///
    /// # Errors
    /// As [`Toolbox::new`].
    pub fn built_in() -> Result<Self, ToolboxError> {
        Self::new(list::tools())
    }

    fn and(mut self, tool: Arc<dyn Tool>) -> Result<Self, ToolboxError> {
        let spec = tool.spec();
        if self.find(spec.name.as_str()).is_some() {
            return Err(ToolboxError::Taken(spec.name.clone()));
        }
        self.checker.insert(spec)?;
        self.tools.push(tool);
        Ok(self)
    }

    fn with(&self, tool: Arc<dyn Tool>) -> Result<Self, ToolboxError> {
        let grown = self.clone().and(tool)?;
        Ok(Self { version: self.version + 1, ..grown })
    }

    fn without(&self, name: &ToolName) -> Result<Self, ToolboxError> {
        let mut rest = Self { version: self.version + 1, ..self.clone() };
        rest.tools.retain(|tool| tool.spec().name != *name);
        if rest.tools.len() == self.tools.len() {
            return Err(ToolboxError::Missing(name.clone()));
        }
        rest.checker.remove(name);
        Ok(rest)
    }

    /// Returns the tool of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name.as_str() == name)
    }

    /// Returns the tools of the full list, in order.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.specs_where(|tool| tool.profile().is_in_full_list())
    }

    fn specs_where(&self, is_wanted: impl Fn(&dyn Tool) -> bool) -> Vec<ToolSpec> {
        let wanted = self.tools.iter().filter(|tool| is_wanted(&***tool));
        wanted.map(|tool| tool.spec().clone()).collect()
    }

    /// Reads a call as its tool understands it: with the tool's names for its arguments, checked
    /// against the tool's schema, and parsed. Only tools that are offered can be called.
    ///
    /// # Errors
    /// The first thing that is wrong with it, in the words that the model is told.
    pub fn parse_call(
        &self,
        offered: &[ToolSpec],
        call: &RawCall,
    ) -> Result<ParsedCall, CallFault> {
        let checker = self.checker.only(offered);
        let checked = checker.check_renamed(call, |tool, arguments| {
            if let Some(tool) = self.find(tool.as_str()) {
                tool.rename_arguments(arguments);
            }
        })?;
        let tool = self.find(checked.tool.as_str());
        let tool = tool.ok_or_else(|| checker.unknown_tool(&call.tool))?;
        let prepared = tool.parse(&checked.arguments).map_err(|error| CallFault {
            sentence: error.to_string(),
            kind: FaultKind::BadArguments,
        })?;
        Ok(ParsedCall { tool: Arc::clone(tool), checked, prepared })
    }

    /// Returns the importance of a tool's calls for the memory.
    pub(crate) fn class_of(&self, tool: &str) -> WorkClass {
        self.find(tool).map_or(WorkClass::Maintenance, |tool| tool.profile().class)
    }

    /// Returns the line about a recorded call for the digest of old turns, if it is worth one. A
    /// tool that there is no more, or never was, is shown with its arguments.
    pub(crate) fn digest(&self, call: &CallRecord) -> Option<CallDigest> {
        match self.find(&call.tool) {
            Some(tool) => tool.digest(call),
            None => Some(CallDigest::call(call)),
        }
    }

    /// Returns the words that follow a shortened argument of a recorded call.
    pub(crate) fn shortened_note(&self, call: &CallRecord) -> &'static str {
        let note = self.find(&call.tool).and_then(|tool| tool.profile().shortened_note);
        note.filter(|_| call.status == CallStatus::Done).unwrap_or_default()
    }

    /// Returns the family of tools that a model goes on with after these calls, if it is offered
    /// few at once: the one that the last of them chose, or used a tool of that is not among the
    /// `usual` ones.
    pub(crate) fn family_after(
        &self,
        calls: &[CallRecord],
        usual: &[ToolSpec],
    ) -> Option<ToolFamily> {
        calls.iter().rev().find_map(|call| {
            let tool = self.find(&call.tool)?;
            match tool.profile().family {
                FamilyMembership::Chooser if call.status == CallStatus::Done => chosen_family(call),
                FamilyMembership::One(family) => {
                    let is_usual = usual.iter().any(|spec| spec.name == tool.spec().name);
                    let was_offered = call.status != CallStatus::Invalid;
                    (was_offered && !is_usual).then_some(family)
                }
                FamilyMembership::Chooser | FamilyMembership::Every => None,
            }
        })
    }

    /// Returns the tools that a model is usually offered. A weak model is offered none for money
    /// by itself, nor for its schedule; what it needs is bought for it, and what it chooses is
    /// judged like any call. The same holds where the others' schemas would leave a small window
    /// nothing to work in.
    #[must_use]
    pub fn available(&self, model: &ModelInfo, rules: &OfferRules) -> Vec<ToolSpec> {
        let costs = model.prices != ModelPrices::default();
        let first = match (rules.has_money, costs) {
            (true, _) => 0,
            (false, true) => 3,
            (false, false) => 5,
        };
        let lists = FULL_LISTS.iter().skip(first).filter(|_| !model.weak);
        let mut fitting =
            lists.map(|list| (self.full_list(list), model.context_tokens / list.share));
        let fitting = fitting.find(|(tools, room)| prompt::schemas_cost(tools) <= *room);
        let mut tools = match (model.compact && !model.weak, fitting) {
            (true, _) => self.specs_where(|tool| tool.profile().in_compact_prompt),
            (false, Some((tools, _))) => tools,
            (false, None) => self.simple_list(),
        };
        self.tell_network(&mut tools, rules);
        tools
    }

    fn full_list(&self, list: &FullList) -> Vec<ToolSpec> {
        self.specs_where(|tool| {
            let profile = tool.profile();
            let has_means = match profile.requires {
                Requirement::Nothing => true,
                Requirement::Money => list.has_money,
                Requirement::ModelChoice => list.has_choice,
            };
            let has_room = list.is_roomy || profile.audience != ToolAudience::Roomy;
            profile.is_in_full_list() && has_means && has_room
        })
    }

    /// Returns the tools of a model that cannot be trusted with money or with itself. The tool
    /// that chooses a family stands last.
    fn simple_list(&self) -> Vec<ToolSpec> {
        let mut tools = self.specs_where(|tool| {
            let profile = tool.profile();
            let is_simple = profile.audience == ToolAudience::Everyone;
            profile.is_in_full_list() && is_simple && profile.requires == Requirement::Nothing
        });
        tools.extend(self.specs_where(|tool| tool.profile().family == FamilyMembership::Chooser));
        tools
    }

    /// Returns the tools of one family, with those that every family has.
    fn family_list(&self, family: ToolFamily, rules: &OfferRules) -> Vec<ToolSpec> {
        let mut tools = self.specs_where(|tool| {
            let profile = tool.profile();
            let has_means = rules.has_money || profile.requires == Requirement::Nothing;
            profile.family == FamilyMembership::One(family) && has_means
        });
        tools.extend(self.specs_where(|tool| tool.profile().is_in_every_family()));
        self.tell_network(&mut tools, rules);
        tools
    }

    /// Names the reachable hosts in the description of each tool that says that there are none.
    fn tell_network(&self, specs: &mut [ToolSpec], rules: &OfferRules) {
        let Some(words) = &rules.network else { return };
        for spec in specs {
            let note = self.find(spec.name.as_str()).and_then(|it| it.profile().no_network_note);
            if let Some(note) = note {
                spec.description = spec.description.replace(note, words).into();
            }
        }
    }

    /// Returns whether a tool may be called where only the last credits are left.
    fn is_in_critical_tier(&self, spec: &ToolSpec) -> bool {
        self.find(spec.name.as_str()).is_some_and(|tool| tool.profile().in_critical_tier)
    }
}

/// A call that its tool has read, and that can be judged and run.
pub struct ParsedCall {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The call as it was checked, with the tool's names for its arguments.
    pub checked: CheckedCall,
    /// The call itself.
    pub prepared: Box<dyn PreparedCall>,
}

/// A list of tools for models that can take them all at once.
struct FullList {
    has_money: bool,
    has_choice: bool,
    is_roomy: bool,
    /// The part of the window that the schemas may take: one of so many. The larger the list, the
    /// smaller the part.
    share: u32,
}

/// The full lists, the longest first: of an agent with money, of one whose models cost something,
/// and of one with neither.
const FULL_LISTS: [FullList; 7] = [
    FullList { has_money: true, has_choice: true, is_roomy: true, share: 3 },
    FullList { has_money: true, has_choice: true, is_roomy: false, share: 2 },
    FullList { has_money: true, has_choice: false, is_roomy: false, share: 2 },
    FullList { has_money: false, has_choice: true, is_roomy: true, share: 3 },
    FullList { has_money: false, has_choice: true, is_roomy: false, share: 2 },
    FullList { has_money: false, has_choice: false, is_roomy: true, share: 3 },
    FullList { has_money: false, has_choice: false, is_roomy: false, share: 2 },
];

/// The circumstances of an agent that decide which tools it is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferRules {
    /// True if it has credits of its own.
    pub has_money: bool,
    /// The hosts that its commands can reach, in words; nothing, where there are none.
    pub network: Option<String>,
}

/// The tools of an agent, with those that its usual model is offered.
#[derive(Debug)]
pub(crate) struct AgentTools {
    toolbox: Arc<Toolbox>,
    model: ModelInfo,
    rules: OfferRules,
    /// The choice for the newest set that a turn began with.
    usual: Mutex<Option<TurnTools>>,
}

/// The tools of one turn.
#[derive(Debug, Clone)]
pub(crate) struct TurnTools {
    /// All tools that there are.
    pub(crate) set: Arc<ToolSet>,
    /// Those that the agent's usual model is offered.
    pub(crate) usual: Arc<[ToolSpec]>,
}

/// A question for the tools that a model is offered.
pub(crate) struct OfferRequest<'a> {
    /// The model, with the window that its server really takes.
    pub(crate) model: &'a ModelInfo,
    /// True if it is as strong and as large as the model that usually thinks.
    pub(crate) is_usual: bool,
    /// The family of tools that it has chosen, where it gets one at a time.
    pub(crate) family: Option<ToolFamily>,
    /// True if only the last credits are left.
    pub(crate) is_critical: bool,
}

impl AgentTools {
    /// Offers the tools of a box by these rules to the model that usually thinks.
    pub(crate) const fn new(toolbox: Arc<Toolbox>, model: ModelInfo, rules: OfferRules) -> Self {
        Self { toolbox, model, rules, usual: Mutex::new(None) }
    }

    /// Returns the tools of a turn that begins now.
    pub(crate) fn current(&self) -> TurnTools {
        let set = self.toolbox.current();
        let mut usual = self.usual.lock().unwrap_or_else(PoisonError::into_inner);
        match &*usual {
            Some(known) if known.set.version == set.version => known.clone(),
            _ => {
                let tools = set.available(&self.model, &self.rules).into();
                usual.insert(TurnTools { set, usual: tools }).clone()
            }
        }
    }

    /// Returns the tools that a model is offered in a turn.
    pub(crate) fn offered(&self, turn: &TurnTools, asked: &OfferRequest<'_>) -> Arc<[ToolSpec]> {
        // What a rule would refuse is not offered.
        let is_allowed = |spec: &ToolSpec| !asked.is_critical || turn.set.is_in_critical_tier(spec);
        if let Some(family) = asked.family {
            let tools = turn.set.family_list(family, &self.rules);
            return tools.into_iter().filter(is_allowed).collect();
        }
        if asked.is_usual && !asked.is_critical {
            return Arc::clone(&turn.usual);
        }
        let tools = match asked.is_usual {
            true => turn.usual.to_vec(),
            false => turn.set.available(asked.model, &self.rules),
        };
        let is_usual = |spec: &ToolSpec| turn.usual.iter().any(|known| known.name == spec.name);
        tools.into_iter().filter(|spec| is_usual(spec) && is_allowed(spec)).collect()
    }
}

#[cfg(test)]
mod tests;
