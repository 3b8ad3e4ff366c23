#include "sim/programs/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "faro/log.h"

namespace faro::programs {
namespace {

constexpr std::string_view kUsage =
    "usage: --seeds A-B [--write FILE | --compare FILE] [--leave-out KIND,...]\n"
    "       --show SEED [--leave-out KIND,...]\n"
    "kinds:";

struct Options {
  uint64_t first = 1;
  uint64_t last = 1000;
  std::string write;
  std::string compare;
  std::optional<uint64_t> show;
  LeftOut left_out = 0;
};

[[noreturn]] void refuse(std::string_view why) {
  std::cerr << why << '\n' << kUsage;
  for (const std::string_view kind : std::span(kKindNames).subspan(1)) std::cerr << ' ' << kind;
  std::cerr << '\n';
  std::exit(2);
}

uint64_t number_of(const std::string& text) {
  char* end = nullptr;
  const uint64_t number = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') refuse("'" + text + "' is no number");
  return number;
}

LeftOut kinds_of(const std::string& text) {
  LeftOut kinds = 0;
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = std::ranges::find(kKindNames, name);
    if (found == std::end(kKindNames) || found == std::begin(kKindNames))
      refuse("no kind '" + name + "'");
    kinds |= bit_of(static_cast<Kind>(found - std::begin(kKindNames)));
  }
  return kinds;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string name = arguments[i];
    if (i + 1 == count) refuse(name + " needs a value");
    const std::string value = arguments[i + 1];
    if (name == "--seeds") {
      const size_t dash = value.find('-');
      if (dash == std::string::npos) refuse("--seeds A-B");
      options.first = number_of(value.substr(0, dash));
      options.last = number_of(value.substr(dash + 1));
    } else if (name == "--write") {
      options.write = value;
    } else if (name == "--compare") {
      options.compare = value;
    } else if (name == "--show") {
      options.show = number_of(value);
    } else if (name == "--leave-out") {
      options.left_out = kinds_of(value);
    } else {
      refuse("unknown option '" + name + "'");
    }
  }
  return options;
}

void show(const Programs& programs, uint64_t seed, LeftOut left_out) {
  const RunResult result = programs.run(seed, left_out, true);
  std::cout << programs.describe(seed);
  for (const Marked& each : result.calls) std::cout << each.call << '\n' << each.text;
  std::cout << fmt::format("{} {:016x}\n", seed, result.digest);
  if (!result.violation.empty()) std::cout << "violation: " << result.violation << '\n';
}

/// What a file says of a program: its digest, and four digits for the state after each call.
std::string line_of(uint64_t seed, const RunResult& result) {
  std::string line = fmt::format("{} {:016x} ", seed, result.digest);
  for (const Marked& each : result.calls) line += fmt::format("{:04x}", each.digest);
  return line;
}

// With the calls up to the one that differs, and what that has come to here.
void tell_difference(const Programs& programs, uint64_t seed, const std::string& was,
                     const std::string& is, LeftOut left_out) {
  const RunResult result = programs.run(seed, left_out, true);
  const auto marks_of = [](const std::string& line) { return line.substr(line.rfind(' ') + 1); };
  const std::string before = marks_of(was), now = marks_of(is);
  size_t call = 0;
  while (call < result.calls.size() && before.compare(4 * call, 4, now, 4 * call, 4) == 0) {
    if (4 * (call + 1) > before.size()) break;
    ++call;
  }
  std::cout << "program " << seed << " differs\n" << programs.describe(seed);
  for (size_t i = 0; i < call && i < result.calls.size(); ++i)
    std::cout << result.calls[i].call << '\n';
  if (call == result.calls.size()) {
    std::cout << "ends here; there it goes on\n";
  } else {
    std::cout << "first difference, here:\n"
              << result.calls[call].call << '\n'
              << result.calls[call].text;
  }
}

std::optional<std::string> tell_violation(uint64_t seed, const RunResult& result) {
  if (result.violation.empty()) return std::nullopt;
  return fmt::format("program {} broke a rule: {}", seed, result.violation);
}

int run(const Programs& programs, const Options& options) {
  if (options.show) return show(programs, *options.show, options.left_out), 0;
  std::ofstream written;
  if (!options.write.empty()) written.open(options.write);
  std::ifstream compared;
  if (!options.compare.empty()) {
    compared.open(options.compare);
    if (!compared) refuse("cannot read " + options.compare);
  }
  const auto begin = std::chrono::steady_clock::now();
  uint64_t count = 0;
  for (uint64_t seed = options.first; seed <= options.last; ++seed, ++count) {
    const RunResult result = programs.run(seed, options.left_out, false);
    if (const auto violation = tell_violation(seed, result)) {
      std::cout << *violation << '\n';
      if (!written.is_open())
        return 1;  // a rule that the other build breaks is none to compare with
    }
    const std::string line = line_of(seed, result);
    if (options.write.empty() && options.compare.empty())
      std::cout << line.substr(0, line.rfind(' ')) << '\n';
    if (written.is_open()) written << line << '\n';
    if (!compared.is_open()) continue;
    std::string was;
    while (std::getline(compared, was) && std::strtoull(was.c_str(), nullptr, 10) < seed) {
    }
    if (!compared || std::strtoull(was.c_str(), nullptr, 10) != seed)
      refuse(fmt::format("{} has no program {}", options.compare, seed));
    if (was == line) continue;
    tell_difference(programs, seed, was, line, options.left_out);
    return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cerr << fmt::format("{} programs in {:.1f} s, {:.0f} per second\n", count, took.count(),
                           static_cast<double>(count) / took.count());
  return 0;
}

}  // namespace

int run_command(const Programs& programs, int count, char** arguments) {
  set_log_level(LogLevel::off);  // programs make mistakes
  return run(programs, parse(count, arguments));
}

}  // namespace faro::programs
