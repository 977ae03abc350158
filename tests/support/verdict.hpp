// Tests that ask the checker for its verdict.
#pragma once

#include <string>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/program/program.hpp"
#include "tests/support/written_schedule.hpp"

namespace ringsim {

/// The whole text with which the checker refuses, or "accepted".
inline std::string verdict(const Schedule& schedule, const CheckOptions& options = {}) {
  try {
    check(schedule, options);
    return "accepted";
  } catch (const ScheduleError& error) {
    return error.what();
  }
}
inline std::string verdict(const WrittenSchedule& table, const CheckOptions& options = {}) {
  return verdict(table.schedule(), options);
}

/// Of a program, without the place.
inline std::string verdict_of(Program program) {
  try {
    check(std::move(program));
    return "accepted";
  } catch (const ScheduleError& error) {
    return error.message();
  }
}

/// The same schedule, which claims no symmetry: all ranks are followed.
inline Schedule without_symmetry(Schedule schedule) {
  schedule.symmetry = {};
  return schedule;
}

}  // namespace ringsim
