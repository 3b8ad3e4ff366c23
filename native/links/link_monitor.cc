#include "links/link_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/each.h"
#include "base/error.h"
#include "base/planted.h"

namespace faro::links {
namespace {

// Comes with each heartbeat, and before a data connection counts as silent. Ends a link that is of
// no use to mend again.
void take_data_pulse(Link& link) {
  if (link.data() == nullptr || !link.state().connected()) return;
  const Link::Doing doing(link);
  const base::Nanoseconds now = link.context().reactor->clock().now_ns();
  const transport::Pulse pulse = link.history().take_pulse(*link.data(), now);
  const bool is_stuck =
      pulse == transport::Pulse::stuck && !base::planted(base::Plant::mended_for_ever);
  if (is_stuck) link.fail(link.history().stuck());
}

}  // namespace

LinkMonitor::LinkMonitor(const base::Settings& settings, LinkTable& links, std::string name,
                         base::Nanoseconds now)
    : settings_(settings),
      links_(links),
      name_(std::move(name)),
      no_memory_(Code::resource_limit, fmt::format("the process of {} has no memory left", name_)),
      liveness_(settings.liveness_timeout_ms * base::kMillisecond, now) {}

base::Nanoseconds LinkMonitor::joining() const {
  return settings_.connect_timeout_ms * base::kMillisecond;
}

base::Nanoseconds LinkMonitor::next_deadline(bool judges) const {
  if (judges != judged_) return 0;
  return std::min(liveness_.next_beat(), links_.watch().due(joining()));
}

// When a silent peer is lost. While it joins it may be clearing gigabytes of rings.
base::Nanoseconds LinkMonitor::expiry(const Link& link) const {
  if (link.state().connected()) return liveness_.expiry(link.history().control());
  return base::deadline_after(link.history().control().heard, joining());
}

// When a data connection counts as silent; never where nobody can tell, or it need not be there.
base::Nanoseconds LinkMonitor::data_expiry(const Link& link) const {
  const Liveness::Peer* const data = link.history().data();
  const bool shows = data != nullptr && link.state().is(LinkState::up);
  return shows ? liveness_.expiry(*data) : base::kForever;
}

// When the setup of a link fails. On the dialling side all that it still needs comes at once.
base::Nanoseconds LinkMonitor::setup_expiry(const Link& link) const {
  const bool is_due = link.state().is(LinkState::setting_up) && link.context().initiator;
  return is_due ? base::deadline_after(link.history().setup_since(), joining()) : base::kForever;
}

base::Nanoseconds LinkMonitor::due(const Link& link, bool judges) const {
  const auto* const suspension = link.state().suspension();
  const bool is_judged =
      judges && link.control().attached() && !link.state().is(LinkState::leaving);
  base::Nanoseconds due = suspension == nullptr ? base::kForever : suspension->until;
  if (!is_judged) return due;
  // A data connection that was not judged when it was due waits for the next heartbeat.
  if (const base::Nanoseconds data = data_expiry(link); data > liveness_.last_pass())
    due = std::min(due, data);
  return std::min({due, setup_expiry(link), expiry(link)});
}

void LinkMonitor::check(base::Nanoseconds now, bool judges) {
  liveness_.begin_pass(now);
  LinkWatch& watch = links_.watch();
  const bool looks = liveness_.beat() || judges != judged_ || watch.is_interrupted() ||
                     now >= watch.due(joining());
  if (!looks) return;
  judged_ = judges;
  watch.begin_look();
  base::Each each;
  links_.for_each([&](Link& link) { each.run([&] { link.finish_ending(no_memory_); }); });
  links_.for_each([&](Link& link) { each.run([&] { check(link, now, judges); }); });
  links_.for_each([&](const Link& link) { watch.note_due(due(link, judges)); });
  each.rethrow();
}

void LinkMonitor::check(Link& link, base::Nanoseconds now, bool judges) {
  const LinkState::Suspension* suspension = link.state().suspension();
  if (suspension != nullptr && now >= suspension->until) link.on_waited();
  check_data(link, now, judges);
  if (!link.control().attached() || link.state().is(LinkState::leaving)) return;
  if (judges && now >= expiry(link)) {
    const bool is_up = link.state().connected();
    return link.fail(
        base::error(Code::peer_lost, "{} heard nothing from {} for {} = {}", name_, link.name(),
                    is_up ? "liveness.timeout_ms" : "connect.timeout_ms",
                    is_up ? settings_.liveness_timeout_ms : settings_.connect_timeout_ms));
  }
  if (judges && now >= setup_expiry(link)) {
    return link.fail(base::error(Code::connect_failed,
                                 "it was not set up within connect.timeout_ms = {}",
                                 settings_.connect_timeout_ms));
  }
  if (liveness_.beat()) link.send(wire::encode_plain(wire::ControlKind::heartbeat));
}

// If the control connection is as silent, it says by its own limit that the peer is lost. A node that was stopped may be
// heard there first, so that has to be young.
void LinkMonitor::check_data(Link& link, base::Nanoseconds now, bool judges) {
  if (!liveness_.beat() && now < data_expiry(link)) return;
  take_data_pulse(link);
  const bool is_alive = now < link.history().control().heard + 2 * liveness_.interval();
  if (!judges || !is_alive || now < data_expiry(link)) return;
  if (base::planted(base::Plant::silence_unnoticed)) return;
  link.suspend(
      base::error(Code::peer_lost,
                  "{} heard nothing from {} on the data connection for liveness.timeout_ms = {}",
                  name_, link.name(), settings_.liveness_timeout_ms));
}

}  // namespace faro::links
