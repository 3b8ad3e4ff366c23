#include "lab/bench/channels.h"

#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/unique_fd.h"
#include "faro/endpoint.h"
#include "lab/bench/figures.h"

namespace faro::bench {
namespace {

using Kind = ChannelEvent::Kind;

/// Frames as their user has them. The sender has a few, so that they are not all in its cache, nor all cold.
class FrameBuffers {
 public:
  explicit FrameBuffers(uint32_t frame_bytes)
      : bytes_(frame_bytes), memory_(size_t{kFrames} * frame_bytes / 8) {}
  std::span<std::byte> next() {
    const size_t words = bytes_ / 8;
    return std::as_writable_bytes(std::span(memory_).subspan((turn_++ % kFrames) * words, words));
  }
  static void number(std::span<std::byte> frame, uint64_t number) {
    std::memcpy(frame.data(), &number, 8);
    std::memcpy(frame.last(8).data(), &number, 8);
  }
  static bool has_number(std::span<const std::byte> frame, uint64_t number) {
    return std::memcmp(frame.data(), &number, 8) == 0 &&
           std::memcmp(frame.last(8).data(), &number, 8) == 0;
  }

 private:
  static constexpr uint32_t kFrames = ChannelJob::kMostPerPost;
  const uint32_t bytes_;
  std::vector<uint64_t> memory_;
  size_t turn_ = 0;
};

/// One process's part in a round; process 0 sends, or goes first.
class Party {
 public:
  virtual ~Party() = default;
  virtual Status run_round() = 0;
  /// The receiver's: frames or trips that were right.
  workload::Totals totals() const { return {right_, 0}; }

 protected:
  uint64_t right_ = 0;
};

// ----------------------------------------------------------------------------------------- channels

/// An endpoint with one channel to that of the other process.
class ChannelParty : public Party {
 public:
  Status open(GroupMember& member, const ChannelJob& job, const Config& config) {
    FARO_ASSIGN_OR_RETURN(endpoint_, Endpoint::open(config, {}));
    poller_ = &endpoint_->poller(0);
    auto* const address = static_cast<char*>(member.shared_area());
    if (member.process() == 1) endpoint_->address().copy(address, 63);
    member.meet_processes();
    if (member.process() == 0) {
      const ChannelSpec spec{.send_bytes = job.ring_bytes, .receive_bytes = job.ring_bytes};
      FARO_RETURN_IF_ERROR(poller_->connect(address, spec).status());
    }
    FARO_ASSIGN_OR_RETURN(const ChannelEvent event, next());
    channel_ = event.channel;
    return event.kind == Kind::opened ? Status::Ok() : poller_->status(channel_);
  }

 protected:
  /// The next event.
  Result<ChannelEvent> next() {
    while (taken_ == events_.size()) {
      if (poller_->wait() != Outcome::done) return Status(Code::closed, "the endpoint was closed");
      events_ = poller_->poll(memory_);
      taken_ = 0;
    }
    const ChannelEvent event = events_[taken_++];
    if (event.kind == Kind::closed) return poller_->status(event.channel);
    return event;
  }

  std::unique_ptr<Endpoint> endpoint_;
  Poller* poller_ = nullptr;
  ChannelId channel_;

 private:
  ChannelEvent memory_[64];
  std::span<ChannelEvent> events_;
  size_t taken_ = 0;
};

class ChannelSender final : public ChannelParty {
 public:
  explicit ChannelSender(const ChannelJob& job) : job_(job), frames_(job.frame_bytes) {}
  Status run_round() override {
    for (uint64_t number = 0; number < job_.frame_count; ++number) {
      const std::span<std::byte> frame = frames_.next();
      FrameBuffers::number(frame, number);
      std::span<std::byte> room;
      while (poller_->claim(channel_, frame.size(), frame.size(), room) != Outcome::done) {
        FARO_ASSIGN_OR_RETURN(const ChannelEvent event, next());
        if (event.kind != Kind::room) return {Code::internal_error, "an event out of place"};
      }
      std::memcpy(room.data(), frame.data(), frame.size());
      if (poller_->commit(channel_, frame.size()) != Outcome::done)
        return poller_->status(channel_);
      if (job_.is_posted_after(number)) poller_->post();
    }
    return Status::Ok();
  }

