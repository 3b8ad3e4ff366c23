// Plugin: a transport in a library of its own, loaded at run time, because it needs libraries that a
// machine may not have. Both sides are of one build of Faro and share its C++ interfaces.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "faro/log.h"
#include "transport/transport.h"

namespace faro::transport::plugin {

/// What a session gives to a transport that it has loaded.
struct Request {
  const base::Settings& settings;
  std::string local_address;  // of this node, host:port, as peers dial it
  /// The session's log (base/log.h), which the library does not have: it is not linked to it.
  void (*log)(LogLevel level, std::string_view line) noexcept;
  /// The session's base::unmap (base/kept_addresses.h), for memory of rings: it knows who keeps their addresses.
  void (*unmap)(void* mapping, size_t bytes) noexcept = nullptr;
};

struct Plugin {
  const char* build;  // the interfaces that it was compiled with; another's are refused
  std::unique_ptr<Transport> (*make)(const Request& request);
};

/// The one name that the library shows.
inline constexpr char kEntry[] = "faro_transport_plugin";
using Entry = const Plugin*();

}  // namespace faro::transport::plugin
