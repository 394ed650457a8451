# needs: dpkg-deb
# A package: built, looked at and unpacked.
mkdir -p one/DEBIAN one/usr/share/one && echo text > one/usr/share/one/file
printf 'Package: one\nVersion: 1\nArchitecture: all\nMaintainer: job <job@localhost>\nDescription: one\n' > one/DEBIAN/control
dpkg-deb --root-owner-group --build one one.deb && dpkg-deb --contents one.deb && dpkg-deb --extract one.deb out
cmp one/usr/share/one/file out/usr/share/one/file