 private:
  const ChannelJob job_;
  FrameBuffers frames_;
};

class ChannelReceiver final : public ChannelParty {
 public:
  explicit ChannelReceiver(const ChannelJob& job) : job_(job), frames_(job.frame_bytes) {}
  Status run_round() override {
    right_ = 0;
    for (uint64_t number = 0; number < job_.frame_count; ++number) {
      FARO_ASSIGN_OR_RETURN(const ChannelEvent event, next());
      const std::span<std::byte> frame = frames_.next();
      if (event.kind != Kind::frame || event.data.size() != frame.size())
        return {Code::internal_error, "a frame of another size"};
      std::memcpy(frame.data(), event.data.data(), frame.size());
      poller_->release(event.channel, event.token);
      right_ += FrameBuffers::has_number(frame, number);
    }
    return Status::Ok();
  }

 private:
  const ChannelJob job_;
  FrameBuffers frames_;
};

class ChannelTrips final : public ChannelParty {
 public:
  ChannelTrips(const ChannelJob& job, bool first) : job_(job), first_(first) {}
  Status run_round() override {
    right_ = 0;
    for (uint64_t trip = 0; trip < job_.trip_count; ++trip) {
      if (first_) FARO_RETURN_IF_ERROR(send());
      FARO_ASSIGN_OR_RETURN(const ChannelEvent event, next());
      right_ += event.kind == Kind::frame && event.data.empty();
      poller_->release(event.channel, event.token);
      if (!first_) FARO_RETURN_IF_ERROR(send());
    }
    return Status::Ok();
  }

 private:
  Status send() {
    std::span<std::byte> room;
    if (poller_->claim(channel_, 0, 0, room) != Outcome::done ||
        poller_->commit(channel_, 0) != Outcome::done)
      return {Code::internal_error, "no room for an empty frame"};
    poller_->post();
    return Status::Ok();
  }

  const ChannelJob job_;
  const bool first_;
};

// ------------------------------------------------------------------------------------------ sockets

struct SocketHeader {
  uint64_t bytes;
  uint64_t number;
};

/// A blocking TCP connection to the other process.
class SocketParty : public Party {
 public:
  Status open(GroupMember& member) {
    auto* const port = static_cast<uint16_t*>(member.shared_area());
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    base::UniqueFd made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    if (member.process() == 1) {
      if (bind(made.get(), at, length) != 0 || listen(made.get(), 1) != 0 ||
          getsockname(made.get(), at, &length) != 0)
        return {Code::system_error, "no socket to listen on"};
      *port = address.sin_port;
    }
    member.meet_processes();
    if (member.process() == 1) {
      socket_.reset(accept4(made.get(), nullptr, nullptr, SOCK_CLOEXEC));
    } else {
      address.sin_port = *port;
      if (connect(made.get(), at, length) != 0) return {Code::system_error, "no connection"};
      socket_ = std::move(made);
    }
    const int on = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return Status::Ok();
  }

 protected:
  /// The next send() writes them. The frame stays as it is until then.
  void add(SocketHeader header, std::span<std::byte> frame) {
    SocketHeader& kept = headers_[parts_.size() / 2] = header;
    parts_.push_back({&kept, sizeof kept});
    parts_.push_back({frame.data(), frame.size()});
  }
  Status send() {
    std::span<iovec> left = parts_;
    while (!left.empty()) {
      const ssize_t sent = writev(socket_.get(), left.data(), static_cast<int>(left.size()));
      if (sent <= 0) return {Code::system_error, "writev"};
      auto done = static_cast<size_t>(sent);
      while (!left.empty() && done >= left.front().iov_len) {
        done -= left.front().iov_len;
        left = left.subspan(1);
      }
      if (left.empty()) break;
      left.front().iov_base = static_cast<char*>(left.front().iov_base) + done;
      left.front().iov_len -= done;
    }
    parts_.clear();
    return Status::Ok();
  }
  Status receive(std::span<std::byte> into) {
    while (!into.empty()) {
      const ssize_t got = recv(socket_.get(), into.data(), into.size(), MSG_WAITALL);
      if (got <= 0) return {Code::system_error, "recv"};
      into = into.subspan(static_cast<size_t>(got));
    }
    return Status::Ok();
  }

