#include "counters/counter_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file_space.h"
#include "counters/descriptions.h"

namespace faro::counters {
namespace {

constexpr char kFileStart[] = "faro-";
constexpr int kNamesTried = 1000;

Status system_error(std::string_view what, const std::string& where) {
  return base::error(Code::system_error, "{} {}: {}", what, where, std::strerror(errno));
}

uint32_t awaited_words(const Shape& shape) { return (shape.worker_count() + 63) / 64; }

std::array<SectionPlace, kSections> places_of(const Shape& shape) {
  const auto nodes = static_cast<uint32_t>(shape.workers_per_node.size());
  const uint32_t workers = shape.local_workers();
  const uint32_t rings = workers * shape.worker_count() * shape.rings_per_lane;
  std::array<SectionPlace, kSections> places;
  const auto set = [&places](Section section, size_t count, size_t stride = 0) {
    const auto s = static_cast<uint32_t>(section);
    places[s].count = static_cast<uint32_t>(count);
    places[s].stride_bytes = static_cast<uint32_t>(std::max(stride, kRecordBytes[s]));
  };
  set(Section::descriptions, descriptions().size());
  set(Section::node, 1);
  set(Section::peers, nodes);
  set(Section::peer_counters, nodes);
  set(Section::workers, workers);
  set(Section::waits, workers);
  set(Section::awaited, workers, (awaited_words(shape) * sizeof(Counter) + 63) & ~size_t{63});
  set(Section::outgoing, rings);
  set(Section::incoming, rings);
  set(Section::queries, kQuerySlots);
  uint64_t offset = sizeof(Header);
  for (SectionPlace& place : places) {
    place.offset = offset;
    offset += uint64_t{place.count} * place.stride_bytes;
  }
  return places;
}

// All records are of zeros at first, as fresh memory is.
void fill(std::byte* memory, const Shape& shape, uint64_t now) {
  auto* const header = new (memory) Header;
  header->magic = kMagic;
  header->version = kLayoutVersion;
  header->header_bytes = sizeof(Header);
  header->file_bytes = CounterFile::bytes(shape);
  header->created_ns = now;
  header->pid = static_cast<uint32_t>(getpid());
  header->node = shape.node;
  header->node_count = static_cast<uint32_t>(shape.workers_per_node.size());
  header->worker_count = shape.worker_count();
  header->first_worker = shape.first_worker(shape.node);
  header->local_worker_count = shape.local_workers();
  header->rings_per_lane = shape.rings_per_lane;
  header->ring_bytes = shape.ring_bytes;
  header->threshold_bytes = shape.threshold_bytes;
  shape.cluster.copy(header->cluster.data(), header->cluster.size() - 1);
  header->sections = places_of(shape);
  const std::span<const Description> rows = descriptions();
  const uint64_t offset = header->sections[static_cast<uint32_t>(Section::descriptions)].offset;
  std::memcpy(memory + offset, rows.data(), rows.size_bytes());
}

// Names of processes that are gone; a name that is not this user's stays.
void remove_stale(const std::string& folder) {
  for (const std::string& path : counter_files_in(folder)) {
    const Result<base::UniqueFd> fd = open_counter_file(path);
    if (fd.ok() && !is_locked(fd->get())) unlink(path.c_str());
  }
}

/// The names that this process has given, to be taken away when it ends: exit() and a JVM's
/// System.exit do not destroy sessions.
class NamesUntilExit {
 public:
  static NamesUntilExit& instance() {
    // Never destroyed: sessions may end while the process does.
    static auto* const names = [] {
      std::atexit([] { instance().remove_all(); });
      return new NamesUntilExit;
    }();
    return *names;
  }
  void add(const std::string& path) {
    const std::lock_guard lock(mutex_);
    names_[path] = getpid();
  }
  void remove(const std::string& path) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(path);
    if (found == names_.end()) return;
    // In a forked child it is the parent's.
    if (found->second == getpid()) unlink(path.c_str());
    names_.erase(found);
  }

 private:
  void remove_all() noexcept {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, process] : names_) {
      if (process == getpid()) unlink(path.c_str());
    }
    names_.clear();
  }

  std::mutex mutex_;
  std::map<std::string, pid_t> names_;
};

