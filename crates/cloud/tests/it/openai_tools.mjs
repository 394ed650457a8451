// A client that knows nothing of us: the openai package has two tools called in a stream. Arguments:
// the folder with node_modules, the cloud's URL, an API key. Prints the usage, as JSON.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [folder, url, key] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { OpenAI } = require('openai');
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const tool = (name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } });
const stream = client.chat.completions.stream({
  model: 'script',
  messages: [{ role: 'user', content: 'How is it in Oslo, and how late?' }],
  tools: [tool('weather'), tool('time')],
  stream_options: { include_usage: true },
});
const final = await stream.finalChatCompletion();
const { message, finish_reason: reason } = final.choices[0];
const told = message.tool_calls.map((call) => [call.id, call.function.name, call.function.arguments]);
assert.deepEqual(told, [['call_a', 'weather', '{"city":"Oslo"}'], ['call_b', 'time', '']]);
assert.deepEqual([message.content, reason], ['Let me look.', 'tool_calls']);
console.log(JSON.stringify(final.usage));
