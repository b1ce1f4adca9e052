# How every target of the project is compiled.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# The tool lies at build/<preset>/sundog, so nothing that runs it has to search.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Dev CACHE STRING "Dev or Release" FORCE)
endif()
# -O1 because unoptimised template code makes the tests many times slower than they take to compile.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1" CACHE STRING "Flags of the Dev build" FORCE)
# No NDEBUG: CHECK does not depend on it, and neither should anything else.
set(CMAKE_CXX_FLAGS_RELEASE "-O2" CACHE STRING "Flags of the Release build" FORCE)

find_program(SUNDOG_CCACHE ccache)
mark_as_advanced(SUNDOG_CCACHE)
if(SUNDOG_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache has to be told before it keeps a file that starts from precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${SUNDOG_CCACHE})
endif()

# sundog_precompile(TARGET HEADER...): what most of its files include is read once.  The standard
# library and GoogleTest are a third of the time that a test takes to compile.
#
# The libraries of a Release build go without, so that a file which forgets an #include is still told.
function(sundog_precompile target)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <cstdint> <cstdio>
    <filesystem> <fstream> <functional> <limits> <map> <memory> <optional> <random> <set> <span>
    <sstream> <string> <string_view> <utility> <variant> <vector> ${ARGN})
  target_compile_options(${target} PRIVATE -fpch-preprocess)
endfunction()

# A heavy translation unit takes up to 1.5 GB under the sanitizers: memory, not only cores, limits how
# many are compiled at once.
cmake_host_system_information(RESULT sundog_memory_mb QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR sundog_compile_jobs "${sundog_memory_mb} / 1500 + 1")
set_property(GLOBAL APPEND PROPERTY JOB_POOLS sundog_compile=${sundog_compile_jobs})
set(CMAKE_JOB_POOL_COMPILE sundog_compile)

# Linked privately by everything of ours; generated code does without.
add_library(sundog_warnings INTERFACE)
target_compile_options(sundog_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
# Errors with GCC, which everything is built with; Clang, for the fuzzers alone, only warns.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these inside its own std::string, std::vector and std::variant when it inlines
  # (GCC bugs 105562, 105329, 105651); they say nothing about our code.
  target_compile_options(sundog_warnings INTERFACE -Werror
    -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread
    -Wno-array-bounds -Wno-free-nonheap-object -Wno-dangling-pointer -Wno-use-after-free)
endif()

if(SUNDOG_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # These double GCC's time to compile, and what they find traps anyway (null, object-size,
    # pointer-overflow under AddressSanitizer) or is looked for by the fuzzers, which keep them.
    add_compile_options(-fno-sanitize=null,vptr,object-size,alignment,nonnull-attribute
      -fno-sanitize=returns-nonnull-attribute,pointer-overflow)
  endif()
endif()
if(SUNDOG_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SUNDOG_FUZZ needs clang++: configure with 'cmake --preset fuzz'")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
