#include "links/link_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/each.h"
#include "base/error.h"

namespace faro::links {
namespace {

constexpr uint64_t kNanosecondsPerMs = 1'000'000;

}  // namespace

LinkMonitor::LinkMonitor(const base::Settings& settings, LinkTable& links, std::string name,
                         base::Nanoseconds now)
    : settings_(settings),
      links_(links),
      name_(std::move(name)),
      no_memory_(Code::resource_limit, fmt::format("the process of {} has no memory left", name_)),
      liveness_(settings.liveness_timeout_ms * kNanosecondsPerMs, now) {}

base::Nanoseconds LinkMonitor::joining() const {
  return settings_.connect_timeout_ms * kNanosecondsPerMs;
}

base::Nanoseconds LinkMonitor::next_deadline(bool judges) const {
  if (judges != judged_) return 0;
  return std::min(liveness_.next_beat(), links_.watch().due(joining()));
}

// When a silent peer is lost. While it joins it may be clearing gigabytes of rings.
base::Nanoseconds LinkMonitor::expiry(const Link& link) const {
  if (link.state().connected()) return liveness_.expiry(link.liveness());
  return base::deadline_after(link.liveness().heard, joining());
}

base::Nanoseconds LinkMonitor::due(const Link& link, bool judges) const {
  const auto* const suspension = link.state().suspension();
  const bool is_judged = judges && link.attached() && !link.state().is(LinkState::leaving);
  return std::min(is_judged ? expiry(link) : base::kForever,
                  suspension == nullptr ? base::kForever : suspension->until);
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
  if (!link.attached() || link.state().is(LinkState::leaving)) return;
  if (judges && now >= expiry(link)) {
    const bool is_up = link.state().connected();
    return link.fail(
        base::error(Code::peer_lost, "{} heard nothing from {} for {} = {}", name_, link.name(),
                    is_up ? "liveness.timeout_ms" : "connect.timeout_ms",
                    is_up ? settings_.liveness_timeout_ms : settings_.connect_timeout_ms));
  }
  if (liveness_.beat()) link.send(wire::encode_plain(wire::ControlKind::heartbeat));
}

}  // namespace faro::links
