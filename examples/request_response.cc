// A server that answers requests in upper case, and clients that come and go, over the channels of endpoints: for engines
// that do not want a cluster.
//
//   request_response                     a server and four clients, in one process
//   request_response server HOST:PORT    until it is killed
//   request_response client HOST:PORT
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cluster.h"
#include "faro/endpoint.h"

static constexpr int kClients = 4;
static constexpr int kRequests = 1000;  // of each client, one after the other

static std::string_view text_of(const faro::ChannelEvent& event) {
  return {reinterpret_cast<const char*>(event.data.data()), event.data.size()};
}

// Writes a frame where it is sent from. A channel has one request or answer under way: there is always room.
static std::span<std::byte> room_for(faro::Poller& poller, faro::ChannelId channel, size_t bytes) {
  const std::span<std::byte> room = poller.claim(channel, bytes, bytes);
  if (room.data() == nullptr) check(poller.status(channel));
  return room;
}

static void answer(faro::Poller& poller, const faro::ChannelEvent& request) {
  if (!poller.is_open(request.channel))  // its client is gone: `closed` follows
    return poller.release(request.channel, request.token);
  const std::string_view text = text_of(request);
  const std::span<std::byte> room = room_for(poller, request.channel, text.size());
  for (size_t i = 0; i < room.size(); ++i)
    room[i] = static_cast<std::byte>(std::toupper(static_cast<unsigned char>(text[i])));
  if (poller.commit(request.channel, room.size()) == faro::Outcome::failed)
    check(poller.status(request.channel));
  poller.release(request.channel, request.token);
}

// Serves all channels, until that many have closed. Returns how many requests it has answered.
static uint64_t serve(faro::Endpoint& endpoint, int channels) {
  faro::Poller& poller = endpoint.poller(0);
  faro::ChannelEvent events[64];
  uint64_t answers = 0;
  while (channels > 0 && poller.wait() == faro::Outcome::done) {  // which sends the answers, too
    for (const faro::ChannelEvent& event : poller.poll(events)) {
      if (event.kind == faro::ChannelEvent::Kind::frame) answer(poller, event), ++answers;
      if (event.kind == faro::ChannelEvent::Kind::closed) --channels;
    }
  }
  return answers;
}

static void request(faro::Poller& poller, faro::ChannelId channel, int number) {
  const std::string text = "request " + std::to_string(number);
  std::memcpy(room_for(poller, channel, text.size()).data(), text.data(), text.size());
  if (poller.commit(channel, text.size()) == faro::Outcome::failed) check(poller.status(channel));
}

static void run_client(const std::string& address) {
  const auto endpoint = check(faro::Endpoint::open(faro::Config(), {.name = "client"}));
  faro::Poller& poller = endpoint->poller(0);
  const faro::ChannelId channel = check(poller.connect(address, {}));
  faro::ChannelEvent events[4];
  int answered = 0;
  while (poller.wait() == faro::Outcome::done) {
    for (const faro::ChannelEvent& event : poller.poll(events)) {
      if (event.kind == faro::ChannelEvent::Kind::closed) return check(poller.status(channel));
      if (event.kind == faro::ChannelEvent::Kind::frame) {
        if (text_of(event) != "REQUEST " + std::to_string(answered++)) std::abort();
        poller.release(channel, event.token);
      }
      if (answered < kRequests)
        request(poller, channel, answered);
      else
        poller.close(channel, faro::Closing::drain);  // `closed` follows
    }
  }
}

int main(int argc, char** argv) {
  const std::string_view role = argc == 3 ? argv[1] : "";
  if (role == "client") return run_client(argv[2]), 0;
  faro::Config config;
  if (role == "server") check(config.set("cluster.listen", argv[2]));
  const auto server = check(faro::Endpoint::open(config, {.name = "server"}));
  std::printf("listens at %s\n", server->address().c_str());
  std::fflush(stdout);
  if (role == "server") return serve(*server, INT32_MAX), 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) clients.emplace_back(run_client, server->address());
  const uint64_t answers = serve(*server, kClients);
  for (std::thread& client : clients) client.join();
  std::printf("%llu requests answered\n", static_cast<unsigned long long>(answers));
  return answers == kClients * kRequests ? 0 : 1;
}
