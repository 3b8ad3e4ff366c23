// KernelWatch: has the kernel look after a connection whose peer sends no signs of life.
//
// A segment that nobody acknowledges, or a probe of an idle connection, ends the connection after
// the limit. A peer whose workers compute reads nothing, as older ones do not, and its window
// closes. That is no reason: while the window is closed the limit is taken away, which look() finds
// out. So a path that goes dark just then is noticed later.
#pragma once

#include "base/clock.h"

namespace faro::transport::tcp {

/// Threads: one at a time.
class KernelWatch {
 public:
  /// A new connection. The kernel probes idle ones once a second at most.
  void begin(int fd, base::Nanoseconds limit) noexcept;
  /// Call it several times per limit.
  void look(int fd) noexcept;

 private:
  void set_limit(int fd, int ms) noexcept;

  int limit_ms_ = 0;
  int set_ms_ = 0;
};

}  // namespace faro::transport::tcp
