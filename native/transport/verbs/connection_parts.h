// ConnectionParts: what a connection has of the device and of rdma_cm. Dial: a request that is sent from a thread of its own.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "transport/transport.h"
#include "transport/verbs/device.h"

namespace faro::transport::verbs {

/// Destroyed by the last one who uses it: the connection, or a dial that goes on when the connection has been given up.
struct ConnectionParts {
  ConnectionParts(std::shared_ptr<rdma_event_channel> events, rdma_cm_id* made)
      : channel(std::move(events)), id(made) {}
  /// Blocks: for system calls. When it returns the device has released all memory.
  ~ConnectionParts();
  ConnectionParts(const ConnectionParts&) = delete;
  ConnectionParts& operator=(const ConnectionParts&) = delete;

  /// Stops sending and receiving, and notifies the peer. Threads: any. Blocks: for system calls.
  void disconnect() noexcept;

  const std::shared_ptr<rdma_event_channel> channel;
  rdma_cm_id* const id;
  std::shared_ptr<Device> device;
  ibv_cq* queue = nullptr;
  ibv_qp* pair = nullptr;
};

/// Linux's siw connects within the call, for as long as TCP of the kernel tries: two minutes, if the path is dark. The network
/// thread cannot wait so long, and rdma_cm knows no way to end such a call. So the call has a thread, which ends by itself.
class Dial : public std::enable_shared_from_this<Dial> {
 public:
  /// Called on the network thread with the errno of rdma_connect, if that has failed.
  using OnFailed = std::function<void(int error)>;

  Dial(std::shared_ptr<ConnectionParts> parts, Reactor& reactor, OnFailed on_failed)
      : parts_(std::move(parts)), reactor_(reactor), on_failed_(std::move(on_failed)) {}

  /// `parameters`, and the private data that they point to, are copied. Errors: system_error if there is no thread.
  Status start(const rdma_conn_param& parameters);
  /// Whether the call goes on. Then the parts are disconnected as soon as it is over. Threads: any.
  bool disconnects_later() noexcept;
  /// From now on nobody is told. Threads: the network thread, while the reactor lives.
  void give_up() noexcept;

 private:
  void connect(rdma_conn_param parameters, const StreamToken& token);
  void tell(int error) const;

  const std::shared_ptr<ConnectionParts> parts_;
  Reactor& reactor_;
  std::mutex mutex_;
  OnFailed on_failed_;  // empty: given up
  bool is_over_ = false;
  bool is_unwanted_ = false;
};

}  // namespace faro::transport::verbs
