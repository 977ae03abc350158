#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace ringsim::test {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::filesystem::path fresh_folder(const std::string& name) {
  std::string pattern = (std::filesystem::temp_directory_path() / (name + '-')).string();
  pattern.append(6, 'X');  // in their place mkdtemp() writes what makes the name new
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder can be made");
  return pattern;
}

namespace {

Outcome run(std::string line, const std::vector<std::string>& arguments, const std::string& output_file,
            const std::string& input_file = "/dev/null") {
  const std::filesystem::path folder = fresh_folder("ringsim-test");
  const std::string out = output_file.empty() ? (folder / "out").string() : output_file;
  for (const std::string& argument : arguments) line += " " + quoted(argument);
  line += " > " + quoted(out) + " 2> " + quoted((folder / "err").string()) + " < " + quoted(input_file);
  const int status = std::system(line.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (output_file.empty()) outcome.out = read(out);
  outcome.err = read(folder / "err");
  std::filesystem::remove_all(folder);
  return outcome;
}

}  // namespace

Outcome run_command(const std::vector<std::string>& arguments, const std::string& output_file) {
  return run(quoted(command_file()), arguments, output_file);
}

Outcome run_with_input(const std::vector<std::string>& arguments, const std::string& input, const std::string& folder) {
  const std::string go = folder.empty() ? "" : "cd " + quoted(folder) + " && ";
  return run(go + quoted(command_file()), arguments, "", temporary_file("input", input));
}

Outcome run_on_fake_gpu(const std::vector<std::string>& arguments, const std::string& fault, int gpus) {
  const std::string told = "FAKE_GPUS=" + std::to_string(gpus) + " FAKE_GPU_FAULT=" + quoted(fault);
  return run(told + ' ' + quoted(fake_gpu_command_file()), arguments, "");
}

std::string temporary_file(const std::string& name, const std::string& text) {
  static struct Folders : std::vector<std::filesystem::path> {
    ~Folders() {
      std::error_code ignored;
      for (const auto& folder : *this) std::filesystem::remove_all(folder, ignored);
    }
  } folders;  // gone when the tests end
  folders.push_back(fresh_folder("ringsim-test"));
  const std::filesystem::path path = folders.back() / name;
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

}  // namespace ringsim::test
