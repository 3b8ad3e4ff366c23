#include "links/transports.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/kept_addresses.h"
#include "base/log.h"
#include "links/host_identity.h"
#include "transport/plugin/plugin_loader.h"
#include "transport/shm/shm_transport.h"
#include "transport/tcp/tcp_transport.h"

namespace faro::links {

namespace {

// Errors: why it does not work here.
Result<std::unique_ptr<transport::Transport>> make_one(std::string_view name,
                                                       const base::Settings& settings,
                                                       const Surroundings& surroundings) {
  std::unique_ptr<transport::Transport> transport;
  if (name == "shm") {
    transport = std::make_unique<transport::shm::ShmTransport>(surroundings.rendezvous);
  } else if (name == "tcp") {
    transport = std::make_unique<transport::tcp::TcpTransport>(
        surroundings.source, settings.tls == "on" ? surroundings.credentials : nullptr,
        surroundings.turns);
  } else if (settings.tls == "on") {
    return Status(Code::transport_unavailable, "security.tls = on, and it cannot encrypt rows");
  } else {
    FARO_ASSIGN_OR_RETURN(transport,
                          transport::plugin::load_verbs(
                              {settings, surroundings.local_address, base::log_line, base::unmap}));
  }
  FARO_RETURN_IF_ERROR(transport->available());
  return transport;
}

}  // namespace

// A forced transport that does not work here is an error; otherwise it is just not offered.
Result<std::vector<std::unique_ptr<transport::Transport>>> make_transports(
    const base::Settings& settings, const Surroundings& surroundings) {
  std::vector<std::unique_ptr<transport::Transport>> all;
  for (const std::string_view name : {"shm", "verbs", "tcp"}) {
    const bool forced = settings.transport == name;
    if (!forced && settings.transport != "auto") continue;
    auto made = make_one(name, settings, surroundings);
    if (made.ok()) {
      all.push_back(std::move(*made));
    } else if (forced) {
      return base::error(Code::transport_unavailable, "transport = {}: {}", name,
                         made.status().message());
    } else {
      const bool is_asked_for = name == "shm" && surroundings.rendezvous != nullptr;
      base::log(is_asked_for ? LogLevel::warning : LogLevel::debug, "{} is not offered: {}", name,
                made.status().message());
    }
  }
  return all;
}

Status Transports::make(const base::Settings& settings,
                        std::shared_ptr<transport::tcp::NodeTurns> turns) {
  if (transport::Transport* own = network_.own_transport()) {
    usable_ = {own};
    return Status::Ok();
  }
  if (!settings.shm_folder.empty() && settings.transport != "tcp" &&
      settings.transport != "verbs") {
    FARO_ASSIGN_OR_RETURN(rendezvous_, transport::shm::Rendezvous::open(settings.shm_folder));
  }
  FARO_ASSIGN_OR_RETURN(owned_,
                        make_transports(settings, {.local_address = network_.local_address(),
                                                   .source = network_.source(),
                                                   .credentials = network_.credentials(),
                                                   .rendezvous = rendezvous_,
                                                   .turns = std::move(turns)}));
  for (const auto& each : owned_) usable_.push_back(each.get());
  return Status::Ok();
}

std::vector<std::string> Transports::names() const {
  std::vector<std::string> names;
  for (const transport::Transport* each : usable_) names.emplace_back(each->capabilities().name);
  return names;
}

const char* Transports::why_not(const transport::Transport& transport,
                                const wire::Hello& peer) const {
  const transport::Capabilities& capabilities = transport.capabilities();
  if (std::find(peer.transports.begin(), peer.transports.end(), capabilities.name) ==
      peer.transports.end()) {
    return "the other node does not offer it";
  }
  if (!capabilities.same_host_only) return nullptr;
  return why_apart({network_.host_identity(), rendezvous()}, {peer.host_identity, peer.rendezvous});
}

std::string Transports::rendezvous() const {
  return rendezvous_ == nullptr ? std::string() : rendezvous_->identity();
}

bool Transports::is_to_be_warned_of(uint64_t incarnation) {
  constexpr size_t kRemembered = 256;
  if (std::find(warned_of_.begin(), warned_of_.end(), incarnation) != warned_of_.end())
    return false;
  if (warned_of_.size() == kRemembered) warned_of_.pop_front();
  warned_of_.push_back(incarnation);
  return true;
}

// On one host a user may have expected shared memory, and has asked for it with shm.folder.
void Transports::say_why(const transport::Transport& has, const wire::Hello& peer) {
  if (!is_one_kernel({network_.host_identity(), {}}, {peer.host_identity, {}})) return;
  std::string reasons;
  LogLevel level = LogLevel::info;
  for (const transport::Transport* each : usable_) {
    if (each == &has) break;
    const char* why = why_not(*each, peer);
    if (why == nullptr) continue;  // the peer chose, and knows why
    reasons += fmt::format("; {}: {}", each->capabilities().name, why);
    if (each->capabilities().same_host_only && rendezvous_ != nullptr) level = LogLevel::warning;
  }
  if (reasons.empty()) return;
  if (level == LogLevel::warning && !is_to_be_warned_of(peer.incarnation)) level = LogLevel::info;
  base::log(level, "{} for the link to {}{}", has.capabilities().name, peer.address, reasons);
}

Result<transport::Transport*> Transports::choose(const wire::Hello& peer) {
  std::string reasons;
  for (transport::Transport* each : usable_) {
    const char* why = why_not(*each, peer);
    if (why == nullptr) {
      say_why(*each, peer);
      return each;
    }
    if (!reasons.empty()) reasons += "; ";
    reasons += fmt::format("{}: {}", each->capabilities().name, why);
  }
  return Status(Code::transport_unavailable, reasons);
}

Result<transport::Transport*> Transports::chosen(std::string_view name, const wire::Hello& peer) {
  const auto found = std::find_if(usable_.begin(), usable_.end(),
                                  [&](auto* each) { return each->capabilities().name == name; });
  const char* why = found == usable_.end() ? "this node does not offer it" : why_not(**found, peer);
  if (why != nullptr) return Status(Code::transport_unavailable, why);
  say_why(**found, peer);
  return *found;
}

}  // namespace faro::links
