// Outbound: what a change of the query table leaves to be queued for the network thread, and to be told.
#pragma once

#include <cstdint>
#include <list>
#include <utility>

#include "faro/query.h"
#include "faro/status.h"
#include "wire/query_message.h"

namespace faro::shuffle {

struct Outbound {
  std::list<std::pair<uint32_t, wire::QueryMessage>> messages;  // to whom
  std::list<std::pair<uint32_t, Status>> offenders;             // whose link ends, and why
  std::list<std::pair<QueryId, Status>> failed;                 // what the engine is told, and why
  std::list<uint32_t> let_go;                                   // whose links are to end
  std::list<uint32_t> wanted;                                   // nodes that are to be linked

  bool empty() const {
    return messages.empty() && offenders.empty() && failed.empty() && let_go.empty() &&
           wanted.empty();
  }
  void send(uint32_t node, wire::QueryMessage message) {
    messages.emplace_back(node, std::move(message));
  }
  void end_link(uint32_t node, Status cause) { offenders.emplace_back(node, std::move(cause)); }
  void tell_failed(const QueryId& query, Status cause) {
    failed.emplace_back(query, std::move(cause));
  }
  void take(Outbound&& more) noexcept {
    messages.splice(messages.end(), more.messages);
    offenders.splice(offenders.end(), more.offenders);
    failed.splice(failed.end(), more.failed);
    let_go.splice(let_go.end(), more.let_go);
    wanted.splice(wanted.end(), more.wanted);
  }
};

}  // namespace faro::shuffle
