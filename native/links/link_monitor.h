// LinkMonitor: sends the heartbeats of all links, and ends those whose peers are silent for too long, whose
// data connection has failed, or whose work an exception has interrupted.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/settings.h"
#include "faro/status.h"
#include "links/link_table.h"
#include "links/liveness.h"

namespace faro::links {

/// Threads: network thread. Blocks: never.
class LinkMonitor {
 public:
  /// All outlive it. `name`: of this node, for messages.
  LinkMonitor(const base::Settings& settings, LinkTable& links, std::string name,
              base::Nanoseconds now);

  /// When check has something to do. `judges`: silent peers are lost. That is not so while the cluster forms, for which
  /// connect.timeout_ms is the limit.
  base::Nanoseconds next_deadline(bool judges) const;
  /// All connections have been read when this is called. Looks at each link with the heartbeats and when something is due; in
  /// between it costs nothing, however many there are.
  void check(base::Nanoseconds now, bool judges);
  /// The last check was one of those that come once per heartbeat interval.
  bool beat() const { return liveness_.beat(); }
  /// The status with which a link, or the opening of a session, fails when the process has no memory left. Made
  /// beforehand.
  const Status& no_memory() const { return no_memory_; }
  /// A peer's heartbeat has arrived.
  void beat_along(base::Nanoseconds now) { liveness_.beat_along(now); }

 private:
  base::Nanoseconds joining() const;
  base::Nanoseconds expiry(const Link& link) const;
  base::Nanoseconds data_expiry(const Link& link) const;
  base::Nanoseconds setup_expiry(const Link& link) const;
  base::Nanoseconds due(const Link& link, bool judges) const;
  void check(Link& link, base::Nanoseconds now, bool judges);
  void check_data(Link& link, base::Nanoseconds now, bool judges);

  const base::Settings& settings_;
  LinkTable& links_;
  const std::string name_;
  const Status no_memory_;
  Liveness liveness_;
  bool judged_ = false;  // in the last look at all
};

}  // namespace faro::links
