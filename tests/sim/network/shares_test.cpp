// Max-min fair shares by themselves: no links, no time, no events.
#include "sim/network/shares.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/draw.hpp"

namespace shares_test {

using namespace ringsim;
using test::Draw;

namespace {

struct System {
  struct Route {
    std::vector<Shares::Wanted> uses;
    std::optional<double> cap;
  };
  std::vector<double> capacities;
  std::vector<Route> routes;
};

/// What flows get, [flow], each on a route: progressive filling, worked out from nothing (Bertsekas & Gallager, Data
/// Networks, 2nd ed., 6.5.2). Raise all rates alike until a resource is full or a cap is reached; freeze; go on.
std::vector<long double> naive_rates(const System& system, const std::vector<std::size_t>& flows) {
  std::vector<long double> rates(flows.size(), -1);
  while (std::any_of(rates.begin(), rates.end(), [](long double rate) { return rate < 0; })) {
    const auto share = [&](std::size_t resource) {
      long double room = system.capacities[resource], open = 0;
      for (std::size_t f = 0; f < flows.size(); ++f)
        for (const Shares::Wanted& use : system.routes[flows[f]].uses)
          if (use.resource == resource) (rates[f] < 0 ? open : room) -= (rates[f] < 0 ? -1 : rates[f]) * use.weight;
      return open > 0 ? room / open : std::numeric_limits<long double>::infinity();
    };
    long double level = std::numeric_limits<long double>::infinity();
    std::vector<long double> shares;
    for (std::size_t r = 0; r < system.capacities.size(); ++r) shares.push_back(share(r));
    for (const long double each : shares) level = std::min(level, each);
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (const auto cap = system.routes[flows[f]].cap; rates[f] < 0 && cap) level = std::min<long double>(level, *cap);
    std::vector<std::size_t> held;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const System::Route& route = system.routes[flows[f]];
      const bool is_held = (route.cap && *route.cap <= level * (1 + 1e-15L)) ||
                           std::any_of(route.uses.begin(), route.uses.end(), [&](const Shares::Wanted& use) {
                             return shares[use.resource] <= level * (1 + 1e-15L);
                           });
      if (rates[f] < 0 && is_held) held.push_back(f);
    }
    REQUIRE(!held.empty());
    for (const std::size_t f : held) rates[f] = level;
  }
  return rates;
}

/// A system whose flows come and go.
struct Running {
  explicit Running(System s, int copies = 1) : system(std::move(s)), shares(copies) {
    const bool any_cap = std::any_of(system.routes.begin(), system.routes.end(),
                                     [](const auto& route) { return route.cap.has_value(); });
    for (const System::Route& route : system.routes) {
      const Shares::Route number = shares.add_route(route.uses);
      // Resources beyond those that are shared stand for caps.
      if (any_cap)
        shares.set_cap(
            number, route.cap ? Shares::Cap{*route.cap, {static_cast<std::uint32_t>(system.capacities.size()) + number}}
                              : Shares::Cap{});
    }
    std::vector<double> all = system.capacities;
    all.resize(all.size() + system.routes.size(), std::numeric_limits<double>::infinity());
    shares.make_resources(all);
  }

  Shares::Flow enter(std::size_t route) {
    const auto flow = static_cast<Shares::Flow>(routes.size());
    routes.push_back(route);
    is_there.push_back(true);
    shares.make(flow, static_cast<Shares::Route>(route));
    shares.enter(flow);
    fresh.push_back(flow);
    return flow;
  }
  void leave(Shares::Flow flow) {
    shares.leave(flow);
    shares.set_no_rate(flow, -1);
    is_there[flow] = false;
    std::erase(fresh, flow);
  }
  void set_capacity(std::uint32_t resource, double capacity) {
    system.capacities[resource] = capacity;
    shares.set_capacity(resource, capacity);
    for (Shares::Flow flow = 0; flow < routes.size(); ++flow) {
      const auto& uses = system.routes[routes[flow]].uses;
      if (is_there[flow] &&
          std::any_of(uses.begin(), uses.end(), [&](const auto& use) { return use.resource == resource; }))
        fresh.push_back(flow);
    }
  }
  void solve() {
    shares.begin();
    for (const Shares::Flow flow : std::exchange(fresh, {})) shares.add_new(flow);
    if (!shares.solve()) return;
    for (const Shares::Flow flow : shares.solved()) {
      const auto [rate, limiter] = shares.decision(flow);
      shares.take(flow, rate, limiter);
    }
    shares.check_rates();
  }
  /// The largest relative difference from the naive rates.
  double worst() const {
    std::vector<std::size_t> there;
    std::vector<Shares::Flow> numbers;
    for (Shares::Flow flow = 0; flow < routes.size(); ++flow) {
      if (!is_there[flow]) continue;
      there.push_back(routes[flow]);
      numbers.push_back(flow);
    }
    const std::vector<long double> expected = naive_rates(system, there);
    double worst = 0;
    for (std::size_t i = 0; i < there.size(); ++i)
      worst = std::max(worst, std::abs(shares.rate(numbers[i]) / static_cast<double>(expected[i]) - 1));
    return worst;
  }
  double rate(Shares::Flow flow) const { return shares.rate(flow); }

