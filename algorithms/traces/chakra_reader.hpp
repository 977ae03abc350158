// Reads Chakra execution traces (mlcommons/chakra): a message of metadata, then a message per node, each after its
// length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "algorithms/traces/chakra_messages.hpp"
#include "algorithms/traces/execution_trace.hpp"

namespace ringsim::traces {

/// Bounds on what a file may ask for.
struct TraceLimits {
  std::uint64_t message_bytes = std::uint64_t{8} << 20;  // parsed, a hostile one takes 70 times as much
  std::size_t nodes = std::size_t{1} << 24;
  std::size_t waits = std::size_t{1} << 28;
};

/// Takes an unpacked file piece by piece; of the file one message at a time is kept.
///
/// COMM_COLL_NODE with is_cpu_op true is compute: the CPU's call of a collective, whose kernel is another node.
/// Attributes are found by name; integers may have any type. A kernel's stream is the attribute `stream`, else `tid`,
/// as traces of 2024 have it. Nodes of memory and storage take their recorded time.
class ChakraReader {
 public:
  /// `file`: as errors call it. Throws InputError in a build without libprotobuf.
  explicit ChakraReader(std::string file, TraceLimits limits = {});

  /// Throws InputError that names file and byte, or node.
  void feed(std::string_view piece);
  /// Throws InputError if the file ends within a message, or has no node.
  ExecutionTrace finish();

 private:
  [[noreturn]] void fail(std::uint64_t at, const std::string& expected, const std::string& found,
                         const std::string& hint = "") const;
  /// For what does not end, or has no sense: what it may be.
  std::string hint_of_damage() const;
  [[noreturn]] void fail_node(const std::string& expected, const std::string& found,
                              const std::string& hint = "") const;
  void take(std::string_view bytes);
  void take_head();
  void take_node();
  void take_communication(TraceNode& node);
  /// Reads a JSON list of groups. Entries of another form are left out: then groups must be stated.
  void take_groups(std::string_view list);
  const ChakraAttribute* find(std::string_view name) const;
  /// An integer attribute from `least` to `most`; `otherwise` if the node has none.
  std::int64_t whole(std::string_view name, std::int64_t least, std::int64_t most, std::int64_t otherwise) const;
  std::string text(std::string_view name) const;
  std::uint32_t name_of(const std::string& text);
  Picoseconds time(std::uint64_t us, const char* field) const;

  TraceLimits limits_;
  ExecutionTrace out_;
  ChakraMessage message_;                                 ///< the one that is read
  std::unordered_map<std::string, std::uint32_t> known_;  ///< names
  std::uint64_t read_ = 0;                                ///< bytes
  std::uint64_t began_ = 0;                               ///< where the message, or its length, begins
  std::uint64_t length_ = 0;
  int length_bytes_ = 0;  ///< of the length that is read
  bool in_message_ = false, has_head_ = false;
  char first_ = '\0';  ///< byte of the file
  std::string kept_;   ///< what earlier pieces have of the message
};

/// Reads a whole file that is in memory.
ExecutionTrace read_chakra(std::string_view text, const std::string& file, TraceLimits limits = {});

}  // namespace ringsim::traces
