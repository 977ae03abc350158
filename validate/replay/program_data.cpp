#include "validate/replay/program_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "sim/base/error.hpp"
#include "validate/replay/contribution.hpp"

namespace ringsim::replay {

namespace {

using As = Program::Touch::As;

// Ranks times iterations. Beyond it the numbers that a rank may draw are few, and wrong ones may be equal to right
// ones.
constexpr std::int64_t most_gradients = 1 << 18;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

bool sums(const Program::Call& call) {
  const CollectiveOp op = call.schedule.schedule().collective.op;
  return op == CollectiveOp::all_reduce || op == CollectiveOp::reduce;
}

// True if chunk c of `data` is chunk c of what each contributes and gets.
bool is_in_place(const Schedule& schedule) {
  const Collective& collective = schedule.collective;
  const Actor one = collective.root;  // has what it gives and gets what there is
  for (int i = 0; i < schedule.layout[0].n_chunks(); ++i) {
    const auto c = static_cast<std::uint32_t>(i);
    const Content before = collective.before(one, Buffer::data, c), after = collective.after(one, Buffer::data, c);
    for (const Content& content : {before, after})
      if (content.who == Content::Who::nothing || content.chunk != c) return false;
  }
  return true;
}

[[noreturn]] void refuse_data(const Program& program, const std::string& found) {
  throw InputError("",
                   fmt::format("expected gradients that are summed over all ranks and added to weights, found {} in {}",
                               found, program.name),
                   "a replay can check those of ddp and of a parameter server");
}

/// [call] that sums gradients: the one that broadcasts the weights which they are added to; -1: every rank keeps them.
std::map<int, int> weights_calls(const Program& program) {
  std::vector<int> weights(program.variables.size(), -1), call_of(program.variables.size(), -1);
  for (const Program::Learns& learns : program.learns) weights[index(learns.gradient)] = learns.weights;
  for (std::size_t c = 0; c < program.calls.size(); ++c)
    for (const int variable : program.calls[c].variables) call_of[index(variable)] = static_cast<int>(c);
  std::map<int, int> found;
  for (std::size_t c = 0; c < program.calls.size(); ++c) {
    const Program::Call& call = program.calls[c];
    if (!sums(call) || call.variables.empty()) continue;
    std::vector<int> its;
    for (const int gradient : call.variables) its.push_back(weights[index(gradient)]);
    if (std::find(its.begin(), its.end(), -1) != its.end()) refuse_data(program, call.name + " of no gradients");
    const int by = call_of[index(its.front())];
    if (by >= 0 && program.calls[index(by)].variables != its)
      refuse_data(program, call.name + " and weights that travel in other parts");
    found[static_cast<int>(c)] = by;
  }
  return found;
}

}  // namespace

void require_replayable(const Program& program) {
  for (const Program::Learns& learns : program.learns)
    if (learns.how == Program::Learns::How::group_mean)
      refuse_data(program, "weights that not all ranks have");
    else if (learns.how != Program::Learns::How::gradients_summed)
      refuse_data(program, "weights that are averaged");
  for (const Program::Call& call : program.calls) {
    const Schedule& schedule = call.schedule.schedule();
    if (!sums(call) && schedule.collective.op != CollectiveOp::broadcast)
      refuse_data(program, std::string(to_string(schedule.collective.op)));
    if (!is_in_place(schedule)) refuse_data(program, call.name + " out of place");
  }
  for (const Program::Role& role : program.roles)
    for (const std::vector<Program::Task>& tasks : role.streams)
      for (const Program::Task& task : tasks)
        for (const Program::Touch& touch : task.touches)
          if (touch.as == As::divide) refuse_data(program, "a division");
  for (const auto& [call, by] : weights_calls(program)) {
    if (by < 0) continue;
    const auto bytes = [&](int which) { return program.calls[index(which)].schedule.schedule().layout[0].total(); };
    if (bytes(call) != bytes(by)) refuse_data(program, "weights of another size than their gradients");
  }
  const std::int64_t n = std::int64_t{program.ranks} * program.iterations;
  if (n > most_gradients)
    throw InputError("", fmt::format("expected at most {} ranks times iterations, found {}", most_gradients, n),
                     "above that, float32 cannot represent the sums exactly: use fewer steps");
}

ProgramData::ProgramData(const LoweredProgram& lowered, Actor actor, ActorMemory& memory)
    : lowered_(lowered), actor_(actor), memory_(memory) {
  of_variable_.assign(program().variables.size(), -1);
  of_call_.assign(program().calls.size(), -1);
  blanks_.resize(program().calls.size());
  for (const auto& [call, by] : weights_calls(program())) add_numbers(call, by);
  for (std::size_t call = 0; call < blanks_.size(); ++call) add_blanks(static_cast<int>(call));
  for (const std::vector<Program::Task>& tasks : program().role(actor).streams)
    n_tasks_ += static_cast<int>(tasks.size());
}

int ProgramData::member_of(int call) const {
  const Program::Call& its = program().calls[index(call)];
  if (its.members.empty()) return actor_ < its.schedule.schedule().actors ? actor_ : -1;
  const auto found = std::find(its.members.begin(), its.members.end(), actor_);
  return found == its.members.end() ? -1 : static_cast<int>(found - its.members.begin());
}

// Chunks of a call lie behind those of the calls before it (sim/program/lower.hpp).
Region ProgramData::region_of(int call, Buffer buffer) const {
  const auto n_chunks = [&](int which) {
    return static_cast<std::uint32_t>(
        program().calls[index(which)].schedule.schedule().layout[static_cast<std::size_t>(buffer)].n_chunks());
  };
  Region region{.buffer = buffer, .first = 0, .count = n_chunks(call)};
  for (int before = 0; before < call; ++before) region.first += n_chunks(before);
  return region;
}

void ProgramData::add_numbers(int call, int weights_call) {
  const auto n = static_cast<int>(numbers_.size());
  of_call_[index(call)] = n;
  for (const int variable : program().calls[index(call)].variables) of_variable_[index(variable)] = n;
  if (weights_call >= 0) of_call_[index(weights_call)] = n;
  for (const Program::Learns& learns : program().learns)
    if (of_variable_[index(learns.gradient)] == n) of_variable_[index(learns.weights)] = n;

  Numbers numbers{.call = call, .weights_call = weights_call};
  const Schedule& schedule = program().calls[index(call)].schedule.schedule();
  const int member = member_of(call);
  const bool is_rank = member >= 0 && member < schedule.collective.ranks;
  numbers.variables = program().calls[index(call)].variables.size();
  numbers.makes = is_rank && actor_ < program().ranks;
  numbers.gets_sum =
      is_rank && (schedule.collective.op == CollectiveOp::all_reduce || member == schedule.collective.root);
  numbers.has_weights = is_rank;
  numbers.gradients = region_of(call, Buffer::data);
  if (weights_call >= 0) numbers.weights = region_of(weights_call, Buffer::data);
  if (is_rank) draw(numbers);
  numbers_.push_back(std::move(numbers));
}

void ProgramData::draw(Numbers& numbers) const {
  const int ranks = program().ranks, iterations = program().iterations;
  // At most 2^24 / (2 (ranks iterations + 1)) each: the weights, and twice as much per rank and iteration.
  const int share = 2 * (ranks * iterations + 1);
  const auto call = static_cast<std::uint32_t>(numbers.call);
  const auto shift_of = call + static_cast<std::uint32_t>(program().calls.size());  // no chunk is drawn from twice
  const std::size_t n = memory_.at(numbers.gradients).size();
  numbers.base.resize(n);
  numbers.base_sum.assign(n, 0);
  numbers.begin.resize(n);
  for (std::size_t e = 0; e < n; ++e) {
    const auto element = static_cast<std::int64_t>(e);
    for (Actor rank = 0; rank < ranks; ++rank) numbers.base_sum[e] += contribution(share, rank, call, element);
    numbers.base[e] = contribution(share, actor_, call, element);
    numbers.begin[e] = contribution(share, ranks, call, element);  // as of a rank more
  }
  float past = 0;
  for (int t = 0; t < iterations; ++t) {
    float sum = 0;
    for (Actor rank = 0; rank < ranks; ++rank) sum += contribution(share, rank, shift_of, t);
    numbers.shift.push_back(contribution(share, actor_, shift_of, t));
    numbers.shift_sum.push_back(sum);
    numbers.shift_past.push_back(past);
    past += sum;
  }
  numbers.shift_past.push_back(past);
}

void ProgramData::add_blanks(int call) {
  const Schedule& schedule = program().calls[index(call)].schedule.schedule();
  const int member = member_of(call);
  if (member < 0) return;
  const bool is_rank = member < schedule.collective.ranks;
  for (std::size_t b = 0; b < n_buffers; ++b) {
    const auto buffer = static_cast<Buffer>(b);
    const Region region = region_of(call, buffer);
    const bool gives = is_rank && (sums(program().calls[index(call)]) || member == schedule.collective.root);
    if (region.count == 0 || (gives && buffer == Buffer::data)) continue;
    const bool poison = is_rank && buffer != Buffer::scratch;
    blanks_[index(call)].push_back({region, poison ? std::numeric_limits<float>::quiet_NaN() : 0.0F});
  }
}

std::span<float> ProgramData::weights_of(Numbers& numbers) {
  return numbers.weights_call >= 0 ? memory_.at(numbers.weights) : std::span(numbers.kept);
}

void ProgramData::fill() {
  memory_.blank();
  for (Numbers& numbers : numbers_) {
    numbers.made = numbers.applied = 0;
    numbers.read = -1;
    if (!numbers.has_weights) continue;
    numbers.kept.resize(numbers.weights_call >= 0 ? 0 : numbers.begin.size());
    std::copy(numbers.begin.begin(), numbers.begin.end(), weights_of(numbers).begin());
  }
  left_.assign(index(program().iterations), n_tasks_);
  verdict_ = {};
}

void ProgramData::begins(Lane lane, int step) {
  const StepPlace place = lowered_.place_of(actor_, lane, step);
  if (!place.first) return;
  for (const Program::Touch& touch : lowered_.task_of(actor_, place).touches) {
    const int which = of_variable_[index(touch.variable)];
    if (which < 0) continue;
    Numbers& numbers = numbers_[index(which)];
    if (touch.as == As::read) read(numbers, place.iteration);
    // Clears all variables of the call at once.
    if (touch.as == As::clear && touch.variable == program().calls[index(numbers.call)].variables.front())
      std::ranges::fill(memory_.at(numbers.gradients), 0.0F);
  }
}

void ProgramData::ends(Lane lane, int step) {
  const StepPlace place = lowered_.place_of(actor_, lane, step);
  if (!place.first && !place.last) return;
  const Program::Task& task = lowered_.task_of(actor_, place);
  if (task.call >= 0 && place.first)  // it is launched
    for (const Blank& blank : blanks_[index(task.call)]) std::ranges::fill(memory_.at(blank.region), blank.value);
  if (!place.last) return;
  if (task.call >= 0) check_call(task.call, place.iteration);
  for (const Program::Touch& each : task.touches) touch(each, place.iteration);
  if (--left_[index(place.iteration)] == 0 && on_iteration) on_iteration(place.iteration);
}

void ProgramData::touch(const Program::Touch& touch, int iteration) {
  const int which = of_variable_[index(touch.variable)];
  if (which < 0) return;
  Numbers& numbers = numbers_[index(which)];
  if (touch.as == As::make && ++numbers.made == numbers.variables) {
    numbers.made = 0;
    ensure(numbers.makes, "only ranks make gradients");
    const std::span<float> gradients = memory_.at(numbers.gradients);
    const float shift = numbers.shift[index(iteration)];
    for (std::size_t e = 0; e < gradients.size(); ++e) gradients[e] = numbers.base[e] + shift;
  }
  if (touch.as == As::apply && ++numbers.applied == numbers.variables) {
    numbers.applied = 0;
    const std::span<const float> gradients = memory_.at(numbers.gradients);
    const std::span<float> weights = weights_of(numbers);
    for (std::size_t e = 0; e < weights.size(); ++e) weights[e] += gradients[e];
  }
}

void ProgramData::read(Numbers& numbers, int iteration) {
  if (std::exchange(numbers.read, iteration) == iteration) return;
  check_weights(numbers, iteration);
}

void ProgramData::check_call(int call, int iteration) {
  const int which = of_call_[index(call)];
  if (which < 0) return;
  Numbers& numbers = numbers_[index(which)];
  if (call == numbers.weights_call) return check_weights(numbers, iteration + 1);
  if (!numbers.gets_sum) return;
  compare(memory_.at(numbers.gradients), numbers.base_sum, 0, numbers.base_sum, numbers.shift_sum[index(iteration)],
          fmt::format("{} of iteration {}", program().calls[index(call)].name, iteration));
}

void ProgramData::check_weights(Numbers& numbers, int iterations) {
  if (!numbers.has_weights) return;
  compare(weights_of(numbers), numbers.begin, iterations, numbers.base_sum, numbers.shift_past[index(iterations)],
          fmt::format("weights of {} after {} iterations", program().calls[index(numbers.call)].name, iterations));
}

void ProgramData::compare(std::span<const float> found, std::span<const float> begin, int n,
                          std::span<const float> step, float shift, const std::string& what) {
  ensure(found.size() == begin.size(), "as many numbers are found as are expected");
  const auto times = static_cast<float>(n);
  const auto expected = [&](std::size_t e) { return begin[e] + times * step[e] + shift; };
  const auto is_wrong = [&](std::size_t e) {
    return std::bit_cast<std::uint32_t>(found[e]) != std::bit_cast<std::uint32_t>(expected(e));
  };
  std::int64_t wrong = 0;
  for (std::size_t e = 0; e < found.size(); ++e) wrong += is_wrong(e) ? 1 : 0;
  verdict_.checked += static_cast<std::int64_t>(found.size());
  verdict_.wrong += wrong;
  if (wrong == 0 || !verdict_.first.empty()) return;
  std::size_t e = 0;
  while (!is_wrong(e)) ++e;
  verdict_.first = fmt::format("{} {}: {}, element {}: expected {}, found {}",
                               actor_ < program().ranks ? "rank" : "helper", actor_, what, e, expected(e), found[e]);
}

ProgramVerdict ProgramData::check() {
  for (Numbers& numbers : numbers_) check_weights(numbers, program().iterations);
  return verdict_;
}

}  // namespace ringsim::replay
