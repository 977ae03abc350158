// Fits few named factors of a scenario to measured times, and says which of them the measurements determine.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.hpp"
#include "validate/measured/measured.hpp"

namespace ringsim {

enum class Factor : std::uint8_t { launch, latency, inside, between };
inline constexpr std::array factors = {Factor::launch, Factor::latency, Factor::inside, Factor::between};
/// As the keys of a scenario's "calibration" are called: "launch", "latency_scale", ...
std::string_view to_string(Factor factor);

/// What a factor may become. launch: microseconds; the others: ratios.
struct FactorRange {
  double nominal = 1, least = 0, most = 0;
};
/// launch 0 to 100 us (one process that launches eight kernels takes 35:
/// validate/measured/tables/a100-1n8g-all_reduce.csv); latency_scale 1/4 to 16 (assumed: beyond, another effect is at
/// work); efficiencies 0.2 (assumed: as that) to 1.2 (presets have what payload reaches, of NVLink4 0.8356 of the line
/// rate: 1.2 is all of it).
FactorRange range_of(Factor factor);

struct FittedFactor {
  Factor factor{};
  double value = 1;
  double standard_error = 0;  ///< of launch in us, else a share of the value; from the fit's curvature and scatter
  bool at_bound = false;      ///< it would go on, were its range wider: something else is wrong
  std::string left_out;       ///< why the rows do not determine it; then its value is the nominal one; empty: fitted
};

struct CalibrationFit {
  std::vector<FittedFactor> factors;                     ///< of all, in the order of Factor
  double loss_before = 0, loss_after = 0;                ///< mean of loss_of()
  std::optional<ErrorBand> before, after;                ///< |error| of the rows that were fitted
  std::optional<ErrorBand> others_before, others_after;  ///< of those that were not; nothing if there are none

  Calibration calibration() const;  ///< factors rounded to six decimals, launch to a nanosecond
};

/// sqrt(1 + (e/0.1)^2) - 1 of e = ln(predicted/measured): quadratic for errors well below 10 %, linear above, so that a
/// few rows with another cause do not pull the rest (pseudo-Huber; Charbonnier et al., ICIP 1994).
double loss_of(double predicted_us, double measured_us);

enum class Rows : std::uint8_t { all, odd, even };  ///< odd: the 1st, 3rd... by size

/// Fits the factors to the rows of a table at whose sizes the scenario was loaded (load_at_measured_sizes). As in the
/// scorecard the fastest of the points of a size is its prediction, before the fit and after.
///
/// For given points the factors are found by NLopt's BOBYQA (Powell, DAMTP 2009/NA06) within their ranges, then the
/// points are chosen again, until they stay the same. A factor is determined if its standard error, linearised at the
/// optimum with the other factors free, is at most a quarter (of launch: 0.5 us, or a quarter of it). One that is not
/// is put back to its nominal value, the worst first (of a launch and latencies that no row tells apart, the launch),
/// and the rest is fitted again.
///
/// Throws InputError if fewer rows are to be fitted than there are factors and one more, and for a scenario that has
/// a calibration already; Interrupted when `stop` is set.
CalibrationFit calibrate(const ScenarioFile& file, const MeasuredTable& table, Rows rows = Rows::all,
                         const std::atomic<bool>* stop = nullptr);

/// The file that scenarios take as {"calibration": {"file": NAME}}: the factors, and where they come from.
/// `measured_text`: the measured file's own text, of which a digest is kept.
std::string calibration_file(const CalibrationFit& fit, const ScenarioFile& file, const MeasuredTable& table,
                             std::string_view measured_text, Rows rows);

}  // namespace ringsim
