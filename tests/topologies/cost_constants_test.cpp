// The constants of NCCL's kernels: their names, and a file that changes some.
#include "topologies/nccl/cost_constants.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "tests/support/complaint.hpp"

namespace cost_constants_test {

using namespace ringsim::nccl;

namespace {

std::map<std::string, double> by_name(CostConstants costs) {
  std::map<std::string, double> out;
  for_each_constant(costs, [&](const std::string& name, double& value) {
    CAPTURE(name);
    CHECK(out.emplace(name, value).second);  // no name twice
  });
  return out;
}

std::string complaint(const char* text) {
  return ringsim::test::complaint([&] { read_costs(text, "c.json"); });
}

}  // namespace

TEST_CASE("every constant has a name of its own, and is in one line of the table") {
  std::map<std::string, int> lines;
  for (const CostLine& line : cost_table())
    for (const auto& [name, value] : line.constants) ++lines[name];
  const auto constants = by_name(fitted_costs());
  CHECK(constants.size() == lines.size());
  for (const auto& each : constants) {
    const std::string& name = each.first;
    CAPTURE(name);
    CHECK(lines[name] == 1);
  }
  // Doubles, and nothing else: a member that for_each_constant() forgets could not be changed, nor be listed.
  CHECK(constants.size() == sizeof(CostConstants) / sizeof(double));
}

TEST_CASE("a file changes the constants that it names, and no other") {
  const auto changed =
      by_name(read_costs(R"({"hopper.launch": 5.1, "volta.step.ll.full": 0, "width.ll": 4096})", "c.json"));
  for (const auto& each : by_name(fitted_costs())) {
    const std::string& name = each.first;
    CAPTURE(name);
    CHECK(changed.at(name) == (name == "hopper.launch"        ? 5.1
                               : name == "volta.step.ll.full" ? 0
                               : name == "width.ll"           ? 4096
                                                              : each.second));
  }
  CHECK(by_name(read_costs("{}", "c.json")) == by_name(fitted_costs()));
}

TEST_CASE("what cannot be a constant is refused at its place") {
  CHECK(complaint(R"({"hoper.launch": 1})") ==
        "c.json: /hoper.launch: expected the name of a constant, found an unknown name\n  hint: did you mean "
        "\"hopper.launch\"?");
  CHECK(complaint(R"({"hopper.launch": "1 us"})")
            .starts_with("c.json: /hopper.launch: expected a number, found \"1 us\""));
  CHECK(complaint(R"({"hopper.launch": -1})").starts_with("c.json: /hopper.launch: expected 0 to 1e12, found -1"));
  CHECK(complaint(R"({"width.ll": 0})").starts_with("c.json: /width.ll: expected above 0 to 1e12, found 0"));
  CHECK(complaint(R"({"hopper.nvlink.simple": 0})").starts_with("c.json: /hopper.nvlink.simple: expected above 0"));
  CHECK(complaint("[1]").starts_with("c.json: expected an object of constants, found a list"));
}

}  // namespace cost_constants_test
