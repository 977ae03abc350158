#include "algorithms/traces/chakra_messages.hpp"

#include "sim/base/error.hpp"

#ifdef RINGSIM_CHAKRA

#include <chakra.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace ringsim::traces {

bool has_chakra() { return true; }
const char* why_no_chakra() { return ""; }

namespace {

using chakra_file::Attribute;

template <class Message>
bool parse(std::string_view bytes, Message& out) {
  google::protobuf::io::ArrayInputStream array(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream in(&array);
  in.SetRecursionLimit(most_nested_messages);
  return out.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

ChakraAttribute attribute_of(const Attribute& in) {
  ChakraAttribute out{.name = in.name(), .value = {}};
  const auto whole = [&](std::int64_t value) { out.value = value; };
  const auto count = [&](std::uint64_t value) { out.value = value; };
  switch (in.value_case()) {
    case Attribute::kReal:
      out.value = in.real();
      break;
    case Attribute::kReal32:
      out.value = static_cast<double>(in.real_32());
      break;
    case Attribute::kWhole32:
      whole(in.whole_32());
      break;
    case Attribute::kWhole64:
      whole(in.whole_64());
      break;
    case Attribute::kCount32:
      count(in.count_32());
      break;
    case Attribute::kCount64:
      count(in.count_64());
      break;
    case Attribute::kSigned32:
      whole(in.signed_32());
      break;
    case Attribute::kSigned64:
      whole(in.signed_64());
      break;
    case Attribute::kFixedCount32:
      count(in.fixed_count_32());
      break;
    case Attribute::kFixedCount64:
      count(in.fixed_count_64());
      break;
    case Attribute::kFixed32:
      whole(in.fixed_32());
      break;
    case Attribute::kFixed64:
      whole(in.fixed_64());
      break;
    case Attribute::kFlag:
      whole(in.flag() ? 1 : 0);
      break;
    case Attribute::kFlags:
      out.value = std::vector<bool>(in.flags().values().begin(), in.flags().values().end());
      break;
    case Attribute::kText:
      out.value = in.text();
      break;
    case Attribute::VALUE_NOT_SET:
      break;
  }
  return out;
}

void write_attribute(const ChakraAttribute& in, Attribute& out) {
  out.set_name(in.name);
  if (const auto* whole = std::get_if<std::int64_t>(&in.value)) out.set_whole_64(*whole);
  if (const auto* count = std::get_if<std::uint64_t>(&in.value)) out.set_count_64(*count);
  if (const auto* real = std::get_if<double>(&in.value)) out.set_real(*real);
  if (const auto* text = std::get_if<std::string>(&in.value)) out.set_text(*text);
  if (const auto* flags = std::get_if<std::vector<bool>>(&in.value))
    for (const bool flag : *flags) out.mutable_flags()->add_values(flag);
  // ASTRA-sim reads is_cpu_op as a bool (extern/graph_frontend/chakra, et_feeder_node).
  if (in.name == "is_cpu_op" && std::holds_alternative<std::int64_t>(in.value))
    out.set_flag(std::get<std::int64_t>(in.value) != 0);
}

template <class Message>
void append(const Message& message, std::string& out) {
  google::protobuf::io::StringOutputStream stream(&out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.WriteVarint32(static_cast<std::uint32_t>(message.ByteSizeLong()));
  message.SerializeWithCachedSizes(&coded);
}

}  // namespace

bool read_chakra_head(std::string_view bytes, ChakraMessage& out) {
  chakra_file::Head head;
  if (!parse(bytes, head)) return false;
  out = {};
  out.name = head.version();
  for (const Attribute& each : head.attributes()) out.attributes.push_back(attribute_of(each));
  return true;
}

bool read_chakra_node(std::string_view bytes, ChakraMessage& out) {
  chakra_file::Node node;
  if (!parse(bytes, node)) return false;
  out.id = node.id();
  out.name = node.name();
  out.type = node.type();
  out.control.assign(node.control().begin(), node.control().end());
  out.data.assign(node.data().begin(), node.data().end());
  out.start_us = node.start_us();
  out.duration_us = node.duration_us();
  out.input_values = node.inputs().values();
  out.attributes.clear();
  for (const Attribute& each : node.attributes()) out.attributes.push_back(attribute_of(each));
  return true;
}

void write_chakra_head(const ChakraMessage& message, std::string& out) {
  chakra_file::Head head;
  head.set_version(message.name);
  for (const ChakraAttribute& each : message.attributes) write_attribute(each, *head.add_attributes());
  append(head, out);
}

void write_chakra_node(const ChakraMessage& message, std::string& out) {
  chakra_file::Node node;
  node.set_id(message.id);
  node.set_name(message.name);
  node.set_type(message.type);
  for (const std::uint64_t each : message.control) node.add_control(each);
  for (const std::uint64_t each : message.data) node.add_data(each);
  node.set_start_us(message.start_us);
  node.set_duration_us(message.duration_us);
  if (!message.input_values.empty()) node.mutable_inputs()->set_values(message.input_values);
  for (const ChakraAttribute& each : message.attributes) write_attribute(each, *node.add_attributes());
  append(node, out);
}

}  // namespace ringsim::traces

#else

namespace ringsim::traces {

bool has_chakra() { return false; }
const char* why_no_chakra() {
  return "install libprotobuf 3.12 or newer and protoc (Debian: libprotobuf-dev protobuf-compiler), then reconfigure "
         "and rebuild ringsim";
}

bool read_chakra_head(std::string_view, ChakraMessage&) {
  fail_invariant("a build without libprotobuf reads no trace");
}
bool read_chakra_node(std::string_view, ChakraMessage&) {
  fail_invariant("a build without libprotobuf reads no trace");
}
void write_chakra_head(const ChakraMessage&, std::string&) {
  fail_invariant("a build without libprotobuf writes no trace");
}
void write_chakra_node(const ChakraMessage&, std::string&) {
  fail_invariant("a build without libprotobuf writes no trace");
}

}  // namespace ringsim::traces

#endif
