# needs: zip unzip gzip
# Archives of other kinds.
mkdir tree && echo text > tree/file
zip -qr tree.zip tree && (mkdir zipped && cd zipped && unzip -qX ../tree.zip)
tar czf tree.tgz tree && tar xzf tree.tgz -C zipped
if command -v cpio > /dev/null; then find tree | cpio -o -H newc -R 1000:1000 2> /dev/null > tree.cpio; (mkdir un && cd un && cpio -id 2> /dev/null < ../tree.cpio); fi
if command -v rsync > /dev/null; then rsync -a --chown=1000:1000 tree/ synced/; cmp tree/file synced/file; fi
cmp tree/file zipped/tree/file
