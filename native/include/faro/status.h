// Status and Result: how every call that can fail says so.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "faro/query.h"

#pragma GCC visibility push(default)

namespace faro {

/// What went wrong. The numbers are shared with Java (see codes.def) and never change meaning.
enum class Code : int32_t {
#define FARO_CODE(name, number, category, meaning) name = number,
#include "faro/codes.def"
#undef FARO_CODE
};

/// The largest thing that is broken; tells the caller how to react (see codes.def).
enum class Category : int32_t { none, operation, query, peer, session, process };

/// The name of a code as written in codes.def; "unknown" for a number that is not listed.
std::string_view code_name(Code code) noexcept;

/// One sentence on what the code means.
std::string_view code_meaning(Code code) noexcept;

/// The category a code belongs to.
Category category_of(Code code) noexcept;

/// The name of a category.
std::string_view category_name(Category category) noexcept;

/// Success, or a code with one sentence that names key, value and limit, or peer and cause.
///
/// Cheap to return on success (a null pointer); an error owns its message. Copyable.
/// Threads: a Status is a value; share copies.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(Code code, std::string message)
      : error_(code == Code::ok
                   ? nullptr
                   : std::make_shared<const Error>(Error{code, std::move(message), {}, {}, {}})) {}

  static Status Ok() noexcept { return Status(); }

  bool ok() const noexcept { return error_ == nullptr; }
  explicit operator bool() const noexcept { return ok(); }
  Code code() const noexcept { return error_ ? error_->code : Code::ok; }
  Category category() const noexcept { return category_of(code()); }
  /// The message without the code; empty on success.
  std::string_view message() const noexcept {
    return error_ ? std::string_view(error_->message) : std::string_view();
  }
  /// "peer_lost: node 2 (10.0.0.2:7000) …", or "ok".
  std::string to_string() const;

  /// What the error is about, where that is known. The node: the one that was lost, or on which the
  /// query failed first. Nothing on success.
  std::optional<uint32_t> node() const noexcept { return error_ ? error_->node : std::nullopt; }
  std::optional<QueryId> query() const noexcept { return error_ ? error_->query : std::nullopt; }
  std::optional<uint32_t> stage() const noexcept { return error_ ? error_->stage : std::nullopt; }
  /// A copy of this error that says which node, query or stage it is about, unless it says so
  /// already; unchanged when there is no memory for it.
  Status of_node(uint32_t node) const noexcept;
  Status of_query(const QueryId& query) const noexcept;
  Status of_stage(uint32_t stage) const noexcept;

 private:
  struct Error {
    Code code;
    std::string message;
    std::optional<uint32_t> node;
    std::optional<QueryId> query;
    std::optional<uint32_t> stage;
  };
  template <typename Value>
  Status about(std::optional<Value> Error::*what, const Value& value) const noexcept;
  std::shared_ptr<const Error> error_;
};

/// A value, or the Status that explains why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit by intent
  /// An ok status explains no missing value: it becomes internal_error.
  Result(Status status)  // NOLINT: implicit by intent
      : state_(status.ok() ? Status(Code::internal_error, "a Result has neither value nor error")
                           : std::move(status)) {}

  bool ok() const noexcept { return std::holds_alternative<T>(state_); }
  explicit operator bool() const noexcept { return ok(); }

  /// The value. Only when ok().
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// The error, or ok.
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace faro

#pragma GCC visibility pop
