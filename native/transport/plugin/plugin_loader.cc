#include "transport/plugin/plugin_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <vector>

#include "faro/detail/unloading.h"

namespace faro::transport::plugin {
namespace {

constexpr char kVerbsLibrary[] = "libfaro_verbs.so";

// Where libraries are installed beside the folder of programs: as this build would install them,
// and as systems do.
constexpr std::string_view kLibraryFolders[] = {FARO_LIBRARY_FOLDER, "lib", "lib/" FARO_MULTIARCH,
                                                "lib64"};

// The library or program that this code was linked into; empty if the loader does not tell. Of a
// program the loader knows only how it was called, which may be a name that was looked for in PATH.
std::filesystem::path own_file() {
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&own_file), &info, reinterpret_cast<void**>(&map),
              RTLD_DL_LINKMAP) == 0 ||
      map == nullptr)
    return {};
  const bool is_program = map->l_name == nullptr || map->l_name[0] == '\0';
  return is_program ? "/proc/self/exe" : map->l_name;
}

// Its folder, and that of the file that a link leads to.
std::vector<std::filesystem::path> own_folders() {
  const std::filesystem::path file = own_file();
  if (file.empty()) return {};
  std::error_code error;
  std::vector<std::filesystem::path> folders;
  if (file != "/proc/self/exe" && file.has_parent_path()) folders.push_back(file.parent_path());
  const std::filesystem::path real = std::filesystem::canonical(file, error);
  if (!error && std::ranges::find(folders, real.parent_path()) == folders.end())
    folders.push_back(real.parent_path());
  return folders;
}

std::vector<std::string> places(const base::Settings& settings) {
  if (!settings.verbs_module.empty()) return {settings.verbs_module};
  std::vector<std::string> paths;
  const auto add = [&paths](const std::filesystem::path& folder) {
    std::string path = (folder / kVerbsLibrary).lexically_normal();
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
  };
  for (const std::filesystem::path& own : own_folders()) {
    add(own);
    for (const std::string_view libraries : kLibraryFolders) add(own / ".." / libraries);
  }
  paths.emplace_back(kVerbsLibrary);
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

}  // namespace faro::transport::plugin

void faro::detail::prepare_to_unload() noexcept {
  transport::plugin::Loaded::instance().close_all();
}
