// The Prometheus endpoint: what it answers, and that no scraper can harm it.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "counters/counter_file.h"
#include "faro/log.h"
#include "session/metrics_endpoint.h"
#include "support/session_cluster.h"
#include "transport/tcp/socket_address.h"

namespace faro::session {
namespace {

/// A connection to "127.0.0.1:port" whose reads give up after ten seconds.
base::UniqueFd connect_to(const std::string& address) {
  const transport::tcp::SocketAddress to = transport::tcp::resolve(address).value().front();
  base::UniqueFd socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{10, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(socket.get(), to.get(), to.length) != 0) socket.reset();
  return socket;
}

void say(const base::UniqueFd& socket, const std::string& text) {
  EXPECT_EQ(send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

std::string rest_of(const base::UniqueFd& socket) {
  std::string all;
  char bytes[4096];
  for (ssize_t got; (got = recv(socket.get(), bytes, sizeof bytes, 0)) > 0;)
    all.append(bytes, static_cast<size_t>(got));
  return all;
}

std::string ask(const std::string& address, const std::string& request) {
  const base::UniqueFd socket = connect_to(address);
  EXPECT_TRUE(socket.valid());
  say(socket, request);
  return rest_of(socket);
}

std::string scrape(const std::string& address) {
  return ask(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

class MetricsEndpointTest : public testing::Test {
 protected:
  MetricsEndpointTest() {
    counters::Shape shape;
    shape.cluster = "a \"quoted\" name";
    shape.node = 1;
    shape.workers_per_node = {2, 2};
    shape.rings_per_lane = 2;
    counters_ = std::move(*counters::CounterFile::make(shape, "", 1));
    for (uint32_t node = 0; node < 2; ++node) {
      counters::Peer peer;
      peer.first_worker = 2 * node;
      peer.worker_count = 2;
      peer.transport = {'s', 'h', 'm'};
      counters_->set_peer(node, peer);
    }
    auto endpoint = MetricsEndpoint::start("127.0.0.1:0", counters_->memory());
    EXPECT_TRUE(test::is_ok(endpoint));
    endpoint_ = std::move(*endpoint);
  }
  const std::string& address() { return endpoint_->address(); }
  void expect_in(const std::string& line, const std::string& text) {
    test::expect_contains(text, line + "\n");
  }

  std::unique_ptr<counters::CounterFile> counters_;
  std::unique_ptr<MetricsEndpoint> endpoint_;
};

TEST_F(MetricsEndpointTest, answers_with_the_counters_of_the_moment) {
  counters::count(counters_->worker(1).rows_sent, 17);
  counters::count(counters_->worker(1).blocked_ns, 1'500'000'000);
  counters::count(counters_->outgoing(0, 0, 0).bytes_sent, 100);
  counters::count(counters_->outgoing(1, 1, 1).bytes_sent, 20);
  counters::count(counters_->outgoing(1, 2, 1).bytes_sent, 3);
  const std::string text = scrape(address());
  EXPECT_EQ(text.rfind("HTTP/1.1 200 OK\r\n", 0), 0u) << text;
  const std::string node = "{cluster=\"a \\\"quoted\\\" name\",node=\"1\"";
  expect_in("# TYPE faro_worker_rows_sent_total counter", text);
  expect_in("faro_worker_rows_sent_total" + node + ",worker=\"3\"} 17", text);
  expect_in("faro_worker_blocked_seconds_total" + node + ",worker=\"3\"} 1.500000000", text);
  expect_in("faro_link_sent_bytes_total" + node + ",peer=\"0\",transport=\"shm\"} 120", text);
  expect_in("# TYPE faro_overflow_memory_bytes gauge", text);
  counters::count(counters_->worker(1).rows_sent);
  expect_in("faro_worker_rows_sent_total" + node + ",worker=\"3\"} 18", scrape(address()));
}

// The rules of the text format that scrapers insist on.
TEST_F(MetricsEndpointTest, keeps_to_the_format) {
  std::string text = scrape(address());
  text.erase(0, text.find("\r\n\r\n") + 4);
  const std::regex series(R"(([a-z_]+)\{([a-z]+="([^"\\\n]|\\.)*",?)+\} [0-9.]+)");
  std::istringstream lines(text);
  std::set<std::string> families;
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line.rfind("# TYPE ", 0) == 0) {
      std::istringstream(line.substr(7)) >> family;
      EXPECT_TRUE(families.insert(family).second) << "twice: " << line;
      const bool total = family.ends_with("_total");
      EXPECT_TRUE(line.ends_with(total ? " counter" : " gauge")) << line;
    } else if (line.rfind("# HELP ", 0) != 0) {
      ASSERT_TRUE(std::regex_match(line, match, series)) << line;
      EXPECT_EQ(match[1], family) << "outside of its family: " << line;
    }
  }
  EXPECT_GT(families.size(), 30u);
}

TEST_F(MetricsEndpointTest, refuses_everything_else) {
  const auto status_of = [this](const std::string& request) {
    return ask(address(), request).substr(9, 3);
  };
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), "404");
  EXPECT_EQ(status_of("GET /metrics/../etc HTTP/1.1\r\n\r\n"), "404");
  EXPECT_EQ(status_of("POST /metrics HTTP/1.1\r\n\r\n"), "405");
  EXPECT_EQ(status_of("\r\n\r\n"), "400");
  EXPECT_EQ(status_of("GET /metrics\r\n\r\n"), "400");
  EXPECT_EQ(status_of("GET /metrics HTTP/1.1\r\nX: " + std::string(8192, 'x')), "431");
  EXPECT_EQ(status_of("GET /metrics?name[]=up HTTP/1.0\r\n\r\n"), "200");
}

TEST_F(MetricsEndpointTest, takes_a_request_in_pieces) {
  const base::UniqueFd socket = connect_to(address());
  for (const char* piece : {"GE", "T /metr", "ics HTTP/1.1\r\n", "\r", "\n"}) say(socket, piece);
  EXPECT_EQ(rest_of(socket).rfind("HTTP/1.1 200", 0), 0u);
}

TEST_F(MetricsEndpointTest, answers_others_while_many_say_nothing_or_read_nothing) {
  std::vector<base::UniqueFd> silent;
  for (int i = 0; i < 50; ++i) {
    silent.push_back(connect_to(address()));
    ASSERT_TRUE(silent.back().valid());
    if (i % 2 == 0) say(silent.back(), "GET /metrics HTTP/1.1\r\n\r\n");
  }
  EXPECT_EQ(scrape(address()).rfind("HTTP/1.1 200", 0), 0u);
  EXPECT_EQ(rest_of(silent[1]), "") << "the oldest was dropped, without an answer";
}

TEST_F(MetricsEndpointTest, ends_with_connections_open) {
  const base::UniqueFd silent = connect_to(address());
  const std::string at = address();
  (void)scrape(at);
  endpoint_.reset();
  EXPECT_EQ(rest_of(silent), "");
  EXPECT_FALSE(connect_to(at).valid()) << "nobody listens any more";
}

TEST_F(MetricsEndpointTest, is_refused_at_an_address_that_others_reach) {
  test::expect_error(MetricsEndpoint::start("0.0.0.0:0", counters_->memory()).status(),
                     Code::config_invalid, {"metrics.listen = 0.0.0.0:0"});
}

TEST_F(MetricsEndpointTest, is_refused_at_an_address_that_is_taken) {
  EXPECT_EQ(MetricsEndpoint::start(address(), counters_->memory()).status().code(),
            Code::address_in_use);
}

TEST(SessionMetrics, are_at_the_address_that_the_log_names_until_close) {
  std::mutex mutex;
  std::string address;
  set_log_level(LogLevel::info);
  set_log_sink([&](LogLevel, std::string_view line) {
    const size_t at = line.find("http://");
    if (at == std::string_view::npos) return;
    std::lock_guard lock(mutex);
    address = line.substr(at + 7, line.rfind('/') - at - 7);
  });
  {
    test::SessionCluster cluster(1, {{"cluster.id", "faro"},
                                     {"metrics.listen", "127.0.0.1:0"},
                                     {"counters.folder", ""},
                                     {"cluster.workers", "2"}});
    ASSERT_TRUE(test::is_ok(cluster.status()));
    const std::string text = scrape(address);
    test::expect_contains(text, "faro_open{cluster=\"faro\",node=\"0\"} 1\n");
    test::expect_contains(text,
                          "faro_worker_waits_total{cluster=\"faro\",node=\"0\",worker=\"1\"} 0\n");
  }
  set_log_sink(nullptr);
  set_log_level(LogLevel::warning);
  EXPECT_FALSE(connect_to(address).valid());
}

}  // namespace
}  // namespace faro::session
