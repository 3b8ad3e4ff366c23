// error: a Status with a text of several parts; and, from return_if_error.h, what a function does with errors of
// others.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "base/return_if_error.h"
#include "faro/status.h"

namespace faro::base {

/// `text` as fmt::format has it.
template <typename... Args>
Status error(Code code, fmt::format_string<Args...> text, Args&&... args) {
  return Status(code, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace faro::base
