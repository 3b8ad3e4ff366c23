// What tests often expect, with the message that a failure needs.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

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

/// What there should be; if it is an error, the test ends as failed.
template <typename Value>
Value value_of(Result<Value> result) {
  if (!result.ok()) throw std::runtime_error(result.status().to_string());
  return std::move(*result);
}

inline testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos)
    return testing::AssertionSuccess() << "'" << part << "' is in: " << text;
  return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}
inline void expect_contains(std::string_view text, std::string_view part) {
  EXPECT_TRUE(contains(std::string(text), std::string(part)));
}
/// That a status is of this code, and that its message has all these parts.
inline void expect_error(const Status& status, Code code,
                         std::initializer_list<std::string_view> parts,
                         const std::source_location& at = std::source_location::current()) {
  const testing::ScopedTrace trace(at.file_name(), static_cast<int>(at.line()), "");
  EXPECT_EQ(status.code(), code) << status.to_string();
  for (const std::string_view part : parts) expect_contains(status.message(), part);
}

}  // namespace faro::test
