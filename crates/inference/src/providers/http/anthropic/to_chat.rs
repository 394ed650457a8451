//! Pure: a request of Anthropic's format, written by anybody, as one of chat completions.
//!
//! What the other format cannot say, as a document or a tool that Anthropic itself runs, is refused
//! by name. Thoughts of earlier answers are left out, since only their own model can read them, and
//! so is what only tunes a sampler or a cache.

use automaton_core::wire::chat::{
    CalledFunction, ChatCall, ChatFunction, ChatTool, FunctionKind, NamedTools, ToolChoice,
    ToolMode, ToolReference,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Number, Value, json};

use crate::providers::http::foreign::{
    TextOrParts, UntranslatableRequest as Untranslatable, text_message, text_part, with,
};

/// Content of one side: a text, or blocks.
type TurnContent = TextOrParts<TurnBlock>;

#[derive(Deserialize)]
struct ForeignRequest {
    model: String,
    messages: Vec<ForeignTurn>,
    system: Option<TurnContent>,
    max_tokens: u32,
    #[serde(default)]
    tools: Vec<ForeignTool>,
    tool_choice: Option<ForeignToolChoice>,
    stop_sequences: Option<Vec<String>>,
    #[serde(default)]
    stream: bool,
    temperature: Option<Number>,
    top_p: Option<Number>,
    output_format: Option<OutputFormat>,
    output_config: Option<OutputConfig>,
}

/// The same under its newer name.
#[derive(Deserialize)]
struct OutputConfig {
    format: Option<OutputFormat>,
}

/// The form that an answer must have.
#[derive(Deserialize)]
struct OutputFormat {
    #[serde(rename = "type")]
    kind: String,
    schema: Option<Value>,
}

