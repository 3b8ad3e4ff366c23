// Text from outside (settings, names, what another process says) on its way to logs, exceptions,
// terminals, and formats that have rules, such as JSON and the page that Prometheus reads.
#pragma once

#include <string>

namespace faro::base {

/// What becomes of '\n'.
enum class LineBreaks { blanks, kept };

/// The text as valid UTF-8 that stays in its line: with a question mark for each byte that belongs
/// to no character, and a blank for each line break or other control character. It is no longer
/// than before.
std::string printable(std::string text, LineBreaks breaks = LineBreaks::blanks);

}  // namespace faro::base
