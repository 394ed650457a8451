// A shop that knows nothing of us: @x402/express sells a report and an echo for a
// cent each, and has a facilitator verify and settle. Arguments: the folder with
// node_modules, the URL of the facilitator, the token, who is paid. It says where
// it listens, and ends with its standard input.
import { createRequire } from 'node:module';

const [folder, url, asset, payTo] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const express = require('express');
const { paymentMiddleware, x402ResourceServer } = require('@x402/express');
const { ExactEvmScheme } = require('@x402/evm/exact/server');
const { HTTPFacilitatorClient } = require('@x402/core/server');

const network = 'eip155:84532';
const facilitator = new HTTPFacilitatorClient({ url });
const server = new x402ResourceServer(facilitator).register(network, new ExactEvmScheme());
const price = { amount: '10000', asset, extra: { name: 'USDC', version: '2' } };
const accepts = { scheme: 'exact', network, price, payTo, maxTimeoutSeconds: 60 };
const routes = {
  'GET /report': { accepts, description: 'A report' },
  'POST /echo': { accepts, description: 'What was said', mimeType: 'text/plain' },
};

const app = express();
app.use(paymentMiddleware(routes, server));
app.get('/report', (_, response) => response.json({ report: 'All is well.' }));
app.post('/echo', express.text({ type: '*/*' }), (request, response) => {
  response.type('text/plain').send(`You said: ${request.body}`);
});
const listening = app.listen(0, '127.0.0.1', () => {
  console.log(`Listening on http://127.0.0.1:${listening.address().port}`);
});
process.stdin.on('end', () => process.exit()).resume();
