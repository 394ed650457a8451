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

// The hash of the metadata names paths and would differ from machine to machine.
const settings = {
  evmVersion: 'cancun',
  optimizer: { enabled: true, runs: 200 },
  metadata: { bytecodeHash: 'none', appendCBOR: false },
  outputSelection: { '*': { '*': ['evm.bytecode.object'] } },
};
const file = 'UsdCoin.sol';
const sources = { [file]: { content: fs.readFileSync(file, 'utf8') } };
const output = JSON.parse(solc.compile(JSON.stringify({ language: 'Solidity', sources, settings })));
for (const note of output.errors ?? []) console.error(note.formattedMessage);
if ((output.errors ?? []).length > 0) process.exit(1);

const code = output.contracts[file].UsdCoin.evm.bytecode.object;
const sum = crypto.createHash('sha256').update(Buffer.from(code, 'hex')).digest('hex');
for (const [name, text] of [['UsdCoin.hex', `${code}\n`], ['UsdCoin.sha256', `${sum}\n`]]) {
  if (process.env.CHECK === 'no') fs.writeFileSync(name, text);
  else if (fs.readFileSync(name, 'utf8') !== text) {
    console.error(`${name} is not what the source compiles to: run build.sh and commit it`);
    process.exit(1);
  }
}
console.error(`UsdCoin: ${code.length / 2} bytes of creation code, sha256 ${sum}`);
JS
