// What query tables say to each other, in their own terms (wire/query_message.h has the bytes).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "faro/status.h"
#include "shuffle/query.h"
#include "wire/query_message.h"

namespace faro::shuffle {

inline wire::QueryMessage message_of(wire::QueryMessageKind kind, const QueryId& id, uint32_t first,
                                     int32_t second, std::string_view text = {}) {
  wire::QueryMessage message;
  message.kind = kind;
  message.query = to_key(id);
  message.first = first;
  message.second = second;
  message.text = std::string(text);
  return message;
}

inline wire::QueryMessage failure_of(const QueryId& id, uint32_t node, const Status& cause) {
  return message_of(wire::QueryMessageKind::fail, id, node, static_cast<int32_t>(cause.code()),
                    cause.message());
}

// A code from a peer, made one that can end a query.
inline Status status_of(int32_t code, const std::string& text) {
  if (code == 0) return Status::Ok();
  const Code known = static_cast<Code>(code);
  return Status(code_name(known) == "unknown" ? Code::query_failed : known, text);
}

}  // namespace faro::shuffle
