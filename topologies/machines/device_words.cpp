#include "topologies/machines/device_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ringsim {

namespace {

constexpr int most_sm = 999, most_number = 1 << 20;

std::optional<int> whole_in(const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool read = error == std::errc() && end == text.data() + text.size();
  return read && value >= least && value <= most ? std::optional(value) : std::nullopt;
}

/// "gdr" of "net0.gdr"; the key itself if it is not of a port.
std::string_view of_port(std::string_view key) {
  return key.starts_with("net") && key.find('.') != std::string_view::npos ? key.substr(key.find('.') + 1) : key;
}

}  // namespace

std::optional<int> whole_attribute(const Machine::Device& device, const std::string& key, int least, int most) {
  const auto found = device.attributes.find(key);
  return found == device.attributes.end() ? std::nullopt : whole_in(found->second, least, most);
}

std::optional<int> compute_capability(const Machine::Device& gpu) { return whole_attribute(gpu, "sm", 1, most_sm); }

bool has_gpudirect(const Machine::Device& device) {
  return std::none_of(device.attributes.begin(), device.attributes.end(), [&](const auto& attribute) {
    const bool says = device.kind == NodeKind::nic ? of_port(attribute.first) == "gdr" : attribute.first == "gdr";
    return says && attribute.second == "0";
  });
}

std::string without_gpudirect(const Machine& machine) {
  std::string text;
  for (const auto& [kind, name] : {std::pair{NodeKind::gpu, "GPUs"}, std::pair{NodeKind::nic, "NICs"}}) {
    int all = 0, without = 0;
    for (const Machine::Device& device : machine.devices) {
      if (device.kind != kind || (kind == NodeKind::nic && (!device.port || device.idle))) continue;
      ++all;
      without += has_gpudirect(device) ? 0 : 1;
    }
    if (without > 0) text += fmt::format("{}{} of {} {}", text.empty() ? "gdr=0 on " : " and ", without, all, name);
  }
  return text;
}

bool denies_gpudirect(const TopologySpec& topology) {
  const auto* cluster = std::get_if<Cluster>(&topology);
  return cluster != nullptr && std::any_of(cluster->parts.begin(), cluster->parts.end(), [](const Cluster::Part& part) {
           return !without_gpudirect(*part.machine).empty();
         });
}

std::string what_denied_gpudirect_means(const std::string& denied) {
  return denied +
         ": data passes through host memory there; NCCL writes gdr=\"0\" if nvidia-peermem (or DMA-BUF) is not loaded; "
         "to simulate GPUDirect, set transport.gpudirect=true";
}

std::string expected_of_attribute(NodeKind kind, std::string_view key, const std::string& value) {
  const auto whole = [&](int least, int most, std::string_view what) {
    return whole_in(value, least, most) ? "" : fmt::format("{}, a whole number from {} to {}", what, least, most);
  };
  if (kind != NodeKind::gpu && kind != NodeKind::nic) return "";
  const std::string_view word = kind == NodeKind::nic ? of_port(key) : key;
  if (word == "gdr" && value != "0" && value != "1")
    return "\"0\" or \"1\", which states whether it supports GPUDirect RDMA";
  if (kind == NodeKind::gpu && word == "sm") return whole(1, most_sm, "a compute capability such as \"90\"");
  if (word == "dev") return whole(0, most_number, "a device number");
  if (kind == NodeKind::nic && word == "port") return whole(0, most_number, "a port number");
  if (kind == NodeKind::nic && word == "distance" && !path_type(value)) return "PIX, PXB, PHB or SYS";
  return "";
}

}  // namespace ringsim
