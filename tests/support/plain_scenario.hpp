// A scenario of few words, and others that differ from it in some.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace ringsim::test {

using Texts = std::vector<std::string>;

inline constexpr const char* plain = R"({"version": 1,
  "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})";

/// The plain scenario with `from` replaced.
inline std::string changed(const std::string& from, const std::string& to, std::string text = plain) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// The plain scenario with further keys at its end.
inline std::string extended(const std::string& keys) { return changed(R"("64 MiB"}})", R"("64 MiB"}, )" + keys + "}"); }

inline ScenarioFile parse(const std::string& text, const Texts& overrides = {}) {
  return ScenarioFile::parse(text, "s.json", overrides);
}
inline Scenario only(const std::string& text, const Texts& overrides = {}) {
  const ScenarioFile file = parse(text, overrides);
  REQUIRE(file.size() == 1);
  return file.point(0);
}
inline std::string hash(const std::string& text, const Texts& overrides = {}) { return parse(text, overrides).hash(); }

}  // namespace ringsim::test
