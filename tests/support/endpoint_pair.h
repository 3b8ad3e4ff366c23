// EndpointPair: two endpoints in one process, and what their pollers tell, one event after the other.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "faro/endpoint.h"
#include "support/expect.h"
#include "support/test_network.h"

namespace faro::test {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// An endpoint whose poller 0 is used by the test's thread.
class EndpointSide {
 public:
  using Kind = ChannelEvent::Kind;

  /// Far longer than anything here takes: what hangs fails with a text.
  static constexpr Wait kAtMost = Wait::at_most(std::chrono::seconds(30));

  /// Endpoints take turns to listen on the addresses of test_network.h, if the environment names some.
  explicit EndpointSide(Config config, EndpointSpec spec = {}) {
    static std::atomic<uint32_t> count{0};
    if (names_addresses()) {
      EXPECT_TRUE(is_ok(config.set("cluster.listen", listen_address(count++))));
      EXPECT_TRUE(is_ok(config.set("security.open", 1)));
    }
    auto opened = Endpoint::open(config, std::move(spec));
    EXPECT_TRUE(is_ok(opened));
    if (opened.ok()) endpoint_ = std::move(*opened);
  }

  Endpoint& endpoint() { return *endpoint_; }
  Poller& poller() { return endpoint_->poller(0); }
  const std::string& address() { return endpoint_->address(); }

  ChannelId connect(EndpointSide& to, const ChannelSpec& spec = {}) {
    return connect(to.address(), spec);
  }
  ChannelId connect(std::string_view address, const ChannelSpec& spec = {}) {
    const auto id = poller().connect(address, spec);
    EXPECT_TRUE(is_ok(id));
    return id.ok() ? *id : ChannelId{};
  }

  /// The next event.
  ChannelEvent next() {
    while (events_.empty()) {
      const Outcome outcome = poller().wait(kAtMost);
      // Thrown, so that a loop that waits for some event ends, too.
      if (outcome != Outcome::done)
        throw std::runtime_error(std::string("no event: ") + outcome_name(outcome));
      ChannelEvent some[3];  // few, so that it takes several turns
      for (const ChannelEvent& event : poller().poll(some)) events_.push_back(event);
    }
    const ChannelEvent event = events_.front();
    events_.pop_front();
    return event;
  }
  /// The next event, which is of that kind.
  ChannelEvent expect(Kind kind) {
    const ChannelEvent event = next();
    EXPECT_EQ(static_cast<int>(event.kind), static_cast<int>(kind))
        << poller().status(event.channel).to_string();
    return event;
  }
  /// The next event is that frame, which is released.
  void expect_frame(std::string_view text) {
    const ChannelEvent event = expect(Kind::frame);
    EXPECT_EQ(text_of(event.data), text);
    poller().release(event.channel, event.token);
  }
  /// The next event says that the channel has closed. Returns why.
  Status expect_closed(ChannelId channel) {
    const ChannelEvent event = expect(Kind::closed);
    EXPECT_EQ(event.channel, channel);
    return poller().status(channel);
  }

  /// The space of a claim; empty if it is not done.
  std::span<std::byte> claim(ChannelId channel, size_t least, size_t most) {
    std::span<std::byte> space;
    const Outcome outcome = poller().claim(channel, least, most, space);
    EXPECT_EQ(outcome == Outcome::done, space.data() != nullptr);
    return space;
  }

  /// False: there is no room.
  bool send(ChannelId channel, std::string_view text) {
    const auto room = claim(channel, text.size(), text.size());
    if (room.data() == nullptr) return false;
    std::memcpy(room.data(), text.data(), text.size());
    EXPECT_EQ(poller().commit(channel, text.size()), Outcome::done);
    poller().post();
    return true;
  }

 private:
  std::unique_ptr<Endpoint> endpoint_;
  std::deque<ChannelEvent> events_;
};

}  // namespace faro::test
