// The Prometheus endpoint: what it answers, and that no scraper can harm it.
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <memory>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/return_if_error.h"
#include "base/unique_fd.h"
#include "counters/counter_file.h"
#include "counters/counter_view.h"
#include "counters/prometheus_text.h"
#include "faro/log.h"
#include "metrics/metrics_endpoint.h"
#include "support/certificates.h"
#include "support/endpoint_pair.h"
#include "support/log_lines.h"
#include "support/secret_file.h"
#include "support/session_cluster.h"
#include "transport/tcp/socket_address.h"

namespace faro::metrics {
namespace {

base::Settings without_tls() {
  base::Settings settings;
  settings.tls = "off";
  return settings;
}

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
    auto endpoint = start("127.0.0.1:0");
    EXPECT_TRUE(test::is_ok(endpoint));
    endpoint_ = std::move(*endpoint);
  }
  Result<std::unique_ptr<MetricsEndpoint>> start(const std::string& address,
                                                 const base::Settings& settings = without_tls()) {
    FARO_ASSIGN_OR_RETURN(ScrapeAccess access, ScrapeAccess::load(settings));
    FARO_ASSIGN_OR_RETURN(auto made, counters::CounterView::over(counters_->memory()));
    const std::shared_ptr<counters::CounterView> view = std::move(made);
    return MetricsEndpoint::start(address, std::move(access),
                                  [view] { return counters::prometheus_text(view->read()); });
  }
  /// At every address of the host, which other hosts reach; here it is asked at loopback.
  void start_for_all(const base::Settings& settings) {
    auto endpoint = start("0.0.0.0:0", settings);
    ASSERT_TRUE(test::is_ok(endpoint));
    endpoint_ = std::move(*endpoint);
  }
  std::string loopback_address() { return "127.0.0.1" + address().substr(address().rfind(':')); }
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
  test::expect_error(start("0.0.0.0:0").status(), Code::config_invalid,
                     {"metrics.listen = 0.0.0.0:0", "metrics.token_file", "security.tls = on"});
}

// --- at addresses that others reach

std::string with_header(const std::string& header) {
  return "GET /metrics HTTP/1.1\r\nHost: a\r\n" + header + "\r\n\r\n";
}

TEST_F(MetricsEndpointTest, asks_for_the_token_where_there_is_one) {
  const test::SecretFile file(std::string(test::kSecret) + "\n");
  base::Settings settings = without_tls();
  settings.metrics_token_file = file.path();
  const test::LogLines lines;
  start_for_all(settings);
  const std::string at = loopback_address();
  const auto status_of = [&](const std::string& request) { return ask(at, request).substr(9, 3); };
  const std::string token(test::kSecret);
  EXPECT_EQ(status_of(with_header("Authorization: Bearer " + token)), "200");
  EXPECT_EQ(status_of(with_header("authorization:  bearer   " + token + " ")), "200");
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nAuthorization: Bearer " + token + "\r\n\r\n"), "404");
  for (const std::string& header :
       {std::string("X: y"), "Authorization: Bearer " + std::string(test::kOtherSecret),
        "Authorization: Bearer " + token + "f", "Authorization: Bearer " + token.substr(1),
        std::string("Authorization: Bearer"), std::string("Authorization: Bearer "),
        "Authorization: Basic " + token, "X-Authorization: Bearer " + token,
        "Authorization: Bearer " + token + "\r\nAuthorization: Bearer " + token}) {
    const std::string answer = ask(at, with_header(header));
    EXPECT_EQ(answer.rfind("HTTP/1.1 401 Unauthorized\r\n", 0), 0u) << header << "\n" << answer;
    test::expect_contains(answer, "WWW-Authenticate: Bearer\r\n");
    EXPECT_EQ(answer.find("faro_"), std::string::npos);
  }
  EXPECT_EQ(status_of("GET /nothing HTTP/1.1\r\n\r\n"), "401") << "not even what there is";
  // In a body it is no header.
  EXPECT_EQ(status_of("GET /metrics HTTP/1.1\r\n\r\nAuthorization: Bearer " + token + "\r\n\r\n"),
            "401");
  endpoint_.reset();
  EXPECT_EQ(lines.count("/metrics: refused a request from 127.0.0.1:"), 1u) << "not ten times";
  EXPECT_EQ(lines.count("it does not show the token of metrics.token_file"), 1u);
  EXPECT_EQ(lines.count(token), 0u);
}

