// PeerMessages: what peers say of queries, and whether they may. README.md has the rules as a table.
#pragma once

#include <cstdint>

#include "faro/query.h"
#include "shuffle/query/known_queries.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/query_context.h"
#include "wire/query_message.h"

namespace faro::shuffle {

/// Threads: under the table's lock.
class PeerMessages {
 public:
  PeerMessages(QueryContext& context, KnownQueries& known) : context_(context), known_(known) {}

  /// Whether workers are to be alerted.
  bool handle(uint32_t peer, const wire::QueryMessage& message, Outbound& out);

 private:
  bool on_fail(uint32_t peer, const wire::QueryMessage& message, Outbound& out);
  bool on_ended(uint32_t peer, const wire::QueryMessage& message, Outbound& out);
  bool on_stop(uint32_t peer, const wire::QueryMessage& message, Outbound& out);
  bool on_await(uint32_t peer, const wire::QueryMessage& message, Outbound& out);
  bool on_outcome(uint32_t peer, const wire::QueryMessage& message, Outbound& out);
  void on_confirm(uint32_t peer, const QueryId& id);
  KnownQueries::Pointer query_that_peer_may_fail(uint32_t peer, const QueryId& id, Outbound& out);
  bool decides(const QueryId& id) const { return id.issuer == context_.cluster.own(); }

  QueryContext& context_;
  KnownQueries& known_;
};

}  // namespace faro::shuffle
