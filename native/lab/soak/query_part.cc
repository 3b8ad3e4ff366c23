#include "lab/soak/query_part.h"

#include "base/return_if_error.h"
#include "lab/workload/part.h"

namespace faro::soak {
namespace {

/// The rows of all senders are known beforehand: nobody stops early.
class Member final : public workload::Participant {
 public:
  Member(Worker& of_worker, const QueryPlan& plan, uint64_t bytes_of_ring,
         workload::Counts& for_counts)
      : Participant(of_worker, workload::mix(plan.seed, of_worker.number(), 3), bytes_of_ring,
                    for_counts),
        plan_(plan) {
    has_time_limits = true;
  }
  void tell_rows_made(const workload::StagePlan&, uint64_t) override {}
  std::optional<uint64_t> rows_made(const workload::StagePlan& stage,
                                    uint32_t sender) const override {
    return plan_.rows(stage, sender);
  }

 private:
  const QueryPlan& plan_;
};

Status use(workload::Part& part, workload::Participant& member, const QueryPlan& plan,
           const QueryId& id) {
  bool cancels = plan.cancelled_by == member.me;
  part.look = [&] {
    workload::Stage& first = part.stages().front();
    if (cancels && first.half_made()) {
      (void)first.shuffle().cancel("as the plan says");
      cancels = false;
    }
    return Status::Ok();
  };
  FARO_RETURN_IF_ERROR(part.open(id));
  return member.chance.one_in(3) ? part.run_in_turns() : part.run();
}

}  // namespace

Status run_part(Worker& worker, const QueryId& id, const QueryPlan& plan, uint64_t ring_bytes,
                uint64_t& rows) {
  workload::Counts counts;
  Member member(worker, plan, ring_bytes, counts);
  workload::Part part(member, plan);
  const Status used = use(part, member, plan, id);
  rows += counts.rows;
  part.close();
  const Outcome ended = worker.end_query(id);
  const Status cause = worker.status();
  worker.release_ownership();
  if (used.code() == Code::internal_error) return used;
  if (ended != Outcome::done) return cause;
  return used;
}

}  // namespace faro::soak
