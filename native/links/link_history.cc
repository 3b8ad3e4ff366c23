#include "links/link_history.h"

#include <string_view>

#include "base/error.h"
#include "transport/mending_tally.h"

namespace faro::links {

transport::Pulse LinkHistory::take_pulse(transport::DataLink& data, base::Nanoseconds now) {
  const transport::Pulse pulse = data.take_pulse();
  data_shows_ = pulse != transport::Pulse::unknown;
  if (pulse == transport::Pulse::heard) note_data(now);
  return pulse;
}

Status LinkHistory::stuck() const {
  return base::error(
      Code::peer_lost,
      "{}; it has broken {} times although it was mended, and nothing has got further",
      last_break_.message(), transport::MendingTally::kBreaks);
}

Status LinkHistory::not_mended(const Status& cause, base::Nanoseconds limit, bool begun) const {
  constexpr std::string_view kHangs = "the peer answers, but no data connection is made";
  const bool is_known = !last_failure_.ok();
  const std::string_view why = is_known ? last_failure_.message() : begun ? kHangs : "";
  return base::error(Code::peer_lost, "{}; the link was not mended within link.mend_ms = {}{}{}",
                     cause.message(), limit / 1'000'000, is_known || begun ? ": " : "", why);
}

}  // namespace faro::links
