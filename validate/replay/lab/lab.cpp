#include "validate/replay/lab/lab.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "sim/base/error.hpp"
#include "validate/replay/tcp/tcp_replay.hpp"

namespace ringsim::replay {

namespace {

constexpr const char* folder = "/run/netns";  // iproute2's
constexpr int not_found = 127;                // as a shell says it

/// A file in memory. Pipes would have to be read while they are written.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("ringsim", MFD_CLOEXEC)) {
    if (file_ == -1) throw EnvironmentError(fmt::format("no file in memory: {}", std::strerror(errno)));
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int number() const { return file_; }

  void write(const std::string& text) const {
    if (::write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size()) || lseek(file_, 0, SEEK_SET) != 0)
      throw EnvironmentError(fmt::format("no file in memory: {}", std::strerror(errno)));
  }
  std::string read() const {
    std::string text;
    std::array<char, 4096> part{};
    lseek(file_, 0, SEEK_SET);
    for (ssize_t n = 0; (n = ::read(file_, part.data(), part.size())) > 0;)
      text.append(part.data(), static_cast<std::size_t>(n));
    return text;
  }

 private:
  int file_;
};

struct Ended {
  int code = 0;
  std::string said;
};

Ended run_program(const std::vector<std::string>& words, const std::string& input) {
  const MemoryFile in, out;
  in.write(input);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == -1) throw EnvironmentError(fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
  if (child == 0) {
    std::signal(SIGINT, SIG_IGN);  // half a command done is worse than one more
    dup2(in.number(), STDIN_FILENO);
    dup2(out.number(), STDOUT_FILENO);
    dup2(out.number(), STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(not_found);
  }
  int status = 0;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out.read()};
}

/// The words that start a program which reads commands.
std::vector<std::string> words_of(const LabCommand& first) {
  const std::string& where = first.net_namespace;
  if (first.program == LabCommand::Program::sh) return {"ip", "netns", "exec", where, "sh", "-e", "-s"};
  std::vector<std::string> words{first.program == LabCommand::Program::ip ? "ip" : "tc"};
  if (!where.empty()) words.insert(words.end(), {"-n", where});
  words.insert(words.end(), {"-batch", "-"});
  return words;
}

void require_program(const std::string& name) {
  if (run_program({name, "-V"}, "").code == not_found)
    throw EnvironmentError(
        fmt::format("the lab needs `{}`, which was not found\n  hint: install the package iproute2", name));
}

}  // namespace

void require_lab() {
  if (geteuid() != 0)
    throw EnvironmentError(
        "the lab needs root to create network namespaces\n  hint: use sudo ringsim lab ..., or a container with "
        "--privileged");
  require_program("ip");
  require_program("tc");
}

void carry_out(const std::vector<LabCommand>& commands, const std::atomic<bool>* stop) {
  for (auto first = commands.begin(); first != commands.end();) {
    if (stop != nullptr && *stop) throw Interrupted("the lab was not finished");
    const auto last = std::find_if(first, commands.end(), [&](const LabCommand& command) {
      return command.program != first->program || command.net_namespace != first->net_namespace;
    });
    std::string input;
    for (auto command = first; command != last; ++command) input += command->text + '\n';
    const Ended ended = run_program(words_of(*first), input);
    if (ended.code != 0)
      throw EnvironmentError(fmt::format(
          "{} {}: exit code {}: {}\n  hint: the lab needs the kernel modules veth, bridge, sch_htb, sch_tbf and "
          "cls_u32, and permission to use them",
          words_of(*first)[0], first->net_namespace, ended.code, ended.said.empty() ? "(no output)" : ended.said));
    first = last;
  }
}

Lab::Lab(LabPlan plan, const std::atomic<bool>* stop) : plan_(std::move(plan)) {
  try {
    carry_out(plan_.up, stop);
  } catch (...) {
    take_down(plan_.namespaces);
    throw;
  }
}

Lab::~Lab() {
  if (!keep_) take_down(plan_.namespaces);
}

std::vector<std::string> namespaces_of(const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().filename().string().starts_with(prefix)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void take_down(const std::vector<std::string>& namespaces) {
  for (const std::string& name : namespaces)
    if (std::filesystem::exists(std::string(folder) + "/" + name)) run_program({"ip", "netns", "delete", name}, "");
}

}  // namespace ringsim::replay
