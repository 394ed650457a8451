//! `ring_bell`: a tool that only tests have. It is described here and nowhere else.

use automaton_core::intent::{Intent, Intentional};
use automaton_core::record::CallRecord;
use automaton_core::tool::{Effect, Risk, ToolCategory, ToolSpec};
use automaton_core::trust::{Label, Labelled};
use automaton_policy::Permit;
use automaton_tools::context::{BoxFuture, ToolContext};
use automaton_tools::{
    ArgumentError, CallDigest, CallKind, PreparedCall, Tool, ToolError, ToolFamily, ToolOutput,
    ToolProfile, TurnContinuation, WorkClass,
};
use serde_json::{Map, Value, json};

/// The name that the model calls it by.
pub(crate) const NAME: &str = "ring_bell";

/// A bell that can be added to a box of tools.
pub(crate) struct Bell {
    spec: ToolSpec,
    profile: ToolProfile,
}

impl Bell {
    pub(crate) fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {"times": {"type": "integer", "minimum": 1, "maximum": 12}},
            "required": ["times"],
            "additionalProperties": false,
        });
        Self {
            spec: ToolSpec {
                name: NAME.parse().unwrap(),
                description: "Ring the bell.".into(),
                category: ToolCategory::Vm,
                risk: Risk::Safe,
                effect: Effect::Mutates,
                parameters: parameters.into(),
            },
            profile: ToolProfile {
                class: WorkClass::Productive,
                ends_turn: Some("the bell has rung."),
                ..ToolProfile::new(ToolFamily::Files)
            },
        }
    }
}

impl Tool for Bell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn profile(&self) -> &ToolProfile {
        &self.profile
    }

    fn rename_arguments(&self, arguments: &mut Map<String, Value>) {
        if let Some(count) = arguments.remove("count") {
            arguments.insert("times".to_owned(), count);
        }
    }

    fn digest(&self, call: &CallRecord) -> Option<CallDigest> {
        Some(CallDigest::new(CallKind::Called, format!("rang the bell by {}", call.arguments)))
    }

    fn parse(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, ArgumentError> {
        let times = arguments["times"].as_u64();
        let times = times.ok_or_else(|| ArgumentError::new(NAME, "`times` is no number"))?;
        Ok(Box::new(Ringing { times }))
    }
}

struct Ringing {
    times: u64,
}

impl Intentional for Ringing {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Observe]
    }
}

impl PreparedCall for Ringing {
    fn run<'a>(
        self: Box<Self>,
        _permit: Permit,
        _context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let text = format!("It rang {} times.", self.times);
            let text = Labelled::new(Label::Own, NAME, text);
            Ok(ToolOutput { text, after: TurnContinuation::Continue, exit: None })
        })
    }
}
