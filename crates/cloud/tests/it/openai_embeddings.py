# A client that knows nothing of us: the openai package gets vectors of one text and of three, as
# numbers and as it asks by default, in base 64. Arguments: the cloud's URL, an API key. Prints the
# usage of all answers, a JSON document a line.
import sys

import openai

url, key = sys.argv[1:]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)

one = client.embeddings.create(model="vectors", input="Hello", encoding_format="float")
assert one.model == "vectors" and one.data[0].embedding == [0.5, 1.0], one
many = client.embeddings.create(model="vectors", input=["a", "b", "c"])
assert [vector.embedding for vector in many.data] == [[0.5, 1.0]] * 3, many
plain = client.embeddings.create(model="vectors", input="plain")
assert plain.data[0].embedding == [0.5, 1.0], "the server behind knows no base 64"
print(plain.usage.model_dump_json())
print(one.usage.model_dump_json())
print(many.usage.model_dump_json())

try:
    client.embeddings.create(model="script", input="Hello")
    raise AssertionError("a model that talks made vectors")
except openai.BadRequestError as error:
    assert "makes no embeddings" in error.body["message"], error
try:
    client.embeddings.create(model="vectors", input=[])
    raise AssertionError("nothing was made into a vector")
except openai.BadRequestError:
    pass
