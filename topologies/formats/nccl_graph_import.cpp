#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/spelling.hpp"
#include "sim/text/xml_tree.hpp"
#include "topologies/formats/nccl_graph.hpp"

namespace ringsim::nccl {

namespace {

/// The types that NCCL writes and reads (kvDictLinkType of src/graph/search.cc).
constexpr std::array graph_types{PathType::loc, PathType::nvl, PathType::nvb, PathType::pix, PathType::pxb,
                                 PathType::p2c, PathType::pxn, PathType::phb, PathType::sys};
constexpr int highest_pattern = 6;
/// More than any link brings: a slip of the finger, or a number in other units.
constexpr double highest_speed = 1e6;

class GraphReader {
 public:
  GraphReader(const std::string& file, const GraphReading& reading) : file_(file), reading_(reading) {
    for (const auto& [dev, gpu] : reading.devices.gpus) rank_of_.emplace(gpu, static_cast<int>(rank_of_.size()));
  }

  GraphFile read(const XmlElement& root) {
    if (root.name != "graphs")
      fail(root, fmt::format("expected NCCL's graph XML with the root <graphs>, found <{}>", root.name),
           root.name == "system" ? "this is NCCL's topology XML (NCCL_TOPO_FILE); use it as topology.file"
                                 : "NCCL writes this file if NCCL_GRAPH_DUMP_FILE is set");
    if (const std::string& version = text(root, "version"); version != "1")
      fail(root, fmt::format("expected version \"1\" of <graphs>, found \"{}\"", version),
           "NCCL refuses other versions as well");
    say_of_others(root, {"version", "name"});
    std::map<int, int> lines;  // by id
    for (const XmlElement& element : root.children) {
      if (!is_read(element, "graph", root)) continue;
      const int id = number(element, "id", 0, 1'000'000);
      const auto [first, is_new] = lines.emplace(id, static_cast<int>(element.line));
      if (!is_new)
        fail(element, fmt::format("expected each id once, found {} again (first on line {})", id, first->second));
      if (id > static_cast<int>(SearchGraph::Id::collnet_direct)) {
        warn(element, fmt::format("<graph> of id {} has no effect: NCCL uses ids 0 to 4", id));
        continue;
      }
      read_graph(element, static_cast<SearchGraph::Id>(id));
    }
    return std::move(out_);
  }

 private:
  using Id = SearchGraph::Id;

  [[noreturn]] void fail(const XmlElement& at, const std::string& message, const std::string& hint = "") const {
    throw InputError(fmt::format("{}:{}", file_, at.line), message, hint);
  }
  void warn(const XmlElement& at, const std::string& message) {
    out_.warnings.push_back(fmt::format("{}:{}: {}", file_, at.line, message));
  }

  const std::string& text(const XmlElement& at, const char* name) const {
    const std::string* found = at.find(name);
    if (found == nullptr) fail(at, fmt::format("expected the attribute {} of <{}>, found none", name, at.name));
    return *found;
  }
  int number(const XmlElement& at, const char* name, int least, int most) const {
    const std::string& found = text(at, name);
    int value = 0;
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (error != std::errc{} || end != found.data() + found.size() || value < least || value > most)
      fail(at, fmt::format("expected {} of <{}> to be a whole number from {} to {}, found \"{}\"", name, at.name, least,
                           most, found));
    return value;
  }
  /// `positive`: more than 0; else 0 is allowed as well.
  double decimal(const XmlElement& at, const char* name, bool positive, const char* unit) const {
    const std::string& found = text(at, name);
    double value = 0;
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (error != std::errc{} || end != found.data() + found.size() || !std::isfinite(value) || value < 0 ||
        value > highest_speed || (positive && value == 0))
      fail(at, fmt::format("expected {} of <{}> to be a number of {}{}, found \"{}\"", name, at.name, unit,
                           positive ? " above 0" : " from 0 on", found));
    return value;
  }
  PathType type(const XmlElement& at, const char* name) const {
    const std::string& found = text(at, name);
    std::vector<std::string_view> names;
    for (const PathType each : graph_types) {
      if (to_string(each) == found) return each;
      names.push_back(to_string(each));
    }
    fail(at, fmt::format("expected {} of <{}> to be one of {}, found \"{}\"", name, at.name, fmt::join(names, ", "),
                         found));
  }
  /// Other elements are not NCCL's; it passes over them as well.
  bool is_read(const XmlElement& element, std::string_view name, const XmlElement& parent) {
    if (element.name == name) return true;
    warn(element, fmt::format("<{}> within <{}> has no effect: NCCL has no such element", element.name, parent.name));
    return false;
  }
  void say_of_others(const XmlElement& at, std::initializer_list<std::string_view> known) {
    for (const auto& [name, value] : at.attributes)
      if (std::find(known.begin(), known.end(), name) == known.end())
        warn(at, fmt::format("{} of <{}> has no effect: NCCL has no such attribute", name, at.name));
  }

