#include "tools/explanations/staged_text.hpp"

namespace ringsim::tools {

std::string staged_text(const Prediction& prediction) {
  if (!prediction.staged) return "";
  // docs/results/accuracy.md: gh200-2n1g-all_reduce-gdroff, polaris-2n4g-all_reduce-set4 and -all_gather-set4; then
  // aws-p3dn-2n8g-all_reduce-ring (8 MiB) and moc-h100-2n1g-all_reduce-nogdr (1 GiB). A test computes these figures.
  return "Data between nodes passes through host memory, and little is known of such paths: of five measured tables, "
         "three differ from the prediction by 4, 5 and 10 % (median), but in the other two, transfers took 2.6 and 3.1 "
         "times as long as predicted (docs/results/accuracy.md).";
}

}  // namespace ringsim::tools
