// The records of counters, one list of counters.def each. A worker counts into records that it alone
// writes and that share no cache line with another thread's: a count is a load and a store of its own
// line, and reading from outside costs it nothing but that line's transfer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace faro::counters {

/// Adds to a counter that a single thread writes and others read: no locked instruction.
inline void count(std::atomic<uint64_t>& counter, uint64_t by = 1) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

/// Sets a value of this moment. Threads: one at a time per value, read by any.
inline void set(std::atomic<uint64_t>& value, uint64_t now) noexcept {
  value.store(now, std::memory_order_relaxed);
}

// Each list exists twice: as atomics for counting, and as plain numbers for what was read.
#define FARO_FIELD(id, name, kind, help) Cell name{0};
template <typename Cell>
struct NodeList {
#define FARO_NODE_COUNTER FARO_FIELD
#include "counters/counters.def"
};
template <typename Cell>
struct PeerList {
#define FARO_PEER_COUNTER FARO_FIELD
#include "counters/counters.def"
};
template <typename Cell>
struct WorkerList {
#define FARO_WORKER_COUNTER FARO_FIELD
#include "counters/counters.def"
};
template <typename Cell>
struct OutgoingList {
#define FARO_OUTGOING_COUNTER FARO_FIELD
#include "counters/counters.def"
};
template <typename Cell>
struct IncomingList {
#define FARO_INCOMING_COUNTER FARO_FIELD
#include "counters/counters.def"
  Cell last_stage{
      0};  ///< no counter: of the frame taken last, if the ring ends at the node (layout.h: stage_word)
};
template <typename Cell>
struct EndpointList {
#define FARO_ENDPOINT_COUNTER FARO_FIELD
#include "counters/counters.def"
};
template <typename Cell>
struct PollerList {
#define FARO_POLLER_COUNTER FARO_FIELD
#include "counters/counters.def"
};
template <typename Cell>
struct ChannelList {
#define FARO_CHANNEL_COUNTER FARO_FIELD
#include "counters/counters.def"
};
template <typename Cell>
struct NodeEndList {
#define FARO_NODE_END_COUNTER FARO_FIELD
#include "counters/counters.def"
};
template <typename Cell>
struct ReaderList {
#define FARO_READER_COUNTER FARO_FIELD
#include "counters/counters.def"
};
template <typename Cell>
struct OperatorList {
#define FARO_OPERATOR_COUNTER FARO_FIELD
#include "counters/counters.def"
};
#undef FARO_FIELD

using Counter = std::atomic<uint64_t>;
static_assert(sizeof(Counter) == 8 && Counter::is_always_lock_free);

/// What a node counts. Threads: any for overflow (its own locked instructions), else the network
/// thread or under the lock of the queries.
struct alignas(64) NodeCounters : NodeList<Counter> {};
/// What a link counts. Threads: the network thread.
struct alignas(64) PeerCounters : PeerList<Counter> {};
/// What a worker counts. Threads: the worker.
struct alignas(64) WorkerCounters : WorkerList<Counter> {};
/// What one ring's sending end counts. Threads: the worker, and for some transports the thread that
/// posts for it.
struct alignas(64) OutgoingCounters : OutgoingList<Counter> {};
/// What one ring's receiving end counts. Threads: the worker.
struct alignas(64) IncomingCounters : IncomingList<Counter> {};
/// What an endpoint counts. Threads: the network thread.
struct alignas(64) EndpointCounters : EndpointList<Counter> {};
/// What a poller counts. Threads: the poller's.
struct alignas(64) PollerCounters : PollerList<Counter> {};
/// What a channel counts. Threads: the poller's, the network thread for what is about mending.
struct alignas(64) ChannelCounters : ChannelList<Counter> {};
/// What lies at the node's end. Threads: who has the right of the node's end.
struct alignas(64) NodeEndCounters : NodeEndList<Counter> {};
/// What of that is for a worker. Threads: who has the right of the node's end.
struct alignas(64) ReaderCounters : ReaderList<Counter> {};
/// What an operator counts, or all of a kind. Threads: the worker.
struct alignas(64) OperatorCounters : OperatorList<Counter> {};

static_assert(sizeof(NodeCounters) == 64 && sizeof(PeerCounters) == 128);
static_assert(sizeof(WorkerCounters) == 128);
static_assert(sizeof(EndpointCounters) == 128 && sizeof(PollerCounters) == 64);
static_assert(sizeof(ChannelCounters) == 64);
static_assert(sizeof(NodeEndCounters) == 64 && sizeof(ReaderCounters) == 64);
static_assert(sizeof(OperatorCounters) == 128);
static_assert(sizeof(OutgoingCounters) == 64 && sizeof(IncomingCounters) == 64);

using NodeValues = NodeList<uint64_t>;
using PeerValues = PeerList<uint64_t>;
using WorkerValues = WorkerList<uint64_t>;
using OutgoingValues = OutgoingList<uint64_t>;
using IncomingValues = IncomingList<uint64_t>;
using EndpointValues = EndpointList<uint64_t>;
using PollerValues = PollerList<uint64_t>;
using ChannelValues = ChannelList<uint64_t>;
using NodeEndValues = NodeEndList<uint64_t>;
using ReaderValues = ReaderList<uint64_t>;
using OperatorValues = OperatorList<uint64_t>;

/// A record that is replaced as a whole by one thread and read by any, also of other processes: what
/// a worker waits for, the state of a query. `Value` is plain and a multiple of 8 bytes.
///
/// sequence_ is odd while the record is written. Every word is a release store that acquire loads
/// pair with: a thread that has read a word of a new value also reads the odd number, or a later one.
template <typename Value>
class alignas(64) Sequenced {
 public:
  /// Threads: one at a time. Blocks: never.
  void store(const Value& value) noexcept {
    const uint64_t sequence = sequence_.load(std::memory_order_relaxed);
    const auto words = __builtin_bit_cast(Words, value);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
    for (size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
    sequence_.store(sequence + 2, std::memory_order_release);
  }

  /// Counts the stores, twice each; odd within one.
  uint64_t sequence() const noexcept { return sequence_.load(std::memory_order_acquire); }

  /// Returns whether `out` is whole; not if it is written just now, or its writer died of that.
  bool load(Value& out) const noexcept {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const uint64_t before = sequence_.load(std::memory_order_acquire);
      Words words;
      for (size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
      if (before % 2 == 0 && sequence_.load(std::memory_order_relaxed) == before) {
        out = __builtin_bit_cast(Value, words);
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr int kAttempts = 1000;  // a store takes nanoseconds
  static constexpr size_t kWords = sizeof(Value) / sizeof(uint64_t);
  using Words = std::array<uint64_t, kWords>;
  static_assert(sizeof(Words) == sizeof(Value));

  Counter sequence_{0};
  std::array<Counter, kWords> words_{};
};

}  // namespace faro::counters
