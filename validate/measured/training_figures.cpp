#include "validate/measured/training_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "scenarios/decoder/files.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "sim/text/json_place.hpp"
#include "sim/text/plain_text.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim {

namespace {

constexpr std::array<const char*, 10> training_columns = {"source",  "model",  "params", "batch_per_gpu", "precision",
                                                          "machine", "regime", "gpus",   "value",         "unit"};

using measured::CsvField;

/// The fields of a row by the names of their columns.
class FigureCells {
 public:
  FigureCells(const std::vector<CsvField>& head, std::vector<CsvField> cells) {
    for (std::size_t i = 0; i < head.size(); ++i) cells_.emplace(head[i].text, std::move(cells[i]));
  }

  std::string text(const char* column) const {
    const CsvField& cell = cells_.at(column);
    if (cell.text.empty()) throw InputError(cell.where, fmt::format("{}: expected a text, found none", column));
    return cell.text;
  }
  bool empty(const char* column) const { return cells_.at(column).text.empty(); }
  std::int64_t count(const char* column, std::int64_t most) const {
    const CsvField& cell = cells_.at(column);
    std::int64_t found = 0;
    const char* end = cell.text.data() + cell.text.size();
    const auto read = std::from_chars(cell.text.data(), end, found);
    if (read.ec != std::errc{} || read.ptr != end || found < 1 || found > most)
      throw InputError(cell.where, fmt::format("{}: expected a whole number from 1 to {}, found {}", column, most,
                                               in_quotes(cell.text)));
    return found;
  }
  double above_zero(const char* column) const {
    const CsvField& cell = cells_.at(column);
    const auto found = measured::number_in(cell.text);
    if (!found || !std::isfinite(found->value) || found->value <= 0)
      throw InputError(cell.where,
                       fmt::format("{}: expected a number above 0, found {}", column, in_quotes(cell.text)));
    return found->value;
  }

 private:
  std::map<std::string, CsvField> cells_;
};

void check_head(const std::vector<CsvField>& head) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const std::string& name = head[i].text;
    if (std::find(training_columns.begin(), training_columns.end(), name) == training_columns.end())
      throw InputError(head[i].where, fmt::format("expected a column of {}, found {}",
                                                  fmt::join(training_columns, ", "), in_quotes(name)));
    for (std::size_t before = 0; before < i; ++before)
      if (head[before].text == name)
        throw InputError(head[i].where, fmt::format("expected each column once, found {} again", in_quotes(name)));
  }
  for (const char* column : training_columns)
    if (std::none_of(head.begin(), head.end(), [&](const CsvField& cell) { return cell.text == column; }))
      throw InputError(head.front().where, fmt::format("expected a column \"{}\", found none", column));
}

std::vector<std::string> words_in(const Place& list) {
  std::vector<std::string> words;
  for (const Place& word : list.items()) words.push_back(word.text());
  if (words.empty()) list.fail("expected at least one word, found none");
  return words;
}

std::string text_or_none(const Place& place, const std::string& key) {
  return place.has(key) ? place.at(key).text() : "";
}

std::string object_in(const Place& place, const std::string& key) {
  if (!place.has(key)) return "";
  const Place object = place.at(key);
  if (!object.json.is_object() && !object.json.is_string())
    object.fail(fmt::format("expected an object or a name, found {}", describe(object.json)));
  return json_text(object.json);
}

TrainingMachine machine_in(const Place& place) {
  place.allow({"words", "gpu", "topology", "gpus_per_node", "gpus_per_board", "order", "source", "assumed"});
  TrainingMachine machine{.words = words_in(place.at("words")),
                          .gpu = text_or_none(place, "gpu"),
                          .topology = object_in(place, "topology"),
                          .gpus_per_node = 0,
                          .order = {},
                          .source = place.at("source").text(),
                          .assumed = text_or_none(place, "assumed")};
  const Place topology = place.at("topology");
  if (!topology.json.is_object() || !topology.has("kind"))
    topology.fail("expected a topology as in a scenario, with its kind");
  const bool is_cluster = topology.at("kind").text() == "cluster";
  if (is_cluster != place.has("gpus_per_node"))
    place.fail(is_cluster ? "expected gpus_per_node of a cluster, found none"
                          : "expected gpus_per_node only for a cluster, found one");
  const auto number = [](const Place& value, std::int64_t least) {
    if (!value.json.is_number_integer() || value.json.get<std::int64_t>() < least ||
        value.json.get<std::int64_t>() > 4096)
      value.fail(fmt::format("expected a whole number from {} to 4096, found {}", least, describe(value.json)));
    return value.json.get<int>();
  };
  if (is_cluster) machine.gpus_per_node = number(place.at("gpus_per_node"), 1);
  if (place.has("gpus_per_board")) machine.gpus_per_board = number(place.at("gpus_per_board"), 1);
  if (!place.has("order")) return machine;
  std::vector<int> all;
  for (const Place& gpu : place.at("order").items()) machine.order.push_back(number(gpu, 0));
  for (int gpu = 0; gpu < machine.gpus_per_node; ++gpu) all.push_back(gpu);
  if (!std::is_permutation(machine.order.begin(), machine.order.end(), all.begin(), all.end()))
    place.at("order").fail(fmt::format("expected each GPU of a node, 0 to {}, once", machine.gpus_per_node - 1));
  return machine;
}

