// The client of x402 before its second version, x402-fetch, buys credits from the
// cloud. Arguments: the folder with node_modules, the URL of the cloud, the key of
// an account with USDC.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [folder, cloud, key] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { createSigner, decodeXPaymentResponse, wrapFetchWithPayment } = require('x402-fetch');

const signer = await createSigner('base-sepolia', key);
const paying = wrapFetchWithPayment(fetch, signer, 5_000_000n);
const response = await paying(`${cloud}/pay/5/${signer.account.address}`);
const purchase = await response.json();
assert.equal(response.status, 200, JSON.stringify(purchase));
assert.deepEqual([purchase.status, purchase.balance_cents], ['settled', 500]);
const receipt = decodeXPaymentResponse(response.headers.get('X-PAYMENT-RESPONSE'));
assert.deepEqual([receipt.success, receipt.transaction], [true, purchase.transaction]);
assert.equal(receipt.payer.toLowerCase(), signer.account.address.toLowerCase());
// Twice the price is more than it may pay.
await assert.rejects(paying(`${cloud}/pay/25/${signer.account.address}`), /exceeds maximum/);
