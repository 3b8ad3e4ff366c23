// Who may join by certificate, over real sockets: the right one, a wrong authority, host or time, TLS on one side only, a
// storm of outsiders, certificates that change, and what TLS means to each transport.
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "faro/log.h"
#include "links/attempt_limiter.h"
#include "support/certificates.h"
#include "support/cluster.h"
#include "support/crowded_network.h"
#include "support/log_lines.h"
#include "support/pausable_network.h"
#include "support/secret_file.h"
#include "transport/tcp/socket_address.h"
#include "wire/preamble.h"

namespace faro::test {
namespace {

using Pairs = ClusterPlan::Settings;

class JoinsByCertificate : public testing::Test {
 protected:
  /// A certificate for where the nodes of `plan` listen.
  static NodeFiles files_for(const ClusterPlan& plan, const Authority& authority) {
    return authority.issue({.hosts = {transport::tcp::host_of(plan.address(0)),
                                      transport::tcp::host_of(plan.address(1))}});
  }

  const LogLines log_;
  const Authority authority_;
};

TEST_F(JoinsByCertificate, nodes_of_one_authority_over_every_transport) {
  for (const char* tls : {"on", "control"}) {
    for (const std::string& transport : transports_to_test({"shm", "tcp"})) {
      ClusterPlan plan(4, {{"transport", transport}});
      const NodeFiles files = files_for(plan, authority_);
      OpenCluster cluster(plan, [&](uint32_t) { return files.settings(tls); });
      for (uint32_t node = 1; node < 4; ++node) EXPECT_TRUE(cluster[0].connected(node));
    }
  }
}

TEST_F(JoinsByCertificate,
       nobody_of_another_authority_for_another_host_or_without_and_both_say_so) {
  ClusterPlan addresses(2);
  const NodeFiles right = files_for(addresses, authority_);
  const NodeFiles foreign = files_for(addresses, Authority());
  const NodeFiles elsewhere = authority_.issue({.hosts = {"elsewhere.test"}});
  const struct {
    Pairs zero;
    Pairs one;
    const char* said_by_zero;
    const char* said_by_one;
  } cases[] = {
      {right.settings(), foreign.settings(), "certificate", "certificate is refused: "},
      {foreign.settings(), right.settings(), "certificate", "certificate is refused: "},
      {right.settings(), elsewhere.settings(), "its certificate is not for",
       "its certificate is not for"},
      {elsewhere.settings(), right.settings(), "the peer refuses this node's certificate",
       "address mismatch"},
      {right.settings(), {}, "wants TLS", "wants TLS"},
      {{}, right.settings(), "begins with TLS", "it may have security.tls = off"},
  };
  for (const auto& each : cases) {
    ClusterPlan plan(2, {{"connect.timeout_ms", "1500"}});
    ThreadCluster cluster(plan, [&](uint32_t node) { return node == 0 ? each.zero : each.one; });
    EXPECT_FALSE(cluster.status(0).ok());
    EXPECT_FALSE(cluster.status(1).ok());
    expect_contains(cluster.status(0).message(), each.said_by_zero);
    expect_contains(cluster.status(1).message(), each.said_by_one);
    if (!each.zero.empty()) {
      EXPECT_EQ(cluster.status(1).code(), Code::authentication_failed);
    }
  }
}

/// An outsider that begins TLS with the certificate of `files`.
struct TlsOutsider {
  TlsOutsider(const std::string& address, const NodeFiles& files) {
    const transport::tcp::SocketAddress to = transport::tcp::resolve(address).value().front();
    fd = base::UniqueFd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), to.get(), to.length), 0);
    const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    SSL_CTX_use_certificate_file(context.get(), files.certificate().c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context.get(), files.key().c_str(), SSL_FILETYPE_PEM);
    session.reset(SSL_new(context.get()), SSL_free);
    SSL_set_fd(session.get(), fd.get());
    ERR_clear_error();
    connected = SSL_connect(session.get()) == 1;
  }
  void say(std::span<const std::byte> bytes) {
    EXPECT_EQ(SSL_write(session.get(), bytes.data(), static_cast<int>(bytes.size())),
              static_cast<int>(bytes.size()));
  }

  base::UniqueFd fd;
  std::shared_ptr<SSL> session;
  bool connected;
};

