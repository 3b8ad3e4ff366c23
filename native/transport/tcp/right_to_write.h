// RightToWrite: which thread writes to a data connection (native/DESIGN.md#hc-6). It is one word:
//
//   free ──CAS──► held ──► free             everything due is in the kernel
//                 held ──► blocked          the socket is full (or the turn is over). Now the
//                                           right is the network thread's, which takes it
//                                           (blocked → held) when the socket is writable
//                 held ──► held_writable    the network thread saw the socket writable while the
//                                           right was held: its holder must try again instead of
//                                           blocking
//                          parked           the connection has ended: nobody gets the right until
//                                           the link has another one, or is destroyed
//
// No writability is lost: the socket is registered with the reactor edge-triggered once, so that a
// full socket costs no system call beyond the one that found it full. The kernel reports an edge
// after a send that it refused. If that edge comes before the holder has stored `blocked`, the
// network thread finds `held` and leaves held_writable there, on which the holder's CAS held →
// blocked fails, and it sends again.
//
// While the right is held, or blocked, what it covers belongs to the holder; the CAS free → held or
// blocked → held (acquire) sees what the store of free or blocked (release) published. All of them
// are seq_cst, for they are among the steps W1 to W4 of native/DESIGN.md#memory-orders. That says
// why no post is lost. If W2 finds `blocked`, the network thread becomes the holder later, and the
// same holds.
#pragma once

#include <atomic>
#include <cstdint>

namespace faro::transport::tcp {

/// Threads: as noted.
class RightToWrite {
 public:
  /// W2. True: the caller is the holder. Threads: any.
  bool try_take() noexcept {
    State found = kFree;
    return state_.compare_exchange_strong(found, kHeld, std::memory_order_seq_cst);
  }

  /// W3. Threads: the holder, or the one that ends the parking.
  void give_back() noexcept { state_.store(kFree, std::memory_order_seq_cst); }
  /// The socket was full. False: it has become writable meanwhile, and the caller is the holder
  /// still. Threads: the holder.
  bool block() noexcept {
    State found = kHeld;
    if (state_.compare_exchange_strong(found, kBlocked, std::memory_order_seq_cst)) return true;
    // It was held_writable, which only the holder changes.
    state_.store(kHeld, std::memory_order_relaxed);
    return false;
  }
  /// The turn is over, but the socket is not full, so no edge will come: the caller has the network
  /// thread call take_blocked. Threads: the holder.
  void block_until_called() noexcept { state_.store(kBlocked, std::memory_order_seq_cst); }
  /// Threads: the holder.
  void park() noexcept { state_.store(kParked, std::memory_order_seq_cst); }

  /// The socket is writable. True: the caller is the holder. Threads: network thread.
  bool take_blocked() noexcept {
    State found = state_.load(std::memory_order_seq_cst);
    for (;;) {
      if (found == kBlocked) {
        // Only this thread takes it out of `blocked`.
        state_.store(kHeld, std::memory_order_seq_cst);
        return true;
      }
      if (found != kHeld) return false;
      if (state_.compare_exchange_weak(found, kHeldWritable, std::memory_order_seq_cst))
        return false;
    }
  }
  /// False: another thread is the holder. Threads: any.
  bool try_park() noexcept {
    State found = state_.load(std::memory_order_seq_cst);
    while (found == kFree || found == kBlocked) {
      if (state_.compare_exchange_weak(found, kParked, std::memory_order_seq_cst)) return true;
    }
    return found == kParked;
  }

 private:
  enum State : uint32_t { kFree, kHeld, kHeldWritable, kBlocked, kParked };

  std::atomic<State> state_{kFree};
};

}  // namespace faro::transport::tcp
