// The JSON Schema of a scenario, written from the table of fields that the decoder reads.
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "scenarios/fields/fields.hpp"
#include "scenarios/scenario.hpp"
#include "sim/text/json.hpp"
#include "topologies/machines/preset_names.hpp"

namespace ringsim {

using namespace scenarios;

namespace {

using Schema = Json;  // keys stay in the order in which people read them

Schema reference(std::string_view definition) { return {{"$ref", "#/definitions/" + std::string(definition)}}; }

std::string_view name_of(Type type) {
  switch (type) {
    case Type::size:
      return "size";
    case Type::rate:
      return "rate";
    default:
      return "time";
  }
}

Schema range_of(Schema number, Schema step);

/// Writes the table as schemas; long ones are written once, under `definitions`.
class Writer {
 public:
  Schema property(const Field& field, const std::string& parent);
  Schema object_of(const Field& field);
  Schema definitions = Schema::object();

 private:
  Schema value_of(const Field& field, const std::string& parent);
  Schema values_of(const Field& field, const std::string& parent);
  Schema variant_of(const Field& field);
  void add_members(const Field& field, Schema& out);

  /// Puts the schema under `definitions`, unless an equal one is there, and refers to it.
  Schema define(const Field& field, const std::string& parent, Schema schema) {
    std::string name = field.name;
    if (definitions.contains(name) && definitions[name] != schema) name = parent + "_" + name;
    definitions[name] = std::move(schema);
    return reference(name);
  }
};

/// One value of the field.
Schema Writer::value_of(const Field& field, const std::string& parent) {
  switch (field.type) {
    case Type::boolean:
      return {{"type", "boolean"}};
    case Type::whole: {
      Schema number{{"type", "integer"}, {"minimum", field.min}, {"maximum", field.max}};
      if (!field.digits) return number;
      return {{"anyOf", Schema::array({std::move(number), {{"type", "string"}, {"pattern", "^[0-9]+$"}}})}};
    }
    case Type::size:
    case Type::rate:
    case Type::time:
      return reference(name_of(field.type));
    case Type::factor:
      return {{"type", "number"},
              {"minimum", static_cast<double>(field.min) / 1e6},
              {"maximum", static_cast<double>(field.max) / 1e6}};
    case Type::portion:
      return reference("portion");
    case Type::object:
      return define(field, parent, object_of(field));
    case Type::variant:
      return define(field, parent, variant_of(field));
    case Type::list: {
      Schema out{{"type", "array"}, {"items", property(field.members.front(), parent)}, {"minItems", field.min}};
      if (field.max != std::numeric_limits<std::int64_t>::max()) out["maxItems"] = field.max;
      if (field.unique) out["uniqueItems"] = true;
      return out;
    }
    case Type::sweep:
      return {
          {"type", "object"},
          {"maxProperties", 64},
          {"additionalProperties",
           {{"anyOf", {{{"type", "array"}, {"minItems", 1}}, reference("number_range"), reference("text_range")}}}}};
    case Type::text:
    case Type::file:
    case Type::ignored:
      break;
  }
  Schema out{{"type", "string"}};
  if (!field.choices.empty()) out["enum"] = field.choices;
  for (const Alias& alias : field.aliases) {
    out["enum"].push_back(alias.name);
    if (const std::string plain = plain_machine_name(alias.name); field.loose && plain != alias.name)
      out["enum"].push_back(plain);
  }
  if (field.digits) {
    out["type"] = {"string", "integer"};
    for (const std::string& choice : field.choices)
      if (choice.find_first_not_of("0123456789") == std::string::npos) out["enum"].push_back(std::stoi(choice));
  }
  if (field.min > 0) out["minLength"] = field.min;
  // The names as they are listed and in small letters, to choose from; ringsim alone checks others with capitals, "_"
  // or spaces.
  if (field.loose) return {{"anyOf", Schema::array({std::move(out), {{"type", "string"}, {"pattern", "[A-Z_ ]"}}})}};
  return out;
}

Schema range_of(Schema number, Schema step) {
  return {
      {"type", "object"},
      {"description", "Values from `from` up to `to`. Each value is the previous one times `factor`, or plus `step`."},
      {"properties",
       {{"from", number},
        {"to", number},
        {"factor", {{"type", "number"}, {"exclusiveMinimum", 1}}},
        {"step", std::move(step)}}},
      {"required", {"from", "to"}},
      {"oneOf", {{{"required", {"factor"}}}, {{"required", {"step"}}}}},
      {"additionalProperties", false}};
}

/// The range that a scalar field accepts.
Schema range_for(const Field& field, Schema one) {
  if (field.type != Type::whole) return reference(std::string(name_of(field.type)) + "_range");
  return range_of(std::move(one), {{"type", "integer"}, {"minimum", 1}});
}

/// One value, or where the field varies a list of values and ranges.
Schema Writer::values_of(const Field& field, const std::string& parent) {
  Schema one = value_of(field, parent);
  if (!field.varies || field.type == Type::list) return one;
  Schema choices = Schema::array({one});
  Schema items = one;
  if (is_scalar(field.type)) {
    items = {{"anyOf", {one, range_for(field, one)}}};
    choices.push_back(range_for(field, one));
  }
  choices.push_back({{"type", "array"}, {"items", std::move(items)}, {"minItems", 1}});
  return {{"anyOf", std::move(choices)}};
}

Schema parsed(const std::vector<std::string>& texts) {
  Schema out = Schema::array();
  for (const std::string& text : texts) out.push_back(Schema::parse(text));
  return out;
}

/// The field's place in its object: what it means, what it defaults to, what it may be.
Schema Writer::property(const Field& field, const std::string& parent) {
  Schema out;
  out["description"] = field.doc;
  if (!field.fallback.empty()) {
    if (field.type == Type::boolean || field.type == Type::whole) {
      out["default"] = Schema::parse(field.fallback);
    } else {
      out["default"] = field.fallback;
    }
  }
  if (!field.examples.empty()) {
    out["examples"] = parsed(field.examples);
  } else if (!field.choices.empty()) {
    out["examples"] = field.choices;
  } else if (!field.fallback.empty()) {
    out["examples"] = Schema::array({out["default"]});
  }
  out.update(values_of(field, parent));
  return out;
}

void Writer::add_members(const Field& field, Schema& out) {
  for (const Field& member : field.members) {
    out["properties"][member.name] = property(member, field.name);
    if (member.required) out["required"].push_back(member.name);
  }
}

Schema Writer::object_of(const Field& field) {
  Schema out{{"type", "object"}, {"properties", Schema::object()}};
  add_members(field, out);
  out["additionalProperties"] = false;
  if (!takes_a_name(field)) return out;
  Schema name = value_of(*find(field.members, field.named_by), field.name);
  return {{"anyOf", Schema::array({std::move(name), std::move(out)})}};
}

/// Any of the variants: not oneOf, for `"kind": ["star", "ring"]` is as good a star as a ring.
Schema Writer::variant_of(const Field& field) {
  Schema choices = Schema::array();
  Schema bare = Schema::array();
  for (const Field& variant : field.variants)
    if (needs_no_key(variant)) bare.push_back(variant.name);
  if (takes_a_name(field)) choices.push_back({{"type", "string"}, {"enum", std::move(bare)}});
  for (const Field& variant : field.variants) {
    Schema kind{{"description", variant.doc}};
    kind["anyOf"] = {
        {{"const", variant.name}},
        {{"type", "array"}, {"items", {{"enum", names(field.variants)}}}, {"contains", {{"const", variant.name}}}}};
    Schema object{
        {"type", "object"}, {"title", variant.name}, {"properties", {{field.discriminator, std::move(kind)}}}};
    if (variant.implied_by.empty()) object["required"] = Schema::array({field.discriminator});
    add_members(variant, object);
    object["additionalProperties"] = false;
    choices.push_back(std::move(object));
  }
  return {{"anyOf", std::move(choices)}};
}

Schema quantity(std::string_view description, std::string_view units, Schema examples) {
  return {{"type", "string"},
          {"description", description},
          {"pattern", "^[0-9]+(\\.[0-9]+)? ?(" + std::string(units) + ")$"},
          {"examples", std::move(examples)}};
}

}  // namespace

std::string scenario_schema() {
  const std::string size = "B|kB|MB|GB|TB|KiB|MiB|GiB|TiB";
  Writer writer;
  Schema& definitions = writer.definitions;
  definitions["size"] =
      quantity("A size in units that are powers of 1000 (kB) or 1024 (KiB).", size, {"64 MiB", "1.5 GB"});
  definitions["rate"] = quantity("A rate in bytes (GB/s) or bits (Gb/s) per second.", "(" + size + ")/s|[kMGT]?b/s",
                                 {"25 GB/s", "200 Gb/s"});
  definitions["time"] = quantity("A duration.", "ps|ns|us|ms|s", {"1.3 us", "500 ns"});
  definitions["portion"] = {{"anyOf", {quantity("A share, in percent.", "%", {"25%", "12.5%"}), reference("rate")}}};
  for (const char* name : {"size", "rate", "time"}) {
    definitions[name + std::string("_range")] = range_of(reference(name), reference(name));
  }
  definitions["number_range"] = range_of({{"type", "integer"}}, {{"type", "integer"}, {"minimum", 1}});
  definitions["text_range"] = range_of({{"type", "string"}}, {{"type", "string"}});

  Schema out;
  out["$schema"] = "http://json-schema.org/draft-07/schema#";
  out["$id"] = "urn:ringsim:scenario:1";
  out["title"] = "ringsim scenario";
  out["description"] = scenario_field().doc;
  out.update(writer.object_of(scenario_field()));
  for (const char* what : {"collective", "training", "inference", "trace"})
    out["oneOf"].push_back({{"required", Schema::array({what})}});
  out["definitions"] = std::move(definitions);
  return out.dump(2) + "\n";
}

}  // namespace ringsim
