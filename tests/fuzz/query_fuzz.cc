// A node's table of queries between its own workers, which keep to the rules, and peers that say
// anything about any query at any time, are lost and return.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "fuzz/fuzz_target.h"
#include "shuffle/query/query_table.h"
#include "wire/query_message.h"

namespace faro::fuzz {
namespace {

using shuffle::Query;
using shuffle::QueryTable;
using wire::QueryMessage;

constexpr uint32_t kSelf = 1;
constexpr uint32_t kNodes = 3;  // with two workers each: worker w lives on node w / 2
constexpr uint32_t kFirstWorker = 2 * kSelf;
constexpr uint64_t kIncarnation = 1000;  // of node 0; one more of each
constexpr base::Nanoseconds kUnopened = 1'000'000;
constexpr uint32_t kMoves = 128;  // of one input

class QueryRun final : private shuffle::QueryEnvironment {
 public:
  explicit QueryRun(Input input) : input_(input) {}

  void run() {
    for (uint32_t move = 0; move < kMoves && !input_.empty(); ++move) {
      if (input_.flag()) {
        hear();
      } else {
        work();
      }
      check();
    }
    end_everything();
    require(table_.running_count() == 0, "nothing is remembered of a closed node's queries");
  }

 private:
  struct Used {
    std::shared_ptr<Query> query;
    std::array<bool, 2> ended{};  // this node's workers
  };

  static QueryTable::Shape shape() {
    QueryTable::Shape shape;
    shape.node = kSelf;
    for (uint32_t n = 0; n < kNodes; ++n) {
      shape.nodes.push_back({"node " + std::to_string(n),
                             2 * n,
                             2,
                             true,
                             {session::PeerState::linked, kIncarnation + n, 0}});
      shape.default_workers.insert(shape.default_workers.end(), {2 * n, 2 * n + 1});
    }
    return shape;
  }

  void send(uint32_t node, const QueryMessage& message) override {
    require(node < kNodes, "messages go to nodes of the cluster");
    const auto decoded = wire::decode_query_message(wire::encode(message));
    require(decoded.has_value(), "what is sent can be decoded");
    require(decoded->kind == message.kind && decoded->first == message.first, "and is the same");
  }
  void alert_workers() override {}
  void look_soon() override {}
  void let_go(uint32_t) override {}
  void want_link(uint32_t) override {
    require(false, "nodes of a fixed list are not linked on demand");
  }
  std::optional<session::PeerView> rest(uint32_t, session::Peers::Event) noexcept override {
    require(false, "links of a fixed list do not rest");
    return std::nullopt;
  }
  void link_has_ended(uint32_t) noexcept override {}
  Status why_unlinked(uint32_t) const override { return {}; }
  void query_failed(const QueryId& query, const Status& cause) override {
    require(!cause.ok() && cause.query() == query,
            "a query that has failed is told with its cause");
  }
  void fail_peer(uint32_t node, const Status& cause) override {
    require(node < kNodes && node != kSelf, "it is a peer that breaks rules");
    require(!cause.ok() && !cause.message().empty(), "and which one is said");
    require(cause.message().find("speaks of more than") == std::string_view::npos,
            "what a peer has said is counted: so little is no flood");
  }

  QueryId id() {
    const uint32_t issuer = input_.below(kNodes + 1);
    const uint64_t incarnation = issuer < kNodes ? incarnations_[issuer] : kIncarnation;
    const uint64_t former = input_.below(8) == 7 ? 1 : 0;  // of a former process
    return {input_.number<uint8_t>() % uint64_t{6}, incarnation - former, issuer, 0};
  }

  // A peer speaks: about some query, or in bytes of its own.
  void hear() {
    const uint32_t from = peer();
    if (lost_[from]) return;
    if (input_.below(4) == 0) {
      const auto raw = wire::decode_query_message(input_.piece(2048));
      if (raw) table_.on_message(from, *raw);
      return;
    }
    QueryMessage message;
    message.kind = static_cast<wire::QueryMessageKind>(1 + input_.below(6));
    message.query = shuffle::to_key(id());
    message.first = input_.number<uint8_t>();
    message.second = static_cast<int32_t>(static_cast<int8_t>(input_.number<uint8_t>()));
    message.number = input_.flag() ? input_.number<uint64_t>() : input_.number<uint8_t>();
    message.text = text_of(input_.take(input_.below(16)));
    table_.on_message(from, *wire::decode_query_message(wire::encode(message)));
  }

  // A worker of this node, or the node itself.
  void work() {
    switch (input_.below(14)) {
      case 0:
        return begun_.push_back(table_.begin());
      case 1:
      case 2:
        return use(id());
      case 3:
        if (Used* const used = any()) end(*used, input_.below(2));
        break;
      case 4:
        if (Used* const used = any())
          table_.fail(*used->query, Status(Code::query_failed, "the engine said so"));
        break;
      case 5:
        (void)table_.cancel(id(), Status(Code::query_cancelled, "enough"));
        break;
      case 6:
        return declare(id());
      case 7:
        if (Used* const used = any()) {
          const uint32_t stage = input_.below(4);
          table_.add_unopened(*used->query, kFirstWorker, stage, input_.below(6), now_);
          if (input_.flag()) table_.remove_unopened(*used->query, kFirstWorker, input_.below(4));
        }
        break;
      case 8:
        now_ += kUnopened / 4 * input_.below(8);
        table_.on_tick(now_);
        break;
      case 9:
        return receive();
      case 10:
        return lose_or_return(peer());
      case 11:
        if (Used* const used = any()) {
          const std::array<uint32_t, 2> senders = {input_.below(6), input_.below(6)};
          table_.stop(*used->query, input_.below(4), kFirstWorker, senders);
        }
        break;
      default:
        if (Used* const used = any()) open_stage(*used);
    }
  }

