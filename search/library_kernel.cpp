// The price is a roofline with three lines.  Its constants were set from times of cuBLAS 13.1 on an
// H200 (2026-11-29, 16-bit operands, from a cold cache, in a CUDA graph): a product that streams
// weights reaches 0.67 to 0.87 of the best rate of memory (50 MB 15.5 us, 67 MB 18.2, batches of
// attention scores of 42 and 84 MB 14.0 and 26.0), a small one takes 0.7 us beyond launch and first
// bytes (2 MB 3.1 us), one of few blocks a step of 64 along k 0.09 us (two products of 256 x 64 x
// 4096 8.1 us), and 4096^3 is what the rates of the device row were measured with (f16: 209 us).
// Over ten such times it is off by 10 % in the mean, by 24 % at most
// (tests/search/library_kernel_test.cpp).  That smaller tiles reach less of the rate is a guess.
#include "search/library_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace sundog::search {
namespace {

constexpr double kCallUs = 0.7;        // beyond a launch and the first bytes
constexpr double kMemoryShare = 0.82;  // of the best rate
constexpr double kStep = 64, kStepUs = 0.09;
constexpr double kScalarShare = 0.8;  // of the rate of f32 multiply-adds
// Of the rate of the units, where rows are no multiples of 16 bytes and cuBLAS takes older kernels:
// with rows of 4098 and 4100 [1024, 4096] by [4096, d] takes 124 us, with 4096 46.5.
constexpr double kUnalignedShare = 0.44;
constexpr int64_t kAligned = 16;  // bytes

struct Tile {
  double m, n, share;  // of the rate of the units
};
constexpr std::array<Tile, 6> kTiles = {{{256, 128, 1.0},
                                         {128, 256, 1.0},
                                         {128, 128, 1.0},
                                         {128, 64, 0.95},
                                         {64, 128, 0.95},
                                         {64, 64, 0.9}}};

// The kernel without grid, loops and loads.
class LibraryWriter {
 public:
  LibraryWriter(const MuGraph& graph, const KernelPlan& plan)
      : graph_(graph), plan_(plan), from_(plan.kernel) {}

  // Nothing: it makes anything but one product of device tensors.
  std::optional<Kernel> run() {
    const std::vector<const Store*> stores = stores_of(from_);
    if (stores.size() != 1) return {};
    const Computation& made = from_.computations[stores[0]->computation];
    if (made.rescale != kNone || made.accumulate_into != kNone || !rest_is_loads(made)) return {};
    const auto* reduce = std::get_if<ReduceTerm>(&from_.terms[made.value]);
    if (reduce == nullptr || reduce->kind != ReduceKind::kSum) return {};
    const auto* product = std::get_if<ApplyTerm>(&from_.terms[reduce->operand]);
    if (product == nullptr || !std::holds_alternative<op::Mul>(product->op)) return {};
    const InputTerm* left = read_of(product->operands[0]);
    const InputTerm* right = read_of(product->operands[1]);
    if (left == nullptr || right == nullptr || !set_factors()) return {};
    const TermId a = to_.terms.input(left->tensor, mapped(left->index));
    const TermId b = to_.terms.input(right->tensor, mapped(right->index));
    const AxisSet over = mapped(reduce->axes);
    Computation c;
    c.name = made.name;
    c.value = to_.terms.reduce(ReduceKind::kSum, over, to_.terms.apply(op::Mul{}, {a, b}));
    for (AxisId f = 0; f < to_.factors.size(); ++f) {
      if (to_.terms.axes(c.value).has(f)) c.axes.push_back(f);
    }
    to_.name = from_.name;
    to_.kind = KernelKind::kLibraryGemm;
    to_.computations.push_back(std::move(c));
    to_.body = {{Compute{0}}, {Store{0, stores[0]->tensor, mapped(stores[0]->index)}}};
    return std::move(to_);
  }

 private:
  bool rest_is_loads(const Computation& made) const {
    return std::all_of(
        from_.computations.begin(), from_.computations.end(), [&](const Computation& c) {
          return &c == &made || std::holds_alternative<InputTerm>(from_.terms[c.value]);
        });
  }

  // The device tensor that an operand is, in place or by a load.
  const InputTerm* read_of(TermId term) const {
    if (const auto* local = std::get_if<LocalTerm>(&from_.terms[term])) {
      term = from_.computations[local->computation].value;
    }
    return std::get_if<InputTerm>(&from_.terms[term]);
  }

