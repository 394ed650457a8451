// A client that knows nothing of us: @x402/fetch buys credits from the cloud, in
// version 2, and in version 1 where it is shown no other demand. Arguments: the
// folder with node_modules, the URLs of chain and cloud, who pays for gas.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [folder, rpc, cloud, gas] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { wrapFetchWithPaymentFromConfig, decodePaymentResponseHeader } = require('@x402/fetch');
const { ExactEvmScheme } = require('@x402/evm/exact/client');
const { ExactEvmSchemeV1 } = require('@x402/evm/exact/v1/client');
const { generatePrivateKey, privateKeyToAccount } = require('viem/accounts');

const account = privateKeyToAccount(generatePrivateKey());
const fund = async (funding) => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'automaton_fund', params: [funding] });
  const headers = { 'content-type': 'application/json' };
  const reply = await (await fetch(rpc, { method: 'POST', headers, body })).json();
  assert.ok(reply.result, JSON.stringify(reply));
};
await fund({ address: gas, wei: '0xde0b6b3a7640000' });
await fund({ address: account.address, usdc: '0x1312d00' });

const sent = [];
// A server that only speaks version 1 has no header that demands.
const fetches = (version) => async (input, init) => {
  const request = new Request(input, init);
  sent.push(...['PAYMENT-SIGNATURE', 'X-PAYMENT'].filter((name) => request.headers.has(name)));
  const response = await fetch(request);
  if (version === 2) return response;
  const headers = new Headers(response.headers);
  headers.delete('PAYMENT-REQUIRED');
  return new Response(await response.text(), { status: response.status, headers });
};
const schemes = [
  { network: 'eip155:84532', client: new ExactEvmScheme(account) },
  { network: 'base-sepolia', client: new ExactEvmSchemeV1(account), x402Version: 1 },
];
const buy = async (version) => {
  // The token is the dev chain's own, at an address that the package cannot know.
  const paying = wrapFetchWithPaymentFromConfig(fetches(version), { schemes, spendControls: false });
  const response = await paying(`${cloud}/pay/5/${account.address}`);
  const purchase = await response.json();
  assert.equal(response.status, 200, JSON.stringify(purchase));
  assert.equal(purchase.status, 'settled');
  const names = { 1: 'X-PAYMENT-RESPONSE', 2: 'PAYMENT-RESPONSE' };
  const receipt = decodePaymentResponseHeader(response.headers.get(names[version]));
  assert.deepEqual([receipt.success, receipt.transaction], [true, purchase.transaction]);
  assert.equal(receipt.payer.toLowerCase(), account.address.toLowerCase());
  return purchase.balance_cents;
};
assert.deepEqual([await buy(2), await buy(1)], [500, 1000]);
assert.deepEqual(sent, ['PAYMENT-SIGNATURE', 'X-PAYMENT']);
console.log('x402 is content');