  System system;
  Shares shares;
  std::vector<std::size_t> routes;  // [flow]
  std::vector<bool> is_there;       // [flow]
  std::vector<Shares::Flow> fresh;
};

std::size_t below(Draw& draw, std::size_t n) {
  return static_cast<std::size_t>(draw.number(0, static_cast<std::int64_t>(n) - 1));
}

System random_system(Draw& draw) {
  System system;
  const std::size_t n_resources = 1 + below(draw, 8);
  const bool are_equal = draw.once_in(3);
  for (std::size_t r = 0; r < n_resources; ++r)
    system.capacities.push_back(are_equal         ? 1e9
                                : draw.once_in(2) ? 1e9 * static_cast<double>(1 + below(draw, 4))
                                                  : 1e7 + static_cast<double>(below(draw, 3'000'000'000)));
  const bool have_caps = draw.once_in(3);
  const std::size_t n_routes = 1 + below(draw, 10);
  for (std::size_t i = 0; i < n_routes; ++i) {
    System::Route route;
    std::vector<std::uint32_t> all(n_resources);
    std::iota(all.begin(), all.end(), 0U);
    draw.shuffle(all);
    all.resize(1 + below(draw, std::min<std::size_t>(4, n_resources)));
    for (const std::uint32_t r : all)
      route.uses.push_back({r, draw.once_in(3) ? draw.one_of(std::array{0.25, 1.0 / 3, 0.5, 1.2, 2.0}) : 1.0});
    if (have_caps && draw.once_in(2)) route.cap = 1e8 + static_cast<double>(below(draw, 1'000'000'000));
    system.routes.push_back(route);
  }
  return system;
}

}  // namespace

TEST_CASE("on 5000 random systems flows that come and go have the naive solver's rates") {
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    Running running(random_system(draw));
    std::vector<Shares::Flow> there;
    for (int change = 0; change < 12; ++change) {
      const std::size_t n = 1 + below(draw, 3);  // at one moment
      for (std::size_t i = 0; i < n; ++i) {
        if (!there.empty() && draw.once_in(3)) {
          const std::size_t which = below(draw, there.size());
          running.leave(there[which]);
          there.erase(there.begin() + static_cast<std::ptrdiff_t>(which));
        } else if (draw.once_in(6)) {
          const auto resource = static_cast<std::uint32_t>(below(draw, running.system.capacities.size()));
          running.set_capacity(resource, running.system.capacities[resource] / static_cast<double>(1 + below(draw, 5)));
        } else {
          there.push_back(running.enter(below(draw, running.system.routes.size())));
        }
      }
      running.solve();
      // What is equal within the tolerance is left alone: some changes add up.
      CHECK(running.worst() <= 5 * Shares::tolerance);
    }
  }
}

TEST_CASE("flows on one resource have equal shares of it, by their weights") {
  Running running({.capacities = {12}, .routes = {{{{0, 1}}, {}}, {{{0, 2}}, {}}}});
  const Shares::Flow a = running.enter(0), b = running.enter(1);
  running.solve();
  CHECK(running.rate(a) == 4);  // 4 + 2 x 4
  CHECK(running.rate(b) == 4);
  CHECK(running.shares.limiter(a) == ResourceId{0});
  running.leave(b);
  running.solve();
  CHECK(running.rate(a) == 12);
}

TEST_CASE("what a flow cannot use because of its cap goes to the others") {
  Running running({.capacities = {10}, .routes = {{{{0, 1}}, 2.0}, {{{0, 1}}, {}}}});
  const Shares::Flow capped = running.enter(0), other = running.enter(1);
  running.solve();
  CHECK(running.rate(capped) == 2);
  CHECK(running.shares.limiter(capped) == ResourceId{1});  // the resource that stands for its cap
  CHECK(running.rate(other) == 8);
  CHECK(running.shares.limiter(other) == ResourceId{0});
}

TEST_CASE("a change touches only the flows whose shares it may change") {
  // Twenty resources with two flows each, and one flow more on the first.
  System system;
  for (std::uint32_t r = 0; r < 20; ++r) {
    system.capacities.push_back(6);
    system.routes.push_back({{{r, 1}}, {}});
  }
  Running running(system);
  for (int twice = 0; twice < 2; ++twice)
    for (std::size_t route = 0; route < 20; ++route) running.enter(route);
  running.solve();
  const std::int64_t before = running.shares.flows_solved();
  REQUIRE(before == 40);
  const Shares::Flow more = running.enter(0);
  running.solve();
  CHECK(running.rate(more) == 2);
  CHECK(running.shares.flows_solved() - before == 3);
}

TEST_CASE("of resources that are equally full the first on a route limits it, whatever their numbers") {
  for (const bool backwards : {false, true}) {
    const std::uint32_t first = backwards ? 1 : 0, second = 1 - first;
    Running running({.capacities = {10, 10}, .routes = {{{{first, 1}, {second, 1}}, {}}}});
    const Shares::Flow a = running.enter(0), b = running.enter(0);
    running.solve();
    CHECK(running.rate(a) == 5);
    CHECK(running.shares.limiter(a) == ResourceId{first});
    CHECK(running.shares.limiter(b) == ResourceId{first});
  }
}

TEST_CASE("on 1000 random systems the order of resources and flows decides neither rates nor limiters") {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    const System system = random_system(draw);
    const std::size_t n = system.capacities.size();
    std::vector<std::uint32_t> renamed(n);
    std::iota(renamed.begin(), renamed.end(), 0U);
    draw.shuffle(renamed);
    System other = system;
    for (std::size_t r = 0; r < n; ++r) other.capacities[renamed[r]] = system.capacities[r];
    for (System::Route& route : other.routes)
      for (Shares::Wanted& use : route.uses) use.resource = renamed[use.resource];
    std::vector<std::size_t> flows;
    for (int f = 0; f < 12; ++f) flows.push_back(below(draw, system.routes.size()));
    Running one(system), two(other);
    std::vector<Shares::Flow> order(flows.size()), number(flows.size());
    std::iota(order.begin(), order.end(), 0U);
    for (const std::size_t route : flows) one.enter(route);
    draw.shuffle(order);
    for (const Shares::Flow flow : order) number[flow] = two.enter(flows[flow]);
    one.solve();
    two.solve();
    for (Shares::Flow flow = 0; flow < flows.size(); ++flow) {
      CHECK(two.rate(number[flow]) == doctest::Approx(one.rate(flow)).epsilon(1e-12));
      const std::uint32_t limiter = one.shares.limiter(flow).value;
      CHECK(two.shares.limiter(number[flow]).value == (limiter < n ? renamed[limiter] : limiter));
    }
  }
}

TEST_CASE("a flow that stands for copies has the share of one of them, bit for bit") {
  // The first kind has 0.3 / 3 each of resource 1, so that 1 - 3 x 0.1 of resource 0 is left: 0.7000000000000001 if it
  // is subtracted one by one, 0.7 if at once.
  const System system{.capacities = {1, 0.3}, .routes = {{{{0, 1}, {1, 1}}, {}}, {{{0, 1}}, {}}}};
  Running copied(system, 3), whole(system);
  const Shares::Flow a = copied.enter(0), b = copied.enter(1);
  std::vector<Shares::Flow> all_a, all_b;
  for (int copy = 0; copy < 3; ++copy) all_a.push_back(whole.enter(0));
  for (int copy = 0; copy < 3; ++copy) all_b.push_back(whole.enter(1));
  copied.solve();
  whole.solve();
  for (int copy = 0; copy < 3; ++copy) {
    CHECK(copied.rate(a) == whole.rate(all_a[static_cast<std::size_t>(copy)]));
    CHECK(copied.rate(b) == whole.rate(all_b[static_cast<std::size_t>(copy)]));
  }
  CHECK(copied.shares.is_exact(a));
}

TEST_CASE("more different weights than a route can name are refused, with what to do") {
  Shares shares;
  const auto many = [&] {
    for (int i = 0; i < 70'000; ++i) shares.weight_number(2 + i);
  };
  CHECK_THROWS_WITH_AS(many(), doctest::Contains("at most 65536 different shares"), InputError);
}

}  // namespace shares_test
