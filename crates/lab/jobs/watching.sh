# needs: tail
# A log is followed while it grows.
: > log
tail -n +1 -f log > seen & follower=$!
sleep 0.3
echo text >> log
for _ in $(seq 50); do [ -s seen ] && break; sleep 0.1; done
kill "$follower"
[ "$(cat seen)" = text ]
