// One of two endpoints with a channel, which send each other frames of many sizes and compare what comes.
//
//   channel_peer listen | dial ADDRESS [cut | mend]
//
//   cut    breaks its connections in the middle
//   mend   breaks them, too, and goes on when they have been mended
//
// Settings come from the environment. The side that listens says its address; in the end both say
// how many frames have come, or why the channel has ended.
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "connections.h"
#include "faro/endpoint.h"
#include "peer.h"

using namespace compatibility;
using Kind = faro::ChannelEvent::Kind;

static constexpr uint64_t kFrames = 4'000;  // each way
static constexpr uint32_t kRingBytes = 16 * 1024;
static constexpr size_t kHeld = 4;  // frames, which are released in another order than they came
static constexpr std::chrono::seconds kLimit{20};
static constexpr std::string_view kGreeting = "a greeting";

static size_t length_of(uint64_t number) { return number * 37 % 2'000; }

// The space for a frame; empty if there is none. Earlier builds give it back.
template <typename Poller>
static std::span<std::byte> claimed(Poller& poller, faro::ChannelId channel, size_t bytes) {
  std::span<std::byte> space;
  if constexpr (requires { poller.claim(channel, bytes, bytes, space); }) {
    if (poller.claim(channel, bytes, bytes, space) != faro::Outcome::done) return {};
  } else {
    space = poller.claim(channel, bytes, bytes);
  }
  return space;
}

class Peer {
 public:
  Peer(std::unique_ptr<faro::Endpoint> endpoint, bool dials, std::string_view last_word)
      : endpoint_(std::move(endpoint)),
        poller_(endpoint_->poller(0)),
        dials_(dials),
        mends_(last_word == "mend"),
        cuts_(mends_ || last_word == "cut") {}

  void dial(const std::string& address) {
    faro::ChannelSpec spec{.send_bytes = kRingBytes, .receive_bytes = kRingBytes};
    for (const char each : kGreeting) spec.greeting.push_back(static_cast<std::byte>(each));
    check(poller_.connect(address, spec));
  }

  /// Until the channel has closed. Returns what is to be said.
  std::string run() {
    faro::ChannelEvent some[16];
    while (poller_.wait(faro::Wait::at_most(kLimit)) == faro::Outcome::done) {
      for (const faro::ChannelEvent& event : poller_.poll(some)) {
        if (event.kind == Kind::closed) return end_of(event.channel);
        if (event.kind == Kind::opened) transport_ = check(poller_.info(event.channel)).transport;
        if (event.kind == Kind::frame) take(event);
        send(event.channel);
        if (mends_) connections_.await_mended();
      }
    }
    fail(std::to_string(taken_) + " frames have come, then nothing for " +
         std::to_string(kLimit.count()) + " s");
  }

 private:
  void take(const faro::ChannelEvent& frame) {
    const uint64_t number = taken_++;
    if (frame.data.size() != length_of(number) || !has_bytes(frame.data, dials_ ? 0 : 1, number))
      fail("frame " + std::to_string(number) + " is wrong");
    held_.push_back(frame.token);
    if (held_.size() < kHeld && taken_ < kFrames) return;
    for (; !held_.empty(); held_.pop_back()) poller_.release(frame.channel, held_.back());
  }

  void send(faro::ChannelId channel) {
    if (cuts_ && taken_ > kFrames / 2) {
      cuts_ = false;
      connections_.cut();
    }
    while (sent_ < kFrames) {
      const size_t bytes = length_of(sent_);
      const std::span<std::byte> room = claimed(poller_, channel, bytes);
      if (room.data() == nullptr) break;
      write_bytes(room, dials_ ? 1 : 0, sent_);
      if (poller_.commit(channel, bytes) != faro::Outcome::done) break;
      ++sent_;
    }
    if (dials_ && sent_ == kFrames && taken_ == kFrames)
      poller_.close(channel, faro::Closing::drain);
  }

  std::string end_of(faro::ChannelId channel) const {
    const faro::Status status = poller_.status(channel);
    if (!status.ok()) return "the channel has ended: " + status.to_string();
    if (sent_ != kFrames || taken_ != kFrames) fail("frames are missing");
    return std::to_string(taken_) + " frames over " + way_of(transport_);
  }

  const std::unique_ptr<faro::Endpoint> endpoint_;
  faro::Poller& poller_;
  const bool dials_, mends_;
  bool cuts_;
  Connections connections_;
  std::string transport_;
  uint64_t sent_ = 0, taken_ = 0;
  std::deque<uint32_t> held_;
};

static faro::ChannelAcceptance accept_known(const faro::ChannelRequest& request) {
  const std::string_view greeting(reinterpret_cast<const char*>(request.greeting.data()),
                                  request.greeting.size());
  const bool is_whole = greeting == kGreeting && request.peer == "dials";
  return {.refusal = is_whole ? "" : "another greeting or name"};
}

int main(int argc, char** argv) {
  const bool dials = argc > 2 && std::string_view(argv[1]) == "dial";
  faro::EndpointSpec spec{.name = dials ? "dials" : "listens"};
  spec.accept = accept_known;
  auto endpoint = check(faro::Endpoint::open(environment(), std::move(spec)));
  if (!dials) say(endpoint->address());
  Peer peer(std::move(endpoint), dials, argv[argc - 1]);
  if (dials) peer.dial(argv[2]);
  say(peer.run());
}
