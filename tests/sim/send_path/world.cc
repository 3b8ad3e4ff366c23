#include "sim/send_path/world.h"

#include <utility>

#include "faro/hash.h"
#include "sim/send_path/rings.h"

namespace faro::send_path {

// --- World

ManualNetwork* World::find(const std::string& address) const {
  for (ManualNetwork* const each : networks_) {
    if (each->local_address() == address) return each;
  }
  return nullptr;
}

void World::pass(base::Nanoseconds time) {
  constexpr base::Nanoseconds kSoon = 100'000;
  clock_.advance(time);
  if (clock_.now_ns() - flushed_at_ < kSoon) return;
  flushed_at_ = clock_.now_ns();
  for (const auto& port : ports()) port->flush();
}

void World::pump() {
  // A round may have done something though it says that nothing has come: it takes two of them to
  // be sure.
  constexpr int kQuietRounds = 2;
  constexpr int kRoundLimit = 200;
  int quiet = 0;
  for (int i = 0; i < kRoundLimit && quiet < kQuietRounds; ++i) {
    bool worked = false;
    for (const auto& [node, round] : rounds_) worked |= round();
    quiet = worked ? 0 : quiet + 1;
  }
}

uint64_t World::add(const std::shared_ptr<Port>& port) {
  ports_[++last_port_] = port;
  return last_port_;
}

std::shared_ptr<Port> World::find_port(uint64_t key) const {
  const auto found = ports_.find(key);
  return found == ports_.end() ? nullptr : found->second.lock();
}

std::vector<std::shared_ptr<Port>> World::ports() const {
  std::vector<std::shared_ptr<Port>> ports;
  for (const auto& [key, weak] : ports_) {
    if (auto port = weak.lock()) ports.push_back(std::move(port));
  }
  return ports;
}

void World::deliver_all() {
  for (const auto& port : ports()) port->deliver_all();
}

// --- Stream

namespace {

class ManualConnection final : public links::ControlConnection {
 public:
  explicit ManualConnection(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~ManualConnection() override { stream_->detach(); }
  void set_handler(Handler* handler) override { stream_->set_handler(handler); }
  void send(std::span<const std::byte> message) override { stream_->send(message); }
  bool flushed() const override { return true; }
  const std::string& peer_address() const override { return stream_->peer_address(); }

 private:
  const std::shared_ptr<Stream> stream_;
};

}  // namespace

void Stream::send(std::span<const std::byte> message) {
  const auto peer = peer_.lock();
  if (ended_ || detached_ || peer == nullptr || peer->ended_ || peer->detached_) return;
  peer->arrived_.emplace_back(message.begin(), message.end());
}

void Stream::detach() {
  handler_ = nullptr;
  if (std::exchange(detached_, true)) return;
  arrived_.clear();
  if (const auto peer = peer_.lock()) peer->end("the peer closed the connection", false);
}

void Stream::cut() {
  if (const auto peer = peer_.lock()) peer->end("the connection was reset", true);
  end("the connection was reset", true);
}

void Stream::end(const char* cause, bool loses) {
  if (ended_) return;
  ended_ = true;
  if (loses) arrived_.clear();
  cause_ = Status(Code::peer_lost, cause);
}

bool Stream::deliver() {
  const auto self = shared_from_this();  // the handler may destroy the handle
  bool worked = false;
  while (has_news() && !arrived_.empty()) {
    const std::vector<std::byte> message = std::move(arrived_.front());
    arrived_.pop_front();
    worked = true;
    handler_->on_message(message);
  }
  if (has_news()) {
    told_ = worked = true;
    handler_->on_closed(cause_);
  }
  return worked;
}

bool Stream::leads_to(const ManualNetwork& network) const {
  const auto peer = peer_.lock();
  return !ended_ && !detached_ && peer != nullptr && peer->network_ == &network;
}

// --- ManualNetwork

ManualNetwork::ManualNetwork(World& world, uint32_t node, uint32_t life, std::string address)
    : world_(world),
      node_(node),
      life_(life),
      address_(std::move(address)),
      transport_(make_transport(world, node)) {
  world.add(*this);
}

ManualNetwork::~ManualNetwork() {
  world_.remove(*this);
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) {
      stream->cut();
      stream->forget_network();
    }
  }
  tasks_.clear();
}

void ManualNetwork::die() {
  dead_ = true;
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) stream->cut();
  }
  for (const auto& port : world_.ports()) {
    if (port->node() == node_) port->die();
  }
}

void ManualNetwork::cut(const ManualNetwork& peer) {
  for (const auto& weak : streams_) {
    const auto stream = weak.lock();
    if (stream != nullptr && stream->leads_to(peer)) stream->cut();
  }
}

std::shared_ptr<Stream> ManualNetwork::make_stream(std::string peer_address) {
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  auto stream = std::make_shared<Stream>(*this, std::move(peer_address));
  streams_.push_back(stream);
  return stream;
}

void ManualNetwork::connect(
    const std::string& address,
    std::function<void(Result<std::unique_ptr<links::ControlConnection>>)> done) {
  ManualNetwork* const peer = world_.find(address);
  if (dead_ || peer == nullptr || peer->dead_ || peer->acceptor_ == nullptr) {
    return defer([address, done = std::move(done)] {
      done(Status(Code::peer_lost, "connect to " + address + ": refused"));
    });
  }
  const auto ours = make_stream(address);
  const auto theirs = peer->make_stream(address_);
  Stream::join(ours, theirs);
  // A task has to be copyable: what it owns is taken out when it runs.
  const auto our_end = std::make_shared<std::unique_ptr<links::ControlConnection>>(
      std::make_unique<ManualConnection>(ours));
  const auto their_end = std::make_shared<std::unique_ptr<links::ControlConnection>>(
      std::make_unique<ManualConnection>(theirs));
  defer([our_end, done = std::move(done)] { done(std::move(*our_end)); });
  peer->defer([peer, their_end] {
    if (peer->acceptor_ != nullptr) peer->acceptor_->on_connection(std::move(*their_end));
  });
}

bool ManualNetwork::run_once(base::Nanoseconds) {
  bool worked = std::exchange(woken_, false);
  for (std::deque<std::function<void()>> tasks = std::exchange(tasks_, {}); !tasks.empty();
       tasks.pop_front()) {
    worked = true;
    tasks.front()();
  }
  const std::vector<std::weak_ptr<Stream>> streams = streams_;  // a handler may dial
  for (const auto& weak : streams) {
    if (const auto stream = weak.lock()) worked |= stream->deliver();
  }
  return worked;
}

bool ManualNetwork::draw_random(std::span<std::byte> bytes) {
  uint64_t word = FinalizerHash()((uint64_t{node_} + 1) << 32 | (life_ + 1));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(word >> (8 * (i % 8)));
  return true;
}

// --- ManualWaiter

void ManualWaiter::pass(uint64_t ns) noexcept {
  world_.pass(ns);
  world_.deliver_all();
  world_.pump();
}

}  // namespace faro::send_path
