// Which known word a mistyped one is nearest to.
#include "sim/text/spelling.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace spelling_test {

using namespace ringsim;

TEST_CASE("where numbers tell names apart, a name is near only if it has the same ones") {
  struct Row {
    std::string typed, known;
    bool any, exact;  ///< near with either rule
  };
  for (const Row& row : std::vector<Row>{{"resnet_50", "resnet50", true, true},
                                         {"resnt50", "resnet50", true, true},
                                         {"resnet51", "resnet50", true, false},
                                         {"llama3_7b", "llama2_7b", true, false},
                                         {"llama2", "llama2_7b", true, true},  // its beginning
                                         {"dgx-v1", "dgx-1v", true, true},     // one digit may move
                                         {"g5.48xlarge", "p5.48xlarge", true, false},
                                         {"dgx-h100", "dgx-a100", true, false},
                                         {"dgx-100", "dgx-a100", true, false},
                                         {"rtx4090", "rtx-4090", true, true},
                                         {"mi300a", "mi300x", true, false},
                                         {"mi300", "mi300x", true, false},
                                         {"l40", "l40s", true, false},
                                         {"h10", "h100", true, false},
                                         {"48xlrge", "48xlarge", true, true}}) {
    CAPTURE(row.typed);
    CAPTURE(row.known);
    CHECK((nearest(row.typed, {row.known}) == row.known) == row.any);
    CHECK((nearest(row.typed, {row.known}, Numbers::exact) == row.known) == row.exact);
  }
}

TEST_CASE("names are the same whatever their capitals and punctuation") {
  CHECK(same_letters("ZeRO-3", "zero3"));
  CHECK(same_letters("", "-"));
  CHECK_FALSE(same_letters("zero3", "zero2"));
}

}  // namespace spelling_test
