// A member that turns hostile once it has joined, as a process of its own: it writes nonsense where it may
// write, says what is not true, floods, and holds what it was sent. Its victim and an innocent third node go
// on with their queries, and whoever is lied to says whose fault it was, and which.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "contract/frames.h"
#include "faro/log.h"
#include "links/listening_socket.h"
#include "links/socket_network.h"
#include "node/session_access.h"
#include "ring/futex_waiter.h"
#include "shuffle/query/query.h"
#include "support/child.h"
#include "support/query_end.h"
#include "support/raw_peer.h"
#include "support/session_cluster.h"
#include "support/test_network.h"
#include "support/watchdog.h"
#include "system/node_processes.h"
#include "transport/tcp/socket_address.h"
#include "wire/preamble.h"
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
  own_memory,           // shm: every byte of the segments it shares, while they are read
  data_connections,     // tcp: nonsense into them
  control_connections,  // the same
  frames,       // frames that make no sense: FINISH twice, slots that are not open, other queries
  lies,         // control messages about queries that are not its own
  made_up,      // queries that never began
  malformed,    // control messages that are none
  flood,        // control messages that are answered, without end; it never reads the answers
  early_flood,  // control messages before the others' open is complete
  silence,      // takes rows and never gives them back, never sends, never ends
};
struct Case {
  std::string name;
  std::string transport;
  Attack attack;
  Code code;  // of the link's end; ok: a member may do it, and its links stand
  std::vector<std::string> causes;  // with one of these begins what the others say of it
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> made;
    const auto add = [&](const std::string& transport, const std::string& name, Attack attack,
                         Code code = Code::ok, std::vector<std::string> causes = {}) {
      made.push_back({transport + "_" + name, transport, attack, code, std::move(causes)});
    };
    // What it overwrites, while others write there too, may be right for a ring and not for a worker.
    add("shm", "own_memory", Attack::own_memory, Code::protocol_error,
        {"shared memory, ", "worker 2: "});
    // The numbers that are drawn decide which.
    add("tcp", "data_connections", Attack::data_connections, Code::protocol_error,
        {"WRITTEN of ring ", "READ of ring "});
    add("tcp", "control_connections", Attack::control_connections, Code::protocol_error,
        {"a control message of "});
    for (const std::string transport : {"shm", "tcp"}) {
      // Which comes first depends on how far the query of the others is.
      add(transport, "frames", Attack::frames, Code::protocol_error,
          {"it opens a shuffle of query 0:", "worker 2: "});
      add(transport, "lies", Attack::lies);
      add(transport, "made_up", Attack::made_up);
      add(transport, "malformed", Attack::malformed, Code::protocol_error,
          {"a malformed query message of 1000 bytes"});
      add(transport, "flood", Attack::flood, Code::peer_lost,
          {"the peer does not take control messages: "});
      add(transport, "early_flood", Attack::early_flood, Code::protocol_error,
          {"over 4194304 bytes of query messages before this node was open"});
      add(transport, "silence", Attack::silence);
    }
    return made;
  }();
  return all;
}

// --- what is hostile

/// Threads: one.
class HostileMember {
 public:
  HostileMember(Session& session, const QueryId& all, const QueryId& foreign,
                const Child::Side& test)
      : session_(session),
        membership_(SessionAccess::core(session).membership()),
        all_(all),
        foreign_(foreign),
        test_(test) {}

  [[noreturn]] void attack(Attack how) {
    switch (how) {
      case Attack::own_memory:
        write_memory();
      case Attack::data_connections:
        write_sockets(connections(false));
      case Attack::control_connections:
        write_sockets(connections(true));
      case Attack::frames:
        for (;;) send_frames();
      case Attack::lies:
        for (int i = 0; i < kTold; i += 2) {
          lie(foreign_);
          lie(all_);
        }
        break;
      case Attack::made_up:
        for (int i = 0; i < kTold; ++i) make_up();
        break;
      case Attack::malformed:
        tell_all(std::vector<std::byte>(1000, std::byte{0x5A}));
        break;
      case Attack::flood:
      case Attack::early_flood:
        flood_from_network_thread();
      case Attack::silence:
        be_silent();
    }
    for (;;) pause();
  }

