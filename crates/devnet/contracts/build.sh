#!/usr/bin/env bash
# Compiles the contracts beside this script, byte for byte as they are committed.
# Needs node and npm; the compiler comes from npm at the version written below.
#
#   --check   compares with what is committed, and writes nothing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly solc=0.8.37
check=no
case "${1:-}" in
    "") ;;
    --check) check=yes ;;
    *) echo "usage: build.sh [--check]" >&2 && exit 1 ;;
esac

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
npm install --prefix "$work" --silent --no-save --no-audit --no-fund --ignore-scripts "solc@$solc"
CHECK="$check" node - "$work" <<'JS'
const fs = require('fs');
const crypto = require('crypto');
const solc = require(`${process.argv[2]}/node_modules/solc`);

// The token is deployed by its creator. The others are in the first block as if they had been:
// they have no constructor, and their code is what is at their address.
const contracts = {
  UsdCoin: 'bytecode',
  Multicall3: 'deployedBytecode',
  Permit2: 'deployedBytecode',
  ExactPermit2Proxy: 'deployedBytecode',
};

function compile(name, part) {
  const file = `${name}.sol`;
  // The hash of the metadata names paths and would differ from machine to machine.
  const settings = {
    evmVersion: 'cancun',
    optimizer: { enabled: true, runs: 200 },
    metadata: { bytecodeHash: 'none', appendCBOR: false },
    viaIR: name !== 'UsdCoin',
    outputSelection: { '*': { '*': [`evm.${part}.object`] } },
  };
  const sources = { [file]: { content: fs.readFileSync(file, 'utf8') } };
  const output = JSON.parse(solc.compile(JSON.stringify({ language: 'Solidity', sources, settings })));
  for (const note of output.errors ?? []) console.error(note.formattedMessage);
  if ((output.errors ?? []).length > 0) process.exit(1);
  return output.contracts[file][name].evm[part].object;
}

const OPCODES = {
  ADD: '01', ISZERO: '15', CALLVALUE: '34', CALLDATALOAD: '35', CALLDATASIZE: '36', CALLDATACOPY: '37',
  POP: '50', MSTORE: '52', JUMPI: '57', PUSH1: '60', PUSH32: '7f', DUP1: '80', DUP2: '81', DUP3: '82',
  RETURN: 'f3', CREATE2: 'f5', REVERT: 'fd',
};

function assemble(name) {
  const lines = fs.readFileSync(`${name}.asm`, 'utf8').split('\n').map((line) => line.replace(/;.*/, '').trim());
  const places = {};
  let at = 0;
  for (const line of lines.filter(Boolean)) {
    const [word, operand] = line.split(/\s+/);
    if (word.endsWith(':')) places[word.slice(0, -1)] = at;
    at += 1 + (operand ? (operand.startsWith('@') ? 1 : operand.length / 2) : 0);
  }
  return lines.filter(Boolean).map((line) => {
    const [word, operand = ''] = line.split(/\s+/);
    if (word.endsWith(':')) return '5b';
    if (!OPCODES[word]) throw new Error(`${name}.asm: there is no opcode ${word} here`);
    const place = operand.startsWith('@') ? places[operand.slice(1)].toString(16).padStart(2, '0') : operand;
    return OPCODES[word] + place;
  }).join('');
}

function keep(name, code) {
  const sum = crypto.createHash('sha256').update(Buffer.from(code, 'hex')).digest('hex');
  for (const [file, text] of [[`${name}.hex`, `${code}\n`], [`${name}.sha256`, `${sum}\n`]]) {
    if (process.env.CHECK === 'no') fs.writeFileSync(file, text);
    else if (fs.readFileSync(file, 'utf8') !== text) {
      console.error(`${file} is not what the source compiles to: run build.sh and commit it`);
      process.exit(1);
    }
  }
  console.error(`${name}: ${code.length / 2} bytes, sha256 ${sum}`);
}

for (const [name, part] of Object.entries(contracts)) keep(name, compile(name, part));
keep('Create2Deployer', assemble('Create2Deployer'));
JS
