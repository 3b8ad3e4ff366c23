// The handles by which Java names native objects: jni/owned_table.h, jni/handle_table.h.
#include "jni/handle_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "jni/owned_table.h"

namespace faro::jni {
namespace {

TEST(OwnedTable, finds_what_was_added_until_it_is_removed) {
  OwnedTable<int> table;
  const int64_t handle = table.add(std::make_unique<int>(42));
  EXPECT_GT(handle, 0);
  ASSERT_NE(table.find(handle), nullptr);
  EXPECT_EQ(*table.find(handle), 42);
  EXPECT_EQ(*table.remove(handle), 42);
  EXPECT_EQ(table.find(handle), nullptr);
  EXPECT_EQ(table.remove(handle), nullptr);
}

TEST(OwnedTable, a_stale_handle_finds_nothing_though_its_place_is_used_again) {
  OwnedTable<int> table;
  const int64_t first = table.add(std::make_unique<int>(1));
  table.remove(first);
  const int64_t second = table.add(std::make_unique<int>(2));
  EXPECT_EQ(static_cast<uint32_t>(first), static_cast<uint32_t>(second));
  EXPECT_NE(first, second);
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_EQ(table.remove(first), nullptr);
  EXPECT_EQ(*table.find(second), 2);
}

TEST(OwnedTable, numbers_that_are_no_handles_find_nothing) {
  OwnedTable<int> table;
  const int64_t handle = table.add(std::make_unique<int>(1));
  for (const int64_t wrong : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX, handle + 1,
                              handle + (int64_t{1} << 32), handle & 0xffffffff}) {
    EXPECT_EQ(table.find(wrong), nullptr) << wrong;
    EXPECT_EQ(table.remove(wrong), nullptr) << wrong;
  }
  EXPECT_EQ(*table.find(handle), 1);
}

TEST(OwnedTable, a_place_whose_generations_are_used_up_is_not_used_again) {
  OwnedTable<int, 3> table;
  std::set<int64_t> given;
  for (int i = 0; i < 10; ++i) {
    const int64_t handle = table.add(std::make_unique<int>(i));
    EXPECT_TRUE(given.insert(handle).second) << handle;
    table.remove(handle);
  }
  for (const int64_t handle : given) EXPECT_EQ(table.find(handle), nullptr) << handle;
}

TEST(OwnedTable, holds_more_than_one_chunk) {
  OwnedTable<size_t> table;
  std::vector<int64_t> handles;
  for (size_t i = 0; i < 1000; ++i) handles.push_back(table.add(std::make_unique<size_t>(i)));
  for (size_t i = 0; i < handles.size(); ++i) EXPECT_EQ(*table.find(handles[i]), i);
}

TEST(OwnedTable, threads_find_their_own_objects_while_others_add_and_remove) {
  OwnedTable<int> table;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 2000; ++i) {
        const int64_t handle = table.add(std::make_unique<int>(thread));
        const int* const found = table.find(handle);
        if (found == nullptr || *found != thread) ++wrong;
        if (table.remove(handle) == nullptr || table.find(handle) != nullptr) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(HandleTable, what_was_found_outlives_its_removal) {
  HandleTable<int> table;
  const int64_t handle = table.add(std::make_shared<int>(42));
  const std::shared_ptr<int> found = table.find(handle);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*table.remove(handle), 42);
  EXPECT_EQ(table.find(handle), nullptr);
  EXPECT_EQ(table.remove(handle), nullptr);
  EXPECT_EQ(*found, 42);
  EXPECT_EQ(found.use_count(), 1);
}

TEST(HandleTable, a_thread_uses_what_it_found_while_another_removes_it) {
  HandleTable<int> table;
  for (int i = 0; i < 500; ++i) {
    const int64_t handle = table.add(std::make_shared<int>(i));
    std::thread remover([&] { table.remove(handle); });
    const std::shared_ptr<int> found = table.find(handle);
    if (found != nullptr) {
      EXPECT_EQ(*found, i);
    }
    remover.join();
    EXPECT_EQ(table.find(handle), nullptr);
  }
}

}  // namespace
}  // namespace faro::jni
