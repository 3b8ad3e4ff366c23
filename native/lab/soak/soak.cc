#include "lab/soak/soak.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/clock.h"
#include "base/return_if_error.h"
#include "lab/soak/changing_cluster.h"
#include "lab/soak/fixed_cluster.h"
#include "lab/soak/leak_watch.h"
#include "lab/soak/node_group.h"

namespace faro::soak {
namespace {

/// An empty folder in memory, with what the nodes have in files.
class Folder {
 public:
  Folder() {
    std::string path = "/dev/shm/faro-soak-XXXXXX";
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Soak {
 public:
  explicit Soak(const Options& options)
      : options_(options), start_(now()), nodes_(options, folder_.path()) {}

  Report run(const std::function<void(const Progress&)>& tell) {
    Report report;
    Status status;
    if (folder_.path().empty()) status = Status(Code::system_error, "no folder in /dev/shm");
    for (uint64_t number = 0; status.ok() && !is_over(); ++number) {
      status = run_cluster(number);
      progress_.seconds = static_cast<double>(now() - start_) / 1e9;
      ++progress_.clusters;
      tell(progress_);
      if (!status.ok()) {
        report.violation =
            fmt::format("cluster {} of seed {}: {}", number, options_.seed, status.message());
      }
    }
    if (report.violation.empty() && !status.ok()) report.violation = status.to_string();
    report.total = progress_;
    report.memory_is_known = leaks_.memory_is_known();
    report.memory = leaks_.memory_text();
    if (report.violation.empty() && leaks_.memory_grew()) report.violation = "memory has grown";
    return report;
  }

 private:
  bool is_over() const {
    if (options_.kills != 0) return progress_.killed.count >= options_.kills;
    return now() - start_ >= static_cast<base::Nanoseconds>(options_.seconds * 1e9);
  }

  template <typename Cluster>
  Result<uint64_t> run(uint64_t number) {
    return Cluster(options_, number, nodes_, progress_).run([this] { return is_over(); });
  }

  Status run_cluster(uint64_t number) {
    FARO_ASSIGN_OR_RETURN(progress_.witness_heap_bytes, options_.churn
                                                            ? run<ChangingCluster>(number)
                                                            : run<FixedCluster>(number));
    FARO_RETURN_IF_ERROR(
        leaks_.look(nodes_, witness_of(options_), progress_.witness_heap_bytes, folder_.path()));
    progress_.quiet_looks = leaks_.looks();
    progress_.witness = leaks_.witness();
    progress_.controller = leaks_.controller();
    return Status::Ok();
  }

  const Options& options_;
  const base::Nanoseconds start_;
  const Folder folder_;
  NodeGroup nodes_;
  LeakWatch leaks_;
  Progress progress_;
};

}  // namespace

Report run_soak(const Options& options, const std::function<void(const Progress&)>& tell) {
  return Soak(options).run(tell);
}

}  // namespace faro::soak
