#include "validate/measured/measured_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"

namespace ringsim::measured {

namespace {

struct Name {
  const char* text;
  What what;
};
// Without units, places and punctuation.
constexpr std::array names = std::to_array<Name>(
    {{"bytes", What::size},      {"size", What::size},     {"message_size", What::size}, {"msg_size", What::size},
     {"time", What::time},       {"latency", What::time},  {"avg_time", What::time},     {"avg_latency", What::time},
     {"time_avg", What::time},   {"min", What::min},       {"min_time", What::min},      {"time_min", What::min},
     {"min_latency", What::min}, {"max", What::max},       {"max_time", What::max},      {"time_max", What::max},
     {"max_latency", What::max}, {"algbw", What::algbw},   {"alg_bw", What::algbw},      {"busbw", What::busbw},
     {"bus_bw", What::busbw},    {"wrong", What::wrong},   {"nwrong", What::wrong},      {"collective", What::op},
     {"op", What::op},           {"name", What::op},       {"ranks", What::ranks},       {"num_ranks", What::ranks},
     {"nranks", What::ranks},    {"n_ranks", What::ranks}, {"world_size", What::ranks},  {"type", What::type},
     {"datatype", What::type},   {"redop", What::redop},   {"root", What::root},         {"count", What::nothing}});
/// In files of rccl-tests, which have a column "inPlace".
constexpr std::array rccl_names = std::to_array<Name>({{"gpusperrank", What::gpus_per_rank},
                                                       {"gpus", What::ranks},
                                                       {"inplace", What::is_in_place},
                                                       {"numcycle", What::cycle},
                                                       {"nodes", What::nothing},
                                                       {"rankspernode", What::nothing}});

struct Unit {
  const char* text;
  What of;  ///< size, time or algbw
  double size;
};
constexpr std::array units = std::to_array<Unit>({{"B", What::size, 1},
                                                  {"bytes", What::size, 1},
                                                  {"KiB", What::size, 1024},
                                                  {"MiB", What::size, 1024.0 * 1024},
                                                  {"GiB", What::size, 1024.0 * 1024 * 1024},
                                                  {"kB", What::size, 1e3},
                                                  {"MB", What::size, 1e6},
                                                  {"GB", What::size, 1e9},
                                                  {"ns", What::time, 1e-3},
                                                  {"us", What::time, 1},
                                                  {"ms", What::time, 1e3},
                                                  {"s", What::time, 1e6},
                                                  {"GBps", What::algbw, 1},
                                                  {"GB/s", What::algbw, 1},
                                                  {"MBps", What::algbw, 1e-3},
                                                  {"MB/s", What::algbw, 1e-3}});
/// After a number, as nccl-tests accepts them (parsesize() in common.cu): binary.
constexpr std::array size_letters = std::to_array<Unit>(
    {{"K", What::size, 1024}, {"M", What::size, 1024.0 * 1024}, {"G", What::size, 1024.0 * 1024 * 1024}});

/// The unit of nccl-tests' columns, whose names have none.
const char* printed_unit(What what) {
  const What kind = unit_kind(what);
  return kind == What::size ? "B" : kind == What::time ? "us" : "GB/s";
}

std::string with_single_marks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const char mark = c == ' ' || c == '(' || c == '[' || c == '-' || c == '_' ? '_' : c;
    if (c != ')' && c != ']' && c != '#' && (mark != '_' || !out.ends_with('_'))) out += mark;
  }
  while (out.ends_with('_')) out.pop_back();
  return out.starts_with('_') ? out.substr(1) : out;
}

/// Removes a word and an adjacent underscore from a name. Returns true if the word was there.
bool take_word(std::string& name, const std::string& word) {
  const std::size_t at = lower(name).find(word);
  if (at == std::string::npos) return false;
  const bool begins = at == 0 || name[at - 1] == '_';
  const bool ends = at + word.size() == name.size() || name[at + word.size()] == '_';
  if (!begins || !ends) return false;
  const bool behind = at + word.size() < name.size();
  if (behind)
    name.erase(at, word.size() + 1);
  else
    name.erase(at == 0 ? 0 : at - 1);
  return true;
}

template <std::size_t n>
std::optional<What> what_of(std::string_view text, const std::array<Name, n>& known) {
  const std::string wanted = lower(text);
  const auto found = std::find_if(known.begin(), known.end(), [&](const Name& each) { return wanted == each.text; });
  return found == known.end() ? std::nullopt : std::optional(found->what);
}

}  // namespace

What unit_kind(What what) {
  switch (what) {
    case What::size:
      return What::size;
    case What::time:
    case What::min:
    case What::max:
      return What::time;
    case What::algbw:
    case What::busbw:
      return What::algbw;
    default:
      return What::nothing;
  }
}

ColumnName column_name(std::string_view text) {
  ColumnName heading;
  std::string name = with_single_marks(text);
  heading.has_place = take_word(name, "out_of_place");
  heading.in_place = !heading.has_place && take_word(name, "in_place");
  heading.has_place = heading.has_place || heading.in_place;
  const auto take = [&](std::string_view base, std::string_view unit) {
    const bool only_place = base.empty() && heading.has_place;
    heading.what = only_place ? std::optional(What::time) : what_of(base, names);
    heading.name = !only_place ? std::string(base) : heading.in_place ? "in_place" : "out_of_place";
    heading.unit = unit;
    return heading.what.has_value();
  };
  if (take(name, lower(name) == "bytes" ? "B" : "")) return heading;
  const std::size_t last = name.rfind('_');
  take(name.substr(0, last == std::string::npos ? 0 : last), name.substr(last == std::string::npos ? 0 : last + 1));
  return heading;
}

std::optional<What> rccl_column(std::string_view text) { return what_of(text, rccl_names); }

double unit_of(const ColumnName& heading, const std::string& text, bool as_printed, const std::string& where) {
  const What kind = unit_kind(*heading.what);
  if (kind == What::nothing) return 1;
  const std::string unit = heading.unit.empty() && as_printed ? printed_unit(*heading.what) : heading.unit;
  std::string known;
  for (const Unit& each : units) {
    if (each.of != kind) continue;
    if (each.text == unit) return each.size;
    known += (known.empty() ? "" : ", ") + std::string(each.text);
  }
  throw InputError(where,
                   fmt::format("expected a unit in the column's name, as in {}_{}, found {}", heading.name,
                               kind == What::size   ? "KiB"
                               : kind == What::time ? "us"
                                                    : "GBps",
                               in_quotes(text)),
                   fmt::format("valid units: {}; b is bits, B is bytes", known));
}

std::optional<double> size_unit(std::string_view unit) {
  for (const Unit& each : size_letters)
    if (lower(unit) == lower(each.text)) return each.size;
  for (const Unit& each : units)
    if (each.of == What::size && unit == each.text) return each.size;
  return std::nullopt;
}

}  // namespace ringsim::measured
