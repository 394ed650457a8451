# needs: cmake cc
# A project for CMake with a test.
printf 'cmake_minimum_required(VERSION 3.10)\nproject(job C)\nenable_testing()\nadd_executable(one one.c)\nadd_test(NAME one COMMAND one)\n' > CMakeLists.txt
echo 'int main(void) { return 0; }' > one.c
cmake -S . -B build > /dev/null
cmake --build build
ctest --test-dir build
