// Grants: each receiver lets one sender at a time send a turn, and the next when that turn is nearly over.
//
//   sender                                   receiver
//     ask: what is left for you, and in all ──►  keeps that
//                                       ◄── offer: a turn, in packets
//     accept, if it is nearly done with the turns it has; else busy, and later free
//
// It offers to the sender that has most to send in all, as far as it has heard: that one is who would be last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "lab/network/sending.h"

namespace faro::network {

/// Threads: one.
class Grants final : public Sending {
 public:
  explicit Grants(uint32_t turn_packets) : turn_packets_(turn_packets) {}

  void begin(Network& network) override;
  uint32_t next(uint32_t host) override;
  void on_sent(uint32_t host, uint32_t target) override;
  void on_delivered(uint32_t source, uint32_t target) override;
  void on_note(uint32_t host, uint32_t from, const Note& note) override;

 private:
  enum Kind : uint32_t { ask, offer, accept, busy, free };
  struct Asked {
    uint64_t left = 0;    // for this receiver, not yet offered
    uint64_t in_all = 0;  // of the sender, when it was last heard of
    bool is_busy = false;
  };
  struct Receiver {
    std::vector<Asked> asked;  // by sender
    uint64_t expected = 0;     // packets of turns that were accepted
    uint32_t last = 0;         // the sender of the last offer
    bool has_offered = false;  // and has no answer
  };
  struct Turn {
    uint32_t target;
    uint64_t left;
  };
  struct Sender {
    std::deque<Turn> turns;
    uint64_t granted = 0;           // packets of all turns
    uint64_t in_all = 0;            // packets for all
    std::vector<uint32_t> to_tell;  // receivers that found it busy
  };

  void make_offer(uint32_t host);
  void on_offer(uint32_t host, uint32_t from, uint64_t packets);

  const uint32_t turn_packets_;
  Network* network_ = nullptr;
  uint64_t nearly_ =
      0;  // packets of a turn that is nearly over: as many as there is time for until a note is answered
  std::vector<Receiver> receivers_;
  std::vector<Sender> senders_;
};

}  // namespace faro::network
