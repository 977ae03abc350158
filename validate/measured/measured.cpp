#include "validate/measured/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/decoder/files.hpp"
#include "sim/base/error.hpp"
#include "sim/text/foreign_format.hpp"
#include "sim/text/json_scan.hpp"
#include "sim/text/plain_text.hpp"
#include "validate/measured/measured_detail.hpp"
#include "validate/measured/measured_runs.hpp"

namespace ringsim {

namespace {

/// Letters alone, small: "Reduce_scatter" -> "reducescatter".
std::string letters_in(std::string_view name) {
  std::string letters = measured::lower(name);
  std::erase_if(letters, [](char c) { return c < 'a' || c > 'z'; });
  return letters;
}

/// An object, or a list of objects: logs may begin with "[1622510346.87] ...".
bool is_json(std::string_view text) {
  const char* const space = " \t\r\n";
  std::size_t first = text.find_first_not_of(space);
  if (first != std::string_view::npos && text[first] == '[') first = text.find_first_not_of(space, first + 1);
  return first != std::string_view::npos && text[first] == '{';
}

/// True if the text is a JSON document and nothing else.
bool is_one_document(std::string_view text) {
  const std::size_t end = json_end(text, 0);
  return end != std::string_view::npos && text.find_first_not_of(" \t\r\n", end) == std::string_view::npos;
}

/// The lines without their prefixes as one text; line numbers stay the same.
std::string joined(const std::vector<measured::Line>& lines) {
  std::string text;
  for (const measured::Line& line : lines) text.append(line.text) += '\n';
  return text;
}

bool may_have_json(std::string_view text) {
  return text.find('{') != std::string_view::npos &&
         (text.find("\"results\"") != std::string_view::npos || text.find("\"time\"") != std::string_view::npos);
}

/// True for the JSON of ringsim's own results, one document or a line each.
bool is_own_json(std::string_view text) {
  const std::size_t key = text.find_first_not_of(" \t\r\n{");
  return is_json(text) && key != std::string_view::npos && text.substr(key).starts_with("\"ringsim\"");
}

/// `text`: as plain_text() returns it.
measured::Found found_in(std::string_view text, const std::string& name) {
  if (is_own_json(text)) measured::refuse_predictions(name);
  std::vector<measured::Line> lines = measured::lines_of(text, name);
  if (is_json(text) && is_one_document(text)) return measured::read_json(text, name);
  for (measured::Line& line : lines) line.text = without_log_prefix(line.text);
  if (measured::is_osu(lines)) return measured::read_osu(lines);
  if (const auto header = csv_header(lines, measured::Header::whole)) return measured::read_csv(lines, *header);
  std::optional<measured::Found> documents;
  if (may_have_json(text)) documents = measured::read_json_among(joined(lines), name);
  const bool has_documents = documents && !documents->runs.empty();
  if (measured::has_nccl_rows(lines)) {
    measured::Found found = measured::read_nccl_text(lines);
    if (has_documents)
      found.warnings.push_back(name + ": the JSON in the file is ignored; the rows of the log are used");
    return found;
  }
  if (has_documents) return std::move(*documents);
  if (is_json(text)) return measured::read_json(text, name);  // damaged, or of another program
  for (const measured::Header which : {measured::Header::part, measured::Header::anywhere})
    if (const auto header = csv_header(lines, which)) return measured::read_csv(lines, *header);
  const auto names_bandwidth = [](const measured::Line& line) {
    return line.text.find("algbw") != std::string_view::npos;
  };
  if (std::any_of(lines.begin(), lines.end(), names_bandwidth)) return measured::read_nccl_text(lines);
  throw InputError(name, "expected measured times in a supported format, found none",
                   "supported formats:\n" + measured_formats());
}

}  // namespace

std::string measured_formats() {
  return "    output of nccl-tests, rccl-tests and mscclpp-test, and logs that contain it\n    JSON of nccl-tests "
         "(-J), including within a log; JSON and CSV of rccl-tests (-x)\n    output of the OSU collective benchmarks\n "
         "   CSV, or a table with | between columns, names in the first line: bytes, or\n      size_KiB, size_MiB, "
         "...; "
         "time_us, or time_ms, latency_us, ...; and\n      optionally in_place_us, min_us, max_us, algbw_GBps, "
         "busbw_GBps, wrong,\n      collective, ranks; or the names that nccl-tests and cloudai print";
}

std::optional<CollectiveOp> collective_named(std::string_view name) {
  std::string letters = letters_in(name);
  // The first of each that fits: PyTorch's calls are torch.distributed.all_gather_into_tensor() and the like.
  for (const std::string_view before : {"torchdistributed", "dist", "mpi", "nccl", "rccl", "osu"})
    if (letters.starts_with(before)) {
      letters.erase(0, before.size());
      break;
    }
  for (const std::string_view after : {"perf", "intotensor", "tensor", "single"})
    if (letters.ends_with(after)) {
      letters.erase(letters.size() - after.size());
      break;
    }
  if (letters == "bcast") return CollectiveOp::broadcast;
  for (const CollectiveOp op : collective_ops())
    if (letters == letters_in(to_string(op))) return op;
  return std::nullopt;
}

MeasuredFile::MeasuredFile(std::string_view text, const std::string& name, std::optional<CollectiveOp> collective) {
  refuse_foreign_format(text.substr(0, recognized_bytes), name, "a file of measured times");
  const std::string plain = plain_text(text);
  runs_ = std::make_shared<const measured::Runs>(found_in(plain, name), name, collective);
}

MeasuredFile MeasuredFile::read(const std::string& path, std::optional<CollectiveOp> collective) {
  constexpr std::size_t most = std::size_t{1} << 30;  // logs of NCCL_DEBUG=INFO on many ranks are long
  return {scenarios::read_text(path, "a file of measured times", most), path, collective};
}

MeasuredTable MeasuredFile::table(std::optional<int> run, const std::optional<ComparedWith>& with) const {
  return runs_->table(run, with);
}

Bytes MeasuredFile::first_size() const { return runs_->first_size(); }

std::optional<CollectiveOp> MeasuredFile::only_op(std::optional<int> run) const { return runs_->only_op(run); }

const std::map<std::string, std::string>& MeasuredFile::about() const { return runs_->about(); }

MeasuredTable parse_measured(std::string_view text, const std::string& name, std::optional<CollectiveOp> collective) {
  return MeasuredFile(text, name, collective).table();
}

MeasuredTable read_measured(const std::string& path, std::optional<CollectiveOp> collective) {
  return MeasuredFile::read(path, collective).table();
}

}  // namespace ringsim