/// What an outsider is told.
std::string knock(const std::string& address, const NodeFiles& files) {
  const TlsOutsider outsider(address, files);
  char byte;
  if (outsider.connected && SSL_read(outsider.session.get(), &byte, 1) > 0) return "data";
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  return reason == nullptr ? "nothing" : reason;
}

TEST_F(JoinsByCertificate, nobody_whose_certificate_has_expired_and_it_is_told) {
  ClusterPlan plan(2, {{"connect.timeout_ms", "1500"}});
  const NodeFiles files = files_for(plan, authority_);
  OpeningNode zero(plan, 0, files.settings());
  expect_contains(knock(plan.address(0), authority_.issue({.until_s = -60})),
                  "certificate expired");
  EXPECT_FALSE(zero.status().ok());
  expect_contains(zero.status().message(), "certificate has expired");
}

TEST_F(JoinsByCertificate, a_storm_of_unauthenticated_peers_is_cut_short_and_the_cluster_opens) {
  ClusterPlan plan(2);
  const NodeFiles files = files_for(plan, authority_);
  const NodeFiles foreign = files_for(plan, Authority());
  OpeningNode zero(plan, 0, files.settings());
  const base::Clock& clock = base::SystemClock::instance();
  const base::Nanoseconds begin = clock.now_ns();
  constexpr int kKnocks = 3 * links::AttemptLimiter::kAtOnce;
  for (int i = 0; i < kKnocks; ++i) expect_contains(knock(plan.address(0), foreign), "alert");
  EXPECT_GE(clock.now_ns() - begin,
            (kKnocks - links::AttemptLimiter::kAtOnce) * links::AttemptLimiter::kInterval)
      << "it is not limited";
  OpeningNode one(plan, 1, files.settings());
  expect_open({&zero, &one});
}

TEST_F(JoinsByCertificate, nobody_who_leaves_with_its_last_word_but_the_others_do) {
  ClusterPlan plan(2);
  const NodeFiles files = files_for(plan, authority_);
  OpeningNode zero(plan, 0, files.settings());
  {
    TlsOutsider outsider(plan.address(0), files);
    ASSERT_TRUE(outsider.connected);
    const int one = 1;  // all that it says, and the end, come together
    ASSERT_EQ(setsockopt(outsider.fd.get(), IPPROTO_TCP, TCP_CORK, &one, sizeof one), 0);
    const wire::Preamble preamble = wire::control_preamble();
    outsider.say(std::as_bytes(std::span(&preamble, 1)));
    outsider.say(std::array<std::byte, 8>{std::byte{4}});  // a message of four bytes, no HELLO
    ASSERT_EQ(shutdown(outsider.fd.get(), SHUT_WR), 0);
    pollfd answered{outsider.fd.get(), POLLRDHUP, 0};
    EXPECT_EQ(poll(&answered, 1, 10'000), 1) << "it is neither answered nor left";
  }
  OpeningNode one(plan, 1, files.settings());
  expect_open({&zero, &one});
}

TEST_F(JoinsByCertificate, nobody_while_it_closes_and_who_gives_up_then_is_not_warned_of) {
  std::mutex mutex;
  std::condition_variable told;
  std::vector<LogLevel> refusals;
  ClusterPlan plan(2);
  const NodeFiles files = files_for(plan, authority_);
  PausableNetwork* slow = nullptr;  // for whose goodbye the other one waits
  PausableNetwork::give(plan, 1, slow);
  OpenCluster cluster(plan, [&](uint32_t) { return files.settings(); });
  set_log_level(LogLevel::debug);
  set_log_sink([&](LogLevel level, std::string_view line) {
    if (line.find("refused a connection") == std::string_view::npos) return;
    const std::lock_guard lock(mutex);
    refusals.push_back(level);
    told.notify_all();
  });
  slow->pause();
  std::thread closing([&] { cluster[0].close(); });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (cluster[0].connected(1) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  {
    const transport::tcp::SocketAddress to =
        transport::tcp::resolve(plan.address(0)).value().front();
    const base::UniqueFd fd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), to.get(), to.length), 0);
    const char first_of_a_record = 22;
    EXPECT_EQ(send(fd.get(), &first_of_a_record, 1, MSG_NOSIGNAL), 1);
  }
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(told.wait_until(lock, deadline, [&] { return !refusals.empty(); }));
    EXPECT_EQ(refusals, std::vector{LogLevel::debug});
  }
  slow->resume();
  closing.join();
  set_log_sink({});
  set_log_level(LogLevel::warning);
}

