#include "lab/command/node_flags.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "command/settings.h"

namespace faro::command::lab {

void NodeFlags::add_to(CLI::App& app) {
  app.option_defaults()->always_capture_default();
  app.add_option("--host", hosts_,
                 "Numeric addresses of this host, separated by commas: the processes\n"
                 "take turns to listen on them, and dial from them")
      ->delimiter(',')
      ->type_name("ADDRESSES");
  app.option_defaults()->always_capture_default(false);
  app.add_option("--node", node_, "On several hosts: this node; 0 prints the table")
      ->type_name("N");
  app.add_option("--nodes", nodes_,
                 "On several hosts: all nodes, host:port,host:port,... Start each with\n"
                 "the same flags and its own --node. Node 0 also listens on the port\n"
                 "after its own, for starts and results")
      ->delimiter(',')
      ->type_name("ADDRESSES");
}

Status NodeFlags::check() const {
  if (!on_several_hosts()) return Status::Ok();
  if (nodes_.empty()) return flag_error("--nodes", "missing: the addresses of all nodes");
  if (!node_) return flag_error("--node", "missing: which of --nodes is this one?");
  if (*node_ >= nodes_.size()) {
    return flag_error("--node", fmt::format("{} but --nodes names {}: 0 … {}", *node_,
                                            nodes_.size(), nodes_.size() - 1));
  }
  return Status::Ok();
}

}  // namespace faro::command::lab
