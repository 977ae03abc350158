#include "scenarios/scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "scenarios/conditions/expression.hpp"
#include "scenarios/conditions/where.hpp"
#include "scenarios/decoder/decode.hpp"
#include "scenarios/decoder/edit.hpp"
#include "scenarios/decoder/expand.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/meaning/meaning.hpp"
#include "scenarios/predict/measured_share.hpp"
#include "sim/base/error.hpp"
#include "sim/text/spelling.hpp"

namespace ringsim {

using namespace scenarios;

namespace {

constexpr std::size_t most_sweeps = 64;

/// One --set: its path, its value, and how errors call it.
struct Override {
  std::string option, path_text;
  DottedPath path;
  Json value;
  std::string hint;  ///< what may be wrong with how the value is written; empty: nothing
};

/// "[ring,tree]" with its words in quotes, as JSON; empty if that is no JSON either.
std::string quoted(const std::string& value) {
  std::string out;
  bool in_quotes_now = false;
  for (std::size_t i = 0; i < value.size();) {
    if (value[i] == '"') in_quotes_now = !in_quotes_now;
    const std::size_t end = in_quotes_now ? i : std::min(value.find_first_of("[]{},:\"", i), value.size());
    std::string word = value.substr(i, end - i);
    word.erase(0, std::min(word.find_first_not_of(' '), word.size()));
    word.erase(word.find_last_not_of(' ') + 1);
    if (word.empty()) {
      out += value[i++];
      continue;
    }
    out += Json::accept(word) ? word : Json(word).dump();
    i = end;
  }
  return Json::accept(out) ? out : "";
}

/// The hint for a value that looks like JSON and is none.
std::string hint_of_list(const std::string& path, const std::string& value) {
  constexpr std::size_t longest = 1000;
  const std::size_t first = value.find_first_not_of(' ');
  if (first == std::string::npos || (value[first] != '[' && value[first] != '{') || value.size() > longest) return "";
  if (const std::string json = quoted(value); !json.empty())
    return fmt::format("strings in a list or an object need quotes: '{}={}'", path, json);
  return fmt::format("a value that starts with {} must be JSON, such as '[\"ring\", \"direct\"]'", value[first]);
}

Override read_override(const std::string& text) {
  Override out;
  out.option = "--set " + (first_not_utf8(text) == std::string::npos ? text : in_quotes(text));
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) throw InputError(out.option, "expected PATH=VALUE, found no \"=\"");
  if (first_not_utf8(text) != std::string::npos)
    throw InputError(out.option, "expected text in UTF-8, found other bytes");
  out.path_text = text.substr(0, equals);
  out.path = split_path(out.path_text);
  if (out.path.empty()) {
    throw InputError(out.option,
                     fmt::format("expected a path of keys and indices such as \"topology.links.0.bandwidth\", "
                                 "found {}",
                                 in_quotes(out.path_text)));
  }
  const std::string value = text.substr(equals + 1);
  try {
    out.value = parse_json(value, "");
  } catch (const InputError&) {
    out.value = value;  // not JSON: text
    out.hint = hint_of_list(out.path_text, value);
  }
  return out;
}

/// An override pins what the file sweeps; one within what a sweep replaces would be lost.
void settle_with_sweeps(Json& root, const Override& override) {
  if (!root.contains("sweep") || !root["sweep"].is_object() || override.path.front() == "sweep") return;
  Json kept = Json::object();
  for (const auto& [key, values] : root["sweep"].items()) {
    const DottedPath swept = split_path(key);
    if (swept == override.path) continue;
    if (!swept.empty() && leads_to(swept, override.path)) {
      throw InputError(override.option,
                       fmt::format("expected a path outside all sweeps, found {} within the sweep of {}",
                                   in_quotes(override.path_text), in_quotes(key)));
    }
    kept[key] = values;
  }
  root["sweep"] = std::move(kept);
}

/// The document with the changes of --set.
Json overridden(std::string_view text, const std::string& name, const std::vector<std::string>& overrides,
                Blame& blame) {
  Json root = parse_json(text, name);
  if (!root.is_object()) blame.fail("", fmt::format("expected an object, found {}", describe(root)));
  for (const std::string& option : overrides) {
    Override override = read_override(option);
    settle_with_sweeps(root, override);
    if (override.value.is_null()) {
      try {
        remove(root, override.path);
      } catch (const InputError& error) {
        throw InputError(override.option, error.message(), error.hint());
      }
      continue;
    }
    const auto refuse = [&](const std::string& message) { throw InputError(override.option, message); };
    blame.from_override(edit(root, override.path, std::move(override.value), refuse), override.option, override.hint);
  }
  return root;
}

/// Takes the sweeps out of the document and leaves slots where their values go.
Json place_sweeps(Json& root, Blame& blame) {
  Json sweeps = Json::object();
  if (!root.contains("sweep")) return sweeps;
  sweeps = root["sweep"];
  root.erase("sweep");
  if (!sweeps.is_object()) {
    blame.fail("/sweep", fmt::format("expected an object of paths and their values, found {}", describe(sweeps)));
  }
  if (sweeps.size() > most_sweeps) {
    blame.fail("/sweep", fmt::format("expected at most {} paths, found {}", most_sweeps, sweeps.size()));
  }
  std::vector<DottedPath> paths;
  for (const auto& [key, values] : sweeps.items()) {
    const std::string place = child("/sweep", key);
    const DottedPath path = split_path(key);
    if (path.empty() || key.starts_with("sweep.")) {
      blame.fail(place,
                 fmt::format("expected a path of keys and indices such as \"topology.links.0.bandwidth\", found {}",
                             in_quotes(key)));
    }
    const Field* field = find(scenario_field().members, path.front());
    if (field != nullptr && !field->varies) {
      blame.fail(place,
                 fmt::format(
                     "expected a path in topology, collective, training, inference, trace, transport, network, faults, "
                     "disturbance, jobs or calibration, found {}",
                     in_quotes(key)));
    }
    for (const DottedPath& other : paths) {
      if (leads_to(other, path) || leads_to(path, other)) {
        blame.fail(place, fmt::format("expected paths that do not contain each other, found {} and {}",
                                      in_quotes(fmt::format("{}", fmt::join(other, "."))), in_quotes(key)));
      }
    }
    paths.push_back(path);
    blame.from_sweep(edit(root, path, make_slot(key), [&](const std::string& message) { blame.fail(place, message); }),
                     place);
  }
  return sweeps;
}

}  // namespace

