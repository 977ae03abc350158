#include "validate/profiles/call_names.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace ringsim::profiles {

namespace {

/// Small letters and digits alone.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z')
      out += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      out += c;
  }
  return out;
}

}  // namespace

NamedOp named_op(std::string_view name) {
  if (name.starts_with("nccl:")) name.remove_prefix(5);
  name = name.substr(0, name.find(' '));  // "send 0->1"
  const std::string word = plain(name);
  NamedOp found;
  found.coalesced = word.find("coalesced") != std::string::npos;
  if (word == "allreducebarrier") {
    found.op = CallOp::barrier;
    return found;
  }
  // Longer names first: "alltoallv" begins with "alltoall", "reducescatter" with "reduce".
  static constexpr std::array ops =
      std::to_array<std::pair<std::string_view, CallOp>>({{"allreduce", CallOp::all_reduce},
                                                          {"allgather", CallOp::all_gather},
                                                          {"reducescatter", CallOp::reduce_scatter},
                                                          {"alltoall", CallOp::all_to_all},
                                                          {"broadcast", CallOp::broadcast},
                                                          {"reduce", CallOp::reduce},
                                                          {"gather", CallOp::gather},
                                                          {"scatter", CallOp::scatter},
                                                          {"send", CallOp::send},
                                                          {"recv", CallOp::recv},
                                                          {"barrier", CallOp::barrier}});
  for (const auto& [beginning, op] : ops) {
    if (!word.starts_with(beginning)) continue;
    if (op == CallOp::send && word.starts_with("sendrecv")) break;
    found.op = op;
    found.sizes_differ = op == CallOp::all_to_all && word.starts_with("alltoallv");
    break;
  }
  return found;
}

std::optional<int> element_bytes(std::string_view dtype) {
  if (dtype.starts_with("c10::")) dtype.remove_prefix(5);
  if (dtype.starts_with("nccl")) dtype.remove_prefix(4);
  const std::string word = plain(dtype);
  static constexpr std::array sizes = std::to_array<std::pair<std::string_view, int>>(
      {{"byte", 1},      {"unsignedchar", 1}, {"uint8", 1},        {"char", 1},         {"signedchar", 1},
       {"int8", 1},      {"bool", 1},         {"short", 2},        {"shortint", 2},     {"int16", 2},
       {"uint16", 2},    {"half", 2},         {"float16", 2},      {"bfloat16", 2},     {"int", 4},
       {"int32", 4},     {"uint32", 4},       {"float", 4},        {"float32", 4},      {"long", 8},
       {"longint", 8},   {"longlong", 8},     {"int64", 8},        {"uint64", 8},       {"double", 8},
       {"float64", 8},   {"complexhalf", 4},  {"complexchalf", 4}, {"complexfloat", 8}, {"complexdouble", 16},
       {"complex64", 8}, {"complex128", 16},  {"unsignedint", 4},  {"unsignedlong", 8}, {"unsignedshort", 2}});
  const auto* const known =
      std::find_if(sizes.begin(), sizes.end(), [&](const auto& entry) { return entry.first == word; });
  if (known != sizes.end()) return known->second;
  if (word.starts_with("float8")) return 1;  // e4m3fn, e5m2, e4m3fnuz ...
  return std::nullopt;
}

}  // namespace ringsim::profiles
