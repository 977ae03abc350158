// Numbers and quantities, one or a range of them, as whole base units: bytes, bytes per second, picoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/fields/fields.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

/// More points than any sweep can run, and few enough to count safely.
inline constexpr std::size_t most_points = 10'000'000;

/// Reads the value of a scalar field within its bounds.
std::int64_t read_scalar(const Field& field, const Json& value, const std::string& pointer, const Blame& blame);
/// Reads a number of at most six decimals within the field's bounds, in millionths.
std::int64_t read_factor(const Field& field, const Json& value, const std::string& pointer, const Blame& blame);
/// Reads a share above 0% and up to 100%, of at most 4 decimals, or a rate.
nlohmann::json read_portion(const Field& field, const Json& value, const std::string& pointer, const Blame& blame);
/// The shortest text that read_scalar() takes back.
Json write_scalar(Type type, std::int64_t value);

/// `{"from": A, "to": B, "factor": F}` or `"step": S`: A, then as many more as are at most B. A factor may have up to
/// six decimals; each value is the one before times the factor, rounded down.
class Range {
 public:
  static Range read(const Field& field, const Json& value, const std::string& pointer, const Blame& blame);

  std::size_t size() const { return size_; }  ///< at least 1; of a factor, counts no further than most_points + 1
  Json at(std::size_t i) const;
  /// The range in base units, for the canonical form.
  nlohmann::json canonical() const;

 private:
  Type type_ = Type::whole;
  std::int64_t from_ = 0, to_ = 0, step_ = 0;
  std::string factor_;                  // digits of a factor; empty: step_
  std::vector<std::int64_t> products_;  // of a factor: all values
  std::size_t size_ = 1;
};

}  // namespace ringsim::scenarios
