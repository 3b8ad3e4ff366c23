// MendedCounts: what the counter files of two nodes say of the link between them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <thread>

#include "counters/counter_view.h"
#include "counters/folder.h"
#include "support/expect.h"
#include "support/temporary_folder.h"

namespace faro::test {

class MendedCounts {
 public:
  /// The value of counters.folder for both.
  const std::string& folder() const { return folder_.path(); }
  /// How often each side has mended it.
  std::array<uint64_t, 2> mended() const {
    return each([](const auto& link) { return link.mended; });
  }
  /// Blocks: until both have, so often; the test has a watchdog.
  void wait_until_mended(uint64_t times) const {
    while (mended()[0] < times || mended()[1] < times) std::this_thread::yield();
  }
  /// Blocks: until both know that it has broken for the first time, and mend it or have done so.
  void wait_until_it_has_broken() const {
    const auto has_broken = [](const auto& link) -> uint64_t {
      return link.mending_ns != 0 || link.mended != 0 ? 1 : 0;
    };
    while (each(has_broken) != std::array<uint64_t, 2>{1, 1}) std::this_thread::yield();
  }

 private:
  template <typename Count>
  std::array<uint64_t, 2> each(Count&& count) const {
    std::array<uint64_t, 2> counts{};
    for (const std::string& path : counters::counter_files_in(folder_.path())) {
      const counters::NodeView node = value_of(counters::CounterView::open(path))->read();
      counts[node.node] = count(node.peers[1 - node.node].counters);
    }
    return counts;
  }

  TemporaryFolder folder_;
};

}  // namespace faro::test
