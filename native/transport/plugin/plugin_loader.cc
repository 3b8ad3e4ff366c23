#include "transport/plugin/plugin_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace faro::transport::plugin {
namespace {

constexpr char kVerbsLibrary[] = "libfaro_verbs.so";

// Of the library or program that this code was linked into; empty if the loader does not tell.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::vector<std::string> places(const base::Settings& settings) {
  if (!settings.verbs_module.empty()) return {settings.verbs_module};
  std::vector<std::string> paths;
  if (const std::string folder = own_folder(); !folder.empty()) {
    paths.push_back(folder + "/" + kVerbsLibrary);
    paths.push_back(folder + "/../" FARO_LIBRARY_FOLDER "/" + kVerbsLibrary);
  }
  paths.push_back(kVerbsLibrary);
  return paths;
}

Status unavailable(std::string message) {
  return {Code::transport_unavailable, std::move(message)};
}

}  // namespace

Result<std::unique_ptr<Transport>> load_verbs(const Request& request) {
  std::string reasons;
  for (const std::string& path : places(request.settings)) {
    // A library that is there but cannot be loaded (libibverbs is missing) has the better reason.
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", dlerror());
      continue;
    }
    auto* const entry = reinterpret_cast<Entry*>(dlsym(library, kEntry));
    if (entry == nullptr) return unavailable(fmt::format("{} is no transport of Faro", path));
    const Plugin* const plugin = entry();
    if (std::string_view(plugin->build) != FARO_PLUGIN_BUILD) {
      return unavailable(fmt::format("{} is of another build of Faro: {}, and this is {}", path,
                                     plugin->build, FARO_PLUGIN_BUILD));
    }
    return plugin->make(request);
  }
  return unavailable(fmt::format("the verbs module cannot be loaded: {}", reasons));
}

}  // namespace faro::transport::plugin
