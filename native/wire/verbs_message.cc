#include "wire/verbs_message.h"

namespace faro::wire {

std::vector<std::byte> encode_verbs_resume(uint32_t first_ring,
                                           std::span<const VerbsProgress> progress) {
  const VerbsResume head{VerbsSetupKind::resume, first_ring, static_cast<uint32_t>(progress.size()),
                         0};
  std::vector<std::byte> message(sizeof head + progress.size() * sizeof(VerbsProgress));
  std::memcpy(message.data(), &head, sizeof head);
  std::memcpy(message.data() + sizeof head, progress.data(), progress.size_bytes());
  return message;
}

}  // namespace faro::wire
