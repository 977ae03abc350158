// Tables: how wide their columns are, and what is done if they are too wide.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/text/figures.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"

namespace ringsim {

namespace {

using TableRow = std::vector<std::string>;
constexpr std::size_t gap = 2;  // between columns

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.,+-eE%x ") == std::string::npos;
}

/// A table without its headings' columns taken apart: `head` has one or two lines.
struct Grid {
  std::vector<TableRow> head, rows;

  std::size_t columns() const { return head.front().size(); }
  std::size_t cells_width(std::size_t c) const {
    std::size_t width = 0;
    for (const TableRow& row : rows) width = std::max(width, characters(row[c]));
    return width;
  }
  std::size_t width(std::size_t c) const {
    std::size_t width = cells_width(c);
    for (const TableRow& row : head) width = std::max(width, characters(row[c]));
    return width;
  }
  std::size_t width() const {
    std::size_t sum = 0;
    for (std::size_t c = 0; c < columns(); ++c) sum += width(c) + (c > 0 ? gap : 0);
    return sum;
  }
  bool is_right(std::size_t c) const {
    return !rows.empty() && std::all_of(rows.begin(), rows.end(),
                                        [&](const TableRow& row) { return row[c].empty() || is_number(row[c]); });
  }

  void erase(std::size_t c) {
    for (std::vector<TableRow>* part : {&head, &rows})
      for (TableRow& row : *part) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
  }

  /// Columns `first` to `last`, the latter excluded.
  Grid part(std::size_t first, std::size_t last) const {
    Grid out;
    for (const auto& [from, to] : {std::pair{&head, &out.head}, std::pair{&rows, &out.rows}})
      for (const TableRow& row : *from)
        to->emplace_back(row.begin() + static_cast<std::ptrdiff_t>(first),
                         row.begin() + static_cast<std::ptrdiff_t>(last));
    return out;
  }
  void append(const Grid& other) {
    for (const auto& [from, to] : {std::pair{&other.head, &head}, std::pair{&other.rows, &rows}})
      for (std::size_t r = 0; r < to->size(); ++r)
        (*to)[r].insert((*to)[r].end(), (*from)[r].begin(), (*from)[r].end());
  }

  std::string text() const {
    std::vector<std::size_t> widths;
    std::vector<bool> right;
    for (std::size_t c = 0; c < columns(); ++c) {
      widths.push_back(width(c));
      right.push_back(is_right(c));
    }
    std::string text;
    for (const std::vector<TableRow>* lines : {&head, &rows}) {
      for (const TableRow& row : *lines) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c) {
          const std::string pad(widths[c] - characters(row[c]), ' ');
          line += (c > 0 ? std::string(gap, ' ') : "") + (right[c] ? pad + row[c] : row[c] + pad);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        if (!line.empty()) text += line + '\n';
      }
    }
    return text;
  }
};

/// Digits after the point; nothing if the text is not a plain number.
std::optional<std::size_t> decimals_of(const std::string& text) {
  const std::size_t first = text.find_first_not_of("+-");
  if (first == std::string::npos || text.find_first_not_of("0123456789.", first) != std::string::npos)
    return std::nullopt;
  const std::size_t point = text.find('.');
  return point == std::string::npos ? 0 : text.size() - point - 1;
}

/// Blanks behind numbers bring the points of a column in line.
void align_points(Grid& grid) {
  for (std::size_t c = 0; c < grid.columns(); ++c) {
    std::size_t most = 0;
    const bool numbers = std::all_of(grid.rows.begin(), grid.rows.end(), [&](const TableRow& row) {
      const auto decimals = decimals_of(row[c]);
      most = std::max(most, decimals.value_or(0));
      return row[c].empty() || decimals;
    });
    if (!numbers || most == 0) continue;
    for (TableRow& row : grid.rows) {
      if (row[c].empty()) continue;
      const std::size_t decimals = *decimals_of(row[c]);
      row[c].append(decimals == 0 ? most + 1 : most - decimals, ' ');
    }
  }
}

