// TemporaryFolder: an empty folder in memory for a test, removed with what is in it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace faro::test {

/// Threads: one. Owns: the folder.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = "/dev/shm/faro-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryFolder() {
    if (getpid() == process_) std::filesystem::remove_all(path_);  // not in a forked child
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  const pid_t process_ = getpid();
  std::string path_;
};

}  // namespace faro::test
