# needs: tar install
# Archives and copies whose files belong to somebody else.
mkdir tree && echo text > tree/file
tar --owner=builder:1000 --group=builder:1000 -cf release.tar tree && rm -r tree
tar xf release.tar && tar xpf release.tar
chown -R 1000:1000 tree && chown www-data tree/file && chgrp users tree/file && chown -h nobody:nogroup tree
cp -a tree copy && cp -p tree/file same
install -D -o daemon -g staff -m 644 tree/file root/file
[ "$(cat copy/file same root/file | sort -u)" = text ]
[ "$(stat -c %u root/file)" = 0 ]
