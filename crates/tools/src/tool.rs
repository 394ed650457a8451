//! What a tool is, and what all of ours have in common.
//!
//! Arguments are parsed once; what was parsed is what states its intents, is
//! judged, and runs. [`Intentional`] has no default, so no tool can leave out
//! what it intends, and [`PreparedCall::run`] takes a [`Permit`], so nothing runs
//! unjudged.

use std::marker::PhantomData;
use std::sync::OnceLock;

use automaton_core::arguments::fit_arguments;
use automaton_core::intent::{Intent, Intentional};
use automaton_core::time::Span;
use automaton_core::tool::{Effect, Risk, ToolCategory, ToolName, ToolSpec};
use automaton_core::trust::{Label, Labelled};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::arguments;
use crate::context::{BoxFuture, ToolContext};
use crate::error::{ArgumentError, ToolError};

/// Something that the automaton can do.
pub trait Tool: Send + Sync {
    /// What the model, the policy and the record know of it.
    fn spec(&self) -> &ToolSpec;

    /// Reads the arguments of a call.
    ///
    /// # Errors
    ///
    /// When they are not what [`ToolSpec::parameters`] describes.
    fn parse(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, ArgumentError>;
}

/// A call that could run: its arguments, typed.
pub trait PreparedCall: Intentional + Send {
    /// Runs it.
    fn run<'a>(
        self: Box<Self>,
        permit: Permit,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

impl Intentional for Box<dyn PreparedCall> {
    fn intents(&self) -> Vec<Intent> {
        self.as_ref().intents()
    }
}

/// What a call that ran gives back.
#[derive(Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// What the model is told, with the label of its least trusted part. A tool that may find
    /// more than [`ToolContext::room`] says where the rest is; whoever runs it cuts what is longer
    /// all the same.
    pub text: Labelled,
    /// What happens next.
    pub after: TurnContinuation,
}

/// How the turn goes on after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnContinuation {
    /// With the next call.
    Continue,
    /// Not at all: the automaton wants to sleep.
    Sleep {
        /// How long.
        span: Span,
        /// The model's own words on why, for its next prompt.
        note: Option<String>,
    },
}

impl ToolOutput {
    /// What a tool found, with the label of whoever wrote it.
    pub(crate) fn found(label: Label, tool: &str, text: &str) -> Self {
        Self { text: Labelled::new(label, tool, text), after: TurnContinuation::Continue }
    }
}

/// What a built-in tool is, apart from its arguments.
pub(crate) struct ToolMetadata {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) category: ToolCategory,
    pub(crate) risk: Risk,
    pub(crate) effect: Effect,
}

impl ToolMetadata {
    #[expect(clippy::expect_used, reason = "names are constants, and a test reads every one")]
    fn spec<A: JsonSchema>(&self) -> ToolSpec {
        let Self { name, description, category, risk, effect } = *self;
        let name: ToolName = name.parse().expect("the name of a built-in tool is well-formed");
        let parameters = arguments::schema::<A>().into();
        ToolSpec { name, description: description.into(), category, risk, effect, parameters }
    }

    fn read<A: DeserializeOwned>(
        &self,
        schema: &Value,
        arguments: &Value,
    ) -> Result<A, ArgumentError> {
        // A list would do for serde: it takes the items for the fields in order.
        let Value::Object(fields) = arguments else {
            return Err(ArgumentError::new(self.name, "they are no object"));
        };
        let mut fields = fields.clone();
        fit_arguments(schema, &mut fields);
        A::deserialize(Value::Object(fields))
            .map_err(|fault| ArgumentError::new(self.name, &fault.to_string()))
    }
}

/// A built-in tool whose parsed arguments, `A`, are the prepared call.
pub(crate) struct Builtin<A> {
    card: ToolMetadata,
    /// Made when first asked for, since a schema is not made in a constant.
    spec: OnceLock<ToolSpec>,
    arguments: PhantomData<fn() -> A>,
}

impl<A> Builtin<A> {
    pub(crate) const fn new(card: ToolMetadata) -> Self {
        Self { card, spec: OnceLock::new(), arguments: PhantomData }
    }
}

impl<A: BuiltinCall> Tool for Builtin<A> {
    fn spec(&self) -> &ToolSpec {
        self.spec.get_or_init(|| self.card.spec::<A>())
    }

    fn parse(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, ArgumentError> {
        Ok(Box::new(BuiltinArguments(self.card.read::<A>(&self.spec().parameters, arguments)?)))
    }
}

/// The arguments of a built-in tool: what they intend, and what they do.
pub(crate) trait BuiltinCall: DeserializeOwned + JsonSchema + Send + 'static {
    /// As [`Intentional::intents`].
    fn intents(&self) -> Vec<Intent>;

    /// As [`PreparedCall::run`].
    fn run(
        self,
        permit: Permit,
        context: &ToolContext<'_>,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// They were parsed.
struct BuiltinArguments<A>(A);

impl<A: BuiltinCall> Intentional for BuiltinArguments<A> {
    fn intents(&self) -> Vec<Intent> {
        self.0.intents()
    }
}

impl<A: BuiltinCall> PreparedCall for BuiltinArguments<A> {
    fn run<'a>(
        self: Box<Self>,
        permit: Permit,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.0.run(permit, context))
    }
}

/// A built-in tool that takes no arguments and changes nothing of the automaton's: it
/// looks, and says what it finds.
pub(crate) struct ReadOnlyTool {
    card: ToolMetadata,
    spec: OnceLock<ToolSpec>,
    look: ReadOnlyResult,
}

/// What a glance gives.
type ReadOnlyResult = for<'a> fn(&'a ToolContext<'a>) -> BoxFuture<'a, Result<String, ToolError>>;

/// There are no arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

impl ReadOnlyTool {
    pub(crate) const fn new(card: ToolMetadata, look: ReadOnlyResult) -> Self {
        Self { card, spec: OnceLock::new(), look }
    }
}

impl Tool for ReadOnlyTool {
    fn spec(&self) -> &ToolSpec {
        self.spec.get_or_init(|| self.card.spec::<NoArguments>())
    }

    fn parse(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, ArgumentError> {
        let NoArguments {} = self.card.read(&self.spec().parameters, arguments)?;
        Ok(Box::new(ReadOnlyCall { tool: self.card.name, look: self.look }))
    }
}

/// The call of a glance.
struct ReadOnlyCall {
    tool: &'static str,
    look: ReadOnlyResult,
}

impl Intentional for ReadOnlyCall {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Observe]
    }
}

impl PreparedCall for ReadOnlyCall {
    fn run<'a>(
        self: Box<Self>,
        _permit: Permit,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let found = (self.look)(context).await?;
            Ok(ToolOutput::found(Label::Own, self.tool, &found))
        })
    }
}
