# needs: git
# A repository served on the loopback and cloned from there.
git daemon --help > /dev/null 2>&1 || [ -x "$(git --exec-path)/git-daemon" ] || { echo "git has no daemon"; exit 77; }
git init -q -b main one
git -C one -c user.name=job -c user.email=job@localhost commit -q --allow-empty -m one
git daemon --base-path="$PWD" --export-all --listen=127.0.0.1 --port=9418 "$PWD" & server=$!
for _ in $(seq 50); do git ls-remote git://127.0.0.1/one > /dev/null 2>&1 && break; sleep 0.1; done
git clone -q git://127.0.0.1/one two
kill "$server"
git -C two log --oneline | grep -q one
