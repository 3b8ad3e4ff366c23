// LinkHistory: what has happened to a link: when its peer was heard, since when it is set up, why
// it has broken, and why it was not mended. LinkMonitor judges a link by the times; the causes say
// why it is lost.
#pragma once

#include "base/clock.h"
#include "faro/status.h"
#include "links/liveness.h"
#include "transport/transport.h"

namespace faro::links {

/// Threads: network thread. Blocks: never. All times are of one clock and passed in.
class LinkHistory {
 public:
  /// Its peer was admitted.
  explicit LinkHistory(base::Nanoseconds now) : control_{now} {}

  /// Anything at all has come over the control connection, or there is another one.
  void note_control(base::Nanoseconds now) { control_.heard = now; }
  /// Anything at all has come over the data connection.
  void note_data(base::Nanoseconds now) { data_.heard = now; }
  void note_setup(base::Nanoseconds now) { setup_since_ = now; }
  /// The peer was told that this side is ready.
  void note_told_ready() { told_ready_ = true; }
  /// The peer says for good that it never came up there.
  void note_unopened() { told_ready_ = false; }
  /// Looks what has come over the data connection, and sends the peer a sign of life.
  transport::Pulse take_pulse(transport::DataLink& data, base::Nanoseconds now);

  const Liveness::Peer& control() const { return control_; }
  /// Null: nobody can tell. It need not be there unless the link is up.
  const Liveness::Peer* data() const { return data_shows_ ? &data_ : nullptr; }
  /// When its setup began; 0 before that.
  base::Nanoseconds setup_since() const { return setup_since_; }
  /// Whether the link is, or was, perhaps up to the peer.
  bool may_be_up_to_peer() const { return told_ready_; }

  /// It was up, or may have been to the peer, and has broken.
  void note_break(const Status& cause) {
    last_break_ = cause;
    last_failure_ = Status::Ok();
  }
  /// Why an attempt to mend it has failed. If none succeeds, the last of these says why.
  void note_failed_mending(const Status& why) { last_failure_ = why; }
  /// With which it fails if it is of no use to mend it again.
  Status stuck() const;
  /// With which it fails if it has broken by `cause` and was not mended within `limit`. `begun`:
  /// the peer answers, and the two were about to get a data connection.
  Status not_mended(const Status& cause, base::Nanoseconds limit, bool begun) const;

 private:
  Liveness::Peer control_;
  Liveness::Peer data_;
  bool data_shows_ = false;  // what comes over the data connection is known
  bool told_ready_ = false;
  base::Nanoseconds setup_since_ = 0;
  Status last_break_;    // the last time that it was up
  Status last_failure_;  // to mend it, since then
};

}  // namespace faro::links