 private:
  // Messages to each node: more than its quota of unverified queries, and less than the control connection's
  // queue in this process holds, which must not be what ends the link.
  static constexpr int kTold = 20'000;
  // What two sockets hold, and several times what is taken of a member early.
  static constexpr size_t kMuch = 48 << 20;

  struct Connection {
    int fd;
    uint32_t peer;
  };

  uint64_t draw() { return seed_ = mix(seed_); }

  // The segments of its links, as an attacker in this process would find them. Nobody else in it uses them.
  [[noreturn]] void write_memory() {
    // One victim is faster than the other: its segments stay here, or this process would crash.
    const std::array links = {membership_.link(0), membership_.link(1)};
    std::vector<std::span<unsigned char>> memory;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long first = 0;
      unsigned long last = 0;
      if (line.find("memfd:faro-") != std::string::npos &&
          std::sscanf(line.c_str(), "%lx-%lx", &first, &last) == 2)
        memory.emplace_back(reinterpret_cast<unsigned char*>(first), last - first);
    }
    for (;;) {
      const std::span<unsigned char> target = memory[draw() % memory.size()];
      const uint64_t value = draw() % 3 == 0 ? draw() : draw() % 256 * 64;  // also nearly right
      const size_t words = draw() % 2 == 0 ? 512 : target.size() / 8;       // positions stand first
      std::memcpy(&target[draw() % words * 8], &value, 8);
    }
  }

  // With the other nodes, which this one has dialled: over a data connection it has said no more
  // than its preamble, as long as it sends no rows.
  std::vector<Connection> connections(bool control) const {
    std::vector<Connection> found;
    for (int fd = 3; fd < 64; ++fd) {
      transport::tcp::SocketAddress to;
      to.length = sizeof to.storage;
      if (getpeername(fd, reinterpret_cast<sockaddr*>(&to.storage), &to.length) != 0) continue;
      tcp_info info{};
      socklen_t size = sizeof info;
      if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
      for (const uint32_t peer : {0u, 1u}) {
        const bool said_more = info.tcpi_bytes_acked > 1 + sizeof(wire::Preamble);  // 1: SYN
        const std::string address = fmt::format("({})", transport::tcp::to_string(to));
        if (said_more == control && membership_.nodes()[peer].name.ends_with(address))
          found.push_back({fd, peer});
      }
    }
    if (found.size() != 2) std::abort();
    return found;
  }

  [[noreturn]] void write_sockets(const std::vector<Connection>& targets) {
    for (;;) {
      for (const Connection& target : targets) {
        const std::array<uint64_t, 2> words = {
            draw() % 4 == 0 ? draw() : draw() % 2 << 31 | 64ull << 32, draw() % 4096};
        (void)send(target.fd, words.data(), sizeof words, MSG_NOSIGNAL | MSG_DONTWAIT);
      }
    }
  }

  // Its library must neither read the answers nor send anything in between, nor judge anyone: its
  // network thread is led into the flood by a line of its log, about somebody who knocks.
  [[noreturn]] void flood_from_network_thread() {
    set_log_sink([this](LogLevel, std::string_view) { flood(connections(true)); });
    const std::string& name = membership_.nodes()[kHostile].name;
    const size_t host = name.find('(') + 1;
    RawPeer outsider(name.substr(host, name.size() - host - 1));
    outsider.send_text("neither TLS nor a preamble");
    for (;;) pause();
  }

  // Asks the issuers of queries that never began what has become of them. Says so once more has been sent than
  // sockets hold.
  [[noreturn]] void flood(const std::vector<Connection>& targets) {
    struct Stream {
      int fd;
      std::vector<std::byte> bytes = {};  // whole messages, again and again
      size_t at = 0;
      size_t sent = 0;
    };
    std::vector<Stream> streams;
    for (const auto& [fd, peer] : targets) {
      wire::QueryMessage question;
      question.kind = wire::QueryMessageKind::fail;
      question.query =
          shuffle::to_key(QueryId{1u << 30, membership_.peers().incarnation(peer), peer});
      question.first = kHostile;
      question.second = static_cast<int32_t>(Code::query_failed);
      const wire::ControlMessage message =
          wire::encode_payload(wire::ControlKind::application, wire::encode(question));
      const auto length = static_cast<uint32_t>(message.size());
      const auto prefix = std::as_bytes(std::span(&length, 1));
      Stream& stream = streams.emplace_back(Stream{fd});
      for (int i = 0; i < 1000; ++i) {
        stream.bytes.insert(stream.bytes.end(), prefix.begin(), prefix.end());
        stream.bytes.insert(stream.bytes.end(), message.begin(), message.end());
      }
    }
    for (bool said = false;;) {
      for (Stream& stream : streams) {
        const auto left = std::span(stream.bytes).subspan(stream.at);
        const ssize_t put = send(stream.fd, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put <= 0) continue;
        stream.sent += static_cast<size_t>(put);
        stream.at = stream.sent % stream.bytes.size();
      }
      const auto much = [](const Stream& stream) { return stream.sent > kMuch; };
      if (!said && std::all_of(streams.begin(), streams.end(), much)) {
        said = true;
        test_.say("flooded");
      }
      std::this_thread::yield();
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
                                   static_cast<uint32_t>(100 + step_ % 30),
                                   8,
                                   0,
                                   1,
                                   1};
      const wire::FinishPayload finish{0};
      send_frame(peer, wire::FrameKind::open, slot, std::as_bytes(std::span(&open, 1)));
      for (uint64_t times = step_ < 20 ? 1 : draw() % 3; times > 0; --times)
        send_frame(peer, wire::FrameKind::finish, slot, std::as_bytes(std::span(&finish, 1)));
    }
    ++step_;
  }

  void tell_all(const std::vector<std::byte>& bytes) {
    for (const uint32_t peer : {0u, 1u}) membership_.send(peer, bytes);
    // Spread over the queries of the others.
    if (++told_ % 128 == 0) std::this_thread::sleep_for(milliseconds(1));
  }

  void lie(const QueryId& id) {
    wire::QueryMessage message;
    message.kind = static_cast<wire::QueryMessageKind>(1 + draw() % 6);
    message.query = shuffle::to_key(id);
    message.first = static_cast<uint32_t>(draw() % 4);
    message.second = message.kind == wire::QueryMessageKind::stop
                         ? static_cast<int32_t>(kHostile)
                         : static_cast<int32_t>(Code::query_failed);
    message.number = UINT64_MAX;
    message.text = "a lie";
    tell_all(wire::encode(message));
  }

  // Makes up queries of its own, so that they are its to speak of.
  void make_up() {
    wire::QueryMessage message;
    message.kind = draw() % 2 == 0 ? wire::QueryMessageKind::fail : wire::QueryMessageKind::stop;
    message.query = shuffle::to_key(
        QueryId{draw() | 1u << 30, membership_.peers().incarnation(kHostile), kHostile});
    message.second = message.kind == wire::QueryMessageKind::stop
                         ? static_cast<int32_t>(kHostile)
                         : static_cast<int32_t>(Code::query_failed);
    tell_all(wire::encode(message));
  }

  [[noreturn]] void be_silent() {
    Worker& worker = session_.worker(0);
    Result<Shuffle> shuffle = worker.open_shuffle({all_, 0, 8, {0, 1, 2}, {0, 1, 2}});
    Batch held;
    if (shuffle.ok()) (void)shuffle->receiver()->receive(held);
    for (;;) pause();
  }

  Session& session_;
  session::Membership& membership_;
  const QueryId all_;
  const QueryId foreign_;
  const Child::Side& test_;
  uint64_t seed_ = 1;
  uint64_t step_ = 0;
  uint64_t told_ = 0;
};

