// Finds and loads the transports that are libraries of their own.
#pragma once

#include <memory>
#include <string>

#include "faro/status.h"
#include "transport/plugin/plugin.h"

namespace faro::transport::plugin {

/// The verbs transport, from libfaro_verbs.so: at settings.verbs_module if that is set; else beside
/// the library or program that this code is in, in a library folder beside that (../lib, and what
/// Debian and Red Hat call it), or where the loader looks by itself, RUNPATH included. Stays loaded
/// until detail::prepare_to_unload(); a path that it was loaded from once need not be there any more.
/// Errors: transport_unavailable, with the loader's reason and every path tried.
/// Threads: any. Blocks: for loading.
Result<std::unique_ptr<Transport>> load_verbs(const Request& request);

/// Whether load_verbs has loaded this path. Threads: any.
bool has_loaded(const std::string& path);

}  // namespace faro::transport::plugin
