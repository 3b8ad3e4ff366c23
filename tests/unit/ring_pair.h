// A producer and a consumer over one buffer, and the two positions between them, set by hand.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "ring/consumer.h"
#include "ring/producer.h"
#include "support/data_header.h"
#include "wire/frame.h"

namespace faro::test {

class RingPair {
 public:
  explicit RingPair(uint32_t ring_bytes, wire::Position start = 0)
      : bytes_(ring_bytes),
        memory_(static_cast<std::byte*>(::operator new (ring_bytes, std::align_val_t{64}))),
        written(start),
        read(start),
        producer(memory_.get(), ring_bytes, &read),
        consumer(memory_.get(), ring_bytes, &written) {
    std::memset(memory_.get(), 0, ring_bytes);
    producer.start_at_for_test(start);
    consumer.start_at_for_test(start);
  }

  /// Commits a data frame of that length, filled with its row count; false if there is no space.
  bool put(uint32_t length, uint32_t row_count = 1) {
    const ring::Claim claim = producer.claim(length, length);
    if (claim.bytes < length) return false;
    std::memset(claim.data, static_cast<int>(row_count), length);
    put_data_header(claim.data, length, row_count);
    producer.commit(length);
    return true;
  }
  /// What a transport does: tells either side how far the other is.
  void publish() { written.store(producer.committed()); }
  void give_back() { read.store(consumer.read()); }

  std::byte* memory() { return memory_.get(); }

  /// Writes a header at a position, whatever stands there.
  void forge(wire::Position position, const wire::FrameHeader& header) {
    std::memcpy(memory() + (position & (bytes_ - 1)), &header, sizeof header);
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  const uint32_t bytes_;
  const std::unique_ptr<std::byte, Free> memory_;

 public:
  std::atomic<wire::Position> written;
  std::atomic<wire::Position> read;
  ring::Producer producer;
  ring::Consumer consumer;
};

}  // namespace faro::test
