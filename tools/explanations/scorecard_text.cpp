#include "tools/explanations/scorecard_text.hpp"
#include "sim/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
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
      if (row.scored && table.family && (!family || table.family == family)) rows.push_back({row.bytes, 0});
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
      if (!row.scored) out.push_back(&row);
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
                    table->missing.empty() ? "nobody has looked" : table->missing});
  }
  return rows;
}

constexpr const char* introduction = R"(# How accurate are the predictions?

Made by `ringsim scorecard --format markdown`; a test fails when this page is not what it prints. Every table of `validate/measured/tables` against
the scenario of its machine next to it (`ID.csv`, `ID.json`). Error: predicted/measured - 1. Cells: median / 90th percentile of |error|, in percent,
in brackets the number of rows where a model says nothing of the others. Bias: median error with its sign, below 0: predicted too fast.

No model but the last is fitted to a single table. Machines are presets from published specifications, but for two facts
that are taken from their own tables: what adapters read from GPUs on Polaris, and how far NICs of ABCI V are from its
GPUs, so that NCCL uses no LL128 there.

- **ringsim, library**: what NCCL decides (scenario key `library`), simulated: one point a size. Its kernels' costs are fitted to many of these tables together,
  by protocol and generation of GPU ([nccl-costs](nccl-costs.md)); so these errors are those of a fit, where the others' are not.
- **ringsim, plain**: the textbooks' protocol `none`. The fastest, by the model, of the algorithms that the library had: rings one way and both ways round, double
  binary trees, in-switch reduction where it is NVLS; where the table says which algorithm ran, only that.
- **ringsim, protocols**: the same with NCCL's LL, LL128 and Simple, whose constants are NCCL's own (sim/run/protocol.hpp).
- **textbook ring**: 2(K-1)(a + p/(K b)) and its equivalents, a and b of the same preset: all of a GPU's NVLinks, or a node's adapters, at the rate that payload reaches.
- **NCCL's tuner**: the formula by which NCCL chooses (topologies/nccl/nccl_tuner), of the release that ran, as far as the table says it.
- **alpha + S/beta**: fitted to every other row of the table, tested on the rest, both ways round.
)";

std::string page(Tables tables, bool markdown) {
  Page page(markdown);
  if (markdown) page.lines(introduction);
  int scored = 0, rows = 0;
  for (const ScoredTable& table : tables) {
    rows += static_cast<int>(table.rows.size());
    scored += static_cast<int>(
        std::count_if(table.rows.begin(), table.rows.end(), [](const ScoredRow& row) { return row.scored; }));
  }
  page.lines(fmt::format("{} tables, {} rows, {} of them scored.", tables.size(), rows, scored));
  page.heading("By size");
  page.table(band_head(), band_rows(tables, std::nullopt));
  for (const Family family : families) {
    const auto of_family = band_rows(tables, family);
    if (of_family.empty()) continue;
    page.heading("By size: " + std::string(to_string(family)));
    page.table(band_head(), of_family);
  }
  page.heading("By table");
  CardRow head = model_head({"table", "family", "rows"});
  head.emplace_back("bias, library");
  page.table(head, table_rows(tables));
  if (const auto unscored = unscored_rows(tables); !unscored.empty()) {
    page.heading("Shown, but not scored");
    page.lines(
        "The smallest and the largest size that does not count: measured, and predicted with the "
        "library, plain, and with protocols, in us.");
    page.lines("");
    page.table({"table", "scored", "because", "smallest", "largest"}, unscored);
  }
  if (const auto worst = worst_rows(tables); !worst.empty()) {
    page.heading("What is missing in the five worst");
    page.table({"table", "median", "worst row", "missing (inferred, not proved)"}, worst);
  }
  return page.text();
}

std::string csv(Tables tables) {
  std::string text = "table,collective,ranks,family,bytes,measured_us,scored";
  for (const char* model : {"library", "plain", "protocols", "textbook", "tuner", "line"})
    text += fmt::format(",{}_us", model);
  text += ",library_by,plain_by,protocols_by,tuner_by\n";
  for (const ScoredTable& table : tables) {
    for (const ScoredRow& row : table.rows) {
      text += fmt::format("{},{},{},{},{},{},{}", table.id, to_string(table.op), table.ranks,
                          table.family ? '"' + std::string(to_string(*table.family)) + '"' : "", row.bytes.count,
                          row.measured_us, row.scored);
      for (const Model model : models) text += row.of(model) ? fmt::format(",{}", row.of(model)->us) : ",";
      for (const Model model : {Model::library, Model::plain, Model::protocols, Model::tuner})
        text += "," + (row.of(model) ? row.of(model)->by : "");
      text += '\n';
    }
  }
  return text;
}

}  // namespace

std::string scorecard_text(std::span<const ScoredTable> tables, ScorecardFormat format) {
  switch (format) {
    case ScorecardFormat::table:
      return page(tables, false);
    case ScorecardFormat::markdown:
      return page(tables, true);
    case ScorecardFormat::csv:
      return csv(tables);
    case ScorecardFormat::limits:
      return to_json(score_limits_of(tables));
    case ScorecardFormat::json:
      break;
  }
  fail_invariant("a scorecard of collectives is written in one of four formats");
}

}  // namespace ringsim::tools
