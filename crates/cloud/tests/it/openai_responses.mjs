// A client that knows nothing of us: the openai package has two tools called in a stream of the
// responses format. Arguments: the folder with node_modules, the cloud's URL, an API key. Prints the
// usage, as JSON.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [folder, url, key] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { OpenAI } = require('openai');
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const tool = (name) => ({ type: 'function', name, parameters: { type: 'object' }, strict: false });
const stream = client.responses.stream({
  model: 'script',
  input: 'How is it in Oslo, and how late?',
  tools: [tool('weather'), tool('time')],
});
const final = await stream.finalResponse();
const calls = final.output.filter((item) => item.type === 'function_call');
const told = calls.map((call) => [call.call_id, call.name, call.arguments]);
assert.deepEqual(told, [['call_a', 'weather', '{"city":"Oslo"}'], ['call_b', 'time', '{}']]);
assert.deepEqual([final.output_text, final.status], ['Let me look.', 'completed']);
console.log(JSON.stringify(final.usage));
