#include "lab/simulation/links/sim_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/each.h"
#include "base/return_if_error.h"

namespace faro::sim {

Result<std::string> SimInternet::listen(const std::string& address, SimNetwork* network) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return Status(Code::config_invalid, fmt::format("address {} has no port", address));
  }
  std::string chosen = address;
  if (address.substr(colon + 1) == "0")
    chosen = fmt::format("{}{}", address.substr(0, colon + 1), ++last_port_);
  if (!listening_.emplace(chosen, network).second) {
    return Status(Code::address_in_use, fmt::format("address {} is taken", chosen));
  }
  return chosen;
}

Result<std::unique_ptr<SimNetwork>> SimNetwork::create(SimInternet& internet, uint32_t number,
                                                       const std::string& address, std::string host,
                                                       const std::optional<Schedule>& schedule) {
  // The address is found before there is a network that could be found there.
  FARO_ASSIGN_OR_RETURN(std::string chosen, internet.listen(address, nullptr));
  internet.stop_listening(chosen, nullptr);
  return std::unique_ptr<SimNetwork>(
      new SimNetwork(internet, number, std::move(chosen), std::move(host), schedule));
}

SimNetwork::SimNetwork(SimInternet& internet, uint32_t node, std::string address, std::string host,
                       const std::optional<Schedule>& schedule)
    : internet_(internet),
      world_(internet.world()),
      node_(node),
      local_address_(std::move(address)),
      host_(std::move(host)),
      turns_(schedule ? std::make_shared<SimTurns>(internet.world(), internet.fabric().turn_watch(),
                                                   reactor(), schedule->phases, node,
                                                   schedule->node_count)
                      : nullptr),
      transport_(internet.fabric(), node, turns_),
      secrets_(world_.random().next()),
      self_(std::make_shared<SimNetwork*>(this)) {
  (void)internet_.listen(local_address_, this);  // free: create has just looked
}

SimNetwork::~SimNetwork() {
  internet_.stop_listening(local_address_, this);
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) stream->cut();
  }
  // Tasks may hold connections, whose end wakes this network.
  self_.reset();
  agent_.reset();
  if (turns_ != nullptr) turns_->close();
  tasks_.clear();
}

void SimNetwork::die() {
  dead_ = true;
  internet_.stop_listening(local_address_, this);
  internet_.fabric().faults().end_life(node_);
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) stream->break_off();
  }
}

void SimNetwork::set_acceptor(Acceptor* acceptor) {
  acceptor_ = acceptor;
  if (acceptor == nullptr) internet_.stop_listening(local_address_, this);
}

std::shared_ptr<SimStream> SimNetwork::make_stream(uint32_t peer, std::string peer_address) {
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  auto stream = std::make_shared<SimStream>(*this, peer, std::move(peer_address));
  streams_.push_back(stream);
  return stream;
}

void SimNetwork::connect(const std::string& address, Connected done) {
  const World::Outside outside(world_);
  world_.schedule(
      world_.now() + world_.knobs().connect.draw(world_.random()), "dial",
      [weak = std::weak_ptr<SimNetwork*>(self_), address, done = std::move(done)]() mutable {
        if (const auto self = weak.lock()) (*self)->establish(address, std::move(done));
      });
}

void SimNetwork::establish(const std::string& address, Connected done) {
  SimNetwork* peer = internet_.find(address);
  if (dead_ || peer == nullptr || peer->acceptor_ == nullptr) {
    defer([address, done = std::move(done)] {
      done(Status(Code::peer_lost, fmt::format("connect to {}: refused", address)));
    });
    return;
  }
  if (internet_.fabric().faults().separates(node_, peer->node_, world_.now())) {
    defer([address, done = std::move(done)] {
      done(Status(Code::connect_failed, fmt::format("connect to {}: no way there", address)));
    });
    return;
  }
  const std::shared_ptr<SimStream> ours = make_stream(peer->node_, address);
  const std::shared_ptr<SimStream> theirs = peer->make_stream(node_, local_address_);
  SimStream::join(ours, theirs);
  // A task has to be copyable; what it owns is taken out when it runs. If it never runs, the
  // connection ends.
  auto our_end = std::make_shared<std::unique_ptr<links::ControlConnection>>(
      std::make_unique<SimConnection>(ours));
  auto their_end = std::make_shared<std::unique_ptr<links::ControlConnection>>(
      std::make_unique<SimConnection>(theirs));
  defer([our_end, done = std::move(done)] { done(std::move(*our_end)); });
  peer->defer([peer, their_end] {
    if (peer->acceptor_ != nullptr) peer->acceptor_->on_connection(std::move(*their_end));
  });
}

Status SimNetwork::add(int fd, uint32_t, Handler) {
  return Status(Code::internal_error,
                fmt::format("descriptor {} in a simulation, which has none", fd));
}

void SimNetwork::change(int fd, uint32_t) {
  world_.violation(fmt::format("descriptor {} in a simulation", fd));
}

void SimNetwork::remove(int fd) noexcept {
  world_.violation(fmt::format("descriptor {} in a simulation", fd));
}

void SimNetwork::defer(std::function<void()> task) {
  {
    const World::Outside outside(world_);
    tasks_.push_back(std::move(task));
  }
  wake();
}

void SimNetwork::wake() {
  woken_ = true;
  if (agent_) world_.wake_agent(*agent_);
}

bool SimNetwork::draw_random(std::span<std::byte> bytes) {
  for (std::byte& b : bytes) b = static_cast<std::byte>(secrets_.next() >> 32);
  return true;
}

bool SimNetwork::has_work() const {
  return !tasks_.empty() || std::any_of(streams_.begin(), streams_.end(), [](const auto& weak) {
    const auto stream = weak.lock();
    return stream != nullptr && stream->has_news();
  });
}

// What is there now, in an order drawn from the seed; of each connection some messages only, so
// that rounds end at every place. What is left is for the next round.
bool SimNetwork::handle_some() {
  bool worked = false;
  std::vector<std::shared_ptr<SimStream>> ready;
  {
    const World::Outside outside(world_);
    for (const auto& weak : streams_) {
      auto stream = weak.lock();
      if (stream != nullptr && stream->has_news()) ready.push_back(std::move(stream));
    }
  }
  base::Each each;  // as the reactor of a real one
  size_t task_count = tasks_.size();
  while (task_count > 0 || !ready.empty()) {
    worked = true;
    const uint64_t chosen = world_.random().below(ready.size() + (task_count > 0 ? 1 : 0));
    if (chosen == ready.size()) {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      --task_count;
      if (task) each.run(task);
    } else {
      const std::shared_ptr<SimStream> stream = std::move(ready[chosen]);
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
      const uint64_t most = world_.random().between(1, 8);
      each.run([&] { stream->deliver(most); });
    }
  }
  each.rethrow();
  return worked;
}

bool SimNetwork::lingering() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const auto& weak) {
    const auto stream = weak.lock();
    return stream != nullptr && stream->lingering();
  });
}

bool SimNetwork::run_once(base::Nanoseconds until) {
  // The membership is being opened or closed by a fiber, whose round this is.
  if (world_.in_agent_or_event() && waiting_) return false;
  if (!handle_some() && !woken_) {
    if (world_.in_agent_or_event()) {
      if (agent_ && until > world_.now()) world_.agent_due(*agent_, until);
      return false;
    }
    waiting_ = true;
    world_.wait_until([this] { return woken_ || has_work(); }, until, "its control connections");
    waiting_ = false;
    woken_ = false;
    return handle_some();
  }
  woken_ = false;
  if (has_work()) wake();
  return true;
}

}  // namespace faro::sim