// --- the others

class SoundNode {
 public:
  SoundNode(Session& session, const Case& attacked, const Child::Side& test)
      : session_(session), case_(attacked), test_(test) {}

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
    if (case_.code != Code::ok) {
      const auto lost = [this] { return !session_.has_node(kHostile); };
      const auto deadline = Clock::now() + seconds(20);
      while (!lost() && Clock::now() < deadline) {
        if (with.ok()) use_a_little(*with);
        (void)worker().wait_until(lost, Wait::at_most(milliseconds(5)));
      }
    }
    // What it keeps waiting ends when the engine wants it to.
    (void)session_.cancel_query(all, "enough");
    if (with.ok()) with->close();
    Status cause;
    if (end_query(worker(), all, cause, Wait::at_most(seconds(20))) != Outcome::failed)
      return complain("the query of all did not fail: " + cause.to_string());
    if (session_.metrics().overflow_memory_bytes != 0) return complain("overflow is left");
    if (const std::string wrong = judge_loss(); !wrong.empty()) return complain(wrong);
    test_.say("well");
    test_.hear();  // nobody leaves before both are through
    worker().release_ownership();
    (void)session_.close();
    return 0;
  }

 private:
  Worker& worker() { return session_.worker(0); }
  int complain(const std::string& what) {
    test_.say("complaint: " + what);
    return 1;
  }

  // Empty if the hostile node is lost as it should be, or is not. A query that would contain it says why.
  std::string judge_loss() {
    if (session_.has_node(kHostile))
      return case_.code == Code::ok ? "" : "the link to the hostile node stands";
    const QueryId id = session_.begin_query();
    (void)worker().open_shuffle({id, 0, 8, {0, 1, 2}, {0, 1, 2}});
    Status loss;
    if (end_query(worker(), id, loss, Wait::at_most(seconds(20))) != Outcome::failed)
      return "a query with a lost node did not fail";
    const std::string_view text = loss.message();
    const std::string_view says = " is lost: ";
    const size_t at = text.find(says);
    const bool is_right =
        loss.code() == case_.code && text.starts_with("node 2 (") && at != text.npos &&
        std::any_of(case_.causes.begin(), case_.causes.end(), [&](const std::string& cause) {
          return text.substr(at + says.size()).starts_with(cause);
        });
    return is_right ? "" : "the hostile node is lost: " + loss.to_string();
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
        if (shuffle->sender()->send(receiver, std::as_bytes(std::span(&i, 1))) != Outcome::done)
          return "send: " + shuffle->status().to_string();
      }
      if (shuffle->receiver()->receive(batch, Wait::none()) == Outcome::done) take(batch);
      batch = Batch();
    }
    if (shuffle->sender()->finish() != Outcome::done)
      return "finish: " + shuffle->status().to_string();
    Outcome outcome;
    while ((outcome = shuffle->receiver()->receive(batch)) == Outcome::done) take(batch);
    if (outcome != Outcome::end_of_stream) return "take: " + shuffle->status().to_string();
    shuffle->close();
    if (rows != 2 * kRows || sum != expected) return fmt::format("{} rows, wrong sum", rows);
    Status cause;
    if (end_query(worker(), id, cause, Wait::at_most(seconds(20))) != Outcome::done)
      return "end: " + cause.to_string();
    return "";
  }

  // What the hostile node gets to see, and what it sends: anything, but it ends.
  void use_a_little(Shuffle& shuffle) {
    const uint64_t row = 7;
    for (uint32_t i = 0; i < 100; ++i) {
      (void)shuffle.sender()->send(i % 3, std::as_bytes(std::span(&row, 1)), Wait::none());
      Batch batch;
      if (shuffle.receiver()->receive(batch, Wait::none()) != Outcome::done) continue;
      uint64_t sum = 0;
      for (const std::span<const std::byte> bytes : batch.each_row())
        for (const std::byte b : bytes) sum += static_cast<uint64_t>(b);
      read_bytes_ = read_bytes_ + sum;
    }
    (void)shuffle.sender()->flush();
  }

  Session& session_;
  const Case& case_;
  const Child::Side& test_;
  volatile uint64_t read_bytes_ = 0;  // they are really read
};

