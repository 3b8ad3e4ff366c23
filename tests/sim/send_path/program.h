// Program: calls drawn from a seed, on senders and receivers of one World, in one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/send_path/calls.h"
#include "sim/send_path/plan.h"
#include "sim/send_path/scene.h"

namespace faro::send_path {

/// Threads: one.
class Program {
 public:
  Program(const Plan& plan, Record& record);
  /// What is open at its end is closed as it is.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Runs it from begin to end.
  void run();
  /// The first rule that was broken; empty: none was.
  const std::string& violation() { return calls_.rows().violation(); }

 private:
  // --- queries
  void begin_queries();
  void begin_query();
  /// False: it was refused.
  bool open(QueryRun& query, uint32_t stage, uint32_t worker);
  void open_some();
  void end_in_order(QueryRun& query);
  bool go_on_ending(QueryRun& query);
  void end_parts(QueryRun& query);
  void give_back(uint32_t worker);
  void end_a_node();
  bool is_open(const OpenStage& stage) const { return !stage.closed && !stage.query->over; }

  // --- what is drawn
  void act();
  void send(OpenStage& stage);
  void send_many(OpenStage& stage);
  void send_several(OpenStage& stage);
  void claim(uint32_t worker);
  void receive(OpenStage& stage);
  void keep(uint32_t worker);
  void end(OpenStage& stage);
  void move_world();
  void trouble(OpenStage& stage);
  void lose_something();
  void mistake(OpenStage& stage);
  OpenStage* draw_stage(uint32_t worker, bool sends);
  uint32_t draw_receiver(const OpenStage& stage);
  size_t draw_length(const OpenStage& stage);
  std::vector<uint32_t> draw_receivers(const OpenStage& stage);
  Wait draw_wait();

  const Plan& plan_;
  Chance chance_;
  std::vector<std::unique_ptr<QueryRun>> queries_;
  std::vector<std::unique_ptr<OpenStage>> stages_;
  Scene scene_;
  Calls calls_;
  bool has_lost_ = false;  // a node
};

}  // namespace faro::send_path
