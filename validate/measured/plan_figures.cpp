#include "validate/measured/plan_figures.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "scenarios/decoder/files.hpp"
#include "scenarios/fields/workload_files.hpp"
#include "scenarios/meaning/transformer.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "sim/text/json_place.hpp"
#include "sim/text/plain_text.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim {

namespace {

using measured::CsvField;

constexpr std::array needed = {"model", "gpu", "gpus", "seq", "mbs", "gbs", "tp", "pp"};
constexpr std::array known = {"id",
                              "split",
                              "source",
                              "system",
                              "node",
                              "vp",
                              "cp",
                              "ep",
                              "dp",
                              "shard",
                              "sp",
                              "overlap",
                              "recompute",
                              "precision",
                              "step_s",
                              "checked",
                              "tokens_per_s_per_gpu",
                              "tflops_per_gpu",
                              "memory_gib"};
/// The columns of vTrain's measurements (VIA-Research/vTrain at f8dda84, data/ground_truth_multi.csv).
constexpr std::array needed_vtrain = {
    "parameters (billion)", "# gpus",           "global batch",         "micro batch",
    "hidden size",          "# layers",         "attention heads",      "sequence length",
    "tensor parallelism",   "data parallelism", "pipeline parallelism", "iteration time (ms)"};

bool has(const std::vector<std::string>& head, const char* column) {
  return std::find(head.begin(), head.end(), column) != head.end();
}

/// The cells of a row by the names of their columns. The first cell without a meaning is the row's flaw.
class Cells {
 public:
  Cells(const std::vector<std::string>& head, const std::vector<CsvField>& cells) {
    for (std::size_t i = 0; i < head.size(); ++i) cells_.emplace(head[i], cells[i].text);
  }

  std::string text(const std::string& column) const {
    const auto found = cells_.find(column);
    return found == cells_.end() || found->second == "?" ? "" : found->second;
  }
  std::optional<double> number(const std::string& column) {
    const std::string cell = text(column);
    if (cell.empty()) return {};
    const auto found = measured::number_in(cell);
    if (found && std::isfinite(found->value) && found->value > 0) return found->value;
    flaw_because(column, "a number above 0", cell);
    return {};
  }
  /// 8 or 8.0; `otherwise` if the cell is empty.
  std::int64_t count(const std::string& column, std::optional<std::int64_t> otherwise = {}) {
    constexpr double most = 1e12;
    const std::string cell = text(column);
    if (cell.empty()) {
      if (!otherwise) flaw_because(column, "a whole number above 0", cell);
      return otherwise.value_or(1);
    }
    const auto found = measured::number_in(cell);
    if (found && found->value >= 1 && found->value <= most && found->value == std::floor(found->value))
      return static_cast<std::int64_t>(found->value);
    flaw_because(column, "a whole number above 0", cell);
    return 1;
  }
  void flaw_because(const std::string& column, const std::string& expected, const std::string& found) {
    if (flaw.empty())
      flaw = fmt::format("{}: expected {}, found {}", column, expected, found.empty() ? "none" : in_quotes(found));
  }

  std::string flaw;

 private:
  std::map<std::string, std::string> cells_;
};

/// The row's word in those of scenarios; words are compared without regard to capitals.
std::string sharding_of(Cells& cells) {
  const std::string word = measured::lower(cells.text("shard"));
  for (const auto& [to, from] : std::initializer_list<std::pair<const char*, std::vector<std::string>>>{
           {"none", {"", "none", "ddp", "no", "0"}},
           {"optimizer", {"zero1", "zero-1", "optimizer", "distributed_optimizer", "1"}},
           {"optimizer_gradients", {"zero2", "zero-2", "optimizer_gradients", "shard_grad_op", "2"}},
           {"full", {"zero3", "zero-3", "fsdp", "fsdp1", "fsdp2", "full", "full_shard", "3"}}})
    if (std::find(from.begin(), from.end(), word) != from.end()) return to;
  cells.flaw_because("shard", "none, zero1, zero2, zero3 or fsdp", cells.text("shard"));
  return "none";
}

std::vector<std::string> words_of_list(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : measured::lower(text) + ",")
    if (c == ',' || c == ';' || c == '+' || c == ' ') {
      if (!word.empty() && word != "none") words.push_back(word);
      word.clear();
    } else {
      word += c;
    }
  return words;
}

