# llm_add_pass_plugin(NAME sources... [TD Passes.td]): a library of passes that
# `llm-opt --load-pass-plugin` loads.  TD is a file with pass declarations; its
# header is generated as `<its name>.h.inc`, for the generated registration
# function register<NAME>Passes.
function(llm_add_pass_plugin name)
  cmake_parse_arguments(ARG "" "TD" "" ${ARGN})
  add_library(${name} MODULE ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE LLMCompiler::LLMCompiler)
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_EXTENSIONS OFF)
  if(ARG_TD)
    set(LLVM_TARGET_DEFINITIONS ${ARG_TD})
    get_filename_component(stem ${ARG_TD} NAME_WE)
    set(includes ${LLM_COMPILER_TD_INCLUDE_DIR} ${MLIR_INCLUDE_DIRS})
    list(TRANSFORM includes PREPEND -I)
    mlir_tablegen(${stem}.h.inc -gen-pass-decls -name ${name} ${includes})
    add_public_tablegen_target(${name}TableGen)
    add_dependencies(${name} ${name}TableGen)
    target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
  endif()
endfunction()
