#include "tools/formats/own_files.hpp"

#include <filesystem>
#include <fstream>
#include <ios>
#include <system_error>

#include "tools/exit.hpp"
#include "tools/formats/matrix.hpp"
#include "tools/output/output.hpp"

namespace ringsim::tools {

namespace {

/// True if a file may have been written by `ringsim run`, `merge` or `plot`, in any of their formats. Measured logs of
/// nccl-tests have the same words in their headings, and "#wrong".
bool holds_results(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(4096, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  if (text.empty() || text.starts_with("# ringsim ") || text.starts_with("scenario.name,")) return true;
  if (text.starts_with('{')) return has("\"ringsim\"");
  if (is_matrix_text(text)) return true;
  if (text.starts_with(png_signature)) return text.find(png_made_by) == png_header_end + 4;
  if (text.starts_with("<svg ")) return has("<!-- made by ringsim -->");
  if (text.starts_with("<!doctype html>")) return has("<meta name=\"generator\" content=\"ringsim\">");
  return has("algbw") && has("busbw") && has("GB/s") && !has("#wrong") && !text.starts_with('#');
}

}  // namespace

void refuse_to_replace(const std::string& output, bool force, const std::string& option) {
  std::error_code ignored;
  if (force || !is_plain_file(output) || !std::filesystem::exists(output, ignored) || holds_results(output)) return;
  throw UsageError(option, "expected a new file or a file with ringsim results, found other text in " + output,
                   "use --force to overwrite it");
}

}  // namespace ringsim::tools
