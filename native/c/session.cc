// What faro/c.h says of listening sockets and sessions.
#include "faro/session.h"

#include <new>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "c/errors.h"
#include "c/handles.h"
#include "c/shuffle_metrics.h"
#include "c/sized.h"
#include "faro/nodes.h"
#include "node/session_access.h"

using namespace faro::c;
using faro::Cancellation;
using faro::Code;
using faro::ListeningSocket;
using faro::Result;
using faro::Session;
using faro::Status;
using faro::Wait;

faro_session::faro_session(std::unique_ptr<Session> opened) : session(std::move(opened)) {
  faro::node::NodeCore& core = faro::SessionAccess::core(*session);
  for (uint32_t i = 0; i < session->local_worker_count(); ++i)
    workers.push_back({session->worker(i), core.worker(i)});
}

namespace {

Cancellation cancellation_of(const faro_cancellation* cancellation) {
  return cancellation == nullptr ? Cancellation() : cancellation->cancellation;
}

Status check_node(const Session& session, uint32_t node) {
  if (node < session.node_count()) return Status::Ok();
  return Status(Code::invalid_argument, "there is no node " + std::to_string(node) + " of " +
                                            std::to_string(session.node_count()));
}

Status check_socket(const faro_listening_socket* socket) {
  if (socket == nullptr || socket->bound) return Status::Ok();
  return Status(Code::wrong_state, "a session has taken this socket");
}

// Empties it.
ListeningSocket take(faro_listening_socket& socket) {
  ListeningSocket taken = std::move(*socket.bound);
  socket.bound.reset();
  return taken;
}

Result<faro_session*> handle_of(Result<std::unique_ptr<Session>> session) {
  if (!session.ok()) return session.status();
  return new faro_session(std::move(*session));
}

// No counter is left out below.
static_assert(sizeof(faro::LaneMetrics) == 2 * sizeof(uint32_t) + sizeof(faro_ring_traffic));
static_assert(sizeof(faro::LinkMetrics) - 2 * sizeof(uint64_t) - sizeof(std::string) ==
              sizeof(faro_link_metrics) - offsetof(faro_link_metrics, traffic));
static_assert(sizeof(faro::OperatorCounts) ==
              sizeof(faro_operator_metrics) - offsetof(faro_operator_metrics, rows_in));
static_assert(sizeof(faro::SessionMetrics) - 6 * sizeof(std::vector<faro::LaneMetrics>) ==
              sizeof(faro_session_metrics) - kLeastSize);

faro_link_metrics told_of(const faro::LinkMetrics& link) {
  return {sizeof(faro_link_metrics),
          FARO_ABI_VERSION,
          link.node,
          link.connected ? 1u : 0u,
          link.transport.c_str(),
          traffic_of(link),
          link.posts,
          link.writes,
          link.notifications,
          link.credit_returns,
          link.signalled_posts,
          link.completions,
          link.network_events,
          link.turns,
          link.turn_bytes};
}

faro_lane_metrics told_of(const faro::LaneMetrics& lane) {
  return {sizeof(faro_lane_metrics), FARO_ABI_VERSION, lane.sender, lane.receiver,
          traffic_of(lane)};
}

faro_operator_metrics told_of(const faro::OperatorCounts& counts, uint32_t worker,
                              faro::OperatorKind kind) {
  return {sizeof(faro_operator_metrics),
          FARO_ABI_VERSION,
          {},
          0,
          worker,
          static_cast<uint32_t>(kind),
          1,
          counts.rows_in,
          counts.rows_out,
          counts.states_sent,
          counts.rows_arrived,
          counts.partitions_spilled,
          counts.spilled_bytes,
          counts.partitions_split,
          counts.passes,
          counts.table_states,
          counts.held_bytes,
          counts.peak_bytes};
}
faro_operator_metrics told_of(const faro::OperatorTotals& all) {
  return told_of(all, all.worker, all.kind);
}
faro_operator_metrics told_of(const faro::OperatorMetrics& one) {
  faro_operator_metrics told = told_of(one, one.worker, one.kind);
  told.query = query_of(one.query);
  told.stage = one.stage;
  told.is_total = 0;
  return told;
}

template <typename Metrics, typename Tell>
void tell_each(const std::vector<Metrics>& all, Tell tell, void* context) {
  if (tell == nullptr) return;
  for (const Metrics& each : all) {
    const auto told = told_of(each);
    tell(context, &told);
  }
}

}  // namespace

