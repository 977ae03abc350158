#include "tools/output/ending.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <filesystem>

#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/shell_words.hpp"

namespace ringsim::tools {

namespace {

constexpr const char* output_option = "--output (-o)";

/// Endings that promise a format, and how to get it.
struct Promised {
  std::vector<std::string> endings;
  std::string way;
};

const std::vector<Promised>& promises() {
  static const std::vector<Promised> all{
      {{".svg", ".png"},
       "to draw stored results, use `ringsim plot RESULTS.jsonl -o {}`; to draw a machine, use `ringsim topology "
       "picture`"},
      {{".html", ".htm"}, "to write a page, use --report FILE.html of run, sweep, compare or diff"},
      {{".pdf", ".eps", ".ps", ".jpg", ".jpeg", ".gif", ".webp"}, "`ringsim plot` writes .svg, .png and .html"},
      {{".xlsx", ".xls", ".ods"}, "spreadsheets open .csv"},
      {{".parquet", ".feather", ".arrow", ".pkl", ".pickle", ".npy", ".npz", ".h5", ".hdf5", ".avro", ".orc"},
       "other programs read .csv and .jsonl"},
      {{".sqlite", ".sqlite3", ".db"}, "`ringsim merge RESULTS.jsonl -o FILE.sqlite` makes a database"},
      {{".tsv"}, "`ringsim merge RESULTS.jsonl -o FILE.csv` makes CSV"},
      {{".md", ".markdown"}, "run and merge support --format matrix-markdown; scorecard supports --format markdown"},
      {{".tex", ".rst"}, "the closest format is --format matrix-markdown of run and merge"},
      {{".gz", ".xz", ".zst", ".bz2", ".zip", ".tar", ".tgz", ".7z"},
       "write an uncompressed file and compress it afterwards"},
      {{".yaml", ".yml", ".toml", ".ini"}, "YAML readers accept JSON"},
      {{".xml", ".graphml", ".dot", ".gv", ".goal"},
       "`ringsim topology export` and `ringsim schedule export` write this format"},
      {{".pftrace"}, "use --trace FILE.pftrace of run or explain"},
      {{".json", ".jsonl", ".ndjson"}, "`ringsim run -o FILE.json` and -o FILE.jsonl write results in this form"},
      {{".csv"}, "`ringsim merge RESULTS.jsonl -o FILE.csv` makes CSV"},
  };
  return all;
}

std::string in_words(std::vector<std::string> endings) {
  if (endings.empty()) return "";
  const std::string last = endings.back();
  endings.pop_back();
  return endings.empty() ? last : fmt::format("{} or {}", fmt::join(endings, ", "), last);
}

}  // namespace

std::string ending_of(const std::string& path) {
  if (!is_plain_file(path)) return "";
  std::string ending = std::filesystem::path(path).extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

void expect_ending(const std::string& path, const std::vector<std::string>& written, OtherEndings others) {
  const std::string ending = ending_of(path);
  if (std::find(written.begin(), written.end(), ending) != written.end()) return;
  if (ending.empty() && (others == OtherEndings::text || !is_plain_file(path))) return;
  std::string way;
  bool promised = others == OtherEndings::refused;
  for (const Promised& each : promises())
    if (std::find(each.endings.begin(), each.endings.end(), ending) != each.endings.end()) {
      promised = true;
      way = fmt::format(fmt::runtime(each.way), shell_word(path));
    }
  if (!promised) return;
  const std::string expected =
      written.empty() ? "the name of a text file, such as FILE.txt"
      : others == OtherEndings::refused
          ? fmt::format("a name that ends in {}", in_words(written))
          : fmt::format("a name that ends in {}, or the name of a text file, such as FILE.txt", in_words(written));
  throw UsageError(output_option, fmt::format("expected {}, found \"{}\"", expected, path), way);
}

void fail_no_format(const std::string& words, std::vector<std::string> endings) {
  endings.erase(std::unique(endings.begin(), endings.end()), endings.end());
  throw UsageError("", fmt::format("expected --to {}, or -o FILE that ends in {}, found neither", words,
                                   in_words(std::move(endings))));
}

void fail_other_format(const std::string& path, const std::string& ending) {
  throw UsageError("", fmt::format("--to cannot be combined with a file that ends in {}, found \"{}\"", ending, path),
                   fmt::format("--to selects a format other than {}: remove it or rename the file", ending));
}

}  // namespace ringsim::tools
