// EndpointCounterView: an endpoint's counter file as another process sees it. It is copied with each look, as CounterView does
// it and for the same reasons.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "counters/endpoint_layout.h"
#include "counters/reading.h"
#include "faro/status.h"

namespace faro::counters {

/// What channels have counted: one, or many together.
struct ChannelCounts {
  OutgoingValues sent;
  IncomingValues received;
  ChannelValues counters;
};

struct ChannelView {
  uint32_t index = 0;
  uint64_t generation = 0;
  ChannelLife life = ChannelLife::none;
  uint64_t since_ns = 0;  ///< in this life
  std::string peer;       ///< its name; empty: it has none, or it is not known yet
  std::string address;
  uint64_t incarnation = 0;  ///< of the peer
  std::string transport;
  uint32_t poller = 0;
  bool dialled = false;
  uint64_t send_bytes = 0, receive_bytes = 0;
  std::string failure;  ///< of the last attempt to open it, or why it has ended
  ChannelCounts counts;

  bool is_open() const { return life == ChannelLife::open || life == ChannelLife::draining; }
};

/// An endpoint at one moment: each value is exact, together they are of about one moment.
struct EndpointView {
  std::string path;
  bool alive = false;    ///< its process has not ended
  bool stopped = false;  ///< but does not run, as NodeView::stopped
  uint32_t pid = 0;      ///< in its own namespace
  std::string cluster;
  std::string name;
  std::string address;
  uint64_t incarnation = 0;
  uint64_t created_ns = 0;
  uint64_t read_ns = 0;  ///< when this was read, CLOCK_MONOTONIC
  EndpointValues counters;
  std::vector<PollerValues> pollers;
  std::vector<ChannelView> channels;  ///< by index
  ChannelCounts all;                  ///< of all channels, those that are no more included

  /// "tm-1 (10.0.0.2:7000)".
  std::string full_name() const { return name.empty() ? address : name + " (" + address + ")"; }
};

/// Threads: one at a time. Owns: a copy of the file.
class EndpointCounterView {
 public:
  /// `named`: the user has named this file, see open_counter_file. Errors: as CounterView::open.
  static Result<std::unique_ptr<EndpointCounterView>> open(const std::string& path,
                                                           bool named = false);
  /// Over memory, which `memory` tells with each copy of it: it may grow. Errors: invalid_argument.
  using Memory = std::function<std::span<const std::byte>()>;
  static Result<std::unique_ptr<EndpointCounterView>> over(Memory memory);
  EndpointCounterView(const EndpointCounterView&) = delete;
  EndpointCounterView& operator=(const EndpointCounterView&) = delete;

  /// One whose process has ended is read as it was at its end; one whose file was cut short, as it was read last, and as
  /// ended. A channel that is replaced just now is left out. Blocks: for the file.
  EndpointView read();

 private:
  /// One copy of what the file has.
  struct Copy {
    Lines lines;
    uint64_t bytes = 0;
    std::span<const std::byte> memory() const {
      return std::as_bytes(std::span(lines)).first(bytes);
    }
  };

  EndpointCounterView(Memory memory, base::UniqueFd fd, std::string path)
      : memory_(std::move(memory)), fd_(std::move(fd)), path_(std::move(path)) {}
  Status take(Copy& copy) const;
  Status check();
  bool look();
  const SectionPlace& place(EndpointSection section) const {
    return header_.sections[static_cast<uint32_t>(section)];
  }
  uint32_t channel_count(const Copy& copy) const;
  template <typename Record>
  const Record& at(const Copy& copy, EndpointSection section, uint32_t index) const;
  const EndedChannels& ended(const Copy& copy) const {
    return at<EndedChannels>(copy, EndpointSection::ended, 0);
  }
  ChannelCounts counts_of(const Copy& copy, uint32_t index) const;
  EndpointView view(bool whole) const;

  const Memory memory_;      // empty: a file
  const base::UniqueFd fd_;  // invalid: memory
  const std::string path_;
  Copy first_,
      second_;  // of the last look, one after the other: a record is whole that has not changed meanwhile
  Header header_;  // a copy, checked: what the file says later does not count
};

/// Whose counters a file has. Errors: as CounterView::open.
Result<FileKind> kind_of(const std::string& path, bool named = false);

}  // namespace faro::counters
