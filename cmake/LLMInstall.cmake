# What `make install` puts where, and the package LLMCompiler for projects with
# passes of their own (docs/guide/first-pass.md).  The runtime's library and
# include/llm install themselves (runtime/session, tools/llm-run).
include(CMakePackageConfigHelpers)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/llm-compiler)
if(NOT LLM_BUILD_COMPILER)
  return()
endif()

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/LLMCompiler)
# Not in the include directory itself: `lib` and `passes` are names of many.
set(_headers_dir ${CMAKE_INSTALL_INCLUDEDIR}/llm-compiler)

install(TARGETS llm-compile llm-opt RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS LLMCompiler EXPORT LLMCompilerTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${_headers_dir} ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT LLMCompilerTargets NAMESPACE LLMCompiler::
  DESTINATION ${_package_dir})

install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/recipes
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/llm-compiler)

# The dialects as they are, sources aside; of the rest what passes call.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/dialects DESTINATION ${_headers_dir}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td")
install(DIRECTORY ${PROJECT_BINARY_DIR}/dialects DESTINATION ${_headers_dir}
  FILES_MATCHING PATTERN "*.h.inc" PATTERN "CMakeFiles" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/passes DESTINATION ${_headers_dir}
  FILES_MATCHING PATTERN "Passes.h" PATTERN "Passes.td"
  PATTERN "CPU" EXCLUDE PATTERN "CUDA" EXCLUDE)
install(DIRECTORY ${PROJECT_BINARY_DIR}/passes DESTINATION ${_headers_dir}
  FILES_MATCHING PATTERN "Passes.h.inc" PATTERN "CMakeFiles" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/lib/Analysis
  ${PROJECT_SOURCE_DIR}/lib/Support DESTINATION ${_headers_dir}/lib
  FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/lib/Pipeline/LoadModule.h
  ${PROJECT_SOURCE_DIR}/lib/Pipeline/Register.h
  DESTINATION ${_headers_dir}/lib/Pipeline)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/LLMCompilerConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/LLMCompilerConfig.cmake
  INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/cmake/LLMCompilerConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/LLMCompilerConfig.cmake
  ${PROJECT_BINARY_DIR}/cmake/LLMCompilerConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/LLMPassPlugin.cmake
  DESTINATION ${_package_dir})
