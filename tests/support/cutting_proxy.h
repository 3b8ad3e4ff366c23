// CuttingProxy: stands between a node that dials and one that listens, and breaks their connections behind exactly the
// byte that a test names, while both processes live. Or it has their packets vanish, and tells nobody.
#pragma once

#include <linux/filter.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "support/pace.h"
#include "transport/tcp/socket_address.h"
#include "wire/preamble.h"

namespace faro::test {

/// Where a connection is cut.
struct Cut {
  enum class Of { control, data, any };  // with TLS only the last: a preamble cannot be read
  enum class Way { to_listener, to_dialler };

  Of of = Of::any;
  Way way = Way::to_listener;
  uint64_t bytes = 0;  // that pass that way, counted from the cut before
  bool stays = false;  // until they are reunited
};

/// Which packets vanish, in both directions.
struct Darkness {
  enum class Where { control, data, both };
  static constexpr uint32_t kAll = 0;

  Where where = Where::data;
  bool stays = false;           // also of connections that come later, until all is bright again
  uint32_t larger_than = kAll;  // bytes, with the header of TCP
  uint64_t after = 0;  // bytes that have passed to the listener over a connection that comes later
};

/// Threads: any; it has one of its own. Owns: both halves of each connection.
class CuttingProxy {
 public:
  /// `target`: where the node listens.
  explicit CuttingProxy(const std::string& target)
      : target_(transport::tcp::resolve(target).value().front()),
        listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    transport::tcp::SocketAddress own = transport::tcp::resolve("127.0.0.1:0").value().front();
    own.length = sizeof(sockaddr_in);
    auto* const generic = reinterpret_cast<sockaddr*>(&own.storage);
    is_ready_ = bind(listener_.get(), generic, own.length) == 0 &&
                listen(listener_.get(), 64) == 0 &&
                getsockname(listener_.get(), generic, &own.length) == 0;
    address_ = transport::tcp::to_string(own);
    thread_ = std::thread([this] { run(); });
  }
  ~CuttingProxy() {
    ends_ = true;
    thread_.join();
  }
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  bool is_ready() const { return is_ready_; }
  const std::string& address() const { return address_; }

  /// Cuts at these places, one after the other.
  void cut(const std::vector<Cut>& where) {
    const std::lock_guard lock(mutex_);
    cuts_.insert(cuts_.end(), where.begin(), where.end());
    left_ = cuts_.size();
  }
  /// What has not been cut is not.
  void cut_no_more() {
    const std::lock_guard lock(mutex_);
    cuts_.clear();
    left_ = 0;
  }
  /// How many are still to come.
  size_t left() const { return left_; }
  /// How many bytes of control or data connections have passed that way since the proxy was made. Not with TLS.
  uint64_t passed(Cut::Of of, Cut::Way way) const { return passed_[index_of(of, way)]; }
  /// Breaks all connections, and takes no other from now on. Blocks: until they are broken.
  void separate() {
    separates_ = true;
    while (open_ != 0) std::this_thread::yield();
  }
  /// Takes connections again.
  void reunite() { separates_ = false; }
  /// From now on packets vanish. Blocks: until they do.
  void darken(const Darkness& darkness) {
    {
      const std::lock_guard lock(mutex_);
      darkness_ = darkness;
      darkens_ = true;
    }
    while (darkens_) std::this_thread::yield();
  }
  /// Connections that come are as they should be.
  void brighten() {
    const std::lock_guard lock(mutex_);
    darkness_.stays = false;
  }
  /// From now on data connections carry that many bytes in a second, in both directions together.
  void slow_down(uint64_t bytes_per_second) { pace_.set(bytes_per_second); }
  /// From now on a peer that dials is refused once the node is gone, as it would be without this.
  void end_with_target() { ends_with_target_ = true; }

 private:
  struct Pair {
    std::array<base::UniqueFd, 2> ends;  // the dialler's, the listener's
    std::vector<std::byte> preamble;     // what has come of it
    bool comes_second = false;           // behind a control connection
    bool broken = false;
    bool is_dark = false;  // for all packets
    uint64_t passed = 0;   // bytes to the listener
  };

