// Errors that only the built topology can tell, reported as the scenario file's mistakes. For scenarios/predict only.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

/// Throws InputError at `pointer` if the topology has no gpu of that name.
NodeId gpu_named(const Topology& topology, const std::string& name, const std::string& pointer);

/// Runs `part`; an InputError becomes an UnservedError of the job's algorithm: the algorithm cannot do what is asked,
/// or the machine lacks something it needs.
template <class Part>
auto by_the_algorithm(const Job& job, Part part) {
  try {
    return part();
  } catch (const ScheduleError&) {
    throw;  // the schedule is wrong, not the question
  } catch (const InputError& error) {
    throw UnservedError(job.algorithm->name, error.where(), error.message(), error.hint());
  }
}

/// Runs `part`; its InputErrors name the scenario's file and the place `pointer` in it.
template <class Part>
auto blaming(const Scenario& scenario, const std::string& pointer, Part part) {
  try {
    return part();
  } catch (const ScheduleError&) {
    throw;  // names the schedule
  } catch (const UnservedError& error) {
    throw UnservedError(error.algorithm(), scenario.file + ": " + pointer + error.where(), error.message(),
                        error.hint());
  } catch (const InputError& error) {
    throw InputError(scenario.file + ": " + pointer + error.where(), error.message(), error.hint());
  }
}

}  // namespace ringsim
