// The proof of a program: its data. Every gradient arrives once, from everybody.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "sim/base/error.hpp"
#include "sim/base/splitmix.hpp"
#include "sim/program/program_detail.hpp"

namespace ringsim::program_detail {

namespace {

using Touch = Program::Touch;

/// The field of 2^61 - 1 elements.
struct Field61 {
  static constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;
  static std::uint64_t add(std::uint64_t a, std::uint64_t b) { return (a + b) % prime; }
  static std::uint64_t subtract(std::uint64_t a, std::uint64_t b) { return (a + prime - b) % prime; }
  static std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(a) * b % prime);
  }
  static std::uint64_t inverse(std::uint64_t a) {  // a^(p - 2), by Fermat
    std::uint64_t result = 1;
    for (std::uint64_t exponent = prime - 2; exponent > 0; exponent >>= 1, a = multiply(a, a))
      if ((exponent & 1U) != 0) result = multiply(result, a);
    return result;
  }
};

/// Follows the variables of all actors through two iterations.
class Contributions {
 public:
  Contributions(const Program& program, WatchedWork* work)
      : program_(program), work_(work), is_of_ring_(ring_variables(program)) {
    for (std::size_t v = 0; v < program.variables.size(); ++v) {
      work_on_row();
      values_.emplace_back(n_actors());
      states_.emplace_back(n_actors(), State::old);
    }
    sums_.resize(program.variables.size());
    learnt_.resize(program.variables.size());
    unsummed_.resize(program.variables.size());
    own_.resize(program.variables.size());
    times_.resize(program.variables.size());
    parts_.resize(program.variables.size());
    actors_of_ = actors_of_roles(program);
    count_calls();
    for (const Program::Learns& learns : program.learns) {
      learnt_[static_cast<std::size_t>(learns.weights)] = &learns;
      unsummed_[static_cast<std::size_t>(learns.gradient)] =
          learns.how == How::group_mean ? !is_shared(learns) : learns.how != How::gradients_summed;
      if (is_by_neighbors(learns) || learns.how == How::group_mean)
        own_[static_cast<std::size_t>(learns.gradient)].resize(n_actors());
      if (learns.how == How::group_mean) times_[static_cast<std::size_t>(learns.gradient)].resize(n_actors());
      find_calls(learns);
    }
  }

  void go(const Order& order) {
    for (int iteration = 0; iteration < 2; ++iteration) {
      std::fill(sums_.begin(), sums_.end(), 0);
      for (std::vector<std::uint64_t>& own : own_) std::fill(own.begin(), own.end(), 0);
      for (std::vector<int>& times : times_) std::fill(times.begin(), times.end(), 0);
      for (std::vector<State>& states : states_) std::fill(states.begin(), states.end(), State::old);
      keep_values();
      order.each_entry([&](std::span<const TaskPlace> places) {
        for (const TaskPlace& place : places) compute(place);
        if (!places.empty() && at(program_, places.front()).call >= 0) call(places.front());
      });
      for (const Program::Learns& learns : program_.learns) {
        work_on_row();
        compare(learns);
      }
    }
  }

 private:
  using How = Program::Learns::How;
  // part: the sum, but each holds a part of it; dropped: it was summed, and is gone; sent: the parts that others have
  // for this actor; answered: what it has made of them
  enum class State : std::uint8_t { old, made, part, summed, dropped, sent, answered };
  /// A look at a variable at all actors, a few nanoseconds each.
  void work_on_row() { done(work_, 1 + program_.actors / 64); }
  void keep_values() {
    before_.resize(values_.size());
    for (std::size_t v = 0; v < values_.size(); ++v) {
      work_on_row();
      before_[v] = values_[v];
    }
  }
  static std::size_t index(Actor actor) { return static_cast<std::size_t>(actor); }
  std::size_t n_actors() const { return static_cast<std::size_t>(program_.actors); }
  const std::string& name(int variable) const { return program_.variables[static_cast<std::size_t>(variable)]; }
  std::string who(Actor actor) const {
    return actor < program_.ranks ? fmt::format("rank {}", actor) : fmt::format("helper {}", actor - program_.ranks);
  }