TEST_F(JoinsByCertificate, whoever_has_been_admitted_whatever_others_on_its_host_do) {
  ClusterPlan plan(2, {{"transport", "tcp"}});
  plan.wrap_networks([](uint32_t, std::unique_ptr<links::Network> network) {
    return std::make_unique<CrowdedNetwork>(std::move(network));
  });
  const NodeFiles files = files_for(plan, authority_);
  const OpenCluster cluster(plan, [&](uint32_t) { return files.settings(); });
}

TEST_F(JoinsByCertificate, certificates_may_change_while_a_node_waits_for_the_others) {
  ClusterPlan plan(2, {{"transport", "tcp"}});
  const NodeFiles files = files_for(plan, Authority());
  OpeningNode zero(plan, 0, files.settings());
  // It has read the old ones: it answers.
  expect_contains(knock(plan.address(0), authority_.issue()), "alert");
  authority_.renew(files, {.hosts = {transport::tcp::host_of(plan.address(0)),
                                     transport::tcp::host_of(plan.address(1))}});
  const NodeFiles files_of_one = files_for(plan, authority_);
  OpeningNode one(plan, 1, files_of_one.settings());
  expect_open({&zero, &one});
}

TEST_F(JoinsByCertificate, a_node_with_a_certificate_may_listen_beyond_loopback) {
  ClusterPlan plan(1, {}, "0.0.0.0");
  const NodeFiles files = authority_.issue();
  Pairs settings = files.settings();
  settings.emplace_back("security.open", "0");
  EXPECT_TRUE(is_ok(OpeningNode(plan, 0, settings).status()));
}

/// Nodes whose certificate is for another host than those at which they listen.
class NodesOfElsewhere : public JoinsByCertificate {
 protected:
  /// What opening says at either node, with their files and whom they admit (security.peers).
  static std::array<Status, 2> open(const std::array<NodeFiles, 2>& files,
                                    const std::array<std::string, 2>& peers,
                                    const Pairs& common = {}) {
    ClusterPlan plan(2, common);
    ThreadCluster cluster(plan, [&](uint32_t node) {
      Pairs settings = files[node].settings();
      settings.emplace_back("security.peers", peers[node]);
      return settings;
    });
    return {cluster.status(0), cluster.status(1)};
  }
  /// That neither opens; what node 1, which dials, says.
  static std::string refusal(const std::array<NodeFiles, 2>& files,
                             const std::array<std::string, 2>& peers) {
    const auto said = open(files, peers, {{"connect.timeout_ms", "3000"}});
    EXPECT_FALSE(said[0].ok());
    EXPECT_EQ(said[1].code(), Code::authentication_failed);
    return std::string(said[1].message());
  }
  static void expect_open(const std::array<NodeFiles, 2>& files,
                          const std::array<std::string, 2>& peers) {
    for (const Status& status : open(files, peers)) EXPECT_TRUE(is_ok(status));
  }

  const NodeFiles files_ = authority_.issue({.hosts = {"elsewhere.test"}});
  const std::array<NodeFiles, 2> same_ = {files_, files_};
};

