// What the targets share: how a refusal has to be worded, laws, and files that are nowhere but in memory.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ringsim::fuzz {

/// Throws Finding unless it holds. `sentence`: true if it does.
void law(bool holds, std::string_view sentence);

/// Runs `read`; false if it threw InputError. Throws Finding for an error that says nothing, more than fits a page, or
/// what is no UTF-8.
bool reads_or_refuses(const std::function<void()>& read);

/// For readers that take nothing but a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view text);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  std::string path() const;

 private:
  int descriptor_;
};

}  // namespace ringsim::fuzz
