//! Views of the memory, the soul, the worklog and the next prompt.

use automaton_agent::Preview;
use automaton_core::memory::MemoryId;
use automaton_core::soul::{Soul, SoulSection, SoulVersion};
use automaton_core::tool::ToolSchema;
use automaton_core::trust::Label;
use schemars::JsonSchema;
use serde::Serialize;

/// The vectors of the memory.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct VectorsView {
    /// The model that makes them.
    pub(crate) model: String,
    /// Items with a vector of this model.
    pub(crate) vectors: u64,
    /// Items that wait for one.
    pub(crate) waiting: u64,
}

/// An item that was forgotten.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ForgottenView {
    /// The item.
    pub(crate) memory: MemoryId,
    /// False if it was gone already.
    pub(crate) was_there: bool,
}

/// Items that were imported.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ImportedView {
    /// Their number.
    pub(crate) imported: u64,
}

/// A version of the soul with its content.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SoulView {
    /// The version.
    pub(crate) version: SoulVersion,
    /// Its content.
    pub(crate) soul: Soul,
    /// Similarity of the purpose to the genesis prompt, in words.
    pub(crate) alignment: String,
    /// Advice of the latest reflection; `null` before the first.
    pub(crate) suggestion: Option<String>,
}

/// The versions of the soul.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SoulHistoryView {
    /// The versions, newest first.
    pub(crate) versions: Vec<SoulVersion>,
    /// The first version that was changed after it was stored; `null` if none was.
    pub(crate) broken: Option<u32>,
}

/// A section that two versions differ in.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SoulDifferenceView {
    /// The section.
    pub(crate) section: SoulSection,
    /// Text of the older version.
    pub(crate) was: String,
    /// Text of the newer version.
    pub(crate) is: String,
}

/// The version that a change made.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SoulChangedView {
    /// Its number.
    pub(crate) version: u32,
}

/// The worklog.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct WorklogTextView {
    /// The least trusted origin of its text.
    pub(crate) label: Label,
    /// The text.
    pub(crate) text: String,
}

/// The prompt of the next turn.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PromptView {
    /// The conversation.
    pub(crate) messages: Vec<PromptMessageView>,
    /// The tools that are sent beside it.
    pub(crate) tools: Vec<PromptToolView>,
    /// Names of the tools that may not be called this time.
    pub(crate) left_out: Vec<String>,
    /// Its layers, in the order of the prompt.
    pub(crate) layers: Vec<PromptBudgetView>,
    /// Estimated tokens of the tools' schemas.
    pub(crate) tools_tokens: u32,
    /// The model's window in tokens.
    pub(crate) window_tokens: u32,
}

/// A message of a prompt.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PromptMessageView {
    /// Its role: `system`, `user`, `assistant` or `tool`.
    pub(crate) role: String,
    /// Its text.
    pub(crate) content: String,
}

/// A tool as the model is offered it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PromptToolView {
    /// Its name.
    pub(crate) name: String,
    /// Its description.
    pub(crate) description: String,
    /// The JSON Schema of its arguments.
    #[schemars(schema_with = "super::json_object")]
    pub(crate) parameters: ToolSchema,
}

/// The size of a layer of a prompt.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PromptBudgetView {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its size in estimated tokens.
    pub(crate) tokens: u32,
    /// The most tokens that it may have.
    pub(crate) cap_tokens: u32,
}

impl From<&Preview> for PromptView {
    fn from(preview: &Preview) -> Self {
        let Preview { prompt, tools, left_out } = preview;
        let messages = prompt.messages.iter().map(|message| PromptMessageView {
            role: format!("{:?}", message.role).to_lowercase(),
            content: message.content.clone(),
        });
        let tools = tools.iter().map(|tool| PromptToolView {
            name: tool.name.to_string(),
            description: tool.description.to_string(),
            parameters: tool.parameters.clone(),
        });
        let layers = prompt.layers.iter().map(|layer| PromptBudgetView {
            name: layer.name,
            tokens: layer.tokens,
            cap_tokens: layer.cap_tokens,
        });
        Self {
            messages: messages.collect(),
            tools: tools.collect(),
            left_out: left_out.iter().map(ToString::to_string).collect(),
            layers: layers.collect(),
            tools_tokens: prompt.tools_tokens,
            window_tokens: prompt.window_tokens,
        }
    }
}
