// Runs a target over files and folders of files, as libFuzzer would repeat a finding: for compilers
// without it, and for findings that were mended and stay in the corpus.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/fuzz_target.h"

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    if (!file.is_open()) return std::fprintf(stderr, "%s cannot be read\n", path.c_str()), 1;
    std::fprintf(stderr, "%s, %zu bytes\n", path.c_str(), bytes.size());
    faro::fuzz::run_target({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  }
  std::printf("%zu inputs\n", files.size());
  return files.empty() ? 1 : 0;
}
