#include "lab/bench/channel_peers.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "faro/endpoint.h"
#include "faro/session.h"
#include "lab/bench/figures.h"
#include "lab/bench/node_life.h"
#include "lab/bench/process_group.h"

namespace faro::bench {
namespace {

using Kind = ChannelEvent::Kind;

// Beside the one that all are linked to.
constexpr uint32_t kPeerProcesses = 4;

uint64_t resident_bytes() {
  unsigned long all = 0, resident = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lu %lu", &all, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

double seconds_since(base::Nanoseconds start) {
  return static_cast<double>(base::SystemClock::instance().now_ns() - start) * 1e-9;
}

// Waits for the next event of any kind. Errors: why a channel closed; closed, of the endpoint.
Result<ChannelEvent> next_event(Poller& poller) {
  ChannelEvent event;
  while (poller.poll(std::span(&event, 1)).empty()) {
    if (poller.wait() != Outcome::done) return Status(Code::closed, "the endpoint was closed");
  }
  if (event.kind == Kind::closed) return poller.status(event.channel);
  return event;
}

struct PeersArea {
  char address[64];
  PeersFigures figures;
};

/// The process that all are linked to.
class Hub {
 public:
  Hub(const PeersJob& job, PeersArea& area) : job_(job), area_(area) {}

  Status open(GroupMember& member, const Config& config) {
    const uint64_t before = resident_bytes();
    FARO_ASSIGN_OR_RETURN(endpoint_, Endpoint::open(config, {.channel_limit = job_.peer_count}));
    endpoint_->address().copy(area_.address, sizeof area_.address - 1);
    member.meet_processes();
    for (uint32_t linked = 0; linked < job_.peer_count; ++linked)
      FARO_RETURN_IF_ERROR(next_event(endpoint_->poller(0)).status());
    area_.figures.memory_bytes = resident_bytes() - before;
    return Status::Ok();
  }
  // Whatever happens now is a channel that ends.
  Status run_round() {
    const base::Nanoseconds start = base::SystemClock::instance().now_ns();
    const uint64_t cpu = process_cpu_ns();
    const base::Nanoseconds end = start + uint64_t{job_.idle_ms} * 1'000'000;
    Poller& poller = endpoint_->poller(0);
    ChannelEvent event;
    bool is_quiet = true;
    for (base::Nanoseconds now = start; is_quiet && now < end;
         now = base::SystemClock::instance().now_ns()) {
      const Outcome outcome = poller.wait(Wait::at_most(std::chrono::nanoseconds(end - now)));
      is_quiet = outcome != Outcome::failed && poller.poll(std::span(&event, 1)).empty();
    }
    area_.figures.cpu_share =
        static_cast<double>(process_cpu_ns() - cpu) * 1e-9 / seconds_since(start);
    area_.figures.verified = is_quiet;
    return Status::Ok();
  }

 private:
  const PeersJob job_;
  PeersArea& area_;
  std::unique_ptr<Endpoint> endpoint_;
};

/// A process with its part of the peers.
class Peers {
 public:
  Peers(const PeersJob& job, PeersArea& area) : job_(job), area_(area) {}

  Status open(GroupMember& member, const Config& config) {
    member.meet_processes();
    const ChannelSpec spec{.send_bytes = job_.ring_bytes, .receive_bytes = job_.ring_bytes};
    for (uint32_t peer = member.process() - 1; peer < job_.peer_count; peer += kPeerProcesses) {
      FARO_ASSIGN_OR_RETURN(auto endpoint, Endpoint::open(config, {.channel_limit = 1}));
      FARO_RETURN_IF_ERROR(endpoint->poller(0).connect(area_.address, spec).status());
      FARO_RETURN_IF_ERROR(next_event(endpoint->poller(0)).status());
      endpoints_.push_back(std::move(endpoint));
    }
    return Status::Ok();
  }

 private:
  const PeersJob job_;
  PeersArea& area_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
};

Status run_peers(const PeersJob& job, GroupMember& member, const Config& config) {
  auto& area = *static_cast<PeersArea*>(member.shared_area());
  if (member.process() == 0) {
    Hub hub(job, area);
    FARO_RETURN_IF_ERROR(hub.open(member, config));
    member.start_round(0, 0);
    FARO_RETURN_IF_ERROR(hub.run_round());
    member.end_round(0, 0, {});
    return Status::Ok();
  }
  Peers peers(job, area);
  FARO_RETURN_IF_ERROR(peers.open(member, config));
  member.start_round(0, 0);
  member.end_round(0, 0, {});  // when the other one is done, too
  return Status::Ok();
}

// ------------------------------------------------------------------------------------------- set-up

/// Says when the frame of a channel came. Serves an endpoint on a thread of its own until it is destroyed.
class Arrivals {
 public:
  explicit Arrivals(Endpoint& endpoint)
      : endpoint_(endpoint), thread_([this] { serve(endpoint_.poller(0)); }) {}
  ~Arrivals() {
    endpoint_.close();
    thread_.join();
  }
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Blocks: until the next one has come. 0: none comes any more.
  base::Nanoseconds take() {
    arrived_.wait(kNone);
    return arrived_.exchange(kNone);
  }

 private:
  static constexpr base::Nanoseconds kNone = 1;

  void serve(Poller& poller) {
    ChannelEvent events[16];
    while (poller.wait() == Outcome::done) {
      for (const ChannelEvent& event : poller.poll(events)) {
        if (event.kind != Kind::frame) continue;
        poller.release(event.channel, event.token);
        tell(base::SystemClock::instance().now_ns());
      }
    }
    tell(0);
  }
  void tell(base::Nanoseconds at) {
    arrived_.store(at);
    arrived_.notify_one();
  }

  Endpoint& endpoint_;
  std::atomic<base::Nanoseconds> arrived_{kNone};
  std::thread thread_;
};

Result<double> channel_set_up(uint32_t count, const Config& config) {
  FARO_ASSIGN_OR_RETURN(const auto server, Endpoint::open(config, {}));
  FARO_ASSIGN_OR_RETURN(const auto client, Endpoint::open(config, {}));
  Arrivals arrivals(*server);
  Poller& poller = client->poller(0);
  std::vector<double> seconds;
  for (uint32_t each = 0; each < count; ++each) {
    const base::Nanoseconds start = base::SystemClock::instance().now_ns();
    FARO_ASSIGN_OR_RETURN(const ChannelId channel, poller.connect(server->address(), {}));
    FARO_RETURN_IF_ERROR(next_event(poller).status());
    std::span<std::byte> room;
    if (poller.claim(channel, 1, 1, room) != Outcome::done ||
        poller.commit(channel, 1) != Outcome::done)
      return poller.status(channel);
    poller.post();
    const base::Nanoseconds arrived = arrivals.take();
    if (arrived == 0) return Status(Code::closed, "the frame of a channel has not come");
    seconds.push_back(static_cast<double>(arrived - start) * 1e-9);
    poller.close(channel, Closing::now);
    (void)next_event(poller);  // it says that it has closed
  }
  return median(std::move(seconds));
}

Result<double> session_set_up(uint32_t count, const Config& config) {
  std::vector<double> seconds;
  for (uint32_t each = 0; each < count; ++each) {
    std::vector<ListeningSocket> listeners;
    std::vector<std::string> addresses;
    for (int node = 0; node < 2; ++node) {
      FARO_ASSIGN_OR_RETURN(auto listener, ListeningSocket::bind("127.0.0.1:0"));
      addresses.push_back(listener.address());
      listeners.push_back(std::move(listener));
    }
    std::vector<Config> configs;
    for (uint32_t node = 0; node < 2; ++node) {
      FARO_ASSIGN_OR_RETURN(auto made, node_config(config, node, addresses, 1));
      configs.push_back(std::move(made));
    }
    const base::Nanoseconds start = base::SystemClock::instance().now_ns();
    Result<std::unique_ptr<Session>> other = Status(Code::internal_error, "");
    std::thread opening([&] { other = Session::open(configs[1], std::move(listeners[1])); });
    const auto session = Session::open(configs[0], std::move(listeners[0]));
    opening.join();
    FARO_RETURN_IF_ERROR(session.status());
    FARO_RETURN_IF_ERROR(other.status());
    seconds.push_back(seconds_since(start));
    std::thread closing([&] { (void)(*other)->close(); });
    (void)(*session)->close();
    closing.join();
  }
  return median(std::move(seconds));
}

}  // namespace

Status PeersJob::validate() const {
  if (peer_count >= kPeerProcesses && peer_count <= 65536 && idle_ms > 0) return Status::Ok();
  return base::error(Code::invalid_argument, "{} peers for {} ms: {} … 65536 are needed",
                     peer_count, idle_ms, kPeerProcesses);
}

Result<PeersFigures> run_idle_peers(const PeersJob& job, const Config& config) {
  FARO_RETURN_IF_ERROR(job.validate());
  Config each = config;
  if (each.get("liveness.timeout_ms").empty())
    FARO_RETURN_IF_ERROR(each.set("liveness.timeout_ms", 4000));
  ProcessGroupOptions options;
  options.process_count = 1 + kPeerProcesses;
  options.shared_bytes = sizeof(PeersArea);
  FARO_ASSIGN_OR_RETURN(auto group, ProcessGroup::create(options));
  FARO_RETURN_IF_ERROR(
      group.run([&](GroupMember& member) { return run_peers(job, member, each); }).status());
  return static_cast<const PeersArea*>(group.shared_area())->figures;
}

Result<SetUpFigures> run_set_ups(uint32_t count, const Config& config) {
  if (count == 0) return Status(Code::invalid_argument, "nothing to measure");
  SetUpFigures figures;
  FARO_ASSIGN_OR_RETURN(figures.channel_seconds, channel_set_up(count, config));
  FARO_ASSIGN_OR_RETURN(figures.session_seconds, session_set_up(count, config));
  figures.verified = true;
  return figures;
}

}  // namespace faro::bench
