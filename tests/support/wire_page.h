// WirePage: the worked example of native/wire/README.md, and other pages of bytes that are written alike.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "wire/control.h"

namespace faro::test {

/// Hex of everything in lines "    46 41 …   | text" of one block of a page.
inline std::vector<std::byte> hex_of_page(const std::string& title, const char* path) {
  std::ifstream page(path);
  EXPECT_TRUE(page.good()) << path;
  std::vector<std::byte> bytes;
  std::string line;
  bool inside = false;
  while (std::getline(page, line)) {
    if (line.rfind("**", 0) == 0) inside = line.rfind("**" + title + "**", 0) == 0;
    if (!inside || line.size() < 2 || line.rfind("  ", 0) != 0) continue;
    std::istringstream words(line.substr(0, line.find('|')));
    std::string word;
    while (words >> word) bytes.push_back(static_cast<std::byte>(std::stoi(word, nullptr, 16)));
  }
  return bytes;
}

#ifdef FARO_WIRE_PAGE
/// The bytes below that title of native/wire/README.md.
inline std::vector<std::byte> hex_of_page(const std::string& title) {
  return hex_of_page(title, FARO_WIRE_PAGE);
}
#endif

/// The message as it is sent on a byte stream.
inline std::vector<std::byte> framed(const wire::ControlMessage& message) {
  std::vector<std::byte> bytes(wire::kControlLengthBytes + message.size());
  const auto length = static_cast<uint32_t>(message.size());
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + wire::kControlLengthBytes, message.data(), message.size());
  return bytes;
}

/// What node 1 says to node 0.
inline wire::Hello page_hello() {
  wire::Hello hello;
  hello.head.node = 1;
  hello.head.cluster_hash = 0x1122334455667788u;
  hello.expected_node = 0;
  hello.node_count = 2;
  hello.incarnation = 0xa1a2a3a4a5a6a7a8u;
  hello.cluster_id = "faro";
  hello.address = "h1:7000";
  hello.host_identity = "k";
  hello.transports = {"tcp"};
  hello.settings = "a=1\n";
  return hello;
}

/// What an endpoint says that dials a channel.
inline wire::Hello page_mending() {
  wire::Hello hello = page_hello();
  hello.head.features = wire::kMends;
  hello.mends = wire::LinkName{0xc1c2c3c4c5c6c7c8u, 9};
  return hello;
}

inline wire::Hello page_channel() {
  wire::Hello hello;
  hello.head.cluster_hash = 0x1122334455667788u;
  hello.purpose = wire::Purpose::channel;
  hello.incarnation = 0xa1a2a3a4a5a6a7a8u;
  hello.cluster_id = "faro";
  hello.name = "reader";
  hello.transports = {"tcp"};
  hello.rings = {65536, 4096};
  hello.greeting = {std::byte{'h'}, std::byte{'i'}};
  return hello;
}

}  // namespace faro::test
