//===- CPUTarget.cpp - What CPU code is generated for ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Support/CPUTarget.h"

#include "runtime/core/CPUFeatures.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace mlir;

namespace llm {

/// Optional below AVX2.
static constexpr llvm::StringLiteral kSSE[] = {"sse4.1", "ssse3"};
static constexpr llvm::StringLiteral kBase[] = {"avx2", "bmi2", "f16c", "fma"};
static constexpr llvm::StringLiteral kAVX512[] = {"avx512bw", "avx512dq",
                                                  "avx512f", "avx512vl"};
static constexpr llvm::StringLiteral kExtra[] = {
    "amx-bf16", "amx-int8", "amx-tile", "avx512bf16", "avx512vnni"};
/// Without AVX-512.
static constexpr llvm::StringLiteral kAVX2Extra[] = {"avxvnni"};

bool CPUTarget::has(StringRef feature) const {
  return llvm::is_contained(features, feature);
}

std::string CPUTarget::featureString() const {
  std::string result;
  for (const std::string &feature : features)
    result += (result.empty() ? "+" : ",+") + feature;
  return result.empty() ? "+sse2" : result;
}

/// The features of `mcpu`, all of them.
static FailureOr<llvm::StringSet<>> allFeatures(StringRef mcpu,
                                                std::string &error) {
  llvm::StringSet<> all;
  if (mcpu == "native") {
    // Tiles of AMX are a processor's that a system may still refuse.
    for (const auto &entry : llvm::sys::getHostCPUFeatures())
      if (entry.second && (!entry.first().starts_with("amx-") ||
                           runtime::cpuHasFeature(entry.first())))
        all.insert(entry.first());
    return all;
  }
  if (llvm::X86::parseArchX86(mcpu, /*Only64Bit=*/true) == llvm::X86::CK_None) {
    error = "unknown processor '" + mcpu.str() +
            "'; name one that LLVM knows, x86-64, x86-64-v2, x86-64-v3, "
            "x86-64-v4 or native";
    return failure();
  }
  SmallVector<StringRef> names;
  llvm::X86::getFeaturesForCPU(mcpu, names);
  // The table leaves out what its entries imply.
  llvm::StringMap<bool> implied;
  for (StringRef name : names) {
    all.insert(name);
    llvm::X86::updateImpliedFeatures(name, true, implied);
  }
  for (const auto &entry : implied)
    if (entry.second)
      all.insert(entry.first());
  return all;
}

FailureOr<CPUTarget> CPUTarget::get(StringRef mcpu, std::string &error) {
  FailureOr<llvm::StringSet<>> all = allFeatures(mcpu, error);
  if (failed(all))
    return failure();
  CPUTarget target;
  target.name = mcpu == "native" ? llvm::sys::getHostCPUName().str() : mcpu;
  auto hasAll = [&](ArrayRef<llvm::StringLiteral> list) {
    return llvm::all_of(list, [&](StringRef f) { return all->contains(f); });
  };
  // Processors by Intel multiply f32 twice as fast as pairs of bf16: without
  // tiles, whose operands it narrows, the extension is of no use.
  if (!all->contains("amx-bf16") &&
      !StringRef(target.name).starts_with("znver"))
    all->erase("avx512bf16");
  // Those of `list` that the processor has.
  auto take = [&](ArrayRef<llvm::StringLiteral> list) {
    for (StringRef feature : list)
      if (all->contains(feature))
        target.features.push_back(feature.str());
  };
  if (!hasAll(kBase)) {
    take(kSSE);
  } else {
    take(kBase);
    if (hasAll(kAVX512)) {
      take(kAVX512);
      take(kExtra);
    } else {
      take(kAVX2Extra);
    }
  }
  llvm::sort(target.features);
  // The levels name no processor to tune for; take a common one of each.
  target.tune = target.name;
  if (llvm::X86::parseTuneCPU(target.tune, /*Only64Bit=*/true) ==
      llvm::X86::CK_None)
    target.tune = target.has("avx512f") ? "skylake-avx512"
                  : target.has("avx2")  ? "haswell"
                  : target.has("ssse3") ? "nehalem"
                                        : "x86-64";
  return target;
}

FailureOr<std::vector<CPUTarget>> CPUTarget::getAll(ArrayRef<std::string> mcpus,
                                                    std::string &error) {
  std::vector<CPUTarget> targets;
  for (StringRef mcpu : mcpus) {
    FailureOr<CPUTarget> target = get(mcpu, error);
    if (failed(target))
      return failure();
    for (const CPUTarget &other : targets)
      if (other.features == target->features) {
        error = "processors '" + other.name + "' and '" + target->name +
                "' need the same code (" + target->featureString() + ")";
        return failure();
      }
    targets.push_back(std::move(*target));
  }
  // Feature sets differ, so the order is total.
  llvm::sort(targets, [](const CPUTarget &a, const CPUTarget &b) {
    return std::tuple(a.vectorWidth(), a.features.size(), a.features) >
           std::tuple(b.vectorWidth(), b.features.size(), b.features);
  });
  return targets;
}

void CPUTarget::attach(ModuleOp code) const {
  Builder b(code.getContext());
  SmallVector<StringRef> names(features.begin(), features.end());
  code->setAttr(
      kCPUTargetAttr,
      b.getDictionaryAttr({b.getNamedAttr("cpu", b.getStringAttr(name)),
                           b.getNamedAttr("features", b.getStrArrayAttr(names)),
                           b.getNamedAttr("tune", b.getStringAttr(tune))}));
}

FailureOr<CPUTarget> CPUTarget::of(ModuleOp code) {
  auto dict = code->getAttrOfType<DictionaryAttr>(kCPUTargetAttr);
  auto cpu = dict ? dict.getAs<StringAttr>("cpu") : StringAttr();
  auto tune = dict ? dict.getAs<StringAttr>("tune") : StringAttr();
  auto names = dict ? dict.getAs<ArrayAttr>("features") : ArrayAttr();
  if (!cpu || !tune || !names)
    return code.emitError("code module has no ")
           << kCPUTargetAttr << " = {cpu, features, tune}";
  CPUTarget target{cpu.str(), tune.str(), {}};
  for (Attribute name : names) {
    auto text = dyn_cast<StringAttr>(name);
    auto known = [&](ArrayRef<llvm::StringLiteral> list) {
      return llvm::is_contained(list, text.getValue());
    };
    if (!text || !(known(kSSE) || known(kBase) || known(kAVX512) ||
                   known(kExtra) || known(kAVX2Extra)))
      return code.emitError("code module names an unknown CPU feature ")
             << name;
    target.features.push_back(text.str());
  }
  return target;
}

} // namespace llm
