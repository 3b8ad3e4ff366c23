// Record: what a program has shown, line by line, and the digest of it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faro/hash.h"

namespace faro::programs {

/// What a line is about. A comparison can leave kinds out (`--leave-out`).
enum class Kind : uint8_t {
  call,
  answer,
  // of the send path
  frame,
  announced,
  room,
  counter,
  memory,
  row,
  // of the state of nodes
  message,
  alive,
  cause,
  event,
  state,
};
inline constexpr std::string_view kKindNames[] = {
    "call", "answer",  "frame", "announced", "room",  "counter", "memory",
    "row",  "message", "alive", "cause",     "event", "state"};

/// Which kinds a record takes no notice of.
using LeftOut = uint32_t;
constexpr LeftOut bit_of(Kind kind) { return LeftOut{1} << static_cast<uint32_t>(kind); }

/// What programs were like, counted.
using Tally = std::map<std::string, uint64_t>;

/// What happened by one call.
struct Marked {
  std::string call;
  std::string text;     // a line for each thing, if the record keeps them
  uint16_t digest = 0;  // of everything up to here
};

/// Threads: one.
class Record {
 public:
  /// `keeps_text`: for people. Without it only the digests are kept.
  Record(LeftOut left_out, bool keeps_text) : left_out_(left_out), keeps_text_(keeps_text) {}

  /// Everything that follows is of this call, the next by number.
  template <typename... Args>
  void begin_call(fmt::format_string<Args...> format, Args&&... args) {
    end_call();
    text_ = fmt::format("{} ", call_number());
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
    call_bytes_ = text_.size();
  }
  template <typename... Args>
  void note(Kind kind, fmt::format_string<Args...> format, Args&&... args) {
    if ((left_out_ & bit_of(kind)) != 0) return;
    text_ += "    ";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  /// For people only: no part of the digest.
  template <typename... Args>
  void explain(fmt::format_string<Args...> format, Args&&... args) {
    if (!keeps_text_) return;
    explained_ += "      ";
    fmt::format_to(std::back_inserter(explained_), format, std::forward<Args>(args)...);
    explained_ += '\n';
  }
  void end_call() {
    if (text_.empty()) return;
    digest_ = FinalizerHash()(digest_ ^ hash_bytes(text_.data(), text_.size()));
    Marked marked;
    marked.digest = static_cast<uint16_t>(digest_);
    if (keeps_text_) {
      marked.call = text_.substr(0, call_bytes_ - 1);
      marked.text = text_.substr(call_bytes_) + explained_;
    }
    marked_.push_back(std::move(marked));
    text_.clear();
    explained_.clear();
  }

  /// That happened, or was so, once more; no part of the digest.
  void count(const std::string& what, uint64_t by = 1) { tally_[what] += by; }

  /// The call of now; the first is 1.
  uint64_t call_number() const noexcept { return marked_.size() + 1; }
  uint64_t digest() const noexcept { return digest_; }
  const std::vector<Marked>& calls() const noexcept { return marked_; }
  const Tally& tally() const noexcept { return tally_; }
  bool keeps_text() const noexcept { return keeps_text_; }

 private:
  const LeftOut left_out_;
  const bool keeps_text_;
  uint64_t digest_ = 0;
  std::string text_;  // of the call of now
  std::string explained_;
  size_t call_bytes_ = 0;  // of text_, what was called
  std::vector<Marked> marked_;
  Tally tally_;
};

/// What a program has come to.
struct RunResult {
  uint64_t digest = 0;
  std::vector<Marked> calls;
  std::string violation;  // the first rule that was broken; empty: none was
  Tally tally;
};

/// Runs a program from its begin to its end. Program: made of a plan and a record; run(),
/// violation().
template <typename Program, typename Plan>
RunResult run_to_end(const Plan& plan, LeftOut left_out, bool keeps_text) {
  Record record(left_out, keeps_text);
  RunResult result;
  {
    Program program(plan, record);
    program.run();
    result.violation = program.violation();
  }
  record.end_call();
  result.tally = record.tally();
  result.digest = record.digest();
  result.calls = record.calls();
  return result;
}

}  // namespace faro::programs
