// Phases: what algorithms say of their steps, and how the time of runs divides over them.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/all_to_all.hpp"
#include "algorithms/catalog.hpp"
#include "algorithms/composed/buffers.hpp"
#include "algorithms/exchanges/bruck.hpp"
#include "sim/run/phase_account.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/naive/naive_phases.hpp"
#include "tests/support/tiny.hpp"

namespace phase_account_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

struct Accounted {
  Timeline line;
  std::vector<PhaseTime> phases;
};

Accounted accounted(const Topology& net, const Schedule& schedule, RunOptions options = {}) {
  PhaseAccount account(schedule);
  options.record_path = true;
  options.messages_may_fold = true;
  options.on_message = [&](const Span& message) { account.on_message(message); };
  Accounted done{.line = run(net, check(schedule), options), .phases = {}};
  done.phases = account.finish(done.line);
  return done;
}

Schedule made(const char* algorithm, const CollectiveRequest& request, const Arguments& arguments = {}) {
  return make_schedule(*find_algorithm(algorithm), request, arguments);
}

std::vector<std::string> names_of_phases(const std::vector<PhaseTime>& phases) {
  std::vector<std::string> names;
  for (const PhaseTime& phase : phases) names.push_back(phase.name);
  return names;
}

using Names = std::vector<std::string>;

bool same(const PhaseUse& a, const PhaseUse& b) {
  return std::tie(a.first_start, a.last_end, a.critical, a.messages, a.bytes) ==
         std::tie(b.first_start, b.last_end, b.critical, b.messages, b.bytes);
}

const LinkSpec port{.bandwidth = 1_GBps, .latency = 1us};

}  // namespace

TEST_CASE("on a star each half of a ring all-reduce takes half of the time, and each step of it as long") {
  // 4 ranks, 4 MiB: a step moves 1 MiB at 1 GB/s, 1048.576 us, over a path of 2 us.
  constexpr Picoseconds step = 1'048'576'000_ps + 2'000'000_ps;
  const Accounted done = accounted(star(4, port), ring_all_reduce(4, 4_MiB));
  REQUIRE(names_of_phases(done.phases) == Names{"reduce_scatter", "all_gather"});
  for (std::size_t p = 0; p < 2; ++p) {
    const PhaseTime& phase = done.phases[p];
    CHECK(phase.whole.critical == 3 * step);
    CHECK(phase.whole.critical * 2 == done.line.duration());
    CHECK(phase.whole.first_start == at(static_cast<int>(p) * 3 * step));
    CHECK(phase.whole.last_end == at((static_cast<int>(p) + 1) * 3 * step));
    CHECK(phase.whole.messages == 12);  // 4 ranks, 3 steps
    CHECK(phase.whole.bytes == 12_MiB);
    REQUIRE(phase.steps.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(phase.steps[i].critical == step);
      CHECK(phase.steps[i].first_start == at(static_cast<int>(3 * p + i) * step));
      CHECK(phase.steps[i].messages == 4);
    }
  }
}

