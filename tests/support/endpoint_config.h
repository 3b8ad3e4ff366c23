// endpoint_config: settings of endpoints by the name of what carries their channels.
#pragma once

#include <string_view>

#include "faro/config.h"
#include "support/certificates.h"
#include "support/expect.h"

namespace faro::test {

/// "tls": tcp, with certificates.
inline Config endpoint_config(std::string_view transport) {
  Config config;
  if (transport == "tls") {
    static const NodeFiles files = Authority().issue();
    for (const auto& [name, value] : files.settings()) EXPECT_TRUE(is_ok(config.set(name, value)));
    transport = "tcp";
  }
  EXPECT_TRUE(is_ok(config.set("transport", transport)));
  return config;
}

}  // namespace faro::test