#[derive(Deserialize)]
struct ForeignTurn {
    role: TurnRole,
    content: TurnContent,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TurnRole {
    User,
    Assistant,
}

/// A block of any kind. Its input is kept as it was written.
#[derive(Deserialize)]
struct TurnBlock {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    source: Option<ImageSource>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
    tool_use_id: Option<String>,
    /// Content of a result, parsed only if it is used. Deeper nesting stays unparsed, so that no
    /// depth of a body costs stack or time.
    content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ImageSource {
    Base64 {
        media_type: String,
        data: String,
    },
    Url {
        url: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct ForeignTool {
    #[serde(rename = "type")]
    kind: Option<String>,
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    input_schema: Value,
}

#[derive(Deserialize)]
struct ForeignToolChoice {
    #[serde(flatten)]
    kind: ChoiceKind,
    #[serde(default)]
    disable_parallel_tool_use: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChoiceKind {
    Auto,
    Any,
    Tool { name: String },
    None,
}

/// The body in the format of chat completions, for a model that sees pictures or does not. The
/// limit of tokens must be there.
///
/// # Errors
/// [`Untranslatable`] when it is no request, or asks for what the format does not have.
pub fn chat_from_messages(body: &[u8], sees_images: bool) -> Result<Vec<u8>, Untranslatable> {
    let asked: ForeignRequest =
        serde_json::from_slice(body).map_err(|error| Untranslatable::unread(&error))?;
    let format = asked.output_config.and_then(|config| config.format).or(asked.output_format);
    let response_format = format.map(response_format).transpose()?.flatten();
    let mut messages = Vec::new();
    if let Some(system) = asked.system {
        let (text, _) = parts(system, "system", false)?;
        messages.extend((!text.is_empty()).then(|| text_message("system", &text)));
    }
    for turn in asked.messages {
        match turn.role {
            TurnRole::User => user(turn.content, sees_images, &mut messages)?,
            TurnRole::Assistant => messages.extend(assistant(turn.content)?),
        }
    }
    let tools = asked.tools.into_iter().map(tool).collect::<Result<Vec<_>, _>>()?;
    let choice = asked.tool_choice.filter(|_| !tools.is_empty());
    let one = choice.as_ref().is_some_and(|choice| choice.disable_parallel_tool_use);
    let body = json!({
        "model": asked.model, "messages": messages, "max_tokens": asked.max_tokens,
        "stream": asked.stream,
    });
    let fields = [
        ("tools", (!tools.is_empty()).then(|| json!(tools))),
        ("tool_choice", choice.map(|choice| json!(chosen(choice.kind)))),
        ("parallel_tool_calls", one.then(|| json!(false))),
        ("stop", asked.stop_sequences.filter(|it| !it.is_empty()).map(|it| json!(it))),
        ("temperature", asked.temperature.map(Value::Number)),
        ("top_p", asked.top_p.map(Value::Number)),
        ("response_format", response_format),
    ];
    serde_json::to_vec(&with(body, fields)).map_err(|error| Untranslatable::unread(&error))
}

/// Returns the form of an answer in the other format, or nothing for plain text.
fn response_format(format: OutputFormat) -> Result<Option<Value>, Untranslatable> {
    match (format.kind.as_str(), format.schema) {
        ("text", _) => Ok(None),
        ("json_schema", Some(schema)) => {
            let strict = is_strict(&schema);
            let named = json!({ "name": "answer", "schema": schema });
            let named = with(named, [("strict", strict.then_some(Value::Bool(true)))]);
            Ok(Some(json!({ "type": "json_schema", "json_schema": named })))
        }
        ("json_schema", None) => Err(Untranslatable::new(
            "an output_format of the type json_schema has no schema: add it",
        )),
        (kind, _) => Err(Untranslatable::new(format!(
            "an output_format of the type '{kind}' is not to be had: ask for json_schema or text"
        ))),
    }
}

/// Returns true if each object of a schema names all its properties as required and allows no
/// other. Servers hold an answer strictly to such a schema alone.
fn is_strict(schema: &Value) -> bool {
    let inside = match schema {
        Value::Object(fields) => fields.values().all(is_strict),
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return inside;
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &String| required.is_some_and(|names| names.iter().any(|it| it == name));
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    inside && is_closed && properties.keys().all(is_required)
}

/// The text and the pictures of what stands at a place that has nothing else.
fn parts(
    content: TurnContent,
    place: &str,
    sees_images: bool,
) -> Result<(String, Vec<Value>), Untranslatable> {
    let blocks = match content {
        TurnContent::Text(text) => return Ok((text, Vec::new())),
        TurnContent::Parts(blocks) => blocks,
    };
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for block in blocks {
        match block.kind.as_str() {
            "text" => texts.push(block.text.unwrap_or_default()),
            "image" => images.push(image(block.source, sees_images)?),
            kind => return Err(unknown(kind, place)),
        }
    }
    Ok((texts.join("\n"), images))
}

fn unknown(kind: &str, place: &str) -> Untranslatable {
    Untranslatable::new(format!(
        "this model cannot be told the block '{kind}' of {place}: leave it out"
    ))
}

/// Translates a user's content: results of calls first, each as a message of its own.
fn user(
    content: TurnContent,
    sees_images: bool,
    messages: &mut Vec<Value>,
) -> Result<(), Untranslatable> {
    let blocks = match content {
        TurnContent::Text(text) => {
            messages.push(text_message("user", &text));
            return Ok(());
        }
        TurnContent::Parts(blocks) => blocks,
    };
    let mut texts = Vec::new();
    let mut rest = Vec::new();
    let mut is_text = true;
    for block in blocks {
        match block.kind.as_str() {
            "tool_result" => {
                let content = match block.content {
                    Some(raw) => serde_json::from_str(raw.get()).map_err(|error| {
                        Untranslatable::new(format!("a tool_result cannot be read: {error}"))
                    })?,
                    None => TurnContent::Text(String::new()),
                };
                let (text, images) = parts(content, "a tool_result", sees_images)?;
                // The other format has no mark for it.
                let text = if block.is_error { format!("Error: {text}") } else { text };
                let mut message = text_message("tool", &text);
                message["tool_call_id"] = required(block.tool_use_id, "tool_use_id")?.into();
                messages.push(message);
                is_text &= images.is_empty();
                rest.extend(images);
            }
            "text" => {
                let text = block.text.unwrap_or_default();
                rest.push(text_part(&text));
                texts.push(text);
            }
            "image" => {
                is_text = false;
                rest.push(image(block.source, sees_images)?);
            }
            kind => return Err(unknown(kind, "a user's message")),
        }
    }
    // Many servers read one text alone.
    let content = if is_text { json!(texts.join("\n")) } else { json!(rest) };
    if !rest.is_empty() {
        messages.push(json!({ "role": "user", "content": content }));
    }
    Ok(())
}

/// Translates the model's text and calls; `None` if there were only thoughts.
fn assistant(content: TurnContent) -> Result<Option<Value>, Untranslatable> {
    let blocks = match content {
        TurnContent::Text(text) => return Ok(Some(text_message("assistant", &text))),
        TurnContent::Parts(blocks) => blocks,
    };
    let mut texts = Vec::new();
    let mut calls = Vec::new();
    for block in blocks {
        match block.kind.as_str() {
            "text" => texts.push(block.text.unwrap_or_default()),
            "tool_use" => {
                let arguments = block.input.map_or("{}".to_owned(), |it| it.get().to_owned());
                calls.push(ChatCall {
                    id: required(block.id, "id")?,
                    kind: FunctionKind::Function,
                    function: CalledFunction { name: required(block.name, "name")?, arguments },
                });
            }
            "thinking" | "redacted_thinking" => {}
            kind => return Err(unknown(kind, "an assistant's message")),
        }
    }
    if texts.is_empty() && calls.is_empty() {
        return Ok(None);
    }
    let mut message = json!({ "role": "assistant", "content": null });
    if !texts.is_empty() {
        message["content"] = texts.join("\n").into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    Ok(Some(message))
}

fn required(value: Option<String>, field: &str) -> Result<String, Untranslatable> {
    value.ok_or_else(|| Untranslatable::new(format!("a block of a message has no {field}")))
}

fn image(source: Option<ImageSource>, sees_images: bool) -> Result<Value, Untranslatable> {
    if !sees_images {
        return Err(Untranslatable::new("this model sees no pictures: leave the image blocks out"));
    }
    let url = match source {
        Some(ImageSource::Base64 { media_type, data }) => {
            format!("data:{media_type};base64,{data}")
        }
        Some(ImageSource::Url { url }) => url,
        Some(ImageSource::Other) | None => {
            return Err(Untranslatable::new("the source of an image must be base64 or a url"));
        }
    };
    Ok(json!({ "type": "image_url", "image_url": { "url": url } }))
}

fn tool(tool: ForeignTool) -> Result<ChatTool, Untranslatable> {
    let ForeignTool { kind, name, description, input_schema } = tool;
    match kind.as_deref() {
        None | Some("custom") => Ok(ChatTool {
            kind: FunctionKind::Function,
            function: ChatFunction { name, description, parameters: input_schema },
        }),
        Some(kind) => Err(Untranslatable::new(format!(
            "the tool '{name}' is of the type '{kind}', which this model does not know; describe \
             it by name, description and input_schema"
        ))),
    }
}

fn chosen(choice: ChoiceKind) -> ToolChoice {
    match choice {
        ChoiceKind::Auto => ToolChoice::Mode(ToolMode::Auto),
        ChoiceKind::Any => ToolChoice::Mode(ToolMode::Required),
        ChoiceKind::None => ToolChoice::Mode(ToolMode::None),
        ChoiceKind::Tool { name } => {
            ToolChoice::Named(NamedTools::Function { function: ToolReference { name } })
        }
    }
}
