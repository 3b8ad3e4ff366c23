// Peers: all that this node knows of the nodes of its session, one record for each number. peer_view.h has the picture of their
// states, and what others copy of a record.
//
// What users order (add, remove) is checked and noted at once, on any thread; all else changes in `on`, on the network thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "faro/cancellation.h"
#include "faro/status.h"
#include "faro/wait.h"
#include "session/peer_view.h"
#include "session/topology.h"

namespace faro::session {

/// Threads: any, where nothing else is said; "network": the network thread, before it runs the opening thread.
/// Blocks: `await`; all else never for long.
class Peers {
 public:
  /// All outlive it.
  Peers(const base::Settings& settings, const Topology& topology, const base::Clock& clock);

  const Topology& topology() const { return topology_; }

  // --- what users order

  /// Gives a number to a node. Errors: as Nodes::add.
  Status add(uint32_t node, const std::string& address);
  /// Takes the number of a node away. Errors: as Nodes::remove.
  Status remove(uint32_t node);
  /// Whether a node may be drained. Errors: as Nodes::drain.
  Status check_drain(uint32_t node) const;
  /// Does what Session::await_node says. When the node has come it has just been asked for.
  Status await(uint32_t node, Wait wait, const Cancellation& cancellation);
  /// Somebody asks for a node, and may need it soon: its link stays for connect.timeout_ms.
  void ask_for(uint32_t node);
  /// Ends every wait, and refuses every order.
  void close();

  // --- what happens to them

  enum class Event : uint8_t {
    added,     // the order of `add` has come
    admitted,  // a process of the node, whose session may not be open yet; it is not linked yet
    up,        // the link with the process
    opened,  // the session of the process, which is linked there, too; the link may not be up yet here
    asked,    // the process, whether the link may rest
    stays,    // the link: one of both needs it
    agreed,   // both, that the link rests
    ends,     // the link, which is a loss unless it was agreed; repeatable
    told,     // queries, of that: it is not present any more
    lost,     // the process, while the session opens
    refused,  // the process refuses this one for good
    drained,  // no query needs the node any more
    removed,  // the order of `remove` has come; the number is not free yet
    freed,    // the number can be given again
  };
  /// What a listener is to be told of a node that is there.
  enum class Return : uint8_t {
    none,       // it is not there, or was before
    first,      // it is, since it was added
    again,      // after it was lost, or was missing
    from_rest,  // after its link was let go: nothing
  };
  struct Change {
    PeerView now;
    Return returned = Return::none;
  };
  /// Every transition. `incarnation`: of the process, for up and lost (0: its link never came up). Needs no memory, except
  /// `admitted`. Threads: network; told: any.
  Change on(uint32_t node, Event event, uint64_t incarnation = 0);
  /// The session is open: whoever is not linked now is another process when it comes. Threads: network.
  void begin();

  /// There is no link with the node, for that reason; empty: there is.
  void note_unlinked(uint32_t node, std::string why);
  /// It is dialled until then. Threads: network.
  void want(uint32_t node, base::Nanoseconds until);
  /// It is dialled no more. Threads: network.
  void forget_want(uint32_t node);

  // --- what they are

  /// An order to add it counts at once: it is apart then.
  PeerView view(uint32_t node) const;
  /// Whether a node has the number.
  bool has(uint32_t node) const;
  /// Whether it may be linked.
  bool is_member(uint32_t node) const;
  bool is_drained(uint32_t node) const;
  /// Queries may contain it: its session is open, and it is linked. Once this is false, queries
  /// know why they may not.
  bool is_present(uint32_t node) const;
  bool is_asked_for(uint32_t node) const noexcept;
  /// For which nodes somebody waits.
  std::vector<uint32_t> awaited() const;
  bool is_closed() const;
  /// The last reason why there was no link with it; with the node's name.
  std::string why_unlinked(uint32_t node) const;
  /// What why_unlinked says; empty if no reason was noted since there was a link.
  std::string noted_unlinked(uint32_t node) const;
  /// That of the process which is linked, or was last; 0: none was since the session opened.
  uint64_t incarnation(uint32_t node) const;

  // --- Threads: network

  /// Whether its session is known to be open: `opened` has happened since `admitted`.
  bool is_open(uint32_t node) const { return peers_[node].is_open; }
  /// Why this process may not be linked; Ok: it may. A process that was lost does not come back by itself: its node has to
  /// start again.
  Status check_process(uint32_t node, uint64_t incarnation) const;
  /// Until when it is dialled; 0: it is not.
  base::Nanoseconds wanted_until(uint32_t node) const { return peers_[node].wanted_until; }
  /// The first of these times.
  base::Nanoseconds first_wanted_until() const { return first_wanted_until_; }

  /// Where it listens, and the host of that; empty: no node has the number.
  const std::string& address(uint32_t node) const { return peers_[node].address; }
  std::string host(uint32_t node) const;
  /// Its name, always with the address that it has now.
  std::string full_name(uint32_t node) const;
  /// The other nodes that there are.
  template <typename Visit>
  void for_each_peer(Visit&& visit) const {
    for (uint32_t number = 0; number < peers_.size(); ++number) {
      if (number != topology_.self() && !address(number).empty()) visit(number);
    }
  }
  uint32_t peer_count() const {
    uint32_t count = 0;
    for_each_peer([&](uint32_t) { ++count; });
    return count;
  }
  /// Those that are linked when the session opens: which are wanted for good, or waited for (connect.wait_for).
  template <typename Visit>
  void for_each_wanted_at_open(Visit&& visit) const {
    const bool waits = settings_.wait_for != "none";
    for_each_peer([&](uint32_t node) {
      if (waits || topology_.node(node).wanted_for_good) visit(node);
    });
  }

 private:
  enum class Order : uint8_t { none, add, remove };  // that the network thread has not carried out

  struct Peer {
    // For the network thread alone.
    std::string address;
    std::vector<uint64_t> lost;  // incarnations that do not come back, the latest last
    base::Nanoseconds wanted_until = 0;
    bool is_open = false;
    // Under the lock.
    PeerView view;
    Order order = Order::none;
    bool is_present = false;
    bool has_next_link = false;  // a process was admitted, and its link is not up yet
    bool is_known = false;       // was there, or in the list, since the number was given
    bool rested = false;   // the process is the one whose link was let go, and has not returned yet
    uint32_t waiting = 0;  // how many wait for it
    base::Nanoseconds asked_until = 0;  // somebody has asked for it
    std::string new_address;            // of the order to add it
    std::string why_unlinked;           // empty: no reason was noted
  };
  /// How many lost processes of a number are remembered. A process that was lost dials again at once or never.
  static constexpr size_t kRemembered = 64;

  static void remember_lost(Peer& peer);
  Return step(Peer& peer, Event event, uint64_t incarnation);
  Status check_changing() const;
  Status check_number(uint32_t node) const;
  bool has_locked(uint32_t node) const;
  PeerView view_locked(uint32_t node) const;

  const base::Settings& settings_;
  const Topology& topology_;
  const base::Clock& clock_;      // not read under the lock: a simulated clock may switch threads
  const base::Nanoseconds keep_;  // for how long a link stays that was asked for
  base::Nanoseconds first_wanted_until_ = base::kForever;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // is_present, or closed_
  std::vector<Peer> peers_;          // by number
  bool closed_ = false;
};

}  // namespace faro::session
