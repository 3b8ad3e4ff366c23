#include "command/plan.h"

#include <algorithm>
#include <functional>

#include "counters/counter_file.h"
#include "faro/shuffle.h"
#include "links/limits.h"
#include "links/link_memory.h"
#include "ring/consumer.h"
#include "ring/doorbell.h"
#include "ring/layout.h"
#include "ring/ready_set.h"
#include "session/resources.h"
#include "session/topology.h"
#include "shuffle/receive/inbox.h"
#include "shuffle/receive/node_ring.h"
#include "shuffle/receive/received_frames.h"
#include "shuffle/send/group_blocks.h"
#include "shuffle/send/lane.h"
#include "shuffle/stage/target.h"
#include "transport/shm/local_link.h"
#include "transport/shm/shm_transport.h"
#include "transport/tcp/tcp_transport.h"

namespace faro::command {
namespace {

uint64_t pure_ring_bytes(const ring::Layout& layout) {
  return uint64_t{layout.ring_count()} * layout.ring_bytes;
}

void add(uint64_t& sum, uint64_t more) { sum = sum_of_bytes({sum, more}); }

std::vector<PlanPart> largest_first(std::vector<PlanPart> parts) {
  std::erase_if(parts, [](const PlanPart& part) { return part.bytes == 0; });
  std::ranges::stable_sort(parts, std::ranges::greater(), &PlanPart::bytes);
  return parts;
}

}  // namespace

uint64_t sum_of_bytes(std::initializer_list<uint64_t> parts) noexcept {
  uint64_t sum = 0;
  for (const uint64_t part : parts) sum = part > UINT64_MAX - sum ? UINT64_MAX : sum + part;
  return sum;
}

NodePlan make_plan_of(const PlanInput& input, const StateSizes& sizes, uint32_t node) {
  const base::Settings& settings = input.settings;
  const transport::shm::ShmTransport shm;
  const transport::tcp::TcpTransport tcp;

  NodePlan plan;
  const uint64_t workers = settings.workers_per_node[node];
  uint64_t all_workers = 0;
  uint32_t ready_groups = 0;  // of each ready set
  for (uint32_t peer = 0; peer < settings.node_count(); ++peer) {
    all_workers += settings.workers_per_node[peer];
    const ring::Layout outgoing = session::rings_between(settings, node, peer);
    const ring::Layout incoming = session::rings_between(settings, peer, node);
    add(plan.state_bytes, session::lane_state_bytes(settings, outgoing, incoming));
    if (settings.lanes_end_at_nodes())
      plan.shuffle_bytes +=
          settings.shuffle_limit * workers * incoming.rings_of_receiver() * sizes.per_stream;
    add(plan.frame_bytes,
        uint64_t{incoming.ring_count()} * ring::Consumer::kTracked * sizes.per_frame);
    ready_groups += (incoming.rings_of_receiver() + ring::ReadySet::kRingsPerGroup - 1) /
                    ring::ReadySet::kRingsPerGroup;
    if (peer == node) {
      plan.rings.local_bytes = pure_ring_bytes(outgoing);
      plan.local_bytes = transport::shm::local_link_bytes(outgoing);
      continue;
    }
    add(plan.rings.outgoing_bytes, pure_ring_bytes(outgoing));
    add(plan.rings.incoming_bytes, pure_ring_bytes(incoming));
    const bool same_host = node / input.nodes_per_host == peer / input.nodes_per_host;
    const auto add_link = [&](const transport::Transport& transport, LinkPlan& links) {
      links.add_link(transport.memory_bytes(outgoing, incoming));
      add(plan.state_bytes,
          links::link_state_bytes(transport, outgoing, incoming, settings.tls != "off"));
    };
    if (settings.transport == "shm" || (settings.transport == "auto" && same_host)) {
      add_link(shm, plan.shm);
    } else if (input.verbs != nullptr) {
      add_link(*input.verbs, plan.verbs);
    } else {
      add_link(tcp, plan.tcp);
    }
  }
  plan.ready_bytes =
      session::ready_set_count(settings, workers) * ring::ReadySet::bytes(ready_groups);
  plan.doorbell_bytes = workers * sizeof(ring::DoorbellLine);
  counters::Shape counted;
  counted.node = node;
  counted.workers_per_node = settings.workers_per_node;
  counted.rings_per_lane = session::counted_rings_per_lane(settings);
  counted.lanes_end_at_workers = settings.lanes_end_at_workers();
  counted.lanes_end_at_nodes = settings.lanes_end_at_nodes();
  plan.counter_bytes = counters::CounterFile::bytes(counted);
  plan.shuffle_bytes +=
      settings.shuffle_limit * workers * all_workers * (sizes.per_receiver + sizes.per_sender);
  plan.frame_bytes += workers * shuffle::FramePool::kKept * sizes.per_frame;
  plan.operator_bytes = settings.operator_memory_bytes;
  plan.overflow.memory_bytes = settings.overflow_memory_bytes;
  plan.overflow.file_bytes = settings.overflow_file_bytes;
  plan.overflow.block_bytes =
      workers * input.groups * shuffle::GroupBlocks::charged_bytes(settings.ring_bytes);
  plan.overflow.table_bytes =
      shuffle::OverflowLimits{settings.overflow_memory_bytes, settings.overflow_file_bytes}
          .describing_bytes();
  plan.descriptors =
      links::kDescriptorsPerSession + links::kDescriptorsPerLink * uint64_t{plan.links()};
  return plan;
}

StateSizes state_sizes_of_this_build() {
  StateSizes sizes;
  sizes.per_receiver =
      sizeof(detail::FrameCursor) + sizeof(shuffle::Destination) + sizeof(shuffle::Target);
  sizes.per_sender = sizeof(shuffle::Inbox::SenderQueue);
  sizes.per_stream = shuffle::NodeRing::kStreamBytes;
  sizes.per_frame = sizeof(shuffle::FrameNode) + shuffle::Overflow::kAllocatorBytes;
  return sizes;
}

RingPlan& RingPlan::operator+=(const RingPlan& other) noexcept {
  add(outgoing_bytes, other.outgoing_bytes);
  add(incoming_bytes, other.incoming_bytes);
  add(local_bytes, other.local_bytes);
  return *this;
}

LinkPlan& LinkPlan::operator+=(const LinkPlan& other) noexcept {
  links += other.links;
  add(bytes, other.bytes);
  return *this;
}

OverflowPlan& OverflowPlan::operator+=(const OverflowPlan& other) noexcept {
  add(memory_bytes, other.memory_bytes);
  add(file_bytes, other.file_bytes);
  add(table_bytes, other.table_bytes);
  add(block_bytes, other.block_bytes);
  return *this;
}

std::vector<PlanPart> parts_at_open(const NodePlan& node) {
  return largest_first(
      {{"rings", "ring.bytes, ring.per_lane, lane.ends",
        sum_of_bytes({node.shm.bytes, node.tcp.bytes, node.verbs.bytes, node.local_bytes})},
       {"links beside their rings", "shuffle.limit, ring.per_lane, lane.ends", node.state_bytes},
       {"counters", "ring.per_lane, lane.ends", node.counter_bytes},
       {"ready words, doorbells", "ring.per_lane", node.ready_bytes + node.doorbell_bytes}});
}

std::vector<PlanPart> parts_of_queries(const NodePlan& node) {
  return largest_first({{"open shuffles", "shuffle.limit", node.shuffle_bytes},
                        {"frames in rings", "lane.ends, ring.per_lane", node.frame_bytes},
                        {"operators", "operator.memory_bytes", node.operator_bytes},
                        {"overflow in memory", "overflow.memory_bytes", node.overflow.memory_bytes},
                        {"tables of the file", "overflow.file_bytes", node.overflow.table_bytes}});
}

uint64_t NodePlan::most_bytes() const noexcept {
  return sum_of_bytes({open_bytes(), shuffle_bytes, frame_bytes, overflow.table_bytes,
                       operator_bytes, overflow.memory_bytes});
}

NodePlan& NodePlan::operator+=(const NodePlan& other) noexcept {
  rings += other.rings;
  shm += other.shm;
  tcp += other.tcp;
  verbs += other.verbs;
  add(local_bytes, other.local_bytes);
  add(ready_bytes, other.ready_bytes);
  add(doorbell_bytes, other.doorbell_bytes);
  add(counter_bytes, other.counter_bytes);
  add(state_bytes, other.state_bytes);
  add(shuffle_bytes, other.shuffle_bytes);
  add(frame_bytes, other.frame_bytes);
  add(operator_bytes, other.operator_bytes);
  overflow += other.overflow;
  descriptors += other.descriptors;
  return *this;
}

uint32_t ClusterPlan::largest() const noexcept {
  const auto most = std::max_element(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    return a.open_bytes() < b.open_bytes();
  });
  return static_cast<uint32_t>(most - nodes.begin());
}

NodePlan ClusterPlan::sum(uint32_t first, uint32_t count) const noexcept {
  NodePlan total;
  for (size_t i = first; i < nodes.size() && i < size_t{first} + count; ++i) total += nodes[i];
  return total;
}

uint64_t ClusterPlan::link_count() const noexcept {
  const uint64_t count = nodes.size();
  return count * (count - 1) / 2;
}

ClusterPlan make_plan(const PlanInput& input, const StateSizes& sizes) {
  ClusterPlan plan;
  for (uint32_t node = 0; node < input.settings.node_count(); ++node) {
    plan.nodes.push_back(make_plan_of(input, sizes, node));
  }
  return plan;
}

}  // namespace faro::command