TEST_F(NodesOfElsewhere, are_admitted_by_their_authority_alone_where_both_say_so) {
  expect_open(same_, {"authority", "authority"});
  expect_open({files_, authority_.issue({.hosts = {"another.test"}})}, {"authority", "authority"});
  expect_contains(refusal(same_, {"authority", "host"}), "mismatch");
  expect_contains(refusal(same_, {"host", "authority"}), "its certificate is not for");
  const NodeFiles foreign = Authority().issue({.hosts = {"elsewhere.test"}});
  expect_contains(refusal({files_, foreign}, {"authority", "authority"}), "certificate is refused");
}

TEST_F(NodesOfElsewhere, are_admitted_by_the_fingerprint_that_a_refusal_shows) {
  const std::string none(64, '0');
  const std::string text = refusal(same_, {none, none});
  expect_contains(text, "is none of the 1 that security.peers names");
  const std::string before = "its SHA-256 fingerprint ";
  ASSERT_NE(text.find(before), text.npos);
  const std::string shown = text.substr(text.find(before) + before.size(), 64);
  expect_open(same_, {shown, none + "," + shown});
  expect_contains(refusal(same_, {none, shown}), "refuses this node's certificate");
  // Whoever has signed it: each admits the other's only.
  const std::array<NodeFiles, 2> two = {files_, Authority().issue({.hosts = {"another.test"}})};
  expect_contains(refusal(two, {shown, shown}), "refuses this node's certificate");
}

TEST_F(JoinsByCertificate, nodes_that_are_given_secret_certificate_key_and_authority_as_bytes) {
  const auto content = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  ClusterPlan addresses(2);
  const NodeFiles right = files_for(addresses, authority_);
  const NodeFiles foreign = files_for(addresses, Authority());
  const struct {
    const NodeFiles& files_of_one;
    std::string_view secret_of_one;
    const char* said_by_one;  // null: it opens
  } cases[] = {{right, kSecret, nullptr},
               {right, kOtherSecret, "have different secrets"},
               {foreign, kSecret, "certificate is refused: "}};
  for (const auto& each : cases) {
    ClusterPlan plan(2, {{"security.tls", "on"}});
    plan.amend([&](uint32_t node, Config& config) {
      const NodeFiles& files = node == 0 ? right : each.files_of_one;
      const std::string_view secret = node == 0 ? kSecret : each.secret_of_one;
      for (const auto& [name, bytes] :
           {std::pair{"security.certificate", content(files.certificate())},
            {"security.key", content(files.key())},
            {"security.authority", content(files.authority())},
            {"security.secret_file", std::string(secret)}})
        EXPECT_TRUE(is_ok(config.set_bytes(name, std::as_bytes(std::span(bytes)))));
      if (each.said_by_one == nullptr) return;
      EXPECT_TRUE(is_ok(config.set("connect.timeout_ms", 3000)));
    });
    ThreadCluster cluster(plan);
    if (each.said_by_one == nullptr) {
      EXPECT_TRUE(cluster.all_open()) << cluster.problems();
      continue;
    }
    EXPECT_FALSE(cluster.status(0).ok());
    EXPECT_EQ(cluster.status(1).code(), Code::authentication_failed);
    expect_contains(cluster.status(1).message(), each.said_by_one);
  }
}

TEST_F(JoinsByCertificate, rows_over_verbs_are_never_taken_for_encrypted) {
  ClusterPlan plan(1);
  const NodeFiles files = authority_.issue();
  const auto with = [&](const char* tls) {
    Pairs settings = files.settings(tls);
    settings.emplace_back("transport", "verbs");
    return plan.settings(0, settings).status();
  };
  expect_error(with("on"), Code::config_invalid, {"cannot be encrypted"});
  EXPECT_TRUE(with("control").ok());
  EXPECT_EQ(with("perhaps").code(), Code::config_invalid);
}

}  // namespace
}  // namespace faro::test
