#include "validate/profiles/pieces.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim::profiles {

namespace {

/// gzip makes at most 1032 bytes of one, so a piece has at most 17 MB.
constexpr std::size_t packed_piece = std::size_t{1} << 14;

/// Below this a file of zeros is no harm, and real traces of equal lines pack well.
constexpr std::uint64_t harmless = std::uint64_t{1} << 30;

std::unique_ptr<std::istream> opened(const std::string& path) {
  constexpr const char* what = "a profile of PyTorch (Kineto, Flight Recorder), NCCL Inspector or Nsight Systems";
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    throw InputError(path, fmt::format("expected {}, found no file of that name", what));
  if (std::filesystem::is_directory(status))
    throw InputError(path, fmt::format("expected {}, found a directory", what), "list its files: DIRECTORY/*.json.gz");
  errno = 0;
  auto in = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*in) throw InputError(path, fmt::format("expected a readable file, found: {}", std::strerror(errno)));
  return in;
}

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

}  // namespace

Pieces::Pieces(const std::string& path, const Limits& limits, ReadProgress progress)
    : name_(path), limits_(limits), progress_(std::move(progress)), in_(opened(path)), size_(size_of(path)) {}

Pieces::Pieces(std::unique_ptr<std::istream> in, std::string name, const Limits& limits)
    : name_(std::move(name)), limits_(limits), in_(std::move(in)) {}

bool Pieces::next(std::string& piece) {
  if (!beginning_.empty()) {
    piece = std::exchange(beginning_, {});
    return true;
  }
  return read(piece);
}

std::string_view Pieces::beginning(std::size_t bytes) {
  std::string piece;
  while (beginning_.size() < bytes && read(piece)) beginning_ += piece;
  return beginning_;
}

bool Pieces::read(std::string& piece) {
  piece.clear();
  std::array<char, packed_piece> block{};
  while (piece.empty()) {
    in_->read(block.data(), block.size());
    const std::string_view found(block.data(), static_cast<std::size_t>(in_->gcount()));
    if (in_->bad()) throw InputError(name_, fmt::format("expected a readable file, found: {}", std::strerror(errno)));
    if (std::exchange(first_, false) && is_gzip(found)) gzip_.emplace(name_);
    if (found.empty()) {
      if (gzip_) gzip_->end();
      return false;
    }
    packed_ += found.size();
    if (gzip_)
      gzip_->feed(found, piece);
    else
      piece = found;
    unpacked_ += piece.size();
    if (gzip_ && unpacked_ > harmless && unpacked_ / packed_ > limits_.ratio)
      throw InputError(name_,
                       fmt::format("expected at most {} bytes unpacked per packed byte, found {} MiB of {} KiB",
                                   limits_.ratio, unpacked_ >> 20, packed_ >> 10),
                       "profiles do not compress this well; if this is a valid profile, increase --limit-ratio");
    if (progress_) progress_(packed_, size_);
  }
  return true;
}

}  // namespace ringsim::profiles
