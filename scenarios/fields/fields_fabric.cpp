// The part of the table that describes links and fabrics.
#include <algorithm>
#include <utility>

#include "scenarios/fields/fields.hpp"
#include "sim/base/error.hpp"
#include "topologies/catalog.hpp"

namespace ringsim::scenarios {

Field link_field(std::string name, std::string doc) {
  return {.name = std::move(name),
          .type = Type::object,
          .doc = std::move(doc),
          .required = true,
          .examples = {R"({"bandwidth": "25 GB/s", "latency": "1 us"})"},
          .members = {{.name = "bandwidth",
                       .type = Type::rate,
                       .doc = "What payload can reach, one direction.",
                       .required = true,
                       .examples = {R"("25 GB/s")", R"("200 Gb/s")"},
                       .words = {"bw", "rate", "speed"}},
                      {.name = "latency",
                       .type = Type::time,
                       .doc = "Time from one end of the link to the other.",
                       .fallback = "0 ns",
                       .examples = {R"("1.3 us")"},
                       .words = {"alpha", "lat"}}}};
}

namespace {

constexpr std::int64_t most = 65'536;

Field count_field(std::string name, std::string doc, std::string example) {
  return {.name = std::move(name),
          .type = Type::whole,
          .doc = std::move(doc),
          .required = true,
          .min = 1,
          .max = most,
          .examples = {std::move(example)}};
}

/// A count that may be left out.
Field count_field(std::string name, std::string doc, std::int64_t fallback, std::int64_t least) {
  return {.name = std::move(name),
          .type = Type::whole,
          .doc = std::move(doc),
          .fallback = std::to_string(fallback),
          .min = least,
          .max = most};
}

Field oversubscription_field() {
  return count_field("oversubscription",
                     "n: the cables to the nodes have n times the rate of those up, where a switch is full.", 1, 1);
}

/// A link that is as another where it is left out.
Field other_link_field(std::string name, std::string doc) {
  Field field = link_field(std::move(name), std::move(doc));
  field.required = false;
  return field;
}

Field cables_field() {
  const auto end = [](std::string name, std::string doc, std::string example) {
    return Field{.name = std::move(name),
                 .type = Type::text,
                 .doc = std::move(doc),
                 .required = true,
                 .min = 1,
                 .examples = {std::move(example)}};
  };
  const Field cable{
      .name = "cable",
      .type = Type::object,
      .doc = "Other figures for all cables between two ends; bandwidth, latency or both.",
      .members = {end("from", "Name of one end: a switch of the fabric, or a NIC.", R"("leaf0")"),
                  end("to", "Name of the other end.", R"("spine1")"),
                  {.name = "bandwidth", .type = Type::rate, .doc = "In place of the cable's rate; of each of them."},
                  {.name = "latency", .type = Type::time, .doc = "In place of the cable's latency."}}};
  return {.name = "cables",
          .type = Type::list,
          .doc = "Cables of the fabric that are not as the others.",
          .min = 1,
          .max = 4096,
          .examples = {R"([{"from": "leaf0", "to": "spine1", "bandwidth": "100 Gb/s"}])"},
          .members = {cable}};
}

Field dimensions_field() {
  const Field dimension{.name = "dimension",
                        .type = Type::whole,
                        .doc = "Nodes along this dimension.",
                        .min = 1,
                        .max = most,
                        .varies = false};
  return {.name = "dimensions",
          .type = Type::list,
          .doc =
              "Nodes along each dimension, the last counting fastest; switches beyond the last node stand without "
              "one. Use `sweep` to vary it.",
          .required = true,
          .min = 1,
          .max = 16,
          .examples = {"[4, 4]", "[4, 4, 4]"},
          .members = {dimension}};
}

/// The keys of each kind, without `cables`.
std::vector<Field> members_of(const std::string& kind) {
  const Field link = link_field("link", "The cable from a NIC to its switch.");
  if (kind == "star") return {link};
  if (kind == "leaf_spine") {
    return {count_field("nodes_per_leaf", "How many nodes share a leaf, with all of their NICs.", "4"),
            oversubscription_field(),
            count_field("spines", "How many spines; 0: one for each cable up from a leaf.", 0, 0), link,
            other_link_field("uplink", "The cables from a leaf to the spines; default: as `link`.")};
  }
  if (kind == "fat_tree") {
    Field ports = count_field("k", "Ports of a switch, an even number; k^3/4 NICs fit.", "8");
    ports.min = 2;
    ports.max = 1024;
    return {ports, oversubscription_field(), link_field("link", "Every cable.")};
  }
  if (kind == "rail") {
    return {count_field("nodes_per_group", "How many nodes share a set of rail switches.", "32"),
            oversubscription_field(),
            count_field("spines", "How many spines join the rail switches; 0: the rails are not joined.", 0, 0), link,
            other_link_field("uplink", "The cables from a rail switch to the spines; default: as `link`.")};
  }
  if (kind == "torus") {
    return {dimensions_field(), link, other_link_field("hop", "The cables between switches; default: as `link`.")};
  }
  ensure(kind == "dragonfly", "every kind of fabric in the catalog has keys");
  return {count_field("groups", "How many groups: g.", "9"),
          count_field("routers", "Routers of a group: a.", "4"),
          count_field("nodes_per_router", "Nodes on a router, with all of their NICs: p.", "2"),
          count_field("global_links", "Ports of a router to other groups: h; 0: as few as join all groups.", 0, 0),
          link,
          other_link_field("local", "The cables within a group; default: as `link`."),
          other_link_field("global", "The cables between groups; default: as `link`.")};
}

}  // namespace

Field fabric_field() {
  Field field{.name = "fabric",
              .type = Type::variant,
              .doc = "What joins the nodes; needed where there is more than one.",
              .examples = {R"({"kind": "star", "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}})"},
              .discriminator = "kind",
              .named_by = "kind"};
  for (const CatalogEntry& entry : fabric_catalog()) {
    Field variant{.name = entry.name, .type = Type::object, .doc = entry.summary, .members = members_of(entry.name)};
    variant.members.push_back(cables_field());
    field.variants.push_back(std::move(variant));
  }
  return field;
}

}  // namespace ringsim::scenarios