// Gives the file its name once it is whole and locked.
Result<std::string> name_file(int fd, const std::string& folder) {
  const std::string nameless = fmt::format("/proc/self/fd/{}", fd);
  for (int n = 0; n < kNamesTried; ++n) {
    std::string path = fmt::format("{}/{}{}-{}{}", folder, kFileStart, getpid(), n, kFileEnding);
    if (linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      NamesUntilExit::instance().add(path);
      return path;
    }
    if (errno != EEXIST) break;
  }
  return system_error("no counter file can be named in", folder);
}

}  // namespace

uint32_t Shape::worker_count() const {
  return std::accumulate(workers_per_node.begin(), workers_per_node.end(), 0u);
}
uint32_t Shape::first_worker(uint32_t of_node) const {
  return std::accumulate(workers_per_node.begin(), workers_per_node.begin() + of_node, 0u);
}

uint64_t CounterFile::bytes(const Shape& shape) {
  const SectionPlace last = places_of(shape).back();
  return last.offset + uint64_t{last.count} * last.stride_bytes;
}

Result<std::unique_ptr<CounterFile>> CounterFile::make(const Shape& shape,
                                                       const std::string& folder, uint64_t now) {
  const uint64_t size = bytes(shape);
  base::UniqueFd fd;
  if (!folder.empty()) {
    remove_stale(folder);
    fd.reset(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!fd.valid()) {
      const bool no_place = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
      return Status(no_place ? Code::config_invalid : Code::system_error,
                    fmt::format("counters.folder = {}: no counter file can be made there: {}",
                                folder, std::strerror(errno)));
    }
    // Allocated, never sparse: a folder that is full must be an error here and not SIGBUS later.
    if (const int error = base::reserve_file(fd.get(), 0, size); error != 0) {
      return base::error(Code::system_error, "no room for {} bytes of counters in {}: {}", size,
                         folder, base::reserve_error_text(error));
    }
    struct flock lock {};
    lock.l_type = F_WRLCK;
    if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0)
      return system_error("the counter file cannot be locked in", folder);
  }
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            fd.valid() ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return base::error(Code::resource_limit, "no memory for {} bytes of counters", size);
  }
  fill(static_cast<std::byte*>(memory), shape, now);
  std::string path;
  if (fd.valid()) {
    Result<std::string> named = name_file(fd.get(), folder);
    if (!named.ok()) {
      munmap(memory, size);
      return named.status();
    }
    path = std::move(*named);
  }
  return std::unique_ptr<CounterFile>(new CounterFile(static_cast<std::byte*>(memory), size,
                                                      std::move(fd), folder, std::move(path)));
}

CounterFile::~CounterFile() {
  remove_name();
  if (!folder_.empty()) remove_stale(folder_);
  munmap(memory_, bytes_);
}

void CounterFile::remove_name() noexcept {
  if (!path_.empty()) NamesUntilExit::instance().remove(path_);
  path_.clear();
}

void CounterFile::set_peer(uint32_t node, const Peer& peer) noexcept {
  *at<Peer>(Section::peers, node) = peer;
}

void CounterFile::opened() noexcept {
  // Partner: CounterView::read. A reader that sees this store also sees the peers.
  node().open.store(1, std::memory_order_release);
}

std::span<Counter> CounterFile::awaited(uint32_t local) noexcept {
  return {at<Counter>(Section::awaited, local), (header().worker_count + 63) / 64};
}

bool is_locked(int fd) noexcept {
  struct flock lock {};
  lock.l_type = F_RDLCK;
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

std::vector<std::string> counter_files_in(const std::string& folder) {
  std::vector<std::string> paths;
  const std::unique_ptr<DIR, int (*)(DIR*)> open_folder(opendir(folder.c_str()), closedir);
  if (open_folder == nullptr) return paths;
  while (const dirent* const entry = readdir(open_folder.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(kFileStart) && name.ends_with(kFileEnding))
      paths.push_back(folder + "/" + std::string(name));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<base::UniqueFd> open_counter_file(const std::string& path, bool named) {
  base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return system_error("cannot read", path);
  struct stat state {};
  if (fstat(fd.get(), &state) != 0) return system_error("cannot read", path);
  const bool ours = state.st_uid == geteuid() || (named && geteuid() == 0);
  if (!S_ISREG(state.st_mode) || !ours) {
    return base::error(Code::system_error, "{} is not a file of this user", path);
  }
  return fd;
}

}  // namespace faro::counters
