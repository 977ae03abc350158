#include <fmt/format.h>

#include <map>
#include <optional>

#include "algorithms/formats/goal.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// One actor's block.
class Rank {
 public:
  Rank(const Schedule& schedule, Actor actor) : schedule_(schedule), actor_(actor) {}

  std::string text() {
    steps_.resize(static_cast<std::size_t>(schedule_.lanes));
    for (Lane lane = 0; lane < schedule_.lanes; ++lane)
      for (int i = 0; i < schedule_.n_steps(actor_, lane); ++i) write_ops(lane, i);
    for (Lane lane = 0; lane < schedule_.lanes; ++lane)
      for (int i = 0; i < schedule_.n_steps(actor_, lane); ++i) write_order(lane, i);
    return fmt::format("rank {} {{\n{}{}}}\n", actor_, ops_, order_);
  }

 private:
  struct Labels {
    std::vector<int> ops;
    std::optional<int> join;  // of several: a calc 0 that requires them
  };

  int write(const std::string& what) {
    ops_ += fmt::format("l{}: {}\n", ++last_, what);
    return last_;
  }

  void write_ops(Lane lane, int i) {
    step_.clear();
    schedule_.step(actor_, lane, i, step_);
    Labels labels;
    for (const Op& op : step_.ops) labels.ops.push_back(write(statement(op)));
    if (labels.ops.empty()) labels.ops.push_back(write("calc 0"));  // it only waits
    steps_[static_cast<std::size_t>(lane)].push_back(std::move(labels));
  }

  std::string statement(const Op& op) const {
    const std::string tag = op.channel == 0 ? "" : fmt::format(" tag {}", op.channel);
    switch (op.what) {
      case Do::send:
        return fmt::format("send {}b to {}{}", schedule_.size(op.region).count, op.peer, tag);
      case Do::receive:
      case Do::receive_add:
        return fmt::format("recv {}b from {}{}", schedule_.size(op.region).count, op.peer, tag);
      case Do::copy:
      case Do::add:
        return "calc 0";
      case Do::compute:
        if (op.time.count() % 1000 != 0)
          throw InputError("", fmt::format("GOAL uses whole nanoseconds, but {} computes for {} ps",
                                           schedule_.algorithm, op.time.count()));
        return fmt::format("calc {}", op.time.count() / 1000);
    }
    fail_invariant("an operation has one of six names");
  }

  /// The label after which the lane has done that step.
  int done(Lane lane, int step) {
    Labels& labels = steps_[static_cast<std::size_t>(lane)][static_cast<std::size_t>(step)];
    if (labels.ops.size() == 1) return labels.ops[0];
    if (!labels.join) {
      labels.join = write("calc 0");
      for (const int op : labels.ops) order_ += fmt::format("l{} requires l{}\n", *labels.join, op);
    }
    return *labels.join;
  }

  void write_order(Lane lane, int i) {
    step_.clear();
    schedule_.step(actor_, lane, i, step_);
    std::vector<int> before;
    if (i > 0) before.push_back(done(lane, i - 1));
    for (const Wait& wait : step_.waits)
      if (wait.steps > 0 && (wait.lane != lane || wait.steps > i)) before.push_back(done(wait.lane, wait.steps - 1));
    for (const int op : steps_[static_cast<std::size_t>(lane)][static_cast<std::size_t>(i)].ops)
      for (const int label : before) order_ += fmt::format("l{} requires l{}\n", op, label);
  }

  const Schedule& schedule_;
  Actor actor_;
  std::vector<std::vector<Labels>> steps_;  // [lane][step]
  std::string ops_, order_;
  int last_ = 0;
  Step step_;
};

}  // namespace

std::string export_goal(const Schedule& schedule) {
  std::string out = fmt::format("num_ranks {}\n", schedule.actors);
  for (Actor actor = 0; actor < schedule.actors; ++actor) out += "\n" + Rank(schedule, actor).text();
  return out;
}

}  // namespace ringsim
