#include "counters/counter_memory.h"

#include <sys/mman.h>

#include <utility>

#include "base/error.h"
#include "base/file_space.h"
#include "counters/folder.h"

namespace faro::counters {

Result<CounterMemory> CounterMemory::make(const std::string& folder, uint64_t bytes) {
  base::UniqueFd fd;
  if (!folder.empty()) {
    FARO_ASSIGN_OR_RETURN(fd, make_nameless(folder));
  }
  // Longer than the file: what is beyond its end is touched when the file has grown.
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
           fd.valid() ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, fd.get(), 0);
  if (memory == MAP_FAILED)
    return base::error(Code::resource_limit, "no memory for {} bytes of counters", bytes);
  return CounterMemory(static_cast<std::byte*>(memory), bytes, std::move(fd), folder);
}

CounterMemory::CounterMemory(CounterMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      fd_(std::move(other.fd_)),
      folder_(std::move(other.folder_)),
      path_(std::move(other.path_)) {}

CounterMemory::~CounterMemory() {
  if (data_ == nullptr) return;
  remove_name();
  if (!folder_.empty()) remove_stale(folder_);
  munmap(data_, bytes_);
}

Status CounterMemory::reserve(uint64_t begin, uint64_t end) {
  const int error = fd_.valid() ? base::reserve_file(fd_.get(), begin, end - begin) : 0;
  if (error == 0) return Status::Ok();
  return base::error(Code::system_error, "no room for {} bytes of counters in {}: {}", end - begin,
                     folder_, base::reserve_error_text(error));
}

Status CounterMemory::name() {
  if (!fd_.valid()) return Status::Ok();
  FARO_ASSIGN_OR_RETURN(path_, name_file(fd_.get(), folder_));
  return Status::Ok();
}

void CounterMemory::remove_name() noexcept {
  if (!path_.empty()) take_name(path_);
  path_.clear();
}

}  // namespace faro::counters
