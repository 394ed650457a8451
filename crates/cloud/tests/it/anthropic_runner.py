# A client that knows nothing of us: the anthropic package runs a tool by itself, as it does by
# default, and parses an answer by a schema. Arguments: the cloud's URL, an API key. Prints the usage
# of each answer, a JSON document a line.
import sys

import anthropic
import pydantic

url, key = sys.argv[1:]
client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
question = {
    "model": "script",
    "max_tokens": 50,
    "messages": [{"role": "user", "content": "How is it in Oslo?"}],
}
asked = []


@anthropic.beta_tool
def weather(city: str) -> str:
    """Tells the weather.

    Args:
        city: The city.
    """
    asked.append(city)
    return "It rains."


last = None
for message in client.beta.messages.tool_runner(**question, tools=[weather]):
    assert message.model == "script", message
    print(message.usage.model_dump_json())
    last = message
assert asked == ["Oslo"], asked
assert last.content[0].text == "It rains in Oslo.", last


class City(pydantic.BaseModel):
    name: str
    people: int


parsed = client.messages.parse(**question, output_format=City)
assert parsed.parsed_output == City(name="Oslo", people=700000), parsed
print(parsed.usage.model_dump_json())
