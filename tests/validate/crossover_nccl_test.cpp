// What docs/results/crossover.md says NCCL picks is what NCCL's own formula picks.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/nccl/nccl_tuner.hpp"

namespace crossover_nccl_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::nccl;

namespace {

/// "Tree LL to 512 KiB, ...": NCCL's choices for all_reduce at the powers of two from 4 B to 4 GiB.
std::string picks(const std::string& preset, Bandwidth nic) {
  const TunerMachine machine = tuner_machine(node_preset(preset), 8, 4, nic, Release::v2_30_7);
  const std::vector<TunerChoice> choices = tuner_choices(CollectiveOp::all_reduce, machine, Release::v2_30_7);
  std::string text, before;
  for (Bytes size = 4_B; size <= 4_GiB; size = {size.count * 2}) {
    std::string best;
    double least = 0;
    for (const TunerChoice& each : choices) {
      const double time = tuner_time_us(each, CollectiveOp::all_reduce, size, machine, Release::v2_30_7);
      if (!best.empty() && time >= least) continue;
      least = time;
      best = fmt::format("{} {}", to_string(each.algorithm), to_string(each.protocol));
    }
    if (best != before) text += fmt::format("{}{} from {} B", text.empty() ? "" : ", ", best, size.count);
    before = best;
  }
  return text;
}

}  // namespace

TEST_CASE("docs/results/crossover.md names what NCCL's own formula picks, size by size") {
  const std::string page = test::read_file(test::source_dir() + "/docs/results/crossover.md");
  for (const std::string& found : {picks("hgx-h100", 50_GBps), picks("dgx-1v", 12500_MBps)}) {
    CAPTURE(found);
    CHECK(found.starts_with("Tree LL from 4 B, "));
    CHECK(page.find(found + ".") != std::string::npos);
  }
}

}  // namespace crossover_nccl_test