bool truth_of(Cells& cells, const std::string& column) {
  const std::string word = measured::lower(cells.text(column));
  for (const char* no : {"", "0", "0.0", "false", "no", "none"})
    if (word == no) return false;
  for (const char* yes : {"1", "1.0", "true", "yes"})
    if (word == yes) return true;
  cells.flaw_because(column, "0 or 1", word);
  return false;
}

/// As names of models are compared: "Llama-3 70B", "llama3_70b" and "llama3-70b" are one.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : measured::lower(name))
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.') plain += c;
  return plain;
}

const PlanModel* model_named(const std::vector<PlanModel>& models, const std::string& name) {
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const PlanModel& model) { return plain_name(model.name) == plain_name(name); });
  return found == models.end() ? nullptr : &*found;
}

/// "MosaicML 1600 Gb/s RoCE": of a node; "400 Gb/s a GPU". In Gb/s of each of 8 NICs; 0: the text says none.
std::int64_t link_in(const std::string& system) {
  const std::string text = measured::lower(system);
  const std::size_t unit = text.find(" gb/s");
  if (unit == std::string::npos || unit == 0) return 0;
  std::size_t begin = unit;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  if (begin == unit || unit - begin > 6) return 0;
  const std::int64_t rate = std::stoll(text.substr(begin, unit - begin));
  const std::string after = text.substr(unit + 5, 10);
  constexpr std::int64_t nics = 8;
  return after.starts_with(" a gpu") || after.starts_with(" per gpu") || after.starts_with("/gpu") ? rate : rate / nics;
}

PlanFigure figure_of(Cells& cells, const std::vector<PlanModel>& models) {
  PlanFigure row;
  row.id = cells.text("id");
  row.source = cells.text("source");
  row.system = cells.text("system");
  row.model = cells.text("model");
  row.gpu = cells.text("gpu");
  row.checked = cells.text("checked");
  row.gpus = cells.count("gpus");
  row.node = cells.count("node", 0);
  row.sequence = cells.count("seq");
  row.micro_batch = cells.count("mbs");
  row.global_batch = cells.count("gbs");
  row.tensor = cells.count("tp", 1);
  row.pipeline = cells.count("pp", 1);
  row.chunks = cells.count("vp", 1);
  row.context = cells.count("cp", 1);
  row.expert = cells.count("ep", 1);
  if (!cells.text("dp").empty()) row.data = cells.count("dp");
  row.shard = sharding_of(cells);
  row.recompute = measured::lower(cells.text("recompute"));
  if (row.recompute.empty()) row.recompute = "none";
  row.precision = measured::lower(cells.text("precision"));
  row.precision = row.precision.substr(0, row.precision.find(' '));
  row.sequence_parallel = truth_of(cells, "sp");
  row.overlap = words_of_list(cells.text("overlap"));
  row.link_gbits = link_in(row.system);
  row.memory_gib = cells.number("memory_gib");
  const auto step = cells.number("step_s"), rate = cells.number("tokens_per_s_per_gpu");
  if (step)
    row.step = *step;
  else if (rate)
    row.step = static_cast<double>(row.global_batch) * static_cast<double>(row.sequence) /
               (*rate * static_cast<double>(row.gpus));
  else
    cells.flaw_because("step_s", "a step time or tokens_per_s_per_gpu", "");
  if (const PlanModel* model = model_named(models, row.model))
    row.card = *model;
  else
    cells.flaw_because("model", "a name in models.json or a card in scenarios/workloads", row.model);
  row.flaw = cells.flaw;
  return row;
}

