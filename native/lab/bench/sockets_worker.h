// One worker of the sockets baseline (see sockets_baseline.h for what it is and the frame layout).
//
// The worker is a loop over steps that never wait: each takes rows from one source and appends them
// to the outgoing buffer of their destination. A row whose buffer has no room stays where it is (in
// the incoming buffer, or not yet generated), and its source is tried again in the next turn. So
// every row is moved once or not at all, no step calls another, and waiting is in one place.
//
//   local lanes ──┐                            ┌─> one buffer per remote worker ──> its socket
//   sockets ──────┼─> stage 2: sink            ├─> one block per local worker ────> its lane
//   own stage 1 ──┤   stage 1: n*3/2, route ───┼─> own stage 2 ───────────────────> sink
//   generator ────┘            route ──────────┴─> own stage 1
//
// Why it cannot deadlock when everyone sends first: a worker that makes no progress at all takes
// whatever its sockets and lanes hold into memory, growing its incoming queues as needed; so every
// peer's socket and lane gets free again.
#pragma once

#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "faro/status.h"
#include "lab/bench/sockets_baseline.h"
#include "lab/bench/sockets_local_lane.h"
#include "lab/bench/sockets_mesh.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

/// What the workers of one process share. Made before their threads.
struct SocketsProcess {
  explicit SocketsProcess(uint32_t workers) : lanes(size_t{workers} * workers), bells(workers) {}

  /// The lane between two workers of this process, by their numbers within it.
  LocalLane& lane(uint32_t from, uint32_t to) noexcept { return lanes[from * bells.size() + to]; }

  std::vector<LocalLane> lanes;  // those of a worker to itself stay unused
  std::vector<LocalBell> bells;
};

/// Threads: one. Owns: its sockets and buffers.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
class SocketsWorker {
 public:
  /// `worker`: its number over all processes. `process` and `progress` must outlive it.
  SocketsWorker(const TwoStageJob& job, const SocketsOptions& options, uint32_t worker,
                SocketsProcess& process, std::atomic<uint64_t>& progress)
      : job_(job),
        options_(options),
        self_(worker),
        worker_count_(job.worker_count()),
        first_local_(job.process_of(worker) * job.workers_per_process),
        process_(process),
        bell_(process.bells[worker - first_local_]),
        progress_(progress),
        outputs_(worker_count_ + 1) {}

  /// Takes over the sockets and allocates every buffer. Errors: system_error.
  Status open(std::vector<MeshSocket> sockets);

  /// Does the whole job once. All workers of all processes must be in the same round.
  ///
  /// Blocks: until every worker's rows for this one have been consumed, and its own are under way.
  /// Errors: peer_lost, protocol_error, system_error; the worker is of no use afterwards.
  Status run_round();

  /// What came out of the last round.
  const Sink& sink() const noexcept { return sink_; }

 private:
  using Codec = RowCodec<kRowBytes>;

  static constexpr uint32_t kHeaderBytes = 4;
  static constexpr uint32_t kFrameBytes = kHeaderBytes + kRowBytes;

  static constexpr uint32_t header(uint32_t stage, uint32_t kind) noexcept {
    return kRowBytes | stage << 16 | kind << 24;
  }
  static constexpr uint32_t kRow1 = header(1, 0);
  static constexpr uint32_t kRow2 = header(2, 0);
  static constexpr uint32_t kEnd1 = header(1, 1);
  static constexpr uint32_t kEnd2 = header(2, 1);

  enum class Target : uint8_t { own_stage1, own_stage2, local, remote };

  /// Frames on their way to one worker. A cache line of its own as all are written in random order.
  struct alignas(64) Output {
    char* cursor = nullptr;  // where the next frame goes
    char* limit = nullptr;   // the last place where a frame still fits
    char* begin = nullptr;   // the first byte that is not sent (own_stage1: handled) yet
    char* memory = nullptr;
    uint32_t index = 0;  // in sockets_, or the number of a local worker
    Target target = Target::remote;
  };

