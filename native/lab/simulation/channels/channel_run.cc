#include "lab/simulation/channels/channel_run.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "lab/simulation/channels/channel_checker.h"
#include "lab/simulation/channels/peers.h"
#include "lab/simulation/channels/poller_program.h"

namespace faro::simulation {
namespace {

class ChannelRun {
 public:
  explicit ChannelRun(uint64_t seed) : plan_(draw_channel_plan(seed)), peers_(plan_) {
    ledger_.running.resize(plan_.peer_count());
    ledger_.ended.resize(plan_.peer_count());
    ledger_.died_at.resize(plan_.peer_count(), base::kForever);
    ledger_.disturbed.resize(plan_.peer_count());
    // What hostile bytes may do is not known where they have not come yet.
    for (const PeerFault& fault : plan_.faults) {
      if (fault.kind == PeerFaultKind::hostile)
        ledger_.hostile.insert(std::minmax(fault.peer, fault.other));
    }
  }

  /// Returns the violation, if any.
  std::string run() {
    std::string violation = run_phases();
    return world().failed() ? std::string(world().failure().message()) : violation;
  }
  std::string trace() {
    std::string text = describe(plan_);
    for (const ConversationPlan& plan : plan_.conversations) {
      const ConversationRecord& record = ledger_.conversations[plan.index];
      if (!record.dialled || record.is_over) continue;
      text += fmt::format("  channel {} is not over:", plan.index);
      for (const SideRecord& side : record.sides) {
        text += fmt::format(" {} sent, {} received{}{};", side.committed, side.received,
                            side.opened ? ", opened" : "", side.closed ? ", closed" : "");
      }
      text += '\n';
    }
    return text + world().report();
  }
  uint64_t hash() { return mix(world().trace_hash(), outcome_hash_); }
  void cover(Coverage& coverage) const;

 private:
  sim::World& world() { return peers_.world(); }

  std::string run_phases() {
    for (const auto phase : {&ChannelRun::talk, &ChannelRun::talk_again, &ChannelRun::close}) {
      std::string violation = (this->*phase)();
      if (!violation.empty() || world().failed()) return violation;
    }
    return "";
  }

  // ------------------------------------------------------------------------------------- programs

  void open(uint32_t peer) {
    const Status opened = peers_.open(
        peer, [this, peer](const ChannelRequest& request) { return accept(peer, request); });
    if (!opened.ok())
      return world().violation(fmt::format("peer {} cannot open: {}", peer, opened.to_string()));
    spawn_programs(peer);
  }

  void spawn_programs(uint32_t peer) {
    for (uint32_t p = 0; p < plan_.peers[peer].pollers; ++p) {
      const auto program = std::make_shared<PollerProgram>(peers_, plan_, ledger_, peer, p, begin_);
      spawn(fmt::format("peer {} poller {}", peer, p), peer, [program] { program->run(); });
      if (plan_.peers[peer].has_task)
        spawn(fmt::format("peer {} task {}", peer, p), peer, [program] { program->run_task(); });
    }
  }

  void spawn(std::string name, uint32_t peer, std::function<void()> body) {
    ++ledger_.running[peer];
    world().spawn(
        std::move(name),
        [this, peer, body = std::move(body)] {
          body();
          --ledger_.running[peer];
        },
        peer);
  }

  ChannelAcceptance accept(uint32_t peer, const ChannelRequest& request) {
    ChannelAcceptance answer;
    const auto count = static_cast<uint32_t>(plan_.conversations.size());
    const uint32_t index = index_of(plan_.seed, request.greeting, count);
    if (index == count || plan_.conversations[index].to != peer) {
      answer.refusal = "a greeting of nobody";
      if (ledger_.hostile.empty())
        world().violation(fmt::format("peer {} is asked with a greeting of nobody", peer));
      return answer;
    }
    if (plan_.conversations[index].is_refused) {
      ledger_.conversations[index].refused = true;
      answer.refusal = "the plan says so";
    }
    answer.poller = index % plan_.peers[peer].pollers;
    answer.send_bytes = answer.receive_bytes = plan_.peers[peer].ring_limit;
    return answer;
  }

  // --------------------------------------------------------------------------------------- phases

