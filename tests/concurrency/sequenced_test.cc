// Sequenced: a record of the counter file that is read while it is written.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "counters/records.h"

namespace faro::counters {
namespace {

TEST(Sequenced, is_read_whole_or_not_at_all) {
  struct Value {
    uint64_t words[8];
  };
  Sequenced<Value> record;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t n = 1; !stop.load(); ++n) record.store({{n, n, n, n, n, n, n, n}});
  });
  uint64_t last = 0;
  for (int reads = 0; reads < 20000;) {
    Value value{};
    if (!record.load(value)) continue;
    ++reads;
    for (const uint64_t word : value.words) ASSERT_EQ(word, value.words[0]);
    ASSERT_GE(value.words[0], last);
    last = value.words[0];
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace faro::counters
