// SocketsConnection: the socket between two workers of the sockets baseline, and what has come over it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/epoll.h>

#include "base/unique_fd.h"
#include "faro/status.h"
#include "lab/bench/sockets_mesh.h"
#include "lab/bench/sockets_output.h"

namespace faro::bench {

/// What has ended a worker: the first thing that did.
class Failure {
 public:
  explicit Failure(uint32_t worker) : worker_(worker) {}

  void set(Code code, const std::string& message);
  const Status& status() const noexcept { return status_; }

 private:
  const uint32_t worker_;
  Status status_;
};

/// Reads and writes in vain only if the kernel has not said that it would be: the socket is watched edge-triggered.
///
/// Threads: one. Blocks: never. Owns: the socket and the memory of what has come.
class SocketsConnection {
 public:
  /// `failure` outlives it.
  SocketsConnection(MeshSocket mesh, size_t capacity_bytes, uint32_t frame_bytes, Failure& failure);

  int fd() const noexcept { return fd_.get(); }
  /// What epoll says of it.
  void note(uint32_t events) noexcept;

  /// Writes what the socket takes; true if that was something.
  bool send(Output& output);
  /// Copies what the socket holds behind what is there, as far as there is room, unless rows wait; true if something
  /// came.
  bool receive() { return !suspended_ && readable_ && read(); }
  /// Copies what the socket holds behind what is there, although rows wait, into growing memory.
  bool receive_more();

  /// What has come and is not handled: [begin, end).
  const char* begin() const noexcept { return memory_.get() + begin_; }
  const char* end() const noexcept { return memory_.get() + end_; }
  bool has_frame() const noexcept { return end_ - begin_ >= frame_bytes_; }
  /// Handled up to there. If a frame is left, its row has found no room.
  void handled(const char* up_to) noexcept {
    begin_ = static_cast<size_t>(up_to - memory_.get());
    suspended_ = has_frame();
  }

 private:
  bool read();

  base::UniqueFd fd_;
  uint32_t peer_;
  uint32_t frame_bytes_;
  Failure* failure_;
  bool readable_ = true;    // may hold bytes: not yet known to be empty
  bool writable_ = true;    // may take bytes: not yet known to be full
  bool suspended_ = false;  // its first row found no room
  size_t capacity_;
  std::unique_ptr<char[]> memory_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

/// An epoll set. Threads: one.
class EventSet {
 public:
  EventSet();

  /// Edge-triggered; `index` tells it from the others. After the last one: status().
  void watch(int fd, uint32_t events, uint32_t index);
  /// Errors: system_error, of anything that was watched.
  const Status& status() const noexcept { return status_; }

  /// Calls note(index, events) for everything that is ready; false if nothing is. Blocks: until something is ready, at
  /// most `timeout_ms`; -1: without limit.
  template <typename Note>
  bool wait(int timeout_ms, const Note& note) {
    const int count =
        epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeout_ms);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events_[static_cast<size_t>(i)];
      note(event.data.u32, event.events);
    }
    return count > 0;
  }

 private:
  void check(bool done);

  base::UniqueFd epoll_;
  std::vector<epoll_event> events_;  // as many as are watched
  Status status_;
};

}  // namespace faro::bench
