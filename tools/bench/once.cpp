// Runs one case in a process of its own and tells what it took, as one line of JSON. What the scripts of this folder
// call: figures.py, checks.py, instructions.sh.
//
//   ringsim_once --list
//   ringsim_once CASE [TIMES]     TIMES: how often the prepared case is run; 0: only made ready
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string_view>

#include "sim/base/error.hpp"
#include "tools/bench/cases.hpp"

namespace {

using namespace ringsim;

int list() {
  for (const bench::Case& known : bench::cases()) fmt::print("{}{}\n", known.name, known.slow ? " slow" : "");
  return 0;
}

int times_of(std::string_view text) {
  int times = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), times);
  if (error != std::errc{} || end != text.data() + text.size() || times < 0)
    throw InputError("TIMES", fmt::format("expected a count, found \"{}\"", text));
  return times;
}

int run_case(const bench::Case& chosen, int times) {
  const bench::Prepared ready = bench::prepare(chosen);
  double best = 0;
  Timeline timeline;
  for (int i = 0; i < times; ++i) {
    const double start = bench::cpu_seconds();
    timeline = run(ready.topology, ready.checked, ready.options);
    const double taken = bench::cpu_seconds() - start;
    best = i == 0 ? taken : std::min(best, taken);
  }
  const bool in_packets = moves_packets(ready.options.model);
  fmt::print(R"({{"case": "{}", "build_s": {}, "proof_s": {}, "run_s": {}, "peak_MiB": {}, "transfers": {}, )"
             R"("events": {}, "packets": {}, "finish_ps": {}, "fingerprint": "{:016x}", "folded": {}}})"
             "\n",
             chosen.name, ready.build_seconds, ready.proof_seconds, best, bench::peak_mib(), timeline.transfers,
             timeline.events, in_packets ? bench::packets_of(ready.checked.schedule(), ready.options.packet.mtu) : 0,
             timeline.duration().count(), timeline.fingerprint.value_or(0), timeline.folded.has_value());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() == 1 && arguments[0] == "--list") return list();
    if (arguments.empty() || arguments.size() > 2) {
      std::cerr << "usage: ringsim_once --list | CASE [TIMES]\n";
      return 2;
    }
    return run_case(bench::find_case(std::string(arguments[0])), arguments.size() == 2 ? times_of(arguments[1]) : 1);
  } catch (const InputError& error) {
    std::cerr << "ringsim_once: error: " << error.what() << '\n';
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "ringsim_once: error: " << error.what() << '\n';
    return 4;
  }
}
