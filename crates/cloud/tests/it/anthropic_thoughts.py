# A client that knows nothing of us: the anthropic package before a server of its own format hears
# thoughts with their signatures, whole and in pieces. Arguments: the cloud's URL, an API key.
# Prints the usage of each answer, a JSON document a line.
import sys

import anthropic

url, key = sys.argv[1:]
client = anthropic.Anthropic(base_url=url, auth_token=key, api_key=None, max_retries=0)
said = [{"role": "user", "content": "Hello"}]
thinking = {"type": "enabled", "budget_tokens": 1024}
question = {"model": "script", "max_tokens": 50, "messages": said, "thinking": thinking}

whole = client.messages.create(**question)
with client.messages.stream(**question) as stream:
    streamed = stream.get_final_message()
for message in (whole, streamed):
    thought, text = message.content
    assert (thought.thinking, thought.signature) == ("Hm.", "c2ln"), message
    assert text.text == "I am here." and message.stop_reason == "end_turn", message
    assert message.model == "script", message
    assert message.usage.cache_read_input_tokens == 5, message
    print(message.usage.model_dump_json())
