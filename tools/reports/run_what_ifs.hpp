#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "tools/command_line/input.hpp"
#include "validate/analysis/what_if.hpp"

namespace ringsim::tools {

/// A point, and what its what-ifs need to run it again.
struct PointToChange {
  const ScenarioText& input;
  const std::vector<std::string>& set;  ///< what made it the only point of `input`
  const Scenario& scenario;
  const Result& result;
  int jobs = 0;  ///< what-ifs at a time; 0: one per core
};

/// Every what-if of the point, each run again: what its closed form does not account for, each class of links, the
/// user's own changes `own` (as for --set), other routing, and, if the class that holds gains little alone, it with
/// each other class, and the fewest classes that gain nearly as much as all. Shows progress; throws Stopped on Ctrl-C.
std::vector<WhatIf> run_what_ifs(const PointToChange& point, const std::vector<std::string>& own = {});

}  // namespace ringsim::tools