  std::string talk() {
    begin_ = world().now();
    ledger_.conversations.resize(plan_.conversations.size());
    ledger_.dials_left = static_cast<uint32_t>(plan_.conversations.size());
    for (uint32_t peer = 0; peer < plan_.peer_count(); ++peer) {
      if (plan_.peers[peer].starts_at == 0) {
        open(peer);
        continue;
      }
      ledger_.disturbed[peer] = true;  // others may give up before it is there
      world().spawn(fmt::format("start of peer {}", peer), [this, peer] {
        peers_.sleep(plan_.peers[peer].starts_at);
        open(peer);
      });
    }
    for (const PeerFault& fault : plan_.faults) {
      world().schedule(begin_ + fault.at, "fault", [this, fault] { happen(fault); });
    }
    (void)world().run();
    is_over_ = true;
    if (world().failed()) return "";
    return check_all();
  }

  std::string check_all() {
    const ChannelChecker checker(plan_, ledger_);
    for (uint32_t index = 0; index < plan_.conversations.size(); ++index) {
      if (std::string wrong = checker.check(index); !wrong.empty()) return wrong;
      for (const SideRecord& side : ledger_.conversations[index].sides) {
        outcome_hash_ = mix(outcome_hash_, side.committed, side.received,
                            side.closed ? static_cast<uint64_t>(side.closed->code()) : 999);
      }
    }
    return check_idle();
  }

  // Whatever happened: everything was given back.
  std::string check_idle() {
    for (uint32_t peer = 0; peer < plan_.peer_count(); ++peer) {
      if (!peers_.has(peer)) continue;
      endpoint::EndpointCore& core = peers_.core(peer);
      if (core.channel_count() != 0 || core.memory_taken_bytes() != 0)
        return fmt::format("peer {} keeps {} channels and {} bytes of links", peer,
                           core.channel_count(), core.memory_taken_bytes());
    }
    return "";
  }

  // Peers that are there go on, whatever happened: a channel from each to the next one.
  std::string talk_again() {
    cut_count_ = peers_.faults().cut_count();
    dark_count_ = peers_.faults().dark_count();
    peers_.faults().heal();
    std::vector<uint32_t> there;
    for (uint32_t peer = 0; peer < plan_.peer_count(); ++peer) {
      if (peers_.has(peer)) there.push_back(peer);
    }
    if (there.size() < 2) return "";
    const auto first = static_cast<uint32_t>(plan_.conversations.size());
    for (uint32_t i = 0; i < there.size(); ++i) {
      ConversationPlan plan;
      plan.index = first + i;
      plan.from = there[i];
      plan.to = there[(i + 1) % there.size()];
      plan.send_bytes = plan.receive_bytes = 4096;
      for (SidePlan& side : plan.sides) side = {.frames = 20, .largest = 500};
      plan.sides[1].ending = SidePlan::Ending::waits;
      plan_.conversations.push_back(plan);
    }
    ledger_.conversations.resize(plan_.conversations.size());
    ledger_.dials_left = static_cast<uint32_t>(there.size());
    ledger_.hostile.clear();
    ledger_.cut.clear();
    begin_ = world().now();
    for (const uint32_t peer : there) spawn_programs(peer);
    (void)world().run();
    if (world().failed()) return "";
    const ChannelChecker checker(plan_, ledger_);
    for (uint32_t index = first; index < plan_.conversations.size(); ++index) {
      if (std::string wrong = checker.check_sound(index); !wrong.empty())
        return "afterwards: " + wrong;
    }
    return check_idle();
  }

  std::string close() {
    for (uint32_t peer = 0; peer < plan_.peer_count(); ++peer) {
      if (!peers_.has(peer)) continue;
      world().spawn(fmt::format("end of peer {}", peer), [this, peer] { peers_.destroy(peer); });
    }
    (void)world().run();
    return "";
  }

  // --------------------------------------------------------------------------------------- faults