  /// One connection.
  struct Socket {
    base::UniqueFd fd;
    uint32_t peer = 0;
    bool readable = true;    // may hold bytes: not yet known to be empty
    bool writable = true;    // may take bytes: not yet known to be full
    bool suspended = false;  // its first row found no room
    std::unique_ptr<char[]> memory;
    size_t capacity = 0;
    size_t begin = 0;  // the first byte that is not handled yet
    size_t end = 0;
  };

  /// What came from one worker of the same process.
  struct LocalSource {
    LocalSource() = default;
    LocalSource(LocalSource&&) = default;  // and no copy, which std::deque would only seem to have

    LocalLane* lane = nullptr;
    LocalBell* sender_bell = nullptr;
    std::deque<std::unique_ptr<LocalBlock>> waiting;  // taken from the lane
    size_t begin = 0;                                 // of the first waiting block
  };

  // Everything that routing a row reads, copied to the stack of each loop: stores through char*
  // would otherwise force the compiler to load the members again for every row.
  struct Router {
    Output* outputs;
    uint32_t worker_count;
    uint32_t self;
  };
  Router router() noexcept { return Router{outputs_.data(), worker_count_, self_}; }

  template <uint32_t kStage>
  bool try_route(const Router& router, uint64_t n);
  template <uint32_t kHeader>
  bool try_append(Output& output, uint64_t n);
  bool make_room(Output& output);
  bool flush_local(Output& output);
  bool flush_remote(Output& output);
  void consume_own_stage2();

  bool handle_own_stage1();
  bool handle_local(LocalSource& source);
  bool handle_socket(Socket& socket);
  bool generate();
  bool advance_ends();
  const char* handle_frames(const char* at, const char* end);

  bool read_socket(Socket& socket);
  bool look_at_events(int timeout_ms);
  bool flush_all();
  bool take_everything_in();
  bool everything_is_out() const noexcept;
  void wait_for_something(uint32_t& idle_turns);
  void fail(Code code, std::string message);

  const TwoStageJob job_;
  const SocketsOptions options_;
  const uint32_t self_;
  const uint32_t worker_count_;
  const uint32_t first_local_;
  SocketsProcess& process_;
  LocalBell& bell_;
  std::atomic<uint64_t>& progress_;

  // One for each worker; that of self_ takes its stage 2, one more behind them its stage 1.
  std::vector<Output> outputs_;
  std::vector<std::unique_ptr<char[]>> output_memory_;
  std::vector<std::unique_ptr<LocalBlock>> open_blocks_;  // by local worker
  std::vector<Socket> sockets_;
  std::vector<LocalSource> local_sources_;
  base::UniqueFd epoll_;
  std::vector<epoll_event> events_;

  Sink sink_;
  IntegerRange rest_;           // still to be generated
  uint32_t ends_seen_[3] = {};  // by stage: senders, other than itself, whose rows are all in
  uint32_t ends_sent_[3] = {};  // by stage: the next worker to be told
  Status status_;
};

// --- setting up ----------------------------------------------------------------------------------

