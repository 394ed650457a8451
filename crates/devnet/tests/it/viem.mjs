// A client that knows nothing of us: viem deploys the token, uses it, reads its
// logs, and pays by a signed authorization. Arguments: the folder with
// node_modules, the chain's URL, a private key, the bytecode.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [folder, url, key, bytecode] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const viem = require('viem');
const { privateKeyToAccount } = require('viem/accounts');
const { foundry } = require('viem/chains');

const abi = viem.parseAbi([
  'function mint(address to, uint256 value)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);
const account = privateKeyToAccount(key);
const payee = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const transport = viem.http(url, { batch: true });
const client = viem.createPublicClient({ chain: foundry, transport, pollingInterval: 50 });
const wallet = viem.createWalletClient({ account, chain: foundry, transport });

const deployed = await client.waitForTransactionReceipt({
  hash: await wallet.deployContract({ abi, bytecode }),
});
assert.equal(deployed.status, 'success');
const address = deployed.contractAddress;
const balance = (of) => client.readContract({ address, abi, functionName: 'balanceOf', args: [of] });
const write = async (functionName, args) => {
  const { request } = await client.simulateContract({ account, address, abi, functionName, args });
  const receipt = await client.waitForTransactionReceipt({ hash: await wallet.writeContract(request) });
  assert.equal(receipt.status, 'success');
  return receipt;
};

await write('mint', [account.address, 100n]);
const moved = await write('transfer', [payee, 30n]);
assert.deepEqual(await Promise.all([balance(account.address), balance(payee)]), [70n, 30n]);

const block = await client.getBlock({ blockHash: moved.blockHash, includeTransactions: true });
assert.equal(block.transactions[0].hash, moved.transactionHash);
const logs = await client.getContractEvents({
  address, abi, eventName: 'Transfer', args: { to: [payee] }, fromBlock: 0n,
});
assert.deepEqual(logs.map((log) => log.args.value), [30n]);

await assert.rejects(
  client.simulateContract({ account, address, abi, functionName: 'transfer', args: [payee, 71n] }),
  (error) => error.message.includes('transfer amount exceeds balance'),
);

const message = {
  from: account.address, to: payee, value: 5n,
  validAfter: 0n, validBefore: 2n ** 64n, nonce: viem.keccak256('0x01'),
};
const fields = 'address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce';
const signature = await account.signTypedData({
  domain: { name: 'USD Coin', version: '2', chainId: foundry.id, verifyingContract: address },
  types: {
    TransferWithAuthorization: fields.split(',').map((field) => {
      const [type, name] = field.split(' ');
      return { type, name };
    }),
  },
  primaryType: 'TransferWithAuthorization',
  message,
});
await write('transferWithAuthorization', [...Object.values(message), signature]);
assert.equal(await balance(payee), 35n);
console.log('viem is content');