namespace {

/// Texts that vary are called as in the canonical form, not as they are spelled: "p5.48xlarge" is aws-p5 in every row.
void name_as_choices(Varied& varied, const nlohmann::json& canonical) {
  for (auto& [path, value] : varied) {
    if (!value.starts_with('"')) continue;
    const nlohmann::json* at = &canonical;
    for (const std::string& key : split_path(path)) {
      if (at->is_array() && key.find_first_not_of("0123456789") == std::string::npos && std::stoul(key) < at->size()) {
        at = &(*at)[std::stoul(key)];
      } else if (at->is_object() && at->contains(key)) {
        at = &(*at)[key];
      } else {
        at = nullptr;
        break;
      }
    }
    if (at != nullptr && at->is_string()) value = at->dump();
  }
}

/// Solved shares of matrix products, by the plan that was measured and its step.
struct SolvedShares {
  std::mutex mutex;
  std::map<std::string, double> gemm;
};

const Json::json_pointer at_measured("/training/workload/compute/measured"), at_gemm("/training/workload/compute/gemm"),
    at_plan("/training/parallel");

Json with_gemm(Json written, double share) {
  written[at_measured.parent_pointer()].erase("measured");
  written[at_gemm] = fmt::format("{:.4f}%", 100 * share);
  return written;
}

/// The point that was measured: its plan, batch and nodes in place of the scenario's own.
Json measured_point(Json written, const Blame& blame) {
  const Json measured = written[at_measured];
  for (const char* key : {"step", "parallel"})
    if (!measured.contains(key))
      blame.fail(at_measured.to_string(), fmt::format("expected the key \"{}\", found none", key),
                 R"({"step": "14.6 s", "parallel": {"tensor": 8, "pipeline": 2}})");
  written.erase("jobs");
  written[at_plan] = measured["parallel"];
  for (const char* key : {"micro_batch_size", "global_batch_size", "sequence"})
    if (measured.contains(key)) written["training"]["workload"][key] = measured[key];
  written["training"]["memory"] = "ignore";  // it ran
  if (!measured.contains("nodes")) return written;
  Json& topology = written["topology"];
  if (topology.value("kind", "") != "cluster")
    blame.fail(at_measured.to_string() + "/nodes", "expected nodes of a cluster, found another topology");
  topology["nodes"] = measured["nodes"];
  if (measured["nodes"] == 1) topology.erase("fabric");
  return written;
}

}  // namespace

struct ScenarioFile::Impl {
  Blame blame;
  std::string name, file, hash;
  std::unique_ptr<Points> points;
  std::unique_ptr<Files> files;
  std::vector<Expression> where;
  std::optional<std::vector<std::uint32_t>> kept;  // by `where`: their numbers; nothing if there is none
  std::shared_ptr<SolvedShares> solved = std::make_shared<SolvedShares>();

