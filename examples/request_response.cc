// Three servers that answer requests in upper case, and clients that come and go, over the channels of endpoints: for
// engines that do not want a cluster. A client whose server leaves is told why, and goes on with the next one.
//
//   request_response                        three servers and four clients, in one process
//   request_response server                 a server that says where it listens, until it is killed
//   request_response client HOST:PORT...    a client of the servers there, until it has a million answers
#include <algorithm>
#include <cctype>
#include <string_view>

#include "cluster.h"
#include "faro/endpoint.h"

using Kind = faro::ChannelEvent::Kind;
static std::atomic<int> answers = 0, lost = 0;  // answers that clients had, servers that left them
static void say(const std::string& line) { std::printf("%s\n", line.c_str()), std::fflush(stdout); }
static auto open_endpoint(const std::string& name) {  // where it listens is up to the system
  return check(faro::Endpoint::open(faro::Config(), {.name = name}));
}
static std::string_view text_of(const faro::ChannelEvent& frame) {  // where it has arrived
  return {reinterpret_cast<const char*>(frame.data.data()), frame.data.size()};
}

// Writes a frame where it is sent from, by the next wait(). There is room, since a channel has one request or answer under
// way; unless the peer has just gone, as `closed` will tell.
static void send(faro::Poller& poller, faro::ChannelId to, std::string_view text, auto change) {
  std::span<std::byte> room;
  if (poller.claim(to, text.size(), text.size(), room) != faro::Outcome::done) return;
  std::ranges::transform(text, reinterpret_cast<char*>(room.data()), change);
  (void)poller.commit(to, text.size());
}

// Answers whoever comes, until the endpoint is closed, or leaves after that many answers.
static void serve(faro::Endpoint& endpoint, int64_t left) {
  const auto upper = [](unsigned char c) { return static_cast<char>(std::toupper(c)); };
  say("a server listens at " + endpoint.address());
  faro::Poller& poller = endpoint.poller(0);
  faro::ChannelEvent events[64];
  while (left > 0 && poller.wait() == faro::Outcome::done) {  // for all channels at once
    for (const faro::ChannelEvent& event : poller.poll(events)) {
      if (event.kind == Kind::opened) say(check(poller.info(event.channel)).peer + " comes");
      if (event.kind != Kind::frame) continue;
      send(poller, event.channel, text_of(event), upper);
      poller.release(event.channel, event.token);
      --left;
    }
  }
  endpoint.close();  // at once: a client that has no answer yet asks another server
}

// Makes requests, one after the other: to servers[at], or if that goes to the next one.
static void ask(std::string name, std::vector<std::string> servers, size_t at, int requests) {
  const auto endpoint = open_endpoint(name);
  faro::Poller& poller = endpoint->poller(0);
  faro::ChannelId channel = check(poller.connect(servers[at], {}));
  faro::ChannelEvent events[4];
  for (int answered = 0; poller.wait() == faro::Outcome::done;) {
    for (const faro::ChannelEvent& event : poller.poll(events)) {
      if (event.kind == Kind::frame) {
        const bool is_right = text_of(event) == "REQUEST " + std::to_string(answered++);
        if (!is_right) check(faro::Status(faro::Code::protocol_error, "another answer"));
        poller.release(channel, event.token);
        ++answers;
      }
      if (event.kind == Kind::closed) {
        if (answered == requests) return;
        say(name + " has lost its server: " + poller.status(channel).to_string());
        if (++lost == 3) check(poller.status(channel));  // none is left
        channel = check(poller.connect(servers[++at % servers.size()], {}));
      } else if (answered < requests) {
        send(poller, channel, "request " + std::to_string(answered), [](char c) { return c; });
      } else {
        poller.close(channel, faro::Closing::drain);  // nothing is lost; then comes `closed`
      }
    }
  }
}

int main(int argc, char** argv) {
  const std::string_view role = argc > 1 ? argv[1] : "";
  if (role == "client") return ask("client", {argv + 2, argv + argc}, 0, 1'000'000), 0;
  if (role == "server") return serve(*open_endpoint("server"), INT64_MAX), 0;
  std::unique_ptr<faro::Endpoint> servers[3];
  std::vector<std::string> addresses;
  std::vector<std::jthread> serving, clients;
  for (int s = 0; s < 3; ++s) {
    servers[s] = open_endpoint("server");
    addresses.push_back(servers[s]->address());
    serving.emplace_back(serve, std::ref(*servers[s]), s == 2 ? 500 : INT64_MAX);
  }
  for (int c = 0; c < 4; ++c)  // of which some are done long before others
    clients.emplace_back(ask, "client " + std::to_string(c), addresses, c % 3, 500 * (c + 1));
  clients[0].join();
  clients[0] = std::jthread(ask, "client 0", addresses, 1, 500);  // comes back, to another server
  clients.clear();                                                // waits for them
  for (const auto& server : servers) server->close();
  say(std::to_string(answers) + " of 5500 answers, lost " + std::to_string(lost) + " of 1 server");
  return answers == 5500 && lost == 1 ? 0 : 1;
}
