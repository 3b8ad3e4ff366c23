// Shown: what others see of a session's state, noted in a Record: its answers and events, what it
// says to each other node, and its picture of them all.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "faro/query.h"
#include "faro/status.h"
#include "sim/node_state/plan.h"
#include "sim/programs/rings.h"
#include "sim/programs/world.h"

namespace faro::node_state {

/// Within a call the order counts of what one node was answered and told, and of what it says on
/// one connection: which of two nodes, or two connections, came first nobody can see.
///
/// Threads: one.
class Shown final : public programs::RingWatcher, public programs::ControlWatcher {
 public:
  Shown(const Plan& plan, Record& record) : plan_(plan), record_(record) {}

  /// Everything that follows is of this call.
  void begin(const base::Clock& clock, const std::string& call);
  void end();

  /// An answer or an event of a node.
  void note(uint32_t number, Kind kind, std::string text);
  /// One with a status: with its code; its text is of the kind `cause`.
  void note(uint32_t number, Kind kind, const std::string& what, const Status& status);
  /// What a session knows of all others; noted if it has changed.
  void note_state(uint32_t number, std::string state);

  /// The process with this incarnation is called so from now on.
  void name(uint64_t incarnation, std::string name) { names_[incarnation] = std::move(name); }
  std::string name_of(const QueryId& query) const;

  /// What programs are like, with what messages and causes are.
  void count(const std::string& what) { record_.count(what); }

  void on_frame(const programs::Port&, uint32_t, wire::Position,
                std::span<const std::byte>) override {}
  void on_dial(const programs::ManualNetwork& by, const std::string& address,
               bool is_answered) override;
  void on_message(const programs::ManualNetwork& by, const programs::ManualNetwork& to,
                  uint32_t connection, std::span<const std::byte> message) override;
  void on_close(const programs::ManualNetwork& by, const programs::ManualNetwork& to,
                uint32_t connection) override;

 private:
  enum Group { happened, dialled, said, state };
  using Place = std::tuple<Group, uint32_t, uint32_t, uint32_t>;  // from, to, connection
  void add(const Place& place, Kind kind, std::string text);
  Place place_of(const programs::ManualNetwork& by, const programs::ManualNetwork& to,
                 uint32_t connection) const;
  std::string name_of(uint64_t incarnation) const;
  std::string say(std::span<const std::byte> message) const;
  std::string say_query_message(std::span<const std::byte> payload) const;

  const Plan& plan_;
  Record& record_;
  const base::Clock* clock_ = nullptr;
  base::Nanoseconds begun_ = 0;
  std::map<Place, std::vector<std::pair<Kind, std::string>>> lines_;  // of the call of now
  std::map<uint32_t, std::string> states_;
  std::map<uint64_t, std::string> names_;
};

}  // namespace faro::node_state
