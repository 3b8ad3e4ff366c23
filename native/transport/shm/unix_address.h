// UnixAddress: where a unix socket listens.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace faro::transport::shm {

struct UnixAddress {
  /// Seen in its network namespace alone, and gone with its process.
  static UnixAddress in_abstract_namespace(std::string_view name) {
    return {name, 1};  // the leading zero makes it abstract
  }
  /// Seen wherever the folder is. The path is shorter than sun_path.
  static UnixAddress in_file_system(std::string_view path) { return {path, 0}; }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t bytes;

 private:
  UnixAddress(std::string_view text, size_t from) {
    address.sun_family = AF_UNIX;
    const size_t length = std::min(text.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + from, text.data(), length);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length + 1);
  }
};

}  // namespace faro::transport::shm
