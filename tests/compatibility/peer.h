// What both programs have: errors that end them with their message, and bytes that can be checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>

#include "faro/config.h"
#include "faro/status.h"

namespace compatibility {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}
inline void check(const faro::Status& status) {
  if (!status.ok()) fail(status.to_string());
}
template <typename T>
T check(faro::Result<T> result) {
  check(result.status());
  return std::move(result).value();
}

/// A line for the script that started this process.
inline void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

inline faro::Config environment() {
  faro::Config config;
  check(config.load_environment());
  return config;
}

/// How the other one was reached: the transport, and whether TLS was asked for.
inline std::string way_of(const std::string& transport) {
  return transport + (environment().get("security.tls") == "on" ? " with TLS" : "");
}

/// What the `number`-th row or frame of a sender contains. Every byte depends on all three.
inline std::byte byte_of(uint64_t sender, uint64_t number, size_t at) {
  return static_cast<std::byte>(sender * 101 + number * 7 + number / 256 + at);
}
inline void write_bytes(std::span<std::byte> to, uint64_t sender, uint64_t number) {
  for (size_t at = 0; at < to.size(); ++at) to[at] = byte_of(sender, number, at);
}
inline bool has_bytes(std::span<const std::byte> data, uint64_t sender, uint64_t number) {
  for (size_t at = 0; at < data.size(); ++at) {
    if (data[at] != byte_of(sender, number, at)) return false;
  }
  return true;
}

}  // namespace compatibility