TEST_CASE("two levels have their phases in order, those between nodes apart from those in nodes") {
  const auto phases = [](const char* outer) {
    Arguments arguments;
    arguments.numbers["group"] = 4;
    arguments.texts["outer"] = outer;
    const CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = 12, .bytes = 12_MiB};
    return accounted(star(12, port), made("hierarchical", request, arguments)).phases;
  };
  const std::vector<PhaseTime> rings = phases("ring");
  CHECK(names_of_phases(rings) == Names{"reduce_scatter in nodes", "reduce_scatter between nodes",
                                        "all_gather between nodes", "all_gather in nodes"});
  // On a star all ranks go in step: what is after a phase begins when it ends.
  for (std::size_t p = 1; p < rings.size(); ++p) CHECK(rings[p].whole.first_start == rings[p - 1].whole.last_end);
  // 3 steps of 3 MiB in nodes of 4; 2 steps of 1 MiB among 3 nodes; each over a path of 2 us.
  CHECK(rings[0].whole.critical == 3 * (3'145'728'000_ps + 2us));
  CHECK(rings[1].whole.critical == 2 * (1'048'576'000_ps + 2us));
  // 3 nodes are no power of two.
  CHECK(names_of_phases(phases("halving_doubling")) == Names{"reduce_scatter in nodes", "fold between nodes",
                                                             "reduce_scatter between nodes", "all_gather between nodes",
                                                             "unfold between nodes", "all_gather in nodes"});
}

TEST_CASE("phases of other algorithms: by dimension, up and down, pushed and pulled, copied") {
  const auto names_in = [](const Schedule& schedule) {
    return names_of_phases(accounted(star(schedule.actors, port), schedule,
                                     {.placement =
                                          [&] {
                                            std::vector<NodeId> all;
                                            for (int a = 0; a < schedule.actors; ++a)
                                              all.push_back(NodeId{static_cast<std::uint32_t>(a)});
                                            return all;
                                          }()})
                               .phases);
  };
  CHECK(names_in(torus_all_reduce({2, 1, 3}, 6_KiB)) ==
        Names{"reduce_scatter along dimension 1", "reduce_scatter along dimension 3", "all_gather along dimension 3",
              "all_gather along dimension 1"});
  CHECK(names_in(binomial_all_reduce(6, 6_KiB, 2)) == Names{"reduce up", "broadcast down"});
  CHECK(names_in(double_tree_all_reduce(6, 6_KiB, 3)) == Names{"reduce up", "broadcast down"});
  CHECK(names_in(sharded_parameter_server(4, 6_KiB, 2)) == Names{"push", "pull"});
  CHECK(names_in(halving_doubling(6, 6_KiB, Fold::rabenseifner)) ==
        Names{"fold", "reduce_scatter", "all_gather", "unfold"});
  CHECK(names_in(halving_doubling(4, 6_KiB, Fold::rabenseifner)) == Names{"reduce_scatter", "all_gather"});
  CHECK(names_in(bruck_all_gather(6, 6_KiB)) == Names{"all_gather"});  // it declares none: its operation
}

TEST_CASE("a copy that comes first is a phase, where it takes time") {
  const Schedule schedule = out_of_place(ring_all_gather(4, 4_MiB));
  const Topology net = star(4, port);
  CHECK(names_of_phases(accounted(net, schedule).phases) == Names{"all_gather"});
  const Topology rated = net.with_rates([](NodeId) { return DeviceRates{.copy = 10_GBps}; }, 4);
  const std::vector<PhaseTime> phases = accounted(rated, schedule).phases;
  REQUIRE(names_of_phases(phases) == Names{"copy in", "all_gather"});
  CHECK(phases[0].whole.critical == 104'857'600_ps);  // its share of 1 MiB at 10 GB/s
  CHECK(phases[0].whole.messages == 0);
}

TEST_CASE("rounds, channels and slices of a step count together") {
  CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = 4, .bytes = 8_MiB};
  request.channels = 2;
  request.chunk = 1_MiB;  // 4 rounds
  Arguments sliced;
  sliced.numbers["slices"] = 2;
  const std::vector<PhaseTime> phases = accounted(star(4, port), made("ring", request, sliced)).phases;
  REQUIRE(names_of_phases(phases) == Names{"reduce_scatter", "all_gather"});
  for (const PhaseTime& phase : phases) {
    REQUIRE(phase.steps.size() == 3);
    for (const PhaseUse& step : phase.steps) CHECK(step.messages == 4 * 2 * 4 * 2);  // ranks, channels, rounds, slices
  }
}

TEST_CASE("a folded run has the phases of the whole one") {
  const Topology net = star(8, port);
  for (const auto& [algorithm, channels] : {std::pair{"ring", 1}, {"ring", 2}, {"halving_doubling", 1}}) {
    CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = 8, .bytes = 8_MiB};
    request.channels = channels;
    const Schedule schedule = made(algorithm, request);
    const Accounted folded = accounted(net, schedule, {.fold_from = 0}), whole = accounted(net, schedule);
    REQUIRE(folded.line.folded.has_value());
    REQUIRE(!whole.line.folded.has_value());
    const auto a = as_map(folded.phases), b = as_map(whole.phases);
    REQUIRE(a.size() == b.size());
    for (const auto& [key, use] : a) CHECK(same(use, b.at(key)));
  }
}

TEST_CASE("every algorithm's account is that of its whole timeline, and its parts sum to the time") {
  for (const int ranks : {1, 2, 3, 4, 6, 8}) {
    for (const Schedule& schedule : every_algorithm(ranks, 100'003_B)) {
      CAPTURE(schedule.algorithm);
      CAPTURE(ranks);
      const bool in_switch = !schedule.tree.empty();
      const Topology hub = star(schedule.actors, port), line = build(Ring{.ranks = schedule.actors, .link = port});
      for (const Topology* net : {&hub, &line}) {
        if (in_switch || schedule.actors < 2) continue;
        for (const char* protocol : {"none", "simple"}) {
          RunOptions options{.plans = {{.protocol = find_protocol(protocol)}}, .record_spans = true};
          for (int a = 0; a < schedule.actors; ++a) options.placement.push_back(NodeId{static_cast<std::uint32_t>(a)});
          const Accounted done = accounted(*net, schedule, options);
          Picoseconds sum{0};
          for (const PhaseTime& phase : done.phases) {
            Picoseconds steps{0};
            for (const PhaseUse& step : phase.steps) steps += step.critical;
            REQUIRE(steps == phase.whole.critical);
            sum += steps;
          }
          REQUIRE(sum == done.line.duration());
          const auto found = as_map(done.phases), naive = naive_phases(schedule, done.line);
          REQUIRE(found.size() == naive.size());
          for (const auto& [key, use] : naive) REQUIRE(same(use, found.at(key)));
        }
      }
    }
  }
}

namespace {

/// [connection] the phases of its sends, or of its receives, in their order.
using Ends = std::map<std::tuple<Actor, Actor, int>, std::vector<int>>;

void check_phase_of_step(const Schedule& schedule, Actor actor, Lane lane, int i, Ends& sends, Ends& receives) {
  Step step;
  schedule.step(actor, lane, i, step);
  const PhaseStep at = schedule.phases.at(actor, lane, i);
  const std::vector<std::string> names = schedule.phase_names();
  REQUIRE(at.phase >= 0);
  REQUIRE(static_cast<std::size_t>(at.phase) < names.size());
  const std::string& name = names[static_cast<std::size_t>(at.phase)];
  const auto begins = [&](const char* word) { return name.starts_with(word); };
  for (const Op& op : step.ops) {
    if (op.what == Do::send) sends[{actor, op.peer, op.channel}].push_back(at.phase);
    if (op.what != Do::receive && op.what != Do::receive_add) continue;
    receives[{op.peer, actor, op.channel}].push_back(at.phase);
    if (begins("reduce") || begins("push")) REQUIRE(op.what == Do::receive_add);
    if (begins("all_gather") || begins("broadcast") || begins("unfold") || begins("pull"))
      REQUIRE(op.what == Do::receive);
  }
}

}  // namespace

TEST_CASE("both ends of a message are in one phase; sums are made in those that reduce, and in no others") {
  for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 12, 13})
    for (const Schedule& schedule : every_algorithm(ranks, 100'003_B)) {
      CAPTURE(schedule.algorithm);
      CAPTURE(to_string(schedule.collective.op));
      CAPTURE(ranks);
      Ends sends, receives;
      for (Actor actor = 0; actor < schedule.actors; ++actor)
        for (Lane lane = 0; lane < schedule.lanes; ++lane)
          for (int i = 0; i < schedule.n_steps(actor, lane); ++i)
            check_phase_of_step(schedule, actor, lane, i, sends, receives);
      REQUIRE(sends == receives);
    }
}

TEST_CASE("the copy that an all-to-all in place begins with is one phase with that of the algorithm") {
  const Schedule plain = bruck_all_to_all(5, 1000_B), made = in_place(bruck_all_to_all(5, 1000_B));
  CHECK(made.phase_names() == plain.phase_names());
  const PhaseStep first{0, 0}, second{0, 1}, exchange{1, 0};
  CHECK(made.phases.at(0, 0, 0) == first);
  CHECK(made.phases.at(0, 0, 1) == second);
  CHECK(made.phases.at(0, 0, 2) == exchange);
  // An algorithm without such a copy has one more phase.
  CHECK(in_place(pairwise_all_to_all(5, 1000_B)).phase_names() == std::vector<std::string>{"copy in", "all_to_all"});
}

}  // namespace phase_account_test
