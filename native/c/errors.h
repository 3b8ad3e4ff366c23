// How a function of faro/c.h says what went wrong, and that no exception leaves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "faro/c.h"
#include "faro/outcome.h"
#include "faro/status.h"
#include "faro/wait.h"

namespace faro::c {

/// Remembers a failure for faro_last_error; an ok status changes nothing.
/// Threads: any; it is the calling thread's.
faro_code remember(Status status) noexcept;

/// The failure that a caller has told of: ok for FARO_CODE_OK. `message`: null for an empty one.
/// Errors: invalid_argument if there is no such code.
Status read_failure(faro_code code, const char* message, Status& failure);

/// Made beforehand, for when there is no memory to say so.
const Status& no_memory() noexcept;
const Status& unexpected_exception() noexcept;

/// What a call of the data path answers: an outcome, or why it has failed.
class Answer {
 public:
  Answer(Status why) noexcept
      : outcome_(Outcome::failed), why_(std::move(why)) {}  // NOLINT: implicit by intent
  /// Not failed.
  Answer(Outcome outcome) noexcept : outcome_(outcome) {}  // NOLINT: implicit by intent
  /// `object` was called: its status says why it has failed.
  template <typename Object>
  Answer(Outcome outcome, const Object& object) : outcome_(outcome) {
    if (outcome == Outcome::failed) why_ = object.status();
  }
  faro_outcome tell() && noexcept;

 private:
  Outcome outcome_;
  Status why_;
};

/// Calls a body that returns a Status.
template <typename Body>
faro_code coded(Body&& body) noexcept {
  try {
    return remember(body());
  } catch (const std::bad_alloc&) {
    return remember(no_memory());
  } catch (...) {
    return remember(unexpected_exception());
  }
}

/// Calls a body that returns an Answer.
template <typename Body>
faro_outcome answered(Body&& body) noexcept {
  try {
    return Answer(body()).tell();
  } catch (const std::bad_alloc&) {
    return Answer(no_memory()).tell();
  } catch (...) {
    return Answer(unexpected_exception()).tell();
  }
}

/// invalid_argument if it is null.
template <typename Pointer>
Status need(Pointer pointer, const char* name) {
  if (pointer != nullptr) return Status::Ok();
  return Status(Code::invalid_argument, std::string(name) + " is null");
}
/// invalid_argument if the array is null, unless it is empty.
template <typename Pointer>
Status need_array(Pointer array, size_t count, const char* name) {
  return count == 0 ? Status::Ok() : need(array, name);
}

constexpr bool is_wait(int64_t wait_ns) noexcept {
  return wait_ns >= 0 || wait_ns == FARO_WAIT_NONE;
}
Result<Wait> wait_of(int64_t wait_ns);

}  // namespace faro::c
