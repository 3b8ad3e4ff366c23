#include "lab/soak/leak_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

namespace faro::soak {

Status LeakWatch::look(NodeGroup& nodes, uint32_t witness, uint64_t witness_heap_bytes,
                       const std::string& folder) {
  for (const uint32_t node : nodes.all()) {
    const std::string grown = nodes[node].grown_since_first_look();
    if (!grown.empty()) return broken(fmt::format("node {} has {}", node, grown));
  }
  for (const auto& file : std::filesystem::directory_iterator(folder))
    return broken("a file is left: " + file.path().string());
  witness_ = nodes[witness].usage();
  controller_ = Usage::of(getpid());
  // A socket for each node; the one that was killed last has none.
  const size_t own = controller_.descriptors - nodes.all().size();
  if (looks_ == 0) controller_descriptors_ = own;
  if (own > controller_descriptors_) {
    return broken(fmt::format("the controller has {} descriptors of its own, {} at first", own,
                              controller_descriptors_));
  }
  witness_heap_.look(witness_heap_bytes);
  witness_memory_.look(witness_.resident_bytes);
  controller_memory_.look(controller_.resident_bytes);
  ++looks_;
  return Status::Ok();
}

std::string LeakWatch::memory_text() const {
  if (!memory_is_known()) {
    return fmt::format("not judged: that takes {} looks, and there were {}", MemoryTrend::kNeeded,
                       looks_);
  }
  return fmt::format("resident in the witness {}, its heap {}, resident in the controller {}",
                     witness_memory_.text(), witness_heap_.text(), controller_memory_.text());
}

}  // namespace faro::soak