  static bool is_by_neighbors(const Program::Learns& learns) {
    return learns.how == How::neighbors_averaged || learns.how == How::neighbors_first;
  }
  const Program::Groups& groups_of(const Program::Learns& learns) const {
    return program_.groups[static_cast<std::size_t>(learns.groups)];
  }
  /// True if several ranks have the weights.
  bool is_shared(const Program::Learns& learns) const {
    const Program::Groups& groups = groups_of(learns);
    return std::any_of(groups.begin(), groups.end(), [](const auto& group) { return group.size() > 1; });
  }
  /// The ranks whose weights a rank averages, itself first.
  std::vector<Actor> neighbors_of(Actor rank) const {
    std::vector<Actor> found{rank};
    for (const int d : {-1, 1})
      if (const Actor other = wrap(rank + d, program_.ranks);
          std::find(found.begin(), found.end(), other) == found.end())
        found.push_back(other);
    return found;
  }

  void count_calls() {
    calls_of_.resize(program_.variables.size());
    gathered_from_.resize(program_.variables.size(), -1);
    for (std::size_t c = 0; c < program_.calls.size(); ++c) {
      const Program::Call& call = program_.calls[c];
      for (const int variable : call.variables)
        calls_of_[static_cast<std::size_t>(variable)].push_back(static_cast<std::uint32_t>(c));
      if (call.schedule.schedule().collective.op != CollectiveOp::all_gather) continue;
      for (std::size_t i = 0; i < call.into.size(); ++i)
        gathered_from_[static_cast<std::size_t>(call.into[i])] = call.variables[i];
    }
  }

  // If there are several ranks, a gradient (or the weights that are averaged) is in one call of each; weights that
  // go to neighbors are in one call per neighbor.
  void find_calls(const Program::Learns& learns) const {
    if (program_.ranks == 1) return;
    if (learns.how == How::group_mean && !is_shared(learns)) return;
    const bool is_average = learns.how != How::gradients_summed && learns.how != How::group_mean;
    const int summed = is_average ? learns.weights : learns.gradient;
    const std::vector<std::uint32_t>& found = calls_of_[static_cast<std::size_t>(summed)];
    const std::string hint =
        is_average ? "weights are averaged once an iteration" : "every gradient belongs in one bucket";
    if (found.empty())
      refuse_program(program_, fmt::format("{} is in no call: the ranks never sum it", name(summed)), hint);
    if (is_by_neighbors(learns) && found.size() == neighbors_of(0).size() - 1) return;
    if (learns.how == How::group_mean) return;  // each group and stage has a call of its own; sums are compared below
    if (found.size() > 1)
      refuse_program(program_,
                     fmt::format("{} is summed {} times, in {} and {}", name(summed), found.size(),
                                 program_.calls[found[0]].name, program_.calls[found[1]].name),
                     hint);
  }

  // Variables of rings have a proof of their own, check_rings().
  bool is_of_ring(int variable) const { return is_of_ring_[static_cast<std::size_t>(variable)]; }

  void compute(const TaskPlace& place) {
    for (const Touch& touch : at(program_, place).touches)
      for (const Actor actor : actors_of_[static_cast<std::size_t>(place.role)]) {
        if (is_of_ring(touch.variable)) break;
        done(work_);
        compute(place, touch, actor);
      }
  }