  /// `dev` as NCCL's strtol reads it, but nothing may follow the number.
  int dev_of(const XmlElement& at) const {
    const std::string& found = text(at, "dev");
    std::string_view digits = found;
    int base = reading_.hexadecimal ? 16 : 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      base = 16;
      digits.remove_prefix(2);
    } else if (!reading_.hexadecimal && digits.size() > 1 && digits.front() == '0') {
      base = 8;
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < 0)
      fail(at,
           fmt::format("expected dev of <{}> to be a {} number, found \"{}\"", at.name,
                       reading_.hexadecimal ? "hexadecimal" : "whole", found),
           reading_.hexadecimal ? "NCCL 2.21 and later read it as hexadecimal: 10 is 16, 0xa is 10" : "");
    return value > highest_dev ? highest_dev : static_cast<int>(value);
  }
  static constexpr int highest_dev = 1 << 30;  // of no device

  const std::string& device(const XmlElement& at, const std::map<int, std::string>& devices, const char* what) const {
    const int dev = dev_of(at);
    if (const auto found = devices.find(dev); found != devices.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [number, name] : devices) known.push_back(fmt::format("{:#x} ({})", number, name));
    fail(at,
         fmt::format("expected dev of <{}> to be that of {}, found \"{}\"; there {} {}", at.name, what, text(at, "dev"),
                     known.empty() ? "is" : "are", known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))),
         "use a file for this machine, or the machine of this file");
  }

  const std::string& gpu(const XmlElement& at) {
    say_of_others(at, {"dev", "rank"});
    const std::string& name = device(at, reading_.devices.gpus, "a participating GPU");
    if (at.find("rank") == nullptr) return name;
    if (const int rank = number(at, "rank", 0, 1'000'000); rank != rank_of_.at(name))
      fail(at,
           fmt::format("expected rank {} for the GPU of dev {}, found {}", rank_of_.at(name), text(at, "dev"), rank),
           "remove rank: NCCL then finds the GPU by dev, on every node");
    return name;
  }

  void read_graph(const XmlElement& at, Id id) {
    SearchGraph graph;
    graph.id = id;
    graph.line = static_cast<int>(at.line);
    const int channels = number(at, "nchannels", 0, reading_.most_channels);
    say_of_others(at, {"id", "pattern", "crossnic", "nchannels", "speedintra", "speedinter", "latencyinter",
                       "typeintra", "typeinter", "samechannels"});
    const auto found = std::count_if(at.children.begin(), at.children.end(),
                                     [](const XmlElement& child) { return child.name == "channel"; });
    if (found != channels)
      fail(at, fmt::format("expected as many <channel> as nchannels says, {}, found {}", channels, found),
           "NCCL does not count them: it assumes that missing channels consist only of rank 0");
    if (channels == 0) return;
    if (id == Id::collnet || id == Id::collnet_direct) {
      warn(at, fmt::format("<graph> of id {} has no effect: CollNet is not modeled", static_cast<int>(id)));
      return;
    }
    graph.pattern = number(at, "pattern", 1, highest_pattern);
    graph.cross_nic = number(at, "crossnic", 0, 2);
    graph.inside = decimal(at, "speedintra", true, "GB/s");
    graph.between = decimal(at, "speedinter", reading_.nodes > 1, "GB/s");
    if (at.find("latencyinter") != nullptr) graph.latency_us = decimal(at, "latencyinter", false, "microseconds");
    graph.type_inside = type(at, "typeintra");
    graph.type_between = type(at, "typeinter");
    graph.same_channels = number(at, "samechannels", 0, 1) == 1;
    check_pattern(at, graph);
    for (const XmlElement& channel : at.children)
      if (is_read(channel, "channel", at)) graph.channels.push_back(read_channel(channel, id));
    out_.graphs.push_back(std::move(graph));
  }

  void check_pattern(const XmlElement& at, const SearchGraph& graph) const {
    const bool tree = graph.pattern <= 3;
    const bool fits = graph.id == Id::ring ? graph.pattern == 4 : graph.id == Id::tree ? tree : graph.pattern == 5;
    if (!fits)
      fail(at, fmt::format("expected pattern {} of <graph> of id {}, found {}",
                           graph.id == Id::ring   ? "4 (ring)"
                           : graph.id == Id::tree ? "1, 2 or 3 (trees)"
                                                  : "5 (NVLS)",
                           static_cast<int>(graph.id), graph.pattern));
  }

  SearchGraph::Channel read_channel(const XmlElement& at, Id id) {
    SearchGraph::Channel channel;
    say_of_others(at, {});
    std::set<std::string> seen;
    for (std::size_t i = 0; i < at.children.size(); ++i) {
      const XmlElement& element = at.children[i];
      if (element.name == "net") {
        read_net(element, i, at, channel);
      } else if (is_read(element, "gpu", at)) {
        const std::string& name = gpu(element);
        if (!seen.insert(name).second)
          fail(element,
               fmt::format("expected each GPU once in a channel, found {} (dev {}) again", name, text(element, "dev")));
        channel.gpus.push_back(name);
      }
    }
    if (id == Id::nvls) {
      if (channel.gpus.empty()) fail(at, "expected a <gpu>, the head, in a channel of NVLS, found none");
      channel.gpus.resize(1);
    }
    for (const auto& [dev, name] : reading_.devices.gpus)
      if (id != Id::nvls && !seen.contains(name))
        fail(at, fmt::format("expected each of {} GPUs once in a channel, found no {} (dev {:#x})",
                             reading_.devices.gpus.size(), name, dev));
    if (reading_.nodes > 1 && id != Id::nvls && !(channel.enters && channel.leaves))
      fail(at,
           fmt::format("expected <net> before and after the GPUs of a channel, found {}",
                       channel.enters ? "none after them" : "none before them"),
           "this file is for one node; NCCL would use the net of dev 0 for all channels");
    return channel;
  }

  /// The i-th element of a channel.
  void read_net(const XmlElement& at, std::size_t i, const XmlElement& channel, SearchGraph::Channel& out) {
    say_of_others(at, {"dev"});
    const bool first = i == 0, last = i + 1 == channel.children.size();
    if (!(first || last) || channel.children.size() == 1)
      fail(at, "expected <net> only before and after the GPUs of a channel, found one elsewhere");
    if (reading_.nodes == 1) {
      if (!said_of_nets_) warn(at, "<net> has no effect on one node");
      said_of_nets_ = true;
      return;
    }
    (first ? out.enters : out.leaves) = device(at, reading_.devices.nics, "a NIC");
  }

  const std::string& file_;
  const GraphReading& reading_;
  std::map<std::string, int> rank_of_;  // by name, on the first node
  bool said_of_nets_ = false;
  GraphFile out_;
};

}  // namespace

const SearchGraph* GraphFile::find(SearchGraph::Id id) const {
  const auto found = std::find_if(graphs.begin(), graphs.end(), [&](const SearchGraph& each) { return each.id == id; });
  return found == graphs.end() ? nullptr : &*found;
}

GraphFile import_nccl_graph(std::string_view text, const std::string& file, const GraphReading& reading) {
  const XmlElement root = parse_xml(text, file);
  return GraphReader(file, reading).read(root);
}

}  // namespace ringsim::nccl
