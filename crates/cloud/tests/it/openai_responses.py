# A client that knows nothing of us: the openai package has two tools called over the responses
# format, whole and in a stream, sends their results, and is refused. Arguments: the cloud's URL, an
# API key, and one of an account without credits. Prints the usage of each answer, a JSON document a
# line.
import json
import sys

import openai

url, key, poor = sys.argv[1:]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
schema = {"type": "object", "properties": {"city": {"type": "string"}}}
tool = lambda name: {"type": "function", "name": name, "parameters": schema, "strict": False}
said = [{"role": "user", "content": "How is it in Oslo, and how late?"}]
question = {
    "model": "script",
    "input": said,
    "instructions": "Be brief.",
    "max_output_tokens": 50,
    "metadata": {"trip": "7"},
    "tools": [tool("weather"), tool("time")],
}


def check(response):
    assert response.status == "completed" and response.model == "script", response
    assert response.metadata == {"trip": "7"} and response.max_output_tokens == 50, response
    assert response.output_text == "Let me look.", response
    calls = [item for item in response.output if item.type == "function_call"]
    told = [(call.call_id, call.name, json.loads(call.arguments)) for call in calls]
    assert told == [("call_a", "weather", {"city": "Oslo"}), ("call_b", "time", {})], told
    print(response.usage.model_dump_json())


whole = client.responses.create(**question)
check(whole)

said += whole.output
said += [
    {"type": "function_call_output", "call_id": call.call_id, "output": "Fine."}
    for call in whole.output
    if call.type == "function_call"
]
with client.responses.stream(**question) as stream:
    events = list(stream)
    final = stream.get_final_response()
check(final)
assert [event.sequence_number for event in events] == list(range(len(events))), events
pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
assert pieces == ["Let me ", "look."], pieces
arguments = [e.arguments for e in events if e.type == "response.function_call_arguments.done"]
assert arguments == ['{"city":"Oslo"}', "{}"], arguments
assert (events[0].type, events[-1].type) == ("response.created", "response.completed"), events


def refused(kind, words, account=key, **more):
    try:
        client.with_options(api_key=account).responses.create(**{**question, **more})
        raise AssertionError(f"it was answered: {more}")
    except kind as error:
        assert words in error.body["message"], error


refused(openai.NotFoundError, "no model", model="another")
refused(openai.BadRequestError, "previous_response_id", previous_response_id="resp_1")
refused(openai.BadRequestError, "web_search", tools=[{"type": "web_search"}])
refused(openai.APIStatusError, "Insufficient credits", account=poor)
refused(openai.AuthenticationError, "", account="nonsense")
