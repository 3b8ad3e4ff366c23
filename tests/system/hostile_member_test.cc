// A member that turns hostile once it has joined, as a process of its own: it writes nonsense where it may
// write, says what is not true, floods, and holds what it was sent. Its victim and an innocent third node go
// on with their queries, and whoever is lied to says whose fault it was.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/session_access.h"
#include "contract/frames.h"
#include "faro/log.h"
#include "shuffle/query.h"
#include "support/child.h"
#include "support/session_cluster.h"
#include "support/test_network.h"
#include "support/watchdog.h"
#include "wire/query_message.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kHostile = 2;  // of three nodes with a worker each
constexpr int kQueries = 4;       // of the other two
constexpr uint32_t kRows = 20'000;
constexpr seconds kLimit{50};

enum class Attack {
  own_memory,        // shm: every byte of the segments it shares, while they are read
  data_connections,  // tcp: nonsense into its sockets
  frames,   // frames that make no sense: FINISH twice, slots that are not open, other queries
  lies,     // control messages about queries that are not its own
  made_up,  // queries that never began, without end
  flood,    // control messages that are none
  silence,  // takes rows and never gives them back, never sends, never ends
};
struct Case {
  std::string name;
  std::string transport;
  Attack attack;
  bool ends_link;  // or is something that a member may do
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> made;
    for (const std::string transport : {"shm", "tcp"}) {
      const bool shm = transport == "shm";
      made.push_back({shm ? "shm_own_memory" : "tcp_data_connections", transport,
                      shm ? Attack::own_memory : Attack::data_connections, true});
      made.push_back({transport + "_frames", transport, Attack::frames, true});
      made.push_back({transport + "_lies", transport, Attack::lies, false});
      made.push_back({transport + "_made_up", transport, Attack::made_up, true});
      made.push_back({transport + "_flood", transport, Attack::flood, true});
      made.push_back({transport + "_silence", transport, Attack::silence, false});
    }
    return made;
  }();
  return all;
}

// --- what is hostile

/// Threads: one.
class HostileMember {
 public:
  HostileMember(Session& session, const QueryId& all, const QueryId& foreign)
      : session_(session),
        membership_(SessionAccess::core(session).membership()),
        all_(all),
        foreign_(foreign) {}

  [[noreturn]] void attack(Attack how) {
    if (how == Attack::silence) be_silent();
    for (;;) {
      switch (how) {
        case Attack::own_memory:
          write_memory();
          break;
        case Attack::data_connections:
          write_sockets();
          break;
        case Attack::frames:
          send_frames();
          break;
        case Attack::lies:
          lie(foreign_);
          lie(all_);
          std::this_thread::yield();
          break;
        case Attack::made_up:
          lie({draw() | 1u << 30, membership_.nodes()[draw() % 3].incarnation,
               static_cast<uint32_t>(draw() % 3), 0});
          break;
        case Attack::flood:
        case Attack::silence:
          tell_all(std::vector<std::byte>(1000, std::byte{0x5A}));
          break;
      }
    }
  }

 private:
  uint64_t draw() { return seed_ = mix(seed_); }

  // The segments of its links, as an attacker in this process would find them.
  void write_memory() {
    if (memory_.empty()) {
      std::ifstream maps("/proc/self/maps");
      for (std::string line; std::getline(maps, line);) {
        unsigned long first = 0;
        unsigned long last = 0;
        if (line.find("memfd:faro-") != std::string::npos &&
            std::sscanf(line.c_str(), "%lx-%lx", &first, &last) == 2)
          memory_.emplace_back(reinterpret_cast<unsigned char*>(first), last - first);
      }
    }
    const std::span<unsigned char> target = memory_[draw() % memory_.size()];
    const uint64_t value = draw() % 3 == 0 ? draw() : draw() % 256 * 64;  // also nearly right
    const size_t words = draw() % 2 == 0 ? 512 : target.size() / 8;       // positions stand first
    std::memcpy(&target[draw() % words * 8], &value, 8);
  }