TEST_F(MetricsEndpointTest, asks_for_the_token_on_loopback_too) {
  const test::SecretFile file;
  base::Settings settings = without_tls();
  settings.metrics_token_file = file.path();
  endpoint_ = std::move(start("127.0.0.1:0", settings).value());
  EXPECT_EQ(scrape(address()).rfind("HTTP/1.1 401", 0), 0u);
  EXPECT_EQ(ask(address(), with_header("Authorization: Bearer " + std::string(test::kSecret)))
                .rfind("HTTP/1.1 200", 0),
            0u);
}

TEST_F(MetricsEndpointTest, a_file_that_holds_no_usable_token_is_refused_by_name) {
  const test::SecretFile open_to_all(test::kSecret, 0644);
  const test::SecretFile too_short("short");
  base::Settings settings = without_tls();
  settings.metrics_token_file = open_to_all.path();
  test::expect_error(start("127.0.0.1:0", settings).status(), Code::config_invalid,
                     {"metrics.token_file = " + open_to_all.path()});
  settings.metrics_token_file = too_short.path();
  test::expect_error(start("127.0.0.1:0", settings).status(), Code::config_invalid,
                     {"metrics.token_file = " + too_short.path(), "5 bytes", "32"});
}

/// The answer to a request over TLS, from a client that believes the authority of `node` and shows the certificate of
/// `shown`, if that is not null; empty if there is none.
std::string ask_by_tls(const std::string& address, const test::NodeFiles& node,
                       const test::NodeFiles* shown, const std::string& request) {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                             SSL_CTX_free);
  EXPECT_EQ(SSL_CTX_load_verify_file(context.get(), node.authority().c_str()), 1);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (shown != nullptr) {
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context.get(), shown->certificate().c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), shown->key().c_str(), SSL_FILETYPE_PEM),
              1);
  }
  const base::UniqueFd socket = connect_to(address);
  const std::unique_ptr<SSL, void (*)(SSL*)> session(SSL_new(context.get()), SSL_free);
  SSL_set_fd(session.get(), socket.get());
  if (SSL_connect(session.get()) != 1) return "no TLS";
  std::string all;
  if (SSL_write(session.get(), request.data(), static_cast<int>(request.size())) <= 0) return all;
  char bytes[4096];
  for (int got; (got = SSL_read(session.get(), bytes, sizeof bytes)) > 0;)
    all.append(bytes, static_cast<size_t>(got));
  return all;
}

TEST_F(MetricsEndpointTest, is_served_by_https_to_whoever_shows_a_certificate_of_the_authority) {
  const test::Authority authority;
  const test::NodeFiles node = authority.issue();
  const test::Authority other;
  const test::NodeFiles outsider = other.issue();
  start_for_all(node.resolved());
  test::expect_contains(endpoint_->url(), "https://0.0.0.0:");
  const std::string at = loopback_address();
  const std::string request = with_header("X: y");
  const std::string answer = ask_by_tls(at, node, &node, request);
  EXPECT_EQ(answer.rfind("HTTP/1.1 200 OK\r\n", 0), 0u) << answer;
  test::expect_contains(answer, "faro_worker_rows_sent_total");
  const test::LogLines lines;
  EXPECT_EQ(ask_by_tls(at, node, nullptr, request), "");
  EXPECT_EQ(scrape(at).find("HTTP/1.1 200"), std::string::npos) << "in the clear";
  EXPECT_EQ(ask_by_tls(at, node, &outsider, request), "") << "of another authority";
  EXPECT_EQ(ask_by_tls(at, outsider, &outsider, request), "no TLS") << "the node's is not its";
  EXPECT_EQ(ask_by_tls(at, node, &node, request).rfind("HTTP/1.1 200", 0), 0u);
  endpoint_.reset();
  EXPECT_GT(lines.count("refused a request from 127.0.0.1:"), 0u);
  EXPECT_GT(lines.count("certificate"), 0u);
}

TEST_F(MetricsEndpointTest, is_served_by_https_without_a_certificate_of_the_client_for_a_token) {
  const test::Authority authority;
  const test::NodeFiles node = authority.issue();
  const test::SecretFile file;
  base::Settings settings = node.resolved();
  settings.metrics_token_file = file.path();
  start_for_all(settings);
  const std::string header = "Authorization: Bearer " + std::string(test::kSecret);
  EXPECT_EQ(ask_by_tls(loopback_address(), node, nullptr, with_header(header)).substr(9, 3), "200");
  EXPECT_EQ(ask_by_tls(loopback_address(), node, &node, with_header("X: y")).substr(9, 3), "401");
}

TEST_F(MetricsEndpointTest, is_plain_on_loopback_also_with_tls) {
  const test::Authority authority;
  endpoint_ = std::move(start("127.0.0.1:0", authority.issue().resolved()).value());
  EXPECT_EQ(endpoint_->url(), "http://" + address() + "/metrics");
  EXPECT_EQ(scrape(address()).rfind("HTTP/1.1 200", 0), 0u);
}