  void run() {
    while (!ends_) {
      std::vector<pollfd> waits = {{listener_.get(), POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        for (const base::UniqueFd& end : pair.ends) waits.push_back({end.get(), POLLIN, 0});
      }
      poll(waits.data(), waits.size(), 1);
      size_t at = 1;
      for (Pair& pair : pairs_) {
        for (size_t from : {size_t{0}, size_t{1}}) {
          const bool comes = waits[at++].revents != 0;
          if (comes && !pair.broken && !pair.is_dark) pass(pair, from);
        }
        pair.broken = pair.broken || separates_;
      }
      if (darkens_) darken_those_that_stand();
      pairs_.remove_if([](const Pair& pair) { return pair.broken; });
      if (waits[0].revents != 0) take();
      open_ = pairs_.size();
    }
  }

  void take() {
    Pair pair;
    pair.ends[0].reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (separates_) return;
    pair.ends[1].reset(socket(target_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(pair.ends[1].get(), target_.get(), target_.length) != 0) {
      if (errno == ECONNREFUSED && ends_with_target_) listener_.reset();
      return;
    }
    for (const Pair& each : pairs_)
      pair.comes_second = pair.comes_second || (!is_data(each) && !each.is_dark);
    pairs_.push_back(std::move(pair));
  }

  void darken_those_that_stand() {
    const std::lock_guard lock(mutex_);
    for (Pair& pair : pairs_) darken(pair);
    darkens_ = false;
  }
  bool goes_dark(const Pair& pair) const {
    const auto where = is_data(pair) ? Darkness::Where::data : Darkness::Where::control;
    return darkness_.where == where || darkness_.where == Darkness::Where::both;
  }
  void darken(Pair& pair) {
    if (!goes_dark(pair)) return;
    std::array<sock_filter, 4> code = {{
        BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, darkness_.larger_than, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    }};
    const sock_fprog program{code.size(), code.data()};
    for (const base::UniqueFd& end : pair.ends) {
      if (setsockopt(end.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
        is_ready_ = false;
    }
    pair.is_dark = darkness_.larger_than == Darkness::kAll;
  }

  // One piece, up to the next cut, if that concerns this connection.
  void pass(Pair& pair, size_t from) {
    std::array<std::byte, 4096> bytes;
    const size_t most = is_data(pair) ? std::min(pace_.allowance(), bytes.size()) : bytes.size();
    if (most == 0) return;
    const ssize_t got = recv(pair.ends[from].get(), bytes.data(), most, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    pair.broken = got <= 0;
    if (pair.broken) return;
    size_t count = static_cast<size_t>(got);
    if (is_data(pair)) pace_.spend(count);
    if (from == 0 && pair.preamble.size() < sizeof(wire::Preamble))
      pair.preamble.insert(pair.preamble.end(), bytes.data(), bytes.data() + count);
    const std::lock_guard lock(mutex_);
    if (darkness_.stays && is_known(pair) && goes_dark(pair)) {
      const uint64_t may_pass = darkness_.after - std::min(darkness_.after, pair.passed);
      if (may_pass == 0) darken(pair);
      if (from == 0 && may_pass != 0) count = std::min(count, may_pass);
    }
    if (pair.is_dark) return;
    pair.passed += from == 0 ? count : 0;
    if (!cuts_.empty() && concerns(cuts_.front(), pair, from)) {
      if (cuts_.front().bytes <= count) {
        count = cuts_.front().bytes;
        pair.broken = true;
        separates_ = separates_ || cuts_.front().stays;
        cuts_.pop_front();
        left_ = cuts_.size();
      } else {
        cuts_.front().bytes -= count;
      }
    }
    passed_[index_of(is_data(pair) ? Cut::Of::data : Cut::Of::control,
                     from == 0 ? Cut::Way::to_listener : Cut::Way::to_dialler)] += count;
    send_all(pair.ends[1 - from].get(), bytes.data(), count);
  }

  static size_t index_of(Cut::Of of, Cut::Way way) {
    return (of == Cut::Of::data ? 2u : 0u) + (way == Cut::Way::to_dialler ? 1u : 0u);
  }

  static bool is_known(const Pair& pair) { return pair.preamble.size() > 6; }
  // What TLS hides comes in the order of a link's connections.
  static bool is_data(const Pair& pair) {
    const bool shows = is_known(pair) && pair.preamble[0] == std::byte{'F'};
    return shows ? pair.preamble[6] == std::byte{2} : pair.comes_second;
  }

  static bool concerns(const Cut& cut, const Pair& pair, size_t from) {
    if ((from == 0) != (cut.way == Cut::Way::to_listener)) return false;
    if (cut.of == Cut::Of::any) return true;
    return is_data(pair) == (cut.of == Cut::Of::data);
  }

  static void send_all(int to, const std::byte* bytes, size_t count) {
    while (count != 0) {
      const ssize_t put = send(to, bytes, count, MSG_NOSIGNAL);
      if (put <= 0) return;
      bytes += put;
      count -= static_cast<size_t>(put);
    }
  }

  const transport::tcp::SocketAddress target_;
  base::UniqueFd listener_;  // its thread's, once that runs
  std::string address_;
  std::atomic<bool> is_ready_{false};
  std::list<Pair> pairs_;  // its thread's
  std::mutex mutex_;
  std::deque<Cut> cuts_;                           // guarded by mutex_
  Darkness darkness_;                              // likewise
  std::atomic<bool> darkens_{false};               // those that stand
  std::array<std::atomic<uint64_t>, 4> passed_{};  // by index_of
  std::atomic<size_t> left_{0};
  std::atomic<size_t> open_{0};  // connections
  std::atomic<bool> separates_{false};
  Pace pace_;  // of data connections
  std::atomic<bool> ends_with_target_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace faro::test