/// Headings that are wider than their columns, in two lines.
void stack_headings(Grid& grid) {
  TableRow upper = grid.head.front(), lower(upper.size());
  for (std::size_t c = 0; c < upper.size(); ++c) {
    const std::string whole = upper[c];
    std::size_t best = characters(whole);
    if (best <= grid.cells_width(c)) continue;
    for (std::size_t at = whole.find(' '); at != std::string::npos; at = whole.find(' ', at + 1)) {
      const std::size_t width = std::max(characters(whole.substr(0, at)), characters(whole.substr(at + 1)));
      if (width >= best) continue;
      best = width;
      upper[c] = whole.substr(0, at);
      lower[c] = whole.substr(at + 1);
    }
  }
  if (std::any_of(lower.begin(), lower.end(), [](const std::string& text) { return !text.empty(); }))
    grid.head = {std::move(upper), std::move(lower)};
}

/// The texts of a column that numbers would make shorter, each once.
std::vector<std::string> long_texts(const Grid& grid, std::size_t column) {
  constexpr std::size_t longest = 12;  // that keep their place
  std::vector<std::string> texts;
  for (const TableRow& row : grid.rows)
    if (characters(row[column]) > longest && std::find(texts.begin(), texts.end(), row[column]) == texts.end())
      texts.push_back(row[column]);
  return texts;
}

/// Puts numbers in place of the texts.
void put_numbers(Grid& grid, std::size_t column, const std::vector<std::string>& texts) {
  for (TableRow& row : grid.rows)
    if (const auto found = std::find(texts.begin(), texts.end(), row[column]); found != texts.end())
      row[column] = fmt::format("[{}]", found - texts.begin() + 1);
}

/// The lines that explain the numbers.
std::string legend(const std::string& heading, const std::vector<std::string>& texts, std::size_t width) {
  std::string lines;
  for (std::size_t i = 0; i < texts.size(); ++i)
    lines += wrapped(fmt::format("{} [{}]: {}", heading, i + 1, texts[i]), 2, width) + '\n';
  return lines;
}

/// The column whose texts are to become numbers: the one with the fewest of them among those that make the table fit,
/// else the one that helps most. columns() if no column has long texts. The first column, which names the rows, is not
/// among them.
std::size_t column_to_number(const Grid& grid, std::size_t width) {
  std::size_t best = grid.columns(), best_texts = 0, best_width = 0;
  for (std::size_t c = 1; c < grid.columns(); ++c) {
    const std::vector<std::string> texts = long_texts(grid, c);
    if (grid.is_right(c) || texts.empty()) continue;
    Grid numbered = grid;
    put_numbers(numbered, c, texts);
    const std::size_t result = numbered.width();
    const bool fits = result <= width, best_fits = best < grid.columns() && best_width <= width;
    const bool better = fits != best_fits ? fits : fits ? texts.size() < best_texts : result < best_width;
    if (best < grid.columns() && !better) continue;
    best = c;
    best_texts = texts.size();
    best_width = result;
  }
  return best;
}

/// The first column if it tells the rows apart, else their numbers.
Grid names_of_rows(const Grid& grid) {
  Grid names = grid.part(0, 1);
  std::set<std::string> all;
  for (const TableRow& row : names.rows) all.insert(row.front());
  if (all.size() == names.rows.size()) return names;
  for (TableRow& row : names.head) row.front() = &row == &names.head.front() ? "#" : "";
  for (std::size_t r = 0; r < names.rows.size(); ++r) names.rows[r].front() = fmt::to_string(r + 1);
  return names;
}

/// As many columns as fit, then the others in tables below; each table repeats the row names. A text of more than half
/// a line becomes a number.
std::string tables_in_parts(Grid grid, const TableRow& headings, std::size_t width) {
  std::string below;
  for (std::size_t c = 0; c < grid.columns(); ++c) {
    if (grid.cells_width(c) <= (width - gap) / 2) continue;
    const std::vector<std::string> texts = long_texts(grid, c);
    put_numbers(grid, c, texts);
    below += legend(headings[c], texts, width);
  }
  const Grid names = names_of_rows(grid);
  const bool first_is_name = names.rows == grid.part(0, 1).rows;
  std::string text;
  for (std::size_t first = first_is_name ? 1 : 0; first < grid.columns();) {
    const auto with_names = [&](std::size_t last) {
      Grid part = names;
      part.append(grid.part(first, last));
      return part;
    };
    std::size_t last = first + 1;
    while (last < grid.columns() && with_names(last + 1).width() <= width) ++last;
    text += (text.empty() ? "" : "\n") + with_names(last).text();
    first = last;
  }
  return text + below;
}

}  // namespace