/// A row of vTrain's measurements. The plans are those of Megatron-DeepSpeed: fp16, attention that keeps its scores,
/// each layer's forward pass again; 39.1B with micro-batches of 24 sequences fits in no other way. Assumption: a node's
/// 800 Gb/s (vTrain's configuration) are four HDR NICs for eight GPUs, as in ABCI's A100 nodes; no page says it.
PlanFigure figure_of_vtrain(Cells& cells) {
  PlanFigure row;
  row.system = "nodes of 8 A100, 800 Gb/s a node";
  row.gpu = "A100-80";
  row.node = 8;
  row.machine = "abci-a";
  row.link_gbits = 200;
  row.gpus = cells.count("# gpus");
  row.global_batch = cells.count("global batch");
  row.micro_batch = cells.count("micro batch");
  row.sequence = cells.count("sequence length");
  row.tensor = cells.count("tensor parallelism");
  row.data = cells.count("data parallelism");
  row.pipeline = cells.count("pipeline parallelism");
  row.model = fmt::format("gpt-{}b", cells.text("parameters (billion)"));
  row.shard = "none";
  row.recompute = "full";
  row.precision = "fp16";
  row.step = cells.number("iteration time (ms)").value_or(1) / 1e3;
  PlanModel model{.name = row.model, .card = {}};
  model.card.layers = cells.count("# layers");
  model.card.hidden = cells.count("hidden size");
  model.card.heads = model.card.kv_heads = cells.count("attention heads");
  model.card.head_dim = std::max<std::int64_t>(1, model.card.hidden / model.card.heads);
  model.card.ffn = 4 * model.card.hidden;
  model.card.vocabulary = 51'200;  // GPT-2's, padded, as in Megatron-LM's table of the same sizes
  model.card.gated = false;
  model.card.tied = true;
  row.card = model;
  row.flaw = cells.flaw;
  return row;
}

/// The form of a table by its header: plans, vTrain, or neither.
enum class Form { plans, vtrain, other };

Form form_of(const std::vector<std::string>& head, const std::string& where) {
  std::vector<std::string> missing;
  if (std::all_of(needed_vtrain.begin(), needed_vtrain.end(), [&](const char* each) { return has(head, each); }))
    return Form::vtrain;
  for (const char* each : needed)
    if (!has(head, each)) missing.emplace_back(each);
  if (!has(head, "step_s") && !has(head, "tokens_per_s_per_gpu")) missing.emplace_back("step_s");
  if (missing.empty()) return Form::plans;
  constexpr std::size_t few = 3;
  const bool is_meant = has(head, "tp") && has(head, "pp") && missing.size() <= few;
  if (is_meant)
    throw InputError(
        where, fmt::format("expected the columns of a table of plans, found none named {}", fmt::join(missing, ", ")),
        "columns: " + fmt::format("{}", fmt::join(needed, ", ")) + ", step_s or tokens_per_s_per_gpu");
  return Form::other;
}

std::string base_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

void note_unread(const std::vector<std::string>& head, Form form, const std::string& file, PlanFigures& out) {
  std::vector<std::string> unread;
  const auto is_in = [](const auto& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const std::string& name : head)
    if (form == Form::plans ? !is_in(needed, name) && !is_in(known, name) : !is_in(needed_vtrain, name))
      unread.push_back(in_quotes(name));
  if (!unread.empty()) out.notes.push_back(fmt::format("{}: ignored columns: {}", file, fmt::join(unread, ", ")));
}

}  // namespace

std::optional<PlanFigures> parse_plan_rows(std::string_view text, const std::string& name,
                                           const std::vector<PlanModel>& models) {
  PlanFigures out;
  std::vector<std::string> head;
  Form form = Form::other;
  std::string stated_source;
  const std::string file = base_name(name);
  for (const measured::Line& line : measured::lines_of(text, name)) {
    if (trimmed(line.text).empty()) continue;
    if (line.text.starts_with('#')) {
      constexpr std::string_view source = "# source:";
      if (line.text.starts_with(source)) stated_source = std::string(trimmed(line.text.substr(source.size())));
      continue;
    }
    const std::vector<CsvField> cells = measured::fields_of(line, ',');
    if (head.empty()) {
      for (const CsvField& cell : cells) {
        if (has(head, measured::lower(cell.text).c_str()))
          throw InputError(cell.where, fmt::format("expected each column once, found {} again", in_quotes(cell.text)));
        head.push_back(measured::lower(cell.text));
      }
      form = form_of(head, line.where());
      if (form == Form::other) return {};
      note_unread(head, form, file, out);
      continue;
    }
    if (cells.size() != head.size())
      throw InputError(cells.back().where, fmt::format("expected {} cells, found {}", head.size(), cells.size()));
    Cells named(head, cells);
    PlanFigure row = form == Form::plans ? figure_of(named, models) : figure_of_vtrain(named);
    row.file = file;
    row.where = line.where();
    if (row.source.empty()) row.source = stated_source.empty() ? file : stated_source;
    if (row.id.empty()) row.id = fmt::format("{}:{}", file, line.number);
    out.rows.push_back(std::move(row));
  }
  if (form == Form::other) return {};
  return out;
}