  void compute(const TaskPlace& place, const Touch& touch, Actor actor) {
    std::uint64_t& value = values_[static_cast<std::size_t>(touch.variable)][index(actor)];
    State& state = states_[static_cast<std::size_t>(touch.variable)][index(actor)];
    const auto refuse = [&](const std::string& what) {
      refuse_program(program_, fmt::format("{} {}", describe(program_, place), what));
    };
    switch (touch.as) {
      case Touch::As::read:
        if (const Program::Learns* learns = learnt_[static_cast<std::size_t>(touch.variable)]) {
          const Actor keeper = learns->keeper >= 0 ? learns->keeper : actor;
          if ((learns->how == How::gradients_summed || learns->how == How::group_mean) &&
              value != before_[static_cast<std::size_t>(touch.variable)][index(keeper)])
            refuse(fmt::format("reads {}, which at {} are not those that {} had at the end of the step before",
                               name(touch.variable), who(actor), who(keeper)));
        } else if (state == State::old) {
          refuse(fmt::format("reads {} before it is made or has come in", name(touch.variable)));
        }
        break;
      case Touch::As::read_whole:
        if (state == State::dropped)
          refuse(fmt::format("reads {}, which {} has freed and not gathered again", name(touch.variable), who(actor)));
        if (state != State::summed)
          refuse(fmt::format("reads {}, of which {} has only {}", name(touch.variable), who(actor),
                             state == State::old    ? "what the step before has left"
                             : state == State::made ? "what it has made itself"
                             : state == State::part ? "its own part of the sum"
                             : state == State::sent ? "what other ranks have sent it"
                                                    : "its answers to what other ranks have sent it"));
        if (const int from = gathered_from_[static_cast<std::size_t>(touch.variable)];
            from >= 0 && learnt_[static_cast<std::size_t>(from)] != nullptr &&
            value != before_[static_cast<std::size_t>(from)][index(actor)])
          refuse(fmt::format("reads {}, which at {} are not those that the ranks had at the end of the step before",
                             name(touch.variable), who(actor)));
        break;
      case Touch::As::drop:
        if (state != State::summed) refuse(fmt::format("frees {}, which are not whole", name(touch.variable)));
        state = State::dropped;
        break;
      case Touch::As::make:
      case Touch::As::add: {
        const bool is_more = touch.as == Touch::As::add;
        if (is_more && state != State::made)
          refuse(fmt::format("adds to {} before it is made in this iteration", name(touch.variable)));
        const std::uint64_t made = token();
        value = is_more ? Field61::add(value, made) : made;
        state = State::made;
        std::uint64_t& sum = sums_[static_cast<std::size_t>(touch.variable)];
        if (actor < program_.ranks) sum = Field61::add(sum, made);
        if (std::vector<std::uint64_t>& own = own_[static_cast<std::size_t>(touch.variable)]; !own.empty())
          own[index(actor)] = Field61::add(own[index(actor)], made);
        if (std::vector<int>& times = times_[static_cast<std::size_t>(touch.variable)]; !times.empty())
          ++times[index(actor)];
        break;
      }
      case Touch::As::clear:
        value = 0;
        state = State::made;
        break;
      case Touch::As::apply: {
        if (state == State::old) refuse(fmt::format("applies {} before it is made", name(touch.variable)));
        if (program_.ranks > 1 && state == State::made && !unsummed_[static_cast<std::size_t>(touch.variable)])
          refuse(fmt::format("applies {} before the ranks have summed it", name(touch.variable)));
        std::uint64_t& weights = values_[static_cast<std::size_t>(touch.to)][index(actor)];
        weights = Field61::add(weights, value);
        if (state == State::part) states_[static_cast<std::size_t>(touch.to)][index(actor)] = State::part;
        break;
      }
      case Touch::As::answer: {
        if (state != State::sent)
          refuse(fmt::format("answers {}, of which {} has {}", name(touch.variable), who(actor),
                             state == State::answered ? "already answered what other ranks have sent it"
                                                      : "nothing that other ranks have sent it"));
        const std::uint64_t by = token();
        value = Field61::multiply(value, by);
        state = State::answered;
        std::uint64_t& answers = parts_of(touch.variable, parts_of(touch.variable, actor).first).answers;
        answers = Field61::add(answers, by);
        break;
      }
      case Touch::As::divide:
        value = Field61::multiply(value, Field61::inverse(static_cast<std::uint64_t>(touch.divisor)));
        break;
      case Touch::As::keep:
      case Touch::As::take:
        fail_invariant("check_program.cpp lets variables of rings alone be kept and taken");
    }
  }

  /// What member i gets of a variable: the sum over all, what `from` has, or nothing new.
  static Content::Who what_of(const Collective& collective, Actor i, Actor& from) {
    const bool is_root = i == collective.root;
    switch (collective.op) {
      case CollectiveOp::all_reduce:
      case CollectiveOp::reduce_scatter:
      case CollectiveOp::all_gather:
        return Content::Who::all;
      case CollectiveOp::reduce:
      case CollectiveOp::gather:
        return is_root ? Content::Who::all : Content::Who::nothing;
      case CollectiveOp::broadcast:
      case CollectiveOp::scatter:
        from = collective.root;
        return Content::Who::one;
      default:
        fail_invariant("check_program.cpp lets no other collective have variables");
    }
  }

