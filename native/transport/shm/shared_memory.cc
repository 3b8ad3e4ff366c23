#include "transport/shm/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_space.h"
#include "base/kept_addresses.h"

namespace faro::transport::shm {
namespace {

// Every process that maps the memory relies on this: it neither shrinks nor grows, and cannot be unsealed.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// What MFD_NOEXEC_SEAL sets: the mode bits of the file cannot change.
constexpr int kSealExec = 0x0020;

// Since Linux 6.3; administrators can demand it (vm.memfd_noexec). Older kernels refuse it with
// EINVAL.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

uint64_t whole_pages(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

std::string limit_text(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : fmt::format("{} bytes", limit);
}

// Why mapping or allocating failed: the limits that a kernel checks, as they stand.
Status no_memory(int error, uint64_t bytes, std::string_view what) {
  rlimit address_space{RLIM_INFINITY, RLIM_INFINITY};
  getrlimit(RLIMIT_AS, &address_space);
  return base::error(Code::resource_limit,
                     "{} needs {} bytes of memory: {} (limits: free memory, the memory limit of "
                     "the container, address space `ulimit -v` {})",
                     what, bytes, std::strerror(error), limit_text(address_space.rlim_cur));
}

int memfd(const char* name) {
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (fd >= 0 || errno != EINVAL) return fd;
  return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

}  // namespace

void Mapping::unmap() noexcept {
  if (!memory_.empty()) base::unmap(memory_.data(), memory_.size());
  memory_ = {};
}

Result<Mapping> Mapping::allocate_private(uint64_t bytes, std::string_view what) {
  return make(MAP_PRIVATE | MAP_ANONYMOUS, -1, bytes, what);
}

Result<Mapping> Mapping::map(int memfd, uint64_t bytes, std::string_view what) {
  return make(MAP_SHARED, memfd, bytes, what);
}

Result<Mapping> Mapping::make(int flags, int fd, uint64_t bytes, std::string_view what) {
  bytes = whole_pages(bytes);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, fd, 0);
  if (memory == MAP_FAILED) return no_memory(errno, bytes, what);
  return Mapping({static_cast<std::byte*>(memory), bytes});
}

Result<base::UniqueFd> create_sealed_memfd(const char* name, uint64_t bytes,
                                           std::string_view what) {
  bytes = whole_pages(bytes);
  base::UniqueFd fd(memfd(name));
  if (!fd.valid()) {
    const int error = errno;
    if (error == EMFILE || error == ENFILE) {
      return base::error(Code::resource_limit, "{} needs a file descriptor: {} (limit `ulimit -n`)",
                         what, std::strerror(error));
    }
    return base::error(Code::transport_unavailable, "{}: memfd_create: {}", what,
                       std::strerror(error));
  }
  // posix_fallocate sets the size as well.
  if (const int error = base::reserve_file(fd.get(), 0, bytes); error != 0) {
    if (error == EFBIG) {
      return base::error(Code::resource_limit, "{} needs {} bytes of shared memory, but {}", what,
                         bytes, base::reserve_error_text(error));
    }
    if (error == ENOSPC || error == ENOMEM) return no_memory(error, bytes, what);
    return base::error(Code::system_error, "{}: allocating {} bytes of shared memory: {}", what,
                       bytes, std::strerror(error));
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return base::error(Code::transport_unavailable, "{}: sealing shared memory: {}", what,
                       std::strerror(errno));
  }
  return fd;
}

Status check_sealed_memfd(int fd, uint64_t bytes, bool exactly, std::string_view what) {
  const auto refuse = [&](std::string reason) {
    return base::error(Code::protocol_error, "{}: {}", what, reason);
  };
  // Only memfds (and files of a tmpfs, which cannot have these seals) know F_GET_SEALS.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return refuse("the descriptor is no memfd");
  if ((seals & kSeals) != kSeals)
    return refuse(fmt::format("the memfd lacks seals (has {:#x})", seals));
  if ((seals & ~(kSeals | kSealExec)) != 0) return refuse("the memfd is sealed against writing");
  // A memfd of huge pages is not reserved: touching it can be SIGBUS.
  struct statfs file_system {};
  if (fstatfs(fd, &file_system) != 0 || file_system.f_type != TMPFS_MAGIC) {
    return refuse("the memfd is not of ordinary pages");
  }
  struct stat file {};
  if (fstat(fd, &file) != 0) return refuse(std::strerror(errno));
  const uint64_t size = static_cast<uint64_t>(file.st_size);
  const uint64_t needed = whole_pages(bytes);
  if (size < needed || (exactly && size != needed)) {
    return refuse(fmt::format("the memfd has {} bytes instead of {}", size, needed));
  }
  if (static_cast<uint64_t>(file.st_blocks) * 512 < needed) {
    return refuse(fmt::format("the memfd is sparse ({} of {} bytes are allocated)",
                              static_cast<uint64_t>(file.st_blocks) * 512, needed));
  }
  return {};
}

}  // namespace faro::transport::shm
