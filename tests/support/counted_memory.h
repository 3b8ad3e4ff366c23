// What a node of a session counts against memory.limit_bytes.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "faro/session.h"
#include "support/expect.h"
#include "support/session_cluster.h"

namespace faro::test {

/// By its own words, when it has no room. The transport has to be one of the settings.
inline uint64_t counted_by_a_node(const SettingList& settings, uint32_t nodes) {
  SettingList narrow = settings;
  narrow.emplace_back("memory.limit_bytes", "1");
  std::string addresses = "127.0.0.1:0";
  for (uint32_t n = 1; n < nodes; ++n) addresses += fmt::format(",127.0.0.1:{}", n);
  const Status refused = Session::open(value_of(config_of(0, addresses, narrow))).status();
  const std::string why(refused.message());
  uint64_t bytes = 0;
  const size_t at = why.find("need ");
  if (at == why.npos || std::sscanf(why.c_str() + at, "need %lu bytes", &bytes) != 1)
    throw std::runtime_error("it says no figure: " + refused.to_string());
  return bytes;
}

}  // namespace faro::test
