// A probe's table, read back.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sim/base/error.hpp"
#include "validate/replay/gpu/gpu_model.hpp"

namespace ringsim::replay::gpu {

namespace {

/// No host has more.
constexpr Place most_gpus = 1024;

/// The most characters of the text found that an error shows.
constexpr std::size_t most_shown = 60;

constexpr std::string_view head = "what,from,to,blocks,bytes,time_us,min_us,max_us,GBps";

class SampleRow {
 public:
  SampleRow(std::string_view line, std::string where) : where_(std::move(where)) {
    while (true) {
      const std::size_t comma = line.find(',');
      cells_.push_back(line.substr(0, comma));
      if (comma == std::string_view::npos) break;
      line.remove_prefix(comma + 1);
    }
    if (cells_.size() != 9) throw InputError(where_, fmt::format("expected {}, found {} cells", head, cells_.size()));
  }
  Sample sample() const {
    return {.asked = asked(cells_[0]),
            .from = place(cells_[1]),
            .to = place(cells_[2]),
            .blocks = number<int>(cells_[3]),
            .bytes = {number<std::int64_t>(cells_[4])},
            .time = time(cells_[5]),
            .min = time(cells_[6]),
            .max = time(cells_[7])};
  }

 private:
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw InputError(where_, fmt::format("expected {}, found \"{}\"", expected, found.substr(0, most_shown)));
  }
  template <class Number>
  Number number(std::string_view text) const {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0) fail("a number from 0 on", text);
    return value;
  }
  Picoseconds time(std::string_view text) const {
    const auto us = number<double>(text);
    if (!(us < 1e12)) fail("a time in microseconds", text);
    return Picoseconds(std::llround(us * 1e6));
  }
  Place place(std::string_view text) const {
    if (text == "host") return host_memory;
    if (!text.starts_with("gpu")) fail("host or gpu0, gpu1...", text);
    const auto gpu = number<Place>(text.substr(3));
    if (gpu >= most_gpus) fail(fmt::format("at most {} GPUs", most_gpus), text);
    return gpu;
  }
  Asked asked(std::string_view text) const {
    for (const Asked each : {Asked::copy, Asked::kernel, Asked::both_ways, Asked::fan_out, Asked::add, Asked::call,
                             Asked::node, Asked::hop, Asked::issue, Asked::events, Asked::launch})
      if (to_string(each) == text) return each;
    fail("what `ringsim probe` measures", text);
  }

  std::string where_;
  std::vector<std::string_view> cells_;
};

}  // namespace

Probe read_probe(std::string_view text, const std::string& file) {
  Probe probe;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string where = fmt::format("{}:{}", file, line);
    if (line == 1 && row != head)
      throw InputError(where, fmt::format("expected {}, found \"{}\"", head, row.substr(0, most_shown)),
                       "`ringsim probe --samples` writes it");
    if (line > 1) probe.samples.push_back(SampleRow(row, where).sample());
  }
  for (const Sample& sample : probe.samples) probe.gpus = std::max({probe.gpus, sample.from + 1, sample.to + 1});
  if (probe.samples.empty()) throw InputError(file, "expected samples, found none");
  return probe;
}

}  // namespace ringsim::replay::gpu
