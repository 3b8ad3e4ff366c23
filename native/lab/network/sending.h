// Sending: what decides for all hosts of a network which of them sends to whom. Policies derive from it.
#pragma once

#include <cstdint>

namespace faro::network {

class Network;

/// Stands for no target.
inline constexpr uint32_t kNobody = UINT32_MAX;

/// A short message between hosts. It takes the network's latency and no room on the links.
struct Note {
  uint32_t kind = 0;
  uint32_t count = 0;
  uint64_t number = 0;
};

/// Threads: one. Calls come in the order of time; Network says what time it is.
class Sending {
 public:
  virtual ~Sending() = default;
  /// Called once, before everything else.
  virtual void begin(Network& network) = 0;
  /// Who gets the next packet of `host`, whose card is free. After kNobody it is asked again when Network::wake says so, and
  /// after each note and each alarm of that host.
  virtual uint32_t next(uint32_t host) = 0;
  /// A packet has left the card of `host`.
  virtual void on_sent(uint32_t /*host*/, uint32_t /*target*/) {}
  virtual void on_delivered(uint32_t /*source*/, uint32_t /*target*/) {}
  /// The switch had no room for a packet, and it is to be sent again. Policies by which one host at a time sends to each lose
  /// none, and need not care.
  virtual void on_lost(uint32_t /*host*/, uint32_t /*target*/) {}
  virtual void on_note(uint32_t /*host*/, uint32_t /*from*/, const Note& /*note*/) {}
  virtual void on_alarm(uint32_t /*host*/) {}
};

}  // namespace faro::network