template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
Status SocketsWorker<Hash, kRowBytes, kForm>::open(std::vector<MeshSocket> sockets) {
  epoll_ = base::UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  auto watch = [this](int fd, uint32_t events, uint32_t index) {
    epoll_event event{};
    event.events = events | EPOLLET;
    event.data.u32 = index;
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  bool watching = epoll_.valid();
  auto set_memory = [this](Output& output, char* memory, uint32_t bytes) {
    output.memory = output.begin = output.cursor = memory;
    output.limit = memory + bytes - kFrameBytes;
  };
  // Own rows and whatever is sent pass through memory of the same size.
  const uint32_t output_bytes = std::max(options_.outgoing_buffer_bytes, 2 * kFrameBytes);

  open_blocks_.resize(job_.workers_per_process);
  for (uint32_t worker = 0; worker <= worker_count_; ++worker) {
    Output& output = outputs_[worker];
    if (worker == worker_count_) {
      output.target = Target::own_stage1;
    } else if (worker == self_) {
      output.target = Target::own_stage2;
    } else if (job_.same_process(worker, self_)) {
      output.target = Target::local;
      output.index = worker - first_local_;
      LocalLane& lane = process_.lane(self_ - first_local_, output.index);
      open_blocks_[output.index] = lane.take_empty(output_bytes);
      set_memory(output, open_blocks_[output.index]->memory.get(), output_bytes);
      LocalSource source;
      source.lane = &process_.lane(output.index, self_ - first_local_);
      source.sender_bell = &process_.bells[output.index];
      local_sources_.push_back(std::move(source));
      continue;
    }
    output_memory_.push_back(std::make_unique<char[]>(output_bytes));
    set_memory(output, output_memory_.back().get(), output_bytes);
  }

  for (MeshSocket& mesh : sockets) {
    const uint32_t index = static_cast<uint32_t>(sockets_.size());
    Socket socket;
    socket.fd = std::move(mesh.fd);
    socket.peer = mesh.peer;
    socket.capacity = std::max<size_t>(options_.incoming_buffer_bytes, 2 * kFrameBytes);
    socket.memory = std::make_unique<char[]>(socket.capacity);
    outputs_[mesh.peer].index = index;
    watching = watching && watch(socket.fd.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, index);
    sockets_.push_back(std::move(socket));
  }
  watching = watching && watch(bell_.fd(), EPOLLIN, static_cast<uint32_t>(sockets_.size()));
  events_.resize(sockets_.size() + 1);
  if (!watching) return Status(Code::system_error, std::string("epoll: ") + std::strerror(errno));
  return Status::Ok();
}

// --- sending -------------------------------------------------------------------------------------

/// Sends n to whom it belongs in that stage; false: no room, nothing has happened.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
template <uint32_t kStage>
inline bool SocketsWorker<Hash, kRowBytes, kForm>::try_route(const Router& router, uint64_t n) {
  const uint32_t worker = destination_of<Hash>(n, router.worker_count);
  // A conditional move: as a branch it would be mispredicted for every row of one's own.
  const uint32_t index = kStage == 1 && worker == router.self ? router.worker_count : worker;
  return try_append < kStage == 1 ? kRow1 : kRow2 > (router.outputs[index], n);
}

template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
template <uint32_t kHeader>
inline bool SocketsWorker<Hash, kRowBytes, kForm>::try_append(Output& output, uint64_t n) {
  char* at = output.cursor;
  if (at > output.limit) [[unlikely]] {
    if (!make_room(output)) return false;
    at = output.cursor;
  }
  const uint32_t frame_header = kHeader;
  std::memcpy(at, &frame_header, kHeaderBytes);
  Codec::write(at + kHeaderBytes, n);
  output.cursor = at + kFrameBytes;
  if constexpr (kForm == SocketsForm::paper) {
    if (output.target == Target::remote) flush_remote(output);
  }
  return true;
}

/// Makes room for one frame at least; false if that has to wait.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
[[gnu::noinline]] bool SocketsWorker<Hash, kRowBytes, kForm>::make_room(Output& output) {
  switch (output.target) {
    case Target::own_stage1:
      return false;  // only the generator comes here; handle_own_stage1 makes room
    case Target::own_stage2:
      consume_own_stage2();
      return true;
    case Target::local:
      return flush_local(output);
    case Target::remote:
      flush_remote(output);
      if (output.cursor > output.limit && output.begin - output.memory >= kFrameBytes) {
        const size_t left = static_cast<size_t>(output.cursor - output.begin);
        std::memmove(output.memory, output.begin, left);
        output.begin = output.memory;
        output.cursor = output.memory + left;
      }
      return output.cursor <= output.limit;
  }
  return false;
}

/// Hands the open block over; false if the lane is full.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::flush_local(Output& output) {
  if (output.cursor == output.memory) return true;
  LocalLane& lane = process_.lane(self_ - first_local_, output.index);
  std::unique_ptr<LocalBlock>& block = open_blocks_[output.index];
  block->used_bytes = static_cast<uint32_t>(output.cursor - output.memory);
  if (!lane.full.try_push(block.get())) return false;
  block.release();
  process_.bells[output.index].ring();
  const uint32_t capacity = static_cast<uint32_t>(output.limit - output.memory) + kFrameBytes;
  block = lane.take_empty(capacity);
  output.memory = output.begin = output.cursor = block->memory.get();
  output.limit = output.memory + capacity - kFrameBytes;
  return true;
}

