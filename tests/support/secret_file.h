// SecretFile: a file for security.secret_file, gone with the object.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace faro::test {

inline constexpr std::string_view kSecret = "0123456789abcdef0123456789abcdef";
inline constexpr std::string_view kOtherSecret = "0123456789abcdef0123456789abcdeg";

class SecretFile {
 public:
  explicit SecretFile(std::string_view text = kSecret, mode_t mode = 0600) {
    const int fd = mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    EXPECT_EQ(fchmod(fd, mode), 0);
    ::close(fd);
  }
  ~SecretFile() { unlink(path_.c_str()); }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/faro-secret-XXXXXX";
};

}  // namespace faro::test
