// Credits: when a side may SEND, so that a receive is always posted for what arrives.
//
// Each side posts a number of receives ahead and tells the other how many, once, during setup.
// kReturns of them are for returns, the others for notifications (wire/verbs_message.h). Each SEND
// confirms how many of the peer's messages of both kinds were taken, with their receives posted anew.
// A sender keeps
//
//   notifications sent - notifications confirmed  <=  peer's receives - kReturns
//   returns sent       - returns confirmed        <=  kReturns
//
// so that messages in flight never exceed the receives, and receiver-not-ready cannot occur.
//
// A return is due when half of the receives for notifications are taken and not confirmed. A return
// does not ask for one back: returns alone never make one due. Both sides can run out of credits, but
// neither waits forever:
//
//   1. Let A wait for credits for notifications. All its notifications arrive and are taken. Those after
//      the last confirmed one are as many as there are receives for them, so B owes a return.
//   2. B can only be unable to send it if kReturns returns of B are in flight or have arrived, none of
//      them confirmed. They arrive. Each confirmed more notifications than anything before it, so the
//      first of them gave A a credit. If A does not use it, A does not wait. If A does, that notification
//      confirms the return to B (an immediate confirms nothing, so while must_confirm() a notification
//      has to be a SEND), and B can send what it owes.
//
// With A and B exchanged this holds, too. The least number of receives, 4, leaves 2 for
// notifications; 3 would do.
#pragma once

#include <atomic>
#include <cstdint>

namespace faro::transport::verbs {

/// Counts are modulo 2^32, as on the wire.
/// Threads: "poster" is the holder of the right to post, "poller" the holder of the right to poll
/// (verbs_path.h). What one writes and the other reads is seq_cst: it is part of the argument there.
class Credits {
 public:
  static constexpr uint32_t kReturns = 2;
  static constexpr uint32_t kLeastReceives = 4;
  static constexpr uint32_t kMostReceives = 1 << 16;

  struct Told {
    uint32_t notes;
    uint32_t returns;
  };

  /// Both at least kLeastReceives.
  Credits(uint32_t own_receives, uint32_t peer_receives)
      : note_limit_(peer_receives - kReturns), due_after_((own_receives - kReturns + 1) / 2) {}

  /// Notifications that may be sent now. Threads: poster; other threads may see an older or newer number.
  uint32_t notes_left() const noexcept {
    return note_limit_ - (notes_sent_.load(std::memory_order_relaxed) -
                          notes_told_.load(std::memory_order_seq_cst));
  }
  bool may_return() const noexcept {
    return returns_sent_.load(std::memory_order_relaxed) -
               returns_told_.load(std::memory_order_seq_cst) <
           kReturns;
  }
  /// Threads: poster; before the message is posted.
  void note_sent() noexcept { add(notes_sent_); }
  void return_sent() noexcept { add(returns_sent_); }

  /// What the next SEND confirms; from now on that counts as confirmed. Threads: poster.
  Told tell() noexcept {
    const Told told{notes_taken_.load(std::memory_order_seq_cst),
                    returns_taken_.load(std::memory_order_seq_cst)};
    notes_confirmed_.store(told.notes, std::memory_order_relaxed);
    returns_confirmed_.store(told.returns, std::memory_order_relaxed);
    return told;
  }
  /// Threads: any; exact for poster and poller.
  bool return_due() const noexcept {
    return notes_taken_.load(std::memory_order_seq_cst) -
               notes_confirmed_.load(std::memory_order_relaxed) >=
           due_after_;
  }
  bool must_confirm() const noexcept {
    return returns_taken_.load(std::memory_order_seq_cst) !=
           returns_confirmed_.load(std::memory_order_relaxed);
  }

  /// A message was taken and its receive posted anew. Threads: poller.
  void note_taken() noexcept { add(notes_taken_); }
  void return_taken() noexcept { add(returns_taken_); }

  /// Messages taken, of both kinds. Threads: any.
  uint32_t taken() const noexcept {
    return notes_taken_.load(std::memory_order_relaxed) +
           returns_taken_.load(std::memory_order_relaxed);
  }

  /// All is as at first: another queue pair begins, with receives of its own. Threads: poster and
  /// poller in one.
  void restart() noexcept {
    for (std::atomic<uint32_t>* each :
         {&notes_sent_, &returns_sent_, &notes_confirmed_, &returns_confirmed_, &notes_told_,
          &returns_told_, &notes_taken_, &returns_taken_})
      each->store(0, std::memory_order_seq_cst);
  }

  /// What a SEND of the peer carried; false if it claims more than was sent, or less than before.
  /// Threads: poller.
  bool accept(Told told) noexcept {
    const uint32_t notes = notes_told_.load(std::memory_order_relaxed);
    const uint32_t returns = returns_told_.load(std::memory_order_relaxed);
    // The peer can only have taken what was sent, so an honest count comes after that store.
    if (told.notes - notes > notes_sent_.load(std::memory_order_relaxed) - notes) return false;
    if (told.returns - returns > returns_sent_.load(std::memory_order_relaxed) - returns)
      return false;
    notes_told_.store(told.notes, std::memory_order_seq_cst);
    returns_told_.store(told.returns, std::memory_order_seq_cst);
    return true;
  }

 private:
  // Adds 1 to a counter with one writer.
  static void add(std::atomic<uint32_t>& counter) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
  }

  const uint32_t note_limit_;
  const uint32_t due_after_;

  // The poster's.
  alignas(64) std::atomic<uint32_t> notes_sent_{0};
  std::atomic<uint32_t> returns_sent_{0};
  std::atomic<uint32_t> notes_confirmed_{0};  // of the peer's, told to it
  std::atomic<uint32_t> returns_confirmed_{0};

  // The poller's.
  alignas(64) std::atomic<uint32_t> notes_told_{0};  // of ours, by the peer
  std::atomic<uint32_t> returns_told_{0};
  std::atomic<uint32_t> notes_taken_{0};  // of the peer's
  std::atomic<uint32_t> returns_taken_{0};
};

}  // namespace faro::transport::verbs
