#include "validate/score/scorecard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "scenarios/decoder/files.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/rccl/rccl_machine.hpp"
#include "validate/score/compare.hpp"

namespace ringsim {

namespace {

namespace fs = std::filesystem;

std::string said(const MeasuredTable& table, const char* key) {
  const auto found = table.about.find(key);
  return found == table.about.end() ? "" : found->second;
}

CollectiveOp only_op(const MeasuredTable& table) {
  for (const MeasuredRow& row : table.rows)
    if (row.op != table.rows.front().op)
      throw InputError(table.file, fmt::format("expected one collective, found {} and {}",
                                               to_string(table.rows.front().op), to_string(row.op)));
  return table.rows.front().op;
}

ScenarioFile scenario_at_its_sizes(const PublishedTable& published, const MeasuredTable& table,
                                   std::vector<std::string> overrides = {}) {
  std::string sizes;
  for (const MeasuredRow& row : table.rows)
    sizes += fmt::format("{}\"{} B\"", sizes.empty() ? "" : ", ", row.bytes.count);
  overrides.push_back("collective.bytes=[" + sizes + "]");
  ScenarioFile file = ScenarioFile::parse(published.scenario, published.scenario_file, overrides);
  require_measured_ranks(file, table);
  if (const CollectiveOp op = file.point(0).main().request.op; op != only_op(table))
    throw InputError(
        published.scenario_file + ": /collective/op",
        fmt::format("expected {} as in {}, found {}", to_string(only_op(table)), published.csv_file, to_string(op)));
  return file;
}

Family family_of(const Scenario& scenario, const Prediction& prediction) {
  if (!std::holds_alternative<Cluster>(scenario.topology)) return Family::none;
  if (prediction.nodes > 1) return Family::nodes;
  const Topology topology = topology_of(scenario);
  const auto joins_gpus = [](const Link& link) { return link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi; };
  return std::any_of(topology.links().begin(), topology.links().end(), joins_gpus) ? Family::nvlink : Family::pcie;
}

/// "ring rings=2 simple".
std::string way_of(const Prediction& p) {
  std::string text = p.algorithm;
  for (const auto& [parameter, value] : p.parameters)
    text += fmt::format(" {}={}", parameter, value.starts_with('"') ? value.substr(1, value.size() - 2) : value);
  if (p.protocol != &no_protocol()) text += fmt::format(" {}", p.protocol->name);
  return text;
}

void keep_faster(std::optional<ModelTime>& best, const Prediction& p) {
  const double us = microseconds(p.time);
  if (!best || us < best->us) best = ModelTime{us, way_of(p)};
}

/// Every other row of those that count is predicted from a line through the rest.
void fit_lines(std::vector<ScoredRow>& rows) {
  std::array<std::vector<ScoredRow*>, 2> halves;
  for (std::size_t i = 0, turn = 0; i < rows.size(); ++i)
    if (rows[i].scored) halves[turn++ % 2].push_back(&rows[i]);
  for (std::size_t half = 0; half < 2; ++half) {
    std::vector<std::pair<Bytes, double>> seen;
    std::set<Bytes> sizes;
    for (const ScoredRow* row : halves[half]) {
      seen.emplace_back(row->bytes, row->measured_us);
      sizes.insert(row->bytes);
    }
    if (sizes.size() < 2) continue;
    const Line line = fitted_line(seen);
    for (ScoredRow* row : halves[1 - half])
      row->times[static_cast<std::size_t>(Model::line)] = ModelTime{line.at(row->bytes), ""};
  }
}

void add_predictions(ScoredTable& scored, std::span<const Prediction> predictions) {
  std::map<Bytes, ScoredRow*> by_size;
  for (ScoredRow& row : scored.rows) by_size[row.bytes] = &row;
  for (const Prediction& p : predictions) {
    const Model model = !p.library.empty()             ? Model::library
                        : p.protocol == &no_protocol() ? Model::plain
                                                       : Model::protocols;
    keep_faster(by_size.at(p.request.bytes)->times[static_cast<std::size_t>(model)], p);
  }
}

void add_baselines(ScoredTable& scored, const Scenario& scenario, const MeasuredTable& table) {
  const TextbookMachine machine = textbook_machine(scenario);
  const TunerBaseline tuner(scenario, table.about);
  for (ScoredRow& row : scored.rows) {
    row.times[static_cast<std::size_t>(Model::textbook)] = textbook_time(machine, scored.op, row.bytes);
    row.times[static_cast<std::size_t>(Model::tuner)] = tuner.time(scored.op, row.bytes);
  }
  fit_lines(scored.rows);
}

/// Solves for the launch of the library's column from the table's smallest scored rows. `set`: with which that column
/// was predicted.
void find_launch(ScoredTable& scored, const PublishedTable& published, std::vector<std::string> set) {
  std::vector<ScoredRow*> own;
  std::vector<Bytes> sizes;
  for (ScoredRow& row : scored.rows) {
    if (!row.scored || !row.of(Model::library)) continue;
    own.push_back(&row);
    sizes.push_back(row.bytes);
  }
  if (own.empty()) return;
  const std::vector<std::size_t> places = rows_that_give_launch(sizes);
  if (places.empty()) {
    scored.no_launch = fmt::format("no scored row of {} or less", format(most_for_launch));
    return;
  }
  std::vector<LaunchRow> rows;
  for (const std::size_t place : places)
    rows.push_back({own[place]->bytes, own[place]->measured_us, own[place]->of(Model::library)->us});
  set.push_back(fmt::format("collective.bytes={} B", rows.front().bytes.count));
  GivenLaunch given = solve_launch(std::move(rows), own_launch(published.scenario, published.scenario_file, set));
  given.key = "devices.gpu.launch";
  if (given.is_implausible()) {
    scored.no_launch = implausible_text(given);
    return;
  }
  for (const std::size_t place : places) own[place]->gives_launch = true;
  scored.launch = std::move(given);
}

/// Puts the launch into the library's column: it shifts all times alike.
void give_launch(ScoredTable& scored) {
  if (!scored.launch) return;
  const double shift = microseconds(scored.launch->shift());
  for (ScoredRow& row : scored.rows) {
    if (auto& time = row.times[static_cast<std::size_t>(Model::library)]) time->us += shift;
    row.scored = row.scored && !row.gives_launch;
  }
}

/// Those of --set that hold for a scenario with that library ("nccl", "rccl"), or for one without (""). RCCL has none
/// of NCCL's costs.
std::vector<std::string> changes_of(const ScoreOptions& options, const std::string& library) {
  std::vector<std::string> out;
  for (const std::string& each : options.set) {
    const bool of_library = each.starts_with("library.") || each.starts_with("library=");
    const bool of_nccl = each.starts_with("library.costs=");
    if (!of_library || library == "nccl" || (library == "rccl" && !of_nccl)) out.push_back(each);
  }
  return out;
}

/// A table of a release that is not modeled is scored only if its scenario names the one to predict.
void warn_of_newer_release(ScoredTable& scored, const PublishedTable& published, const MeasuredTable& table,
                           const Scenario& scenario) {
  const std::string predicted = scenario.library
                                    ? fmt::format("{} {}", scenario.library->name, scenario.library->version)
                                    : fmt::format("nccl {}", nccl::newest_version);
  const std::string newer = newer_release_text(table.about, predicted);
  if (newer.empty()) return;
  if (const auto said = said_library(table.about); !scenario.library && said->is_rccl)
    throw InputError(
        published.csv_file + ": # library",
        fmt::format("expected RCCL {}, the release that is modeled, found {}", rccl::modeled_version,
                    table.about.at("library")),
        fmt::format("with \"library\": \"rccl\", {} predicts that release, with a warning", published.scenario_file));
  if (!scenario.library)
    throw InputError(published.csv_file + ": # library",
                     fmt::format("expected an NCCL release up to {}, the newest that is modeled, found {}",
                                 nccl::newest_version, table.about.at("library")),
                     fmt::format("newer releases use different rules (docs/guide/nccl.md, Newer releases); with "
                                 "\"library\": \"nccl\", {} predicts {}, with a warning",
                                 published.scenario_file, nccl::newest_version));
  scored.warnings.push_back(fmt::format("{}: {}", published.csv_file, newer));
}

/// The library that the table's scenario names; "" if it names none.
std::string named_library(const PublishedTable& published) {
  const Scenario scenario = ScenarioFile::parse(published.scenario, published.scenario_file).point(0);
  return scenario.library ? scenario.library->name : "";
}

}  // namespace

std::vector<std::string> library_instead(const SaidLibrary& library) {
  std::string env;
  const auto add = [&](const char* name, std::string_view value) {
    env += fmt::format(R"({}"{}": "{}")", env.empty() ? "" : ", ", name, value);
  };
  if (library.algorithm) add("NCCL_ALGO", to_string(*library.algorithm));
  if (library.protocol) add("NCCL_PROTO", to_string(*library.protocol));
  const std::string version = library.version.empty() ? "" : fmt::format(R"("version": "{}", )", library.version);
  std::vector<std::string> out = {
      fmt::format(R"(library={{"name": "{}", {}"env": {{{}}}}})", library.is_rccl ? "rccl" : "nccl", version, env)};
  for (const char* decided : {"collective.algorithm", "collective.order", "transport.protocol", "transport.launch",
                              "transport.channels", "transport.chunk", "transport.nics"})
    out.push_back(fmt::format("{}=null", decided));
  return out;
}

std::vector<PublishedTable> tables_in(const std::string& folder) {
  std::map<std::string, PublishedTable> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string extension = entry.path().extension().string(), id = entry.path().stem().string();
    const std::string path = entry.path().string();
    if (extension == ".csv") {
      found[id].csv_file = path;
      found[id].csv = scenarios::read_text(path, "a measured table");
    } else if (extension == ".json") {
      found[id].scenario_file = path;
      found[id].scenario = scenarios::read_text(path, "a scenario file");
    }
  }
  if (found.empty())
    throw InputError(folder, "expected a folder of measured tables (ID.csv) and their scenarios (ID.json), found none");
  std::vector<PublishedTable> tables;
  for (auto& [id, table] : found) {
    table.id = id;
    if (table.csv_file.empty())
      throw InputError(table.scenario_file, fmt::format("expected a measured table {}.csv next to it, found none", id));
    tables.push_back(std::move(table));
  }
  return tables;
}

