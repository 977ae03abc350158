// Chakra traces that are made up, as chakra_converter writes them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/traces/chakra_messages.hpp"

namespace ringsim::test {

/// Types of nodes in the file.
enum MadeType : std::int32_t {
  made_metadata = 1,
  made_memory = 2,
  made_compute = 4,
  made_send = 5,
  made_receive = 6,
  made_collective = 7
};

struct MadeNode {
  std::uint64_t id = 0;
  std::uint64_t duration_us = 0;
  std::vector<std::uint64_t> data{}, control{};
  std::string name = "kernel";
  std::int32_t type = made_compute;
  std::int64_t stream = 7;
  bool on_cpu = false;
  std::uint64_t start_us = 0;
  std::vector<traces::ChakraAttribute> attributes{};
};

inline traces::ChakraAttribute attribute(std::string name, std::int64_t value) { return {std::move(name), value}; }
inline traces::ChakraAttribute attribute(std::string name, const char* value) {
  return {std::move(name), std::string(value)};
}

/// A kernel that calls a collective; types as the format counts them: 0 all_reduce, 2 all_gather, 6 all_to_all.
inline MadeNode made_call(std::uint64_t id, std::int64_t bytes, std::vector<std::uint64_t> data = {},
                          std::int64_t type = 0, const char* group = nullptr) {
  MadeNode out{.id = id, .data = std::move(data), .name = "ncclDevKernel", .type = made_collective, .stream = 14};
  out.attributes = {attribute("comm_type", type), attribute("comm_size", bytes)};
  if (group != nullptr) out.attributes.push_back(attribute("pg_name", group));
  return out;
}

inline std::string made_message(const MadeNode& node) {
  traces::ChakraMessage message{.id = node.id,
                                .name = node.name,
                                .type = node.type,
                                .control = node.control,
                                .data = node.data,
                                .start_us = node.start_us,
                                .duration_us = node.duration_us,
                                .input_values = {},
                                .attributes = {attribute("is_cpu_op", node.on_cpu ? 1 : 0),
                                               attribute(node.on_cpu ? "tid" : "stream", node.stream)}};
  message.attributes.insert(message.attributes.end(), node.attributes.begin(), node.attributes.end());
  std::string out;
  traces::write_chakra_node(message, out);
  return out;
}

inline std::string made_head(const std::string& version = "0.0.4") {
  std::string out;
  traces::write_chakra_head({.name = version}, out);
  return out;
}

inline std::string made_chakra(const std::vector<MadeNode>& nodes) {
  std::string out = made_head();
  for (const MadeNode& node : nodes) out += made_message(node);
  return out;
}

}  // namespace ringsim::test