/// Writes what the socket takes; true if that was something.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::flush_remote(Output& output) {
  Socket& socket = sockets_[output.index];
  const size_t pending = static_cast<size_t>(output.cursor - output.begin);
  if (pending == 0 || !socket.writable) return false;
  const ssize_t sent = send(socket.fd.get(), output.begin, pending, MSG_NOSIGNAL);
  if (sent < 0) {
    if (errno == EAGAIN || errno == EINTR) {
      socket.writable = errno == EINTR;
    } else {
      socket.writable = false;
      fail(Code::peer_lost, "the connection to worker " + std::to_string(socket.peer) +
                                " broke while sending: " + std::strerror(errno));
    }
    return false;
  }
  if (static_cast<size_t>(sent) == pending) {
    output.begin = output.cursor = output.memory;
  } else {
    output.begin += sent;
    socket.writable = false;  // the edge comes when there is room again
  }
  return true;
}

template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
void SocketsWorker<Hash, kRowBytes, kForm>::consume_own_stage2() {
  Output& output = outputs_[self_];
  handle_frames(output.memory, output.cursor);
  output.cursor = output.memory;
}

// --- the sources of rows -------------------------------------------------------------------------

/// Handles whole frames up to `end`, or up to the first row that finds no room; returns where it
/// stopped.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
const char* SocketsWorker<Hash, kRowBytes, kForm>::handle_frames(const char* at, const char* end) {
  const Router route = router();
  auto header_at = [](const char* frame) {
    uint32_t word;
    std::memcpy(&word, frame, kHeaderBytes);
    return word;
  };
  // Rows of a stage come in runs, as generators and parsers work in batches; a loop for each keeps
  // the branch on the stage predictable.
  while (end - at >= kFrameBytes) {
    const uint32_t kind = header_at(at);
    if (kind == kRow2) {
      uint64_t count = 0;
      uint64_t sum = 0;
      uint64_t damage = 0;
      do {
        sum += mix(Codec::read(at + kHeaderBytes, damage));
        ++count;
        at += kFrameBytes;
      } while (end - at >= kFrameBytes && header_at(at) == kRow2);
      sink_.consume_batch(count, sum);
      sink_.add_damage(damage);
    } else if (kind == kRow1) {
      uint64_t damage = 0;
      bool room = true;
      do {
        const uint64_t n = Codec::read(at + kHeaderBytes, damage);
        room = try_route<2>(route, transform(n));
        if (!room) break;
        at += kFrameBytes;
      } while (end - at >= kFrameBytes && header_at(at) == kRow1);
      sink_.add_damage(damage);
      if (!room) return at;
    } else if (kind == kEnd1 || kind == kEnd2) {
      ++ends_seen_[kind == kEnd1 ? 1 : 2];
      at += kFrameBytes;
    } else {
      fail(Code::protocol_error, "a frame starts with the unknown header " + std::to_string(kind));
      return end;
    }
  }
  return at;
}

/// Rows of stage 1 that the worker generated for itself; true if some were handled.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::handle_own_stage1() {
  Output& output = outputs_[worker_count_];
  if (output.begin == output.cursor) return false;
  char* const before = output.begin;
  output.begin += handle_frames(before, output.cursor) - before;
  const bool moved = output.begin != before;
  if (output.begin == output.cursor) output.begin = output.cursor = output.memory;
  return moved;
}

