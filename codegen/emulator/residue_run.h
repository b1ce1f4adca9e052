// The residues of a run: the operations that kernels in residues call (residues.h), in the field
// that the request brings.
#ifndef SUNDOG_EMULATOR_RESIDUE_RUN_H
#define SUNDOG_EMULATOR_RESIDUE_RUN_H

#include <atomic>

#include "residue.h"

namespace sd::emulator {

inline ResidueField residue_field;
// Comparisons that an absent residue left open: what depends on them proves nothing.
inline std::atomic<uint64_t> open_comparisons{0};

inline void note_comparison(bool sure) {
  if (!sure) open_comparisons.fetch_add(1, std::memory_order_relaxed);
}

// Literals come back in every iteration, and a fraction takes a while to find.
Code residue_constant(float x) {
  struct Known {
    float x;
    Code code;
    bool known;
  };
  thread_local Known cache[64];
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  Known& entry = cache[(bits ^ bits >> 13 ^ bits >> 23) % 64];
  if (!entry.known || __builtin_memcmp(&entry.x, &x, sizeof x) != 0) {
    entry = {x, residue_field.constant(x), true};
  }
  return entry.code;
}
Code residue_integer(int64_t x) { return residue_field.integer(x); }
Code residue_add(Code x, Code y) { return residue_field.add(x, y); }
Code residue_sub(Code x, Code y) { return residue_field.sub(x, y); }
Code residue_neg(Code x) { return residue_field.neg(x); }
Code residue_mul(Code x, Code y) { return residue_field.mul(x, y); }
Code residue_div(Code x, Code y) { return residue_field.div(x, y); }
Code residue_exp(Code x) { return residue_field.exp(x); }
Code residue_log(Code x) { return residue_field.log(x); }
Code residue_sqrt(Code x) { return residue_field.sqrt(x); }
Code residue_max(Code x, Code y) { return residue_field.max(x, y); }
Code residue_min(Code x, Code y) { return residue_field.min(x, y); }
Code residue_call(const char* function, Code x) {
  return residue_field.call(ResidueField::function(function), x);
}
bool residue_equal(Code x, Code y) {
  bool sure = true;
  const bool result = residue_field.equal(x, y, &sure);
  note_comparison(sure);
  return result;
}
bool residue_less(Code x, Code y) {
  bool sure = true;
  const bool result = residue_field.less(x, y, &sure);
  note_comparison(sure);
  return result;
}
uint32_t residue_store(CodeStorage storage, Code x) { return residue_field.store(storage, x); }
Code residue_load(CodeStorage storage, uint32_t bits) { return residue_field.load(storage, bits); }

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_RESIDUE_RUN_H
