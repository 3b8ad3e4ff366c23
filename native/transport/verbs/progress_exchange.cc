#include "transport/verbs/progress_exchange.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace faro::transport::verbs {

void ProgressExchange::tell() {
  const uint32_t count = context_.incoming.ring_count();
  std::vector<wire::VerbsProgress> progress;
  for (uint32_t ring = 0; ring < count;) {
    const uint32_t first = ring;
    const uint32_t end = std::min(count, first + wire::kVerbsResumeLimit);
    progress.clear();
    for (; ring < end; ++ring) progress.push_back(link_.progress(ring));
    context_.send(wire::encode_verbs_resume(first, progress));
  }
}

Status ProgressExchange::on_resume(const wire::VerbsResume& resume,
                                   std::span<const std::byte> message) {
  const uint32_t count = context_.outgoing.ring_count();
  if (resume.first_ring != heard_ || resume.ring_count > count - heard_) {
    return base::error(Code::protocol_error,
                       "RESUME of {} rings from ring {} on; there are {}, and it has told of {}",
                       resume.ring_count, resume.first_ring, count, heard_);
  }
  for (uint32_t index = 0; index < resume.ring_count; ++index)
    FARO_RETURN_IF_ERROR(link_.accept_progress(heard_++, wire::progress_in(message, index)));
  return {};
}

}  // namespace faro::transport::verbs