ScoredSizes scored_sizes(const MeasuredTable& table) {
  const std::string text = said(table, "score");
  if (text.empty()) return {};
  const std::size_t end = text.find("; ");
  const std::string which = text.substr(0, end);
  ScoredSizes sizes{.reason = end == std::string::npos ? "" : text.substr(end + 2)};
  try {
    if (sizes.reason.empty()) throw InputError("", "");
    if (which == "none")
      sizes.to = Bytes{-1};
    else if (which.starts_with("from "))
      sizes.from = parse_bytes(which.substr(5));
    else if (which.starts_with("to "))
      sizes.to = parse_bytes(which.substr(3));
    else
      throw InputError("", "");
  } catch (const InputError&) {
    throw InputError(
        table.file + ": # score",
        fmt::format("expected \"none; REASON\", \"from SIZE; REASON\" or \"to SIZE; REASON\", found \"{}\"", text));
  }
  return sizes;
}

std::string_view to_string(Model model) {
  constexpr std::array<std::string_view, models.size()> names{
      "ringsim, library", "ringsim, plain", "ringsim, protocols", "textbook ring", "NCCL's tuner", "alpha + S/beta"};
  return names[static_cast<std::size_t>(model)];
}

std::string_view to_string(Family family) {
  constexpr std::array<std::string_view, families.size()> names{"one node, NVLink", "one node, PCIe", "several nodes",
                                                                "no machine", "RCCL"};
  return names[static_cast<std::size_t>(family)];
}

