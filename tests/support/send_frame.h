// Sending one frame by hand, below a worker.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "support/data_header.h"
#include "transport/transport.h"

namespace faro::test {

/// Sends one data frame of `payload`, which fits. False if there is no space now.
inline bool send_frame(transport::Outgoing& outgoing, std::span<const std::byte> payload) {
  const auto length = static_cast<uint32_t>(sizeof(wire::FrameHeader) + payload.size());
  const transport::Claim claim = outgoing.claim(length, length);
  if (claim.bytes == 0) return false;
  put_data_header(claim.data, length);
  std::memcpy(claim.data + sizeof(wire::FrameHeader), payload.data(), payload.size());
  outgoing.commit(length);
  return true;
}

}  // namespace faro::test
