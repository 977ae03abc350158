#include "tools/explanations/scorecard_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/table.hpp"
#include "tools/output/output.hpp"
#include "tools/output/page.hpp"
#include "validate/score/score_limits.hpp"

namespace ringsim::tools {

namespace {

using Tables = std::span<const ScoredTable>;
using CardRow = std::vector<std::string>;

/// "12 / 35"; with the number of rows if it is not that of all.
std::string cell(const ErrorBand& band, int rows) {
  const std::string text = fmt::format("{:.0f} / {:.0f}", 100 * band.median_abs, 100 * band.p90_abs);
  return band.rows == rows ? text : text + fmt::format(" ({})", band.rows);
}

const ErrorBand* find(const std::vector<ErrorBand>& bands, const std::string& name) {
  const auto found = std::find_if(bands.begin(), bands.end(), [&](const ErrorBand& b) { return b.name == name; });
  return found == bands.end() ? nullptr : &*found;
}

CardRow model_head(CardRow head) {
  for (const Model model : models) head.emplace_back(to_string(model));
  return head;
}

/// The bands that have scored rows, and their number of rows, whatever models say of them.
std::vector<ErrorBand> bands_of_rows(Tables tables, const std::optional<Family>& family) {
  std::vector<SizedError> rows;
  for (const ScoredTable& table : tables)
    for (const ScoredRow& row : table.rows)
      if (row.scored && is_of(table, family)) rows.push_back({row.bytes, 0});
  std::vector<ErrorBand> bands = error_bands(rows);
  if (!rows.empty()) bands.push_back(error_band("all sizes", rows));
  return bands;
}

/// A row for each band of sizes, and one for all.
std::vector<CardRow> band_rows(Tables tables, const std::optional<Family>& family) {
  std::vector<std::vector<ErrorBand>> bands;  // [model]
  for (const Model model : models) {
    const auto errors = errors_of(tables, model, family);
    bands.push_back(error_bands(errors));
    if (!errors.empty()) bands.back().push_back(error_band("all sizes", errors));
  }
  std::vector<CardRow> rows;
  for (const ErrorBand& band : bands_of_rows(tables, family)) {
    CardRow row{band.name, fmt::to_string(band.rows)};
    for (const auto& of_model : bands) {
      const ErrorBand* found = find(of_model, band.name);
      row.push_back(found != nullptr ? cell(*found, band.rows) : "-");
    }
    for (const Model model : {Model::library, Model::protocols}) {
      const ErrorBand* with = find(bands[static_cast<std::size_t>(model)], band.name);
      row.push_back(with != nullptr ? fmt::format("{:+.0f}", 100 * with->median_signed) : "-");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

CardRow band_head() {
  CardRow head = model_head({"sizes", "rows"});
  head.insert(head.end(), {"bias, library", "bias, protocols"});
  return head;
}

std::string rows_that_count(const ScoredSizes& sizes) {
  if (sizes.from > sizes.to) return "none";
  return sizes.from.count > 0 ? "from " + format(sizes.from) : "to " + format(sizes.to);
}

std::vector<CardRow> table_rows(Tables tables) {
  std::vector<CardRow> rows;
  for (const ScoredTable& table : tables) {
    const auto n = static_cast<int>(
        std::count_if(table.rows.begin(), table.rows.end(), [](const ScoredRow& each) { return each.scored; }));
    if (n == 0 || !table.family) continue;
    CardRow row{table.id, std::string(to_string(*table.family)), fmt::to_string(n)};
    for (const Model model : models) {
      const auto errors = errors_of(table, model);
      row.push_back(errors.empty() ? "-" : cell(error_band("", errors), n));
    }
    const auto best = errors_of(table, Model::library);
    row.push_back(best.empty() ? "-" : fmt::format("{:+.0f}", 100 * error_band("", best).median_signed));
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Rows that do not count, all the same: predicted over measured, of the smallest and the largest such size.
std::vector<CardRow> unscored_rows(Tables tables) {
  std::vector<CardRow> rows;
  for (const ScoredTable& table : tables) {
    std::vector<const ScoredRow*> out;
    for (const ScoredRow& row : table.rows)
      if (!row.scored && !row.gives_launch) out.push_back(&row);
    if (out.empty()) continue;
    CardRow cells{table.id, rows_that_count(table.sizes), table.sizes.reason};
    for (const ScoredRow* row : {out.front(), out.back()}) {
      std::string text = fmt::format("{}: {:.1f}", format(row->bytes), row->measured_us);
      for (const Model model : {Model::library, Model::plain, Model::protocols})
        text += row->of(model) ? fmt::format(", {:.1f}", row->of(model)->us) : ", -";
      cells.push_back(std::move(text));
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

std::vector<CardRow> worst_rows(Tables tables) {
  std::vector<CardRow> rows;
  for (const ScoredTable* table : worst_of(tables, 5)) {
    const Model model = best_model(*table);
    const auto errors = errors_of(*table, model);
    const auto worst = std::max_element(errors.begin(), errors.end(), [](const SizedError& a, const SizedError& b) {
      return std::abs(a.error) < std::abs(b.error);
    });
    rows.push_back({table->id, fmt::format("{:.0f}", 100 * error_band("", errors).median_abs),
                    fmt::format("{:+.0f} at {}", 100 * worst->error, format(worst->bytes)),
                    table->missing.empty() ? "not investigated" : table->missing});
  }
  return rows;
}

/// A row for each band of sizes of a family, or of all: the library's errors without and with the tables' launches.
std::vector<CardRow> launch_band_rows(Tables tables, const std::string& name, const std::optional<Family>& family) {
  const LaunchErrors errors = launch_errors_of(tables, family);
  if (errors.with.empty()) return {};
  const auto bands_and_all = [](const std::vector<SizedError>& of) {
    std::vector<ErrorBand> bands = error_bands(of);
    bands.push_back(error_band("all sizes", of));
    return bands;
  };
  const std::vector<ErrorBand> without = bands_and_all(errors.without), with = bands_and_all(errors.with);
  ensure(without.size() == with.size(), "both errors are of the same rows");
  std::vector<CardRow> rows;
  for (std::size_t i = 0; i < with.size(); ++i)
    rows.push_back({name, with[i].name, fmt::to_string(with[i].rows), cell(without[i], with[i].rows),
                    cell(with[i], with[i].rows), fmt::format("{:+.0f}", 100 * without[i].median_signed),
                    fmt::format("{:+.0f}", 100 * with[i].median_signed)});
  return rows;
}

/// How many tables give a launch, and that their rows do not count.
std::string about_launch(Tables tables) {
  const auto n = std::count_if(tables.begin(), tables.end(), [](const ScoredTable& each) { return each.launch; });
  return fmt::format(
      "The launch time depends on the GPU, the driver and the test harness. It can be inferred if the smallest sizes "
      "were measured. The median of the\n"
      "launch times that fit a table's {} smallest scored rows (up to {}) replaces the library's launch time. These "
      "rows are inputs, so they are not\n"
      "scored. {} of {} tables have such rows.",
      rows_for_launch, format(most_for_launch), n, tables.size());
}

/// Both columns on the same rows.
void launch_section(Page& page, Tables tables) {
  std::vector<CardRow> rows = launch_band_rows(tables, "all tables", std::nullopt);
  if (rows.empty()) return;
  for (const Family family : families)
    for (CardRow& row : launch_band_rows(tables, std::string(to_string(family)), family))
      rows.push_back(std::move(row));
  page.heading("With the launch given");
  page.lines(about_launch(tables) + '\n');
  page.table({"tables", "sizes", "rows", "ringsim, library", "launch given", "bias", "bias, launch given"}, rows);
}

/// The launches that the tables give, in us, and why not.
void launches_of_tables(Page& page, Tables tables) {
  std::vector<CardRow> rows;
  for (const ScoredTable& table : tables) {
    if (!table.launch && table.no_launch.empty()) continue;
    CardRow row{table.id};
    if (!table.launch) {
      row.insert(row.end(), {"-", "-", "-", table.no_launch});
    } else {
      const GivenLaunch& given = *table.launch;
      const std::vector<std::string> doubts = doubts_of(given);
      row.insert(row.end(),
                 {sizes_text(given.rows), fmt::format("{:.2f}", microseconds(given.own)),
                  fmt::format("{:.2f}", microseconds(given.launch())), doubts.empty() ? "" : doubts.front()});
    }
    rows.push_back(std::move(row));
  }
  page.heading("Launches");
  page.table({"table", "from", "library", "given", ""}, rows);
}

constexpr const char* introduction = R"(# How accurate are the predictions?

`ringsim scorecard --format markdown` prints this page, and a test checks that it is up to date. Each table in `validate/measured/tables` is compared
with the prediction for its machine (`ID.csv` with the scenario `ID.json`). The error is predicted/measured - 1. Cells show the median / 90th percentile
of |error|, in percent. If a model does not predict all rows, the number of predicted rows follows in parentheses. Bias is the median signed error;
a negative bias means that the predictions are too fast.

Only the last model is fitted to individual tables. Machines are presets based on published specifications. Two facts are inferred from the measured
tables themselves: the rate at which adapters read GPU memory on Polaris, and the distance between NICs and GPUs on ABCI V, which keeps NCCL from
using LL128 there.

- **ringsim, library** simulates the algorithm and protocol that NCCL chooses (scenario key `library`), with one point per size. The costs of NCCL's
  kernels are fitted to many of these tables together, by protocol and GPU generation ([nccl-costs](nccl-costs.md)), so these errors are residuals
  of a fit. The other models, except alpha + S/beta, are not fitted. For RCCL, one constant is fitted to one table ([rccl](../guide/rccl.md)).
- **ringsim, plain** uses the textbook protocol `none` and, among the library's algorithms, the one that the model predicts to be fastest: rings in one
  or both directions, double binary trees, or in-switch reduction with NVLS. If the table names the algorithm that ran, only that algorithm is used.
- **ringsim, protocols** is the same with LL, LL128 and Simple, using NCCL's own constants (sim/run/protocol.hpp).
- **textbook ring** is 2(K-1)(a + p/(K b)) or its equivalent for other collectives, with a and b from the same preset. The rate b includes all NVLinks
  of a GPU, or all adapters of a node, at the payload rate.
- **NCCL's tuner** is the formula that NCCL uses to choose an algorithm (topologies/nccl/nccl_tuner), for the release that ran, if the table names it.
- **alpha + S/beta** is fitted to every other row of the table and tested on the rest, and vice versa.
)";

std::string page(Tables tables, bool markdown, bool launch_given) {
  Page page(markdown);
  if (markdown) page.lines(introduction);
  int scored = 0, rows = 0;
  for (const ScoredTable& table : tables) {
    rows += static_cast<int>(table.rows.size());
    scored += static_cast<int>(
        std::count_if(table.rows.begin(), table.rows.end(), [](const ScoredRow& row) { return row.scored; }));
  }
  const auto of_rccl =
      std::count_if(tables.begin(), tables.end(), [](const ScoredTable& table) { return is_of(table, Family::rccl); });
  page.lines(fmt::format(
      "There are {} tables with {} rows, of which {} are scored.{}", tables.size(), rows, scored,
      of_rccl == 0
          ? ""
          : fmt::format(" {} tables were measured with RCCL and are scored only in their own section.", of_rccl)));
  if (launch_given) page.lines('\n' + about_launch(tables));
  page.heading("By size");
  page.table(band_head(), band_rows(tables, std::nullopt));
  for (const Family family : families) {
    const auto of_family = band_rows(tables, family);
    if (of_family.empty()) continue;
    page.heading("By size: " + std::string(to_string(family)));
    page.table(band_head(), of_family);
  }
  if (launch_given)
    launches_of_tables(page, tables);
  else
    launch_section(page, tables);
  page.heading("By table");
  CardRow head = model_head({"table", "family", "rows"});
  head.emplace_back("bias, library");
  page.table(head, table_rows(tables));
  if (const auto unscored = unscored_rows(tables); !unscored.empty()) {
    page.heading("Shown, but not scored");
    page.lines(
        "The last two columns show the smallest and the largest unscored size of each table. The "
        "four times, in us, are the measured time and the times predicted with the library, without "
        "it (plain), and with protocols.");
    page.lines("");
    page.table({"table", "scored", "reason", "smallest", "largest"}, unscored);
  }
  if (const auto worst = worst_rows(tables); !worst.empty()) {
    page.heading("Suspected causes of the five largest errors");
    page.table({"table", "median", "worst row", "cause (inferred, not proved)"}, worst);
  }
  return page.text();
}

std::string csv(Tables tables, bool launch_given) {
  std::string text = "table,collective,ranks,family,bytes,measured_us,scored";
  for (const char* model : {"library", "plain", "protocols", "textbook", "tuner", "line"})
    text += fmt::format(",{}_us", model);
  text += ",library_by,plain_by,protocols_by,tuner_by\n";
  for (const ScoredTable& table : tables) {
    for (const ScoredRow& row : table.rows) {
      text += fmt::format("{},{},{},{},{},{},{}", table.id, to_string(table.op), table.ranks,
                          table.family ? '"' + std::string(to_string(*table.family)) + '"' : "", row.bytes.count,
                          row.measured_us,
                          row.scored                         ? "true"
                          : launch_given && row.gives_launch ? "launch"
                                                             : "false");
      for (const Model model : models) text += row.of(model) ? fmt::format(",{}", row.of(model)->us) : ",";
      for (const Model model : {Model::library, Model::plain, Model::protocols, Model::tuner})
        text += "," + (row.of(model) ? row.of(model)->by : "");
      text += '\n';
    }
  }
  return text;
}

}  // namespace

std::string scorecard_text(std::span<const ScoredTable> tables, ScorecardFormat format, bool launch_given) {
  switch (format) {
    case ScorecardFormat::table:
      return page(tables, false, launch_given);
    case ScorecardFormat::markdown:
      return page(tables, true, launch_given);
    case ScorecardFormat::csv:
      return csv(tables, launch_given);
    case ScorecardFormat::limits:
      return to_json(score_limits_of(tables));
    case ScorecardFormat::json:
      break;
  }
  fail_invariant("a scorecard of collectives is written in one of four formats");
}

}  // namespace ringsim::tools
