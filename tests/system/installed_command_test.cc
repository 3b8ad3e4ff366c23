// The programs find libfaro_verbs.so where they were installed, wherever that is and however they
// are started.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/expect.h"

namespace faro::test {
namespace {

namespace files = std::filesystem;

/// An installed tree: the programs in bin/, the module in a folder of libraries.
class Installed : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    // Beside what was built: programs may not be allowed to run in a folder of memory.
    std::string name = (files::path(FARO_COMMAND_PATH).parent_path() / "installed-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    files::create_directories(prefix() / "bin");
    // What is installed does not know where it was built.
    const std::string script = (folder_ / "script.cmake").string();
    std::ofstream commands(script);
    for (const files::path program : {FARO_COMMAND_PATH, FARO_LAB_PATH}) {
      const files::path copy = prefix() / "bin" / program.filename();
      files::copy_file(program, copy);
      commands << "file(RPATH_REMOVE FILE \"" << copy.string() << "\")\n";
    }
    commands.close();
    ASSERT_EQ(std::system(fmt::format("'{}' -P '{}'", FARO_CMAKE_PATH, script).c_str()), 0);
  }
  void TearDown() override { files::remove_all(folder_); }
  files::path prefix() const { return folder_ / "prefix"; }
  void install_module(const files::path& libraries) {
    files::create_directories(prefix() / libraries);
    files::copy_file(FARO_VERBS_PATH, prefix() / libraries / "libfaro_verbs.so");
  }

  /// What `faro plan --transport verbs` says, which takes the module; `script` starts "$@" somehow.
  std::string said(const std::string& script) {
    const std::string output = folder_ / "output";
    const std::string line = fmt::format(
        "cd '{}' && set -- plan --nodes 2 --workers 1 --transport verbs && ({}) >'{}' 2>&1",
        prefix().string(), script, output);
    (void)std::system(line.c_str());
    std::ifstream file(output);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void expect_found(const std::string& script) {
    const std::string text = said(script);
    EXPECT_FALSE(text.empty()) << script;
    EXPECT_EQ(text.find("cannot be loaded"), text.npos) << script << ": " << text;
    EXPECT_EQ(text.find("not found"), text.npos) << script << ": " << text;
  }

  files::path folder_;
};

TEST_P(Installed, command_finds_its_module_in) {
  install_module(GetParam());
  expect_found("\"$PWD/bin/faro\" \"$@\"");
}

INSTANTIATE_TEST_SUITE_P(Folder, Installed,
                         testing::Values("bin", "lib", "lib64", "lib/" FARO_MULTIARCH),
                         [](const auto& of) {
                           std::string name = of.param;
                           for (char& c : name) c = std::isalnum(c) != 0 ? c : '_';
                           return name;
                         });

using InstalledCommand = Installed;

TEST_F(InstalledCommand, finds_its_module_however_it_is_started) {
  install_module("lib");
  expect_found("PATH=\"$PWD/bin:$PATH\" faro \"$@\"");
  expect_found("cd bin && ./faro \"$@\"");
  expect_found("cd bin && PATH=.:$PATH faro \"$@\"");
  expect_found("ln -s \"$PWD/bin/faro\" ../linked && ../linked \"$@\"");
  expect_found("bash -c 'exec -a something-else bin/faro \"$@\"' x \"$@\"");
}

TEST_F(InstalledCommand, without_its_module_says_where_it_has_looked) {
  const std::string text = said("bin/faro \"$@\"");
  expect_contains(text, "cannot be loaded");
  expect_contains(text, (files::canonical(prefix()) / "lib/libfaro_verbs.so").string());
}

// Figures over tcp are not to be taken for those over RDMA.
TEST_F(InstalledCommand, says_that_auto_leaves_out_verbs) {
  const std::string text =
      said("bin/faro-lab bench link --transport auto --frame 64 --count 10 --repetitions 1");
  expect_contains(text, "faro-lab bench: auto is shm within a host and tcp between hosts here");
  expect_contains(text, "cannot be loaded");
}

}  // namespace
}  // namespace faro::test
