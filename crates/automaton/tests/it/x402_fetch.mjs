// A client that knows nothing of us: @x402/fetch buys credits from the cloud, in
// version 2, and in version 1 where it is shown no other demand. Arguments: the
// folder with node_modules, the URL of the cloud, the key of an account with USDC.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [folder, cloud, key] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { wrapFetchWithPaymentFromConfig, decodePaymentResponseHeader } = require('@x402/fetch');
const { ExactEvmScheme } = require('@x402/evm/exact/client');
const { ExactEvmSchemeV1 } = require('@x402/evm/exact/v1/client');
const { privateKeyToAccount } = require('viem/accounts');

const account = privateKeyToAccount(key);
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
