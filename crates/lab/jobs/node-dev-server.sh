# needs: node
# A server for development: names its addresses, watches its folder, answers.
cat > server.js <<'J'
const http = require('http'), os = require('os'), fs = require('fs')
console.log('interfaces', Object.keys(os.networkInterfaces()).join())
fs.writeFileSync('page', 'before')
const watcher = fs.watch('.', () => {
  watcher.close()
  const server = http.createServer((_, answer) => answer.end(fs.readFileSync('page')))
  server.listen(0, () => http.get({ port: server.address().port }, (answer) => {
    answer.on('data', (text) => { console.log(String(text)); process.exit(String(text) === 'after' ? 0 : 1) })
  }))
})
setTimeout(() => fs.writeFileSync('page', 'after'), 100)
J
node server.js