  void call(const TaskPlace& place) {
    const Program::Call& it = program_.calls[static_cast<std::size_t>(at(program_, place).call)];
    for (std::size_t i = 0; i < it.variables.size(); ++i) {
      if (is_of_ring(it.variables[i])) continue;
      const Schedule& schedule = it.schedule.schedule();
      done(work_, static_cast<std::int64_t>(schedule.collective.ranks) * schedule.groups);
      if (schedule.collective.op == CollectiveOp::send_recv) {
        for (int group = 0; group < schedule.groups; ++group)
          shift(it, it.variables[i], it.into[i], group * (schedule.actors / schedule.groups));
        continue;
      }
      const int into = it.into.empty() ? it.variables[i] : it.into[i];
      if (schedule.collective.op == CollectiveOp::all_to_all) {
        for (int group = 0; group < schedule.groups; ++group)
          swap(it, it.variables[i], group * (schedule.actors / schedule.groups));
        continue;
      }
      for (int group = 0; group < schedule.groups; ++group)
        exchange(it, it.variables[i], into, group * (schedule.actors / schedule.groups));
    }
  }

  /// send_recv among the actors of the schedule from `first` on: the next rank has a copy.
  void shift(const Program::Call& it, int variable, int into, int first) {
    const int ranks = it.schedule.schedule().collective.ranks;
    const auto member = [&](int i) { return index(it.member(first + i)); };
    const auto from = static_cast<std::size_t>(variable), to = static_cast<std::size_t>(into);
    for (int i = 0; i < ranks; ++i) {
      if (states_[from][member(i)] == State::old && learnt_[from] == nullptr)
        refuse_program(program_, fmt::format("{}: {} sends {} before it is made in this iteration",
                                             who(static_cast<Actor>(member(i))), it.name, name(variable)));
      const std::size_t next = member(i + 1 < ranks ? i + 1 : 0);
      values_[to][next] = values_[from][member(i)];
      states_[to][next] = State::summed;
    }
  }

  /// An actor's parts in an all_to_all. Rank i's part for rank j is x_i times a number of j's alone, so one value
  /// stands for all parts: at first the sum of all x_i, then that sum times the answers.
  struct Parts {
    std::uint64_t own = 0;  // x_i
    Actor first = -1;       // the first member of its group, which has the figures of the group:
    int members = 0;
    std::uint64_t sum = 0;      // the sum of all x_i
    std::uint64_t answers = 0;  // the sum of the members' answers, so far
  };
  Parts& parts_of(int variable, Actor actor) {
    std::vector<Parts>& its = parts_[static_cast<std::size_t>(variable)];
    if (its.empty()) its.resize(n_actors());
    return its[index(actor)];
  }

  /// all_to_all among the actors of the schedule from `first` on: of what each has made, parts go to all; of what each
  /// has answered, parts go back.
  void swap(const Program::Call& it, int variable, int first) {
    const int ranks = it.schedule.schedule().collective.ranks;
    const auto state = [&](Actor actor) -> State& { return states_[static_cast<std::size_t>(variable)][index(actor)]; };
    const bool goes_back = state(it.member(first)) == State::answered;
    std::uint64_t sum = 0;
    for (int i = 0; i < ranks; ++i) {
      const Actor actor = it.member(first + i);
      if (state(actor) != (goes_back ? State::answered : State::made))
        refuse_program(program_, fmt::format("{}: {} {} {} before it {}", who(actor), it.name,
                                             goes_back ? "takes back" : "sends", name(variable),
                                             goes_back || state(actor) == State::sent
                                                 ? "has answered what other ranks have sent it"
                                                 : "is made in this iteration"));
      sum = Field61::add(sum, values_[static_cast<std::size_t>(variable)][index(actor)]);
    }
    const Actor leader = it.member(first);
    for (int i = 0; i < ranks; ++i) {
      const Actor actor = it.member(first + i);
      std::uint64_t& value = values_[static_cast<std::size_t>(variable)][index(actor)];
      Parts& parts = parts_of(variable, actor);
      if (!goes_back) {
        parts.own = value;
        parts.first = leader;
        value = sum;
        state(actor) = State::sent;
        continue;
      }
      const Parts& group = parts_of(variable, parts.first);
      if (sum != Field61::multiply(group.sum, group.answers))
        refuse_program(program_, fmt::format("{}: {} must bring back the answers of the {} ranks to which it has sent "
                                             "parts of {}, each once; found something else",
                                             who(actor), it.name, group.members, name(variable)));
      value = Field61::multiply(parts.own, group.answers);
      state(actor) = State::summed;
    }
    if (goes_back) return;
    Parts& group = parts_of(variable, leader);
    group.members = ranks;
    group.sum = sum;
    group.answers = 0;
  }