/// Rows from a worker of the same process; true if some were handled.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::handle_local(LocalSource& source) {
  bool moved = false;
  for (;;) {
    if (source.waiting.empty()) {
      LocalBlock* block = source.lane->full.try_pop();
      if (block == nullptr) return moved;
      source.sender_bell->ring();
      source.waiting.emplace_back(block);
      source.begin = 0;
    }
    LocalBlock& block = *source.waiting.front();
    const char* const memory = block.memory.get();
    const size_t before = source.begin;
    source.begin =
        static_cast<size_t>(handle_frames(memory + before, memory + block.used_bytes) - memory);
    moved = moved || source.begin != before;
    if (source.begin < block.used_bytes) return moved;
    source.lane->give_back(std::move(source.waiting.front()));
    source.waiting.pop_front();
    source.begin = 0;
  }
}

/// Reads a socket once and handles the rows; true if some were read or handled.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::handle_socket(Socket& socket) {
  bool moved = false;
  if (!socket.suspended && socket.readable) moved = read_socket(socket);
  if (socket.end - socket.begin < kFrameBytes) return moved;
  const char* const memory = socket.memory.get();
  const size_t before = socket.begin;
  socket.begin = static_cast<size_t>(handle_frames(memory + before, memory + socket.end) - memory);
  socket.suspended = socket.end - socket.begin >= kFrameBytes;
  return moved || socket.begin != before;
}

/// Copies what the socket holds behind what is there, as far as there is room; true if something
/// came.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::read_socket(Socket& socket) {
  if (socket.begin > 0) {
    std::memmove(socket.memory.get(), socket.memory.get() + socket.begin,
                 socket.end - socket.begin);
    socket.end -= socket.begin;
    socket.begin = 0;
  }
  const size_t room = socket.capacity - socket.end;
  if (room == 0) return false;
  const ssize_t got = recv(socket.fd.get(), socket.memory.get() + socket.end, room, 0);
  if (got > 0) {
    socket.end += static_cast<size_t>(got);
    // Less than asked for: the socket is empty, and more will be an edge.
    socket.readable = static_cast<size_t>(got) == room;
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    socket.readable = errno == EINTR;
    return false;
  }
  socket.readable = false;
  fail(Code::peer_lost, "worker " + std::to_string(socket.peer) + " closed its connection" +
                            (got < 0 ? std::string(": ") + std::strerror(errno) : ""));
  return false;
}

/// A batch of rows of the worker's own; true if some found room.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::generate() {
  const Router route = router();
  uint64_t n = rest_.begin;
  const uint64_t stop = std::min<uint64_t>(rest_.end, n + options_.generate_batch_rows);
  while (n < stop && try_route<1>(route, n)) ++n;
  const bool moved = n != rest_.begin;
  rest_.begin = n;
  return moved;
}

/// Tells the others about the end of each stage, once there is one; true if someone was told.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::advance_ends() {
  bool moved = false;
  auto tell_all = [&]<uint32_t kEnd>(uint32_t& next) {
    for (; next < worker_count_; ++next) {
      if (next == self_) continue;
      if (!try_append<kEnd>(outputs_[next], 0)) return false;
      moved = true;
    }
    return true;
  };
  if (rest_.begin < rest_.end || !tell_all.template operator()<kEnd1>(ends_sent_[1])) return moved;
  const Output& own_stage1 = outputs_[worker_count_];
  if (ends_seen_[1] == worker_count_ - 1 && own_stage1.begin == own_stage1.cursor) {
    tell_all.template operator()<kEnd2>(ends_sent_[2]);
  }
  return moved;
}

// --- the loop and its one wait -------------------------------------------------------------------

