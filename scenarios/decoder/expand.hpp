// The points of a scenario: lists and ranges spread out, one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/decoder/blame.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

/// What varies at a point: dotted path, value as JSON text.
using Varied = std::vector<std::pair<std::string, std::string>>;

/// All points of a document, numbered in mixed radix: sweeps first, then file order; the first varies slowest.
class Points {
 public:
  /// Requires a document that canonical_file() accepts. Throws InputError if it has more than most_points.
  Points(const Json& scenario, const Json& sweeps, const Blame& blame);
  ~Points();
  Points(Points&&) noexcept;
  Points& operator=(Points&&) noexcept;

  std::size_t size() const;
  /// The document of point i, with one value everywhere. Appends to `varied` what tells the point from others.
  Json at(std::size_t i, Varied& varied) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringsim::scenarios
