//===- Status.h - errors as values, for the whole runtime -------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime reports everything a user can meet (a damaged file, a request
// that does not fit, a missing driver) as a Status; asserts are left for our
// own mistakes, and no exception crosses a public function.
//
//   Expected<Header> readHeader(Bytes bytes);
//
//   Status open(const std::string &path) {
//     LLM_ASSIGN_OR_RETURN(Bytes bytes, mapFile(path));
//     Expected<Header> header = readHeader(bytes);
//     if (!header)
//       return header.takeStatus().withContext(path);
//     ...
//     return Status::success();
//   }
//
//===----------------------------------------------------------------------===//

#ifndef LLM_RUNTIME_CORE_STATUS_H
#define LLM_RUNTIME_CORE_STATUS_H

#include <cassert>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace llm::runtime {

/// What kind of failure a Status carries. It decides the exit code of a tool:
/// 1 for the input and the surroundings, 3 for our own fault.
enum class StatusCode {
  Ok,
  /// The bytes, the request or the arguments are wrong.
  InvalidInput,
  /// Well-formed, but asks for something this build does not do.
  Unsupported,
  /// Memory, disk, device, a driver or a limit is missing or exhausted.
  Resource,
  /// A broken invariant of ours.
  Internal,
};

/// The name used in messages and in JSON: "invalid input", "unsupported", ...
inline std::string_view statusCodeName(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    return "ok";
  case StatusCode::InvalidInput:
    return "invalid input";
  case StatusCode::Unsupported:
    return "unsupported";
  case StatusCode::Resource:
    return "resource";
  case StatusCode::Internal:
    return "internal error";
  }
  return "internal error";
}

/// Success, or a code with a message for the user. Success is one null
/// pointer, so it costs nothing to return.
class [[nodiscard]] Status {
public:
  /// Success.
  Status() = default;
  Status(StatusCode code, std::string message) {
    assert(code != StatusCode::Ok && "success carries no message");
    failure = std::make_unique<Failure>(Failure{code, std::move(message)});
  }

  Status(Status &&) = default;
  Status &operator=(Status &&) = default;
  Status(const Status &other)
      : failure(other.failure ? std::make_unique<Failure>(*other.failure)
                              : nullptr) {}
  Status &operator=(const Status &other) {
    if (this != &other)
      failure =
          other.failure ? std::make_unique<Failure>(*other.failure) : nullptr;
    return *this;
  }

  static Status success() { return Status(); }
  static Status invalidInput(std::string message) {
    return Status(StatusCode::InvalidInput, std::move(message));
  }
  static Status unsupported(std::string message) {
    return Status(StatusCode::Unsupported, std::move(message));
  }
  static Status resource(std::string message) {
    return Status(StatusCode::Resource, std::move(message));
  }
  static Status internal(std::string message) {
    return Status(StatusCode::Internal, std::move(message));
  }

  bool ok() const { return !failure; }
  /// True on success, as for Expected.
  explicit operator bool() const { return ok(); }

  StatusCode code() const { return failure ? failure->code : StatusCode::Ok; }
  /// The message with its contexts, outermost first; empty on success.
  const std::string &message() const {
    static const std::string none;
    return failure ? failure->message : none;
  }

  /// Says where it happened: the context and ": " are put before the message,
  /// so "wrong magic" becomes "model.llmx: header: wrong magic" as the status
  /// travels outwards. Does nothing on success.
  Status withContext(std::string_view context) && {
    addContext(context);
    return std::move(*this);
  }
  Status withContext(std::string_view context) const & {
    Status copy(*this);
    copy.addContext(context);
    return copy;
  }

  /// "ok", or "CODE: MESSAGE".
  std::string toString() const {
    std::string text(statusCodeName(code()));
    if (failure)
      text += ": " + failure->message;
    return text;
  }

private:
  struct Failure {
    StatusCode code;
    std::string message;
  };

  void addContext(std::string_view context) {
    if (failure)
      failure->message.insert(0, std::string(context) + ": ");
  }

  std::unique_ptr<Failure> failure;
};

/// A T, or the Status that says why there is none. Reading the value of a
/// failed Expected is a mistake of the caller.
template <typename T> class [[nodiscard]] Expected {
  static_assert(!std::is_reference_v<T>, "use a pointer");
  static_assert(!std::is_same_v<std::remove_cv_t<T>, Status>,
                "a Status needs no Expected");

public:
  Expected(Status failure) : failure(std::move(failure)) {
    assert(!this->failure.ok() && "an Expected without value needs a failure");
  }
  template <typename U = T, typename = std::enable_if_t<
                                std::is_convertible_v<U &&, T> &&
                                !std::is_same_v<std::decay_t<U>, Status> &&
                                !std::is_same_v<std::decay_t<U>, Expected<T>>>>
  Expected(U &&value) : storage(std::forward<U>(value)) {}

  bool ok() const { return storage.has_value(); }
  explicit operator bool() const { return ok(); }

  T &operator*() & { return value(); }
  const T &operator*() const & { return value(); }
  T &&operator*() && { return std::move(value()); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }

  T &value() & {
    assert(storage && "no value: test the Expected first");
    return *storage;
  }
  const T &value() const & {
    assert(storage && "no value: test the Expected first");
    return *storage;
  }

  /// The failure, or success where there is a value.
  const Status &status() const { return failure; }
  Status takeStatus() { return std::move(failure); }

  /// As Status::withContext; a value passes through.
  Expected withContext(std::string_view context) && {
    if (!ok())
      failure = std::move(failure).withContext(context);
    return std::move(*this);
  }

private:
  std::optional<T> storage;
  Status failure;
};

/// Runs `body`, which returns a Status or an Expected, and turns an exception
/// that a library throws (out of memory before all) into a failure. Public
/// functions whose work can throw are wrapped in it.
template <typename Body>
auto catchExceptions(Body &&body) -> std::invoke_result_t<Body> {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc &) {
    return Status::resource("out of memory");
  } catch (const std::exception &error) {
    return Status::internal(error.what());
  }
}

namespace detail {
inline Status takeFailure(Status &status) { return std::move(status); }
template <typename T> Status takeFailure(Expected<T> &value) {
  return value.takeStatus();
}
} // namespace detail

} // namespace llm::runtime

#define LLM_STATUS_CONCAT_IMPL(a, b) a##b
#define LLM_STATUS_CONCAT(a, b) LLM_STATUS_CONCAT_IMPL(a, b)

/// Returns the failure of a Status or an Expected, if it is one.
#define LLM_RETURN_IF_ERROR(...)                                               \
  do {                                                                         \
    if (auto llmResult = (__VA_ARGS__); !llmResult.ok())                       \
      return ::llm::runtime::detail::takeFailure(llmResult);                   \
  } while (false)

/// LLM_ASSIGN_OR_RETURN(Type name, expression): unpacks an Expected or returns
/// its failure.
#define LLM_ASSIGN_OR_RETURN(declaration, ...)                                 \
  LLM_ASSIGN_OR_RETURN_IMPL(LLM_STATUS_CONCAT(llmExpected, __LINE__),          \
                            declaration, __VA_ARGS__)
#define LLM_ASSIGN_OR_RETURN_IMPL(temporary, declaration, ...)                 \
  auto temporary = (__VA_ARGS__);                                              \
  if (!temporary.ok())                                                         \
    return temporary.takeStatus();                                             \
  declaration = *std::move(temporary)

#endif // LLM_RUNTIME_CORE_STATUS_H