ScoredTable score(const PublishedTable& published, const PredictAll& predict_all, const ScoreOptions& options) {
  const MeasuredTable table = parse_measured(published.csv, published.csv_file);
  ScoredTable scored{.id = published.id,
                     .op = only_op(table),
                     .ranks = table.ranks.value_or(0),
                     .family = {},
                     .sizes = scored_sizes(table),
                     .missing = said(table, "missing"),
                     .rows = {},
                     .warnings = {},
                     .launch = {},
                     .no_launch = {}};
  for (const MeasuredRow& row : table.rows)
    scored.rows.push_back(
        {.bytes = row.bytes, .measured_us = row.time_us, .scored = scored.sizes.contains(row.bytes), .times = {}});
  if (published.scenario_file.empty()) {
    if (scored.sizes.from <= scored.sizes.to)
      throw InputError(published.csv_file,
                       fmt::format("expected a scenario of its machine, {}.json next to it, found none", published.id),
                       "or a line \"# score: none; REASON\"");
    return scored;
  }
  const std::string named = named_library(published);
  const bool by_library = !named.empty();
  const ScenarioFile file = scenario_at_its_sizes(published, table, changes_of(options, named));
  const Scenario scenario = file.point(0);
  warn_of_newer_release(scored, published, table, scenario);
  scored.ranks = scenario.main().request.ranks;
  std::vector<Prediction> predictions;
  if (by_library || !options.only_library) predictions = predict_all(file);
  std::vector<std::string> library_set = changes_of(options, named);
  const auto* cluster = std::get_if<Cluster>(&scenario.topology);
  if (const std::optional<SaidLibrary> library = said_library(table.about);
      library && !by_library && cluster != nullptr && cluster->parts.size() == 1) {
    std::vector<std::string> set = library_instead(*library);
    for (std::string& each : changes_of(options, library->is_rccl ? "rccl" : "nccl")) set.push_back(std::move(each));
    for (Prediction& each : predict_all(scenario_at_its_sizes(published, table, set)))
      predictions.push_back(std::move(each));
    library_set = std::move(set);
  }
  const std::optional<SaidLibrary> ran = said_library(table.about);
  if (!predictions.empty())
    scored.family = ran && ran->is_rccl ? Family::rccl : family_of(scenario, predictions.front());
  add_predictions(scored, predictions);
  find_launch(scored, published, std::move(library_set));
  if (options.launch_given) give_launch(scored);
  add_baselines(scored, scenario, table);
  return scored;
}

