# needs: tmux
# A multiplexer with two windows.
tmux -S ./socket new-session -d -s job 'echo one > one; sleep 60'
tmux -S ./socket new-window -t job 'echo two > two; sleep 60'
for _ in $(seq 50); do [ -s one ] && [ -s two ] && break; sleep 0.1; done
tmux -S ./socket kill-server
[ "$(cat one two)" = "$(printf 'one\ntwo')" ]