template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
Status SocketsWorker<Hash, kRowBytes, kForm>::run_round() {
  sink_.reset();
  rest_ = job_.range_of(self_);
  for (uint32_t stage : {1, 2}) ends_seen_[stage] = ends_sent_[stage] = 0;

  uint32_t idle_turns = 0;
  while (status_.ok()) {
    look_at_events(0);
    bool moved = false;
    // The paper's polling order: own process, sockets, child.
    moved |= handle_own_stage1();
    for (LocalSource& source : local_sources_) moved |= handle_local(source);
    for (Socket& socket : sockets_) moved |= handle_socket(socket);
    moved |= generate();
    moved |= advance_ends();
    progress_.store(sink_.count(), std::memory_order_relaxed);
    if (moved) {
      idle_turns = 0;
      continue;
    }
    if (flush_all()) continue;
    if (ends_seen_[2] == worker_count_ - 1 && ends_sent_[2] == worker_count_ &&
        everything_is_out()) {
      break;
    }
    wait_for_something(idle_turns);
  }
  consume_own_stage2();
  return status_;
}

/// Learns which sockets can be read or written again; true if any.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::look_at_events(int timeout_ms) {
  const int count =
      epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events_[static_cast<size_t>(i)];
    if (event.data.u32 == sockets_.size()) continue;  // the bell: the lanes are looked at anyway
    Socket& socket = sockets_[event.data.u32];
    if (event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) socket.readable = true;
    if (event.events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) socket.writable = true;
  }
  return count > 0;
}

/// Sends what waits in partly filled buffers; true if anything went.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::flush_all() {
  bool moved = false;
  for (Output& output : outputs_) {
    if (output.target == Target::remote) {
      moved |= flush_remote(output);
    } else if (output.target == Target::local && output.cursor != output.memory) {
      moved |= flush_local(output);
    }
  }
  return moved;
}

template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::everything_is_out() const noexcept {
  return std::all_of(outputs_.begin(), outputs_.end(), [](const Output& output) {
    return output.target == Target::own_stage2 || output.begin == output.cursor;
  });
}

/// Takes what sockets and lanes hold into growing memory, although the rows before it still wait;
/// true if there was anything. See the top of the file for why.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
bool SocketsWorker<Hash, kRowBytes, kForm>::take_everything_in() {
  bool moved = false;
  for (LocalSource& source : local_sources_) {
    while (LocalBlock* block = source.lane->full.try_pop()) {
      source.sender_bell->ring();
      source.waiting.emplace_back(block);
      moved = true;
    }
  }
  for (Socket& socket : sockets_) {
    if (!socket.suspended || !socket.readable) continue;
    if (socket.end - socket.begin == socket.capacity) {
      auto larger = std::make_unique<char[]>(2 * socket.capacity);
      std::memcpy(larger.get(), socket.memory.get(), socket.capacity);
      socket.memory = std::move(larger);
      socket.capacity *= 2;
    }
    moved |= read_socket(socket);
  }
  return moved;
}

/// Called after a turn without progress. Yields a few times first: on a shared processor the others
/// then fill more than the one buffer that would have woken this worker.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
void SocketsWorker<Hash, kRowBytes, kForm>::wait_for_something(uint32_t& idle_turns) {
  if (idle_turns < options_.yields_before_sleep) {
    ++idle_turns;
    sched_yield();
    return;
  }
  if (take_everything_in()) return;
  if (local_sources_.empty()) {
    look_at_events(-1);
    return;
  }
  // Twice, so that nothing can slip in between: rings that come after arm() wake, blocks that came
  // before it are found here. Room in a lane is looked for by trying to flush.
  bell_.arm();
  if (!take_everything_in() && !flush_all()) look_at_events(-1);
  bell_.disarm();
}

template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
void SocketsWorker<Hash, kRowBytes, kForm>::fail(Code code, std::string message) {
  if (status_.ok()) {
    status_ = Status(code, "worker " + std::to_string(self_) + ": " + std::move(message));
  }
}

}  // namespace faro::bench