  /// Among the actors of the schedule from `first` on.
  void exchange(const Program::Call& it, int variable, int into, int first) {
    const Collective& collective = it.schedule.schedule().collective;
    const auto member = [&](int i) { return index(it.member(first + i)); };
    std::vector<std::uint64_t> before;  // [member]
    std::vector<State> were;
    for (int i = 0; i < collective.ranks; ++i) {
      before.push_back(values_[static_cast<std::size_t>(variable)][member(i)]);
      were.push_back(states_[static_cast<std::size_t>(variable)][member(i)]);
    }
    const bool is_kept = learnt_[static_cast<std::size_t>(variable)] != nullptr;
    const auto expect_made = [&](int i, const char* does) {
      if (were[static_cast<std::size_t>(i)] == State::old && !is_kept)
        refuse_program(program_, fmt::format("{}: {} {} {} before it is made in this iteration",
                                             who(static_cast<Actor>(member(i))), it.name, does, name(variable)));
    };
    if (collective.op == CollectiveOp::all_gather && is_kept && into == variable)
      for (int i = 0; i < collective.ranks; ++i)
        if (were[static_cast<std::size_t>(i)] != State::part)
          refuse_program(program_, fmt::format("{}: {} gathers {} before it has updated its part of them",
                                               who(static_cast<Actor>(member(i))), it.name, name(variable)));
    const bool leaves_parts =
        collective.op == CollectiveOp::reduce_scatter ||
        (collective.op != CollectiveOp::all_gather && std::find(were.begin(), were.end(), State::part) != were.end());
    std::optional<std::uint64_t> mean;  // worked out once
    for (int i = 0; i < collective.ranks; ++i) {
      Actor from = i;
      std::uint64_t& value = values_[static_cast<std::size_t>(into)][member(i)];
      State& state = states_[static_cast<std::size_t>(into)][member(i)];
      switch (what_of(collective, i, from)) {
        case Content::Who::nothing:
          break;
        case Content::Who::one:
          expect_made(from, "sends");
          value = before[static_cast<std::size_t>(from)];
          state = were[static_cast<std::size_t>(from)];
          break;
        case Content::Who::all:
          if (!mean) {
            mean = 0;
            for (int j = 0; j < collective.ranks; ++j) {
              expect_made(j, "sums");
              mean = Field61::add(*mean, before[static_cast<std::size_t>(j)]);
            }
            // Of parts that are gathered, values of a sum, their mean: that of all if they have the same.
            const int by = collective.op == CollectiveOp::all_gather ? collective.ranks : it.divisor;
            mean = Field61::multiply(*mean, Field61::inverse(static_cast<std::uint64_t>(by)));
          }
          const bool adds = into != variable && collective.op != CollectiveOp::all_gather && state != State::old;
          value = adds ? Field61::add(value, *mean) : *mean;
          state = leaves_parts ? State::part : State::summed;
      }
    }
  }

  void compare(const Program::Learns& learns) const {
    if (is_by_neighbors(learns)) {
      for (Actor rank = 0; rank < program_.ranks; ++rank) compare_with_neighbors(learns, rank);
      return;
    }
    if (learns.how == How::group_mean) {
      for (const std::vector<Actor>& group : groups_of(learns)) compare_in_group(learns, group);
      return;
    }
    if (learns.keeper >= 0) return compare(learns, learns.keeper);
    for (Actor rank = 0; rank < program_.ranks; ++rank) compare(learns, rank);
  }

  /// The new weights: the mean of those of rank and neighbors, each once; the gradients are each one's own.
  void compare_with_neighbors(const Program::Learns& learns, Actor rank) const {
    const auto weights = static_cast<std::size_t>(learns.weights), gradient = static_cast<std::size_t>(learns.gradient);
    const bool averages_first = learns.how == How::neighbors_first;
    const std::vector<Actor> of = neighbors_of(rank);
    std::uint64_t sum = 0;
    for (const Actor actor : of) {
      sum = Field61::add(sum, before_[weights][index(actor)]);
      if (!averages_first) sum = Field61::add(sum, own_[gradient][index(actor)]);
    }
    std::uint64_t found = values_[weights][index(rank)];
    if (averages_first) found = Field61::subtract(found, own_[gradient][index(rank)]);
    if (Field61::multiply(found, of.size()) == sum) return;
    refuse_program(program_,
                   fmt::format("{}: an iteration must leave {} as the mean of those of the rank and its {} neighbor{}, "
                               "each once, {}; found something else",
                               who(rank), name(learns.weights), of.size() - 1, of.size() == 2 ? "" : "s",
                               averages_first ? "and then add the rank's own gradient" : "each with its own gradient"));
  }

