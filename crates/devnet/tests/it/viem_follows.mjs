// A client that knows nothing of us is told by subscriptions alone: viem over a WebSocket sees
// heads, what the token logs, and transactions. Arguments: the folder with node_modules, the
// chain's URL, a private key, the token's address.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [folder, url, key, address] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const viem = require('viem');
const { privateKeyToAccount } = require('viem/accounts');
const { foundry } = require('viem/chains');

const abi = viem.parseAbi([
  'function transfer(address to, uint256 value) returns (bool)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);
const account = privateKeyToAccount(key);
const payee = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const transport = viem.webSocket(url.replace('http', 'ws'), { reconnect: false });
const client = viem.createPublicClient({ chain: foundry, transport });
const wallet = viem.createWalletClient({ account, chain: foundry, transport });

// What comes, each by its name; `wanted` waits for so many.
const seen = { heads: [], logs: [], transactions: [] };
let check = () => {};
const add = (name) => (one) => { seen[name].push(one); check(); };
const onError = (error) => { console.error(error); process.exit(1); };
const wanted = (count) => new Promise((resolve) => {
  check = () => Object.values(seen).every((all) => all.length >= count) && resolve();
  check();
});

const subscription = (method, params, name) =>
  client.transport.subscribe({ params: [method, ...params], onData: ({ result }) => add(name)(result), onError });
const heads = await subscription('newHeads', [], 'heads');
const transactions = await subscription('newPendingTransactions', [], 'transactions');
const filter = { address, topics: viem.encodeEventTopics({ abi, eventName: 'Transfer', args: { to: payee } }) };
await subscription('logs', [filter], 'logs');

const hashes = [];
for (const value of [30n, 12n]) {
  hashes.push(await wallet.writeContract({ address, abi, functionName: 'transfer', args: [payee, value] }));
  await client.waitForTransactionReceipt({ hash: hashes.at(-1) });
}
await wanted(2);
assert.deepEqual(seen.transactions, hashes);
const values = viem.parseEventLogs({ abi, logs: seen.logs }).map((log) => log.args.value);
assert.deepEqual(values, [30n, 12n]);
assert.deepEqual(seen.logs.map((log) => log.blockHash), seen.heads.map((head) => head.hash));
assert.equal(seen.heads[1].parentHash, seen.heads[0].hash);

// Its own watchers of blocks and events use subscriptions, too.
const watched = new Promise((resolve, reject) => {
  const stop = client.watchContractEvent({
    address, abi, eventName: 'Transfer', args: { to: payee }, onError: reject,
    onLogs: (logs) => { stop(); resolve(logs[0].args.value); },
  });
});
const number = new Promise((resolve, reject) => {
  const stop = client.watchBlockNumber({ onError: reject, onBlockNumber: (at) => { stop(); resolve(at); } });
});
// When a watcher is ready it does not say: there is something to see until both saw it.
let both = false;
const done = Promise.all([watched, number]).then((all) => { both = true; return all; });
while (!both) {
  await wallet.writeContract({ address, abi, functionName: 'transfer', args: [payee, 7n] });
}
const [value, at] = await done;
assert.equal(value, 7n);
assert(at > 0n && at <= await client.getBlockNumber({ cacheTime: 0 }));
await heads.unsubscribe();
await transactions.unsubscribe();
await assert.rejects(
  client.transport.subscribe({ params: ['syncing'], onData() {}, onError() {} }),
  (error) => error.message.includes('syncing') || error.details?.includes('syncing'),
);
console.log('viem is told');
process.exit(0);
