// ConnectionManager: the rdma_cm side of a session: its address, its device, its listener, and the
// events of all its connections.
#pragma once

#include <rdma/rdma_cma.h>

#include <functional>
#include <map>
#include <memory>

#include "faro/status.h"
#include "transport/tcp/socket_address.h"
#include "transport/transport.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/device.h"
#include "transport/verbs/device_watch.h"

namespace faro::transport::verbs {

/// Threads: network thread, and the thread that opens the session before that one runs.
/// Blocks: for system calls. Owns: event channel and listener; connections belong to those that made them.
class ConnectionManager {
 public:
  /// Receives the connections that bring a token.
  class Expecting {
   public:
    virtual ~Expecting() = default;
    virtual void on_request(std::unique_ptr<Connection> connection) = 0;
  };

  /// Binds to the address, and so to the device that owns it. Errors: transport_unavailable, with what to do about it.
  static Result<std::unique_ptr<ConnectionManager>> open(const tcp::SocketAddress& local);
  ~ConnectionManager();
  ConnectionManager(const ConnectionManager&) = delete;
  ConnectionManager& operator=(const ConnectionManager&) = delete;

  const std::shared_ptr<Device>& device() const noexcept { return device_; }
  const tcp::SocketAddress& local() const noexcept { return local_; }
  uint8_t device_port() const noexcept { return listener_->port_num; }
  const std::shared_ptr<rdma_event_channel>& channel() const noexcept { return channel_; }

  /// Called on the network thread when the device has failed or is being removed.
  void set_on_device_lost(std::function<void(const Status&)> lost) { lost_ = std::move(lost); }
  /// From the first call on, the reactor handles all events. Errors: system_error, also if the device has been lost.
  Status start(Reactor& reactor);
  /// The port of the listener, which accepts connections from the first call on. Errors: transport_unavailable.
  Result<uint16_t> listen();
  /// The next `count` connections that bring this token are for `expecting`, until forget.
  void expect(const StreamToken& token, const ConnectionOptions& options, uint32_t count,
              Expecting* expecting);
  void forget(const StreamToken& token);

 private:
  struct Expected {
    ConnectionOptions options;
    uint32_t count = 0;
    Expecting* expecting = nullptr;
  };

  ConnectionManager() = default;
  Status bind_anew();
  void on_events();
  Status device_lost() const;
  void on_request(rdma_cm_id* id, const StreamToken& token, bool has_token);

  tcp::SocketAddress local_;
  std::shared_ptr<rdma_event_channel> channel_;  // as long as there are connections
  rdma_cm_id* listener_ = nullptr;
  bool listening_ = false;
  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceWatch> watch_;  // from start on
  Reactor* reactor_ = nullptr;
  std::function<void(const Status&)> lost_;
  bool device_is_lost_ = false;
  std::map<StreamToken, Expected> expected_;
};

}  // namespace faro::transport::verbs