std::vector<PlanModel> parse_plan_models(std::string_view text, const std::string& name) {
  const Json json = parse_json(text, name);
  if (!json.is_object()) throw InputError(name, fmt::format("expected an object, found {}", describe(json)));
  const Place file{json, name, ""};
  std::vector<PlanModel> models;
  for (const auto& [key, value] : json.items()) {
    if (key == "note" || key == "source") continue;
    const Place place = file.at(key);
    place.allow({"layers",     "hidden",     "heads",        "kv_heads", "head_dim",  "ffn",     "gated", "vocab",
                 "vocabulary", "tied",       "flash",        "biases",   "positions", "experts", "topk",  "top_k",
                 "expert_ffn", "shared_ffn", "dense_layers", "mla",      "source",    "note"});
    nlohmann::json card = nlohmann::json(value);
    const auto rename = [&](const char* from, const char* to) {
      if (!card.contains(from)) return;
      card[to] = card[from];
      card.erase(from);
    };
    rename("vocab", "vocabulary");
    rename("topk", "top_k");
    for (const char* figure : {"layers", "hidden", "heads", "ffn", "vocabulary"})
      if (!card.contains(figure))
        place.fail(fmt::format("expected the key {}, found none",
                               in_quotes(figure == std::string("vocabulary") ? "vocab" : figure)));
    for (const auto& [figure, number] : card.items())
      if (number.is_number() && (!number.is_number_integer() || number < 0 || number > 1'000'000'000))
        place.at(figure == "vocabulary" && !place.has("vocabulary") ? "vocab" : figure).fail("expected a whole number");
    PlanModel model{.name = key, .card = {}};
    model.flash = card.value("flash", false);
    if (!card.contains("gated")) card["gated"] = false;
    const bool is_gpt = !card["gated"].get<bool>() && !model.flash && card.value("experts", 0) == 0 &&
                        card.value("kv_heads", card["heads"].get<int>()) == card["heads"].get<int>();
    if (!card.contains("biases")) card["biases"] = is_gpt;
    if (!card.contains("tied")) card["tied"] = card["biases"];
    if (card.contains("mla")) model.special = "latent attention (mla)";
    try {
      model.card = scenarios::transformer_of(card);
    } catch (const InputError& error) {
      place.fail(error.message());
    }
    models.push_back(std::move(model));
  }
  return models;
}

namespace {

/// The cards of scenarios/workloads, for tables that name one of them.
std::vector<PlanModel> bundled_models() {
  std::vector<PlanModel> models;
  for (const auto& [name, text] : scenarios::workload_files()) {
    const Json file = parse_json(text, "scenarios/workloads/" + name + ".json");
    if (!file.contains("transformer")) continue;
    PlanModel model{.name = name, .card = scenarios::transformer_of(nlohmann::json(file["transformer"]))};
    model.flash = !model.card.biases;
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace

PlanFigures plan_figures_in(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  std::vector<std::string> tables;
  const bool is_file = fs::is_regular_file(path, none);
  const fs::path folder = is_file ? fs::path(path).parent_path() : fs::path(path);
  if (is_file) tables.push_back(path);
  if (!is_file)
    for (const auto& entry : fs::directory_iterator(folder, none))
      if (measured::lower(entry.path().extension().string()) == ".csv") tables.push_back(entry.path().string());
  std::sort(tables.begin(), tables.end());
  std::vector<PlanModel> models;
  if (const std::string cards = (folder / "models.json").string(); fs::exists(cards, none))
    models = parse_plan_models(scenarios::read_text(cards, "model cards"), cards);
  for (PlanModel& each : bundled_models()) models.push_back(std::move(each));
  PlanFigures out;
  for (const std::string& table : tables) {
    if (base_name(table) == "published.csv") continue;
    auto found = parse_plan_rows(scenarios::read_text(table, "a table of plans"), table, models);
    if (!found) {
      out.notes.push_back(base_name(table) + ": ignored because its columns are not those of a table of plans");
      continue;
    }
    out.tables.push_back(table);
    out.rows.insert(out.rows.end(), found->rows.begin(), found->rows.end());
    out.notes.insert(out.notes.end(), found->notes.begin(), found->notes.end());
  }
  return out;
}

}  // namespace ringsim
