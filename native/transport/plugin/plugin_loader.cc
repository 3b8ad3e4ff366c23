#include "transport/plugin/plugin_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <mutex>
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

/// The libraries that were loaded. Threads: any.
class Loaded {
 public:
  static Loaded& instance() {
    // Never destroyed: sessions may end while the process does.
    static auto* const loaded = new Loaded;
    return *loaded;
  }

  // Null if it cannot be loaded: why not is added to `reasons`.
  Result<const Plugin*> plugin_at(const std::string& path, std::string& reasons) {
    const std::lock_guard lock(mutex_);
    const auto known = libraries_.find(path);
    if (known != libraries_.end()) return known->second.plugin;
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", dlerror());
      return nullptr;
    }
    Result<const Plugin*> plugin = checked(library, path);
    if (plugin.ok()) libraries_[path] = {library, *plugin};
    return plugin;
  }

  bool has(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return libraries_.contains(path);
  }

  void close_all() noexcept {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, library] : libraries_) dlclose(library.handle);
    libraries_.clear();
  }

 private:
  struct Library {
    void* handle = nullptr;
    const Plugin* plugin = nullptr;
  };

  static Result<const Plugin*> checked(void* library, const std::string& path) {
    auto* const entry = reinterpret_cast<Entry*>(dlsym(library, kEntry));
    if (entry == nullptr) return unavailable(fmt::format("{} is no transport of Faro", path));
    const Plugin* const plugin = entry();
    if (std::string_view(plugin->build) == FARO_PLUGIN_BUILD) return plugin;
    return unavailable(fmt::format("{} is of another build of Faro: {}, and this is {}", path,
                                   plugin->build, FARO_PLUGIN_BUILD));
  }

  mutable std::mutex mutex_;
  std::map<std::string, Library> libraries_;  // by path
};

}  // namespace

Result<std::unique_ptr<Transport>> load_verbs(const Request& request) {
  std::string reasons;
  for (const std::string& path : places(request.settings)) {
    // A library that is there but cannot be loaded (libibverbs is missing) has the better reason.
    const Result<const Plugin*> plugin = Loaded::instance().plugin_at(path, reasons);
    if (!plugin.ok()) return plugin.status();
    if (*plugin != nullptr) return (*plugin)->make(request);
  }
  return unavailable(fmt::format("the verbs module cannot be loaded: {}", reasons));
}

bool has_loaded(const std::string& path) { return Loaded::instance().has(path); }

void unload() noexcept { Loaded::instance().close_all(); }

}  // namespace faro::transport::plugin
