"""Asks a server with the official client of a format, and tells what it understood as JSON.

Arguments: the format, the server's URL, the model, and the body that is asked of it by others,
which is read as the client's own types have it.
"""

import json
import sys

kind, url, model, body = sys.argv[1:]
body = json.loads(body)


def ollama_says():
    import ollama
    from ollama._types import ChatRequest

    # Two fields are newer than the client's types.
    known = {name: value for name, value in body.items() if name not in ("truncate", "shift")}
    ChatRequest.model_validate(known)
    text, calls, counts = "", [], []
    client = ollama.Client(host=url)
    for part in client.chat(model=model, messages=known["messages"], stream=True):
        text += part.message.content or ""
        for call in part.message.tool_calls or []:
            calls.append([call.function.name, dict(call.function.arguments)])
        if part.done:
            counts = [part.prompt_eval_count, part.eval_count, part.done_reason]
    return text, calls, counts


def responses_says():
    import openai
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
    from pydantic import TypeAdapter

    TypeAdapter(ResponseCreateParamsStreaming).validate_python(body)
    client = openai.OpenAI(base_url=url + "/v1", api_key="k")
    text, done = "", None
    for event in client.responses.create(model=model, input=body["input"], store=False, stream=True):
        if event.type == "response.output_text.delta":
            text += event.delta
        if event.type == "response.completed":
            done = event.response
    items = [item for item in done.output if item.type == "function_call"]
    calls = [[item.name, json.loads(item.arguments)] for item in items]
    assert done.output_text == text
    return text, calls, [done.usage.input_tokens, done.usage.output_tokens, "stop"]


def gemini_says():
    from google import genai
    from google.genai import types

    for content in body["contents"] + [body["systemInstruction"]]:
        types.Content.model_validate(content)
    types.GenerationConfig.model_validate(body["generationConfig"])
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))
    tools = [types.Tool.model_validate(tool) for tool in body["tools"]]
    config = types.GenerateContentConfig(
        tools=tools,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    text, calls, counts = "", [], []
    for part in client.models.generate_content_stream(model=model, contents="Hi", config=config):
        for piece in part.candidates[0].content.parts:
            if piece.function_call:
                calls.append([piece.function_call.name, piece.function_call.args])
            elif not piece.thought:
                text += piece.text
        usage = part.usage_metadata
        if usage and usage.candidates_token_count:
            tokens = usage.candidates_token_count + usage.thoughts_token_count
            counts = [usage.prompt_token_count, tokens, part.candidates[0].finish_reason.value.lower()]
    return text, calls, counts


says = {"ollama": ollama_says, "responses": responses_says, "gemini": gemini_says}[kind]
print(json.dumps(says()))
