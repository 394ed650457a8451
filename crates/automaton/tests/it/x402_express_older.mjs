// A shop from before the second version of x402: x402-express sells a report and
// an echo for a cent each, and has a facilitator verify and settle. Arguments: the
// folder with node_modules, the URL of the facilitator, the token, who is paid. It
// says where it listens, and ends with its standard input.
import { createRequire } from 'node:module';

const [folder, url, address, payTo] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const express = require('express');
const { paymentMiddleware } = require('x402-express');

const asset = { address, decimals: 6, eip712: { name: 'USDC', version: '2' } };
const sold = { price: { amount: '10000', asset }, network: 'base-sepolia' };
const app = express();
app.use(paymentMiddleware(payTo, { 'GET /report': sold, 'POST /echo': sold }, { url }));
app.get('/report', (_, response) => response.json({ report: 'All is well.' }));
app.post('/echo', express.text({ type: '*/*' }), (request, response) => {
  response.type('text/plain').send(`You said: ${request.body}`);
});
const listening = app.listen(0, '127.0.0.1', () => {
  console.log(`Listening on http://127.0.0.1:${listening.address().port}`);
});
process.stdin.on('end', () => process.exit()).resume();
