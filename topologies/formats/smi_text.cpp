#include "topologies/formats/smi_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/text/plain_text.hpp"

namespace ringsim::smi {

namespace {

constexpr std::size_t most_devices = 128;
using Tokens = std::vector<std::string>;

/// The words of a line; bars part them, and a ruler of a table ("|---|:-:|") has none.
Tokens tokens_of(std::string line) {
  std::replace(line.begin(), line.end(), '|', ' ');
  std::istringstream in(line);
  Tokens tokens;
  for (std::string token; in >> token;) tokens.push_back(token);
  const auto is_ruler = [](const std::string& token) { return token.find_first_not_of("-:+=") == std::string::npos; };
  if (std::all_of(tokens.begin(), tokens.end(), is_ruler)) tokens.clear();
  return tokens;
}

bool numbered(std::string_view word, std::string_view prefix) {
  if (!word.starts_with(prefix) || word.size() == prefix.size() || word.size() > prefix.size() + 4) return false;
  return word.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

bool is_word(const std::string& cell) {
  return numbered(cell, "NV") || cell == "SOC" || std::find(words.begin() + 1, words.end(), cell) != words.end();
}

/// True if the token is the name, or ends with it after the prefix of a log: "[1,0]<stdout>:GPU0".
bool ends_as(std::string_view token, std::string_view name) {
  if (!token.ends_with(name)) return false;
  if (token.size() == name.size()) return true;
  const char before = token[token.size() - name.size() - 1];
  return before == ':' || before == '>' || before == ']' || before == ')';
}

/// The place of the name among the tokens; their number if it is not there.
std::size_t place_of(const Tokens& tokens, std::string_view name) {
  const auto found =
      std::find_if(tokens.begin(), tokens.end(), [&](const auto& token) { return ends_as(token, name); });
  return static_cast<std::size_t>(found - tokens.begin());
}

/// A line with the names of the columns: GPU0 and on, before "CPU Affinity" and the like.
struct Header {
  std::size_t line = 0, first = 0;  ///< its number, from 0; of the first name among the tokens
  bool has_prefix = false;
  std::vector<std::string> names;
  bool has_numa = false;
};

std::optional<Header> header_in(const Tokens& tokens, std::size_t line) {
  Header found{.line = line, .first = 0, .names = {}};
  const auto gpu_in = [](const std::string& token) {  // "GPU0", also after a prefix
    const std::size_t begin = token.rfind("GPU");
    const std::string name = begin == std::string::npos ? "" : token.substr(begin);
    return is_gpu(name) && ends_as(token, name) ? name : "";
  };
  while (found.first < tokens.size() && gpu_in(tokens[found.first]).empty()) ++found.first;
  std::size_t at = found.first;
  for (; at < tokens.size(); ++at) {
    const std::string token = at == found.first ? gpu_in(tokens[at]) : tokens[at];
    if (token == "CPU" || token == "NUMA" || token == "GPU") break;
    if (token == "X") return std::nullopt;  // a row
    found.names.push_back(token);
  }
  if (found.names.empty()) return std::nullopt;
  found.has_prefix = found.first > 0 || found.names.front() != tokens.front();
  found.has_numa = at + 2 < tokens.size() && tokens[at] == "CPU" && tokens[at + 2] == "NUMA";
  return found;
}

/// "0", "0-1", "0,2": the last number.
std::optional<int> highest_in(std::string_view list) {
  const std::size_t begin = list.find_last_of(",-") == std::string_view::npos ? 0 : list.find_last_of(",-") + 1;
  int number = 0;
  const auto [end, error] = std::from_chars(list.data() + begin, list.data() + list.size(), number);
  const bool read = error == std::errc() && end == list.data() + list.size();
  return read && number >= 0 && number < 4096 ? std::optional(number) : std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : file_(file) {
    std::istringstream in(plain_text(text));
    for (std::string line; std::getline(in, line);) lines_.push_back(tokens_of(line));
  }

  Matrix parse() {
    header_ = header();
    const auto& names = header_.names;
    if (names.size() > most_devices)
      fail(file_, header_.line + 1, fmt::format("expected at most {} devices", most_devices));
    if (std::set(names.begin(), names.end()).size() != names.size())
      fail(file_, header_.line + 1, "expected each device only once in the header");
    Matrix matrix;
    for (std::size_t i = header_.line + 1; i < lines_.size(); ++i) read_line(lines_[i], i + 1, matrix);
    if (matrix.rows.size() < names.size())
      fail(file_, lines_.size(),
           fmt::format("expected a row for {}, found the end of the file", names[matrix.rows.size()]));
    return matrix;
  }

 private:
  /// The first that a whole row follows; else the first that could be one, whose rows say what is wrong.
  Header header() const {
    std::optional<Header> begun, alone;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::optional<Header> here = header_in(lines_[i], i);
      if (!here) continue;
      std::size_t next = i + 1;  // a log has other lines between
      while (next < lines_.size() && std::find(lines_[next].begin(), lines_[next].end(), "X") == lines_[next].end())
        ++next;
      const std::size_t cells = next == lines_.size() ? 0 : cells_of(lines_[next], here->names.front());
      if (cells == here->names.size()) return *here;
      if (!begun && cells > 0) begun = here;
      if (!alone && !here->has_prefix) alone = here;
    }
    if (begun) return *begun;
    if (!alone) throw InputError(file_, "expected the matrix of `nvidia-smi topo -m`, found no header GPU0 GPU1 ...");
    return *alone;
  }

  /// Cells with words of the matrix in the row of that name, which begins with X; 0: it is no such row.
  static std::size_t cells_of(const Tokens& tokens, std::string_view name) {
    const std::size_t first = place_of(tokens, name) + 1;
    std::size_t at = first;
    if (at >= tokens.size() || tokens[at] != "X") return 0;
    while (at < tokens.size() && is_word(tokens[at])) ++at;
    return at - first;
  }

  bool in_log() const { return header_.has_prefix; }

  void read_line(const Tokens& tokens, std::size_t line, Matrix& matrix) const {
    const std::size_t n = tokens.size();
    if (n == 0) return;
    if (n >= 2 && (n == 2 || in_log()) && tokens[n - 2].ends_with(":")) {
      const std::string name = tokens[n - 2].substr(0, tokens[n - 2].size() - 1);
      if (numbered(name, "NIC")) {
        matrix.nic_names[name] = tokens[n - 1];
        return;
      }
    }
    if (matrix.rows.size() < header_.names.size()) {
      const std::string& name = header_.names[matrix.rows.size()];
      std::size_t at = place_of(tokens, name);
      // A log has other lines between, and its own words before each.
      if (in_log() && std::find(tokens.begin(), tokens.end(), "X") == tokens.end()) return;
      if (at == n) at = 0;
      matrix.rows.push_back(row({tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens.end()}, line, name));
    } else if (!in_log() && (is_gpu(tokens[0]) || numbered(tokens[0], "NIC"))) {
      fail(file_, line,
           fmt::format("expected the end of the matrix after {} rows, found {}", header_.names.size(), tokens[0]));
    } else if (in_log() && cells_of(tokens, header_.names.front()) > 0) {
      fail(file_, line, fmt::format("expected one matrix, found the row of {} again", header_.names.front()),
           "keep only the lines of one node in the text");
    }
  }

  Row row(const Tokens& tokens, std::size_t line, const std::string& name) const {
    const std::size_t n = header_.names.size();
    if (!ends_as(tokens[0], name)) fail(file_, line, fmt::format("expected the row of {}, found {}", name, tokens[0]));
    if (tokens.size() <= n)
      fail(file_, line, fmt::format("expected {} cells in row {}, found {}", n, name, tokens.size() - 1));
    Row out{.name = name, .line = line, .near = {}, .nvlinks = {}, .affinity = {}, .highest_numa = {}};
    for (std::size_t column = 0; column < n; ++column) cell(tokens[column + 1], header_.names[column], out);
    if (is_gpu(name) && tokens.size() > n + 1) out.affinity = tokens[n + 1];
    if (is_gpu(name) && header_.has_numa && tokens.size() > n + 2) out.highest_numa = highest_in(tokens[n + 2]);
    return out;
  }

  void cell(const std::string& word, const std::string& column, Row& out) const {
    const std::string place = fmt::format("row {}, column {}", out.name, column);
    const bool own = column == out.name;
    if ((word == "X") != own) {
      fail(file_, out.line, fmt::format("expected X on the diagonal and nowhere else, found {} at {}", word, place));
    }
    out.nvlinks.push_back(0);
    if (numbered(word, "NV")) {
      int n = 0;  // of four digits at most
      std::from_chars(word.data() + 2, word.data() + word.size(), n);
      if (!is_gpu(out.name) || !is_gpu(column) || n < 1 || n > 1000) {
        fail(file_, out.line, fmt::format("expected NV1 to NV1000 between two GPUs, found {} at {}", word, place));
      }
      out.nvlinks.back() = n;
      return out.near.push_back(unknown);
    }
    const auto known = std::find(words.begin() + 1, words.end(), word == "SOC" ? "SYS" : word);
    if (known == words.end()) {
      fail(file_, out.line, fmt::format("expected X, NV#, PIX, PXB, PHB, NODE or SYS at {}, found {}", place, word));
    }
    out.near.push_back(static_cast<Near>(known - words.begin()));
  }

  const std::string& file_;
  std::vector<Tokens> lines_;
  Header header_;
};

}  // namespace

bool is_gpu(std::string_view name) { return numbered(name, "GPU"); }

void fail(const std::string& file, std::size_t line, const std::string& message, const std::string& hint) {
  throw InputError(fmt::format("{}:{}", file, line), message, hint);
}

Matrix read_matrix(std::string_view text, const std::string& file) { return Parser(text, file).parse(); }

}  // namespace ringsim::smi
