// Unpacks gzip.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;

namespace ringsim {

/// True if a file with this beginning is gzip (RFC 1952). Names do not matter.
bool is_gzip(std::string_view beginning);

/// Unpacks a gzip file piece by piece; it may have several members. Throws InputError naming the file if it is damaged.
class Gunzip {
 public:
  explicit Gunzip(std::string name);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// Appends what the next piece of the file unpacks to: at most 1032 times as much.
  void feed(std::string_view packed, std::string& out);
  /// Throws InputError if the file ends too early.
  void end() const;

 private:
  std::string name_;
  std::unique_ptr<z_stream_s> stream_;
  bool within_ = false;  ///< inside a member
};

}  // namespace ringsim
