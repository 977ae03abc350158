#include "tools/sweep/sweep_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sim/base/error.hpp"
#include "tools/output/output.hpp"

namespace ringsim::tools {

namespace {

/// All of it, or false with errno.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

SweepFile::SweepFile(std::string path, bool resume) : path_(std::move(path)) {
  // Another sweep may put its finished file in this one's place between open and lock: then the lock is on a file that
  // has no name any more.
  for (;;) {
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ == -1) fail_to_write(path_, errno);
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
      const int why = errno;
      close(file_);
      file_ = -1;
      if (why == EWOULDBLOCK)
        throw EnvironmentError(
            path_ + ": another sweep is writing to it\n  hint: give each sweep its own -o, and merge the files");
      errno = why;
      fail("cannot be locked");
    }
    struct stat opened = {}, named = {};
    if (fstat(file_, &opened) != 0) fail("cannot be read");
    size_ = static_cast<std::uint64_t>(opened.st_size);
    if (stat(path_.c_str(), &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) break;
    close(file_);
  }
  if (size_ > 0 && !resume)
    throw InputError(path_, fmt::format("expected no file, or an empty one, found {} bytes", size_),
                     "to continue a sweep, add --resume; otherwise give another file, or remove this one");
}

SweepFile::~SweepFile() {
  if (file_ != -1) close(file_);
}

void SweepFile::fail(const std::string& what) const {
  throw EnvironmentError(fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
}

bool SweepFile::read(const std::function<void(ResultRow&&, const RowPlace&)>& take) {
  const FileEnd end = read_results(
      path_, [&](ResultRow&& row, std::string_view, const RowPlace& place) { take(std::move(row), place); });
  if (ftruncate(file_, static_cast<off_t>(end.whole_bytes)) != 0) fail("cannot be truncated to complete lines");
  size_ = end.whole_bytes;
  return end.torn;
}

void SweepFile::append(std::string_view rows) {
  check_in_place();
  if (!write_all(file_, rows)) {
    const int why = errno;
    // What was written of them would be a torn line; should even this fail, --resume drops it.
    static_cast<void>(ftruncate(file_, static_cast<off_t>(size_)) == 0);
    errno = why;
    fail("cannot be written");
  }
  size_ += rows.size();
}

void SweepFile::keep(const std::function<bool(const ResultRow&)>& wanted) {
  replace([&](const auto& write) {
    read_results(path_, [&](ResultRow&& row, std::string_view line, const RowPlace&) {
      if (wanted(row)) write(std::string(line) + '\n');
    });
  });
}

void SweepFile::put_in_order() {
  const MergedResults rows({path_});
  replace([&](const auto& write) { rows.each_line(write); });
}

void SweepFile::check_in_place() const {
  struct stat opened = {}, named = {};
  if (fstat(file_, &opened) == 0 && stat(path_.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
      opened.st_dev == named.st_dev)
    return;
  throw EnvironmentError(
      path_ + ": another program removed or replaced the file while the sweep was writing to it; its rows are lost");
}

bool has_writer(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file == -1) return false;
  const bool locked = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return locked;
}

void SweepFile::replace(const std::function<void(const std::function<void(std::string_view)>&)>& fill) {
  check_in_place();
  std::string part;
  const int written = open_part(path_, part);
  if (written == -1) fail("its new version cannot be written");
  std::uint64_t size = 0;
  try {
    // Locked before it has the name, so that nobody comes between.
    if (flock(written, LOCK_EX | LOCK_NB) != 0) fail("its new version cannot be locked");
    fill([&](std::string_view text) {
      if (!write_all(written, text)) fail("its new version cannot be written");
      size += text.size();
    });
    check_in_place();
    // On disk before it takes the old one's place: a machine that loses power must not lose both.
    if (fsync(written) != 0 || std::rename(part.c_str(), path_.c_str()) != 0)
      fail("it cannot be replaced by its new version");
  } catch (...) {
    close(written);
    unlink(part.c_str());
    throw;
  }
  close(file_);
  file_ = written;
  size_ = size;
}

}  // namespace ringsim::tools
