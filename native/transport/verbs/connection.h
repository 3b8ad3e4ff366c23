// Connection: one RDMA connection, from its request to its end, managed by rdma_cm.
//
//   initiator   resolve ──► on_resolved: create_queue_pair, connect ──► on_established
//   acceptor    (ConnectionManager) ──► create_queue_pair, accept    ──► on_established
//   both        … disconnect, or on_disconnected
//
// rdma_cm knows the numbers of both queue pairs and the route between them. The state and the attributes of the queue
// pair are set here, because some attributes are settings.
#pragma once

#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "transport/transport.h"
#include "transport/verbs/connection_parts.h"
#include "transport/verbs/device.h"
#include "transport/verbs/queue_pair.h"
#include "transport/verbs/queue_pair_path.h"

namespace faro::transport::verbs {

/// The options of a connection, from the settings verbs.*.
struct ConnectionOptions {
  uint32_t send_depth = 0;
  uint32_t receives = 0;
  uint32_t inline_bytes = 0;  // wanted; a device may offer less
  uint8_t traffic_class = 0;
  uint8_t timeout = 0;  // exponent of the acknowledgement's timeout; 0: rdma_cm's choice
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;
  PathOptions path;
};

/// Threads: network thread, except for disconnect. Blocks: for system calls; none waits for the peer.
/// Owns: the id, the queue pair and its completion queue.
class Connection final : public QueuePair {
 public:
  /// What its setup is told.
  class SetupHandler {
   public:
    virtual ~SetupHandler() = default;
    virtual void on_resolved(Connection& connection) = 0;
    virtual void on_established() = 0;
    /// `connection` may be destroyed.
    virtual void on_failed(Connection& connection, const Status& cause) = 0;
  };

  /// For the initiator, with a new id.
  static Result<std::unique_ptr<Connection>> create(std::shared_ptr<rdma_event_channel> channel,
                                                    const ConnectionOptions& options);
  /// For the acceptor: takes over the id of a connect request.
  static std::unique_ptr<Connection> adopt(std::shared_ptr<rdma_event_channel> channel,
                                           rdma_cm_id* id, const ConnectionOptions& options);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void set_setup_handler(SetupHandler* handler) noexcept { setup_handler_ = handler; }

  /// Looks for the route from the local address to the peer's. Errors: connect_failed.
  Status resolve(const sockaddr* local, const sockaddr* peer);
  /// Makes the queue pair, on that device. Errors: transport_unavailable if the connection uses another device,
  /// resource_limit, system_error.
  Status create_queue_pair(const std::shared_ptr<Device>& device);
  uint32_t inline_bytes() const noexcept { return inline_bytes_; }
  /// Sends the request, or accepts it. All receives are posted. Errors: connect_failed; address_in_use if a new
  /// connection, from another port, may succeed. Where sending waits for the peer (siw), the setup is told of them later.
  Status connect(const StreamToken& token, Reactor& reactor);
  Status accept();

  ibv_qp* queue_pair() noexcept override { return parts_->pair; }
  ibv_cq* completion_queue() noexcept override { return parts_->queue; }
  void disconnect() noexcept override;
  /// From now on its setup is told nothing more.
  void set_handler(Handler* handler) noexcept override {
    handler_ = handler;
    setup_handler_ = nullptr;
  }

  /// An event of its id; `status` is rdma_cm's.
  void on_event(rdma_cm_event_type type, int status);

 private:
  Connection(std::shared_ptr<ConnectionParts> parts, const ConnectionOptions& options);
  rdma_conn_param parameters() const noexcept;
  void tune();
  Status enter(ibv_qp_state state);
  Status make_ready();
  void on_response();
  void fail_setup(const Status& cause);

  const ConnectionOptions options_;
  const std::shared_ptr<ConnectionParts> parts_;
  std::shared_ptr<Dial> dial_;  // if the request was sent from another thread
  uint32_t inline_bytes_ = 0;
  SetupHandler* setup_handler_ = nullptr;  // until the link takes over
  Handler* handler_ = nullptr;
  std::atomic<bool> disconnected_{false};
};

}  // namespace faro::transport::verbs
