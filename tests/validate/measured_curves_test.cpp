// What measured curves of one node show, and predictions must: slopes, floors, which of two is slower. The score is a
// median over many rows, in which such a thing can get lost.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "validate/measured/measured.hpp"

namespace measured_curves_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

constexpr std::int64_t MiB = 1 << 20;

/// A published table and the scenario next to it. Times are microseconds.
class Curve {
 public:
  explicit Curve(const std::string& id)
      : path_(test::source_dir() + "/validate/measured/tables/" + id), table_(read_measured(path_ + ".csv")) {
    scenario_ = test::read_file(path_ + ".json");
    for (const MeasuredRow& row : table_.rows) measured_[row.bytes.count] = row.time_us;
  }
  double measured(std::int64_t bytes) const { return measured_.at(bytes); }
  double predicted(std::int64_t bytes) const {
    const auto file =
        ScenarioFile::parse(scenario_, path_ + ".json", {fmt::format(R"(collective.bytes="{} B")", bytes)});
    return static_cast<double>(predict(file.point(0)).time.count()) / 1e6;
  }

 private:
  std::string path_, scenario_;
  MeasuredTable table_;
  std::map<std::int64_t, double> measured_;
};

/// The 27 tables of A100, H100 and B200 whose curves a ring or NVLS explains: "h100-1n2g-all_reduce".
std::vector<std::string> curves() {
  std::vector<std::string> names;
  for (const char* gpu : {"a100", "h100", "b200"})
    for (const char* op : {"all_gather", "reduce_scatter", "all_reduce"})
      for (const int n : {2, 4, 8}) names.push_back(fmt::format("{}-1n{}g-{}", gpu, n, op));
  return names;
}

}  // namespace

TEST_CASE("from 256 to 512 MiB 27 measured curves rise as predicted within 2 %, but for six that may not get worse") {
  // The slope is what a byte costs on the wire and in a rank's own part: launch and steps are in both sizes, and
  // cancel. Wire and addition have one rate each for reduce_scatter and all_reduce. The six: on H100 measured pairs and
  // fours lie on both sides of it, on B200 those of all_reduce are faster; why is not known. Percent by which they are
  // off, rounded up to a tenth. If one gets better, lower its limit, or take it out.
  const std::map<std::string, double> known = {{"h100-1n2g-reduce_scatter", 4.9}, {"h100-1n4g-reduce_scatter", 3.3},
                                               {"h100-1n2g-all_reduce", 3.9},     {"h100-1n4g-all_reduce", 3.0},
                                               {"b200-1n2g-all_reduce", 4.2},     {"b200-1n4g-all_reduce", 5.4}};
  for (const std::string& name : curves()) {
    CAPTURE(name);
    const Curve curve("aic-" + name);
    const double measured = curve.measured(512 * MiB) - curve.measured(256 * MiB);
    const double predicted = curve.predicted(512 * MiB) - curve.predicted(256 * MiB);
    const auto found = known.find(name);
    // Of bandwidths, which are bytes over time.
    CHECK(std::abs(measured / predicted - 1) * 100 <= (found == known.end() ? 2 : found->second));
  }
}

TEST_CASE("small messages take what 27 measured curves say, within half a microsecond") {
  // 512 B to 2 KiB: launch, and a step of LL for each of N-1, or of 2(N-1). The median of the three sizes, because
  // single rows have outliers. 0.5 us is half a step.
  for (const std::string& name : curves()) {
    CAPTURE(name);
    const Curve curve("aic-" + name);
    std::vector<double> measured, predicted;
    for (const std::int64_t bytes : {512, 1024, 2048}) {
      measured.push_back(curve.measured(bytes));
      predicted.push_back(curve.predicted(bytes));
    }
    CHECK(std::abs(quantile(predicted, 0.5) - quantile(measured, 0.5)) <= 0.5);
  }
}

TEST_CASE(
    "on eight H100 NVLS is slower than the ring at 8 and 16 MiB, as measured, and faster at 512; 4 MiB is known to be "
    "wrong") {
  // NCCL takes NVLS for halves from 2 MiB on, which is too early; the switches do not add integers up, so int8 has
  // rings. Known to be wrong: at 4 MiB predicted are 55.0 and 55.8 us, measured 50.5 and 46.9.
  const Curve halves("aic-h100-1n8g-all_reduce"), integers("aic-h100-1n8g-all_reduce-int8");
  for (const std::int64_t size : {4, 8, 16, 512}) {
    CAPTURE(size);
    const bool is_slower = halves.measured(size * MiB) > integers.measured(size * MiB);
    CHECK(is_slower == (size < 512));
    const double ratio = halves.predicted(size * MiB) / integers.predicted(size * MiB);
    if (size == 4)
      CHECK(ratio > 0.98);  // no worse than it is
    else
      CHECK((ratio > 1) == is_slower);
  }
}

TEST_CASE("from 8 MiB on a pair of a GB200 takes as long as a pair of B200") {
  // The same GPU and the same NVLink; what differs is the CPU, which launches. Measured within 4 %, noise included.
  for (const char* op : {"all_gather", "reduce_scatter", "all_reduce", "alltoall"}) {
    CAPTURE(op);
    const Curve grace(fmt::format("aic-gb200-1n2g-{}", op)), plain(fmt::format("aic-b200-1n2g-{}", op));
    for (std::int64_t size = 8; size <= 512; size *= 2) {
      CAPTURE(size);
      CHECK(grace.measured(size * MiB) == doctest::Approx(plain.measured(size * MiB)).epsilon(0.04));
      CHECK(grace.predicted(size * MiB) == doctest::Approx(plain.predicted(size * MiB)).epsilon(0.01));
    }
  }
}

}  // namespace measured_curves_test
