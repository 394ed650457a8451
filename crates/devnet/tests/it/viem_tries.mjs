// A client that knows nothing of us: viem reads many things in one call, tries calls under
// other accounts and in blocks, asks what they touch, deploys by CREATE2, and gives an account
// the code of a contract. Arguments: the folder with node_modules, the chain's URL, a private
// key, the token's address.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [folder, url, key, token] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const viem = require('viem');
const { privateKeyToAccount } = require('viem/accounts');
const { foundry } = require('viem/chains');

const abi = viem.parseAbi([
  'function balanceOf(address account) view returns (uint256)',
  'function totalSupply() view returns (uint256)',
  'function decimals() view returns (uint8)',
  'function transfer(address to, uint256 value) returns (bool)',
]);
const account = privateKeyToAccount(key);
const payee = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const multicall3 = { address: '0xcA11bde05977b3631167028862bE2a173976CA11' };
const chain = { ...foundry, contracts: { multicall3 } };
const client = viem.createPublicClient({ chain, transport: viem.http(url), pollingInterval: 50, batch: { multicall: true } });
const wallet = viem.createWalletClient({ account, chain, transport: viem.http(url) });

// Many reads in one: said so, and batched by the client.
const read = (functionName, args) => ({ address: token, abi, functionName, args });
const told = await client.multicall({
  contracts: [read('balanceOf', [account.address]), read('totalSupply'), read('decimals'), { ...read('decimals'), address: payee }],
});
assert.deepEqual(told.map((one) => one.status), ['success', 'success', 'success', 'failure']);
assert.equal(told[2].result, 6);
const batched = await Promise.all([client.readContract(read('totalSupply')), client.readContract(read('decimals'))]);
assert.deepEqual(batched, [told[1].result, 6]);

// A call under other accounts.
const other = '0x00000000000000000000000000000000000000cd';
const overrides = [{ address: other, code: '0x33315f5260205ff3' }, { address: account.address, balance: 5n }];
const { data } = await client.call({ account, to: other, stateOverride: overrides });
assert.equal(BigInt(data), 5n);
assert.equal(await client.getCode({ address: other }), undefined);

// What a call touches.
const { accessList, gasUsed } = await client.createAccessList({
  account: account.address, to: token,
  data: viem.encodeFunctionData({ abi, functionName: 'transfer', args: [payee, 1n] }),
});
assert.equal(accessList[0].address.toLowerCase(), token.toLowerCase());
assert.equal(accessList[0].storageKeys.length, 2);
assert.ok(gasUsed > 21000n);

// Blocks of calls.
const blocks = await client.simulateBlocks({
  blocks: [{
    blockOverrides: { time: 4_000_000_000n },
    stateOverrides: [{ address: other, balance: viem.parseEther('1') }],
    calls: [
      { account: other, to: payee, value: 7n },
      { account: account.address, to: token, abi, functionName: 'transfer', args: [payee, 3n] },
      { account: other, to: token, abi, functionName: 'transfer', args: [payee, 3n] },
    ],
  }],
});
assert.equal(blocks[0].timestamp, 4_000_000_000n);
assert.deepEqual(blocks[0].calls.map((call) => call.status), ['success', 'success', 'failure']);
assert.equal(blocks[0].calls[1].result, true);
assert.equal(blocks[0].calls[1].logs.length, 1);
assert.ok(blocks[0].calls[2].error.message.includes('transfer amount exceeds balance'));
const { assetChanges, results } = await client.simulateCalls({
  account: account.address, traceAssetChanges: true,
  calls: [{ to: payee, value: 9n }, { to: token, abi, functionName: 'transfer', args: [payee, 2n] }],
});
assert.deepEqual(results.map((one) => one.status), ['success', 'success']);
const changed = (name) => assetChanges.find((one) => one.token.symbol === name).value.diff;
assert.deepEqual([changed('ETH'), changed('USDC')], [-9n, -2n]);

// A contract by CREATE2, without a deployer of its own.
const creation = '0x6008600a5f3960085ff333315f5260205ff3';
const deployer = '0x4e59b44847b379578588920ca78fbf26c0b4956c';
const salt = viem.pad('0x07');
const hash = await wallet.sendTransaction({ to: deployer, data: viem.concat([salt, creation]) });
await client.waitForTransactionReceipt({ hash });
const made = viem.getContractAddress({ opcode: 'CREATE2', from: deployer, salt, bytecode: creation });
assert.equal(await client.getCode({ address: made }), '0x33315f5260205ff3');

// An account with code.
const authorization = await wallet.signAuthorization({ account, contractAddress: made, executor: 'self' });
const sent = await wallet.sendTransaction({ to: account.address, authorizationList: [authorization] });
const receipt = await client.waitForTransactionReceipt({ hash: sent });
assert.deepEqual([receipt.status, receipt.type], ['success', 'eip7702']);
const shown = await client.getTransaction({ hash: sent });
assert.equal(shown.authorizationList.length, 1);
assert.equal(await client.getCode({ address: account.address }), viem.concat(['0xef0100', made.toLowerCase()]));
assert.equal(await client.getBlobBaseFee(), 1n);
console.log('viem has tried it all');
