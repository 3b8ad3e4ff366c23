// A process that was started without standard input, output and error: the library takes none of their numbers, or what the
// program says in them later would go to a peer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/unique_fd.h"
#include "support/burst.h"
#include "support/session_cluster.h"

namespace faro::test {
namespace {

void close_standard() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) close(fd);
}

// The first of these numbers that is taken, and by what; empty: none.
std::string taken_standard() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    std::error_code failed;
    const auto link = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), failed);
    if (!failed) return fmt::format("{} is {}", fd, link.string());
  }
  return "";
}

class WithoutStandardDescriptors : public testing::TestWithParam<std::string> {
 protected:
  /// `body` says what has gone wrong; empty: nothing.
  void expect_untaken(const std::function<std::string()>& body) {
    Child child([&](const Child::Side& test) {
      close_standard();
      const std::string problem = body();
      test.say(problem.empty() ? taken_standard() : problem);
      return 0;
    });
    EXPECT_EQ(child.hear(), "");
    EXPECT_EQ(child.wait_for_end(), 0);
  }
};

INSTANTIATE_TEST_SUITE_P(over, WithoutStandardDescriptors,
                         testing::Values("shm", "tcp", "tls", "tls_shm"),
                         [](const auto& over) { return over.param; });

TEST_P(WithoutStandardDescriptors, sessions_take_none_of_them) {
  const Config given = burst_config(GetParam());
  SettingList settings{{"metrics.listen", "127.0.0.1:0"}, {"overflow.memory_bytes", "0"}};
  for (const char* const key :
       {"transport", "security.tls", "security.certificate", "security.key", "security.authority"})
    settings.emplace_back(key, given.get(key));
  expect_untaken([&]() -> std::string {
    SessionCluster cluster(2, small_rings(settings));
    if (!cluster.status().ok()) return cluster.status().to_string();
    const QueryId query = cluster[0].begin_query();
    const ShuffleSpec spec{query, 0, 8, {0}, {1}};
    auto from = cluster.worker(0).open_shuffle(spec);
    auto to = cluster.worker(1).open_shuffle(spec);
    if (!from.ok() || !to.ok()) return "no shuffle";
    const std::vector<std::byte> row(8);
    if (from->sender()->send(0, row) != Outcome::done) return from->status().to_string();
    auto own = cluster.worker(0).open_shuffle({query, 1, 8, {0}, {0}});
    for (int each = 0; each < 10'000; ++each)  // into the overflow file
      if (own->sender()->send(0, row) == Outcome::failed) return own->status().to_string();
    return taken_standard();
  });
}

TEST_P(WithoutStandardDescriptors, endpoints_take_none_of_them) {
  Config config = burst_config(GetParam());
  ASSERT_TRUE(is_ok(config.set("metrics.listen", "127.0.0.1:0")));
  expect_untaken([&]() -> std::string {
    EndpointSide server(config, {.name = "server"});
    EndpointSide client(config, {.name = "client"});
    const auto id = client.connect(server);
    client.expect(ChannelEvent::Kind::opened);
    const auto there = server.expect(ChannelEvent::Kind::opened).channel;
    if (!client.poller().descriptor().ok()) return "no descriptor";
    if (!client.send(id, "frame")) return "not sent";
    server.expect_frame("frame");
    (void)there;
    return taken_standard();
  });
}

TEST(UniqueFd, has_no_number_that_a_program_takes_for_a_standard_one) {
  Child child([](const Child::Side& test) {
    close_standard();
    const base::UniqueFd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    base::UniqueFd later;
    later.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const bool above = made.get() > STDERR_FILENO && later.get() > STDERR_FILENO;
    const bool passes_exec = (fcntl(made.get(), F_GETFD) & FD_CLOEXEC) == 0;
    test.say(!above ? "too low" : passes_exec ? "passes exec" : taken_standard());
    // What a driver opens meanwhile.
    {
      const base::StandardHeld held;
      const base::UniqueFd opened(open("/dev/null", O_RDONLY | O_CLOEXEC));
      test.say(opened.get() > STDERR_FILENO ? "above" : "too low");
    }
    test.say(taken_standard());
    errno = EMFILE;
    const base::UniqueFd none(-1);
    test.say(!none.valid() && errno == EMFILE ? "keeps errno" : "has lost errno");
    return 0;
  });
  EXPECT_EQ(child.hear(), "");
  EXPECT_EQ(child.hear(), "above");
  EXPECT_EQ(child.hear(), "");
  EXPECT_EQ(child.hear(), "keeps errno");
  EXPECT_EQ(child.wait_for_end(), 0);
}

}  // namespace
}  // namespace faro::test
