#include "sim/program/call_kinds.hpp"

#include <tsl/robin_map.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/base/mixed_hash.hpp"

namespace ringsim {

namespace {

/// Equal for calls of one kind.
std::uint64_t key_of(const Program::Call& call) {
  std::uint64_t key = reinterpret_cast<std::uintptr_t>(&call.schedule.schedule());
  for (const Actor member : call.members) key = MixedHash{}(key) + static_cast<std::uint64_t>(member);
  return key;
}

}  // namespace

std::vector<int> kinds_of_calls(const Program& program) {
  tsl::robin_map<std::uint64_t, std::vector<int>, MixedHash> firsts;
  std::vector<int> kinds;
  kinds.reserve(program.calls.size());
  for (std::size_t c = 0; c < program.calls.size(); ++c) {
    const Program::Call& call = program.calls[c];
    std::vector<int>& like = firsts[key_of(call)];
    const auto same = std::find_if(like.begin(), like.end(), [&](int first) {
      const Program::Call& other = program.calls[static_cast<std::size_t>(first)];
      return &other.schedule.schedule() == &call.schedule.schedule() && other.members == call.members;
    });
    kinds.push_back(same == like.end() ? static_cast<int>(c) : *same);
    if (same == like.end()) like.push_back(static_cast<int>(c));
  }
  return kinds;
}

}  // namespace ringsim
