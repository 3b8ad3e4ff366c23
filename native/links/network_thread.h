// NetworkThread: the one thread that serves the links of a session or an endpoint.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "faro/status.h"
#include "links/network.h"

namespace faro::links {

/// What happens on the network thread, in rounds: wait for events, pass them to the links, check time limits.
class Rounds {
 public:
  virtual ~Rounds() = default;
  /// Waits for events at most until `until`, handles them and checks time limits. Returns whether there were any events.
  virtual bool round(base::Nanoseconds until) = 0;
  /// Says goodbye to all peers. Rounds go on until closed().
  virtual void begin_closing() = 0;
  /// Ends what begin_closing has begun, at once.
  virtual void finish_closing() = 0;
  virtual bool closed() const = 0;
  /// When closing is over at the latest.
  virtual base::Nanoseconds closing_deadline() const = 0;
};

/// Threads: any, except where said. Owns: the thread.
class NetworkThread {
 public:
  /// Both outlive it. `name`: of the node, for the log. `cpus`: on which it runs, by network.cpus; empty: any.
  NetworkThread(Rounds& rounds, Network& network, std::string name, std::string cpus)
      : rounds_(rounds), network_(network), name_(std::move(name)), cpus_(std::move(cpus)) {}
  ~NetworkThread() { close(); }

  /// Starts the thread; where the network wants none, does nothing. Errors: system_error, config_invalid (network.cpus); then it has
  /// closed.
  Status start();
  /// One round in the calling thread, for the simulation and for tests. Returns whether it did anything. Not while the
  /// thread runs.
  bool do_work();
  /// Closes, and ends the thread. From a call that comes from the thread itself it returns at once, and the destructor
  /// waits. Idempotent. Blocks: until Rounds::closed().
  void close();

 private:
  Status pin();
  void run() noexcept;
  bool go_on(base::Nanoseconds until) noexcept;

  Rounds& rounds_;
  Network& network_;
  const std::string name_;
  const std::string cpus_;
  std::mutex close_mutex_;
  bool closed_ = false;                // guarded by close_mutex_
  std::thread thread_;                 // the starting thread's, then guarded by close_mutex_
  std::atomic<std::thread::id> id_{};  // relaxed: only ever compared with the caller's own id
};

}  // namespace faro::links
