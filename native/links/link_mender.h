// LinkMender: dials the peers of links that are being mended, until there is a connection or the peer turns out to be
// gone, and takes the links on from there.
//
//   the side that dialled the link    dials again, and the link resumes
//   the other one                     dials, too, but only to learn whether the peer's process lives: that refuses, for
//                                     it dials itself. Of many links with one process one asks at a time
//
//   refused by the peer's host        its process has died: lost
//   refused by the peer               it is another process, or has given the link up: lost
//   anything else                     is tried again, until the link has waited for link.mend_ms
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "faro/status.h"
#include "links/dialler.h"
#include "links/link_table.h"

namespace faro::links {

/// Threads: network thread. Blocks: never.
class LinkMender final : private Dialler::Owner {
 public:
  /// All outlive it.
  LinkMender(Network& network, const Identity& identity, LinkTable& links)
      : network_(network), identity_(identity), links_(links) {}

  /// For every link that is being mended: dials, or gives up an attempt that takes too long; once it has a connection,
  /// sees whether the setup has made progress. Costs nothing while there is none.
  void advance(base::Nanoseconds now);
  /// When advance has something to do.
  base::Nanoseconds next_deadline() const;

 private:
  // A dialler stays as long as its link, so that an attempt that is not needed any more ends in order.
  struct Attempts {
    uint64_t link = 0;  // its number
    std::unique_ptr<Dialler> dialler;
  };

  /// The links with one process that ask whether it lives. The answer is for all of them.
  struct Asking {
    std::optional<uint32_t> asker;  // the place of the one whose attempt is under way
    uint32_t last = 0;              // that has asked
    base::Nanoseconds pause = 0;    // after the last answer
    base::Nanoseconds next = 0;     // when one may ask again
  };

  void on_dialled(Dialler& dialler, std::unique_ptr<ControlConnection> connection,
                  const wire::Hello& peer) override;
  void on_dial_failed(Dialler& dialler, const Status& cause) override;
  void on_dial_refused(Dialler& dialler, const Refusal& refusal) override;
  void dial(const Link& link, base::Nanoseconds now);
  Link* waiting(const Dialler& dialler) const;
  void choose_askers(base::Nanoseconds now);
  bool may_dial(const Link& link) const;
  void note_answer(const Link& link);
  void lose(Link& link, const Status& why);
  void lose_all(const Link& asker, const Status& why);

  Network& network_;
  const Identity& identity_;
  LinkTable& links_;
  std::map<uint32_t, Attempts> attempts_;  // by the place of the link
  std::map<uint64_t, Asking> asking_;      // by the incarnation of the peer
};

}  // namespace faro::links