// --- listening socket

faro_code faro_listening_socket_bind(const char* address, faro_listening_socket** socket) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(address, "address"));
    FARO_RETURN_IF_ERROR(need(socket, "socket"));
    Result<ListeningSocket> bound = ListeningSocket::bind(address);
    if (!bound.ok()) return bound.status();
    std::string name = bound->address();
    *socket = new faro_listening_socket{std::move(*bound), std::move(name)};
    return Status::Ok();
  });
}

const char* faro_listening_socket_address(const faro_listening_socket* socket) {
  return socket == nullptr ? nullptr : socket->address.c_str();
}

void faro_listening_socket_destroy(faro_listening_socket* socket) { delete socket; }

// --- opening and closing

faro_code faro_session_open(const faro_config* config, faro_listening_socket* socket,
                            const faro_cancellation* cancellation, faro_session** session) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(config, "config"));
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(check_socket(socket));
    const Cancellation cancelled = cancellation_of(cancellation);
    Result<faro_session*> opened =
        handle_of(socket == nullptr ? Session::open(config->config, cancelled)
                                    : Session::open(config->config, take(*socket), cancelled));
    if (opened.ok()) *session = *opened;
    return opened.status();
  });
}

faro_code faro_session_open_async(const faro_config* config, faro_listening_socket* socket,
                                  const faro_cancellation* cancellation, faro_session_opened done,
                                  void* context) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(config, "config"));
    FARO_RETURN_IF_ERROR(need(done, "done"));
    FARO_RETURN_IF_ERROR(check_socket(socket));
    const auto tell = [done, context](Result<std::unique_ptr<Session>> opened) {
      faro_session* session = nullptr;
      const faro_code code = coded([&] {
        Result<faro_session*> handle = handle_of(std::move(opened));
        if (handle.ok()) session = *handle;
        return handle.status();
      });
      done(context, code, session);
    };
    if (socket == nullptr) {
      Session::open_async(config->config, tell, cancellation_of(cancellation));
    } else {
      Session::open_async(config->config, take(*socket), tell, cancellation_of(cancellation));
    }
    return Status::Ok();
  });
}

faro_code faro_session_close(faro_session* session) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    return session->session->close();
  });
}

void faro_session_destroy(faro_session* session) { delete session; }

faro_code faro_session_close_async(faro_session* session, faro_done done, void* context) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need(done, "done"));
    const std::unique_ptr<faro_session> handle(session);
    Session::close_async(std::move(session->session), [done, context](const Status& closed) {
      done(context, remember(closed));
    });
    return Status::Ok();
  });
}

// --- the cluster

faro_code faro_session_describe(const faro_session* session, faro_topology* topology) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need_struct(topology, "topology"));
    const Session& of = *session->session;
    faro_topology told{};
    told.node = of.node();
    told.node_count = of.node_count();
    told.worker_count = of.worker_count();
    told.local_worker_count = of.local_worker_count();
    told.first_worker = of.first_worker(of.node());
    fill(*topology, told);
    return Status::Ok();
  });
}

faro_code faro_session_first_worker(const faro_session* session, uint32_t node, uint32_t* worker) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(check_node(*session->session, node));
    *worker = session->session->first_worker(node);
    return Status::Ok();
  });
}

faro_code faro_session_worker(faro_session* session, uint32_t local_index, faro_worker** worker) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    if (local_index >= session->workers.size())
      return session->session->worker(local_index).status();
    *worker = &session->workers[local_index];
    return Status::Ok();
  });
}

faro_code faro_session_has_node(const faro_session* session, uint32_t node, int32_t* has_node) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need(has_node, "has_node"));
    FARO_RETURN_IF_ERROR(check_node(*session->session, node));
    *has_node = session->session->has_node(node) ? 1 : 0;
    return Status::Ok();
  });
}

faro_code faro_session_await_node(faro_session* session, uint32_t node,
                                  const faro_cancellation* cancellation, int64_t wait_ns) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    return session->session->await_node(node, *wait, cancellation_of(cancellation));
  });
}

faro_code faro_session_await_node_async(faro_session* session, uint32_t node,
                                        const faro_cancellation* cancellation, int64_t wait_ns,
                                        faro_done done, void* context) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need(done, "done"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    session->session->await_node_async(
        node, [done, context](const Status& status) { done(context, remember(status)); }, *wait,
        cancellation_of(cancellation));
    return Status::Ok();
  });
}

// --- queries and counters

