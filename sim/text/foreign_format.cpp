#include "sim/text/foreign_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json_scan.hpp"

namespace ringsim {

namespace {

constexpr const char* times_instead =
    "for times of collectives give an nccl-tests log, or CSV with the columns collective, ranks, bytes, time_us; for "
    "a training step a scenario with \"training\"";
constexpr const char* profiles_instead =
    "`ringsim trace show` reads it; `ringsim trace compare` compares its collectives with predictions";
constexpr const char* astra_instead =
    "to convert it to a scenario, run `ringsim topology import network.yml --system system.json --bytes 64MiB -o "
    "scenario.json`";
constexpr const char* nsight_export =
    "`nsys export --type sqlite --include-blobs=true REPORT.nsys-rep` writes the SQLite file that `ringsim trace show` "
    "reads";
constexpr const char* chakra_instead =
    "`ringsim trace show` reads it; to simulate it on a machine, write a scenario with \"trace\": {\"files\": "
    "\"job.{rank}.et\"}";
constexpr const char* scenario_instead =
    "describe the machine and the collective in a scenario: `ringsim list keys` lists the keys, and `ringsim list "
    "topologies` the fabrics";

ForeignFormat not_yet(const std::string& name, const std::string& instead) {
  return {name + ", which ringsim does not read yet", instead, false};
}

ForeignFormat profile(const std::string& name) { return {name, profiles_instead, true}; }

/// The bytes by which a format is recognized.
struct Magic {
  std::string_view bytes;
  std::size_t at;
  const char* name;
  const char* instead;
};

constexpr const char* unpack = "unpack it and use the file inside";
constexpr std::array magics = std::to_array<Magic>({
    {std::string_view("PK\3\4", 4), 0, "a zip archive", unpack},
    {"\x1f\x8b", 0, "a gzip file inside a gzip file", unpack},  // the outer one is unpacked already
    {"\x28\xB5\x2F\xFD", 0, "a file compressed with zstd", unpack},
    {std::string_view("\xFD\x37zXZ\0", 6), 0, "a file compressed with xz", unpack},
    {"BZh", 0, "a file compressed with bzip2", unpack},
    {"ustar", 257, "a tar archive", unpack},
    {"PAR1", 0, "a Parquet table", "convert it to CSV"},
    {"\x89HDF\r\n\x1a\n", 0, "an HDF5 file", "convert its table to CSV"},
});

bool is_at(std::string_view text, const Magic& magic) {
  return text.size() > magic.at && text.substr(magic.at).starts_with(magic.bytes);
}

bool has_bytes(std::string_view text, std::string_view bytes) { return text.find(bytes) != std::string_view::npos; }

/// Reports of Nsight Systems, and what `nsys export --type sqlite` writes.
std::optional<ForeignFormat> nsight(std::string_view text) {
  // QuadDAnalysis::ReportFile::verifyVersionTag() requires this prefix (ray-project/ray#46240).
  if (text.starts_with("NVIDIA Tegra Profiler Report")) return ForeignFormat{"an Nsight Systems report", nsight_export};
  if (!text.starts_with(std::string_view("SQLite format 3\0", 16))) return std::nullopt;
  for (const char* table : {"CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "NVTX_EVENTS", "META_DATA_EXPORT"})
    if (has_bytes(text, table)) return profile("an Nsight Systems report exported to SQLite");
  return ForeignFormat{"an SQLite database",
                       "convert its table to CSV; for ringsim results, use `ringsim merge -o FILE.csv`"};
}

/// A pickle begins with its protocol from protocol 2 on, then a frame from protocol 4 on (Python's pickletools). Flight
/// Recorder writes protocol 2 (PyTorch, torch/csrc/jit/serialization/pickler.cpp).
std::optional<ForeignFormat> pickle(std::string_view text) {
  if (text.size() < 4 || text[0] != '\x80' || text[1] < 2 || text[1] > 5) return std::nullopt;
  if (text[1] >= 4 && text[2] != '\x95') return std::nullopt;
  return ForeignFormat{
      "a Python pickle (such as a PyTorch Flight Recorder dump)",
      "a pickle can run code, so ringsim never opens one, and you should open only your own; to convert your own dump "
      "to JSON, which `ringsim trace show` reads, run: python3 -c 'import json, pickle, sys; "
      "json.dump(pickle.load(open(sys.argv[1], \"rb\")), open(sys.argv[1] + \".json\", \"w\"))' FILE"};
}

/// Reads fields of a protobuf message, one after another.
class Protobuf {
 public:
  explicit Protobuf(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  /// A length, and as many bytes.
  std::optional<std::string_view> counted() {
    const auto size = varint();
    if (!size || *size > bytes_.size()) return std::nullopt;
    const std::string_view value = bytes_.substr(0, *size);
    bytes_.remove_prefix(*size);
    return value;
  }
  /// The next field's number and wire type; skips its value. Nothing if there is no valid field.
  std::optional<std::pair<std::uint64_t, unsigned>> field() {
    const auto tag = varint();
    if (!tag || (*tag >> 3U) == 0) return std::nullopt;
    const auto kind = static_cast<unsigned>(*tag & 7U);
    const std::size_t fixed = kind == 1 ? 8 : 4;
    const bool known = kind == 0   ? varint().has_value()
                       : kind == 2 ? counted().has_value()
                                   : (kind == 1 || kind == 5) && bytes_.size() >= fixed;
    if (!known) return std::nullopt;
    if (kind == 1 || kind == 5) bytes_.remove_prefix(fixed);
    return std::pair{*tag >> 3U, kind};
  }

 private:
  std::string_view bytes_;
};

/// True if all fields of a message have numbers up to `most`, and, if asked for, field 1 is there.
bool is_message(std::string_view bytes, std::uint64_t most, bool needs_first) {
  bool has_first = false;
  for (Protobuf message(bytes); !message.at_end();) {
    const auto field = message.field();
    if (!field || field->first > most) return false;
    has_first = has_first || *field == std::pair{std::uint64_t{1}, 0U};
  }
  return has_first || !needs_first;
}

std::optional<ForeignFormat> chakra(std::string_view text) {
  if (!is_chakra_trace(text)) return std::nullopt;
  return ForeignFormat{"a Chakra execution trace (.et)", chakra_instead};
}

/// The first keys of a JSON document, or of the first object of its list or lines.
class Keys {
 public:
  explicit Keys(std::string_view text) : is_list_(is_json_list(text)), keys_(first_keys(text)) {}

  bool any() const { return !keys_.empty(); }
  bool is_list() const { return is_list_; }
  bool all(std::initializer_list<const char*> wanted) const {
    return std::all_of(wanted.begin(), wanted.end(), [&](const char* key) { return keys_.contains(key); });
  }
  bool some(std::initializer_list<const char*> wanted) const {
    return std::any_of(wanted.begin(), wanted.end(), [&](const char* key) { return keys_.contains(key); });
  }
  /// The text of that key's value.
  std::string_view value(const char* key) const {
    const auto found = keys_.find(key);
    return found == keys_.end() ? std::string_view() : found->second;
  }

 private:
  bool is_list_;
  std::map<std::string, std::string_view, std::less<>> keys_;
};

std::optional<ForeignFormat> json_trace(const Keys& keys) {
  if (keys.some({"traceEvents", "deviceProperties"}) &&
      keys.some({"schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds"}))
    return profile("a PyTorch profiler (Kineto) trace");
  if (keys.all({"traceEvents"}) || (keys.is_list() && keys.all({"ph"}) && keys.some({"ts", "pid", "args"})))
    return not_yet("a trace in Chrome's trace event format", times_instead);
  if (keys.all({"schema"}) && (keys.all({"nodes"}) || has_bytes(keys.value("schema"), "chakra")))
    return not_yet("a Chakra execution trace (JSON)",
                   "convert it to .et with chakra_converter; `ringsim trace show` reads that");
  if (keys.all({"entries"}) && keys.some({"pg_config", "pg_status", "nccl_comm_state"}))
    return ForeignFormat{"a PyTorch Flight Recorder dump",
                         "to find out why the job hangs, run `ringsim trace show` on the dumps of all ranks"};
  const bool inspects = keys.some({"inspector_output_format_version", "coll_perf", "p2p_perf"}) ||
                        has_bytes(keys.value("metadata"), "inspector_output_format_version");
  if (inspects) return profile("output of NCCL Inspector");
  return std::nullopt;
}

/// ASTRA-sim's system.json, its analytical network (yml, and before 2023 JSON), and logical topology.
std::optional<ForeignFormat> astra_sim(const Keys& keys, std::string_view text) {
  if (keys.some({"scheduling-policy", "active-chunks-per-dimension", "preferred-dataset-splits",
                 "all-reduce-implementation", "endpoint-delay"}))
    return ForeignFormat{"an ASTRA-sim system (system.json)", astra_instead};
  if (keys.some({"topologies-per-dim", "logical-dims"}) || keys.all({"topology-name", "dimensions-count"}))
    return not_yet("an ASTRA-sim network", scenario_instead);
  if (keys.any() || !is_astra_network(text)) return std::nullopt;
  return ForeignFormat{"an ASTRA-sim network (network.yml)", astra_instead};
}

}  // namespace

bool is_astra_network(std::string_view beginning) {
  constexpr std::size_t first_lines = 4096;
  beginning = beginning.substr(0, first_lines);
  constexpr std::array lines = std::to_array<const char*>({"topology:", "npus_count:", "bandwidth:", "latency:"});
  const auto has_line = [&](const std::string& key) {
    return beginning.starts_with(key) || has_bytes(beginning, '\n' + key);
  };
  return std::count_if(lines.begin(), lines.end(), has_line) >= 3;
}

// Length-delimited messages, first a GlobalMetadata (a version and attributes), then Nodes, whose first field is their
// id (mlcommons/chakra, schema/protobuf/et_def.proto).
bool is_chakra_trace(std::string_view beginning) {
  constexpr std::uint64_t head_fields = 2, node_fields = 11;
  Protobuf file(beginning);
  const auto metadata = file.counted(), node = file.counted();
  return metadata && node && !node->empty() && is_message(*metadata, head_fields, false) &&
         is_message(*node, node_fields, true);
}

std::optional<ForeignFormat> foreign_format(std::string_view beginning) {
  for (const Magic& magic : magics)
    if (is_at(beginning, magic)) return ForeignFormat{magic.name, magic.instead};
  for (const auto recognize : {nsight, pickle, chakra})
    if (auto format = recognize(beginning)) return format;
  const Keys keys(beginning);
  if (auto format = json_trace(keys)) return format;
  return astra_sim(keys, beginning);
}

void refuse_foreign_format(std::string_view beginning, const std::string& where, const std::string& expected) {
  if (const auto format = foreign_format(beginning))
    throw InputError(where, fmt::format("expected {}, found {}", expected, format->name), format->instead);
}

}  // namespace ringsim
