#include "lab/command/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "command/text.h"

namespace faro::command::lab {
namespace {

constexpr size_t kBarColumns = 20;

void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

ProgressLine::ProgressLine(bool quiet)
    : quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_ns_(base::SystemClock::instance().now_ns()) {}

void ProgressLine::begin(std::string_view part) {
  part_ = part;
  if (quiet_) return;
  if (terminal_) {
    update(0, "");
  } else {
    write(fmt::format("{} …\n", part));
  }
}

void ProgressLine::update(double fraction, std::string_view doing) {
  if (quiet_ || !terminal_) return;
  const size_t done = static_cast<size_t>(std::clamp(fraction, 0.0, 1.0) * kBarColumns);
  const double seconds =
      static_cast<double>(base::SystemClock::instance().now_ns() - start_ns_) * 1e-9;
  std::string line = fmt::format("[{}{}] {:3.0f} s  {}{}{}", std::string(done, '#'),
                                 std::string(kBarColumns - done, '.'), seconds, part_,
                                 doing.empty() ? "" : ": ", doing);
  const size_t columns = columns_of(line);
  if (columns < shown_columns_) line += std::string(shown_columns_ - columns, ' ');
  shown_columns_ = columns;
  write('\r' + line);
}

void ProgressLine::clear() {
  if (shown_columns_ == 0) return;
  write('\r' + std::string(shown_columns_, ' ') + '\r');
  shown_columns_ = 0;
}

}  // namespace faro::command::lab
