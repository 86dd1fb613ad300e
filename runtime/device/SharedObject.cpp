//===- SharedObject.cpp - Code objects for the processor ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/SharedObject.h"

#include "llm/ABI/kernel.h"
#include "runtime/core/CPUFeatures.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>

namespace llm::runtime {

namespace {

/// A shared object of the system's loader. The loader takes files only, so the
/// bytes are copied into an anonymous one.
class ELFObject : public CodeObject {
public:
  static Expected<std::unique_ptr<CodeObject>>
  load(std::span<const std::byte> bytes) {
    int descriptor = memfd_create("llm-code", MFD_CLOEXEC);
    if (descriptor < 0)
      return Status::resource(std::string("cannot make a file in memory: ") +
                              std::strerror(errno));
    Status written = writeAll(descriptor, bytes);
    void *handle = nullptr;
    std::string message;
    if (written) {
      std::string path = "/proc/self/fd/" + std::to_string(descriptor);
      handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!handle)
        if (const char *error = dlerror())
          message = error;
    }
    if (!handle)
      close(descriptor);
    if (!written)
      return written;
    if (!handle)
      return Status::invalidInput("cannot load it: " + message);
    std::unique_ptr<ELFObject> object(new ELFObject(handle, descriptor));
    LLM_RETURN_IF_ERROR(object->readTable());
    return std::unique_ptr<CodeObject>(std::move(object));
  }

  ~ELFObject() override {
    dlclose(handle);
    close(descriptor);
  }

  const void *find(std::string_view entry) const override {
    auto found = entries.find(entry);
    return found == entries.end() ? nullptr : found->second;
  }

private:
  ELFObject(void *handle, int descriptor)
      : handle(handle), descriptor(descriptor) {}

  static Status writeAll(int descriptor, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      ssize_t written = write(descriptor, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR)
        continue;
      if (written <= 0)
        return Status::resource(std::string("cannot copy the code: ") +
                                std::strerror(errno));
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return Status::success();
  }

  Status readTable() {
    const auto *table = static_cast<const llm_kernel_table *>(
        dlsym(handle, LLM_KERNEL_TABLE_SYMBOL));
    if (!table)
      return Status::invalidInput(
          "it does not export " LLM_KERNEL_TABLE_SYMBOL);
    if (table->abi_version != LLM_KERNEL_ABI_VERSION)
      return Status::unsupported(
          "it has kernel ABI version " + std::to_string(table->abi_version) +
          ", this runtime has version " +
          std::to_string(LLM_KERNEL_ABI_VERSION) +
          ": compile the model again with the llm-compile of this release");
    for (uint32_t i = 0; i < table->num_entries; ++i) {
      const llm_kernel_entry &entry = table->entries[i];
      if (!entry.name || !entry.function)
        return Status::invalidInput("its table has an empty entry");
      entries.emplace(entry.name, entry.function);
    }
    return Status::success();
  }

  void *handle;
  /// Open as long as the object is loaded: the loader takes a path that it has
  /// seen for the library that it has, and a closed descriptor's number is used
  /// again.
  int descriptor;
  /// The names lie in the object.
  std::unordered_map<std::string_view, const void *> entries;
};
} // namespace

Status supportsCpuCode(const artifact::Payload &payload) {
  std::vector<std::string> missing = missingCpuFeatures(payload.features());
  if (missing.empty())
    return Status::success();
  std::string list;
  for (const std::string &feature : missing)
    list += (list.empty() ? "" : ", ") + feature;
  return Status::unsupported(
      "code '" + payload.name() + "' (" + payload.arch() +
      ") needs processor features that are missing here: " + list +
      "; compile the model for this machine (llm-compile --mcpu)");
}

Expected<std::unique_ptr<CodeObject>>
loadSharedObject(std::span<const std::byte> bytes) {
  return ELFObject::load(bytes);
}

} // namespace llm::runtime
