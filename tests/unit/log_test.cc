// The default sink: lines go to standard error, and nobody waits for whoever reads it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "base/log.h"
#include "base/unique_fd.h"
#include "support/child.h"
#include "support/expect.h"
#include "support/temporary_folder.h"

namespace faro::test {
namespace {

/// Both ends of something that may be standard error.
struct Ends {
  base::UniqueFd read;
  base::UniqueFd write;
};

Ends a_pipe() {
  int fds[2];
  return pipe(fds) == 0 ? Ends{base::UniqueFd(fds[0]), base::UniqueFd(fds[1])} : Ends{};
}
Ends a_socket() {
  int fds[2];
  return socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0
             ? Ends{base::UniqueFd(fds[0]), base::UniqueFd(fds[1])}
             : Ends{};
}
Ends a_terminal() {
  Ends ends;
  ends.read.reset(posix_openpt(O_RDWR | O_NOCTTY));
  if (grantpt(ends.read.get()) != 0 || unlockpt(ends.read.get()) != 0) return {};
  ends.write.reset(open(ptsname(ends.read.get()), O_RDWR | O_NOCTTY));
  termios raw{};
  tcgetattr(ends.write.get(), &raw);
  cfmakeraw(&raw);
  tcsetattr(ends.write.get(), TCSANOW, &raw);
  return ends;
}

// Until nothing more goes in, by a description of its own or by one that is given back as it was. A terminal takes more once
// the kernel has moved what it has on to the reading side.
void fill(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const std::string some(4096, '.');
  pollfd asked{fd, POLLOUT, 0};
  do {
    for (size_t piece : {some.size(), size_t{1}}) {
      while (write(fd, some.data(), piece) > 0) {
      }
    }
  } while (isatty(fd) == 1 && poll(&asked, 1, 1000) == 1);
  fcntl(fd, F_SETFL, flags);
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> some;
  pollfd asked{fd, POLLIN, 0};
  while (poll(&asked, 1, 0) == 1 && (asked.revents & POLLIN) != 0) {
    const ssize_t got = read(fd, some.data(), some.size());
    if (got <= 0) break;
    text.append(some.data(), static_cast<size_t>(got));
  }
  return text;
}

void log_line(const std::string& line) { base::log_line(LogLevel::warning, line); }

class StandardErrorThatNobodyReads : public testing::TestWithParam<std::string> {
 protected:
  static Ends made() {
    if (GetParam() == "pipe") return a_pipe();
    return GetParam() == "socket" ? a_socket() : a_terminal();
  }
};

INSTANTIATE_TEST_SUITE_P(is, StandardErrorThatNobodyReads,
                         testing::Values("pipe", "socket", "terminal"),
                         [](const auto& is) { return is.param; });

TEST_P(StandardErrorThatNobodyReads, keeps_nobody_waiting_and_is_told_what_it_has_missed) {
  const Ends ends = made();
  ASSERT_TRUE(ends.write.valid());
  Child child([&](const Child::Side& test) {
    dup2(ends.write.get(), STDERR_FILENO);
    fill(STDERR_FILENO);
    const int flags = fcntl(STDERR_FILENO, F_GETFL);
    for (int line = 0; line < 3; ++line) log_line("lost");
    test.say(flags == fcntl(STDERR_FILENO, F_GETFL) ? "did not wait" : "has changed the flags");
    test.hear();
    log_line("found");
    test.say("done");
    test.hear();
    return 0;
  });
  ASSERT_EQ(child.hear(), "did not wait");
  (void)read_all(ends.read.get());
  child.say("there is room");
  ASSERT_EQ(child.hear(), "done");
  const std::string text = read_all(ends.read.get());
  expect_contains(text, "3 lines were dropped");
  expect_contains(text, "faro warning: found\n");
  EXPECT_EQ(text.find("lost"), text.npos);
  child.say("end");
  EXPECT_EQ(child.wait_for_end(), 0);
}

// A missing list of a hundred nodes is longer than what a pipe takes at once.
TEST(StandardError, takes_long_lines_whole) {
  const Ends ends = a_pipe();
  Child child([&](const Child::Side&) {
    dup2(ends.write.get(), STDERR_FILENO);
    log_line(std::string(20'000, 'x'));
    return 0;
  });
  EXPECT_EQ(child.wait_for_end(), 0);
  expect_contains(read_all(ends.read.get()), std::string(20'000, 'x') + "\n");
}

TEST(StandardError, that_is_a_file_gets_lines_behind_those_of_others) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  const base::UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT, 0600));
  Child child([&](const Child::Side&) {
    dup2(file.get(), STDERR_FILENO);
    for (const char* const line : {"first", "third"}) {
      log_line(line);
      if (write(STDERR_FILENO, "second\n", 7) != 7) return 1;
    }
    return 0;
  });
  EXPECT_EQ(child.wait_for_end(), 0);
  std::string text(1000, ' ');
  text.resize(static_cast<size_t>(pread(file.get(), text.data(), text.size(), 0)));
  const size_t first = text.find("first\nsecond\n");
  EXPECT_NE(first, text.npos) << text;
  EXPECT_NE(text.find("third\nsecond\n", first), text.npos) << text;
}

TEST(StandardError, that_is_closed_loses_lines_and_nothing_else) {
  Child child([&](const Child::Side& test) {
    close(STDERR_FILENO);
    log_line("nowhere");
    test.say("goes on");
    return 0;
  });
  EXPECT_EQ(child.hear(), "goes on");
  EXPECT_EQ(child.wait_for_end(), 0);
}

}  // namespace
}  // namespace faro::test
