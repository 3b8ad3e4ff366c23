// What the loader (transport/plugin/plugin_loader.h) finds in libfaro_verbs.so.
#include "transport/plugin/plugin.h"
#include "transport/verbs/verbs_transport.h"

namespace faro::transport::verbs {
namespace {

constexpr plugin::Plugin kPlugin = {
    .build = FARO_PLUGIN_BUILD,
    .make = [](const plugin::Request& request) -> std::unique_ptr<Transport> {
      return std::make_unique<VerbsTransport>(request);
    },
};

}  // namespace
}  // namespace faro::transport::verbs

extern "C" __attribute__((visibility("default"))) const faro::transport::plugin::Plugin*
faro_transport_plugin() {
  return &faro::transport::verbs::kPlugin;
}
