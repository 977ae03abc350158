#include "algorithms/composed/torus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "algorithms/composed/compose.hpp"
#include "algorithms/ring.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

int ranks_in(const std::vector<int>& dimensions) {
  return std::accumulate(dimensions.begin(), dimensions.end(), 1, std::multiplies<>());
}

/// A dimension as a digit of a rank's number.
struct NamedDigit {
  Digit digit;
  std::string name;  ///< "along dimension 2"; they count from 1
};

/// Those of 1 are left out, there is nothing to do along them.
std::vector<NamedDigit> digits_of(const std::vector<int>& dimensions) {
  std::vector<NamedDigit> digits;
  int stride = ranks_in(dimensions), number = 0;
  for (const int size : dimensions) {
    stride /= size;
    ++number;
    if (size > 1) digits.push_back({{.size = size, .stride = stride}, fmt::format("along dimension {}", number)});
  }
  return digits;
}

/// One dimension of several: the chunks that are left when those before it are done.
struct Phase {
  Digit digit;
  std::string name;
  std::function<int(Actor)> first_chunk;
  int scale = 1;
};

std::vector<Phase> phases_of(const std::vector<NamedDigit>& order, int base) {
  std::vector<Phase> phases;
  int scale = 1;
  for (const NamedDigit& dimension : order) scale *= dimension.digit.size;
  std::function<int(Actor)> first = [base](Actor) { return base; };
  for (const NamedDigit& dimension : order) {
    const Digit& digit = dimension.digit;
    scale /= digit.size;
    phases.push_back({digit, dimension.name, first, scale});
    first = [first, digit, scale](Actor r) { return first(r) + digit.of(r) * scale; };
  }
  return phases;
}

// Sizes within a part do not count, so its rings are made of no bytes.
void scatter(const std::vector<Phase>& phases, Lane lane, std::vector<Part>& parts) {
  for (const Phase& phase : phases)
    parts.push_back(
        {ring_reduce_scatter(phase.digit.size, {}), phase.digit, phase.first_chunk, phase.scale, lane, phase.name});
}
void gather(const std::vector<Phase>& phases, Lane lane, std::vector<Part>& parts) {
  for (auto phase = phases.rbegin(); phase != phases.rend(); ++phase)
    parts.push_back(
        {ring_all_gather(phase->digit.size, {}), phase->digit, phase->first_chunk, phase->scale, lane, phase->name});
}

Schedule along_dimensions(const std::vector<int>& dimensions, Collective collective, bool scatters, bool gathers) {
  const std::vector<Phase> phases = phases_of(digits_of(dimensions), 0);
  std::vector<Part> parts;
  if (scatters) scatter(phases, 0, parts);
  if (gathers) gather(phases, 0, parts);
  Schedule s = in_sequence(std::move(collective), ranks_in(dimensions), std::move(parts));
  s.algorithm = "torus";
  s.symmetry = Symmetry(dimensions);
  return s;
}

}  // namespace

Schedule torus_all_reduce(const std::vector<int>& dimensions, Bytes bytes) {
  return along_dimensions(dimensions, all_reduce(ranks_in(dimensions), bytes), true, true);
}
Schedule torus_reduce_scatter(const std::vector<int>& dimensions, Bytes bytes) {
  return along_dimensions(dimensions, reduce_scatter(ranks_in(dimensions), bytes), true, false);
}
Schedule torus_all_gather(const std::vector<int>& dimensions, Bytes bytes) {
  return along_dimensions(dimensions, all_gather(ranks_in(dimensions), bytes), false, true);
}

Schedule bucket_all_reduce(const std::vector<int>& dimensions, Bytes bytes) {
  const int n = ranks_in(dimensions);
  std::vector<NamedDigit> order = digits_of(dimensions);
  const auto n_lanes = 2 * static_cast<int>(order.size());
  std::vector<Part> parts;
  for (Lane lane = 0; lane < n_lanes; ++lane) {
    std::vector<NamedDigit> ways = order;
    for (NamedDigit& dimension : ways) dimension.digit.reversed = lane % 2 == 1;
    const std::vector<Phase> phases = phases_of(ways, lane * n);
    scatter(phases, lane, parts);
    gather(phases, lane, parts);
    if (lane % 2 == 1) std::rotate(order.begin(), order.begin() + 1, order.end());
  }
  Schedule s = in_sequence(all_reduce(n, bytes), std::max(1, n_lanes) * n, std::move(parts));
  s.algorithm = "bucket";
  return s;
}

}  // namespace ringsim
