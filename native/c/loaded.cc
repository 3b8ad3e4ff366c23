// What faro/c_handles.h says of libraries that this one has loaded.
#include "faro/c_handles.h"
#include "transport/plugin/plugin_loader.h"

namespace faro {

bool has_loaded(const std::string& path) { return transport::plugin::has_loaded(path); }

void prepare_to_unload() noexcept { transport::plugin::unload(); }

}  // namespace faro