TrainingWay way_in(const Place& place) {
  place.allow({"words", "one_node", "several_nodes", "bucket_in_text", "by_number", "source", "assumed"});
  TrainingWay way{.words = words_in(place.at("words")),
                  .one_node = object_in(place, "one_node"),
                  .several_nodes = object_in(place, "several_nodes"),
                  .bucket_in_text = place.has("bucket_in_text") && place.at("bucket_in_text").truth(),
                  .by_number = place.has("by_number") && place.at("by_number").truth(),
                  .source = place.at("source").text(),
                  .assumed = text_or_none(place, "assumed")};
  if (way.one_node.empty() && way.several_nodes.empty())
    place.fail("expected one_node or several_nodes with a regime as in a scenario, found neither");
  return way;
}

/// Adds entries; those with the words of one that is there would never be asked.
template <class Entry>
void add_behind(std::vector<Entry>& entries, const std::vector<Entry>& more) {
  for (const Entry& each : more)
    if (std::none_of(entries.begin(), entries.end(), [&](const Entry& one) { return one.words == each.words; }))
      entries.push_back(each);
}

}  // namespace

std::vector<TrainingFigure> parse_training_rows(std::string_view text, const std::string& name) {
  std::vector<TrainingFigure> rows;
  std::vector<CsvField> head;
  for (const measured::Line& line : measured::lines_of(text, name)) {
    if (line.text.starts_with('#') || trimmed(line.text).empty()) continue;
    std::vector<CsvField> cells = measured::fields_of(line, ',');
    if (head.empty()) {
      head = std::move(cells);
      check_head(head);
      continue;
    }
    if (cells.size() != head.size())
      throw InputError(cells.back().where, fmt::format("expected {} cells, found {}", head.size(), cells.size()));
    const FigureCells of(head, std::move(cells));
    TrainingFigure row{.source = of.text("source"),
                       .model = of.text("model"),
                       .parameters = {},
                       .batch = of.count("batch_per_gpu", 1'000'000'000),
                       .precision = of.text("precision"),
                       .machine = of.text("machine"),
                       .regime = of.text("regime"),
                       .gpus = static_cast<int>(of.count("gpus", measured::most_ranks)),
                       .value = of.above_zero("value"),
                       .unit = of.text("unit"),
                       .where = line.where()};
    if (!of.empty("params")) row.parameters = of.count("params", std::int64_t{1} << 50);
    rows.push_back(std::move(row));
  }
  if (head.empty()) throw InputError(name, "expected a line with the names of the columns, found none");
  if (rows.empty()) throw InputError(name, "expected at least one row, found none");
  return rows;
}

TrainingMap parse_training_map(std::string_view text, const std::string& name) {
  const Json json = parse_json(text, name);
  const Place file{json, name, ""};
  if (!json.is_object()) throw InputError(name, fmt::format("expected an object, found {}", describe(json)));
  file.allow({"machines", "regimes", "missing"});
  TrainingMap map;
  if (file.has("machines"))
    for (const Place& each : file.at("machines").items()) map.machines.push_back(machine_in(each));
  if (file.has("regimes"))
    for (const Place& each : file.at("regimes").items()) map.ways.push_back(way_in(each));
  if (file.has("missing"))
    for (const Place& each : file.at("missing").items()) {
      each.allow({"words", "text"});
      map.gaps.push_back({words_in(each.at("words")), each.at("text").text()});
    }
  return map;
}

bool has_words(const std::string& text, const std::vector<std::string>& words) {
  const std::string in = measured::lower(text);
  return std::all_of(words.begin(), words.end(),
                     [&](const std::string& word) { return in.find(measured::lower(word)) != std::string::npos; });
}

TrainingFigures training_figures_in(const std::string& folder) {
  const std::filesystem::path path(folder);
  const std::string rows = (path / "published.csv").string(), mapping = (path / "mapping.json").string();
  TrainingFigures figures{.rows = parse_training_rows(scenarios::read_text(rows, "published figures"), rows),
                          .map = {}};
  std::error_code none;
  if (std::filesystem::exists(mapping, none))
    figures.map = parse_training_map(scenarios::read_text(mapping, "a table of machines and regimes"), mapping);
  const TrainingMap bundled = bundled_training().map;
  add_behind(figures.map.machines, bundled.machines);
  add_behind(figures.map.ways, bundled.ways);
  add_behind(figures.map.gaps, bundled.gaps);
  return figures;
}

}  // namespace ringsim