// --- the three together

/// A session whose open is complete once it is told to be; its links stand before.
Result<std::unique_ptr<Session>> open_late(const Config& config, ListeningSocket listener,
                                           const Child::Side& test) {
  FARO_ASSIGN_OR_RETURN(base::Settings settings, base::Settings::resolve(config));
  const std::string address = listener.address();
  FARO_ASSIGN_OR_RETURN(
      auto network,
      links::SocketNetwork::create(
          settings,
          links::ListeningSocket::adopt(base::UniqueFd(SessionAccess::release(listener)), address),
          address));
  node::NodeEnvironment environment;
  environment.network = std::move(network);
  environment.make_waiter = [&test, told = false]() mutable {
    if (!std::exchange(told, true)) (void)test.hear();
    return std::make_unique<ring::FutexWaiter>();
  };
  return SessionAccess::open(settings, std::move(environment));
}

int run_node(uint32_t number, const std::string& addresses, ListeningSocket listener,
             const Case& attacked, const Child::Side& test) {
  const Result<Config> config = config_of(number, addresses,
                                          small_rings({{"transport", attacked.transport},
                                                       {"liveness.timeout_ms", "5000"},
                                                       {"close.timeout_ms", "1000"}}));
  if (!config.ok()) return 1;
  const bool is_early = attacked.attack == Attack::early_flood;
  Result<std::unique_ptr<Session>> session = is_early && number != kHostile
                                                 ? open_late(*config, std::move(listener), test)
                                                 : Session::open(*config, std::move(listener));
  if (!session.ok()) {
    test.say("complaint: " + session.status().to_string());
    return 1;
  }
  if (is_early && number == kHostile)
    HostileMember(**session, {}, {}, test).attack(attacked.attack);
  test.say("open");
  (void)test.hear();  // all are
  if (number == 0) {
    for (int q = 0; q <= kQueries; ++q) test.say(line_of((*session)->begin_query()));
  }
  std::vector<QueryId> queries;
  for (int q = 0; q <= kQueries; ++q) queries.push_back(query_in(test.hear()));
  const QueryId all = queries.back();
  queries.pop_back();
  if (number == kHostile)
    HostileMember(**session, all, queries.back(), test).attack(attacked.attack);
  const auto declare = [&](const QueryId& id) {
    return (*session)->declare_query(id, {0, 1}).ok();
  };
  for (const QueryId& id : queries) {
    if (!declare(id)) return 1;
  }
  return SoundNode(**session, attacked, test).run(queries, all);
}

