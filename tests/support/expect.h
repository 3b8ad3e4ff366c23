// What tests often expect, with the message that a failure needs.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "faro/status.h"

namespace faro::test {

inline testing::AssertionResult is_ok(const Status& status) {
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.to_string();
}
template <typename Value>
testing::AssertionResult is_ok(const Result<Value>& result) {
  return is_ok(result.status());
}

inline testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos)
    return testing::AssertionSuccess() << "'" << part << "' is in: " << text;
  return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}
inline void expect_contains(std::string_view text, std::string_view part) {
  EXPECT_TRUE(contains(std::string(text), std::string(part)));
}

}  // namespace faro::test
