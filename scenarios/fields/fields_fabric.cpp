// The part of the table that describes links and fabrics.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/fields/fields.hpp"
#include "sim/base/error.hpp"
#include "topologies/catalog.hpp"

namespace ringsim::scenarios {

Field link_field(std::string name, std::string doc, Member into) {
  return {.name = std::move(name),
          .type = Type::object,
          .doc = std::move(doc),
          .required = true,
          .examples = {R"({"bandwidth": "25 GB/s", "latency": "1 us"})"},
          .members = {{.name = "bandwidth",
                       .type = Type::rate,
                       .doc = "The payload rate in one direction.",
                       .required = true,
                       .examples = {R"("25 GB/s")", R"("200 Gb/s")"},
                       .words = {"bw", "rate", "speed"},
                       .into = &LinkSpec::bandwidth},
                      {.name = "latency",
                       .type = Type::time,
                       .doc = "The time from one end of the link to the other.",
                       .fallback = "0 ns",
                       .examples = {R"("1.3 us")"},
                       .words = {"alpha", "lat"},
                       .into = &LinkSpec::latency}},
          .into = std::move(into)};
}

namespace {

constexpr std::int64_t most = 65'536;

Field count_field(std::string name, std::string doc, std::string example, Member into) {
  return {.name = std::move(name),
          .type = Type::whole,
          .doc = std::move(doc),
          .required = true,
          .min = 1,
          .max = most,
          .examples = {std::move(example)},
          .into = std::move(into)};
}

/// A count that may be left out.
Field count_field(std::string name, std::string doc, std::int64_t fallback, std::int64_t least, Member into) {
  return {.name = std::move(name),
          .type = Type::whole,
          .doc = std::move(doc),
          .fallback = std::to_string(fallback),
          .min = least,
          .max = most,
          .into = std::move(into)};
}

Effect of_cables(const EffectOf& of, FabricCables cables, const char* which) {
  return {fmt::format("cables {}", which), of.run.crosses(cables) ? "" : "no message of this run crosses one"};
}
Effect of_cables_up(const EffectOf& of) { return of_cables(of, FabricCables::all, "between switches"); }
Effect of_cables_within(const EffectOf& of) { return of_cables(of, FabricCables::within_group, "within a group"); }
Effect of_cables_between(const EffectOf& of) { return of_cables(of, FabricCables::between_groups, "between groups"); }

Field oversubscription_field(Member into) {
  Field field = count_field("oversubscription",
                            "The oversubscription n: on a fully occupied switch, the cables to the nodes have n times "
                            "the total rate of the uplinks.",
                            1, 1, std::move(into));
  field.effect = of_cables_up;
  return field;
}

/// A link that is as another where it is left out.
Field other_link_field(std::string name, std::string doc, Member into, Effect (*effect)(const EffectOf&)) {
  Field field = link_field(std::move(name), std::move(doc), std::move(into));
  field.required = false;
  field.effect = effect;
  return field;
}

Field cables_field() {
  const auto end = [](std::string name, std::string doc, std::string example, Member into) {
    return Field{.name = std::move(name),
                 .type = Type::text,
                 .doc = std::move(doc),
                 .required = true,
                 .min = 1,
                 .examples = {std::move(example)},
                 .into = std::move(into)};
  };
  const Field cable{.name = "cable",
                    .type = Type::object,
                    .doc = "A different bandwidth, latency or both for all cables between two ends.",
                    .members = {end("from", "The name of one end: a switch of the fabric or a NIC.", R"("leaf0")",
                                    &CableChange::from),
                                end("to", "The name of the other end.", R"("spine1")", &CableChange::to),
                                {.name = "bandwidth",
                                 .type = Type::rate,
                                 .doc = "The bandwidth of each of these cables.",
                                 .into = &CableChange::bandwidth},
                                {.name = "latency",
                                 .type = Type::time,
                                 .doc = "The latency of these cables.",
                                 .into = &CableChange::latency}}};
  return {.name = "cables",
          .type = Type::list,
          .doc = "Cables of the fabric that differ from the others.",
          .min = 1,
          .max = 4096,
          .examples = {R"([{"from": "leaf0", "to": "spine1", "bandwidth": "100 Gb/s"}])"},
          .members = {cable}};
}

Field dimensions_field(Member into) {
  const Field dimension{.name = "dimension",
                        .type = Type::whole,
                        .doc = "The number of nodes along this dimension.",
                        .min = 1,
                        .max = most,
                        .varies = false};
  return {.name = "dimensions",
          .type = Type::list,
          .doc =
              "The number of nodes along each dimension; the last dimension varies fastest. Switches after the last "
              "node have no node. Use `sweep` to vary this key.",
          .required = true,
          .min = 1,
          .max = 16,
          .examples = {"[4, 4]", "[4, 4, 4]"},
          .members = {dimension},
          .into = std::move(into)};
}

template <class Kind>
Field nic_cable_field() {
  return link_field("link", "The cable from a NIC to its switch.", stated_link(&Kind::link));
}

/// The structure of a kind of fabric, and its keys without `cables`.
struct Keys {
  Member into;
  std::vector<Field> members;
};

Keys keys_of(const std::string& kind) {
  if (kind == "star") return {Member::alternative<Fabric, StarFabric>(), {nic_cable_field<StarFabric>()}};
  if (kind == "leaf_spine")
    return {Member::alternative<Fabric, LeafSpine>(),
            {count_field("nodes_per_leaf", "The number of nodes per leaf switch, each with all of its NICs.", "4",
                         &LeafSpine::nodes_per_leaf),
             oversubscription_field(&LeafSpine::oversubscription),
             count_field("spines", "The number of spine switches; 0: one for each uplink of a leaf.", 0, 0,
                         &LeafSpine::spines),
             nic_cable_field<LeafSpine>(),
             other_link_field("uplink", "The cables from a leaf to the spines. Default: the same as `link`.",
                              stated_link(&LeafSpine::uplink), of_cables_up)}};
  if (kind == "fat_tree") {
    Field ports =
        count_field("k", "The number of ports per switch, which must be even. The fabric has room for k^3/4 NICs.", "8",
                    &FatTree::k);
    ports.min = 2;
    ports.max = 1024;
    return {Member::alternative<Fabric, FatTree>(),
            {ports, oversubscription_field(&FatTree::oversubscription),
             link_field("link", "Every cable.", stated_link(&FatTree::link))}};
  }
  if (kind == "rail")
    return {Member::alternative<Fabric, RailFabric>(),
            {count_field("nodes_per_group", "The number of nodes that share a set of rail switches.", "32",
                         &RailFabric::nodes_per_group),
             oversubscription_field(&RailFabric::oversubscription),
             count_field("spines",
                         "The number of spine switches that connect the rail switches; 0: the rails are not connected.",
                         0, 0, &RailFabric::spines),
             nic_cable_field<RailFabric>(),
             other_link_field("uplink", "The cables from a rail switch to the spines. Default: the same as `link`.",
                              stated_link(&RailFabric::uplink), of_cables_up)}};
  if (kind == "torus")
    return {Member::alternative<Fabric, TorusFabric>(),
            {dimensions_field(&TorusFabric::dimensions), nic_cable_field<TorusFabric>(),
             other_link_field("hop", "The cables between switches. Default: the same as `link`.",
                              stated_link(&TorusFabric::hop), of_cables_up)}};
  ensure(kind == "dragonfly", "every kind of fabric in the catalog has keys");
  return {Member::alternative<Fabric, Dragonfly>(),
          {count_field("groups", "The number of groups, g.", "9", &Dragonfly::groups),
           count_field("routers", "The number of routers per group, a.", "4", &Dragonfly::routers),
           count_field("nodes_per_router", "The number of nodes per router, p, each with all of its NICs.", "2",
                       &Dragonfly::nodes_per_router),
           count_field("global_links",
                       "The number of ports per router to other groups, h; 0: the fewest that connect all groups.", 0,
                       0, &Dragonfly::global_links),
           nic_cable_field<Dragonfly>(),
           other_link_field("local", "The cables within a group. Default: the same as `link`.",
                            stated_link(&Dragonfly::local), of_cables_within),
           other_link_field("global", "The cables between groups. Default: the same as `link`.",
                            stated_link(&Dragonfly::global), of_cables_between)}};
}

}  // namespace

Field fabric_field() {
  Field field{.name = "fabric",
              .type = Type::variant,
              .doc = "The fabric that connects the nodes; required if there is more than one node.",
              .examples = {R"({"kind": "star", "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}})"},
              .discriminator = "kind",
              .named_by = "kind"};
  for (const CatalogEntry& entry : fabric_catalog()) {
    Keys keys = keys_of(entry.name);
    keys.members.push_back(cables_field());
    Field variant{.name = entry.name,
                  .type = Type::object,
                  .doc = entry.summary,
                  .members = std::move(keys.members),
                  .into = std::move(keys.into)};
    field.variants.push_back(std::move(variant));
  }
  return field;
}

const Field& fabric_row(std::string_view kind) {
  const Field* cluster = find(field_at("topology").variants, "cluster");
  const Field* row = find(find(cluster->members, "fabric")->variants, kind);
  ensure(row != nullptr, "every kind of fabric in the catalog has keys");
  return *row;
}

}  // namespace ringsim::scenarios
