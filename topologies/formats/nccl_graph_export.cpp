#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "topologies/formats/nccl_graph.hpp"

namespace ringsim::nccl {

namespace {

int number_of(const std::map<int, std::string>& devices, const std::string& name) {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](const auto& each) { return each.second == name; });
  ensure(found != devices.end(), "a channel's devices are the machine's");
  return found->first;
}

std::string net(const std::optional<std::string>& nic, const GraphDevices& devices) {
  return nic ? fmt::format("      <net dev=\"{:#x}\"/>\n", number_of(devices.nics, *nic)) : "";
}

}  // namespace

std::string to_nccl_graph(const std::vector<SearchGraph>& graphs, const GraphDevices& devices) {
  std::string out = "<graphs version=\"1\">\n";
  for (const SearchGraph& graph : graphs) {
    out += fmt::format(
        "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{}\" speedinter=\"{}\" "
        "latencyinter=\"{}\" typeintra=\"{}\" typeinter=\"{}\" samechannels=\"{}\">\n",
        static_cast<int>(graph.id), graph.pattern, graph.cross_nic, graph.channels.size(), graph.inside, graph.between,
        graph.latency_us, to_string(graph.type_inside), to_string(graph.type_between), graph.same_channels ? 1 : 0);
    for (const SearchGraph::Channel& channel : graph.channels) {
      out += "    <channel>\n" + net(channel.enters, devices);
      for (const std::string& gpu : channel.gpus)
        out += fmt::format("      <gpu dev=\"{:#x}\"/>\n", number_of(devices.gpus, gpu));
      out += net(channel.leaves, devices) + "    </channel>\n";
    }
    out += "  </graph>\n";
  }
  return out + "</graphs>\n";
}

}  // namespace ringsim::nccl
