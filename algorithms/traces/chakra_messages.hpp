// The messages of a Chakra trace, by libprotobuf in builds that have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ringsim::traces {

/// Nested messages, and groups that no field has, may lie so deep in a message.
inline constexpr int most_nested_messages = 32;

/// False in a build without libprotobuf; then why_no_chakra() says what was left out and what to do.
bool has_chakra();
const char* why_no_chakra();

struct ChakraAttribute {
  std::string name;
  /// Integers of any type, and true and false, as integers. monostate: a list, or a type that no attribute here has.
  std::variant<std::monostate, std::int64_t, std::uint64_t, double, std::string, std::vector<bool>> value;
};

/// The attribute of a file's head in which ringsim lists process groups: [{"pg_name": "1", "ranks": [0, 1]}].
/// Converters of PyTorch's traces have the same list in a node, "## process_group:init ##".
inline constexpr const char* head_groups = "process_groups";

/// A node as it is written; the head of a file has only a version, in `name`, and attributes.
struct ChakraMessage {
  std::uint64_t id = 0;
  std::string name;
  std::int32_t type = 0;
  std::vector<std::uint64_t> control, data;
  std::uint64_t start_us = 0, duration_us = 0;
  std::string input_values;
  std::vector<ChakraAttribute> attributes;
};

/// Both read the bytes of one message, without its length. False: it is damaged. Require has_chakra().
bool read_chakra_head(std::string_view bytes, ChakraMessage& out);
bool read_chakra_node(std::string_view bytes, ChakraMessage& out);

/// Append a message with its length. Require has_chakra().
void write_chakra_head(const ChakraMessage& message, std::string& out);
void write_chakra_node(const ChakraMessage& message, std::string& out);

}  // namespace ringsim::traces
