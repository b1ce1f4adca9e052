# Every dependency of the project, found here and nowhere else.  install_dependencies.sh installs what
# is missing on Debian.

find_package(Threads REQUIRED)

# Protobuf: the stored form of programs, muGraphs and results.
find_package(Protobuf 3.21 REQUIRED)

# Z3: side conditions of proofs.  Debian's package has no CMake config.
find_path(Z3_INCLUDE_DIR z3.h PATH_SUFFIXES z3)
find_library(Z3_LIBRARY z3)
mark_as_advanced(Z3_INCLUDE_DIR Z3_LIBRARY)
if(NOT Z3_INCLUDE_DIR OR NOT Z3_LIBRARY)
  message(FATAL_ERROR "Z3 not found; run third_party/install_dependencies.sh")
endif()
add_library(Z3::Z3 UNKNOWN IMPORTED)
set_target_properties(Z3::Z3 PROPERTIES
  IMPORTED_LOCATION ${Z3_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${Z3_INCLUDE_DIR})

# Abseil: faster hash tables; optional, a target that uses it tests SUNDOG_HAVE_ABSEIL.
find_package(absl QUIET)
set(SUNDOG_HAVE_ABSEIL ${absl_FOUND})

# OpenMP: the host side of the measuring tools; optional.
find_package(OpenMP QUIET COMPONENTS CXX)

if(SUNDOG_TESTS)
  find_package(GTest REQUIRED)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
endif()
if(SUNDOG_BENCHMARKS)
  find_package(benchmark QUIET)
endif()

# The .proto files of core and frontend, compiled apart from them: generated code is not held to our warnings, and its
# headers are seen by the .cpp files that convert, never by a header of ours.
file(GLOB sundog_protos CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/*.proto
  ${PROJECT_SOURCE_DIR}/frontend/*.proto)
if(sundog_protos)
  add_library(sundog_proto STATIC ${sundog_protos})
  protobuf_generate(TARGET sundog_proto LANGUAGE cpp
    IMPORT_DIRS ${PROJECT_SOURCE_DIR} PROTOC_OUT_DIR ${CMAKE_BINARY_DIR}/generated)
  # SYSTEM: #include "core/sundog.pb.h" compiles under our warnings.
  target_include_directories(sundog_proto SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
  target_link_libraries(sundog_proto PUBLIC protobuf::libprotobuf)
else()
  add_library(sundog_proto INTERFACE)
endif()