 private:
  base::UniqueFd socket_;
  std::array<SocketHeader, ChannelJob::kMostPerPost> headers_;
  std::vector<iovec> parts_;  // two of each frame
};

class SocketFrames final : public SocketParty {
 public:
  SocketFrames(const ChannelJob& job, bool sends)
      : job_(job), sends_(sends), frames_(job.frame_bytes) {}
  Status run_round() override {
    right_ = 0;
    for (uint64_t number = 0; number < job_.frame_count; ++number) {
      const std::span<std::byte> frame = frames_.next();
      if (sends_) {
        FrameBuffers::number(frame, number);
        add({frame.size(), number}, frame);
        if (job_.is_posted_after(number)) FARO_RETURN_IF_ERROR(send());
        continue;
      }
      SocketHeader header;
      FARO_RETURN_IF_ERROR(receive(std::as_writable_bytes(std::span(&header, 1))));
      FARO_RETURN_IF_ERROR(receive(frame));
      right_ += header.number == number && FrameBuffers::has_number(frame, number);
    }
    return Status::Ok();
  }

 private:
  const ChannelJob job_;
  const bool sends_;
  FrameBuffers frames_;
};

class SocketTrips final : public SocketParty {
 public:
  SocketTrips(const ChannelJob& job, bool first) : job_(job), first_(first) {}
  Status run_round() override {
    right_ = 0;
    for (uint64_t trip = 0; trip < job_.trip_count; ++trip) {
      if (first_) FARO_RETURN_IF_ERROR(send_empty(trip));
      SocketHeader header;
      FARO_RETURN_IF_ERROR(receive(std::as_writable_bytes(std::span(&header, 1))));
      right_ += header.number == trip;
      if (!first_) FARO_RETURN_IF_ERROR(send_empty(trip));
    }
    return Status::Ok();
  }

 private:
  Status send_empty(uint64_t trip) {
    add({0, trip}, {});
    return send();
  }

  const ChannelJob job_;
  const bool first_;
};

// ------------------------------------------------------------------------------------- what is least

class CopiedFrames final : public Party {
 public:
  explicit CopiedFrames(const ChannelJob& job)
      : job_(job),
        from_(job.frame_bytes),
        to_(job.frame_bytes),
        ring_(std::max(job.ring_bytes, job.frame_bytes)) {}
  Status open(GroupMember&) { return Status::Ok(); }
  Status run_round() override {
    right_ = 0;
    size_t at = 0;
    for (uint64_t number = 0; number < job_.frame_count; ++number) {
      const std::span<std::byte> frame = from_.next();
      FrameBuffers::number(frame, number);
      if (at + frame.size() > ring_.size()) at = 0;
      std::memcpy(ring_.data() + at, frame.data(), frame.size());
      const std::span<std::byte> copy = to_.next();
      std::memcpy(copy.data(), ring_.data() + at, frame.size());
      at += frame.size();
      right_ += FrameBuffers::has_number(copy, number);
    }
    return Status::Ok();
  }

