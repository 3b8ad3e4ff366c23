#include "command/exit_code.h"

#include <fmt/format.h>

#include <cstdio>

namespace faro::command {

int report_error(std::string_view command, const Status& status) {
  fmt::print(stderr, "faro {}: {}\n", command, status.message());
  return exit_code_of(status.code());
}

}  // namespace faro::command
