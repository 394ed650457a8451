# A client that knows nothing of us: the anthropic package has a tool called whole and in pieces,
# sends its result, and is refused. Arguments: the cloud's URL, an API key, and one of an account
# without credits. Prints the usage of each answer, a JSON document a line.
import sys

import anthropic

url, key, poor = sys.argv[1:]
client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
tools = [
    {"name": "weather", "description": "Tells it.", "input_schema": {"type": "object"}},
    {"name": "time", "description": "Tells it.", "input_schema": {"type": "object"}},
]
said = [{"role": "user", "content": "How is it in Oslo, and how late?"}]
system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
question = {"model": "script", "max_tokens": 50, "messages": said, "tools": tools, "system": system}


def check(message):
    assert message.role == "assistant" and message.model == "script", message
    assert message.stop_reason == "tool_use", message
    text, *calls = message.content
    assert text.text == "Let me look.", message
    told = [(call.id, call.name, call.input) for call in calls]
    assert told == [("call_a", "weather", {"city": "Oslo"}), ("call_b", "time", {})], told
    print(message.usage.model_dump_json())


whole = client.messages.create(**question, tool_choice={"type": "auto"})
check(whole)

with client.messages.stream(**question) as stream:
    pieces = list(stream.text_stream)
    streamed = stream.get_final_message()
assert pieces == ["Let me ", "look."], pieces
check(streamed)

results = [
    {"type": "tool_result", "tool_use_id": call.id, "content": "It is fine."}
    for call in whole.content
    if call.type == "tool_use"
]
said += [
    {"role": "assistant", "content": whole.content},
    {"role": "user", "content": [*results, {"type": "text", "text": "Well?"}]},
]
kinds = []
for event in client.messages.create(**question, stream=True):
    kinds.append(event.type)
    usage = event.usage if event.type == "message_delta" else None
    if usage:
        print(usage.model_dump_json())
assert kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds

count = client.messages.count_tokens(model="script", messages=said)
assert count.input_tokens > 0, count


def refused(kind, status, error_type, words, call):
    try:
        call()
    except anthropic.APIStatusError as error:
        assert (type(error), error.status_code) == (kind, status), (type(error), error.body)
        assert error.body["error"]["type"] == error_type, error.body
        assert words in error.body["error"]["message"] and words in str(error), error.body
        return error
    raise AssertionError(f"not refused: {status}")


def ask(client=client, **more):
    return client.messages.create(**{**question, **more})


anybody, broke = client.with_options(api_key="nonsense"), client.with_options(api_key=poor)
refused(anthropic.NotFoundError, 404, "not_found_error", "no model", lambda: ask(model="another"))
wrong = anthropic.AuthenticationError
refused(wrong, 401, "authentication_error", "API key", lambda: ask(anybody))
invalid = anthropic.BadRequestError
refused(invalid, 400, "invalid_request_error", "max_tokens", lambda: ask(max_tokens=-1))
search = [{"type": "web_search_20250305", "name": "web_search"}]
refused(invalid, 400, "invalid_request_error", "not sold", lambda: ask(tools=search))
unpaid = anthropic.PaymentRequiredError
error = refused(unpaid, 402, "billing_error", "are needed", lambda: ask(broke))
assert error.body["code"] == "INSUFFICIENT_CREDITS", error.body
assert error.body["details"]["required_cents"] > 0, error.body
