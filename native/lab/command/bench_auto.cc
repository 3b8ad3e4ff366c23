// What `auto` leaves out here.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/log.h"
#include "base/settings.h"
#include "command/exit_code.h"
#include "lab/command/bench_parts.h"
#include "transport/plugin/plugin_loader.h"

namespace faro::command::lab {
namespace {

Status verbs_status(const Config& config) {
  const auto settings = base::Settings::resolve_without_nodes(config);
  if (!settings.ok()) return settings.status();
  if (settings->tls == "on") return {Code::transport_unavailable, "security.tls is on"};
  const auto verbs = transport::plugin::load_verbs({*settings, "127.0.0.1:0", base::log_line});
  return verbs.ok() ? Status::Ok() : verbs.status();
}

}  // namespace

void say_what_auto_leaves_out(const std::vector<std::string>& names, const Config& config) {
  if (std::ranges::find(names, "auto") == names.end()) return;
  const Status verbs = verbs_status(config);
  if (verbs.ok()) return;
  say_error(fmt::format(
      "faro-lab bench: auto is shm within a host and tcp between hosts here, and never verbs: {}\n",
      verbs.message()));
}

}  // namespace faro::command::lab
