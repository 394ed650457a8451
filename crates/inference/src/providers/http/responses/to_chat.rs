//! Pure: a request of the responses format, written by anybody, as one of chat completions.
//!
//! What the other format cannot say, as a file, an item that a server kept, or a tool that `OpenAI`
//! itself runs, is refused by name. Thoughts of earlier answers are left out, since only their own
//! model can read them, and so is what only tells a server what to keep.

use automaton_core::wire::chat::{
    AllowedTool, AllowedTools, CalledFunction, ChatCall, FunctionKind, NamedTools, ToolChoice,
    ToolMode, ToolReference,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};

use crate::providers::http::foreign::{
    TextOrParts, UntranslatableRequest as Untranslatable, text_message, text_part, with,
};

#[derive(Deserialize)]
struct ResponsesAsked {
    model: String,
    input: TextOrParts<AskedItem>,
    instructions: Option<String>,
    max_output_tokens: u32,
    #[serde(default)]
    stream: bool,
    tools: Option<Vec<AskedFunction>>,
    tool_choice: Option<Box<RawValue>>,
    parallel_tool_calls: Option<bool>,
    temperature: Option<Number>,
    top_p: Option<Number>,
    text: Option<TextOptions>,
    reasoning: Option<ReasoningOptions>,
    user: Option<String>,
    safety_identifier: Option<String>,
    prompt_cache_key: Option<String>,
}

/// An item of any kind; one without is a message.
#[derive(Deserialize)]
struct AskedItem {
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<ItemRole>,
    content: Option<TextOrParts<ItemPart>>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    output: Option<TextOrParts<ItemPart>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ItemRole {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
}

#[derive(Deserialize)]
struct ItemPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
    image_url: Option<String>,
    detail: Option<String>,
}

#[derive(Deserialize)]
struct AskedFunction {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    description: Option<String>,
    parameters: Option<Map<String, Value>>,
    strict: Option<bool>,
}

#[derive(Deserialize)]
struct TextOptions {
    format: Option<TextFormat>,
    verbosity: Option<String>,
}

#[derive(Deserialize)]
struct TextFormat {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    description: Option<String>,
    schema: Option<Map<String, Value>>,
    strict: Option<bool>,
}

#[derive(Deserialize)]
struct ReasoningOptions {
    effort: Option<String>,
}

/// Which tools are to be called, where not by a word alone.
#[derive(Deserialize)]
struct NamedChoice {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    mode: Option<ToolMode>,
    tools: Option<Vec<AskedFunction>>,
}

/// The body in the format of chat completions, for a model that sees pictures or does not. The
/// limit of tokens must be there.
///
/// # Errors
/// [`Untranslatable`] when it is no request, or asks for what the format does not have.
pub fn chat_from_responses(body: &[u8], sees_images: bool) -> Result<Vec<u8>, Untranslatable> {
    let asked: ResponsesAsked =
        serde_json::from_slice(body).map_err(|error| Untranslatable::unread(&error))?;
    let mut messages = Conversation { sees_images, ..Conversation::default() };
    if let Some(rules) = &asked.instructions {
        messages.rules(rules);
    }
    match asked.input {
        TextOrParts::Text(text) => messages.told.push(text_message("user", &text)),
        TextOrParts::Parts(items) => items.into_iter().try_for_each(|it| messages.item(it))?,
    }
    messages.show_pictures();
    let tools = asked.tools.into_iter().flatten().map(function).collect::<Result<Vec<_>, _>>()?;
    let choice = match asked.tool_choice.filter(|_| !tools.is_empty()) {
        Some(choice) => Some(chosen(&choice)?),
        None => None,
    };
    let (format, verbosity) = asked.text.map_or((None, None), |it| (it.format, it.verbosity));
    let effort = asked.reasoning.and_then(|reasoning| reasoning.effort);
    let body = json!({
        "model": asked.model, "messages": messages.told, "max_tokens": asked.max_output_tokens,
        "stream": asked.stream,
    });
    let one = asked.parallel_tool_calls.filter(|_| !tools.is_empty());
    let fields = [
        ("tools", (!tools.is_empty()).then(|| json!(tools))),
        ("tool_choice", choice.map(|choice| json!(choice))),
        ("parallel_tool_calls", one.map(Value::Bool)),
        ("temperature", asked.temperature.map(Value::Number)),
        ("top_p", asked.top_p.map(Value::Number)),
        ("response_format", format.map(response_format).transpose()?.flatten()),
        ("verbosity", verbosity.map(Value::String)),
        ("reasoning_effort", effort.map(Value::String)),
        ("user", asked.user.map(Value::String)),
        ("safety_identifier", asked.safety_identifier.map(Value::String)),
        ("prompt_cache_key", asked.prompt_cache_key.map(Value::String)),
    ];
    serde_json::to_vec(&with(body, fields)).map_err(|error| Untranslatable::unread(&error))
}