  void compare_in_group(const Program::Learns& learns, const std::vector<Actor>& group) const {
    const auto weights = static_cast<std::size_t>(learns.weights), gradient = static_cast<std::size_t>(learns.gradient);
    std::uint64_t sum = 0;
    for (const Actor member : group) {
      const int times = times_[gradient][index(member)];
      if (times != learns.times)
        refuse_program(program_, fmt::format("{}: an iteration must add to {} {} time{}, once for each micro-batch, "
                                             "found {}",
                                             who(member), name(learns.gradient), learns.times,
                                             learns.times == 1 ? "" : "s", times));
      sum = Field61::add(sum, own_[gradient][index(member)]);
    }
    for (const Actor member : group) {
      if (states_[weights][index(member)] == State::part && !learns.parts)
        refuse_program(program_,
                       fmt::format("{}: an iteration must leave {} whole, found that the rank has only the "
                                   "part that it has updated",
                                   who(member), name(learns.weights)),
                       "an all_gather after the update gives each rank the parts of the others");
      const std::uint64_t added = Field61::subtract(values_[weights][index(member)], before_[weights][index(member)]);
      if (Field61::multiply(added, static_cast<std::uint64_t>(learns.divisor)) == sum) continue;
      std::string found = "something else";
      for (std::uint64_t by = 1; by <= 2 * group.size() * static_cast<std::uint64_t>(learns.divisor); ++by)
        if (Field61::multiply(added, by) == sum) found = fmt::format("the sum divided by {}", by);
      refuse_program(program_, fmt::format("{}: an iteration must add to {} the sum of {} over {} rank{}, divided by "
                                           "{}, found {}",
                                           who(member), name(learns.weights), name(learns.gradient), group.size(),
                                           group.size() == 1 ? "" : "s", learns.divisor, found));
    }
  }

  void compare(const Program::Learns& learns, Actor keeper) const {
    const auto ranks = static_cast<std::uint64_t>(program_.ranks);
    const std::uint64_t sum = sums_[static_cast<std::size_t>(learns.gradient)];
    const auto weights = static_cast<std::size_t>(learns.weights);
    const std::uint64_t added = Field61::subtract(values_[weights][index(keeper)], before_[weights][index(keeper)]);
    if (Field61::multiply(added, ranks) == sum) return;
    std::string found = "something else";
    for (std::uint64_t by = 0; by <= 2 * ranks + 1; ++by)
      if (Field61::multiply(added, ranks) == Field61::multiply(sum, by)) found = fmt::format("{} times it", by);
    for (std::uint64_t by = 1; by <= 2 * ranks + 1; ++by)
      if (Field61::multiply(added, by) == sum) found = fmt::format("the sum divided by {}", by);
    refuse_program(program_, fmt::format("{}: an iteration must add to {} the mean of {} over {} ranks, found {}",
                                         who(keeper), name(learns.weights), name(learns.gradient), ranks, found));
  }

  std::uint64_t token() { return splitmix(++n_tokens_) % Field61::prime; }

  const Program& program_;
  WatchedWork* work_;
  std::vector<bool> is_of_ring_;  // [variable]
  std::uint64_t n_tokens_ = 0;
  std::vector<std::vector<std::uint32_t>> calls_of_;         // [variable] those that name it
  std::vector<int> gathered_from_;                           // [variable] what an all_gather puts together there; -1
  std::vector<std::vector<Actor>> actors_of_;                // [role]
  std::vector<std::vector<std::uint64_t>> values_, before_;  // [variable][actor]; when the iteration began
  std::vector<std::vector<State>> states_;                   // [variable][actor]
  std::vector<std::uint64_t> sums_;                          // [variable] of what the ranks made in this iteration
  std::vector<const Program::Learns*> learnt_;               // [variable] of weights
  std::vector<bool> unsummed_;                               // [variable] a gradient that the ranks do not sum
  // [variable][actor] what each made in this iteration, and how often; for neighbors and groups
  std::vector<std::vector<std::uint64_t>> own_;
  std::vector<std::vector<int>> times_;
  std::vector<std::vector<Parts>> parts_;  // [variable][actor] of all_to_alls; empty: the variable is in none
};

}  // namespace

void check_contributions(const Program& program, const Order& order, WatchedWork* work) {
  Contributions(program, work).go(order);
}

}  // namespace ringsim::program_detail
