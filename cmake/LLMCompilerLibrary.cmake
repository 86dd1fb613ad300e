# libLLMCompiler: every part registered by llm_add_compiler_objects, in one
# shared library.
get_property(_objects GLOBAL PROPERTY LLM_COMPILER_OBJECTS)
set(_sources)
foreach(_object ${_objects})
  list(APPEND _sources $<TARGET_OBJECTS:${_object}>)
endforeach()
add_library(LLMCompiler SHARED ${_sources})
target_include_directories(LLMCompiler PUBLIC ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/include)
target_include_directories(LLMCompiler SYSTEM PUBLIC ${PROJECT_BINARY_DIR}
  ${PROJECT_BINARY_DIR}/include ${LLVM_INCLUDE_DIRS}
  ${MLIR_INCLUDE_DIRS})
get_property(_libs GLOBAL PROPERTY LLM_COMPILER_LIBS)
target_link_libraries(LLMCompiler PUBLIC MLIR LLVM PRIVATE ${_libs})
