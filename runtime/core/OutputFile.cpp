//===- OutputFile.cpp - Files that are whole or not there -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/OutputFile.h"

#include "runtime/core/Memory.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace llm::runtime {

namespace {

constexpr int maxLinks = 40;

/// The temporary files of this process, for removeUnfinished(): a handler of
/// signals can read neither a string nor a container that changes.
struct Unfinished {
  std::atomic<bool> taken = false, present = false;
  char path[PATH_MAX] = {};
};
std::array<Unfinished, 8> unfinished;

/// A slot that holds `path`; -1 where all are taken.
int remember(const std::string &path) {
  for (size_t i = 0; i < unfinished.size(); ++i) {
    Unfinished &slot = unfinished[i];
    if (path.size() >= sizeof(slot.path) || slot.taken.exchange(true))
      continue;
    std::memcpy(slot.path, path.c_str(), path.size() + 1);
    slot.present = true;
    return static_cast<int>(i);
  }
  return -1;
}

void forget(int index) {
  if (index < 0)
    return;
  Unfinished &slot = unfinished[static_cast<size_t>(index)];
  slot.present = false;
  slot.taken = false;
}

Status cannotWrite(const std::string &name, const char *reason) {
  return Status::resource(name + ": cannot write: " + reason);
}

Status cannotWrite(const std::string &name, int error) {
  return cannotWrite(name, std::strerror(error));
}

std::string directoryOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Follows the links that `path` ends in. Those of procfs (/dev/stdout is one
/// in the end) stand for open files, which may have no name: `path` then is the
/// link. False with errno set on failure.
bool followLinks(std::string &path, bool &isDescriptor) {
  isDescriptor = false;
  for (int links = 0; links < maxLinks; ++links) {
    char target[PATH_MAX];
    ssize_t length = readlink(path.c_str(), target, sizeof(target));
    if (length < 0)
      return errno == EINVAL || errno == ENOENT;
    if (static_cast<size_t>(length) == sizeof(target)) {
      errno = ENAMETOOLONG;
      return false;
    }
    std::string directory = directoryOf(path);
    struct statfs system;
    if (statfs(directory.c_str(), &system) == 0 &&
        system.f_type == PROC_SUPER_MAGIC) {
      isDescriptor = true;
      return true;
    }
    std::string next(target, static_cast<size_t>(length));
    path = next[0] == '/' ? next : directory + "/" + next;
  }
  errno = ELOOP;
  return false;
}

std::string realDirectory(const std::string &path) {
  char buffer[PATH_MAX];
  return realpath(path.c_str(), buffer) ? buffer : "";
}

/// The descriptor of this process that a link of procfs stands for; -1 for one
/// of another process.
int ownDescriptor(const std::string &link) {
  std::string name = link.substr(link.rfind('/') + 1);
  int descriptor = -1;
  const char *last = name.data() + name.size();
  auto [end, error] = std::from_chars(name.data(), last, descriptor);
  bool number = error == std::errc() && end == last && descriptor >= 0;
  std::string ours = realDirectory("/proc/self/fd");
  if (!number || ours.empty() || realDirectory(directoryOf(link)) != ours)
    return -1;
  return descriptor;
}

} // namespace

Expected<OutputFile> OutputFile::create(const std::string &path, Kind kind) {
  if (path.empty())
    return cannotWrite(path, ENOENT);
  std::string target = path;
  bool isDescriptor;
  if (!followLinks(target, isDescriptor))
    return cannotWrite(path, errno);
  struct stat info;
  bool exists = stat(target.c_str(), &info) == 0;
  if (!exists && errno != ENOENT)
    return cannotWrite(path, errno);
  if (exists && S_ISDIR(info.st_mode))
    return cannotWrite(path, EISDIR);
  if (!isDescriptor && (!exists || S_ISREG(info.st_mode)))
    return beside(path, target,
                  exists ? static_cast<int>(info.st_mode & 0777) : -1);
  if (kind == Kind::Regular)
    return cannotWrite(path, "not a regular file");
  // An own descriptor goes on where it is; opened anew it would begin at 0.
  int own = isDescriptor ? ownDescriptor(target) : -1;
  return inPlace(
      path, own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 0)
                     : ::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
}

Expected<OutputFile> OutputFile::standardOutput() {
  return inPlace("standard output", fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
}

Expected<OutputFile> OutputFile::inPlace(const std::string &name,
                                         int descriptor) {
  // Said as the first write would: fdopen calls it an invalid argument.
  int flags = descriptor < 0 ? 0 : fcntl(descriptor, F_GETFL);
  bool readOnly = descriptor >= 0 && (flags & O_ACCMODE) == O_RDONLY;
  std::FILE *file =
      descriptor < 0 || readOnly ? nullptr : fdopen(descriptor, "wb");
  if (!file) {
    Status status = cannotWrite(name, readOnly ? EBADF : errno);
    if (descriptor >= 0)
      close(descriptor);
    return status;
  }
  return OutputFile(name, name, "", file);
}

/// `mode` is the old file's; -1 where there is none.
Expected<OutputFile> OutputFile::beside(const std::string &name,
                                        const std::string &target, int mode) {
  // Short, for a target whose name is as long as names can be. Remembered
  // before it exists: mkostemp writes the name where the handler looks, so that
  // no signal comes between the file and its record.
  std::string temporary = directoryOf(target) + "/.llm-XXXXXX";
  int slot = remember(temporary);
  char *path =
      slot < 0 ? temporary.data() : unfinished[static_cast<size_t>(slot)].path;
  int descriptor = mkostemp(path, O_CLOEXEC);
  if (descriptor < 0) {
    Status status = cannotWrite(name, errno);
    forget(slot);
    return status;
  }
  temporary = path;
  if (mode < 0) {
    mode_t mask = umask(0);
    umask(mask);
    mode = static_cast<int>(0666 & ~mask);
  }
  (void)fchmod(descriptor, static_cast<mode_t>(mode));
  std::FILE *file = fdopen(descriptor, "wb");
  if (!file) {
    Status status = cannotWrite(name, errno);
    close(descriptor);
    unlink(temporary.c_str());
    forget(slot);
    return status;
  }
  OutputFile result(name, target, std::move(temporary), file);
  result.slot = slot;
  result.buffer = std::make_unique_for_overwrite<char[]>(hugePage);
  (void)setvbuf(file, result.buffer.get(), _IOFBF, hugePage);
  return result;
}

OutputFile::~OutputFile() {
  if (file)
    std::fclose(file);
  if (file && !temporary.empty())
    unlink(temporary.c_str());
  forget(slot);
}

Status OutputFile::failed() const { return cannotWrite(name, errno); }

Status OutputFile::write(const void *data, size_t bytes) {
  if (bytes && std::fwrite(data, 1, bytes, file) != bytes)
    return failed();
  return Status::success();
}

Status OutputFile::writeAt(uint64_t offset, const void *data, size_t bytes) {
  if (fseeko(file, static_cast<off_t>(offset), SEEK_SET) != 0)
    return failed();
  return write(data, bytes);
}

bool OutputFile::annotate(const char *key, const std::string &value) {
  return !temporary.empty() &&
         fsetxattr(fileno(file), key, value.data(), value.size(), 0) == 0;
}

Status OutputFile::commit() {
  bool renames = !temporary.empty();
  if (std::fflush(file) != 0 || (renames && fsync(fileno(file)) != 0))
    return failed();
  int closed = std::fclose(file);
  file = nullptr;
  if (closed == 0 &&
      (!renames || rename(temporary.c_str(), target.c_str()) == 0)) {
    forget(std::exchange(slot, -1));
    return Status::success();
  }
  Status status = failed();
  if (renames)
    unlink(temporary.c_str());
  return status;
}

void OutputFile::removeUnfinished() noexcept {
  for (Unfinished &slot : unfinished)
    if (slot.present)
      unlink(slot.path);
}

} // namespace llm::runtime
