# needs: cc
# A program that checks its own memory.
echo 'int main(void) { return 0; }' > one.c
cc -fsanitize=address -o one one.c 2> /dev/null || { echo "the compiler has no sanitizers"; exit 77; }
./one 2> errors && exit 0
grep -q ReserveShadowMemoryRange errors && { echo "there a process may reserve no more memory than its limit"; exit 77; }
cat errors
exit 1
