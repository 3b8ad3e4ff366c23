// Control messages about queries: between the shuffle layers of two nodes, carried whole by the control connection.
//
//    0      1     2            4        8                             32         36    40           48
//   +------+-----+------------+--------+-----------------------------+----------+-----+------------+--- - -
//   | kind | has | text_bytes | first  | query (QueryKey, 24 bytes)  | second   |stage| number     | text
//   +------+-----+------------+--------+-----------------------------+----------+-----+------------+--- - -
//
//   FAIL     first = node that the failure is about: it was lost, or found the failure; second = code, text = the cause
//   STOP     first = stage, second = the receiver (worker number) that needs no more
//   ENDED    a participant's part is over: second = code of its outcome; then first, text as FAIL
//            number = its balance of opened stages: over all participants they add up to 0 (modulo 2^64)
//   OUTCOME  the issuer's answer to all participants: second = code; then first, text as FAIL
//            number = low-water mark: every query of this issuer counted up to it has ended and was confirmed
//   CONFIRM  a participant has OUTCOME: first = its node; the issuer may forget the query when all have
//   In FAIL, ENDED and OUTCOME `has` is 1 if the failure is about a stage, which `stage` is then; else both are 0.
//   AWAIT    a receiver has waited a long time for a sender that has not sent OPEN: first = stage, second = the
//            sender (worker number), number = the lists of the receiver's OPEN, text = who waits, and those lists
//   RELEASED no query that the node has begun needs this node any more: first = a node that is drained; no query;
//            number = its incarnation, as the sender knows it; 0: it has never been linked with it
//   REST     of the link itself, with feature 2: first = a RestStep; no query
//
// Fields (wire/fields.h) may follow the text. A message whose kind has bit 7 set is skipped by receivers that do not know it.
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
#include "wire/fields.h"
#include "wire/frame.h"

namespace faro::wire {

enum class QueryMessageKind : uint8_t {
  fail = 1,
  stop = 2,
  ended = 3,
  outcome = 4,
  confirm = 5,
  await = 6,
  released = 0x81,
  rest = 0x82,
};

/// What REST says of a link that no query needs (shuffle/query/idle_links.h). An unknown step is ignored.
enum class RestStep : uint32_t {
  ask = 0,  // by the node with the lower number: shall it be let go?
  yes = 1,  // the answer. Its sender sends no rows and no messages any more; the other one says BYE
  no = 2,   // the answer: it is needed
};

struct QueryMessageHeader {
  QueryMessageKind kind;
  uint8_t has_stage;  // 0, 1
  uint16_t text_bytes;
  uint32_t first;
  QueryKey query;
  int32_t second;
  uint32_t stage;
  uint64_t number;
};
static_assert(sizeof(QueryMessageHeader) == 48);

struct QueryMessage {
  QueryMessageKind kind{};
  QueryKey query{};
  uint32_t first = 0;
  int32_t second = 0;
  uint64_t number = 0;
  std::optional<uint32_t> stage;
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
  header.has_stage = message.stage ? 1 : 0;
  header.stage = message.stage.value_or(0);
  header.number = message.number;
  std::vector<std::byte> bytes(sizeof header + text.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!text.empty()) std::memcpy(bytes.data() + sizeof header, text.data(), text.size());
  return bytes;
}

/// Whether the bytes are a message of a kind that is unknown here and may be skipped.
inline bool may_skip_query_message(std::span<const std::byte> bytes) {
  return !bytes.empty() && (bytes[0] & std::byte{0x80}) != std::byte{0};
}

/// nullopt if the bytes are no query message of a known kind. The text has been made printable.
inline std::optional<QueryMessage> decode_query_message(std::span<const std::byte> bytes) {
  QueryMessageHeader header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool is_known =
      (header.kind >= QueryMessageKind::fail && header.kind <= QueryMessageKind::await) ||
      header.kind == QueryMessageKind::released || header.kind == QueryMessageKind::rest;
  if (!is_known) return std::nullopt;
  const bool is_about_stage = header.kind == QueryMessageKind::fail ||
                              header.kind == QueryMessageKind::ended ||
                              header.kind == QueryMessageKind::outcome;
  if (header.has_stage > (is_about_stage ? 1 : 0) || header.query.reserved != 0)
    return std::nullopt;
  if (header.has_stage == 0 && header.stage != 0) return std::nullopt;
  const std::span<const std::byte> behind = bytes.subspan(sizeof header);
  if (header.text_bytes > kQueryTextLimit || behind.size() < header.text_bytes ||
      !may_skip_fields(behind.subspan(header.text_bytes))) {
    return std::nullopt;
  }
  QueryMessage message;
  message.kind = header.kind;
  message.query = header.query;
  message.first = header.first;
  message.second = header.second;
  message.number = header.number;
  if (header.has_stage == 1) message.stage = header.stage;
  message.text = base::printable(
      std::string(reinterpret_cast<const char*>(bytes.data()) + sizeof header, header.text_bytes));
  return message;
}

}  // namespace faro::wire
