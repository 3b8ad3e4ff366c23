// MendingTally: whether it is of any use to give a link yet another connection.
//
// A path may carry handshakes and drop what is larger, or go dark again each time. Then a link
// breaks, is mended, and breaks, without end. Each RESUME says how far the peer has come. So what
// counts is breaks since that has changed:
//
//   a break counts if the connection went silent, or something was on its way over it and has not come
//   three of them, over no less than the time after which silence counts, beside the time of one that was as long: stuck
//
// Three breaks alone would be too few: of a hundred cuts within a second, three in a row may come before a whole frame has,
// and the next connection carries it. A connection that goes dark takes that time by itself, so with two cuts within a moment, before
// or behind it, it proves no more than three cuts. Connections that are cut while nothing is on its way prove nothing, nor do those
// that end before the peer has said how far it is, nor one that carried signs of life for long. What comes from the peer does not help
// what was on its way before; it does if all of that is newer than the break before.
#pragma once

#include <cstdint>
#include <utility>

namespace faro::transport {

/// Threads: one at a time.
class MendingTally {
 public:
  static constexpr uint32_t kBreaks = 3;
  static constexpr uint32_t kBeatsPerLimit = 4;  // as links::Liveness

  /// A heartbeat was due, and the connection has shown something since the one before, or nothing.
  void beat(bool heard) noexcept {
    ++beats_;
    ++since_break_;
    quiet_ = heard ? 0 : quiet_ + 1;
    heard_ += heard ? 1 : 0;
  }
  /// The connection is given up.
  void broke() noexcept {
    was_silent_ = quiet_ >= kBeatsPerLimit - 1;
    if (heard_ >= 3 * kBeatsPerLimit) breaks_ = 0;
    const bool counts = is_resumed_ || was_silent_;
    if (counts) ++breaks_;
    if (breaks_ <= 1) {
      begin();
    } else if (counts) {
      go_on();
    }
    if (was_silent_ && !is_resumed_) judge();  // the next one may not say it, either
    is_resumed_ = false;
    quiet_ = heard_ = 0;
  }
  /// Over another connection the peer has said how far it has come: `delivered` is what it has, of
  /// all rings, `arrived` what has come from it. `owes`: there is more for it.
  void resumed(uint64_t delivered, uint64_t arrived, bool owes) noexcept {
    const bool is_held_up = owes && owed_;
    const bool moved = delivered != delivered_ || (!is_held_up && arrived != arrived_);
    if (moved) {
      breaks_ = 1;
      begin();
    } else if (!owes && !was_silent_ && breaks_ != 0) {
      --breaks_;
    }
    delivered_ = delivered;
    arrived_ = arrived;
    owed_ = owes;
    is_resumed_ = true;
    quiet_ = 0;  // that is heard; and while there was no connection there was nothing to hear
    judge();
  }
  bool is_stuck() const noexcept { return is_stuck_; }

 private:
  /// The first break. The time before it does not count, so if it was a silence, no other one is spared.
  void begin() noexcept {
    beats_ = since_break_ = 0;
    is_one_spared_ = was_silent_;
  }
  /// A further one, which is spared if it is the first that took as long as a silence.
  void go_on() noexcept {
    const bool is_long = since_break_ >= kBeatsPerLimit - 1;
    if (is_long && !std::exchange(is_one_spared_, true)) beats_ -= since_break_;
    since_break_ = 0;
  }
  void judge() noexcept { is_stuck_ = breaks_ >= kBreaks && beats_ >= kBeatsPerLimit; }

  uint64_t delivered_ = 0;
  uint64_t arrived_ = 0;
  bool owed_ = false;         // when the peer said it last there was more for it
  uint32_t breaks_ = 0;       // that count, since one of the two has changed
  uint32_t beats_ = 0;        // since the first of them, without those of one that took long
  uint32_t since_break_ = 0;  // beats since the last of them
  uint32_t quiet_ = 0;      // beats at the end of this connection, or before it, that heard nothing
  uint32_t heard_ = 0;      // beats of this connection that heard something
  bool is_resumed_ = true;  // the peer has said over this connection how far it is
  bool was_silent_ = false;     // the connection before
  bool is_one_spared_ = false;  // of `beats_`
  bool is_stuck_ = false;
};

}  // namespace faro::transport
