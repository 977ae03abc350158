// Chakra traces: what is read, and what is refused.
#include "algorithms/traces/chakra_reader.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/complaint.hpp"
#include "tests/support/made_chakra.hpp"
#include "tests/support/message_page.hpp"

namespace chakra_reader_test {

using namespace ringsim;
using namespace ringsim::traces;
using namespace ringsim::test;

namespace {

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>((value & 127U) | 128U);
  return out + static_cast<char>(value);
}

/// A message of these bytes, after the metadata.
std::string raw_node(const std::string& bytes) { return made_head() + varint(bytes.size()) + bytes; }

/// An attribute of a field of the format, as raw bytes: `tag` is the field's number times 8 plus its wire type.
std::string raw_attribute(const std::string& name, unsigned tag, const std::string& value) {
  const std::string inner = std::string("\x0a") + varint(name.size()) + name + varint(tag) + value;
  return std::string("\x52") + varint(inner.size()) + inner;
}

/// A node of communication with comm_size by these raw bytes.
ExecutionTrace with_size(unsigned tag, const std::string& value) {
  std::string bytes = std::string("\x08\x05\x18\x07", 4) + raw_attribute("comm_type", 9U << 3U, varint(0)) +
                      raw_attribute("comm_size", tag, value);
  return read_chakra(raw_node(bytes), "t.et");
}

}  // namespace

TEST_CASE("a Chakra trace gives nodes, dependencies, streams and what is communicated") {
  if (!has_chakra()) return;
  MadeNode cpu{.id = 3, .duration_us = 12, .name = "aten::mm", .stream = 2, .on_cpu = true, .start_us = 100};
  MadeNode called{
      .id = 4, .duration_us = 5, .data = {3}, .name = "c10d::allreduce_", .type = made_collective, .on_cpu = true};
  const ExecutionTrace trace =
      read_chakra(made_chakra({cpu,
                               called,
                               {.id = 7, .duration_us = 40, .data = {3}, .control = {4}, .stream = 7},
                               made_call(9, 4096, {7}, 2, "tp")}),
                  "t.et");
  CHECK(trace.version == "0.0.4");
  REQUIRE(trace.nodes.size() == 4);
  CHECK(trace.names[trace.nodes[0].name] == "aten::mm");
  CHECK(trace.nodes[0].on_cpu);
  CHECK(trace.nodes[0].stream == 2);
  CHECK(trace.nodes[0].start_us == 100);
  CHECK(trace.nodes[0].duration == Picoseconds{12'000'000});
  // The CPU's call of a collective computes; its kernel is the node that communicates.
  CHECK(trace.nodes[1].kind == TracedKind::compute);
  CHECK(trace.cpu_collectives == 1);
  CHECK(trace.nodes[2].n_data == 1);
  CHECK(trace.nodes[2].n_control == 1);
  CHECK(trace.waits == std::vector<std::uint64_t>{3, 3, 4, 7});
  CHECK(trace.nodes[3].kind == TracedKind::collective);
  const Communication& its = trace.communications.at(0);
  CHECK(its.op == CollectiveOp::all_gather);
  CHECK(its.input == Bytes{4096});
  CHECK(trace.names[its.group] == "tp");
}

TEST_CASE("an attribute may have any type of integer") {
  if (!has_chakra()) return;
  constexpr unsigned varints = 0, eight = 1, four = 5;
  const std::string fixed_4("\x00\x10\x00\x00", 4), fixed_8 = fixed_4 + std::string(4, '\0');
  for (const unsigned field : {7U, 9U, 11U, 13U})
    CHECK(with_size(field * 8 + varints, varint(4096)).communications.at(0).input == Bytes{4096});
  for (const unsigned field : {15U, 17U})  // zigzag
    CHECK(with_size(field * 8 + varints, varint(8192)).communications.at(0).input == Bytes{4096});
  for (const unsigned field : {19U, 23U})
    CHECK(with_size(field * 8 + four, fixed_4).communications.at(0).input == Bytes{4096});
  for (const unsigned field : {21U, 25U})
    CHECK(with_size(field * 8 + eight, fixed_8).communications.at(0).input == Bytes{4096});
}

TEST_CASE("a trace in pieces of any size is the same trace") {
  if (!has_chakra()) return;
  const std::string text = made_chakra({{.id = 1, .duration_us = 3}, {.id = 2, .data = {1}}, made_call(3, 128, {2})});
  for (std::size_t size = 1; size < 40; ++size) {
    CAPTURE(size);
    ChakraReader reader("t.et");
    for (std::size_t at = 0; at < text.size(); at += size) reader.feed(std::string_view(text).substr(at, size));
    const ExecutionTrace trace = reader.finish();
    CHECK(trace.nodes.size() == 3);
    CHECK(trace.waits == std::vector<std::uint64_t>{1, 2});
  }
}

