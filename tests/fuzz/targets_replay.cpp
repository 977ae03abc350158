// What other processes of a replay say, the file that names them, and the table of a probe.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/fuzz/laws.hpp"
#include "tests/fuzz/targets.hpp"
#include "validate/replay/gpu/gpu_model.hpp"
#include "validate/replay/gpu/probe.hpp"
#include "validate/replay/tcp/hosts.hpp"
#include "validate/replay/tcp/lines.hpp"

namespace ringsim::fuzz {

namespace {

using namespace ringsim::replay;

/// False if it is a BadLine, whose words are our own.
bool takes(const std::function<void()>& take) {
  try {
    take();
    return true;
  } catch (const BadLine& error) {
    const std::string_view message = error.what();
    law(message.starts_with("expected ") && message.size() < 200, "a line is refused in words of our own");
    return false;
  }
}

void check_text(const std::string& text, std::size_t most) {
  law(text.size() <= most, "a text is no longer than it may be");
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', end + 1))
    law(text.compare(end + 1, 2, "  ") == 0, "further lines are indented");
  law(cut_text(text).size() <= longest_text, "a text is cut");
}

}  // namespace

bool read_replay_line(std::string_view text) {
  return takes([&] {
    const LineJson line = parse_line(text);
    law(parse_line(line.dump()) == line, "a line is read back");
    takes([&] { expect_members(line, {"times_ns", "wrong", "first_wrong"}); });
    for (const std::string name :
         {"process", "port", "key", "nonce", "proof", "connected", "notes", "ready", "times_ns", "wrong", "first_wrong",
          "failed", "kind", "abort", "refused", "ports", "begin_ns"}) {
      takes([&] {
        const std::int64_t number = line_whole(line, name.c_str(), -3, 65535);
        law(number >= -3 && number <= 65535, "a number lies within its bounds");
      });
      takes([&] { check_text(line_text(line, name.c_str(), 64), 64); });
      takes([&] { law(line_digits(line, name.c_str()).size() == 64, "there are 64 digits"); });
      takes([&] {
        for (const std::int64_t number : line_wholes(line, name.c_str(), 0, INT64_MAX, 8))
          law(number >= 0, "numbers lie within their bounds");
      });
      takes([&] {
        for (const std::string& each : line_texts(line, name.c_str(), 16, 8)) check_text(each, 16);
      });
    }
  });
}

bool read_hosts_file(std::string_view text) {
  return reads_or_refuses([&] {
    const MemoryFile file(text);
    const TcpHosts hosts = read_hosts(file.path());
    law(!hosts.hosts.empty() && hosts.port > 0, "a file of hosts has a host and a port");
    for (const std::string& host : hosts.hosts)
      law(!host.empty() && std::all_of(host.begin(), host.end(), [](char c) { return c < 0 || (c > ' ' && c < 127); }),
          "a host is a name or an address");
  });
}

bool read_probe_table(std::string_view text) {
  return reads_or_refuses([&] {
    const gpu::Probe probe = gpu::read_probe(text, "probe.csv");
    for (const gpu::Sample& sample : probe.samples) {
      law(sample.time >= Picoseconds{0}, "a time is not negative");
      if (const auto line = probe.line(sample.asked, sample.from, sample.to, sample.blocks))
        law(line->rate.bytes_per_second > 0, "a rate is above 0");
      probe.least(sample.asked, sample.from, sample.to);
    }
    const std::string written = gpu::to_csv(probe);
    law(gpu::to_csv(gpu::read_probe(written, "again.csv")) == written, "a probe's table is read again");
  });
}

}  // namespace ringsim::fuzz
