#include "tools/output/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string_view>

#include "sim/base/error.hpp"
#include "tools/exit.hpp"
#include "tools/output/color.hpp"

namespace ringsim::tools {

bool is_plain_file(const std::string& path) {
  if (path.empty() || path == "-") return false;
  std::error_code unknown;
  const auto status = std::filesystem::status(path, unknown);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

int open_part(const std::string& path, std::string& part) {
  part = path + ".part-";
  part.append(6, 'X');  // in their place mkostemp() writes what makes the name new
  const int file = mkostemp(part.data(), O_CLOEXEC | O_APPEND);
  if (file == -1) {
    part.clear();
    return -1;
  }
  const mode_t mask = umask(0);
  umask(mask);
  struct stat before = {};
  fchmod(file, stat(path.c_str(), &before) == 0 ? before.st_mode & 07777 : 0666 & ~mask);
  return file;
}

Output::Output(const std::string& path) : path_(path == "-" ? "" : path), file_(stdout) {
  if (path_.empty()) return;
  if (!is_plain_file(path_)) {
    file_ = std::fopen(path_.c_str(), "wb");
  } else if (const int part = open_part(path_, written_path_); part != -1) {
    file_ = fdopen(part, "wb");
  } else {
    file_ = nullptr;
  }
  if (file_ == nullptr) fail_to_write(path_, errno);
}

Output::~Output() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);
  std::error_code ignored;
  if (!written_path_.empty()) std::filesystem::remove(written_path_, ignored);
}

void Output::fail() const {
  throw EnvironmentError(
      fmt::format("{}: cannot be written: {}", path_.empty() ? "standard output" : path_, std::strerror(errno)));
}

void Output::write(const std::string& text) { write_styled(safe_to_print(text)); }

void Output::write_styled(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail();
}

int Output::descriptor() const { return fileno(file_); }

void Output::finish() {
  if (std::fflush(file_) != 0) fail();
  if (file_ == stdout) return;
  std::FILE* file = file_;
  file_ = nullptr;
  if (std::fclose(file) != 0) fail();
  if (!written_path_.empty() && std::rename(written_path_.c_str(), path_.c_str()) != 0) fail();
}

void fail_to_write(const std::string& path, int error) {
  if (error == EISDIR) throw InputError(path, "expected the name of the file to write, found a folder");
  if (error == ENOENT || error == ENOTDIR) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    std::error_code ignored;
    if (folder.empty()) throw InputError(path, "expected the name of the file to write, found none");
    if (!std::filesystem::is_directory(folder, ignored))  // /proc is one in which no file can be made
      throw InputError(path, fmt::format("expected a file in a folder, found no folder \"{}\"", folder),
                       "check the path, or create the folder first");
  }
  throw EnvironmentError(fmt::format("{}: cannot be written: {}", path, std::strerror(error)));
}

void refuse_as_output(const std::string& input, const std::string& output) {
  std::error_code ignored;
  if (input.empty() || !is_plain_file(output)) return;
  const auto absolute = [&](const std::string& path) { return std::filesystem::weakly_canonical(path, ignored); };
  if (std::filesystem::equivalent(input, output, ignored) || absolute(input) == absolute(output))
    throw InputError(output, "expected an output file that is not also an input file");
}

namespace {

/// Characters that turn the direction of what follows, so that text reads otherwise than it is (Unicode's
/// Bidi_Control).
char32_t turns_direction(std::string_view text) {
  if (text.starts_with("\u061c")) return U'\u061c';
  if (!text.starts_with("\xE2\x80") && !text.starts_with("\xE2\x81")) return 0;
  if (text.size() < 3) return 0;
  const auto last = static_cast<unsigned char>(text[2]);
  const char32_t found = (text[1] == '\x80' ? 0x2000U : 0x2040U) + (last & 0x3FU);
  const auto within = [&](char32_t first, char32_t end) { return found >= first && found <= end; };
  return within(0x200E, 0x200F) || within(0x202A, 0x202E) || within(0x2066, 0x2069) ? found : 0;
}

}  // namespace

std::string safe_to_print(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (const char32_t turns = turns_direction(std::string_view(text).substr(i)); turns != 0) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(turns));
      i += turns < 0x800 ? 1 : 2;  // bytes that follow
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool ends_line = byte == '\n' || (byte == '\r' && next == '\n');
    const bool first_block = (byte < 0x20 && byte != '\t' && !ends_line) || byte == 0x7f;
    const bool second_block = byte == 0xC2 && next >= 0x80 && next <= 0x9f;  // U+0080 to U+009F in UTF-8
    if (!first_block && !second_block) {
      out += text[i];
      continue;
    }
    out += fmt::format("\\u{:04x}", second_block ? next : byte);
    if (second_block) ++i;
  }
  return out;
}

void say(const std::string& text) { say_styled(safe_to_print(text)); }

void say_styled(const std::string& text) {
  if (std::fputs(text.c_str(), stderr) >= 0) std::fflush(stderr);
}

void warn(const std::string& text) {
  say_styled(styled(Style::yellow, "ringsim: warning:", has_color(STDERR_FILENO)) + ' ' + safe_to_print(text) + '\n');
}

}  // namespace ringsim::tools
