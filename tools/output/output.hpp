// Where results go, and how tables look.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace ringsim::tools {

/// Says something on stderr. Never throws: where stderr cannot be written there is nobody to tell.
void say(const std::string& text);

/// Standard output or a file. A file appears under its name when it is complete: what stood there before is not lost
/// to a run that fails. Whatever goes wrong with writing (no permission, a full disk) is an EnvironmentError: a
/// result is never lost silently.
class Output {
 public:
  /// `path` empty or "-": standard output. Opens at once, so that a run does not start that cannot end well.
  explicit Output(const std::string& path = "");
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(const std::string& text);
  /// Everything is out. Call it at the end: a destructor cannot complain.
  void finish();

 private:
  [[noreturn]] void fail() const;
  std::string path_;
  std::string written_path_;  // the name it has until finish(); empty: its own
  std::FILE* file_;
};

/// Whether results may be kept there in a file of that name: nothing is there yet, or a file; no pipe, no device.
bool is_plain_file(const std::string& path);

/// A new file beside `path`, to be written and then renamed to it; `part` becomes its name, which nobody else has.
/// Returns -1, and errno, where there is none to be had.
int open_part(const std::string& path, std::string& part);

/// Throws InputError where `output` is the file `input`: it would be lost. Both may not be there yet.
void refuse_as_output(const std::string& input, const std::string& output);

/// Columns as wide as they need to be; numbers to the right, text to the left.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::size_t size() const { return rows_.size() - 1; }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// A line on the terminal that says how far long work is: nothing where stderr is no terminal, nothing in the first
/// second.
class ProgressLine {
 public:
  explicit ProgressLine(std::size_t parts);
  ~ProgressLine();
  /// Part `part` is done to that share, 0 to 1. From any thread.
  void set(std::size_t part, double share);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringsim::tools
