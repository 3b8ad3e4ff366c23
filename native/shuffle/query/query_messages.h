// What query tables say to each other, in their own terms (wire/query_message.h has the bytes).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "faro/status.h"
#include "shuffle/query/query.h"
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

// What `node` says of a query that has failed, or has not: with the node and the stage that the cause is about.
inline wire::QueryMessage message_about(wire::QueryMessageKind kind, const QueryId& id,
                                        uint32_t node, const Status& cause) {
  wire::QueryMessage message = message_of(kind, id, cause.node().value_or(node),
                                          static_cast<int32_t>(cause.code()), cause.message());
  message.stage = cause.stage();
  return message;
}

inline wire::QueryMessage failure_of(const QueryId& id, uint32_t node, const Status& cause) {
  return message_about(wire::QueryMessageKind::fail, id, node, cause);
}

// A node's part is over; `cause` is ok if it went well.
inline wire::QueryMessage ended_of(const QueryId& id, uint32_t node, const Status& cause,
                                   uint64_t balance) {
  wire::QueryMessage message = message_about(wire::QueryMessageKind::ended, id, node, cause);
  message.number = balance;
  return message;
}

inline wire::QueryMessage outcome_of(const QueryId& id, uint32_t node, const Status& outcome,
                                     uint64_t low_water) {
  wire::QueryMessage message = message_about(wire::QueryMessageKind::outcome, id, node, outcome);
  message.number = low_water;
  return message;
}

// A code from a peer, made one that can end a query.
inline Status status_of(const wire::QueryMessage& message, uint32_t node_count) {
  if (message.second == 0) return Status::Ok();
  const Code known = static_cast<Code>(message.second);
  Status status(code_name(known) == "unknown" ? Code::query_failed : known,
                message.text.empty() ? "failed without a cause" : message.text);
  status = status.of_query(to_id(message.query));
  if (message.first < node_count) status = status.of_node(message.first);
  return message.stage ? status.of_stage(*message.stage) : status;
}

}  // namespace faro::shuffle
