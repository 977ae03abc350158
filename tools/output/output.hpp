// Output of results and messages.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace ringsim::tools {

/// The text with control characters, except newlines and tabs, as JSON writes them ("\u001b"): names out of files must
/// not steer a terminal. What has been escaped once stays as it is.
std::string safe_to_print(const std::string& text);

/// Says something on stderr, printable. Never throws: if stderr cannot be written, nothing can be said.
void say(const std::string& text);
/// As say(), for text with escape sequences of ringsim's own.
void say_styled(const std::string& text);
/// Says "ringsim: warning: TEXT" in a line, in color on a terminal.
void warn(const std::string& text);

/// Standard output or a file. A file appears under its name when it is complete: what stood there before is not lost
/// to a run that fails. Whatever goes wrong with writing (no permission, a full disk) is an EnvironmentError: a
/// result is never lost silently.
class Output {
 public:
  /// `path` empty or "-": standard output. Opens at once, so that no run starts in vain. Throws InputError for a path
  /// that cannot be right, EnvironmentError as fail_to_write().
  explicit Output(const std::string& path = "");
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(const std::string& text);  ///< printable
  void write_styled(const std::string& text);
  int descriptor() const;  ///< whether it is a terminal decides colors and width
  /// Everything is out. Call it at the end: a destructor cannot complain.
  void finish();

 private:
  [[noreturn]] void fail() const;
  std::string path_;
  std::string written_path_;  // the name it has until finish(); empty: its own
  std::FILE* file_;
};

/// True if results may be kept there in a file of that name: nothing is there yet, or a file; no pipe, no device.
bool is_plain_file(const std::string& path);

/// A new file in the folder of `path`, to be written and then renamed to it; `part` becomes its unique name.
/// Returns -1, and errno, if there is none to be had.
int open_part(const std::string& path, std::string& part);

/// Throws for a file that cannot be opened for writing, `error` being the errno: InputError for a path that cannot be
/// right (its folder is not there, it is a folder itself), else EnvironmentError.
[[noreturn]] void fail_to_write(const std::string& path, int error);

/// Throws InputError if `output` is the file `input`: it would be lost. Both may not be there yet.
void refuse_as_output(const std::string& input, const std::string& output);

}  // namespace ringsim::tools
