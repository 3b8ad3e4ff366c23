// EndpointFile: the counters of an endpoint, where other processes can read them (folder.h). As CounterFile, but it grows with
// the channels that there are.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "counters/counter_memory.h"
#include "counters/endpoint_layout.h"
#include "faro/status.h"

namespace faro::counters {

struct EndpointShape {
  std::string cluster;
  std::string name;
  std::string address;
  uint32_t poller_count = 1;
  uint32_t channel_limit = 1;
};

class EndpointFile {
 public:
  /// Counters in a new file in `folder`, or in memory of this process alone if that is empty. Stale files of this user
  /// there are removed. `now`: CLOCK_MONOTONIC. Errors: as CounterFile::make.
  static Result<std::unique_ptr<EndpointFile>> make(const EndpointShape& shape,
                                                    const std::string& folder, uint64_t now);
  EndpointFile(const EndpointFile&) = delete;
  EndpointFile& operator=(const EndpointFile&) = delete;

  /// Empty if there is no file, or its name was removed. Threads: one at a time, as remove_name.
  const std::string& path() const noexcept { return memory_.path(); }
  /// Removes the file's name; the records stay. Idempotent.
  void remove_name() noexcept { memory_.remove_name(); }
  /// What the file has now. Threads: any.
  std::span<const std::byte> memory() const noexcept {
    return {memory_.data(), used_bytes_.load(std::memory_order_acquire)};
  }

  /// Peers can connect from now on. Threads: one, once.
  void listens(uint64_t incarnation) noexcept;

  // The records. Valid as long as this object.
  EndpointCounters& endpoint() noexcept {
    return *at<EndpointCounters>(EndpointSection::endpoint, 0);
  }
  PollerCounters& poller(uint32_t index) noexcept {
    return *at<PollerCounters>(EndpointSection::pollers, index);
  }
  EndedChannels& ended() noexcept { return *at<EndedChannels>(EndpointSection::ended, 0); }
  /// That of a channel, below the limit. The file grows if it does not have it yet. Errors: system_error, the folder has no
  /// room. Threads: one at a time.
  Result<ChannelRecord*> channel(uint32_t index);

 private:
  EndpointFile(CounterMemory memory, uint64_t used)
      : memory_(std::move(memory)), used_bytes_(used) {}

  Header& header() noexcept { return *reinterpret_cast<Header*>(memory_.data()); }
  template <typename Record>
  Record* at(EndpointSection section, uint32_t index) noexcept {
    const SectionPlace& place = header().sections[static_cast<uint32_t>(section)];
    return reinterpret_cast<Record*>(memory_.data() + place.offset +
                                     uint64_t{index} * place.stride_bytes);
  }

  CounterMemory memory_;  // of which what lies beyond used_bytes_ must not be touched
  std::atomic<uint64_t> used_bytes_;
};

}  // namespace faro::counters
