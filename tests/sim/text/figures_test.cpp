// Units and digits of the numbers in tables.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/quantity.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/table.hpp"

namespace figures_test {

using namespace ringsim;

TEST_CASE("a figure has five digits, at most three after the point, and all before it") {
  const std::vector<std::pair<double, std::string>> cases{
      {0, "0.000"},           {0.0004, "0.000"},    {0.3594, "0.359"},       {9.9996, "10.000"},
      {36.8371, "36.837"},    {147.8141, "147.81"}, {1544.739, "1544.7"},    {21205.539, "21206"},
      {335778.349, "335778"}, {-1.5, "-1.500"},     {1503242.554, "1503243"}};
  for (const auto& [value, text] : cases) CHECK(figure(value) == text);
}

TEST_CASE("from 10 upward, figures of values that differ by more than 0.01 % differ") {
  for (double value = 10; value < 3e9; value *= 1.0137) {
    CAPTURE(value);
    CHECK(figure(value) != figure(value * 1.000101));
    CHECK(std::abs(std::stod(figure(value)) / value - 1) <= 5e-5);  // half of the last digit
  }
}

TEST_CASE("a time is in us below 10 ms, in ms below 10 s, in s from there on") {
  const std::vector<std::pair<const char*, std::string>> cases{
      {"0 us", "0.000 us"},           {"1300 ns", "1.300 us"}, {"9999999 ns", "10000.0 us"}, {"10 ms", "10.000 ms"},
      {"1072200629 ns", "1072.2 ms"}, {"9.9 s", "9900.0 ms"},  {"10 s", "10.000 s"},         {"3 ps", "0.000 us"}};
  for (const auto& [time, text] : cases) CHECK(time_text(parse_time(time)) == text);
}

TEST_CASE("a size stays exact if that is short, else it is rounded in a binary unit") {
  const std::vector<std::pair<const char*, std::string>> cases{{"64 MiB", "64 MiB"},
                                                               {"1125 MB", "1125 MB"},
                                                               {"102228128 B", "97.492 MiB"},
                                                               {"15684104 KiB", "14.958 GiB"},
                                                               {"99999 B", "99999 B"},
                                                               {"100001 B", "97.657 KiB"},
                                                               {"0 B", "0 B"},
                                                               {"5000000000001 B", "4.547 TiB"}};
  for (const auto& [size, text] : cases) CHECK(size_text(parse_bytes(size)) == text);
}

TEST_CASE("a table has one unit for its times, that of the shortest of the first column that has some") {
  Table table({"bytes", "time", "measured"});
  table.add({"1 KiB", parse_time("12 us"), parse_time("9 us")});
  table.add({"4 GiB", parse_time("335778349 ns"), ""});
  CHECK(table.text() ==
        "bytes     time us  measured us\n"
        "1 KiB      12.000        9.000\n"
        "4 GiB  335778\n");
  Table large({"bytes", "time", "measured"});
  large.add({"1 GiB", parse_time("12 ms"), parse_time("9 us")});
  large.add({"4 GiB", parse_time("335778349 ns"), parse_time("0 us")});
  CHECK(large.text() ==
        "bytes  time ms  measured ms\n"
        "1 GiB   12.000        0.009\n"
        "4 GiB  335.78         0.000\n");
}

TEST_CASE("the parts of a whole are in the unit of the whole; differences have signs") {
  Table parts({"part", "time", "difference"});
  parts.parts_of(parse_time("1.2 s"));
  parts.add({"launch", parse_time("80 us"), TableCell::with_sign(Picoseconds{0})});
  parts.add({"compute", parse_time("1.1 s"), TableCell::with_sign(-parse_time("20 ms"))});
  CHECK(parts.text() ==
        "part      time ms  difference ms\n"
        "launch      0.080         +0.000\n"
        "compute  1100.0          -20.000\n");
  CHECK(parts.cells().front() == std::vector<std::string>{"part", "time ms", "difference ms"});
}

TEST_CASE("numbers of a column have their points in line, and other columns stay as they are") {
  Table table({"GB/s", "share", "count"});
  table.add(std::vector<std::string>{"0.359", "2.8 %", "8"});
  table.add(std::vector<std::string>{"147.81", "100.0 %", "16"});
  table.add(std::vector<std::string>{"", "", ""});
  table.add(std::vector<std::string>{"21206", "", "1"});
  CHECK(table.text() ==
        "     GB/s    share  count\n"
        "    0.359    2.8 %      8\n"
        "  147.81   100.0 %     16\n"
        "21206                   1\n");
}

TEST_CASE("a time of a column in microseconds is that many picoseconds, rounded") {
  CHECK(ringsim::time_of_us(1.5) == ringsim::Picoseconds{1'500'000});
  CHECK(ringsim::time_of_us(182.565'0004) == ringsim::Picoseconds{182'565'000});  // 0.4 ps less
  CHECK(ringsim::time_of_us(-0.25) == ringsim::Picoseconds{-250'000});
}

}  // namespace figures_test
