#include "tools/formats/step_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/text/figures.hpp"
#include "sim/text/json.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/formats/shown_columns.hpp"

namespace ringsim::tools {

namespace {

/// The columns that say what a step is, in the order of the heading, each with its text there. Those in which rows
/// differ become the first columns of the table.
constexpr std::pair<std::string_view, std::string_view> about_steps[] = {
    {"job", "job {}"},         {"workload", "of {}"},    {"training", "{}"},    {"phase", "{}"},
    {"tp", "tp {}"},           {"pp", "pp {}"},          {"cp", "cp {}"},       {"ep", "ep {}"},
    {"dp", "dp {}"},           {"context", "{} tokens"}, {"batch", "batch {}"}, {"point.*", ""},
    {"ranks", "{} ranks"},     {"library", "{}"},        {"algorithm", "{}"},   {"protocol", "{}"},
    {"routing", "routing {}"}, {"model", "{} network"}};

/// The other columns of a table of several steps, in their order. --explain shows all.
constexpr std::string_view in_step_tables[] = {"time_us",
                                               "split_us.compute",
                                               "split_us.exposed_communication",
                                               "bubble_us",
                                               "exposed_tensor_us",
                                               "exposed_context_us",
                                               "exposed_expert_us",
                                               "exposed_pipeline_us",
                                               "exposed_data_us",
                                               "split_us.waiting_for_others",
                                               "overlapped_us",
                                               "updates_per_s",
                                               "staleness_mean",
                                               "staleness_max",
                                               "samples_per_s",
                                               "tokens_per_s",
                                               "tokens_per_s_per_gpu",
                                               "communication_share",
                                               "mfu",
                                               "efficiency",
                                               "of_bound",
                                               "trace.collectives",
                                               "trace.unwaited",
                                               "measured_us",
                                               "error",
                                               "closed_form.ratio",
                                               "bottleneck.link",
                                               "bottleneck.busy",
                                               "delayed"};

using Columns = std::vector<ShownColumn>;

/// The machine of all points: "2 x dgx-a100", "star"; empty if it varies.
std::string machine_of(const ScenarioFile& file, const std::vector<Result>& results) {
  for (const auto& [path, value] : results.front().prediction.varied)
    if (path.starts_with("topology")) return "";
  const Json topology = Json::parse(file.canonical(0)).value("topology", Json::object());
  if (!topology.contains("node") || !topology["node"].is_string()) {
    const std::string kind = topology.value("kind", "");
    return kind == "graph" ? "" : kind;  // a graph says nothing of what it is
  }
  const std::int64_t nodes = topology.value("nodes", std::int64_t{1});
  const std::string node = topology["node"].get<std::string>();
  return nodes == 1 ? node : fmt::format("{} x {}", nodes, node);
}

std::string kind_of(const std::vector<Result>& results) {
  const auto all = [&](auto holds) {
    return std::all_of(results.begin(), results.end(), [&](const Result& r) { return holds(*r.prediction.training); });
  };
  if (all([](const TrainingReport& t) { return t.inference.has_value(); })) return "inference step";
  if (all([](const TrainingReport& t) { return t.trace.has_value(); })) return "step of a trace";
  return "training step";
}

/// True if a result's text in the first column decides its text in the second.
bool decides(const ShownColumn& first, const ShownColumn& second, const std::vector<Result>& results) {
  std::map<std::string, std::string> text_of;
  return std::all_of(results.begin(), results.end(), [&](const Result& r) {
    const std::string text = second.cell(r).text;
    return text_of.try_emplace(first.cell(r).text, text).first->second == text;
  });
}

/// Drops columns that repeat others: a varied setting that a result also has ("tensor" next to "tp"), and what follows
/// from a varied regime.
void drop_repeated(const std::vector<Result>& results, Columns& columns) {
  static constexpr std::pair<std::string_view, std::string_view> repeated[] = {
      {"tensor", "tp"},   {"pipeline", "pp"},     {"context", "cp"},  {"expert", "ep"},
      {"batch", "batch"}, {"context", "context"}, {"phase", "phase"}, {"ranks", "ranks"}};
  const auto is_setting = [](const ShownColumn& column, std::string_view word) {
    const std::string_view heading = column.heading;
    return column.name == "point.*" && heading.substr(heading.rfind('.') + 1) == word;
  };
  for (const auto& [word, name] : repeated) {
    const auto own = std::find_if(columns.begin(), columns.end(),
                                  [&, of = name](const ShownColumn& column) { return column.name == of; });
    if (own == columns.end()) continue;
    const ShownColumn result = *own;
    std::erase_if(columns, [&, of = word](const ShownColumn& column) {
      return is_setting(column, of) && decides(result, column, results);
    });
  }
  if (std::any_of(columns.begin(), columns.end(),
                  [&](const ShownColumn& column) { return is_setting(column, "regime"); }))
    std::erase_if(columns,
                  [](const ShownColumn& column) { return column.name == "training" || column.name == "algorithm"; });
}

/// True if all results have the same cell in the column.
bool agree(const ShownColumn& column, const std::vector<Result>& results) {
  const TableCell first = column.cell(results.front());
  return std::all_of(results.begin(), results.end(), [&](const Result& r) {
    const TableCell cell = column.cell(r);
    return cell.text == first.text && cell.time == first.time;
  });
}

/// Moves what all steps agree in from the columns to the heading, and the rest of what says which step it is to
/// `names`.
std::string heading_of_steps(const ScenarioFile& file, const std::vector<Result>& results, Columns& columns,
                             Columns& names) {
  std::string heading = kind_of(results);
  for (const auto& [name, pattern] : about_steps) {
    if (name == "library")
      if (const std::string machine = machine_of(file, results); !machine.empty()) heading += ", " + machine;
    for (auto column = columns.begin(); column != columns.end();) {
      if (column->name != name) {
        ++column;
        continue;
      }
      const std::string value = column->cell(results.front()).text;
      if (name == "point.*" || !agree(*column, results))
        names.push_back(*column);
      else if (name == "workload")
        heading += value == "layers" ? "" : " of " + value;  // layers: the scenario's own, without a name
      else if (!value.empty() && value != "parallel")        // the regime of plans: tp, pp and dp say more
        heading += ", " + fmt::format(fmt::runtime(pattern), value);
      column = columns.erase(column);
    }
  }
  return heading;
}

/// The parts that sum to the step: of a plan by what its kernels wait for, else by what happens.
std::vector<std::pair<const char*, Picoseconds>> parts_of(const Result& result) {
  const TrainingReport& training = *result.prediction.training;
  std::vector<std::pair<const char*, Picoseconds>> parts{{"compute", training.split.compute}};
  if (training.plan) {
    const PlanSplit& split = training.plan->split;
    for (const auto& part : {std::pair{"bubble", split.bubble},
                             {"tensor", split.tensor},
                             {"context", split.context},
                             {"expert", split.expert},
                             {"pipeline", split.pipeline},
                             {"data", split.data}})
      parts.emplace_back(part);
  } else {
    for (const auto& part : {std::pair{"exposed communication", training.split.exposed_communication},
                             {"waiting for others", training.split.waiting_for_others},
                             {"waiting for the host", training.split.waiting_for_host},
                             {"idle", training.split.idle}})
      parts.emplace_back(part);
  }
  std::erase_if(parts, [](const auto& part) { return part.second.count() == 0; });
  return parts;
}

/// One step: its parts with their shares, then its other figures, one per line.
std::string one_step(const Columns& columns, const Result& result) {
  const Prediction& r = result.prediction;
  Table parts({"", "time", "share"});
  parts.parts_of(r.time);
  const auto add = [&](const std::string& name, Picoseconds time) {
    const double share =
        r.time.count() > 0 ? static_cast<double>(time.count()) / static_cast<double>(r.time.count()) : 0;
    parts.add({name, time, fmt::format("{:.1f} %", 100 * share)});
  };
  add("step", r.time);
  for (const auto& [name, time] : parts_of(result)) add(fmt::format("  {}", name), time);
  if (r.training->split.overlapped.count() > 0) add("overlapped communication", r.training->split.overlapped);

  std::vector<Definition> others;
  std::string busy;
  for (const ShownColumn& column : columns)
    if (column.name == "bottleneck.busy") busy = column.cell(result).text;
  for (const ShownColumn& column : columns) {
    const TableCell cell = column.cell(result);
    if (cell.time || cell.text.empty() || column.name == "bottleneck.busy") continue;
    if (column.name == "closed_form.ratio" && !result.form) continue;
    if (column.name == "buckets" && r.training->buckets == 0) continue;
    std::string more;
    if (column.name == "bottleneck.link") more = ", " + busy;
    // Megatron-LM's papers, for one, count it (Narayanan et al. 2021, section 5.1).
    if (column.name == "tflops_per_gpu" && r.training->plan && r.training->plan->split.recompute.count() > 0)
      more = ", without what is recomputed, which many publications count";
    others.push_back({column.heading, cell.text + more});
  }
  if (r.request.ranks > 1 && r.request.bytes.count > 0 && !r.training->inference && !r.training->trace)
    others.push_back({"gradients", size_text(r.request.bytes)});
  if (const Bytes memory = r.training->memory.total(); memory.count > 0)
    others.push_back({"memory per GPU",
                      size_text(memory) + (r.training->plan ? "" : ", excluding activations, which plans include")});
  std::size_t width = 0;
  for (const Definition& each : others) width = std::max(width, characters(each.name));
  std::string text = parts.text();
  for (const auto& [name, value] : others) {
    std::string line = name;
    line.append(width + 2 - characters(name), ' ').append(value);
    text += wrapped(line);
    text += '\n';
  }
  return text;
}

/// The columns for several steps, in their order.
Columns columns_of_table(Columns columns, const std::vector<Result>& results) {
  Columns chosen;
  const bool plans = std::all_of(results.begin(), results.end(),
                                 [](const Result& r) { return r.prediction.training->plan.has_value(); });
  const auto has = [&](std::string_view name) {
    return std::any_of(columns.begin(), columns.end(), [&](const ShownColumn& each) { return each.name == name; });
  };
  for (const std::string_view name : in_step_tables) {
    // A plan's kernels wait for what the parts after compute say; exposed and waiting say it once more.
    if (plans && (name == "split_us.exposed_communication" || name == "split_us.waiting_for_others")) continue;
    if (name == "samples_per_s" && has("tokens_per_s")) continue;
    if (name == "closed_form.ratio" && !std::all_of(results.begin(), results.end(), [](const Result& r) {
          return r.form.has_value() && r.form->holds();
        }))
      continue;
    for (ShownColumn& column : columns) {
      if (column.name != name) continue;
      const bool any_time = std::any_of(results.begin(), results.end(), [&](const Result& r) {
        const TableCell cell = column.cell(r);
        return !cell.time || cell.time->count() != 0;
      });
      if (any_time) chosen.push_back(std::move(column));
    }
  }
  return chosen;
}

/// The last word of a varying path is enough if no other column has it.
void shorten_headings(const Columns& columns, Columns& names) {
  for (ShownColumn& column : names) {
    const std::string word = column.heading.substr(column.heading.rfind('.') + 1);
    const auto has_it = [&](const ShownColumn& other) { return &other != &column && other.heading == word; };
    if (std::none_of(columns.begin(), columns.end(), has_it) && std::none_of(names.begin(), names.end(), has_it))
      column.heading = word;
  }
}

/// Drops columns until the table is one table, those first that matter least; returns their headings.
std::vector<std::string> drop_what_lacks_room(Columns& columns, const std::vector<Result>& results) {
  static constexpr std::string_view least_first[] = {"delayed",
                                                     "overlapped_us",
                                                     "tokens_per_s_per_gpu",
                                                     "protocol",
                                                     "algorithm",
                                                     "efficiency",
                                                     "bottleneck.busy",
                                                     "bottleneck.link",
                                                     "staleness_max",
                                                     "samples_per_s",
                                                     "staleness_mean",
                                                     "updates_per_s",
                                                     "communication_share",
                                                     "mfu"};
  std::vector<std::string> dropped;
  for (const std::string_view name : least_first) {
    if (!table_of_columns(columns, results).is_in_parts()) break;
    const auto found =
        std::find_if(columns.begin(), columns.end(), [&](const ShownColumn& column) { return column.name == name; });
    if (found == columns.end()) continue;
    dropped.push_back(found->heading);
    columns.erase(found);
  }
  return dropped;
}

}  // namespace

std::string step_name(const TrainingReport& training) {
  const std::string of = training.workload == "layers" ? "" : " of " + training.workload;
  if (training.inference) return fmt::format("{}{}", to_string(training.inference->phase), of);
  if (training.trace) return "step of a trace" + of;
  return fmt::format("training step{}, {}", of, training.regime);
}

std::string step_table(const ScenarioFile& file, const std::vector<Result>& results, bool explain, bool& closed_forms) {
  Columns columns = shown_columns(results, explain, closed_forms), names;
  std::erase_if(columns, [](const ShownColumn& column) {
    return column.name == "collective" || column.name == "bytes" || column.name == "channels" ||
           column.name == "groups";
  });
  drop_repeated(results, columns);
  std::string heading = heading_of_steps(file, results, columns, names);
  const std::string recorded = results.front().prediction.training->trace
                                   ? wrapped(
                                         "Computation takes the recorded times, whatever GPUs the machine has; "
                                         "calibration.scale_compute changes them.") +
                                         '\n'
                                   : "";
  if (results.size() == 1) return wrapped(heading) + '\n' + one_step(columns, results.front()) + recorded;
  if (!explain) columns = columns_of_table(std::move(columns), results);
  const auto form = std::find_if(columns.begin(), columns.end(),
                                 [](const ShownColumn& column) { return column.name == "closed_form.ratio"; });
  closed_forms = form != columns.end();
  if (closed_forms && agree(*form, results)) {
    heading += ", closed form " + form->cell(results.front()).text;
    columns.erase(form);
  }
  shorten_headings(columns, names);
  columns.insert(columns.begin(), std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
  const std::vector<std::string> left_out =
      explain ? std::vector<std::string>{} : drop_what_lacks_room(columns, results);
  std::string text = wrapped(heading) + '\n' + table_of_columns(columns, results).fitted();
  if (!left_out.empty())
    text += wrapped(fmt::format("Left out because lines would be too long: {}; --explain shows all.",
                                fmt::join(left_out, ", "))) +
            '\n';
  return text + recorded;
}

}  // namespace ringsim::tools
