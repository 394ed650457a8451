# Included by CMake at the end of each project() of llama.cpp (CMAKE_PROJECT_INCLUDE).
# The kernels are written with the processor's own instructions: level 3 makes them longer
# to compile and no faster. What loads a model and lays out its graph, for a hundred and
# thirty families of models, is half of what is compiled and runs for moments.
set(LLAMA_ALL_WARNINGS OFF)
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(PROJECT_NAME STREQUAL "llama.cpp" AND CMAKE_VERSION VERSION_GREATER_EQUAL 3.19)
    cmake_language(DEFER CALL target_compile_options llama PRIVATE -O1)
endif()