  std::vector<std::uint32_t> let_through() const;
  bool lets_through(const Json& written) const {
    const LookUp look_up = [&](const std::string& path) { return value_at(written, path, blame); };
    return std::all_of(where.begin(), where.end(),
                       [&](const Expression& condition) { return condition.holds(look_up); });
  }

  std::size_t number(std::size_t i) const { return kept ? (*kept)[i] : i; }

  /// The share of matrix products with which the measured plan's step takes as long as measured.
  double solved_share(const Json& written, const nlohmann::json& canonical) const {
    const Json measured = measured_point(written, blame);
    const Picoseconds step{
        canonical[nlohmann::json::json_pointer(at_measured.to_string())]["step"].get<std::int64_t>()};
    const std::lock_guard lock(solved->mutex);
    const auto [found, is_new] = solved->gemm.try_emplace(measured.dump(), 0);
    if (!is_new) return found->second;
    try {
      found->second =
          measured_share(step, [&](double share) { return plain_point(with_gemm(measured, share), {}); }).gemm;
      return found->second;
    } catch (const InputError& error) {
      solved->gemm.erase(found);
      if (error.where().empty()) blame.fail(at_measured.to_string() + "/step", error.message(), error.hint());
      throw InputError(
          blame.where(at_measured.to_string()),
          fmt::format("expected a plan that can be simulated, found {}: {}", error.where(), error.message()),
          error.hint());
    }
  }

  /// A measured plan becomes the share of matrix products first. The hash is that of the scenario as written.
  Scenario point(const Json& written, Varied varied) const {
    if (!written.contains(at_measured) || !written.contains(at_plan)) return plain_point(written, std::move(varied));
    nlohmann::json canonical = canonical_point(written, blame, *files);
    if (written.contains(at_gemm))
      blame.fail(at_gemm.to_string(), "cannot be combined with measured, which determines it");
    use_one_spelling(canonical);
    const double share = solved_share(written, canonical);
    Scenario scenario = plain_point(with_gemm(written, share), std::move(varied));
    scenario.hash = hash_of(canonical);
    scenario.training->compute = fmt::format("measured plan: gemm {:.2f}%", 100 * share);
    return scenario;
  }

  Scenario plain_point(const Json& written, Varied varied) const {
    std::vector<std::string> notes;
    nlohmann::json canonical = canonical_point(written, blame, *files, &notes);
    name_as_choices(varied, canonical);
    use_one_spelling(canonical);
    Scenario scenario = scenario_of(canonical, written, blame, *files);
    scenario.warnings.insert(scenario.warnings.begin(), notes.begin(), notes.end());
    scenario.name = name;
    scenario.file = file;
    scenario.hash = hash_of(canonical);
    scenario.varied = std::move(varied);
    warn_of_idle_settings(canonical, written, blame, scenario);
    return scenario;
  }
};

namespace {

/// Takes `where` out of the document, reads it, and puts it into the canonical form in one spelling.
std::vector<Expression> read_where(Json& root, nlohmann::json& canonical, const Blame& blame) {
  std::vector<Expression> conditions;
  if (!root.contains("where")) return conditions;
  root.erase("where");
  for (std::size_t i = 0; i < canonical["where"].size(); ++i) {
    nlohmann::json& text = canonical["where"][i];
    conditions.push_back(Expression::parse(text.get_ref<const std::string&>(), blame.where(child("/where", i))));
    text = conditions.back().text();
  }
  return conditions;
}

}  // namespace

std::vector<std::uint32_t> ScenarioFile::Impl::let_through() const {
  std::vector<std::uint32_t> kept_ones;
  for (std::size_t i = 0; i < points->size(); ++i) {
    Varied unused;
    if (lets_through(points->at(i, unused))) kept_ones.push_back(static_cast<std::uint32_t>(i));
  }
  if (kept_ones.empty())
    blame.fail("/where", fmt::format("expected conditions that hold for at least one point, found none among {}",
                                     points->size()));
  return kept_ones;
}

ScenarioFile::ScenarioFile() = default;
ScenarioFile::~ScenarioFile() = default;
ScenarioFile::ScenarioFile(ScenarioFile&&) noexcept = default;
ScenarioFile& ScenarioFile::operator=(ScenarioFile&&) noexcept = default;

ScenarioFile ScenarioFile::load(const std::string& path, const std::vector<std::string>& overrides) {
  return parse(read_text(path, "a scenario file"), path, overrides);
}

