// Reads output of OSU's benchmarks of collectives.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "validate/measured/measured.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim::measured {

namespace {

using Cells = std::vector<std::string_view>;

/// Columns of OSU's header are two blanks apart, their names have single ones.
std::vector<std::string> osu_columns(std::string_view header) {
  std::vector<std::string> columns;
  for (const std::string_view word : words_of(header)) {
    if (word == "#") continue;
    const bool joined = !columns.empty() && word.data()[-1] == ' ' && word.data()[-2] != ' ' && word.data()[-2] != '\t';
    if (joined && columns.back() != "Size")
      columns.back() += fmt::format(" {}", word);
    else
      columns.emplace_back(word);
  }
  return columns;
}

class OsuLog {
 public:
  Found read(const std::vector<Line>& lines) {
    found_.format = "OSU text";
    found_.from_benchmark = true;
    for (const Line& line : lines) take(line);
    return std::move(found_);
  }

 private:
  void take(const Line& line) {
    take_comment(line.text, found_.about);
    if (const std::size_t at = line.text.find("# OSU "); at != std::string_view::npos)
      take_title(line, line.text.substr(at + 2));
    else if (line.text.find("# Size") != std::string_view::npos)
      take_header(line);
    else if (!columns_.empty())
      take_row(line);
  }

  void take_title(const Line& line, std::string_view title) {
    const Cells parts = words_of(title);  // "OSU MPI-CUDA Allreduce Latency Test v5.7"
    const auto op = parts.size() > 2 ? collective_named(parts[2]) : std::nullopt;
    if (!op)
      throw InputError(line.where(), fmt::format("expected a benchmark of a collective, found {}", in_quotes(title)));
    columns_.clear();
    found_.runs.push_back({.ranks = std::nullopt, .op = op, .program = {}});
  }

  void take_header(const Line& line) {
    const std::size_t at = line.text.find("# Size");
    columns_ = osu_columns(line.text.substr(at));
    before_ = words_of(line.text.substr(0, at)).size();
    if (std::find(columns_.begin(), columns_.end(), "Avg Latency(us)") == columns_.end())
      throw InputError(line.where(), "expected a column \"Avg Latency(us)\", found none",
                       "only blocking collectives are supported");
    if (found_.runs.empty()) found_.runs.emplace_back();
  }

  void take_row(const Line& line) {
    Cells words = words_of(line.text);
    // Words before the header are a prefix of the log that rows have as well; the size may be joined to it.
    if (words.size() == columns_.size() + before_)
      words.erase(words.begin(), words.begin() + static_cast<long>(before_));
    if (words.empty()) return;
    const std::string_view size = words[0].substr(words[0].find_last_of(":>|]") + 1);
    if (!is_whole(size) || (words.size() > 1 && !number_in(words[1]))) return;  // other output
    if (words.size() != columns_.size())
      return line.cut
                 ? found_.warnings.push_back(line.where() + ": the last line of the file is incomplete and was ignored")
                 : found_.leave_out(line.where(), fmt::format("expected {} columns as in the header, found {}",
                                                              columns_.size(), words.size()));
    Row row{.op = found_.runs.back().op, .per_rank = true, .run = found_.runs.size() - 1, .line = line.number};
    row.where = line.where();
    row.bytes = {measured_count(size, "Size", row.where)};
    for (std::size_t i = 1; i < columns_.size(); ++i) {
      std::optional<Number>* const kept = columns_[i] == "Avg Latency(us)"   ? &row.out.time
                                          : columns_[i] == "Min Latency(us)" ? &row.min
                                          : columns_[i] == "Max Latency(us)" ? &row.max
                                                                             : nullptr;
      if (kept == nullptr) continue;
      if (const auto flaw = flaw_of(words[i], Measure::time, columns_[i])) return found_.leave_out(row.where, *flaw);
      *kept = measured_number(words[i], Measure::time, columns_[i], row.where);
    }
    found_.rows.push_back(std::move(row));
  }

  Found found_;
  std::vector<std::string> columns_;
  std::size_t before_ = 0;  ///< words before the header
};

}  // namespace

bool is_osu(const std::vector<Line>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const Line& line) {
    const auto has = [&](const char* words) { return line.text.find(words) != std::string_view::npos; };
    return has("# OSU ") || (has("# Size") && has("Latency(us)"));
  });
}

Found read_osu(const std::vector<Line>& lines) { return OsuLog().read(lines); }

}  // namespace ringsim::measured
