# A client that knows nothing of us: the openai package is refused in every way that there is,
# and asks the same five times at once. Arguments: the cloud's URL, an API key, and one of an
# account without credits. Prints the usage of the five answers, a JSON document a line.
import sys
from concurrent.futures import ThreadPoolExecutor

import openai

url, key, poor = sys.argv[1:]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)


def ask(client=client, text="Hello", **more):
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(**{"model": "script", "messages": messages, **more})


def refused(kind, status, code, words, call):
    try:
        call()
    except openai.APIStatusError as error:
        told = (type(error), error.status_code, error.code)
        assert told == (kind, status, code), (told, error.body)
        assert words in error.body["message"], error.body
        assert words in str(error), error
        return
    raise AssertionError(f"not refused: {status}")


anybody, broke = client.with_options(api_key="nonsense"), client.with_options(api_key=poor)
refused(openai.BadRequestError, 400, "invalid_request", "max_tokens", lambda: ask(max_tokens=-1))
refused(openai.BadRequestError, 400, "bad_value", "No such thing", lambda: ask(text="Bad"))
refused(openai.AuthenticationError, 401, "invalid_api_key", "API key", lambda: ask(anybody))
refused(openai.APIStatusError, 402, "insufficient_quota", "are needed", lambda: ask(broke))
refused(openai.NotFoundError, 404, "model_not_found", "no model", lambda: ask(model="another"))
refused(openai.NotFoundError, 404, "model_not_found", "no model", lambda: client.models.retrieve("x"))
refused(openai.RateLimitError, 429, "rate_limit_exceeded", "busy", lambda: ask(text="Busy"))
model = client.models.retrieve("script")
assert model.id == "script" and model.created > 0, model

with ThreadPoolExecutor(5) as voters:
    votes = list(voters.map(lambda _: ask(text="Vote"), range(5)))
answers = {vote.choices[0].message.content for vote in votes}
assert len(answers) == 5 and all(vote.created > 0 for vote in votes), votes
for vote in votes:
    print(vote.usage.model_dump_json())