faro_code faro_session_begin_query(faro_session* session, faro_query_id* query) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need(query, "query"));
    *query = query_of(session->session->begin_query());
    return Status::Ok();
  });
}

faro_code faro_session_declare_query(faro_session* session, const faro_query_id* query,
                                     const uint32_t* workers, size_t worker_count) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need(query, "query"));
    FARO_RETURN_IF_ERROR(need_array(workers, worker_count, "workers"));
    return session->session->declare_query(query_of(*query),
                                           std::vector<uint32_t>(workers, workers + worker_count));
  });
}

faro_code faro_session_cancel_query(faro_session* session, const faro_query_id* query,
                                    const char* reason) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need(query, "query"));
    FARO_RETURN_IF_ERROR(need(reason, "reason"));
    return session->session->cancel_query(query_of(*query), reason);
  });
}

faro_code faro_session_add_node(faro_session* session, uint32_t node, const char* address) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need(address, "address"));
    return faro::Nodes(*session->session).add({node, address});
  });
}

faro_code faro_session_drain_node(faro_session* session, uint32_t node) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    return faro::Nodes(*session->session).drain(node);
  });
}

faro_code faro_session_remove_node(faro_session* session, uint32_t node) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    return faro::Nodes(*session->session).remove(node);
  });
}

faro_code faro_session_listen(faro_session* session, const faro_session_listener* listener) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    faro_session_listener to;
    FARO_RETURN_IF_ERROR(read(listener, "listener", to));
    faro::SessionListener told;
    if (to.node_lost != nullptr) {
      told.node_lost = [to](uint32_t node, const Status& cause) {
        to.node_lost(to.context, node, remember(cause));
      };
    }
    if (to.node_left != nullptr)
      told.node_left = [to](uint32_t node) { to.node_left(to.context, node); };
    if (to.node_returned != nullptr)
      told.node_returned = [to](uint32_t node) { to.node_returned(to.context, node); };
    if (to.node_added != nullptr)
      told.node_added = [to](uint32_t node) { to.node_added(to.context, node); };
    if (to.node_drained != nullptr)
      told.node_drained = [to](uint32_t node) { to.node_drained(to.context, node); };
    if (to.node_removed != nullptr)
      told.node_removed = [to](uint32_t node) { to.node_removed(to.context, node); };
    if (to.query_failed != nullptr) {
      told.query_failed = [to](const faro::QueryId& query, const Status& cause) {
        const faro_query_id failed = query_of(query);
        to.query_failed(to.context, &failed, remember(cause));
      };
    }
    session->session->listen(std::move(told));
    return Status::Ok();
  });
}

faro_code faro_session_read_metrics(const faro_session* session, faro_session_metrics* metrics,
                                    faro_tell_link tell_link, faro_tell_lane tell_lane,
                                    void* context) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need_struct(metrics, "metrics"));
    const faro::SessionMetrics now = session->session->metrics();
    faro_session_metrics told{};
    told.overflow_memory_bytes = now.overflow_memory_bytes;
    told.overflow_memory_peak_bytes = now.overflow_memory_peak_bytes;
    told.overflow_file_bytes = now.overflow_file_bytes;
    told.overflow_file_peak_bytes = now.overflow_file_peak_bytes;
    told.queries_running = now.queries_running;
    told.queries_failed = now.queries_failed;
    told.untaken_frames = now.untaken_frames;
    told.untaken_streams = now.untaken_streams;
    fill(*metrics, told);
    tell_each(now.links, tell_link, context);
    tell_each(now.lanes, tell_lane, context);
    return Status::Ok();
  });
}

faro_code faro_session_read_operators(const faro_session* session, faro_tell_operator tell_operator,
                                      void* context) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need(tell_operator, "tell"));
    const faro::SessionMetrics now = session->session->metrics();
    tell_each(now.operators, tell_operator, context);
    tell_each(now.operator_totals, tell_operator, context);
    return Status::Ok();
  });
}

faro_code faro_session_read_shuffles(const faro_session* session, const faro_query_id* query,
                                     faro_tell_shuffle tell_shuffle, void* context) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(session, "session"));
    FARO_RETURN_IF_ERROR(need(query, "query"));
    FARO_RETURN_IF_ERROR(need(tell_shuffle, "tell"));
    for (const faro::ShuffleMetrics& each : session->session->metrics(query_of(*query)).shuffles)
      tell(each, tell_shuffle, context);
    return Status::Ok();
  });
}
