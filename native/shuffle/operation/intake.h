// Intake: the stages of a worker whose rows operators keep: while one of them waits, it takes in for all.
#pragma once

#include <cstdint>
#include <vector>

namespace faro::shuffle {

/// Threads: the worker.
class Intake {
 public:
  /// A stage that an operator receives.
  class Stage {
   public:
    /// Takes rows that have come, some batches of them; answers whether there were any. What fails the operator by that is told
    /// by its own next call.
    virtual bool take_in() noexcept = 0;
    /// A call of the worker waits, and takes in what comes: it is not to be spilled.
    virtual void mark(bool is_taken) noexcept = 0;

   protected:
    ~Stage() = default;
  };

  void add(Stage& stage);
  void remove(Stage& stage) noexcept { std::erase(stages_, &stage); }

  /// Takes in for every stage; answers whether anything had come.
  bool take_in() noexcept;

  /// As long as one lives, rows of these stages are not spilled: the call of an operator that it stands for takes them in, for
  /// all operators. They nest.
  class Taking {
   public:
    explicit Taking(Intake& intake) noexcept : intake_(intake) {
      if (intake_.takings_++ == 0) intake_.mark(true);
    }
    ~Taking() {
      if (--intake_.takings_ == 0) intake_.mark(false);
    }
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;

   private:
    Intake& intake_;
  };

 private:
  void mark(bool is_taken) noexcept;

  std::vector<Stage*> stages_;
  uint32_t takings_ = 0;  // that live
};

}  // namespace faro::shuffle
