// What the examples share: a small cluster in one process, and errors that end the program with their message.
// An engine has one session per process and opens it with the addresses of all nodes in cluster.nodes.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "faro/session.h"

inline void check(const faro::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}
template <typename T>
T check(faro::Result<T> result) {
  check(result.status());
  return std::move(result).value();
}
/// True for done, false for end_of_stream. `of`: what was called.
template <typename Object>
bool check(faro::Outcome outcome, const Object& of) {
  if (outcome == faro::Outcome::failed) check(of.status());
  if (outcome != faro::Outcome::done && outcome != faro::Outcome::end_of_stream)
    check(faro::Status(faro::Code::internal_error, faro::outcome_name(outcome)));
  return outcome == faro::Outcome::done;
}

/// Bound before anyone connects: so all addresses are known.
inline std::vector<faro::ListeningSocket> bind_listeners(uint32_t node_count) {
  std::vector<faro::ListeningSocket> listeners;
  for (uint32_t n = 0; n < node_count; ++n)
    listeners.push_back(check(faro::ListeningSocket::bind("127.0.0.1:0")));
  return listeners;
}
/// Opens a node's session, which waits for those of the others. `lane_ends`: as all of them say.
inline std::unique_ptr<faro::Session> open_node(uint32_t node, const std::string& nodes,
                                                faro::ListeningSocket listener, uint32_t workers,
                                                const char* lane_ends = "workers") {
  faro::Config config;
  check(config.set("cluster.nodes", nodes.c_str()));
  check(config.set("cluster.node", static_cast<uint64_t>(node)));
  check(config.set("cluster.workers", static_cast<uint64_t>(workers)));
  check(config.set("lane.ends", lane_ends));
  return check(faro::Session::open(config, std::move(listener)));
}
inline std::string addresses(const std::vector<faro::ListeningSocket>& listeners) {
  std::string all;
  for (const faro::ListeningSocket& each : listeners)
    all += (all.empty() ? "" : ",") + each.address();
  return all;
}

class Cluster {
 public:
  Cluster(uint32_t node_count, uint32_t workers, const char* lane_ends = "workers")
      : sessions_(node_count) {
    std::vector<faro::ListeningSocket> listeners = bind_listeners(node_count);
    const std::string nodes = addresses(listeners);
    on_threads(node_count, [&](uint32_t n) {
      sessions_[n] = open_node(n, nodes, std::move(listeners[n]), workers, lane_ends);
    });
  }
  faro::Session& session(uint32_t node) { return *sessions_[node]; }

  template <typename Program>
  void on_every_worker(Program program) {
    const uint32_t per_node = sessions_[0]->local_worker_count();
    on_threads(sessions_[0]->worker_count(),
               [&](uint32_t w) { program(sessions_[w / per_node]->worker(w % per_node)); });
  }

 private:
  template <typename Body>
  static void on_threads(uint32_t count, Body body) {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < count; ++i) threads.emplace_back(body, i);
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<std::unique_ptr<faro::Session>> sessions_;
};