 private:
  const ChannelJob job_;
  FrameBuffers from_, to_;
  std::vector<std::byte> ring_;
};

/// A ring that carries frames of one size and nothing else: what two processes cannot have for less.
class BareRingFrames final : public Party {
 public:
  BareRingFrames(const ChannelJob& job, bool sends)
      : job_(job), sends_(sends), slots_(slots(job)), frames_(job.frame_bytes) {}
  static uint32_t slots(const ChannelJob& job) { return job.ring_bytes / job.frame_bytes; }
  static size_t shared_bytes(const ChannelJob& job) {
    return sizeof(Positions) + size_t{slots(job)} * job.frame_bytes;
  }
  Status open(GroupMember& member) {
    positions_ = static_cast<Positions*>(member.shared_area());
    ring_ = reinterpret_cast<std::byte*>(positions_ + 1);
    return Status::Ok();
  }
  Status run_round() override {
    right_ = 0;
    const uint64_t begin = positions_->begin(sends_);
    uint64_t known = begin;  // the other side's position, as of the last look
    for (uint64_t number = 0; number < job_.frame_count; ++number) {
      const std::span<std::byte> frame = frames_.next();
      const uint64_t at = begin + number;
      std::byte* const slot = ring_ + at % slots_ * job_.frame_bytes;
      if (sends_) {
        FrameBuffers::number(frame, number);
        await_while(positions_->read, known, [&] { return at - known == slots_; });
        std::memcpy(slot, frame.data(), frame.size());
        positions_->written.store(at + 1, std::memory_order_release);
        continue;
      }
      await_while(positions_->written, known, [&] { return known == at; });
      std::memcpy(frame.data(), slot, frame.size());
      positions_->read.store(at + 1, std::memory_order_release);
      right_ += FrameBuffers::has_number(frame, number);
    }
    return Status::Ok();
  }

 private:
  template <typename Condition>
  static void await_while(const std::atomic<uint64_t>& position, uint64_t& known,
                          const Condition& condition) {
    if (!condition()) return;
    while ((known = position.load(std::memory_order_acquire), condition())) sched_yield();
  }
  // Frames since the group began.
  struct Positions {
    alignas(64) std::atomic<uint64_t> written;
    alignas(64) std::atomic<uint64_t> read;
    uint64_t begin(bool sends) const { return (sends ? written : read).load(); }
  };

