//===- RunState.h - What a run over the layers has done ---------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_RUNSTATE_H
#define LLM_PASSES_COMPRESS_RUNSTATE_H

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>

namespace mlir::llm {

/// On the module: the directory in which passes keep what they have done, where
/// their options name none (StrAttr). It is `openRunDirectory`'s.
inline constexpr StringRef kCalibrationStateAttr = "llm.calibration_state";

/// Makes a directory for states and results of runs, or takes the one of an
/// earlier compilation. Reports through `module` one that is something else's.
LogicalResult openRunDirectory(ModuleOp module, StringRef directory);
/// Removes such a directory with all that is in it; another one is left alone.
void removeRunDirectory(StringRef directory);

/// A directory of what a run that goes layer by layer has done, so that a later
/// one goes on. What the run is about is told by a key; what one with another
/// key left there is removed. One process has it at a time.
class RunState {
public:
  /// Makes the directory where it is missing. Reports through `module` one
  /// that cannot be made or read, is in use, or holds what is of no run.
  static FailureOr<RunState> open(ModuleOp module, StringRef directory,
                                  StringRef key);

  const std::string &directory() const { return dir; }
  /// A file of the directory: statistics, run.llmx, hidden.N, layer.N.
  std::string file(StringRef name) const;
  /// A directory in it for weights that passes make.
  std::string weights() const { return file("weights"); }
  /// Layers that are done.
  int64_t done() const { return layers; }
  /// Notes that the first `count` layers are done; what they left must be
  /// written.
  LogicalResult setDone(int64_t count);
  /// Forgets what was done.
  LogicalResult restart();
  /// Removes the files and the directory.
  void remove();

private:
  RunState(ModuleOp module, StringRef directory, StringRef key)
      : module(module), dir(directory), key(key) {}
  LogicalResult lock();
  void removeFiles();

  ModuleOp module;
  std::string dir, key;
  int64_t layers = 0;
  std::shared_ptr<int> locked; ///< the directory, open
};

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_RUNSTATE_H
