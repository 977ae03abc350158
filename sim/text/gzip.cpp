#include "sim/text/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

bool is_gzip(std::string_view beginning) { return beginning.starts_with("\x1f\x8b"); }

Gunzip::Gunzip(std::string name) : name_(std::move(name)), stream_(std::make_unique<z_stream_s>()) {
  constexpr int window = 15, only_gzip = 16;  // zlib.h, inflateInit2
  if (inflateInit2(stream_.get(), window + only_gzip) != Z_OK)
    throw EnvironmentError("zlib cannot unpack: out of memory");
}

Gunzip::~Gunzip() { inflateEnd(stream_.get()); }

void Gunzip::feed(std::string_view packed, std::string& out) {
  std::string in(packed);  // zlib's pointer is not to const
  std::array<char, 1 << 16> block{};
  stream_->next_in = reinterpret_cast<Bytef*>(in.data());
  stream_->avail_in = static_cast<uInt>(in.size());
  do {
    // Tapes and disks pad a file with zeros after its last member.
    if (!within_ && stream_->avail_in > 0 && *stream_->next_in == 0) {
      ++stream_->next_in, --stream_->avail_in;
      continue;
    }
    stream_->next_out = reinterpret_cast<Bytef*>(block.data());
    stream_->avail_out = static_cast<uInt>(block.size());
    within_ = within_ || stream_->avail_in > 0;
    const int result = inflate(stream_.get(), Z_NO_FLUSH);
    out.append(block.data(), block.size() - stream_->avail_out);
    if (result == Z_STREAM_END) {
      within_ = false;
      inflateReset(stream_.get());
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw InputError(name_,
                       fmt::format("expected a valid gzip file, found a damaged one: {}",
                                   stream_->msg == nullptr ? "no reason given" : stream_->msg),
                       "check it with `gzip -t`");
    }
  } while (stream_->avail_in > 0 || stream_->avail_out == 0);
}

void Gunzip::end() const {
  if (within_)
    throw InputError(name_, "expected a complete gzip file, found a truncated one", "it is truncated; copy it again");
}

}  // namespace ringsim
