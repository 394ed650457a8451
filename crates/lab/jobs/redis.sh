# needs: redis-server redis-cli
# A database on the loopback.
redis-server --port 6399 --daemonize no --save '' > log & server=$!
for _ in $(seq 50); do redis-cli -p 6399 ping > /dev/null 2>&1 && break; sleep 0.1; done
redis-cli -p 6399 set three 3
[ "$(redis-cli -p 6399 get three)" = 3 ]
kill "$server"