TEST_F(MetricsEndpointTest, is_refused_at_an_address_that_is_taken) {
  EXPECT_EQ(start(address()).status().code(), Code::address_in_use);
}

TEST(SessionMetrics, open_refuses_to_show_them_to_others_without_a_token_or_tls) {
  const test::SettingList settings{{"metrics.listen", "0.0.0.0:0"}, {"counters.folder", ""}};
  test::expect_error(test::SessionCluster(1, settings).status(), Code::config_invalid,
                     {"metrics.listen = 0.0.0.0:0", "metrics.token_file"});
  const test::SecretFile file;
  test::SettingList with_token = settings;
  with_token.emplace_back("metrics.token_file", file.path());
  EXPECT_TRUE(test::is_ok(test::SessionCluster(1, with_token).status()));
}

/// The address of the next metrics endpoint, which the log names.
class LoggedAddress {
 public:
  LoggedAddress() {
    set_log_level(LogLevel::info);
    set_log_sink([this](LogLevel, std::string_view line) {
      const size_t at = line.find("http://");
      if (at == std::string_view::npos) return;
      std::lock_guard lock(mutex_);
      address_ = line.substr(at + 7, line.rfind('/') - at - 7);
    });
  }
  ~LoggedAddress() {
    set_log_sink(nullptr);
    set_log_level(LogLevel::warning);
  }
  std::string get() {
    std::lock_guard lock(mutex_);
    return address_;
  }

 private:
  std::mutex mutex_;
  std::string address_;
};

TEST(SessionMetrics, are_at_the_address_that_the_log_names_until_close) {
  LoggedAddress address;
  {
    test::SessionCluster cluster(1, {{"cluster.id", "faro"},
                                     {"metrics.listen", "127.0.0.1:0"},
                                     {"counters.folder", ""},
                                     {"cluster.workers", "2"}});
    ASSERT_TRUE(test::is_ok(cluster.status()));
    const std::string text = scrape(address.get());
    test::expect_contains(text, "faro_open{cluster=\"faro\",node=\"0\"} 1\n");
    test::expect_contains(text,
                          "faro_worker_waits_total{cluster=\"faro\",node=\"0\",worker=\"1\"} 0\n");
  }
  EXPECT_FALSE(connect_to(address.get()).valid());
}

Config endpoint_config(const test::SettingList& settings) {
  Config config;
  for (const auto& [key, value] : settings) EXPECT_TRUE(test::is_ok(config.set(key, value)));
  return config;
}

TEST(EndpointMetrics, are_served_as_those_of_a_session_until_close) {
  using Kind = ChannelEvent::Kind;
  LoggedAddress address;
  test::EndpointSide server(endpoint_config({{"cluster.id", "faro"},
                                             {"transport", "tcp"},
                                             {"metrics.listen", "127.0.0.1:0"},
                                             {"counters.folder", ""}}),
                            {.name = "the server"});
  test::EndpointSide client(endpoint_config({{"cluster.id", "faro"}, {"transport", "tcp"}}),
                            {.name = "a \"client\""});
  const ChannelId channel = client.connect(server);
  client.expect(Kind::opened);
  server.expect(Kind::opened);
  ASSERT_TRUE(client.send(channel, "hello"));
  server.expect_frame("hello");
  const std::string labels = "cluster=\"faro\",endpoint=\"the server\"";
  const std::string text = scrape(address.get());
  test::expect_contains(text, "faro_endpoint_listening{" + labels + "} 1\n");
  test::expect_contains(text, "faro_endpoint_channels_opened_total{" + labels + "} 1\n");
  test::expect_contains(text, "faro_endpoint_frames_received_total{" + labels + "} 1\n");
  test::expect_contains(text, "faro_poller_events_total{" + labels + ",poller=\"0\"} 2\n");
  test::expect_contains(text, "faro_channel_frames_received_total{" + labels +
                                  ",channel=\"0\",peer=\"a \\\"client\\\"\",address=\"" +
                                  client.address() + "\",transport=\"tcp\"} 1\n");
  server.endpoint().close();
  EXPECT_FALSE(connect_to(address.get()).valid());
}

TEST(EndpointMetrics, open_refuses_to_show_them_to_others_without_a_token_or_tls) {
  const Config config = endpoint_config({{"metrics.listen", "0.0.0.0:0"}, {"counters.folder", ""}});
  test::expect_error(Endpoint::open(config, {}).status(), Code::config_invalid,
                     {"metrics.listen = 0.0.0.0:0", "metrics.token_file"});
}

}  // namespace
}  // namespace faro::metrics