bool is_of(const ScoredTable& table, const std::optional<Family>& family) {
  return family ? table.family == family : table.family && table.family != Family::rccl;
}

std::vector<SizedError> errors_of(const ScoredTable& table, Model model) {
  std::vector<SizedError> errors;
  for (const ScoredRow& row : table.rows)
    if (row.scored && row.of(model)) errors.push_back({row.bytes, row.of(model)->us / row.measured_us - 1});
  return errors;
}

std::vector<SizedError> errors_of(std::span<const ScoredTable> tables, Model model,
                                  const std::optional<Family>& family) {
  std::vector<SizedError> all;
  for (const ScoredTable& table : tables) {
    if (!is_of(table, family)) continue;
    const std::vector<SizedError> errors = errors_of(table, model);
    all.insert(all.end(), errors.begin(), errors.end());
  }
  return all;
}

LaunchErrors launch_errors_of(std::span<const ScoredTable> tables, const std::optional<Family>& family) {
  LaunchErrors errors;
  for (const ScoredTable& table : tables) {
    if (!is_of(table, family)) continue;
    const double shift = table.launch ? microseconds(table.launch->shift()) : 0;
    for (const ScoredRow& row : table.rows) {
      if (!row.scored || row.gives_launch || !row.of(Model::library)) continue;
      const double us = row.of(Model::library)->us;
      errors.without.push_back({row.bytes, us / row.measured_us - 1});
      errors.with.push_back({row.bytes, (us + shift) / row.measured_us - 1});
    }
  }
  return errors;
}

Model best_model(const ScoredTable& table) {
  for (const Model model : {Model::library, Model::protocols})
    if (!errors_of(table, model).empty()) return model;
  return Model::plain;
}

std::vector<const ScoredTable*> worst_of(std::span<const ScoredTable> tables, std::size_t most) {
  std::vector<std::pair<double, const ScoredTable*>> by_error;
  for (const ScoredTable& table : tables) {
    const std::vector<SizedError> errors = errors_of(table, best_model(table));
    if (!errors.empty()) by_error.emplace_back(error_band("", errors).median_abs, &table);
  }
  std::stable_sort(by_error.begin(), by_error.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const ScoredTable*> worst;
  for (std::size_t i = 0; i < std::min(most, by_error.size()); ++i) worst.push_back(by_error[i].second);
  return worst;
}

}  // namespace ringsim
