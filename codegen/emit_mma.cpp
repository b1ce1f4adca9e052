// Sums of products on the tensor core: mma.m16n8k16 with operands from shared memory by ldmatrix or
// from the registers of the computation that made them.
//
// For each step of 16 along k a warp fetches the fragments of its M side once, then those of its N
// side two atoms at a time.  Rows beyond the tile are clamped: they only reach results that are
// masked.
#include <algorithm>

#include "codegen/emit_kernel.h"

namespace sundog::codegen {

struct KernelEmitter::Fragments {
  uint32_t id = 0;
  const MmaPlan* mma = nullptr;
  const RegisterArray* into = nullptr;
  int64_t m_atoms = 1, n_atoms = 1;    // of one warp
  std::string m_base, n_base, k_base;  // what the warp adds to the coordinates
  Coordinates outer;                   // batch and further reduced axes
  std::vector<RegisterLoop> digits;    // of the register modes around the atoms
  std::string row[2], col[2];          // of the lane's address; [0] the M side
};

namespace {

const Mode* tile_mode(const Layout& layout, AxisId axis, int64_t atom) {
  for (const Mode& m : layout.modes) {
    if (m.axis == axis && m.holder == Holder::kReg && m.stride == atom) return &m;
  }
  return nullptr;
}

int64_t count_of(const Mode* mode) { return mode == nullptr ? 1 : mode->extent; }

}  // namespace

void KernelEmitter::mma_loops(uint32_t id, const RegisterArray& into, const std::string& only) {
  const ComputationPlan& p = plan(id);
  Fragments x;
  x.id = id;
  x.mma = &*p.mma;
  x.into = &into;
  x.m_atoms = count_of(tile_mode(p.partial, x.mma->m, 16));
  x.n_atoms = x.mma->b_interleaved ? 2 * count_of(tile_mode(p.partial, x.mma->n, 16))
                                   : count_of(tile_mode(p.partial, x.mma->n, 8));
  const auto base = [&](AxisId f) {
    std::vector<std::string> parts;
    for (const Mode& m : p.iteration.modes) {
      if (m.axis != f || m.holder != Holder::kWarp) continue;
      parts.push_back(digit_text(m, kernel_.warps) + " * " + std::to_string(m.stride));
    }
    if (parts.empty()) return std::string("0");
    const std::string name = out_.fresh(identifier(kernel_.factors[f].name) + "_");
    out_.line("const int " + name + " = " + join(parts, " + ") + ";");
    return name;
  };
  x.m_base = base(x.mma->m);
  x.n_base = base(x.mma->n);
  x.k_base = base(x.mma->k);
  for (bool a_side : {true, false}) fragment_origin(x, a_side);
  int open = 0;
  if (!only.empty()) {
    out_.open("if (" + only + ")");
    ++open;
  }
  for (AxisId f : computation(id).axes) {
    if (f == x.mma->m || f == x.mma->n) continue;
    x.outer[f] = Linear::of(base(f));
    if (x.outer[f].items.empty() || x.outer[f].items[0].first == "0") x.outer[f] = {};
    const Mode* mode = tile_mode(p.partial, f, 1);
    if (mode == nullptr || mode->extent <= 1) continue;
    const std::string var = out_.fresh("r");
    out_.line("#pragma unroll");
    out_.open("for (int " + var + " = 0; " + var + " < " + std::to_string(mode->extent) + "; ++" +
              var + ")");
    x.outer[f].add(var, 1);
    x.digits.push_back({*mode, var});
    ++open;
  }
  for (AxisId f : x.mma->outer_k) {
    const std::string var = out_.fresh("r");
    out_.open("for (int " + var + " = 0; " + var + " < " + std::to_string(extent(f)) + "; ++" +
              var + ")");
    x.outer[f].add(var, 1);
    ++open;
  }
  mma_step(x);
  for (; open > 0; --open) out_.close();
}

void KernelEmitter::mma_step(const Fragments& x) {
  const MmaPlan& mma = *x.mma;
  out_.line("#pragma unroll");
  out_.open("for (int step = 0; step < " + std::to_string(mma.k_steps) + "; ++step)");
  // Warps share the steps unevenly: the last ones may have none left.
  int64_t atoms = (extent(mma.k) + 15) / 16;
  const bool uneven = covered(mma.a_layout, mma.k) > atoms * 16;
  if (uneven) {
    Linear first = Linear::of(x.k_base);
    if (x.k_base == "0") first = {};
    first.add("step", 16);
    out_.open("if (" + first.text() + " < " + std::to_string(atoms * 16) + ")");
  }
  if (x.m_atoms == 1) {
    out_.line("uint32_t a[4];");
    load_fragment(x, true, false, "0");
  } else {
    out_.line("uint32_t a[" + std::to_string(x.m_atoms) + "][4];");
    out_.line("#pragma unroll");
    out_.open("for (int i = 0; i < " + std::to_string(x.m_atoms) + "; ++i)");
    load_fragment(x, true, false, "i");
    out_.close();
  }
  const int64_t pairs = mma.b_in_registers ? 0 : x.n_atoms / 2;
  if (pairs > 0) {
    out_.line("#pragma unroll");
    out_.open("for (int j = 0; j < " + std::to_string(pairs * 2) + "; j += 2)");
    out_.line("uint32_t b[4];");
    load_fragment(x, false, true, "j");
    multiply(x, false, "b[0]", "b[1]");
    multiply(x, true, "b[2]", "b[3]");
    out_.close();
  }
  const int64_t left = x.n_atoms - 2 * pairs;
  if (left > 0) {
    out_.line("#pragma unroll");
    out_.open("for (int j = " + std::to_string(2 * pairs) + "; j < " + std::to_string(x.n_atoms) +
              "; ++j)");
    out_.line("uint32_t b[2];");
    load_fragment(x, false, false, "j");
    multiply(x, false, "b[0]", "b[1]");
    out_.close();
  }
  if (uneven) out_.close();
  out_.close();
}

// With atom j of the N side, or the `second` of the pair that begins there.
void KernelEmitter::multiply(const Fragments& x, bool second, const std::string& b0,
                             const std::string& b1) {
  const Layout& partial = plan(x.id).partial;
  std::vector<RegisterLoop> digits = x.digits;
  const Mode* m_mode = tile_mode(partial, x.mma->m, 16);
  if (m_mode != nullptr && x.m_atoms > 1) digits.push_back({*m_mode, "i"});
  Linear group;
  // Atoms beside one another along N come first.
  if (x.n_atoms > 1) group.add("j", 1);
  for (const auto& [name, coefficient] : register_index(partial, digits).items) {
    group.add(name, coefficient / 4);
  }
  group.constant += second ? 1 : 0;
  const std::string call = "sd::mma_m16n8k16<" + std::string(cuda_type(x.mma->dtype)) + ">(" +
                           x.into->name + "[" + group.text() + "], a" +
                           (x.m_atoms > 1 ? "[i]" : "") + ", " + b0 + ", " + b1 + ");";
  if (x.m_atoms == 1) {
    out_.line(call);
    return;
  }
  out_.line("#pragma unroll");
  out_.line("for (int i = 0; i < " + std::to_string(x.m_atoms) + "; ++i) " + call);
}

// The row and column at which this lane points ldmatrix, for the first atom of its warp.
void KernelEmitter::fragment_origin(Fragments& x, bool a_side) {
  const MmaPlan& mma = *x.mma;
  if (a_side ? mma.a_in_registers : mma.b_in_registers) return;
  const SharedTile& tile = *plan(a_side ? mma.a : mma.b).shared;
  const AxisId rows = a_side ? mma.m : mma.n;
  std::string row, col;
  if (a_side ? mma.a_interleaved : mma.b_interleaved) {
    row = "0";
    col = "lane % 16";
  } else if (bytes(tile.dtype) == 1) {
    row = "lane / 4";
    col = "lane % 4 * 2";
  } else if (tile.stride(mma.k) == 1) {
    row = a_side ? "lane % 16" : "lane % 8 + lane / 16 * 8";
    col = a_side ? "lane / 16 * 8" : "lane / 8 % 2 * 8";
  } else if (tile.stride(rows) == 1) {
    row = a_side ? "lane / 8 % 2 * 8" : "lane / 16 * 8";
    col = a_side ? "lane % 8 + lane / 16 * 8" : "lane % 16";
  } else {
    row = "lane / 4";
    col = "lane % 4 * 2";
  }
  const std::string& base = a_side ? x.m_base : x.n_base;
  const int side = a_side ? 0 : 1;
  const std::string name = names_[a_side ? mma.a : mma.b];
  x.row[side] = out_.fresh(name + "_row_");
  x.col[side] = out_.fresh(name + "_k_");
  out_.line("const int " + x.row[side] + " = " + (base == "0" ? "" : base + " + ") + row + ", " +
            x.col[side] + " = " + (x.k_base == "0" ? "" : x.k_base + " + ") + col + ";");
}

void KernelEmitter::load_fragment(const Fragments& x, bool a_side, bool pair,
                                  const std::string& atom) {
  const MmaPlan& mma = *x.mma;
  const bool in_registers = a_side ? mma.a_in_registers : mma.b_in_registers;
  const std::string target = a_side ? (x.m_atoms > 1 ? "a[i]" : "a") : "b";
  if (!in_registers) {
    load_matrix(x, a_side, pair, atom);
    return;
  }
  for (int word = 0; word < (a_side ? 4 : 2); ++word) {
    out_.line(target + "[" + std::to_string(word) + "] = " + fragment_word(x, a_side, atom, word) +
              ";");
  }
}

void KernelEmitter::load_matrix(const Fragments& x, bool a_side, bool pair,
                                const std::string& atom) {
  const MmaPlan& mma = *x.mma;
  const uint32_t operand = a_side ? mma.a : mma.b;
  const SharedTile& tile = *plan(operand).shared;
  const AxisId rows = a_side ? mma.m : mma.n;
  const bool k_runs = tile.stride(mma.k) == 1, row_runs = tile.stride(rows) == 1;
  const bool narrow = bytes(tile.dtype) == 1;
  const int side = a_side ? 0 : 1, atom_rows = a_side ? 16 : 8;
  int64_t allocated = 1;
  for (const TileAxis& a : tile.axes) {
    if (a.axis == rows) allocated = a.extent;
  }
  const bool beyond = covered(a_side ? mma.a_layout : mma.b_layout, rows) > allocated ||
                      (!a_side && pair && allocated % 16 != 0);
  const auto index = [&](int64_t row_offset, int64_t k_offset) {
    Linear row = Linear::of(x.row[side]);
    row.add(atom, atom_rows);
    row.constant += row_offset;
    if (beyond) {
      const int64_t last = row_runs && !narrow ? allocated - 8 : allocated - 1;
      const std::string name = out_.fresh("row_");
      out_.line("const int " + name + " = sd::min_int(" + row.text() + ", " + std::to_string(last) +
                ");");
      row = Linear::of(name);
    }
    Linear k = Linear::of(x.col[side]);
    k.add("step", 16);
    k.constant += k_offset;
    Coordinates at = x.outer;
    at[rows] = row;
    at[mma.k] = k;
    Linear result = tile_index(tile, at);
    const AxisId ring = plan(operand).ring;
    if (ring != kNone) result.add(stage_of_.at(ring), tile.elements());
    return result.text();
  };
  const std::string target = a_side ? (x.m_atoms > 1 ? "a[i]" : "a") : "b";
  const std::string base = tile_base(operand);
  if (a_side ? mma.a_interleaved : mma.b_interleaved) return load_columns(x, a_side, index(0, 0));
  if (!narrow && (k_runs || row_runs)) {
    out_.line("sd::ldmatrix_x" + std::string(a_side || pair ? "4" : "2") +
              (k_runs ? "" : "_trans") + "(" + target + ", " + base + " + " + index(0, 0) + ");");
    return;
  }
  const std::string type(cuda_type(mma.dtype));
  for (int word = 0; word < (a_side || pair ? 4 : 2); ++word) {
    const int64_t row = a_side ? word % 2 * 8 : word / 2 * 8;
    const int64_t k = a_side ? word / 2 * 8 : word % 2 * 8;
    const std::string low = index(row, k);
    std::string made;
    if (narrow && k_runs) {
      made = "widened_pair<" + type + ">(" + base + " + " + low + ")";
    } else if (narrow) {
      made = "widened<" + type + ">(" + base + "[" + low + "], " + base + "[" + index(row, k + 1) +
             "])";
    } else {
      made = "pack<" + type + ">(sd::to_float(" + base + "[" + low + "]), sd::to_float(" + base +
             "[" + index(row, k + 1) + "]))";
    }
    out_.line(target + "[" + std::to_string(word) + "] = sd::" + made + ";");
  }
}

// Of bytes that lie across K: of eight rows at a time a lane gets two neighbours of two rows, which
// are parts of two words.
void KernelEmitter::load_columns(const Fragments& x, bool a_side, const std::string& at) {
  const uint32_t operand = a_side ? x.mma->a : x.mma->b;
  const std::string target = a_side ? (x.m_atoms > 1 ? "a[i]" : "a") : "b";
  const std::string columns = out_.fresh("columns_");
  out_.line("uint32_t " + columns + "[2];");
  out_.line("sd::ldmatrix_x2_trans(" + columns + ", " + tile_base(operand) + " + " + at + ");");
  for (int half = 0; half < 2; ++half) {
    // Words of A: rows, then k; of a pair of B: k, then columns.
    const std::string first = std::to_string(a_side ? 2 * half : half);
    const std::string second = std::to_string(a_side ? 2 * half + 1 : half + 2);
    out_.line("sd::widened_columns<" + std::string(cuda_type(x.mma->dtype)) + ", " +
              std::string(cuda_type(computation(operand).dtype)) + ">(" + target + "[" + first +
              "], " + target + "[" + second + "], " + columns + "[" + std::to_string(half) + "]);");
  }
}

// Two neighbours along k in the registers of the computation that holds them.
std::string KernelEmitter::fragment_word(const Fragments& x, bool a_side, const std::string& atom,
                                         int word) const {
  const MmaPlan& mma = *x.mma;
  const uint32_t operand = a_side ? mma.a : mma.b;
  const AxisId rows = a_side ? mma.m : mma.n;
  const Layout& wanted = a_side ? mma.a_layout : mma.b_layout;
  std::vector<RegisterLoop> digits = x.digits;
  for (const Mode& m : wanted.modes) {
    if (m.holder != Holder::kReg) continue;
    if (m.axis == mma.k && m.stride == 8)
      digits.push_back({m, std::to_string(a_side ? word / 2 : word)});
    if (m.axis == mma.k && m.stride == 16) digits.push_back({m, "step"});
    if (m.axis != rows) continue;
    if (a_side && m.stride == 8) digits.push_back({m, std::to_string(word % 2)});
    if (m.stride == (a_side ? 16 : 8)) digits.push_back({m, atom});
  }
  const RegisterArray array = result_array(operand);
  return "sd::word(" + array.group(register_index(plan(operand).layout, digits)) + ")";
}

// Adds the sums of rows: products with ones, of which one column is looked at.
void KernelEmitter::row_sum(uint32_t id, const RegisterArray& into) {
  const RowSum& sum = *plan(id).row_sum;
  const RegisterArray from = result_array(sum.operand);
  std::vector<RegisterLoop> digits;  // of further rows
  int open = 0;
  for (const Mode& m : sum.a_layout.modes) {
    if (m.axis != sum.m || m.holder != Holder::kReg || m.stride < 16) continue;
    digits.push_back({m, out_.fresh("r")});
    out_.line("#pragma unroll");
    out_.open("for (int " + digits.back().var + " = 0; " + digits.back().var + " < " +
              std::to_string(m.extent) + "; ++" + digits.back().var + ")");
    ++open;
  }
  const std::string sums = out_.fresh("sums_");
  out_.line("float " + sums + "[4] = {};");
  out_.line("#pragma unroll");
  out_.open("for (int step = 0; step < " + std::to_string(extent(sum.k) / 16) + "; ++step)");
  std::vector<std::string> words;
  for (int word = 0; word < 4; ++word) {
    std::vector<RegisterLoop> at = digits;
    for (const Mode& m : sum.a_layout.modes) {
      if (m.holder != Holder::kReg) continue;
      if (m.axis == sum.k && m.stride == 8) at.push_back({m, std::to_string(word / 2)});
      if (m.axis == sum.k && m.stride == 16) at.push_back({m, "step"});
      if (m.axis == sum.m && m.stride == 8) at.push_back({m, std::to_string(word % 2)});
    }
    words.push_back("sd::word(" + from.group(register_index(plan(sum.operand).layout, at)) + ")");
  }
  out_.line("const uint32_t a[4] = {" + join(words, ", ") + "};");
  const std::string ones = from.dtype == DType::kF16 ? "0x3c003c00u" : "0x3f803f80u";
  out_.line("sd::mma_m16n8k16<" + std::string(cuda_type(from.dtype)) + ">(" + sums + ", a, " +
            ones + ", " + ones + ");");
  out_.close();
  for (int half = 0; half < 2; ++half) {
    std::vector<RegisterLoop> at = digits;
    for (const Mode& m : sum.a_layout.modes) {
      const bool own = m.axis == sum.m && m.holder == Holder::kReg && m.stride == 8;
      if (own) at.push_back({m, std::to_string(half)});
    }
    out_.line(into.element(register_index(plan(id).partial, at)) + " += " + sums + "[" +
              std::to_string(2 * half) + "];");
  }
  for (; open > 0; --open) out_.close();
}

}  // namespace sundog::codegen
