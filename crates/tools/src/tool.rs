//! The tool, and the frame that all built-in tools share.
//!
//! Arguments are parsed once; the parsed value states its intents, is judged, and runs.
//! [`Intentional`] has no default, so no tool can leave out its intents, and
//! [`PreparedCall::run`] takes a [`Permit`], so nothing runs unjudged. Everything else that is
//! particular to a tool (profile, argument names, line in the digest) is a method of [`Tool`],
//! too, so that adding a tool takes one file and its line in the list.

use std::marker::PhantomData;
use std::sync::OnceLock;

use automaton_core::arguments::fit_arguments;
use automaton_core::intent::{Intent, Intentional};
use automaton_core::record::{CallRecord, SleepRequest};
use automaton_core::tool::{Effect, Risk, ToolCategory, ToolName, ToolSpec};
use automaton_core::trust::{Label, Labelled};
use automaton_policy::Permit;
use automaton_sandbox::ExitStatus;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::arguments;
use crate::context::{BoxFuture, ToolContext};
use crate::digest::CallDigest;
use crate::error::{ArgumentError, ToolError};
use crate::profile::ToolProfile;

/// Something that the automaton can do.
pub trait Tool: Send + Sync {
    /// Returns the name, description and schema, as the model, the policy and the record know
    /// them.
    fn spec(&self) -> &ToolSpec;

    /// Returns when the tool is offered and how its calls are handled.
    fn profile(&self) -> &ToolProfile;

    /// Gives arguments that models know under other names or in other forms the names and forms
    /// that [`ToolSpec::parameters`] has for them. Takes over only what means exactly the same;
    /// all else stays as it is and is refused by the schema.
    fn rename_arguments(&self, _arguments: &mut Map<String, Value>) {}

    /// Returns the line about a recorded call of the tool for the digest of old turns; nothing,
    /// where the call is not worth a line.
    fn digest(&self, call: &CallRecord) -> Option<CallDigest> {
        Some(CallDigest::call(call))
    }

    /// Reads the arguments of a call.
    ///
    /// # Errors
    ///
    /// When they are not what [`ToolSpec::parameters`] describes.
    fn parse(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, ArgumentError>;
}

impl<T: Tool + ?Sized> Tool for &'static T {
    fn spec(&self) -> &ToolSpec {
        (**self).spec()
    }

    fn profile(&self) -> &ToolProfile {
        (**self).profile()
    }

    fn rename_arguments(&self, arguments: &mut Map<String, Value>) {
        (**self).rename_arguments(arguments);
    }

    fn digest(&self, call: &CallRecord) -> Option<CallDigest> {
        (**self).digest(call)
    }

    fn parse(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, ArgumentError> {
        (**self).parse(arguments)
    }
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

/// Result of a call that ran.
#[derive(Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// Result for the model, with the label of its least trusted part. A tool that may find more
    /// than [`ToolContext::room`] says where the rest is. The caller cuts a longer text anyway.
    pub text: Labelled,
    /// Continuation of the turn.
    pub after: TurnContinuation,
    /// The exit status of the command, where the call ran one to its end.
    pub exit: Option<ExitStatus>,
}

/// Continuation of a turn after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnContinuation {
    /// With the next call.
    Continue,
    /// Not at all: the automaton wants to sleep.
    Sleep(SleepRequest),
}

impl ToolOutput {
    /// Creates a result with the label of the text's author.
    pub(crate) fn labelled(label: Label, tool: &str, text: &str) -> Self {
        let text = Labelled::new(label, tool, text);
        Self { text, after: TurnContinuation::Continue, exit: None }
    }
}

/// Renames arguments, see [`Tool::rename_arguments`].
type RenameArguments = fn(&mut Map<String, Value>);

/// Sums up a recorded call, see [`Tool::digest`].
type DigestCall = fn(&CallRecord) -> Option<CallDigest>;

/// Description of a built-in tool, without its arguments.
pub(crate) struct ToolMetadata {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) category: ToolCategory,
    pub(crate) risk: Risk,
    pub(crate) effect: Effect,
    pub(crate) profile: ToolProfile,
}

impl ToolMetadata {
    #[expect(clippy::expect_used, reason = "names are constants, and a test reads every one")]
    fn spec<A: JsonSchema>(&self) -> ToolSpec {
        let Self { name, description, category, risk, effect, .. } = *self;
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
    rename: Option<RenameArguments>,
    digest: DigestCall,
    arguments: PhantomData<fn() -> A>,
}

impl<A> Builtin<A> {
    pub(crate) const fn new(card: ToolMetadata) -> Self {
        Self {
            card,
            spec: OnceLock::new(),
            rename: None,
            digest: |call| Some(CallDigest::call(call)),
            arguments: PhantomData,
        }
    }

    /// Takes arguments under the names that other runtimes have for them, too.
    pub(crate) const fn with_renamed_arguments(mut self, rename: RenameArguments) -> Self {
        self.rename = Some(rename);
        self
    }

    /// Sums up recorded calls in the tool's own way.
    pub(crate) const fn with_digest(mut self, digest: DigestCall) -> Self {
        self.digest = digest;
        self
    }
}

impl<A: BuiltinCall> Tool for Builtin<A> {
    fn spec(&self) -> &ToolSpec {
        self.spec.get_or_init(|| self.card.spec::<A>())
    }

    fn profile(&self) -> &ToolProfile {
        &self.card.profile
    }

    fn rename_arguments(&self, arguments: &mut Map<String, Value>) {
        if let Some(rename) = self.rename {
            rename(arguments);
        }
    }

    fn digest(&self, call: &CallRecord) -> Option<CallDigest> {
        (self.digest)(call)
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

/// Function of a read-only tool.
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

    fn profile(&self) -> &ToolProfile {
        &self.card.profile
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
            Ok(ToolOutput::labelled(Label::Own, self.tool, &found))
        })
    }
}
