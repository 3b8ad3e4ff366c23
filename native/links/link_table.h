// LinkTable: the links of a node to its peers, as they come and go. Each peer has a place in it, and the layer above
// assigns the numbers of the places.
//
// Workers look a peer's link up and keep it; a link that was lost leaves the table at once and is
// destroyed when its last user has released it (retired_links.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "links/identity.h"
#include "links/link.h"
#include "links/link_watch.h"
#include "links/retired_links.h"
#include "links/unopened_links.h"
#include "transport/absent_link.h"

namespace faro::links {

/// Threads: network thread, except where noted. Blocks: never for long. Owns: the links.
class LinkTable {
 public:
  /// `ring_bytes`: of the rings of a link that is absent.
  LinkTable(uint32_t peers, uint32_t ring_bytes);
  /// Destroys retired links as well. Do not call it from inside a link.
  ~LinkTable() { clear(); }
  LinkTable(const LinkTable&) = delete;
  LinkTable& operator=(const LinkTable&) = delete;

  uint32_t peers() const noexcept { return peers_; }
  /// Null: the peer has none. Valid until the end of the round.
  Link* find(uint32_t peer) const {
    const auto found = links_.find(peer);
    return found == links_.end() ? nullptr : found->second.get();
  }
  /// The link that a data connection with this token belongs to; null: none.
  Link* find(const transport::StreamToken& token) const;
  /// The link that the sender of this HELLO wants to mend; null: there is none, or it cannot be mended.
  Link* find_to_mend(const wire::Hello& hello, const Identity& identity) const;
  /// Whether the link that the sender wants to mend has never come up here, and never will: if it is still being set up, it
  /// ends, for its peer has given up its connections.
  bool end_unopened(const wire::Hello& hello, const Identity& identity);
  /// Whether a peer at this host is about to dial a data connection.
  bool expects_stream_from(const std::string& host) const;
  /// How many do.
  size_t expected_streams() const;
  /// Whether no link has a control connection any more.
  bool all_detached() const;

  /// By peer. `visit` may take links out, and put others in.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (auto at = links_.begin(); at != links_.end();) {
      const uint32_t peer = at->first;
      visit(*at->second);
      at = links_.upper_bound(peer);
    }
  }

  /// When links have to be looked at. Threads: network thread.
  LinkWatch& watch() noexcept { return watch_; }
  const LinkWatch& watch() const noexcept { return watch_; }

  /// Puts a link into the place context().peer_node, which is empty.
  Link& add(std::unique_ptr<Link> link);
  /// Has the mendings of the peer's link counted, see LinkState::count_in; no effect if there is none.
  void count_mendings(uint32_t peer, counters::Counter& mended, counters::Counter& mending_ns);
  /// A link of the table has come up.
  void note_up() noexcept { changes_.fetch_add(1, std::memory_order_release); }
  /// Takes the peer's link out of the table. Returns whether it had come up: then data() is another link now.
  bool retire(uint32_t peer);
  /// Closes the connections of retired links, and destroys those that are no longer in use. Do not call it from inside a
  /// link.
  void destroy_retired();
  void clear();

  // --- threads: any

  /// The peer's data link, or one that carries nothing; never null.
  std::shared_ptr<transport::DataLink> data(uint32_t peer) const;
  bool connected(uint32_t peer) const;
  /// Whose data() is that of a link.
  std::set<uint32_t> linked() const;
  /// The first peer, from that one on, whose data() is that of a link, or of one that is gone.
  std::optional<uint32_t> next_counting(uint32_t from) const noexcept;
  /// Increases whenever data() changes for some peer; acquire.
  uint64_t changes() const noexcept { return changes_.load(std::memory_order_acquire); }
  /// Number of links that have left the table and are still in use.
  uint32_t retired_count() const;

 private:
  const uint32_t peers_;
  const uint32_t ring_bytes_;
  const std::shared_ptr<transport::DataLink> never_linked_;  // of peers that were not
  LinkWatch watch_;
  const std::shared_ptr<RetiredLinks> retired_ = std::make_shared<RetiredLinks>();
  UnopenedLinks unopened_;
  std::vector<std::shared_ptr<Link>> parted_;  // retired ones whose connections are not closed yet
  // By peer. Replaced by the network thread, under the mutex; other threads look under the mutex.
  mutable std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<Link>> links_;
  std::map<uint32_t, std::shared_ptr<transport::DataLink>>
      absent_;                        // in place of those that are gone
  std::atomic<uint64_t> changes_{0};  // network thread: release, after the change
};

}  // namespace faro::links
