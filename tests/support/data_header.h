// The headers of data frames, as senders write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wire/frame.h"

namespace faro::test {

/// The header of a frame of `length` bytes, header included.
constexpr wire::FrameHeader data_header(uint32_t length, uint32_t row_count = 1) {
  return {length, wire::FrameKind::data, 0, 0, row_count, 0};
}
/// Writes one to the front of a claim or a message.
inline void put_data_header(std::byte* at, uint32_t length, uint32_t row_count = 1) {
  const wire::FrameHeader header = data_header(length, row_count);
  std::memcpy(at, &header, sizeof header);
}

}  // namespace faro::test