/// The messages so far.
#[derive(Default)]
struct Conversation {
    sees_images: bool,
    told: Vec<Value>,
    /// Pictures in the results of calls. A result is a text, so a user message shows them after
    /// the results.
    pictures: Vec<Value>,
}

impl Conversation {
    fn item(&mut self, item: AskedItem) -> Result<(), Untranslatable> {
        let kind = item.kind.as_deref().unwrap_or("message");
        if kind != "function_call_output" {
            self.show_pictures();
        }
        match kind {
            "message" => {
                let role = item.role.ok_or_else(|| lacks(kind, "role"))?;
                self.message(role, item.content.ok_or_else(|| lacks(kind, "content"))?)
            }
            "function_call" => {
                self.call(&ChatCall {
                    id: item.call_id.ok_or_else(|| lacks(kind, "call_id"))?,
                    kind: FunctionKind::Function,
                    function: CalledFunction {
                        name: item.name.ok_or_else(|| lacks(kind, "name"))?,
                        // What calls nothing with an empty text is read by few servers.
                        arguments: item
                            .arguments
                            .filter(|text| !text.trim().is_empty())
                            .unwrap_or_else(|| "{}".to_owned()),
                    },
                });
                Ok(())
            }
            "function_call_output" => {
                let output = item.output.ok_or_else(|| lacks(kind, "output"))?;
                let (text, pictures) = self.parts(output, kind)?;
                let mut message = text_message("tool", &text);
                message["tool_call_id"] =
                    item.call_id.ok_or_else(|| lacks(kind, "call_id"))?.into();
                self.told.push(message);
                self.pictures.extend(pictures);
                Ok(())
            }
            "reasoning" => Ok(()),
            kind => Err(Untranslatable::new(format!(
                "this model cannot be told the item '{kind}' of input: leave it out"
            ))),
        }
    }

    /// Rules; at the head of a conversation they are one message, since many servers read no other.
    fn rules(&mut self, text: &str) {
        match self.told.last_mut().filter(|last| last["role"] == "system") {
            Some(last) => {
                let before = last["content"].as_str().unwrap_or_default();
                last["content"] = format!("{before}\n\n{text}").into();
            }
            None => self.told.push(text_message("system", text)),
        }
    }

    fn message(
        &mut self,
        role: ItemRole,
        content: TextOrParts<ItemPart>,
    ) -> Result<(), Untranslatable> {
        let (text, pictures) = self.parts(content, "message")?;
        match role {
            _ if !pictures.is_empty() && role != ItemRole::User => {
                return Err(Untranslatable::new(
                    "pictures are shown by the user: leave them out elsewhere",
                ));
            }
            ItemRole::System => self.rules(&text),
            ItemRole::Assistant => self.told.push(text_message("assistant", &text)),
            ItemRole::User if pictures.is_empty() => self.told.push(text_message("user", &text)),
            ItemRole::User => {
                let mut parts = pictures;
                if !text.is_empty() {
                    parts.insert(0, text_part(&text));
                }
                self.told.push(json!({ "role": "user", "content": parts }));
            }
        }
        Ok(())
    }

    /// A call, which belongs to what the model said before it.
    fn call(&mut self, call: &ChatCall) {
        let is_ours = |last: &&mut Value| last["role"] == "assistant";
        match self.told.last_mut().filter(is_ours) {
            Some(last) => match last["tool_calls"].as_array_mut() {
                Some(calls) => calls.push(json!(call)),
                None => last["tool_calls"] = json!([call]),
            },
            None => self.told.push(json!({
                "role": "assistant", "content": null, "tool_calls": [call],
            })),
        }
    }

    fn show_pictures(&mut self) {
        let pictures = std::mem::take(&mut self.pictures);
        if !pictures.is_empty() {
            self.told.push(json!({ "role": "user", "content": pictures }));
        }
    }

