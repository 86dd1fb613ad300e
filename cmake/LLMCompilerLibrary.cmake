# libLLMCompiler: every part registered by llm_add_compiler_objects, in one
# shared library.
get_property(_objects GLOBAL PROPERTY LLM_COMPILER_OBJECTS)
set(_sources)
foreach(_object ${_objects})
  list(APPEND _sources $<TARGET_OBJECTS:${_object}>)
endforeach()
add_library(LLMCompiler SHARED ${_sources})
set_target_properties(LLMCompiler PROPERTIES VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_include_directories(LLMCompiler PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_include_directories(LLMCompiler SYSTEM PUBLIC
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
  "$<BUILD_INTERFACE:${LLVM_INCLUDE_DIRS}>"
  "$<BUILD_INTERFACE:${MLIR_INCLUDE_DIRS}>")
get_property(_libs GLOBAL PROPERTY LLM_COMPILER_LIBS)
target_link_libraries(LLMCompiler PUBLIC MLIR LLVM PRIVATE ${_libs})