class HostileMemberTest : public testing::TestWithParam<size_t> {};

TEST_P(HostileMemberTest, disturbs_nobody_else_and_is_named) {
  const Case& attacked = cases()[GetParam()];
  BoundNodes bound(3);
  std::vector<std::unique_ptr<Child>> nodes;
  for (uint32_t n = 0; n < 3; ++n) {
    nodes.push_back(std::make_unique<Child>([&, n](const Child::Side& test) {
      return run_node(n, bound.addresses, std::move(bound.listeners[n]), attacked, test);
    }));
  }
  const auto hear = [&](uint32_t n) { return nodes[n]->hear().value_or("(it has ended)"); };
  const std::vector<uint32_t> sound = {0, 1};
  if (attacked.attack == Attack::early_flood) {
    ASSERT_EQ(hear(kHostile), "flooded");
    for (const uint32_t n : sound) nodes[n]->say("be open");
  } else {
    ASSERT_EQ(hear(kHostile), "open");
  }
  for (const uint32_t n : sound) ASSERT_EQ(hear(n), "open");
  for (const auto& node : nodes) node->say("all are");
  for (int q = 0; q <= kQueries; ++q) {
    const std::string id = hear(0);
    for (const auto& node : nodes) node->say(id);
  }
  for (const uint32_t n : sound) {
    ASSERT_EQ(hear(n), "well") << "node " << n;
    // Otherwise all that the others had to notice was its end.
    ASSERT_FALSE(nodes[kHostile]->has_ended());
  }
  for (const uint32_t n : sound) {
    nodes[n]->say("go");
    EXPECT_EQ(nodes[n]->wait_for_end(), 0) << "node " << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Attacks, HostileMemberTest, testing::Range<size_t>(0, cases().size()),
                         [](const auto& param) { return cases()[param.param].name; });

}  // namespace
}  // namespace faro::test