    /// The text and the pictures of some parts.
    fn parts(
        &self,
        content: TextOrParts<ItemPart>,
        place: &str,
    ) -> Result<(String, Vec<Value>), Untranslatable> {
        let parts = match content {
            TextOrParts::Text(text) => return Ok((text, Vec::new())),
            TextOrParts::Parts(parts) => parts,
        };
        let mut texts = Vec::new();
        let mut pictures = Vec::new();
        for part in parts {
            match part.kind.as_str() {
                "input_text" | "output_text" | "text" => texts.extend(part.text),
                "refusal" => texts.extend(part.refusal),
                "input_image" if !self.sees_images => {
                    return Err(Untranslatable::new(
                        "this model sees no pictures: leave the input_image parts out",
                    ));
                }
                "input_image" => {
                    let url = part.image_url.ok_or_else(|| lacks("input_image", "image_url"))?;
                    let image =
                        with(json!({ "url": url }), [("detail", part.detail.map(Value::String))]);
                    pictures.push(json!({ "type": "image_url", "image_url": image }));
                }
                kind => {
                    return Err(Untranslatable::new(format!(
                        "this model cannot be told the part '{kind}' of a {place}: leave it out"
                    )));
                }
            }
        }
        Ok((texts.join("\n"), pictures))
    }
}

fn lacks(kind: &str, field: &str) -> Untranslatable {
    Untranslatable::new(format!("a {kind} of input has no {field}"))
}

fn function(tool: AskedFunction) -> Result<Value, Untranslatable> {
    let AskedFunction { kind, name, description, parameters, strict } = tool;
    if kind != "function" {
        return Err(Untranslatable::new(format!(
            "the tool of the type '{kind}' is not known to this model: describe it as a function"
        )));
    }
    if name.is_empty() {
        return Err(Untranslatable::new("a tool of the type 'function' has no name"));
    }
    let function = json!({ "name": name, "parameters": parameters.unwrap_or_default() });
    let more =
        [("description", description.map(Value::String)), ("strict", strict.map(Value::Bool))];
    Ok(json!({ "type": "function", "function": with(function, more) }))
}

fn chosen(choice: &RawValue) -> Result<ToolChoice, Untranslatable> {
    if choice.get().starts_with('"') {
        let mode =
            serde_json::from_str(choice.get()).map_err(|error| Untranslatable::unread(&error))?;
        return Ok(ToolChoice::Mode(mode));
    }
    let NamedChoice { kind, name, mode, tools } =
        serde_json::from_str(choice.get()).map_err(|error| Untranslatable::unread(&error))?;
    match (kind.as_str(), name) {
        ("function", Some(name)) => {
            Ok(ToolChoice::Named(NamedTools::Function { function: ToolReference { name } }))
        }
        ("allowed_tools", _) => {
            let named = |tool: AskedFunction| AllowedTool {
                kind: FunctionKind::Function,
                function: ToolReference { name: tool.name },
            };
            let tools = tools.into_iter().flatten().map(named).collect();
            let allowed_tools = AllowedTools { mode: mode.unwrap_or(ToolMode::Auto), tools };
            Ok(ToolChoice::Named(NamedTools::AllowedTools { allowed_tools }))
        }
        _ => Err(Untranslatable::new(format!(
            "a tool_choice of the type '{kind}' is not to be had here"
        ))),
    }
}

/// The form that an answer must have, where that is not plain text.
fn response_format(format: TextFormat) -> Result<Option<Value>, Untranslatable> {
    let TextFormat { kind, name, description, schema, strict } = format;
    match kind.as_str() {
        "text" => Ok(None),
        "json_object" => Ok(Some(json!({ "type": "json_object" }))),
        "json_schema" => {
            let lacking =
                || Untranslatable::new("a text.format of the type json_schema has no schema");
            let name = name.unwrap_or_else(|| "answer".to_owned());
            let named = json!({ "name": name, "schema": schema.ok_or_else(lacking)? });
            let description = description.map(Value::String);
            let strict = strict.map(Value::Bool);
            let named = with(named, [("description", description), ("strict", strict)]);
            Ok(Some(json!({ "type": "json_schema", "json_schema": named })))
        }
        kind => {
            Err(Untranslatable::new(format!("a text.format of the type '{kind}' is not to be had")))
        }
    }
}
