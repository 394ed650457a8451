# A client that knows nothing of us: the openai package has two tools called in a stream and whole,
# and sends a result. Arguments: the cloud's URL, an API key. Prints the usage of each answer, a
# JSON document a line.
import json
import sys

import openai

url, key = sys.argv[1:]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
schema = {"type": "object", "properties": {"city": {"type": "string"}}}
tool = lambda name: {"type": "function", "function": {"name": name, "parameters": schema}}
said = [{"role": "user", "content": "How is it in Oslo, and how late?"}]
question = {"model": "script", "messages": said, "max_tokens": 50, "tools": [tool("weather"), tool("time")]}

whole = client.chat.completions.create(**question)
calls = whole.choices[0].message.tool_calls
told = [(call.id, call.function.name, json.loads(call.function.arguments or "{}")) for call in calls]
assert told == [("call_a", "weather", {"city": "Oslo"}), ("call_b", "time", {})], told
print(whole.usage.model_dump_json())

said.append(whole.choices[0].message)
said += [{"role": "tool", "tool_call_id": call.id, "content": "Fine."} for call in calls]
with client.chat.completions.stream(
    **question, stream_options={"include_usage": True}
) as stream:
    for _ in stream:
        pass
    final = stream.get_final_completion()
message = final.choices[0].message
told = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls]
assert told == [("call_a", "weather", '{"city":"Oslo"}'), ("call_b", "time", "")], told
assert message.content == "Let me look.", message
assert final.choices[0].finish_reason == "tool_calls", final
print(final.usage.model_dump_json())
