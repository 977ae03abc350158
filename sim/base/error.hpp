// Errors: whose fault it is decides the type, and the type decides the exit code of the command.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace ringsim {

/// The user's mistake: a file, a scenario, a schedule that is missing, malformed or impossible (exit code 3).
/// what() is `where: message`, then `\n  hint: ...` if there is something to do about it.
class InputError : public std::runtime_error {
 public:
  /// `where`: file:line:column for syntax, file: /json/pointer for meaning, or empty.
  /// `message`: what was expected and found. `hint`: what to do; may be empty. Bytes that are not UTF-8 become "?".
  InputError(std::string where, std::string message, std::string hint = "");

  const std::string& where() const { return where_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string where_, message_, hint_;
};

/// An algorithm cannot serve what is asked of it: not this op, this number of ranks, this machine. Code that
/// compares algorithms leaves the algorithm out; elsewhere it is a mistake like any other.
class UnservedError : public InputError {
 public:
  /// `algorithm`: its name. The others as InputError's.
  UnservedError(std::string algorithm, std::string where, std::string message, std::string hint = "");

  const std::string& algorithm() const { return algorithm_; }

 private:
  std::string algorithm_;
};

/// A schedule that the checker refuses (exit code 3); what() names rank, lane, step, operation and region.
class ScheduleError : public InputError {
 public:
  using InputError::InputError;
};

/// The simulation broke one of its own laws, or stalled (exit code 4): our mistake, not the user's.
class InvariantError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// This machine lacks what the command needs: a permission, disk space, a device (exit code 5).
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user asked to stop (exit code 130); what() says how far the work came.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail_invariant(std::string_view law);

/// A sum that leaves what 64 bits count: 106 days of simulated time, 9.2 EB. The user asked for too much.
[[noreturn]] void fail_too_large(std::string_view what);

/// A law of the simulation. Stays on in Release: a wrong simulation is worse than a slow one. (tools/bench alone builds
/// a program without, to measure what the laws cost.)
#ifndef RINGSIM_NO_CHECKS
inline void ensure(bool holds, std::string_view law) {
  if (!holds) [[unlikely]]
    fail_invariant(law);
}
#else
inline void ensure(bool, std::string_view) {}
#endif

}  // namespace ringsim
