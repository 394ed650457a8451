# needs: node
# The runner of tests that node brings, with workers.
node -e "process.exit(+process.versions.node.split('.')[0] < 18 ? 77 : 0)" || { echo "node is too old"; exit 77; }
cat > one.test.js <<'J'
const test = require('node:test'), assert = require('assert'), { Worker } = require('worker_threads')
test('a worker answers', (_, done) => {
  new Worker("require('worker_threads').parentPort.postMessage(3)", { eval: true }).on('message', (it) => { assert.strictEqual(it, 3); done() })
})
J
node --test one.test.js
