// Files that settings name: whose they may be, and what is none that can be read.
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/private_file.h"
#include "base/whole_file.h"
#include "faro/config.h"
#include "support/child.h"
#include "support/expect.h"
#include "support/temporary_folder.h"

namespace faro {
namespace {

using test::contains;
using test::expect_error;

constexpr uid_t kUser = 4711;
constexpr gid_t kGroup = 4712;
constexpr size_t kLimit = 100;
constexpr std::string_view kText = "what is in it";

std::string text_of(const Result<std::vector<std::byte>>& read) {
  if (!read.ok()) return std::string(read.status().message());
  return {reinterpret_cast<const char*>(read->data()), read->size()};
}

std::string read_private(const std::string& path) {
  return text_of(base::read_private_file(path, "a.setting", kLimit));
}

/// What is read by a process of kUser that is in kGroup, too.
std::string read_by_user(const std::string& path) {
  test::Child child([&](const test::Child::Side& side) {
    const bool is_user = setgroups(1, &kGroup) == 0 && setgid(kUser) == 0 && setuid(kUser) == 0;
    side.say(is_user ? read_private(path) : "not this user");
    return 0;
  });
  return child.hear().value_or("");
}

class Files : public testing::Test {
 protected:
  std::string make(const std::string& name, std::string_view text = kText) const {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), 0600), 0);
    return path;
  }

  const test::TemporaryFolder folder_;
};

TEST_F(Files, are_private_if_their_owner_alone_may_use_them_or_if_root_lets_a_group_read_them) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes files of another user";
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  const std::string path = make("secret");
  const std::string ok(kText);
  const struct {
    uid_t owner;
    gid_t group;
    mode_t mode;
    std::string answer;
  } cases[] = {{kUser, kGroup, 0600, ok},
               {kUser, kGroup, 0400, ok},
               {kUser, kGroup, 0640, "mode 0640"},
               {kUser, kGroup, 0604, "mode 0604"},
               {0, kGroup, 0640, ok},
               {0, kGroup, 0440, ok},
               {0, kGroup, 0040, ok},
               {0, kGroup, 0660, "mode 0660"},
               {0, kGroup, 0650, "mode 0650"},
               {0, kGroup, 0644, "mode 0644"},
               {0, kGroup, 0444, "mode 0444"},
               {0, kGroup, 0642, "mode 0642"},
               {0, kGroup, 0641, "mode 0641"},
               {0, 0, 0640, "fsGroup"},
               {0, kGroup, 0400, "Permission denied"},
               {kUser + 1, kGroup, 0640, "it belongs to uid 4712"},
               {kUser + 1, kGroup, 0440, "it belongs to uid 4712"}};
  for (const auto& each : cases) {
    ASSERT_EQ(chown(path.c_str(), each.owner, each.group), 0);
    ASSERT_EQ(chmod(path.c_str(), each.mode), 0);
    EXPECT_TRUE(contains(read_by_user(path), each.answer)) << each.owner << " " << each.mode;
  }
}

TEST_F(Files, of_root_may_be_read_by_a_group_also_if_the_process_is_roots) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has files of root";
  const std::string path = make("secret");
  ASSERT_EQ(chmod(path.c_str(), 0440), 0);
  EXPECT_EQ(read_private(path), kText);
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  EXPECT_TRUE(
      contains(read_private(path), "chmod 600, or have it belong to root with at most 0640"));
}

TEST_F(Files, are_read_through_the_links_of_a_volume) {
  std::filesystem::create_directory(folder_.path() + "/..2026");
  (void)make("..2026/secret");
  std::filesystem::create_symlink("..2026", folder_.path() + "/..data");
  std::filesystem::create_symlink("..data/secret", folder_.path() + "/secret");
  EXPECT_EQ(read_private(folder_.path() + "/secret"), kText);
}

TEST_F(Files, are_read_to_their_end_or_just_beyond_the_limit) {
  const std::string long_text(100'000, 'x');
  const std::string path = make("file", long_text);
  const auto read = [&](size_t limit) {
    return text_of(base::read_whole_file(path, base::FileKind::plain, limit)).size();
  };
  EXPECT_EQ(read(99'998), 99'999u);
  EXPECT_EQ(read(100'000), 100'000u);
  EXPECT_EQ(read(1'000'000), 100'000u);
  EXPECT_EQ(text_of(base::read_whole_file(make("empty", ""), base::FileKind::plain, 1)), "");
}

TEST_F(Files, that_are_none_are_refused_by_name_and_never_waited_for) {
  const std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const struct {
    std::string path;
    const char* why;
  } cases[] = {{folder_.path(), "it is a folder"},
               {folder_.path() + "/", "it is a folder"},
               {folder_.path() + "/none", "No such file"},
               {pipe, "it is no plain file"},
               {"/dev/null", "it is no plain file"}};
  for (const auto& each : cases) {
    EXPECT_TRUE(contains(read_private(each.path), each.why));
    EXPECT_TRUE(contains(text_of(base::read_whole_file(each.path, base::FileKind::plain, kLimit)),
                         each.why));
  }
}

TEST_F(Files, of_settings_that_cannot_be_read_are_an_error_and_change_nothing) {
  const std::string link = folder_.path() + "/link";
  std::filesystem::create_symlink(folder_.path(), link);
  const struct {
    std::string path;
    const char* why;
  } cases[] = {{folder_.path(), "it is a folder"},
               {link, "it is a folder"},
               {folder_.path() + "/none", "No such file"},
               {make("file") + "/inside", "Not a directory"},
               {"/proc/self/mem", "Input/output error"},
               {"/dev/zero", "more than 1048576 bytes"},
               {"", "No such file"}};
  for (const auto& each : cases) {
    Config config;
    expect_error(config.load_file(each.path), Code::config_invalid, {each.path, each.why});
    EXPECT_EQ(config.source("ring.bytes"), "default");
  }
}

TEST_F(Files, of_settings_may_be_a_pipe) {
  const std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const test::Child writer([&](const test::Child::Side&) {
    std::ofstream(pipe) << "[ring]\nbytes = \"64 KiB\"\n";
    return 0;
  });
  Config config;
  EXPECT_TRUE(test::is_ok(config.load_file(pipe)));
  EXPECT_EQ(config.get_number("ring.bytes"), 65536u);
}

}  // namespace
}  // namespace faro