  void happen(const PeerFault& fault) {
    const base::Nanoseconds until = world().now() + fault.lasting;
    if (is_over_ || !is_there(fault.peer)) return;
    const bool is_between = fault.kind == PeerFaultKind::cut || fault.kind == PeerFaultKind::apart;
    if (is_between && !is_there(fault.other)) return;
    ++happened_[static_cast<size_t>(fault.kind)];
    switch (fault.kind) {
      case PeerFaultKind::death:
      case PeerFaultKind::death_return:
        ledger_.ended[fault.peer] = true;
        ledger_.died_at[fault.peer] = std::min(ledger_.died_at[fault.peer], world().now());
        peers_.kill(fault.peer);
        return bury(fault);
      case PeerFaultKind::close:
      case PeerFaultKind::close_return:
        ledger_.ended[fault.peer] = true;
        return bury(fault);
      case PeerFaultKind::long_stall:
        ledger_.disturbed[fault.peer] = true;
        [[fallthrough]];
      case PeerFaultKind::short_stall:
        return world().stall(fault.peer, until);
      case PeerFaultKind::half_open:
        ledger_.disturbed[fault.peer] = true;
        return peers_.faults().silence(fault.peer, fault.other, until);
      case PeerFaultKind::hostile:
        return peers_.faults().corrupt(fault.peer, fault.other, fault.count);
      case PeerFaultKind::cut:
        note_cut(fault);
        return cut(fault);
      case PeerFaultKind::apart:
        note_cut(fault);
        ledger_.apart.insert(std::minmax(fault.peer, fault.other));
        return peers_.faults().separate(fault.peer, fault.other, until);
    }
  }

  bool is_there(uint32_t peer) const { return peers_.has(peer) && !ends_[peer]; }

  void note_cut(const PeerFault& fault) {
    ledger_.cut.insert(std::minmax(fault.peer, fault.other));
    if (plan_.is_mended(fault)) return;
    ledger_.disturbed[fault.peer] = ledger_.disturbed[fault.other] = true;
  }

  void cut(const PeerFault& fault) {
    Chance chance(mix(plan_.seed, fault.at, fault.peer, fault.other));
    peers_.faults().cut_somewhere(fault.peer, fault.other, fault.count, chance);
  }

  // The peer's programs end, then what it had; and it may come back.
  void bury(const PeerFault& fault) {
    const uint32_t peer = fault.peer;
    ends_[peer] = true;
    const bool returns =
        fault.kind == PeerFaultKind::death_return || fault.kind == PeerFaultKind::close_return;
    // A group of its own would be stopped with the peer.
    world().spawn(fmt::format("undertaker of peer {}", peer), [this, peer, returns, fault] {
      peers_.close(peer);
      world().wait_until([&] { return ledger_.running[peer] == 0; }, base::kForever,
                         "programs that end");
      peers_.destroy(peer);
      for (const ConversationPlan& one : plan_.conversations) {
        const bool is_lost = ledger_.conversations[one.index].dialled || !returns;
        if (one.from != peer || !is_lost) continue;
        ledger_.conversations[one.index].dialled = true;
        end_dial(peers_, ledger_, one.index);
      }
      if (!returns) return;
      peers_.sleep(fault.lasting);
      ends_[peer] = false;
      open(peer);
    });
  }

  ChannelPlan plan_;
  ChannelLedger ledger_;
  Peers peers_;
  base::Nanoseconds begin_ = 0;
  bool is_over_ = false;
  std::vector<bool> ends_ = std::vector<bool>(plan_.peer_count());  // peers that die or close now
  uint64_t happened_[kPeerFaultKinds] = {};
  uint64_t outcome_hash_ = 0;
  uint64_t cut_count_ = 0;
  uint64_t dark_count_ = 0;
};

void ChannelRun::cover(Coverage& coverage) const {
  coverage.add("peers", plan_.peer_count());
  coverage.add("channels", plan_.conversations.size());
  for (const ConversationRecord& record : ledger_.conversations) {
    for (const SideRecord& side : record.sides) {
      coverage.count("sides of channels ended with",
                     side.closed ? code_name(side.closed->code()) : "nothing");
    }
  }
  coverage.add("frames of a run", ledger_.frames);
  coverage.add("bytes of a run", ledger_.bytes);
  coverage.count("pollers", "claims that found no room", ledger_.room_waits);
  coverage.count("pollers", "entered by another thread", ledger_.entered);
  coverage.count("pollers", "frames held beside others", ledger_.held);
  coverage.count("connections", "cut", cut_count_);
  coverage.count("connections", "gone dark", dark_count_);
  for (uint32_t kind = 0; kind < kPeerFaultKinds; ++kind)
    coverage.count("faults", fault_name(static_cast<PeerFaultKind>(kind)), happened_[kind]);
}

}  // namespace

RunReport run_channel_seed(uint64_t seed) { return report_of<ChannelRun>(seed); }

}  // namespace faro::simulation