  void write_sockets() {
    for (int fd = 3; fd < 64; ++fd) {
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
      if (peer.sin_family != AF_INET) continue;
      const std::array<uint64_t, 2> words = {
          draw() % 4 == 0 ? draw() : draw() % 2 << 31 | 64ull << 32, draw() % 4096};
      (void)send(fd, words.data(), sizeof words, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }

  bool send_frame(uint32_t peer, wire::FrameKind kind, uint16_t slot,
                  std::span<const std::byte> payload) {
    const std::shared_ptr<transport::DataLink> link = membership_.link(peer);
    transport::Outgoing& ring = link->outgoing(0);
    const auto bytes = static_cast<uint32_t>(sizeof(wire::FrameHeader) + payload.size());
    const transport::Claim claim = ring.claim(bytes, bytes);
    if (claim.bytes == 0) return false;
    wire::FrameHeader header{};
    header.length = bytes;
    header.kind = kind;
    header.slot = slot;
    header.row_count = kind == wire::FrameKind::data ? 1 : 0;
    std::memcpy(claim.data, &header, sizeof header);
    if (!payload.empty()) std::memcpy(claim.data + sizeof header, payload.data(), payload.size());
    ring.commit(bytes);
    ring.post();
    return true;
  }

  // A query of its own for a while, then one of the others, then what no open shuffle can mean.
  void send_frames() {
    for (const uint32_t peer : {0u, 1u}) {
      const auto slot = static_cast<uint16_t>(draw() % 4);
      const wire::OpenPayload open{shuffle::to_key(draw() % 8 == 0 ? foreign_ : all_),
                                   static_cast<uint32_t>(100 + step_ % 30), 8};
      const wire::FinishPayload finish{0};
      send_frame(peer, wire::FrameKind::open, slot, std::as_bytes(std::span(&open, 1)));
      for (uint64_t times = step_ < 20 ? 1 : draw() % 3; times > 0; --times)
        send_frame(peer, wire::FrameKind::finish, slot, std::as_bytes(std::span(&finish, 1)));
    }
    ++step_;
  }

  void tell_all(const std::vector<std::byte>& bytes) {
    for (const uint32_t peer : {0u, 1u}) membership_.send(peer, bytes);
    // Paced, or the queue of its own node grows faster than a socket takes it.
    if (++told_ % 1024 == 0) std::this_thread::sleep_for(milliseconds(1));
  }

  void lie(const QueryId& id) {
    wire::QueryMessage message;
    message.kind = static_cast<wire::QueryMessageKind>(1 + draw() % 5);
    message.query = shuffle::to_key(id);
    message.first = static_cast<uint32_t>(draw() % 4);
    message.second = message.kind == wire::QueryMessageKind::stop
                         ? static_cast<int32_t>(kHostile)
                         : static_cast<int32_t>(Code::query_failed);
    message.low_water = UINT64_MAX;
    message.text = "a lie";
    tell_all(wire::encode(message));
  }

  [[noreturn]] void be_silent() {
    Worker& worker = session_.worker(0);
    Result<Shuffle> shuffle = worker.open_shuffle({all_, 0, 8, {0, 1, 2}, {0, 1, 2}});
    Batch held;
    if (shuffle.ok()) (void)shuffle->take(held);
    for (;;) pause();
  }

  Session& session_;
  session::Membership& membership_;
  const QueryId all_;
  const QueryId foreign_;
  uint64_t seed_ = 1;
  uint64_t step_ = 0;
  uint64_t told_ = 0;
  std::vector<std::span<unsigned char>> memory_;
};

// --- the others

/// The first line of the log that says that the hostile node is lost.
class LossLog {
 public:
  LossLog() {
    set_log_sink([this](LogLevel, std::string_view line) {
      if (line.find("node 2 (") == std::string_view::npos ||
          line.find(" is lost: ") == std::string_view::npos)
        return;
      const std::lock_guard lock(mutex_);
      if (line_.empty()) line_ = line;
    });
  }
  ~LossLog() { set_log_sink({}); }
  std::string line() {
    const std::lock_guard lock(mutex_);
    return line_;
  }

 private:
  std::mutex mutex_;
  std::string line_;
};

class SoundNode {
 public:
  SoundNode(Session& session, LossLog& log, const Case& attacked, const Child::Side& test)
      : session_(session), log_(log), case_(attacked), test_(test) {}

  int run(const std::vector<QueryId>& queries, const QueryId& all) {
    Watchdog watchdog(kLimit, [this] {
      return fmt::format("node {}, {} queries run", session_.node(),
                         session_.metrics().queries_running);
    });
    Result<Shuffle> with = worker().open_shuffle({all, 0, 8, {0, 1, 2}, {0, 1, 2}});
    for (const QueryId& id : queries) {
      if (const std::string wrong = shuffle_without(id); !wrong.empty()) return complain(wrong);
      if (with.ok()) use_a_little(*with);
    }
    if (case_.ends_link) {
      const auto lost = [this] { return !log_.line().empty(); };
      const auto deadline = Clock::now() + seconds(20);
      while (!lost() && Clock::now() < deadline) {
        if (with.ok()) use_a_little(*with);
        (void)worker().wait_until(lost, milliseconds(5));
      }
      if (!lost()) return complain("the link to the hostile node stands");
    }
    // What it keeps waiting ends when the engine wants it to.
    session_.cancel_query(all, "enough");
    if (with.ok()) with->close();
    Status cause;
    if (worker().end_query(all, &cause, seconds(20)) != Outcome::failed)
      return complain("the query of all did not fail: " + cause.to_string());
    if (session_.metrics().overflow_memory_bytes != 0) return complain("overflow is left");
    test_.say("well: " + log_.line());
    test_.hear();  // nobody leaves before both are through
    worker().hand_over();
    (void)session_.close();
    return 0;
  }

 private:
  Worker& worker() { return session_.worker(0); }
  int complain(const std::string& what) {
    test_.say("complaint: " + what + "; lost: " + log_.line());
    return 1;
  }

  // Rows of this node and the other sound one, both ways, all of them the right ones.
  std::string shuffle_without(const QueryId& id) {
    Result<Shuffle> shuffle = worker().open_shuffle({id, 0, 8, {0, 1}, {0, 1}});
    if (!shuffle.ok()) return shuffle.status().to_string();
    uint64_t sum = 0;
    uint64_t rows = 0;
    const auto take = [&](const Batch& batch) {
      for (const std::span<const std::byte> row : batch.each_row()) {
        uint64_t value = 0;
        std::memcpy(&value, row.data(), sizeof value);
        sum += mix(value);
        ++rows;
      }
    };
    Batch batch;
    uint64_t expected = 0;
    for (uint64_t i = 0; i < kRows; ++i) {
      expected += 2 * mix(i);
      for (const uint32_t receiver : {0u, 1u}) {
        if (shuffle->send(receiver, std::as_bytes(std::span(&i, 1))) != Outcome::done)
          return "send: " + shuffle->status().to_string();
      }
      if (shuffle->try_poll(batch) == Outcome::done) take(batch);
      batch = Batch();
    }
    if (shuffle->finish() != Outcome::done) return "finish: " + shuffle->status().to_string();
    Outcome outcome;
    while ((outcome = shuffle->take(batch)) == Outcome::done) take(batch);
    if (outcome != Outcome::end_of_stream) return "take: " + shuffle->status().to_string();
    shuffle->close();
    if (rows != 2 * kRows || sum != expected) return fmt::format("{} rows, wrong sum", rows);
    Status cause;
    if (worker().end_query(id, &cause, seconds(20)) != Outcome::done)
      return "end: " + cause.to_string();
    return "";
  }

  // What the hostile node gets to see, and what it sends: anything, but it ends.
  void use_a_little(Shuffle& shuffle) {
    const uint64_t row = 7;
    for (uint32_t i = 0; i < 100; ++i) {
      (void)shuffle.try_send(i % 3, std::as_bytes(std::span(&row, 1)));
      Batch batch;
      if (shuffle.try_poll(batch) != Outcome::done) continue;
      uint64_t sum = 0;
      for (const std::span<const std::byte> bytes : batch.each_row())
        for (const std::byte b : bytes) sum += static_cast<uint64_t>(b);
      read_bytes_ = read_bytes_ + sum;
    }
    shuffle.flush();
  }

  Session& session_;
  LossLog& log_;
  const Case& case_;
  const Child::Side& test_;
  volatile uint64_t read_bytes_ = 0;  // they are really read
};

// --- the three together

std::string to_line(const QueryId& id) {
  return fmt::format("{} {} {}", id.counter, id.incarnation, id.issuer);
}
QueryId from_line(const std::string& line) {
  QueryId id;
  std::sscanf(line.c_str(), "%lu %lu %u", &id.counter, &id.incarnation, &id.issuer);
  return id;
}

int run_node(uint32_t number, const std::string& addresses, Listener listener, const Case& attacked,
             const Child::Side& test) {
  LossLog log;
  const Result<Config> config = config_of(number, addresses,
                                          small_rings({{"transport", attacked.transport},
                                                       {"liveness.timeout_ms", "5000"},
                                                       {"close.timeout_ms", "1000"}}));
  if (!config.ok()) return 1;
  Result<std::unique_ptr<Session>> session = Session::open(*config, std::move(listener));
  if (!session.ok()) {
    test.say("complaint: " + session.status().to_string());
    return 1;
  }
  test.say("open");
  (void)test.hear();  // all are
  if (number == 0) {
    for (int q = 0; q <= kQueries; ++q) test.say(to_line((*session)->begin_query()));
  }
  std::vector<QueryId> queries;
  for (int q = 0; q <= kQueries; ++q) queries.push_back(from_line(test.hear()));
  const QueryId all = queries.back();
  queries.pop_back();
  if (number == kHostile) HostileMember(**session, all, queries.back()).attack(attacked.attack);
  const auto declare = [&](const QueryId& id) {
    return (*session)->declare_query(id, {0, 1}).ok();
  };
  for (const QueryId& id : queries) {
    if (!declare(id)) return 1;
  }
  return SoundNode(**session, log, attacked, test).run(queries, all);
}

class HostileMemberTest : public testing::TestWithParam<size_t> {};

TEST_P(HostileMemberTest, disturbs_nobody_else_and_is_named) {
  const Case& attacked = cases()[GetParam()];
  std::vector<Listener> listeners;
  std::string addresses;
  for (uint32_t n = 0; n < 3; ++n) {
    Result<Listener> listener = Listener::bind(listen_address(n));
    ASSERT_TRUE(listener.ok());
    addresses += (n == 0 ? "" : ",") + listener->address();
    listeners.push_back(std::move(*listener));
  }
  std::vector<std::unique_ptr<Child>> nodes;
  for (uint32_t n = 0; n < 3; ++n) {
    nodes.push_back(std::make_unique<Child>([&, n](const Child::Side& test) {
      return run_node(n, addresses, std::move(listeners[n]), attacked, test);
    }));
  }
  const auto hear = [&](uint32_t n) { return nodes[n]->hear().value_or("(it has ended)"); };
  for (uint32_t n = 0; n < 3; ++n) ASSERT_EQ(hear(n), "open");
  for (const auto& node : nodes) node->say("all are");
  for (int q = 0; q <= kQueries; ++q) {
    const std::string id = hear(0);
    for (const auto& node : nodes) node->say(id);
  }
  for (const uint32_t n : {0u, 1u}) {
    const std::string told = hear(n);
    EXPECT_TRUE(told.starts_with("well: ")) << "node " << n << ": " << told;
    std::printf("node %u: %s\n", n, told.c_str());
  }
  for (const uint32_t n : {0u, 1u}) {
    nodes[n]->say("go");
    EXPECT_EQ(nodes[n]->wait_for_end(), 0) << "node " << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Attacks, HostileMemberTest, testing::Range<size_t>(0, cases().size()),
                         [](const auto& param) { return cases()[param.param].name; });

}  // namespace
}  // namespace faro::test
