# needs: cc ar
# A static and a shared library, and a program of each.
echo 'int three(void) { return 3; }' > three.c
echo 'int three(void); int main(void) { return three() - 3; }' > main.c
cc -c three.c && ar rcs libthree.a three.o && cc -o static main.c libthree.a && ./static
cc -shared -fPIC -o libthree.so three.c && cc -o shared main.c -L. -lthree
LD_LIBRARY_PATH=. ./shared
