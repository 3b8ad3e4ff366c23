// QueuePair: a connected queue pair and its completion queue, as the data path uses them.
#pragma once

#include <infiniband/verbs.h>

#include "faro/status.h"

namespace faro::transport::verbs {

class QueuePair {
 public:
  /// Told on the network thread.
  class Handler {
   public:
    virtual ~Handler() = default;
    /// The connection is gone, and why. The caller is inside the queue pair, which must not be
    /// destroyed from here.
    virtual void on_disconnected(const Status& cause) = 0;
  };

  virtual ~QueuePair() = default;
  /// Threads: any. The queues serialise posting and polling; any further order is up to the callers.
  virtual ibv_qp* queue_pair() noexcept = 0;
  virtual ibv_cq* completion_queue() noexcept = 0;
  /// Stops sending and receiving: flushes what is queued and notifies the peer. Idempotent.
  /// Threads: any. Blocks: for a system call or two.
  virtual void disconnect() noexcept = 0;
  /// Threads: network thread.
  virtual void set_handler(Handler* handler) noexcept = 0;
};

}  // namespace faro::transport::verbs
