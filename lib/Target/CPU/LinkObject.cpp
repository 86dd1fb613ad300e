//===- LinkObject.cpp - ELF objects to a closed shared object -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CPU/LinkObject.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cstdlib>
#include <mutex>
#include <tuple>

LLD_HAS_DRIVER(elf)

using namespace mlir;
namespace fs = llvm::sys::fs;

namespace llm {

namespace {
/// A directory that only this user reads, gone with the object.
struct TemporaryDirectory {
  std::string path;
  TemporaryDirectory() {
    SmallString<128> name;
    llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, name);
    llvm::sys::path::append(name, "llm-link-XXXXXX");
    std::string made = name.str().str();
    if (mkdtemp(made.data()))
      path = made;
  }
  ~TemporaryDirectory() {
    if (!path.empty())
      std::ignore = fs::remove_directories(path);
  }
  std::string file(StringRef name) const { return path + "/" + name.str(); }
};
} // namespace

using EmitError = function_ref<InFlightDiagnostic()>;
using SymbolRange = llvm::object::ELFObjectFileBase::elf_symbol_iterator_range;

static FailureOr<std::unique_ptr<llvm::object::ObjectFile>>
parse(StringRef bytes, EmitError emitError) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(bytes, "code"));
  if (!file)
    return emitError() << "generated code is not an ELF file: "
                       << llvm::toString(file.takeError());
  return std::move(*file);
}

namespace {
/// Names of global symbols.
struct Symbols {
  SmallVector<std::string> undefined;
  llvm::StringSet<> defined;
  SmallVector<std::string> visible; ///< defined, and not hidden
};
} // namespace

/// Adds those of `range`.
static LogicalResult listSymbols(SymbolRange range, Symbols &symbols,
                                 EmitError emitError) {
  using llvm::object::SymbolRef;
  for (llvm::object::ELFSymbolRef symbol : range) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    llvm::Expected<StringRef> name = symbol.getName();
    if (!flags || !name) {
      llvm::consumeError(flags.takeError());
      llvm::consumeError(name.takeError());
      return emitError() << "generated code has a damaged symbol table";
    }
    if ((*flags & SymbolRef::SF_FormatSpecific) || name->empty())
      continue;
    if (*flags & SymbolRef::SF_Undefined) {
      symbols.undefined.push_back(name->str());
    } else if (*flags & SymbolRef::SF_Global) {
      symbols.defined.insert(*name);
      if (symbol.getOther() == llvm::ELF::STV_DEFAULT)
        symbols.visible.push_back(name->str());
    }
  }
  return success();
}

static LogicalResult checkObjects(ArrayRef<SmallVector<char, 0>> objects,
                                  EmitError emitError) {
  Symbols symbols;
  for (const SmallVector<char, 0> &object : objects) {
    auto file = parse(StringRef(object.data(), object.size()), emitError);
    if (failed(file) ||
        failed(
            listSymbols(cast<llvm::object::ELFObjectFileBase>(**file).symbols(),
                        symbols, emitError)))
      return failure();
  }
  for (const std::string &name : symbols.undefined)
    if (!symbols.defined.contains(name))
      return emitError() << "the code calls '" << name
                         << "', which nothing defines: a code object has no "
                            "undefined symbol";
  return success();
}

static LogicalResult checkShared(StringRef shared, StringRef exported,
                                 EmitError emitError) {
  auto file = parse(shared, emitError);
  if (failed(file))
    return failure();
  auto *elf = dyn_cast<llvm::object::ELF64LEObjectFile>(file->get());
  if (!elf)
    return emitError() << "generated code is not a 64-bit ELF file";
  Symbols symbols;
  if (failed(listSymbols(elf->getDynamicSymbolIterators(), symbols, emitError)))
    return failure();
  if (!symbols.undefined.empty())
    return emitError() << "the code object needs '" << symbols.undefined.front()
                       << "'";
  for (const std::string &name : symbols.visible)
    if (name != exported)
      return emitError() << "the code object exports '" << name << "' beside '"
                         << exported << "'";
  if (symbols.visible.empty())
    return emitError() << "the code object does not export '" << exported
                       << "'";
  auto entries = elf->getELFFile().dynamicEntries();
  if (!entries)
    return emitError() << "the code object has no dynamic section: "
                       << llvm::toString(entries.takeError());
  for (const auto &entry : *entries)
    if (entry.getTag() == llvm::ELF::DT_NEEDED)
      return emitError() << "the code object needs another library";
  return success();
}

static LogicalResult writeFile(const std::string &path, ArrayRef<char> bytes,
                               EmitError emitError) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (!error) {
    stream << StringRef(bytes.data(), bytes.size());
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  if (error)
    return emitError() << "cannot write '" << path << "': " << error.message();
  return success();
}

FailureOr<SmallVector<char, 0>>
linkSharedObject(ArrayRef<SmallVector<char, 0>> objects, StringRef exported,
                 EmitError emitError) {
  if (failed(checkObjects(objects, emitError)))
    return failure();
  TemporaryDirectory directory;
  if (directory.path.empty())
    return emitError()
           << "cannot make a temporary directory: "
           << std::error_code(errno, std::generic_category()).message();
  std::string output = directory.file("code.so");
  std::vector<std::string> inputs;
  for (const SmallVector<char, 0> &object : objects) {
    inputs.push_back(
        directory.file("code" + std::to_string(inputs.size()) + ".o"));
    if (failed(writeFile(inputs.back(), object, emitError)))
      return failure();
  }
  SmallVector<const char *> args{"ld.lld",          "-shared",
                                 "--no-undefined",  "-Bsymbolic",
                                 "--gc-sections",   "--strip-debug",
                                 "--build-id=none", "--hash-style=gnu",
                                 "--threads=1",     "-znow",
                                 "-zrelro",         "-znoexecstack",
                                 "-zseparate-code", "-o",
                                 output.c_str()};
  for (const std::string &input : inputs)
    args.push_back(input.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result{1, false};
  {
    // lld keeps its state in globals; after a crash it cannot run again.
    static std::mutex mutex;
    static bool usable = true;
    std::lock_guard<std::mutex> lock(mutex);
    if (!usable)
      return emitError() << "the linker crashed earlier in this process";
    result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
    usable = result.canRunAgain;
  }
  if (result.retCode != 0)
    return emitError() << "linking failed: " << StringRef(messages).trim();
  auto linked = llvm::MemoryBuffer::getFile(output, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!linked)
    return emitError() << "cannot read '" << output
                       << "': " << linked.getError().message();
  StringRef bytes = (*linked)->getBuffer();
  if (failed(checkShared(bytes, exported, emitError)))
    return failure();
  return SmallVector<char, 0>(bytes.begin(), bytes.end());
}

} // namespace llm
