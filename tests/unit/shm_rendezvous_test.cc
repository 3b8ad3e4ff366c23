// The folder by which processes of one host find each other.
#include "transport/shm/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/unique_fd.h"
#include "support/expect.h"
#include "support/log_lines.h"
#include "support/temporary_folder.h"
#include "transport/shm/unix_address.h"

namespace faro::transport::shm {
namespace {

namespace fs = std::filesystem;
using test::expect_contains;
using test::value_of;

class ShmRendezvous : public testing::Test {
 protected:
  std::string identity() const { return value_of(Rendezvous::open(folder_.path()))->identity(); }
  /// What a process leaves that was killed, or has while it sets up links.
  base::UniqueFd bind_socket(const std::string& name) const {
    base::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const UnixAddress address = UnixAddress::in_file_system(folder_.path() + "/" + name);
    EXPECT_EQ(bind(fd.get(), address.get(), address.bytes), 0);
    EXPECT_EQ(listen(fd.get(), 1), 0);
    return fd;
  }
  void expect_refused(const std::string& folder, const std::string& why) const {
    const Status status = Rendezvous::open(folder).status();
    EXPECT_EQ(status.code(), Code::config_invalid);
    expect_contains(status.message(), "shm.folder = " + folder);
    expect_contains(status.message(), why);
  }

  const test::TemporaryFolder folder_;
};

TEST_F(ShmRendezvous, is_the_same_for_all_who_see_the_folder) {
  const std::string first = identity();
  EXPECT_EQ(identity(), first);
  const test::TemporaryFolder other;
  EXPECT_NE(value_of(Rendezvous::open(other.path()))->identity(), first);
}

TEST_F(ShmRendezvous, removes_sockets_at_which_nobody_listens) {
  bind_socket("faro-gone.socket").reset();
  const base::UniqueFd living = bind_socket("faro-living.socket");
  bind_socket("somebody-elses.socket").reset();
  (void)identity();
  EXPECT_FALSE(fs::exists(folder_.path() + "/faro-gone.socket"));
  EXPECT_TRUE(fs::exists(folder_.path() + "/faro-living.socket"));
  EXPECT_TRUE(fs::exists(folder_.path() + "/somebody-elses.socket"));
}

TEST_F(ShmRendezvous, is_refused_where_others_could_take_part) {
  expect_refused(folder_.path() + "/none", "No such file");
  std::ofstream(folder_.path() + "/file") << "";
  expect_refused(folder_.path() + "/file", "it is no folder");
  expect_refused("/" + std::string(Rendezvous::kFolderLimit, 'x'), "it is 63 bytes long");
  ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
  expect_refused(folder_.path(), "others may replace what is in it");
  ASSERT_EQ(chmod(folder_.path().c_str(), 01777), 0);
  EXPECT_FALSE(identity().empty());
}

TEST_F(ShmRendezvous, does_not_wait_for_a_number_that_never_comes) {
  const std::string path = folder_.path() + "/faro-" + std::to_string(geteuid()) + ".host";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expect_refused(folder_.path(), "is no file of this user");
}

class ShmRendezvousOfMany : public ShmRendezvous {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root makes files of another user";
    ASSERT_EQ(chmod(folder_.path().c_str(), 01777), 0);
  }
  std::string name(int number) const {
    const std::string begin = folder_.path() + "/faro-" + std::to_string(geteuid());
    return number == 0 ? begin + ".host" : begin + "." + std::to_string(number) + ".host";
  }
  /// Takes the name as another user does, who need not make a file of it.
  void take(int number, mode_t kind = S_IFREG) const {
    ASSERT_EQ(mknod(name(number).c_str(), kind | 0600, 0), 0);
    ASSERT_EQ(lchown(name(number).c_str(), 4711, 4711), 0);
  }
};

TEST_F(ShmRendezvousOfMany, leaves_a_name_to_another_user_who_has_taken_it) {
  take(0);
  take(1, S_IFIFO);
  ASSERT_EQ(symlink("/etc/hostname", name(2).c_str()), 0);
  ASSERT_EQ(lchown(name(2).c_str(), 4711, 4711), 0);
  const std::string first = identity();
  EXPECT_TRUE(fs::exists(name(3)));
  EXPECT_EQ(identity(), first);
}

TEST_F(ShmRendezvousOfMany, stays_the_same_when_a_name_becomes_free) {
  take(0);
  const std::string first = identity();
  ASSERT_EQ(unlink(name(0).c_str()), 0);
  EXPECT_EQ(identity(), first);
}

TEST_F(ShmRendezvousOfMany, is_done_without_if_all_names_are_taken) {
  for (int number = 0; number < 16; ++number) take(number);
  test::LogLines log;
  EXPECT_EQ(value_of(Rendezvous::open(folder_.path())), nullptr);
  EXPECT_EQ(log.count("other users have taken all names"), 1u);
}

TEST_F(ShmRendezvousOfMany, tells_each_other_user_once) {
  const std::string begin = folder_.path() + "/faro-";
  for (const char* rest : {"7.host", "7.3.host", "8.1.host", "9..host", "10.x.host", "11.host.12"})
    std::ofstream(begin + rest) << "";
  EXPECT_EQ(value_of(Rendezvous::open(folder_.path()))->other_users(),
            (std::vector<uint32_t>{7, 8}));
}

TEST_F(ShmRendezvous, is_refused_if_its_number_is_cut_short) {
  std::ofstream(folder_.path() + "/faro-" + std::to_string(geteuid()) + ".host") << "1234";
  expect_refused(folder_.path(), ".host has no number");
}

}  // namespace
}  // namespace faro::transport::shm
