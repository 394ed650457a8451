# needs: chromium
# A page of a server on the loopback, drawn without a screen. It brings a sandbox of its own, which is none in another one.
echo '<p id=it></p><script>it.textContent = 1 + 2</script>' > index.html
python3 -m http.server 8097 --bind 127.0.0.1 > log 2>&1 & server=$!
sleep 1
chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --virtual-time-budget=2000 --dump-dom http://127.0.0.1:8097/index.html > page 2> errors || { cat errors; exit 1; }
kill "$server"
grep -q '<p id="it">3</p>' page
