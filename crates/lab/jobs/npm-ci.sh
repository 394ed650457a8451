# needs: npm node
# A package with a local dependency: packed, locked, installed anew and tested.
mkdir -p part app
echo '{"name":"part","version":"1.0.0","main":"index.js"}' > part/package.json
echo 'module.exports = 3' > part/index.js
(cd part && npm pack --silent)
cd app
echo '{"name":"app","version":"1.0.0","scripts":{"test":"node test.js"},"dependencies":{"part":"file:../part/part-1.0.0.tgz"}}' > package.json
echo "process.exit(require('part') - 3)" > test.js
npm install --silent
npm ci --silent
npm test --silent
