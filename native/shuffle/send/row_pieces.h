// RowPieces: a row as its sender has it, in one or several places. PieceReader: takes its bytes from front to back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace faro::shuffle {

/// Refers to the places, and to the list of them.
class RowPieces {
 public:
  using Piece = std::span<const std::byte>;
  static constexpr size_t kMostPieces = 65'536;
  /// Why pieces are none of a row.
  enum class Fault : uint8_t { none, too_many, null_piece, overflow };

  /// A row in one place.
  explicit RowPieces(const Piece& whole) noexcept : pieces_(&whole, 1), bytes_(whole.size()) {}
  /// A row in pieces as a caller gives them: look at `fault` first.
  explicit RowPieces(std::span<const Piece> pieces) noexcept : pieces_(pieces) {
    fault_ = pieces.size() > kMostPieces ? Fault::too_many : Fault::none;
    for (size_t i = 0; i < pieces.size() && fault_ == Fault::none; ++i) add(pieces[i]);
  }

  Fault fault() const noexcept { return fault_; }
  std::span<const Piece> pieces() const noexcept { return pieces_; }
  uint64_t bytes() const noexcept { return bytes_; }

  /// Copies the whole row.
  void copy_to(std::byte* to) const noexcept {
    for (const Piece& piece : pieces_) {
      if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
      to += piece.size();
    }
  }

 private:
  void add(const Piece& piece) noexcept {
    if (piece.data() == nullptr && !piece.empty()) fault_ = Fault::null_piece;
    if (__builtin_add_overflow(bytes_, piece.size(), &bytes_)) fault_ = Fault::overflow;
  }

  std::span<const Piece> pieces_;
  uint64_t bytes_ = 0;
  Fault fault_ = Fault::none;
};

/// Valid as long as what the row refers to.
class PieceReader {
 public:
  explicit PieceReader(const RowPieces& row) noexcept : pieces_(row.pieces()), left_(row.bytes()) {}

  /// Bytes that were not taken yet.
  uint64_t left() const noexcept { return left_; }
  /// Takes the next `bytes` bytes; no more than are left.
  void copy_to(std::byte* to, uint64_t bytes) noexcept {
    left_ -= bytes;
    while (bytes > 0) {
      const RowPieces::Piece rest = pieces_.front().subspan(taken_of_first_);
      const uint64_t part = std::min<uint64_t>(bytes, rest.size());
      if (part > 0) std::memcpy(to, rest.data(), part);
      to += part;
      bytes -= part;
      taken_of_first_ += part;
      if (part == rest.size()) {
        pieces_ = pieces_.subspan(1);
        taken_of_first_ = 0;
      }
    }
  }

 private:
  std::span<const RowPieces::Piece> pieces_;
  uint64_t left_;
  size_t taken_of_first_ = 0;
};

}  // namespace faro::shuffle
