// How a batch is described to a caller of faro/c.h.
#pragma once

#include "c/sized.h"
#include "faro/batch.h"

namespace faro::c {

inline void describe(const Batch& batch, faro_rows& rows) noexcept {
  faro_rows told{};
  told.address = batch.bytes().data();
  told.bytes = batch.bytes().size();
  told.row_count = batch.row_count();
  told.row_bytes = batch.row_bytes();
  told.sender = batch.sender();
  fill(rows, told);
}

}  // namespace faro::c