void Table::pull_out(const std::string& heading, const std::string& pattern) {
  pulled_out_[heading].push_back(pattern);
}

TableCell TableCell::with_sign(Picoseconds difference) {
  TableCell cell(difference);
  cell.is_signed = true;
  return cell;
}

std::vector<std::vector<std::string>> Table::cells() const {
  const auto has_time = [](const std::vector<TableCell>& row, std::size_t c) { return row[c].time.has_value(); };
  Picoseconds shortest{0};
  std::vector<std::vector<std::string>> lines{head_};
  std::vector<std::size_t> columns_of_times;
  for (std::size_t c = 0; c < head_.size(); ++c) {
    if (std::none_of(rows_.begin(), rows_.end(), [&](const auto& row) { return has_time(row, c); })) continue;
    columns_of_times.push_back(c);
    if (columns_of_times.size() > 1) continue;
    for (const std::vector<TableCell>& row : rows_)
      if (const Picoseconds time = row[c].time.value_or(Picoseconds{0});
          time.count() != 0 && (shortest.count() == 0 || time < shortest))
        shortest = time;
  }
  const TimeUnit unit = TimeUnit::of(whole_.value_or(shortest));
  for (const std::size_t c : columns_of_times) lines.front()[c] += fmt::format(" {}", unit.name());
  for (const std::vector<TableCell>& row : rows_) {
    lines.emplace_back();
    for (const TableCell& cell : row) {
      std::string text = cell.time ? unit.number(*cell.time) : cell.text;
      if (cell.is_signed && cell.time->count() >= 0) text.insert(0, "+");
      lines.back().push_back(std::move(text));
    }
  }
  return lines;
}

namespace {

Grid grid_of(std::vector<std::vector<std::string>> lines) {
  Grid grid{{lines.front()}, {lines.begin() + 1, lines.end()}};
  align_points(grid);
  return grid;
}

}  // namespace

std::string Table::text() const { return grid_of(cells()).text(); }

std::size_t Table::width() const { return grid_of(cells()).width(); }

std::string Table::fitted(std::size_t width) const {
  bool in_parts = false;
  return fitted(width, in_parts);
}

bool Table::is_in_parts(std::size_t width) const {
  bool in_parts = false;
  fitted(width, in_parts);
  return in_parts;
}

std::string Table::fitted(std::size_t width, bool& in_parts) const {
  Grid grid = grid_of(cells());
  std::string above;
  std::map<std::string, std::size_t> seen;  // [heading] how many columns
  for (std::size_t c = 0; c < grid.columns() && grid.columns() > 1;) {
    const std::string& heading = grid.head.front()[c];
    const auto patterns = pulled_out_.find(heading);
    const std::size_t i = seen[heading]++;
    const bool wanted = patterns != pulled_out_.end() && i < patterns->second.size();
    const bool same = !grid.rows.empty() && std::all_of(grid.rows.begin(), grid.rows.end(), [&](const TableRow& row) {
      return row[c] == grid.rows.front()[c];
    });
    if (!wanted || !same) {
      ++c;
      continue;
    }
    const std::string& value = grid.rows.front()[c];
    if (!value.empty()) above += (above.empty() ? "" : "  ") + fmt::format(fmt::runtime(patterns->second[i]), value);
    grid.erase(c);
  }
  if (!above.empty()) above = wrapped(above, 2, width) + '\n';
  if (grid.width() <= width) return above + grid.text();

  const TableRow headings = grid.head.front();
  stack_headings(grid);
  Grid numbered = grid;
  std::string below;
  while (numbered.width() > width) {
    std::size_t column = column_to_number(numbered, width);
    if (column == numbered.columns() && numbered.cells_width(0) > width / 3 && !long_texts(numbered, 0).empty())
      column = 0;
    if (column == numbered.columns()) {
      in_parts = true;
      return above + tables_in_parts(grid, headings, width);
    }
    const std::vector<std::string> texts = long_texts(numbered, column);
    put_numbers(numbered, column, texts);
    below += legend(headings[column], texts, width);
  }
  return above + numbered.text() + below;
}

}  // namespace ringsim