  const ChannelJob job_;
  const bool sends_;
  const uint32_t slots_;
  FrameBuffers frames_;
  Positions* positions_ = nullptr;
  std::byte* ring_ = nullptr;
};

/// How one of two processes waits for its turn.
enum class TurnWait : uint8_t { yields, sleeps };

/// Waits until it is its turn, and gives the other one the turn.
class TurnTrips final : public Party {
 public:
  TurnTrips(const ChannelJob& job, bool first, TurnWait wait)
      : job_(job), mine_(first ? 0 : 1), wait_(wait) {}
  Status open(GroupMember& member) {
    turn_ = static_cast<std::atomic<uint32_t>*>(member.shared_area());
    return Status::Ok();
  }
  Status run_round() override {
    right_ = 0;
    for (uint64_t trip = 0; trip < job_.trip_count; ++trip) {
      uint32_t turn;
      while ((turn = turn_->load(std::memory_order_acquire)) != mine_) wait_while(turn);
      turn_->store(1 - mine_, std::memory_order_release);
      if (wait_ == TurnWait::sleeps) syscall(SYS_futex, turn_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
      ++right_;
    }
    return Status::Ok();
  }

 private:
  void wait_while(uint32_t turn) {
    if (wait_ == TurnWait::yields) {
      sched_yield();
    } else {
      syscall(SYS_futex, turn_, FUTEX_WAIT, turn, nullptr, nullptr, 0);
    }
  }

  const ChannelJob job_;
  const uint32_t mine_;
  const TurnWait wait_;
  std::atomic<uint32_t>* turn_ = nullptr;
};

// --------------------------------------------------------------------------------------------- runs

/// `make(process)` makes the party of a process, which then opens with `open`.
template <typename Make, typename Open>
Result<ChannelFigures> run(const ChannelJob& job, uint32_t processes, uint64_t right,
                           const Make& make, const Open& open, size_t shared_bytes = 64) {
  ProcessGroupOptions options;
  options.process_count = processes;
  options.round_count = 1 + job.rounds;
  options.shared_bytes = shared_bytes;
  FARO_ASSIGN_OR_RETURN(auto group, ProcessGroup::create(options));
  FARO_ASSIGN_OR_RETURN(const auto rounds, group.run([&](GroupMember& member) -> Status {
    auto party = make(member.process());
    FARO_RETURN_IF_ERROR(open(*party, member));
    member.run_workers([&](uint32_t worker) { return member.run_rounds(worker, *party); });
    return Status::Ok();
  }));
  ChannelFigures figures;
  figures.verified = true;
  std::vector<double> seconds, cpu_seconds;
  for (size_t round = 1; round < rounds.size(); ++round) {
    seconds.push_back(rounds[round].seconds);
    cpu_seconds.push_back(rounds[round].cpu_seconds);
    figures.verified = figures.verified && rounds[round].rows.count == right;
  }
  figures.seconds = median(std::move(seconds));
  figures.cpu_seconds = median(std::move(cpu_seconds));
  return figures;
}

}  // namespace

Status ChannelJob::validate() const {
  const uint32_t most = ring_bytes / 4 - 16;
  if (frame_bytes < 16 || frame_bytes % 8 != 0 || frame_bytes > most) {
    return base::error(Code::invalid_argument,
                       "frames of {} bytes: a multiple of 8 from 16 to {}, a quarter of the ring, "
                       "is needed",
                       frame_bytes, most);
  }
  if (frames_per_post == 0 || frames_per_post > kMostPerPost) {
    return base::error(Code::invalid_argument, "{} frames per post: 1 to {} are possible",
                       frames_per_post, kMostPerPost);
  }
  if (frame_count == 0 || trip_count == 0 || rounds == 0)
    return {Code::invalid_argument, "nothing to measure"};
  return Status::Ok();
}

Result<ChannelFigures> run_frames(const ChannelJob& job, ChannelCarrier carrier,
                                  const Config& config) {
  FARO_RETURN_IF_ERROR(job.validate());
  const uint64_t right = job.frame_count;
  if (carrier == ChannelCarrier::copies) {
    return run(
        job, 1, right, [&](uint32_t) { return std::make_unique<CopiedFrames>(job); },
        [](CopiedFrames& party, GroupMember& member) { return party.open(member); });
  }
  if (carrier == ChannelCarrier::bare_ring) {
    return run(
        job, 2, right,
        [&](uint32_t process) { return std::make_unique<BareRingFrames>(job, process == 0); },
        [](BareRingFrames& party, GroupMember& member) { return party.open(member); },
        BareRingFrames::shared_bytes(job));
  }
  if (carrier == ChannelCarrier::socket) {
    return run(
        job, 2, right,
        [&](uint32_t process) { return std::make_unique<SocketFrames>(job, process == 0); },
        [](SocketParty& party, GroupMember& member) { return party.open(member); });
  }
  return run(
      job, 2, right,
      [&](uint32_t process) -> std::unique_ptr<ChannelParty> {
        if (process == 0) return std::make_unique<ChannelSender>(job);
        return std::make_unique<ChannelReceiver>(job);
      },
      [&](ChannelParty& party, GroupMember& member) { return party.open(member, job, config); });
}

Result<ChannelFigures> run_trips(const ChannelJob& job, ChannelCarrier carrier,
                                 const Config& config) {
  const uint64_t right = 2 * job.trip_count;
  if (carrier == ChannelCarrier::copies || carrier == ChannelCarrier::bare_ring) {
    const TurnWait wait = carrier == ChannelCarrier::copies ? TurnWait::sleeps : TurnWait::yields;
    return run(
        job, 2, right,
        [&](uint32_t process) { return std::make_unique<TurnTrips>(job, process == 0, wait); },
        [](TurnTrips& party, GroupMember& member) { return party.open(member); });
  }
  if (carrier == ChannelCarrier::socket) {
    return run(
        job, 2, right,
        [&](uint32_t process) { return std::make_unique<SocketTrips>(job, process == 0); },
        [](SocketParty& party, GroupMember& member) { return party.open(member); });
  }
  return run(
      job, 2, right,
      [&](uint32_t process) { return std::make_unique<ChannelTrips>(job, process == 0); },
      [&](ChannelParty& party, GroupMember& member) { return party.open(member, job, config); });
}

}  // namespace faro::bench
