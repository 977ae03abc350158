// The tables of compare --explain: each cell worked out by hand from made-up rows.
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"

namespace mismatch_text_test {

using namespace ringsim::test;

namespace {

using Cells = std::vector<std::string>;

// A ring of 4 ranks: 6 steps of a message of S/4 over two cables, 6 x (2 us + S/4 / 10 GB/s) = 12 us + S x 0.15 us/kB.
const std::string star = R"({"version": 1, "name": "a star",
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB"}})";
// Predicted: 12.3, 12.6, 15, 18, 6012 and 12012 us. The first two and the last two are off.
const std::string measured = R"(# collective: all_reduce
# ranks: 4
bytes,time_us
2000,22.3
4000,23
20000,15
40000,17
40000000,7500
80000000,15600
)";

/// The cells of a line: columns are two blanks or more apart, and have single ones inside.
Cells cells_of(const std::string& line) {
  Cells cells;
  for (std::size_t at = line.find_first_not_of(' '); at != std::string::npos;) {
    const std::size_t end = line.find("  ", at);
    cells.push_back(line.substr(at, end - at));
    at = end == std::string::npos ? end : line.find_first_not_of(' ', end);
  }
  return cells;
}

/// The lines of what the command says, by their cells. A text that is a number below the table ("plan [2]: ring ll, 1
/// ch") is put back.
class Said {
 public:
  Said() {
    const Outcome outcome =
        run_command({"compare", "--explain", temporary_file("star.json", star), temporary_file("m.csv", measured)});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    text_ = outcome.out;
  }
  const std::string& text() const { return text_; }
  /// The text without the line breaks within its sentences.
  std::string unwrapped() const {
    std::string flat;
    std::istringstream in(text_);
    for (std::string line; std::getline(in, line);) flat += line.starts_with("  ") ? line.substr(1) : ' ' + line;
    return flat;
  }
  /// The cells of the line that begins with this one, from the heading `from` on.
  Cells line(const std::string& first, const std::string& from = "") const {
    std::istringstream in(text_.substr(text_.find(from)));
    Cells found;
    std::size_t at = 0;  // of a cell that is a number
    for (std::string each; std::getline(in, each);) {
      const Cells cells = cells_of(each);
      if (found.empty() && !cells.empty() && cells.front() == first) {
        found = cells;
        while (at < found.size() && found[at].front() != '[') ++at;
        if (at == found.size()) return found;
      } else if (!found.empty() && each.starts_with("plan " + found[at] + ": ")) {
        found[at] = each.substr(each.find(": ") + 2);
        return found;
      }
    }
    return {"no line", first};
  }

 private:
  std::string text_;
};

}  // namespace

TEST_CASE("the table of rows has both times and bandwidths, the error, and the share of what limits the row") {
  const Said said;
  // Bandwidths: bytes / us / 1000 x 2 (4-1)/4. 2 kB: 2/22.3 x 1.5 = 0.13, 2/12.3 x 1.5 = 0.24. Errors: 12.3/22.3 - 1.
  // Shares: 12 us are latency, the rest is the cables'. From 10^4 us on times are whole.
  CHECK(said.line("2 kB") ==
        Cells{"2 kB", "ring", "none", "1", "22.30", "0.13", "12.30", "0.24", "-44.8 %", "latency 98 %"});
  CHECK(said.line("20 kB") ==
        Cells{"20 kB", "ring", "none", "1", "15.00", "2.00", "15.00", "2.00", "+0.0 %", "latency 80 %"});
  CHECK(said.line("40 kB") ==
        Cells{"40 kB", "ring", "none", "1", "17.00", "3.53", "18.00", "3.33", "+5.9 %", "latency 67 %"});
  CHECK(said.line("40 MB") ==
        Cells{"40 MB", "ring", "none", "1", "7500.00", "8.00", "6012.00", "9.98", "-19.8 %", "link 100 %"});
  CHECK(said.line("80 MB") ==
        Cells{"80 MB", "ring", "none", "1", "15600", "7.69", "12012", "9.99", "-23.0 %", "link 100 %"});
  // |errors|: 0, 5.9, 19.8, 23.0, 44.8 and 45.2 %. The median is (19.84 + 23) / 2; the 90th percentile lies halfway
  // between the last two: 0.9 x 5 = 4.5.
  CHECK(has(said.unwrapped(),
            "Measured and predicted times differ by more than 10 % in 4 of 6 rows: median |error| 21.4 %, 90th "
            "percentile 45.0 %."));
}

