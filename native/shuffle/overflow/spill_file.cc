#include "shuffle/overflow/spill_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/file_space.h"
#include "base/unique_fd.h"

namespace faro::shuffle {
namespace {

// What is mapped together. A mapping for each extent would soon be more than a process may have
// (vm.max_map_count, 65 530 by default). Mappings begin at windows: pages are larger than blocks on
// some machines (64 KiB on some of aarch64).
constexpr uint64_t kWindow = uint64_t{16} << 20;

// A file without a name; none, and errno, if there can be none.
base::UniqueFd make_file(const std::string& folder) {
  base::UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600));
  if (fd.valid() || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  // A file system without O_TMPFILE.
  std::string name = folder + "/faro-overflow-XXXXXX";
  base::UniqueFd named(mkostemp(name.data(), O_CLOEXEC));
  if (named.valid()) unlink(name.c_str());
  return named;
}

class FileOnDisk final : public SpillFile {
 public:
  FileOnDisk(std::string folder, uint64_t limit_bytes)
      : folder_(std::move(folder)), limit_(limit_bytes) {}

  Result<Extent> allocate(uint64_t bytes) override {
    const uint64_t size = spill_bytes(bytes);
    std::lock_guard lock(mutex_);
    FARO_RETURN_IF_ERROR(open_locked());
    Extent extent{0, bytes};
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < size) continue;
      extent.offset = it->first;
      auto hole = free_.extract(it);
      if (hole.mapped() > size) {
        hole.key() += size;
        hole.mapped() -= size;
        free_.insert(std::move(hole));
      }
      use(size);
      return extent;
    }
    if (size > limit_ || end_ > limit_ - size) {
      return base::error(
          Code::overflow_exhausted,
          "the overflow file is full: {} of overflow.file_bytes = {} in use, {} more needed", used_,
          limit_, size);
    }
    if (const int error = base::reserve_file(fd_.get(), end_, size); error != 0) {
      return base::error(
          Code::overflow_exhausted,
          "the overflow file in overflow.folder = {} cannot grow from {} by {} bytes: {}", folder_,
          end_, size, base::reserve_error_text(error));
    }
    extent.offset = end_;
    end_ += size;
    use(size);
    return extent;
  }

  void free(const Extent& extent) noexcept override {
    const uint64_t size = spill_bytes(extent.bytes);
    std::lock_guard lock(mutex_);
    used_ -= size;
    auto next = free_.lower_bound(extent.offset);
    uint64_t offset = extent.offset;
    uint64_t bytes = size;
    if (next != free_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        free_.erase(before);
      }
    }
    if (used_ == 0) {
      offset = 0;
      free_.clear();
    }
    if (used_ == 0 || offset + bytes == end_) {  // the end of the file: give it back to the disk
      end_ = offset;
      [[maybe_unused]] const int ignored = ftruncate(fd_.get(), static_cast<off_t>(end_));
      return;
    }
    try {
      free_.emplace(offset, bytes);
    } catch (const std::bad_alloc&) {
      // Nobody finds this hole again before the file is empty.
    }
  }

  Status write(const Extent& extent, uint64_t at, std::span<const std::byte> bytes) override {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = pwrite(fd_.get(), bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(extent.offset + at + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failure("write");
      done += static_cast<size_t>(n);
    }
    return Status::Ok();
  }

  Status read(const Extent& extent, std::span<std::byte> bytes) override {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = pread(fd_.get(), bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(extent.offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failure("read");
      done += static_cast<size_t>(n);
    }
    return Status::Ok();
  }

  std::byte* map(const Extent& extent) override {
    const uint64_t before = extent.offset % kWindow;
    if (!is_in_one_window(extent)) {
      std::byte* const memory = map_part(window_offset(extent), before + extent.bytes);
      return memory == nullptr ? nullptr : memory + before;
    }
    std::lock_guard lock(mutex_);
    const auto entry = find_or_add_window(extent.offset / kWindow);
    if (entry == windows_.end()) return nullptr;
    Window& window = entry->second;
    if (window.users == 0) window.memory = map_part(window_offset(extent), kWindow);
    if (window.memory == nullptr) {
      windows_.erase(entry);
      return nullptr;
    }
    ++window.users;
    return window.memory + before;
  }
  void unmap(const Extent& extent, std::byte* memory) noexcept override {
    if (!is_in_one_window(extent)) {
      const uint64_t before = extent.offset % kWindow;
      munmap(memory - before, before + extent.bytes);
      return;
    }
    std::lock_guard lock(mutex_);
    const auto it = windows_.find(extent.offset / kWindow);
    if (--it->second.users > 0) return;
    munmap(it->second.memory, kWindow);
    windows_.erase(it);
  }

  uint64_t used_bytes() const override {
    std::lock_guard lock(mutex_);
    return used_;
  }
  uint64_t peak_bytes() const override {
    std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  Status open_locked() {
    if (!fd_.valid()) fd_ = make_file(folder_);
    if (fd_.valid()) return Status::Ok();
    return base::error(Code::overflow_exhausted,
                       "no overflow file can be made in overflow.folder = {}: {}", folder_,
                       std::strerror(errno));
  }

  static bool is_in_one_window(const Extent& extent) {
    return extent.offset / kWindow == (extent.offset + extent.bytes - 1) / kWindow;
  }
  static uint64_t window_offset(const Extent& extent) { return extent.offset / kWindow * kWindow; }
  std::byte* map_part(uint64_t offset, uint64_t bytes) const {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(),
                    static_cast<off_t>(offset));
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  }

  Status failure(const char* what) const {
    return base::error(Code::overflow_exhausted,
                       "cannot {} the overflow file in overflow.folder = {}: {}", what, folder_,
                       std::strerror(errno));
  }

  void use(uint64_t bytes) {
    used_ += bytes;
    if (used_ > peak_) peak_ = used_;
  }

  struct Window {
    std::byte* memory = nullptr;
    uint64_t users = 0;
  };

  std::map<uint64_t, Window>::iterator find_or_add_window(uint64_t number) noexcept {
    try {
      return windows_.try_emplace(number).first;
    } catch (const std::bad_alloc&) {
      return windows_.end();
    }
  }

  const std::string folder_;
  const uint64_t limit_;
  mutable std::mutex mutex_;
  base::UniqueFd fd_;  // set once, before the first extent
  uint64_t end_ = 0;   // size of the file
  uint64_t used_ = 0;
  uint64_t peak_ = 0;
  std::map<uint64_t, uint64_t> free_;   // offset to bytes, never adjacent
  std::map<uint64_t, Window> windows_;  // by number; those in use
};

}  // namespace

Status check_spill_folder(const std::string& folder) {
  const base::UniqueFd file = make_file(folder);
  if (file.valid()) return Status::Ok();
  return base::error(Code::config_invalid, "overflow.folder = {}: no file can be made there: {}",
                     folder, std::strerror(errno));
}

std::unique_ptr<SpillFile> make_spill_file(std::string folder, uint64_t limit_bytes) {
  return std::make_unique<FileOnDisk>(std::move(folder), limit_bytes);
}

}  // namespace faro::shuffle
