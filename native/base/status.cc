#include "faro/status.h"

#include <new>

namespace faro {

namespace {

struct Description {
  Code code;
  std::string_view name, meaning;
  Category category;
};

constexpr Description kUnknown{
    {}, "unknown", "a code of another version of Faro", Category::process};

const Description& describe(Code code) noexcept {
#define FARO_CODE(name, number, category, meaning) {Code::name, #name, meaning, Category::category},
  static constexpr Description kCodes[] = {
#include "faro/codes.def"
  };
#undef FARO_CODE
  for (const Description& known : kCodes) {
    if (known.code == code) return known;
  }
  return kUnknown;
}

}  // namespace

std::string_view code_name(Code code) noexcept { return describe(code).name; }
std::string_view code_meaning(Code code) noexcept { return describe(code).meaning; }
Category category_of(Code code) noexcept { return describe(code).category; }

std::string_view category_name(Category category) noexcept {
  switch (category) {
    case Category::none:
      return "none";
    case Category::operation:
      return "operation";
    case Category::query:
      return "query";
    case Category::peer:
      return "peer";
    case Category::session:
      return "session";
    case Category::process:
      return "process";
  }
  return "unknown";
}

template <typename Value>
Status Status::about(std::optional<Value> Error::*what, const Value& value) const noexcept {
  if (error_ == nullptr || (*error_).*what) return *this;
  Status status;
  try {
    Error error = *error_;
    error.*what = value;
    status.error_ = std::make_shared<const Error>(std::move(error));
  } catch (const std::bad_alloc&) {
    return *this;
  }
  return status;
}

Status Status::of_node(uint32_t node) const noexcept { return about(&Error::node, node); }
Status Status::of_query(const QueryId& query) const noexcept { return about(&Error::query, query); }
Status Status::of_stage(uint32_t stage) const noexcept { return about(&Error::stage, stage); }

std::string Status::to_string() const {
  if (ok()) return "ok";
  std::string text(code_name(error_->code));
  text += ": ";
  text += error_->message;
  return text;
}

}  // namespace faro