TEST_CASE("the table of changes has the time at the largest size, median and 90 % of the errors, and spoiled rows") {
  const Said said;
  // |errors|: 44.84 and 45.22 %. 22.3 - 12.3 and 23 - 12.6 us.
  const std::string small =
      "\n2 kB to 4 kB (2 rows), ring none: the prediction is 45.0 % too fast, by 10.00 to 10.40 us\n";
  REQUIRE(has(said.text(), small));
  // Protocols add their launch, which is 8.4 us for simple, 6.6 us for ll, 14 us for ll128. ll sends twice the bytes,
  // ll128 16/15 of them. The 90th percentile of two errors lies nine tenths of the way to the greater.
  // simple: 20.7 and 21 us, -7.18 and -8.70 %.
  CHECK(said.line("protocol simple", small) ==
        Cells{"protocol simple", "ring simple, 1 ch", "21.00", "7.9 %", "8.5 %"});
  // ll: 12 + 0.6 + 6.6 and 12 + 1.2 + 6.6 us, -13.90 and -13.91 %.
  CHECK(said.line("protocol ll", small) == Cells{"protocol ll", "ring ll, 1 ch", "19.80", "13.9 %", "13.9 %"});
  // ll128: 12 + 0.32 + 14 and 12 + 0.64 + 14 us, +18.03 and +15.83 %.
  CHECK(said.line("protocol ll128", small) == Cells{"protocol ll128", "ring ll128, 1 ch", "26.64", "16.9 %", "17.8 %"});
  // The median of 10 and 10.4 us is added: 22.5 and 22.8 us, +0.90 and -0.87 %. At 20 and 40 kB it makes 25.2 and 28.2
  // us of 15 and 17: both are spoiled.
  CHECK(said.line("launch 10.2 us instead of 0 (fitted)", small) ==
        Cells{"launch 10.2 us instead of 0 (fitted)", "ring none, 1 ch", "22.80", "0.9 %", "0.9 %", "2 of 2"});

  // 7500 - 6012 and 15600 - 12012 us; 19.84 and 23 %.
  const std::string large =
      "\n40 MB to 80 MB (2 rows), ring none: the prediction is 21.4 % too fast, by 1488.00 to 3588.00 us\n";
  REQUIRE(has(said.text(), large));
  // ll128: 12 + 6400 + 14 and 12 + 12800 + 14 us, -14.32 and -17.78 %.
  CHECK(said.line("protocol ll128", large) == Cells{"protocol ll128", "ring ll128, 1 ch", "12826", "16.1 %", "17.4 %"});
  CHECK(said.line("protocol simple", large) ==
        Cells{"protocol simple", "ring simple, 1 ch", "12020", "21.3 %", "22.6 %"});
  // The links' 12000 us of the larger row become 15600 - 12, so the rate 0.76982 of what it is: 7806 us at 40 MB, +4.08
  // %. At 20 kB 12 + 3 / 0.77 = 15.9 us, which is 6 % off 15; at 40 kB 19.8 us, which is 16 % off 17.
  CHECK(said.line("link at 0.77 of the rate (fitted)", large) ==
        Cells{"link at 0.77 of the rate (fitted)", "ring none, 1 ch", "15600", "2.0 %", "3.7 %", "1 of 2"});
  CHECK(has(said.unwrapped(), "; with this change, 1 of the 2 rows that agree now would not"));
}

}  // namespace mismatch_text_test
