# The lit suites. Features that tests may require:
#   shared   the data directory beside the checkout is there (%shared)
#   full     sweeps that only `make check-full` runs
#   ptxas    a ptxas was found
import glob
import os
import shutil

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "LLM"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "fixtures", "unit", "fuzz", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.llm_build_dir, "test")

source, build = config.llm_source_dir, config.llm_build_dir
python = os.path.join(build, "venv", "bin", "python")
if not os.path.exists(python):
    lit_config.fatal("build/venv is missing: run scripts/setup.sh")
shared = os.path.join(os.path.dirname(source), "shared", "data")
if os.path.isdir(shared):
    config.available_features.add("shared")
if lit_config.params.get("full", "0") == "1":
    config.available_features.add("full")
try:
    for end in os.openpty():
        os.close(end)
    config.available_features.add("pseudo-terminal")
except OSError:  # Some containers have none.
    pass
# Where the compiler looks for it (lib/Target/CUDA/Assembler.h).
toolkits = ["CUDA_ROOT", "CUDA_HOME", "CUDA_PATH"]
llvm_config.with_system_environment(toolkits)
if (
    shutil.which("ptxas")
    or any(os.path.exists(os.environ.get(t, "") + "/bin/ptxas") for t in toolkits)
    or os.path.exists("/usr/local/cuda/bin/ptxas")
    or glob.glob(build + "/venv/lib/python3*/site-packages/nvidia/*/bin/ptxas")
):
    config.available_features.add("ptxas")

config.substitutions += [
    ("%python", python),
    ("%shared", shared),
    ("%models", os.path.join(source, "models")),
    ("%fixtures", os.path.join(source, "test", "fixtures")),
    ("%build", build),
    ("%source", source),
    ("%cxx", config.llm_cxx),
    ("%cc", config.llm_cc),
]
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["LLM_SOURCE_DIR"] = source
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
llvm_config.with_environment("PATH", os.path.join(build, "bin"), append_path=True)
llvm_config.add_tool_substitutions(
    [
        ToolSubst("llm-opt"),
        ToolSubst("llm-compile", unresolved="ignore"),
        ToolSubst("llm-run", unresolved="ignore"),
        "FileCheck",
        "not",
        "count",
        "split-file",
        "mlir-opt",
    ],
    [os.path.join(build, "bin"), config.llvm_tools_dir],
)
