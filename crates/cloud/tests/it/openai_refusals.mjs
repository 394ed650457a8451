// A client that knows nothing of us: the openai package is refused in every way that there is,
// and asks the same five times at once. Arguments: the folder with node_modules, the cloud's URL,
// an API key, and one of an account without credits. Prints the usage of the five answers, a JSON
// document a line.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [folder, url, key, poor] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { OpenAI } = require('openai');
const by = (apiKey) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
const client = by(key);
const ask = (text = 'Hello', more = {}, who = client) => {
  const messages = [{ role: 'user', content: text }];
  return who.chat.completions.create({ model: 'script', messages, ...more });
};
const refused = async (kind, status, code, words, call) => {
  const error = await call().then(() => assert.fail(`not refused: ${status}`), (why) => why);
  assert.ok(error instanceof kind, String(error));
  assert.deepEqual([error.status, error.code], [status, code], String(error));
  assert.ok(error.message.includes(words), error.message);
  assert.ok(error.type.length > 0);
};

const { BadRequestError, AuthenticationError, APIError, NotFoundError, RateLimitError } = OpenAI;
const invalid = () => ask('Hello', { max_tokens: -1 });
await refused(BadRequestError, 400, 'invalid_request', 'max_tokens', invalid);
await refused(BadRequestError, 400, 'bad_value', 'No such thing', () => ask('Bad'));
const anybody = () => ask('Hello', {}, by('nonsense'));
await refused(AuthenticationError, 401, 'invalid_api_key', 'API key', anybody);
await refused(APIError, 402, 'insufficient_quota', 'are needed', () => ask('Hello', {}, by(poor)));
const another = () => ask('Hello', { model: 'another' });
await refused(NotFoundError, 404, 'model_not_found', 'no model', another);
await refused(NotFoundError, 404, 'model_not_found', 'no model', () => client.models.retrieve('x'));
await refused(RateLimitError, 429, 'rate_limit_exceeded', 'busy', () => ask('Busy'));
const model = await client.models.retrieve('script');
assert.ok(model.id === 'script' && model.created > 0);

const votes = await Promise.all([1, 2, 3, 4, 5].map(() => ask('Vote')));
assert.equal(new Set(votes.map((vote) => vote.choices[0].message.content)).size, 5);
for (const vote of votes) {
  assert.ok(vote.created > 0);
  console.log(JSON.stringify(vote.usage));
}
