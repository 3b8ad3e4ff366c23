// Control messages about queries: between the shuffle layers of two nodes, carried whole by the control connection.
//
//    0      1     2            4        8                             32         36    40           48
//   +------+-----+------------+--------+-----------------------------+----------+-----+------------+--- - -
//   | kind | 0   | text_bytes | first  | query (QueryKey, 24 bytes)  | second   | 0   | low_water  | text
//   +------+-----+------------+--------+-----------------------------+----------+-----+------------+--- - -
//
//   FAIL     first = node that found the failure, second = code, text = the cause
//   STOP     first = stage, second = the receiver (worker number) that needs no more
//   ENDED    a participant's part is over: first = its node, second = code of its outcome, text = cause
//   OUTCOME  the issuer's answer to all participants: second = code, text = cause
//            low_water: every query of this issuer counted up to it has ended and was confirmed
//   CONFIRM  a participant has OUTCOME: first = its node; the issuer may forget the query when all have
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.h"
#include "wire/frame.h"

namespace faro::wire {

enum class QueryMessageKind : uint8_t { fail = 1, stop = 2, ended = 3, outcome = 4, confirm = 5 };

struct QueryMessageHeader {
  QueryMessageKind kind;
  uint8_t reserved;
  uint16_t text_bytes;
  uint32_t first;
  QueryKey query;
  int32_t second;
  uint32_t reserved_end;
  uint64_t low_water;
};
static_assert(sizeof(QueryMessageHeader) == 48);

struct QueryMessage {
  QueryMessageKind kind{};
  QueryKey query{};
  uint32_t first = 0;
  int32_t second = 0;
  uint64_t low_water = 0;
  std::string text;
};

/// Longer texts are cut.
inline constexpr size_t kQueryTextLimit = 1024;

inline std::vector<std::byte> encode(const QueryMessage& message) {
  const std::string_view text = std::string_view(message.text).substr(0, kQueryTextLimit);
  QueryMessageHeader header{};
  header.kind = message.kind;
  header.text_bytes = static_cast<uint16_t>(text.size());
  header.first = message.first;
  header.query = message.query;
  header.second = message.second;
  header.low_water = message.low_water;
  std::vector<std::byte> bytes(sizeof header + text.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!text.empty()) std::memcpy(bytes.data() + sizeof header, text.data(), text.size());
  return bytes;
}

/// nullopt if the bytes are no query message. The text has been made printable.
inline std::optional<QueryMessage> decode_query_message(std::span<const std::byte> bytes) {
  QueryMessageHeader header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.kind < QueryMessageKind::fail || header.kind > QueryMessageKind::confirm)
    return std::nullopt;
  if (header.reserved != 0 || header.reserved_end != 0 || header.query.reserved != 0)
    return std::nullopt;
  if (header.text_bytes > kQueryTextLimit || bytes.size() != sizeof header + header.text_bytes)
    return std::nullopt;
  QueryMessage message;
  message.kind = header.kind;
  message.query = header.query;
  message.first = header.first;
  message.second = header.second;
  message.low_water = header.low_water;
  message.text = base::printable(
      std::string(reinterpret_cast<const char*>(bytes.data()) + sizeof header, header.text_bytes));
  return message;
}

}  // namespace faro::wire
