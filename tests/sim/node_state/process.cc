#include "sim/node_state/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "node/session_access.h"
#include "sim/programs/settings.h"

namespace faro::node_state {

class Process::Waiter final : public ring::Waiter {
 public:
  explicit Waiter(Process& process) : process_(process) {}
  void yield() noexcept override {}
  void sleep(ring::Doorbell& doorbell, uint64_t at_most_ns) noexcept override {
    process_.wait(at_most_ns);
    doorbell.disarm();
  }

 private:
  Process& process_;
};

Process::Process(const Plan& plan, World& world, Shown& shown, Rules& rules, uint32_t key,
                 uint32_t number, uint32_t life)
    : plan_(plan),
      world_(world),
      shown_(shown),
      rules_(rules),
      key_(key),
      number_(number),
      life_(life),
      name_(fmt::format("{}.{}", number, life)),
      told_(rules, name_, plan.idle_ms != 0) {
  world_.on_round(key_, [this] { return round(); });
}

Process::~Process() { world_.end_rounds(key_); }

std::string Process::address_of(uint32_t number, uint32_t variant) {
  return fmt::format("node{}:{}", number, 7000 + variant);
}

session::Membership& Process::membership() const {
  return SessionAccess::core(*session_).membership();
}

// --- what waits

void Process::begin(std::function<void()> body) {
  network_->on_wait([this] { fiber_->suspend(); });
  fiber_ = std::make_unique<sim::Fiber>(std::move(body));
}

bool Process::round() {
  if (is_still_) return false;
  if (fiber_ == nullptr) return is_open_ && membership().do_work();
  const uint64_t before = network_->work_count();
  fiber_->resume();
  if (!fiber_->finished()) return network_->work_count() != before;
  fiber_.reset();
  if (network_ != nullptr) network_->on_wait({});
  if (is_dead_) kill(true);
  return true;
}

// Nobody else runs while it is destroyed.
void Process::wait(base::Nanoseconds time) {
  if (fiber_ == nullptr) return world_.pass(time);
  const base::Nanoseconds until = base::deadline_after(world_.clock().now_ns(), time);
  while (world_.clock().now_ns() < until) fiber_->suspend();
}

// --- its life

Result<base::Settings> Process::settings(std::span<const std::string> addresses, bool waits) const {
  std::string list;
  for (const std::string& each : addresses)
    list += (list.empty() ? "" : ",") + (each.empty() ? "-" : each);
  programs::SettingsMaker made;
  made.set("cluster.nodes", std::string_view(list));
  made.set("cluster.node", uint64_t{number_});
  made.set("cluster.workers", uint64_t{plan_.workers_per_node});
  if (plan_.changing) made.set("cluster.node_limit", uint64_t{plan_.numbers});
  made.set("connect.wait_for", waits ? "all" : "none");
  made.set("connect.timeout_ms", kConnectMs);
  made.set("close.timeout_ms", kCloseMs);
  made.set("liveness.timeout_ms", kLivenessMs);
  made.set("link.mend_ms", plan_.mend_ms);
  made.set("link.idle_ms", plan_.idle_ms);
  made.set("query.unopened_timeout_ms", kUnopenedMs);
  made.set("counters.folder", "");
  made.set("kernel.scatter", "scalar");
  made.set("ring.bytes", uint64_t{4096});
  made.set("ring.per_lane", uint64_t{1});
  made.set("row.limit_bytes", uint64_t{4096});
  made.set("overflow.memory_bytes", uint64_t{1} << 20);
  made.set("overflow.file_bytes", uint64_t{0});
  if (plan_.poor == number_) made.set("memory.limit_bytes", plan_.poor_bytes);
  return made.resolve();
}

void Process::open(std::span<const std::string> addresses, bool waits) {
  const Result<base::Settings> settings = this->settings(addresses, waits);
  if (!settings.ok()) return shown_.note(number_, Kind::answer, "settings:", settings.status());
  std::vector<bool> known;
  for (const std::string& each : addresses) known.push_back(!each.empty());
  auto network =
      std::make_unique<programs::ManualNetwork>(world_, number_, life_, addresses[number_]);
  network_ = network.get();
  uint64_t incarnation = 0;
  (void)network->draw_random(std::as_writable_bytes(std::span(&incarnation, 1)));
  shown_.name(incarnation, name_);
  auto environment = std::make_shared<node::NodeEnvironment>();
  environment->network = std::move(network);
  environment->make_waiter = [this] { return std::make_unique<Waiter>(*this); };
  environment->cancellation = cancellation_;
  begin([this, known, environment, settings = *settings] {
    auto opened = SessionAccess::open(settings, std::move(*environment));
    if (!is_dead_) shown_.note(number_, Kind::answer, name_ + " opens:", opened.status());
    if (!opened.ok()) {
      network_ = nullptr;  // it has gone with the session
      return;
    }
    session_ = std::move(*opened);
    std::vector<bool> there;
    for (uint32_t n = 0; n < plan_.numbers; ++n) there.push_back(session_->has_node(n));
    told_.begin(known, there);
    is_open_ = true;
    if (!is_dead_) listen();
  });
}

void Process::close(bool holds) {
  is_open_ = false;
  begin([this, holds] {
    const Status closed = session_->close();
    if (!closed.ok() && !holds) rules_.violated(name_ + " closes: " + closed.to_string());
    if (!is_dead_) shown_.note(number_, Kind::answer, name_ + " closes:", closed);
    network_->hang_up(false);  // as the end of its process does
  });
}

// What opens or closes has to come to its end first.
void Process::kill(bool loses) {
  is_dead_ = true;
  is_still_ = false;
  if (network_ != nullptr) network_->die(loses);
  cancellation_.cancel();
  if (fiber_ != nullptr) return;
  is_open_ = false;
  session_.reset();
  network_ = nullptr;
}

// --- what it tells

void Process::listen() {
  SessionListener listener;
  const auto has = [this](uint32_t node) { return session_->has_node(node); };
  listener.node_lost = [this, has](uint32_t node, const Status& cause) {
    note("lost", node, cause);
    lost_.insert(node);
    told_.gone(node, has(node));
  };
  listener.node_left = [this, has](uint32_t node) {
    note("left", node);
    told_.gone(node, has(node));
  };
  listener.node_returned = [this, has](uint32_t node) {
    note("returned", node);
    lost_.erase(node);
    told_.returned(node, has(node));
  };
  listener.node_added = [this, has](uint32_t node) {
    note("added", node);
    lost_.erase(node);
    told_.added(node, has(node));
  };
  listener.node_drained = [this, has](uint32_t node) {
    note("drained", node);
    told_.drained(node, has(node), node == number_);
  };
  listener.node_removed = [this, has](uint32_t node) {
    note("removed", node);
    told_.removed(node, has(node));
  };
  listener.query_failed = [this](const QueryId& query, const Status& cause) {
    shown_.note(number_, Kind::event, "told of " + shown_.name_of(query) + ": failed", cause);
    told_.failed(query);
  };
  session_->listen(std::move(listener));
}

void Process::note(const char* event, uint32_t node, const Status& cause) {
  const std::string text =
      fmt::format("told of node {}: {}{}{}", node, event, session_->has_node(node) ? ", there" : "",
                  is_linked(node) ? ", linked" : "");
  shown_.count(std::string("told ") + event);
  shown_.note(number_, Kind::event, text, cause);
}

bool Process::knows(uint32_t number) const {
  const auto links = session_->metrics().links;
  return std::ranges::count(links, number, &LinkMetrics::node) != 0;
}

bool Process::is_linked(uint32_t number) const {
  const auto links = session_->metrics().links;
  const auto link = std::ranges::find(links, number, &LinkMetrics::node);
  return link != links.end() && link->connected;
}

void Process::note_state() {
  if (!is_open_) return;
  const SessionMetrics metrics = session_->metrics();
  std::string text;
  for (uint32_t n = 0; n < plan_.numbers; ++n)
    text += session_->has_node(n) ? fmt::format("{} ", n) : "";
  text += "| nodes:";
  for (const LinkMetrics& link : metrics.links)
    text += fmt::format(" {}{}", link.node, link.connected ? " linked" : "");
  shown_.note_state(number_, fmt::format("{}| queries: {}, {} failed", text,
                                         metrics.queries_running, metrics.queries_failed));
}

}  // namespace faro::node_state
