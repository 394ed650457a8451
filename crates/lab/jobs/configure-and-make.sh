# needs: cc make
# A source tree with a configure script: configured, built in parallel, checked and installed.
cat > configure <<'C'
#!/bin/sh
prefix=/usr/local
for word; do case $word in --prefix=*) prefix=${word#*=} ;; esac; done
echo 'int main(void) { return 0; }' > probe.c
cc -o probe probe.c && ./probe || exit 1
sed "s|@prefix@|$prefix|" Makefile.in > Makefile
C
printf 'prefix = @prefix@\nall: one two\none: one.c\n\tcc -o $@ one.c\ntwo: two.c\n\tcc -o $@ two.c\ncheck: all\n\t./one && ./two\ninstall: all\n\tinstall -D -o root -g root -m 755 one $(DESTDIR)$(prefix)/bin/one\n' > Makefile.in
echo 'int main(void) { return 0; }' | tee one.c > two.c
chmod +x configure
./configure --prefix=/opt/job
make -j4 check
make install DESTDIR="$PWD/root"
root/opt/job/bin/one
