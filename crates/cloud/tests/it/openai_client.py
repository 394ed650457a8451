# A client that knows nothing of us: the openai package has one question answered
# whole and in pieces. Arguments: the cloud's URL, an API key. Prints the usage of
# both answers, a JSON document a line.
import sys

import openai

url, key = sys.argv[1:]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
assert [model.id for model in client.models.list()] == ["script", "vectors"]
question = {"model": "script", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 50}

whole = client.chat.completions.create(**question)
assert whole.choices[0].message.content == "I am here, all of me.", whole
assert whole.choices[0].finish_reason == "stop", whole
print(whole.usage.model_dump_json())

text, usage = "", None
options = {"stream": True, "stream_options": {"include_usage": True}}
for chunk in client.chat.completions.create(**question, **options):
    usage = chunk.usage or usage
    for choice in chunk.choices:
        text += choice.delta.content or ""
assert text == "I am here, all of me.", text
print(usage.model_dump_json())

try:
    client.chat.completions.create(**{**question, "model": "another"})
    raise AssertionError("another model answered")
except openai.NotFoundError as error:
    assert "no model" in error.body["message"], error
try:
    client.with_options(api_key="nonsense").chat.completions.create(**question)
    raise AssertionError("anybody may ask")
except openai.AuthenticationError:
    pass
