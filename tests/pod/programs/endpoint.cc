// pod_endpoint <port of the harness>: an endpoint. Over its channel frames go both ways at the same time, of all sizes up to 2 KiB,
// and each is compared with what it has to be.
#include <cstring>

#include "driver.h"
#include "faro/endpoint.h"

namespace {

using Kind = faro::ChannelEvent::Kind;
constexpr size_t kMostBytes = 2048;

size_t size_of(uint64_t frame) { return pod::mix(frame) % kMostBytes; }
std::byte byte_of(uint64_t frame, size_t at) { return static_cast<std::byte>(frame * 31 + at); }

class Side {
 public:
  Side(pod::Driver& driver, faro::Endpoint& endpoint)
      : driver_(driver), poller_(endpoint.poller(0)) {}

  void connect(const std::string& address) { channel_ = pod::check(poller_.connect(address, {})); }
  /// Frames that it sends in all, and that the peer does. It says when it has as many of the peer.
  void set_goal(uint64_t frames) { goal_ = frames; }
  void drain() { poller_.close(channel_, faro::Closing::drain); }

  /// Sends what there is room for, waits, and takes what has come.
  void turn() {
    while (sent_ < goal_ && put()) ++sent_;
    if (received_ == goal_ && told_ != goal_)
      driver_.say("verified " + std::to_string(told_ = goal_));
    (void)poller_.wait();
    faro::ChannelEvent events[64];
    for (const faro::ChannelEvent& event : poller_.poll(events)) {
      channel_ = event.channel;
      if (event.kind == Kind::opened) driver_.say("opened " + poller_.info(channel_)->transport);
      if (event.kind == Kind::frame) take(event);
      if (event.kind == Kind::closed)
        driver_.say("closed " + std::to_string(received_) + " " +
                    poller_.status(channel_).to_string());
    }
  }

 private:
  bool put() {
    std::span<std::byte> room;
    if (poller_.claim(channel_, size_of(sent_), size_of(sent_), room) != faro::Outcome::done)
      return false;
    for (size_t i = 0; i < size_of(sent_); ++i) room[i] = byte_of(sent_, i);
    return poller_.commit(channel_, size_of(sent_)) == faro::Outcome::done;
  }

  void take(const faro::ChannelEvent& event) {
    bool is_right = event.data.size() == size_of(received_);
    for (size_t i = 0; is_right && i < event.data.size(); ++i)
      is_right = event.data[i] == byte_of(received_, i);
    if (!is_right) driver_.say("wrong frame " + std::to_string(received_));
    ++received_;
    poller_.release(event.channel, event.token);
  }

  pod::Driver& driver_;
  faro::Poller& poller_;
  faro::ChannelId channel_{};
  uint64_t goal_ = 0, sent_ = 0, received_ = 0, told_ = 0;
};

void serve(pod::Driver& driver) {
  const pod::Termination termination(driver);
  faro::Config config;
  pod::check(config.load_environment());
  const auto endpoint = pod::check(faro::Endpoint::open(config, {.name = "pod"}));
  Side side(driver, *endpoint);
  driver.say("open " + endpoint->address());
  // What it is told changes only what the next turn does: the poller is one thread's.
  std::mutex mutex;
  std::vector<std::vector<std::string>> told;
  std::thread hearing([&] {
    for (;;) {
      const std::vector<std::string> words_told = driver.hear();
      const std::lock_guard lock(mutex);
      told.push_back(words_told);
      endpoint->poller(0).wake();
      if (words_told.empty() || words_told[0] == "close") return;
    }
  });
  for (bool goes_on = true; goes_on;) {
    std::vector<std::vector<std::string>> now;
    {
      const std::lock_guard lock(mutex);
      now.swap(told);
    }
    for (const std::vector<std::string>& each : now) {
      if (each.empty() || each[0] == "close") goes_on = false;
      if (each.empty()) break;
      if (each[0] == "connect") side.connect(each[1]);
      if (each[0] == "frames") side.set_goal(std::stoull(each[1]));
      if (each[0] == "drain") side.drain();
    }
    if (now.empty()) side.turn();
  }
  hearing.join();
  endpoint->close();
}

}  // namespace

int main(int, char** words) { return pod::run(words[1], serve); }
