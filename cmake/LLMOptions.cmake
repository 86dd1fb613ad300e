# Flags, the compiler cache and the linker, shared by every target.
find_program(LLM_CCACHE ccache)
if(LLM_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${LLM_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LLM_CCACHE})
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(-fuse-ld=lld)
endif()
add_link_options(-Wl,--gc-sections)
add_compile_options(-Wall -Wextra -ffunction-sections -fdata-sections)
option(LLM_WERROR "Treat warnings as errors" ON)
if(LLM_WERROR)
  add_compile_options(-Werror)
endif()

# Fuzzers need the libraries they run to report coverage.
if(LLM_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# llm_add_library(NAME sources...): a static library of the runtime, or one
# without MLIR that both sides use.
function(llm_add_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(${name} SYSTEM PUBLIC ${PROJECT_BINARY_DIR}
    ${PROJECT_BINARY_DIR}/include)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

# llm_add_compiler_objects(NAME sources...): a part of libLLMCompiler, the one
# shared library that dialects, passes and the importer form, so that plugins
# see one set of type ids.  Style rule 16 gives the order of the parts.
function(llm_add_compiler_objects name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} OBJECT ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(${name} SYSTEM PUBLIC ${PROJECT_BINARY_DIR}
    ${PROJECT_BINARY_DIR}/include ${LLVM_INCLUDE_DIRS}
    ${MLIR_INCLUDE_DIRS})
  # Optimising MLIR-heavy C++ costs build time and buys nothing measurable.
  target_compile_options(${name} PRIVATE -O1 -Wno-unused-parameter
    -fvisibility=default)
  target_compile_definitions(${name} PRIVATE __STDC_LIMIT_MACROS
    __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  add_dependencies(${name} LLMTableGen ${ARG_DEPENDS})
  set_property(GLOBAL APPEND PROPERTY LLM_COMPILER_OBJECTS ${name})
endfunction()

# llm_add_unit_test(NAME sources... [SHARDS N]): a GoogleTest program, registered
# with CTest (as N tests), and a dependency of the target `unit-tests`.
add_custom_target(unit-tests)
function(llm_add_unit_test name)
  cmake_parse_arguments(ARG "" "SHARDS" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/unit)
  add_dependencies(unit-tests ${name})
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    return()
  endif()
  # So many tests of CTest, which then run side by side.
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}-${shard} COMMAND ${name})
    set_tests_properties(${name}-${shard} PROPERTIES ENVIRONMENT
      "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