  // And may wait for its senders for long.
  void open_stage(Used& used) {
    const uint32_t worker = kFirstWorker + input_.below(2);
    ShuffleSpec spec;
    spec.stage = input_.below(4);
    spec.senders = {input_.below(6)};
    spec.receivers = {worker};
    const auto lists = shuffle::StageLists::of(spec);
    const Status opened = table_.open_stage(*used.query, worker, spec, lists);
    require(opened.ok() || !opened.message().empty(), "why a stage cannot be opened is said");
    if (opened.ok() && input_.flag())
      table_.await(*used.query, worker, spec.stage, spec.senders, lists);
  }

  uint32_t peer() { return input_.flag() ? 0 : 2; }

  // Rows come that open a shuffle, and may be wrong; or were for a node that is gone.
  void receive() {
    const uint32_t from = peer();
    if (lost_[from]) {
      if (Used* const used = any()) table_.lose_rows(*used->query, from);
    } else if (const std::shared_ptr<Query> heard = table_.hear(id(), from)) {
      if (input_.flag()) table_.fail_by_sender(*heard, from, Status(Code::query_failed, "a row"));
    }
  }

  void lose_or_return(uint32_t node) {
    lost_[node] = !lost_[node];
    if (!lost_[node]) ++incarnations_[node];
    const session::PeerState state =
        lost_[node] ? session::PeerState::lost : session::PeerState::linked;
    const session::PeerView now{state, incarnations_[node], ++versions_};
    if (lost_[node])
      return table_.on_peer_lost(node, now,
                                 Status(Code::peer_lost, "node " + std::to_string(node)));
    ++lives_;
    table_.on_peer_joined(node, now);
  }

  void use(const QueryId& query) {
    auto used = table_.use(query);
    if (!used.ok()) {
      return require(!used.status().message().empty(), "why a query cannot be used is said");
    }
    require((*used)->id == query && query.issuer < kNodes, "a query is the one that was asked for");
    for (const Used& known : used_) {
      if (known.query == *used) return;
    }
    used_.push_back({*used, {}});
  }
  // Then not every worker of this node may have a part in it.
  void declare(const QueryId& query) {
    if (table_.declare(query, {input_.below(7), input_.below(7)}).ok()) declared_.push_back(query);
  }
  Used* any() {
    return used_.empty() ? nullptr : &used_[input_.below(static_cast<uint32_t>(used_.size()))];
  }
  void end(Used& used, uint32_t worker) {
    used.ended[worker] = true;
    table_.end(*used.query, kFirstWorker + worker);
  }

  void check() {
    for (const Used& used : used_) {
      const Query& query = *used.query;
      if (query.failed()) {
        require(!query.cause().ok() && code_name(query.cause().code()) != "unknown",
                "a failed query has a cause with a known code");
      }
      if (query.id.issuer == kSelf && query.outcome_known()) {
        const bool declared =
            std::find(declared_.begin(), declared_.end(), query.id) != declared_.end();
        require(declared || (used.ended[0] && used.ended[1]),
                "nobody but its workers ends this node's part of its own query");
      }
      for (uint32_t stage = 0; stage < 4; ++stage) {
        for (const uint32_t receiver : table_.stops(*used.query, stage))
          require(receiver < 2 * kNodes, "those who stopped are workers");
      }
    }
    require(table_.running_count() <= kNodes * 6 * lives_, "no more queries than there are ids");
  }
  // Ends everything as when the session closes: peers go, workers end what they used.
  void end_everything() {
    for (const QueryId& query : begun_) use(query);
    table_.close(Status(Code::peer_lost, "the node closed its session"));
    for (const uint32_t peer : {0u, 2u}) {
      if (!lost_[peer]) lose_or_return(peer);
    }
    for (Used& used : used_) {
      for (uint32_t worker = 0; worker < 2; ++worker) end(used, worker);
      require(used.query->outcome_known(), "every query that was used ends");
    }
  }

  Input input_;
  base::Nanoseconds now_ = 1;
  QueryTable table_{shape(), *this, {.unopened_ns = kUnopened, .link_ns = kUnopened}};
  std::array<uint64_t, kNodes> incarnations_{kIncarnation, kIncarnation + 1, kIncarnation + 2};
  uint64_t versions_ = 0;  // of what is known of the nodes
  std::array<bool, kNodes> lost_{};
  uint32_t lives_ = 1;  // of all nodes together, except the first of each
  std::vector<QueryId> begun_;
  std::vector<QueryId> declared_;
  std::vector<Used> used_;
};

}  // namespace

void run_target(Input input) { QueryRun(input).run(); }

}  // namespace faro::fuzz
