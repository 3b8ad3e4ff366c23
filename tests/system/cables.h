// Cables that a test can pull: what is sent over them is then lost in silence. OwnNetwork has a switch and cables of its
// own, in network namespaces that vanish with it; GivenCable is one that the environment names.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "support/child.h"

namespace faro::test {

/// Runs a command of a shell; whether it went well.
inline bool run_quietly(const std::string& command) {
  return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
}

/// An interface that carries all that a node sends and receives. Plugged in again by the destructor.
class GivenCable {
 public:
  explicit GivenCable(std::string interface) : interface_(std::move(interface)) {}
  ~GivenCable() {
    if (pulled_) set("up");
  }
  GivenCable(const GivenCable&) = delete;
  GivenCable& operator=(const GivenCable&) = delete;

  void pull() {
    pulled_ = true;
    set("down");
  }

 private:
  void set(const char* state) const {
    if (!run_quietly(fmt::format("ip link set {} {}", interface_, state))) std::abort();
  }

  const std::string interface_;
  bool pulled_ = false;
};

/// Threads: one that has no siblings; until it is destroyed this process is in the switch's namespace.
class OwnNetwork {
 public:
  /// nullptr if this system does not permit it.
  static std::unique_ptr<OwnNetwork> make() {
    std::unique_ptr<OwnNetwork> network(new OwnNetwork);
    if (!network->former_.valid() || unshare(CLONE_NEWNET) != 0) return nullptr;
    network->entered_ = true;
    const bool built = run_quietly(
        "ip link set lo up && ip link add switch0 type bridge && "
        "ip link set switch0 up");
    return built ? std::move(network) : nullptr;
  }
  ~OwnNetwork() {
    if (entered_ && setns(former_.get(), CLONE_NEWNET) != 0) std::abort();
  }
  OwnNetwork(const OwnNetwork&) = delete;
  OwnNetwork& operator=(const OwnNetwork&) = delete;

  static std::string address(uint32_t node) { return fmt::format("10.77.0.{}", node + 1); }

  /// In a node's process, before it has threads: it has a network of its own with nothing but a cable, at that address, once
  /// take_in was called here. False: this system does not permit it.
  static bool move_in(uint32_t node, const Child::Side& test) {
    if (unshare(CLONE_NEWNET) != 0) return false;
    test.say("apart");
    test.hear();
    return run_quietly(
        fmt::format("ip link set lo up && ip address add {}/24 dev eth0 && "
                    "ip link set eth0 up",
                    address(node)));
  }
  /// The first that is heard of a process that moves in: lays a cable from the switch to it.
  bool take_in(uint32_t node, Child& process) {
    const bool is_apart = process.hear() == "apart";
    const bool is_laid =
        is_apart &&
        run_quietly(fmt::format("ip link add cable{0} type veth peer name eth0 netns {1} && "
                                "ip link set cable{0} master switch0 up",
                                node, process.pid()));
    process.say("connected");
    return is_laid;
  }
  void pull(uint32_t node) {
    if (!run_quietly(fmt::format("ip link set cable{} down", node))) std::abort();
  }

 private:
  OwnNetwork() : former_(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {}
  const base::UniqueFd former_;
  bool entered_ = false;
};

}  // namespace faro::test
