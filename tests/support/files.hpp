// Samples of other programs' files, and ways to damage them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.hpp"

namespace ringsim::test {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in, path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The files of a folder with that extension, sorted; none if there is no such folder.
inline std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder, const std::string& extension) {
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::filesystem::path sample(const std::string& name) {
  return std::filesystem::path(source_dir()) / "tests/data/machines" / name;
}

/// The text with the first `what` replaced.
inline std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  REQUIRE_MESSAGE(at != std::string::npos, what);
  return text.replace(at, what.size(), with);
}

/// The text after an accident: some bytes changed, a piece deleted, doubled, or the end cut off.
inline std::string damaged(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? std::size_t{0} : random() % n; };
  const std::size_t at = below(text.size()), length = below(std::min<std::size_t>(text.size() - at, 80)) + 1;
  switch (below(5)) {
    case 0:
      for (std::size_t i = 0; i <= below(3); ++i) text[below(text.size())] = static_cast<char>(random() & 0xFF);
      return text;
    case 1:
      for (std::size_t i = 0; i <= below(3); ++i) text[below(text.size())] = "0123456789\"<>/= \t\nXx"[below(20)];
      return text;
    case 2:
      return text.erase(at, length);
    case 3:
      return text.insert(at, text.substr(at, length));
    default:
      return text.substr(0, at);
  }
}

/// pairs.xml, two GPUs that have a NIC each at their PCIe switch, as NCCL writes it without nvidia-peermem.
inline std::string pairs_without_gpudirect() {
  std::string xml = read_file(sample("pairs.xml"));
  for (std::size_t at = 0; (at = xml.find("gdr=\"1\"", at)) != std::string::npos;) xml.replace(at, 7, "gdr=\"0\"");
  return xml;
}
/// Two such nodes, of which NCCL's file is at that path.
inline std::string two_nodes_of(const std::string& xml_file) {
  return R"({"version": 1, "library": {"name": "nccl", "env": {"NCCL_ALGO": "Ring"}}, "topology": {"kind": "nccl_xml", "nodes": 2, "file": ")" +
         xml_file +
         R"(", "fabric": {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}},
      "collective": {"op": "all_reduce", "bytes": "256 MiB"}})";
}

}  // namespace ringsim::test
