#include "sim/base/quantity.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "sim/base/error.hpp"

namespace quantity_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

/// What the parser complains, as the user reads it; empty if it does not.
template <class Parse>
std::string complaint(Parse parse, std::string_view text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    CHECK(error.where().empty());
    return error.what();
  }
  return "";
}

constexpr std::int64_t largest = INT64_MAX;

}  // namespace

TEST_CASE("a size is read exactly, in powers of 1000 and of 1024") {
  struct Row {
    const char* text;
    std::int64_t bytes;
  };
  for (const Row& row : {Row{"0 B", 0},
                         {"1 B", 1},
                         {"64 MiB", 67'108'864},
                         {"64MiB", 67'108'864},
                         {"1.5 GB", 1'500'000'000},
                         {"0.5 KiB", 512},
                         {"1 kB", 1000},
                         {"2 MB", 2'000'000},
                         {"3 TB", 3'000'000'000'000},
                         {"1 GiB", 1'073'741'824},
                         {"1 TiB", 1'099'511'627'776},
                         {"007 B", 7},
                         {"1.000 B", 1},
                         {"0.0000000000009094947017729282379150390625 TiB", 1},  // 2^-40, all of its 40 decimals
                         {"9223372036854775807 B", largest}}) {
    CAPTURE(row.text);
    CHECK(parse_bytes(row.text).count == row.bytes);
  }
}

TEST_CASE("a rate is read in bytes or in bits a second") {
  CHECK(parse_bandwidth("25 GB/s") == 25_GBps);
  CHECK(parse_bandwidth("200 Gb/s") == 25_GBps);
  CHECK(parse_bandwidth("12.5GB/s") == 100_Gbps);
  CHECK(parse_bandwidth("8 b/s") == 1_Bps);
  CHECK(parse_bandwidth("1 kb/s") == 125_Bps);
  CHECK(parse_bandwidth("0.1 Tb/s") == 100_Gbps);
  CHECK(parse_bandwidth("10 MiB/s").bytes_per_second == 10'485'760);
}

TEST_CASE("a time is read to the picosecond") {
  CHECK(parse_time("1.3 us").count() == 1'300'000);
  CHECK(parse_time("0 ns").count() == 0);
  CHECK(parse_time("1ps").count() == 1);
  CHECK(parse_time("0.001 ns").count() == 1);
  CHECK(parse_time("2 ms").count() == 2'000'000'000);
  CHECK(parse_time("9223372.036854775807 s").count() == largest);
}

TEST_CASE("a quantity that is not one says what was expected, what was found and what to do") {
  const std::string sizes = "\n  hint: units are B, kB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024)";
  const std::string size = R"(expected a size such as "64 MiB" or "1.5 GB", found )";
  CHECK(complaint(parse_bytes, "64") == size + R"("64")" + sizes);
  CHECK(complaint(parse_bytes, "") == size + R"("")" + sizes);
  CHECK(complaint(parse_bytes, "MiB") == size + R"("MiB")" + sizes);
  CHECK(complaint(parse_bytes, "64  MiB") == size + R"("64  MiB")" + sizes);
  CHECK(complaint(parse_bytes, " 64 MiB") == size + R"(" 64 MiB")" + sizes);
  CHECK(complaint(parse_bytes, "64 mib") == size + R"("64 mib")" + sizes);
  CHECK(complaint(parse_bytes, "1e3 B") == size + R"("1e3 B")" + sizes);
  CHECK(complaint(parse_bytes, ".5 GB") == size + R"(".5 GB")" + sizes);
  CHECK(complaint(parse_bytes, "5. GB") == size + R"("5. GB")" + sizes);
  CHECK(complaint(parse_bytes, "1 B\n") == size + R"("1 B\u000a")" + sizes);
  CHECK(complaint(parse_bytes, std::string(70, '7')) == size + '"' + std::string(60, '7') + "...\"" + sizes);
  CHECK(complaint(parse_bytes, "-1 B") ==
        R"(expected a size such as "64 MiB" or "1.5 GB", not negative, found "-1 B")");
  CHECK(complaint(parse_bytes, "0.1 B") == R"(expected a whole number of bytes, found "0.1 B")");
  CHECK(complaint(parse_bytes, "0.3 KiB") == R"(expected a whole number of bytes, found "0.3 KiB")");
  CHECK(complaint(parse_bytes, "9223372036854775808 B") ==
        R"(expected at most 9223372036854775807 B (8 EiB), found "9223372036854775808 B")");
  CHECK(complaint(parse_bytes, "8388608 TiB") ==
        R"(expected at most 9223372036854775807 B (8 EiB), found "8388608 TiB")");
  CHECK(complaint(parse_bytes, std::string(50, '9') + " B").starts_with("expected at most 9223372036854775807 B"));

  CHECK(complaint(parse_bandwidth, "200G") ==
        "expected a rate such as \"25 GB/s\" or \"200 Gb/s\", found \"200G\"\n"
        "  hint: Gb/s is bits, GB/s is bytes; G is 10^9, Gi is 2^30");
  CHECK(complaint(parse_bandwidth, "0 GB/s") == R"(expected a rate of at least 1 B/s, found "0 GB/s")");
  CHECK(complaint(parse_bandwidth, "1 b/s") == R"(expected a whole number of bytes per second, found "1 b/s")");

  CHECK(complaint(parse_time, "1 h") ==
        "expected a time such as \"1.3 us\" or \"500 ns\", found \"1 h\"\n  hint: units are ps, ns, us, ms, s");
  CHECK(complaint(parse_time, "0.5 ps") == R"(expected a whole number of picoseconds, found "0.5 ps")");
  CHECK(complaint(parse_time, "9223373 s") ==
        R"(expected at most 9223372036854775807 ps (106 days), found "9223373 s")");
}

TEST_CASE("a quantity is written as the shortest text in one unit") {
  CHECK(format(0_B) == "0 B");
  CHECK(format(64_MiB) == "64 MiB");
  CHECK(format(1'000'003_B) == "1000003 B");
  CHECK(format(1'500'000'000_B) == "1.5 GB");
  CHECK(format(512_KiB) == "512 KiB");  // as long as 0.5 MiB, but not below 1
  CHECK(format(25_GBps) == "25 GB/s");
  CHECK(format(100_Gbps) == "12.5 GB/s");
  CHECK(format(1_Bps) == "1 B/s");
  CHECK(format(1'300'000_ps) == "1.3 us");
  CHECK(format(1'234'567_ps) == "1.234567 us");
  CHECK(format(187'904'819'200_ps) == "187904.8192 us");  // 187.9048192 ms has seven decimals
  CHECK(format(0_ps) == "0 ps");
}

TEST_CASE("what is written reads back to the same value") {
  std::mt19937_64 random(20240607);
  const auto check = [](std::int64_t value) {
    CAPTURE(value);
    CHECK(parse_bytes(format(Bytes{value})).count == value);
    CHECK(parse_time(format(Picoseconds{value})).count() == value);
    if (value > 0) CHECK(parse_bandwidth(format(Bandwidth{value})).bytes_per_second == value);
  };
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1023}, largest - 1, largest})
    check(value);
  for (int i = 0; i < 2000; ++i) {
    const auto value = static_cast<std::int64_t>(random() >> (1 + random() % 63));
    check(value);
    check(value / 1'000'000 * 1'000'000);  // round numbers take larger units
    check(value >> 20 << 20);
  }
}

}  // namespace quantity_test
