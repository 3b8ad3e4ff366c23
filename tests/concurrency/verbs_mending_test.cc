// Links over RDMA whose queue pairs break while both processes live. Needs RDMA devices: tests/softroce/.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "support/mended_pair.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

/// The queue pairs of this process: libfaro_verbs.so finds the functions below before those of libibverbs.
class QueuePairs {
 public:
  static QueuePairs& instance() {
    static QueuePairs all;
    return all;
  }

  template <typename Function>
  static Function* next(const char* name) {
    auto* const found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    if (found == nullptr) std::abort();
    return found;
  }

  ibv_qp* create(ibv_pd* domain, ibv_qp_init_attr* attributes) {
    ibv_qp* const pair = create_(domain, attributes);
    const std::lock_guard lock(mutex_);
    if (pair != nullptr) living_.push_back(pair);
    return pair;
  }
  int destroy(ibv_qp* pair) {
    const std::lock_guard lock(mutex_);
    std::erase(living_, pair);
    return destroy_(pair);
  }
  /// The device gives one of them up, with all that is under way, as if it had found the connection broken. False: there is
  /// none.
  bool break_one(uint64_t which) {
    const std::lock_guard lock(mutex_);
    if (living_.empty()) return false;
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    return ibv_modify_qp(living_[which % living_.size()], &attributes, IBV_QP_STATE) == 0;
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return living_.size();
  }

 private:
  const decltype(&ibv_create_qp) create_ = next<decltype(ibv_create_qp)>("ibv_create_qp");
  const decltype(&ibv_destroy_qp) destroy_ = next<decltype(ibv_destroy_qp)>("ibv_destroy_qp");
  std::mutex mutex_;
  std::vector<ibv_qp*> living_;
};

}  // namespace
}  // namespace faro::test

extern "C" [[gnu::visibility("default")]] ibv_qp* ibv_create_qp(ibv_pd* domain,
                                                                ibv_qp_init_attr* attributes) {
  return faro::test::QueuePairs::instance().create(domain, attributes);
}
extern "C" [[gnu::visibility("default")]] int ibv_destroy_qp(ibv_qp* pair) {
  return faro::test::QueuePairs::instance().destroy(pair);
}

namespace faro::test {
namespace {

class VerbsMending : public testing::Test {
 protected:
  void SetUp() override {
    if (transports_to_test({}) != std::vector<std::string>{"verbs"})
      GTEST_SKIP() << "TEST_TRANSPORT does not ask for verbs";
  }

  Watchdog watchdog_{std::chrono::seconds(100), [] { return std::string(); }};
};

// One half by breaking a queue pair while a worker sends, the other half by cutting control connections, many of them
// while the link is mended from the last.
TEST_F(VerbsMending, a_hundred_breaks_in_a_row_lose_no_query) {
  MendedPair pair({{"transport", "verbs"}, {"link.mend_ms", "60000"}});
  pair.expect_complete(10);
  EXPECT_GE(QueuePairs::instance().count(), 2u) << "the library does not call the test's functions";
  std::vector<Cut> cuts;
  for (uint64_t i = 0; i < 50; ++i) {
    const Cut::Way way = i % 3 == 0 ? Cut::Way::to_dialler : Cut::Way::to_listener;
    cuts.push_back({Cut::Of::control, way, 1 + (i % 2) * 450 + 7 * i});
  }
  pair.proxy().cut(cuts);
  std::atomic<uint64_t> broken{0};
  uint64_t turn = 0;
  pair.before_row = [&](uint64_t row) {
    if (row == 37 * turn % 300 && QueuePairs::instance().break_one(turn)) ++broken;
  };
  while ((pair.proxy().left() != 0 || broken < 50) && !HasFailure()) {
    ++turn;
    pair.expect_complete(300);
  }
  pair.before_row = {};
  pair.expect_complete(1000);
  EXPECT_EQ(QueuePairs::instance().count(), 2u) << "none of the old ones is left";
}

}  // namespace
}  // namespace faro::test