ScenarioFile ScenarioFile::parse(std::string_view text, const std::string& name,
                                 const std::vector<std::string>& overrides) {
  Blame blame(name);
  Json root = overridden(text, name, overrides, blame);
  const Json sweeps = place_sweeps(root, blame);

  ScenarioFile file;
  auto files = std::make_unique<Files>(name);
  nlohmann::json canonical = canonical_file(root, sweeps, blame, *files);
  use_one_spelling(canonical);
  std::vector<Expression> where = read_where(root, canonical, blame);
  file.impl_ = std::make_unique<Impl>(Impl{.blame = blame,
                                           .name = "",
                                           .file = name,
                                           .hash = hash_of(canonical),
                                           .points = nullptr,
                                           .files = std::move(files),
                                           .where = std::move(where),
                                           .kept = std::nullopt});
  file.impl_->name =
      canonical.contains("name") ? canonical["name"].get<std::string>() : std::filesystem::path(name).stem().string();
  if (first_not_utf8(file.impl_->name) != std::string_view::npos)
    throw InputError(name, "expected a file name in UTF-8, because results contain it, found another encoding",
                     "rename the file, or give the scenario a \"name\"");
  file.impl_->points = std::make_unique<Points>(root, sweeps, blame);
  if (!file.impl_->where.empty()) file.impl_->kept = file.impl_->let_through();
  // One point: what it means is checked at once. Of several, each answers for itself when it is asked for.
  if (file.size() == 1) file.point(0);
  return file;
}

std::string with_overrides(std::string_view text, const std::string& name, const std::vector<std::string>& overrides) {
  Blame blame(name);
  return json_text(overridden(text, name, overrides, blame));
}

const std::string& ScenarioFile::name() const { return impl_->name; }
const std::string& ScenarioFile::hash() const { return impl_->hash; }
std::size_t ScenarioFile::size() const { return impl_->kept ? impl_->kept->size() : impl_->points->size(); }
std::size_t ScenarioFile::left_out() const { return impl_->points->size() - size(); }
Scenario ScenarioFile::point(std::size_t i) const {
  ensure(i < size(), "a point's number is below the number of points");
  Varied varied;
  const Json written = impl_->points->at(impl_->number(i), varied);
  return impl_->point(written, std::move(varied));
}

std::optional<Scenario> ScenarioFile::point(std::size_t i, Bytes size) const {
  ensure(i < this->size(), "a point's number is below the number of points");
  Varied varied;
  Json written = impl_->points->at(impl_->number(i), varied);
  for (const auto& [key, what] :
       {std::pair{"training", "a training step"}, {"inference", "an inference step"}, {"trace", "a trace"}})
    if (written.contains(key))
      impl_->blame.fail(fmt::format("/{}", key),
                        fmt::format("expected a collective, because only its size can be set, found {}", what));
  const std::string text = fmt::format("{} B", size.count);
  written["collective"]["bytes"] = text;
  if (!impl_->lets_through(written)) return std::nullopt;
  for (auto& [path, value] : varied)
    if (path == "collective.bytes") value = text;
  return impl_->point(written, std::move(varied));
}

std::string ScenarioFile::canonical(std::size_t i) const {
  ensure(i < size(), "a point's number is below the number of points");
  Varied unused;
  nlohmann::json canonical = canonical_point(impl_->points->at(impl_->number(i), unused), impl_->blame, *impl_->files);
  use_one_spelling(canonical);
  return physics_of(std::move(canonical)).dump();
}

PointId ScenarioFile::id(std::size_t i) const {
  ensure(i < size(), "a point's number is below the number of points");
  PointId id;
  const Json written = impl_->points->at(impl_->number(i), id.varied);
  try {
    nlohmann::json canonical = canonical_point(written, impl_->blame, *impl_->files);
    name_as_choices(id.varied, canonical);
    use_one_spelling(canonical);
    id.hash = hash_of(canonical);
  } catch (const InputError&) {  // point() says what is wrong
    id.hash = digest_of("not decoded: " + written.dump());
  }
  return id;
}

std::vector<const LibraryCall*> calls_of(const Scenario& scenario) {
  std::vector<const LibraryCall*> found;
  const auto take = [&](const LibraryCall& call) {
    const auto is_it = [&](const LibraryCall* known) { return known->number == call.number; };
    if (std::none_of(found.begin(), found.end(), is_it)) found.push_back(&call);
  };
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    const LibraryRun* library = scenario.library_of(j);
    if (library == nullptr) continue;
    take(library->call);
    for (const auto& [exchange, call] : library->exchanges) take(call);
  }
  return found;
}

}  // namespace ringsim