TEST_CASE("metadata may be empty, and lists process groups as PyTorch does") {
  if (!has_chakra()) return;
  ChakraMessage groups{
      .id = 1,
      .name = "## process_group:init ##",
      .type = made_metadata,
      .control = {},
      .data = {},
      .start_us = 0,
      .duration_us = 0,
      .input_values = R"(['[{"pg_name": "0", "ranks": [0, 1, 2, 3]}, {"pg_name": "tp", "ranks": [1, 3]}]'])",
      .attributes = {}};
  std::string text(1, '\0');  // metadata of no bytes
  write_chakra_node(groups, text);
  const ExecutionTrace trace = read_chakra(text, "t.et");
  CHECK(trace.version.empty());
  CHECK(trace.nodes.at(0).kind == TracedKind::nothing);
  CHECK(trace.groups.at("0") == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(trace.groups.at("tp") == std::vector<std::uint32_t>{1, 3});
}

TEST_CASE("the head of a file may list process groups; what is no list of them is left out") {
  if (!has_chakra()) return;
  const auto groups_of = [](const std::string& list) {
    std::string text;
    write_chakra_head(
        {.name = "0.0.4", .control = {}, .data = {}, .input_values = {}, .attributes = {{head_groups, list}}}, text);
    write_chakra_node(
        {.id = 1, .name = "a", .type = 4, .control = {}, .data = {}, .input_values = {}, .attributes = {}}, text);
    return read_chakra(text, "t.et").groups;
  };
  const std::map<std::string, std::vector<std::uint32_t>> two{{"1", {0, 1}}, {"2", {1, 3}}};
  CHECK(groups_of(R"([{"pg_name": "1", "ranks": [0, 1]}, {"pg_name": "2", "ranks": [1, 3]}])") == two);
  CHECK(groups_of("no JSON").empty());
  CHECK(groups_of(R"({"1": [0, 1]})").empty());
}

TEST_CASE("a damaged or hostile Chakra trace is refused: where, what was expected, what was found, what to do") {
  if (!has_chakra()) return;
  const std::string ok = made_chakra({{.id = 1, .duration_us = 3}, made_call(2, 128, {1})});
  std::string deep, group = "\x63";  // field 12 starts a group, which may hold another
  for (int i = 0; i < 40; ++i) deep += group;
  for (int i = 0; i < 40; ++i) deep += "\x64";
  std::string shallow;
  for (int i = 0; i < 20; ++i) shallow += group;
  for (int i = 0; i < 20; ++i) shallow += "\x64";
  CHECK(read_chakra(raw_node("\x08\x05" + shallow), "t.et").nodes.size() == 1);
  MadeNode no_size = made_call(5, 1), no_type = made_call(5, 1), text_size = made_call(5, 1),
           odd_type = made_call(5, 1, {}, 10), negative = made_call(5, -1), new_kind{.id = 5, .type = 17},
           long_time{.id = 5, .duration_us = ~std::uint64_t{0}}, late{.id = 5, .start_us = ~std::uint64_t{0}},
           dimensions = made_call(5, 1);
  no_size.attributes.pop_back();
  no_type.attributes.erase(no_type.attributes.begin());
  text_size.attributes.back() = attribute("comm_size", "large");
  dimensions.attributes.push_back(attribute("involved_dim", 1));
  struct Hostile {
    const char* what;
    std::string text;
    TraceLimits limits = {};
  };
  const std::vector<Hostile> all{
      {"nothing", ""},
      {"metadata alone", made_head()},
      {"cut in a length", ok + "\x85"},
      {"cut in a message", ok.substr(0, ok.size() - 3)},
      {"a length beyond the file", made_head() + varint(1000) + "\x08\x05"},
      {"a length beyond the limit", made_head() + varint(std::uint64_t{1} << 40)},
      {"a length of 64 bits", made_head() + varint(~std::uint64_t{0})},
      {"a varint of 11 bytes", made_head() + std::string(10, '\x80') + "\x01"},
      {"a varint of 10 bytes beyond 64 bits", made_head() + std::string(9, '\x80') + "\x7f"},
      {"a varint of 11 bytes in a node", raw_node("\x08" + std::string(10, '\x80') + "\x01")},
      {"a field longer than its message", raw_node("\x12\x40kernel")},
      {"an unknown wire type", raw_node("\x0f")},
      {"a group without an end", raw_node("\x08\x05\x63")},
      {"groups 40 deep", raw_node("\x08\x05" + deep)},
      {"JSON", R"({"schema": "1.0.2-chakra.0.0.4", "nodes": []})"},
      {"text", "hello, this is no trace"},
      {"no comm_size", made_chakra({no_size})},
      {"no comm_type", made_chakra({no_type})},
      {"comm_size as a text", made_chakra({text_size})},
      {"a comm_type of a newer format", made_chakra({odd_type})},
      {"a negative size", made_chakra({negative})},
      {"a type of a newer format", made_chakra({new_kind})},
      {"a duration beyond 46 days", made_chakra({long_time})},
      {"a start beyond all clocks", made_chakra({late})},
      {"involved_dim as a number", made_chakra({dimensions})},
      {"more nodes than the limit", ok, {.nodes = 1}},
      {"more dependencies than the limit", ok, {.waits = 0}},
  };
  MessagePage page("chakra");
  for (const Hostile& each : all) {
    CAPTURE(each.what);
    page.add(each.what, complaint([&] { read_chakra(each.text, "t.et", each.limits); }));
  }
  page.check();
}

TEST_CASE("a build without libprotobuf says what was left out and what to install") {
  if (has_chakra()) return;
  const std::string said = complaint([] { ChakraReader("t.et"); });
  CHECK(said.find("built without libprotobuf") != std::string::npos);
  CHECK(said.find("libprotobuf-dev protobuf-compiler") != std::string::npos);
}

}  // namespace chakra_reader_test