  // One factor an axis.  An axis that is cut in parts, or that carries them, is none of a
  // library's.
  bool set_factors() {
    for (const Split& s : plan_.splits) {
      if (s.part != kNoFactor || s.shared_part >= 0 || s.whole_part >= 0) return false;
    }
    std::vector<AxisId> factor_of(graph_.axes.size(), kNoFactor);
    for (const Factor& f : from_.factors) {
      AxisId& own = factor_of[f.axis];
      if (own == kNoFactor) {
        own = static_cast<AxisId>(to_.factors.size());
        const MuAxis& axis = graph_.axes[f.axis];
        to_.factors.push_back({axis.name, f.axis, axis.extent, 1});
      }
      new_id_.push_back(own);
      index_of_.push_back(IndexExpr::of(own));
    }
    for (const Split& s : plan_.splits) {  // in a plan all factors of an index have stride 1
      if (s.outer != kNoFactor) index_of_[s.outer] = IndexExpr::of_constant(0);
    }
    return true;
  }

  std::vector<IndexExpr> mapped(const std::vector<IndexExpr>& index) const {
    std::vector<IndexExpr> out;
    for (const IndexExpr& e : index) out.push_back(substitute(e, index_of_));
    return out;
  }
  AxisSet mapped(AxisSet factors) const {
    AxisSet out;
    for (AxisId f : factors) out.insert(new_id_[f]);
    return out;
  }

  const MuGraph& graph_;
  const KernelPlan& plan_;
  const Kernel& from_;
  Kernel to_;
  std::vector<AxisId> new_id_;
  std::vector<IndexExpr> index_of_;
};

}  // namespace

std::optional<Kernel> as_library(const MuGraph& graph, const KernelPlan& plan) {
  std::optional<Kernel> kernel = LibraryWriter(graph, plan).run();
  return kernel && library_gemm(graph, *kernel).ok() ? std::move(kernel) : std::nullopt;
}

void offer_library(const MuGraph& graph, const Machine& machine, KernelPlan& plan) {
  std::optional<Kernel> kernel = as_library(graph, plan);
  if (!kernel) return;
  const double us = library_price(*library_gemm(graph, *kernel), machine).us;
  plan.library = {*std::move(kernel), us};
}

KernelPrice library_price(const LibraryGemm& gemm, const Machine& machine) {
  const auto batch = static_cast<double>(gemm.batch), m = static_cast<double>(gemm.m);
  const auto n = static_cast<double>(gemm.n), k = static_cast<double>(gemm.k);
  const bool wide = gemm.operands == DType::kF32;
  const double rate = wide ? machine.alu_rate * kScalarShare : tensor_peak(machine);
  // A matrix that the whole batch shares is read once.
  const auto count = [&](const GemmMatrix& matrix) { return matrix.batch_stride == 0 ? 1 : batch; };
  const double read = (count(gemm.a) * m * k + count(gemm.b) * k * n) * bytes(gemm.operands);
  const double moved = read + batch * m * n * bytes(gemm.result);
  const auto aligned = [](const GemmMatrix& matrix, DType dtype) {
    const auto whole = [&](int64_t elements) { return elements * bytes(dtype) % kAligned == 0; };
    return whole(matrix.leading) && whole(matrix.batch_stride) && whole(matrix.offset);
  };
  const bool slow = !wide && !(aligned(gemm.a, gemm.operands) && aligned(gemm.b, gemm.operands) &&
                               aligned(gemm.c, gemm.result));
  KernelPrice price;
  price.fits = true;
  double busy = INFINITY;
  for (const Tile& tile : kTiles) {
    const double blocks = batch * std::ceil(m / tile.m) * std::ceil(n / tile.n);
    const double waves = std::ceil(blocks / machine.sms);
    const double share = slow ? tile.share * kUnalignedShare : tile.share;
    const double units = waves * tile.m * tile.n * k / (rate / machine.sms * share);
    busy = std::min(busy, std::max(units, waves * std::ceil(k / kStep) * kStepUs));
  }
  const double memory = moved / (hbm_peak(machine) * kMemoryShare);
  price.us = machine.launch_us + machine.fill_us + kCallUs + std::max(busy, memory);
  price.by_resource[0] = memory;
  price.by_resource[wide ? 4 : 3] = busy;
  return price;
}

}  // namespace sundog::search
