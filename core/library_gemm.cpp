#include "core/library_gemm.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/schedule/access.h"

namespace sundog {
namespace {

constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max();

enum Matrix { kA, kB, kC };

// One or more axes that step through the matrices as one.
struct Run {
  int64_t extent = 1;
  std::array<int64_t, 3> stride{};  // in elements, of a, b and c
};

// Runs from outer to inner, joined where all strides of the outer one are those of the inner one
// taken to its end.  `by`: the matrix whose strides order them.
std::vector<Run> joined(std::vector<Run> runs, Matrix by) {
  std::stable_sort(runs.begin(), runs.end(),
                   [&](const Run& x, const Run& y) { return x.stride[by] > y.stride[by]; });
  std::vector<Run> result;
  for (const Run& run : runs) {
    bool follows = !result.empty();
    for (size_t i = 0; follows && i < run.stride.size(); ++i) {
      follows = result.back().stride[i] == run.stride[i] * run.extent;
    }
    if (!follows) {
      result.push_back(run);
      continue;
    }
    result.back().extent *= run.extent;
    result.back().stride = run.stride;
  }
  return result;
}

// Rows and columns of one matrix.  Nothing: neither is contiguous.
bool set_matrix(const Run& rows, const Run& columns, Matrix which, GemmMatrix& to) {
  const int64_t down = rows.stride[which], across = columns.stride[which];
  const auto leads = [&](int64_t step, const Run& along, const Run& inner) {
    to.leading = along.extent == 1 ? inner.extent : step;
    return to.leading >= inner.extent && to.leading <= kMostExtent;
  };
  to.transposed = false;
  if ((columns.extent == 1 || across == 1) && leads(down, rows, columns)) return true;
  to.transposed = true;
  return (rows.extent == 1 || down == 1) && leads(across, columns, rows);
}

class Reader {
 public:
  Reader(const MuGraph& graph, const Kernel& kernel) : graph_(graph), kernel_(kernel) {}

  Result<LibraryGemm> run() {
    SUNDOG_RETURN_IF_ERROR(check_statements());
    SUNDOG_RETURN_IF_ERROR(check_factors());
    const auto& store = std::get<Store>(kernel_.body[1].node);
    const auto& reduce = std::get<ReduceTerm>(kernel_.terms[kernel_.computations[0].value]);
    const auto& product = std::get<ApplyTerm>(kernel_.terms[reduce.operand]);
    const auto& a = std::get<InputTerm>(kernel_.terms[product.operands[0]]);
    const auto& b = std::get<InputTerm>(kernel_.terms[product.operands[1]]);
    SUNDOG_RETURN_IF_ERROR(access(kA, a.tensor, a.index, gemm_.a));
    SUNDOG_RETURN_IF_ERROR(access(kB, b.tensor, b.index, gemm_.b));
    SUNDOG_RETURN_IF_ERROR(access(kC, store.tensor, store.index, gemm_.c));
    SUNDOG_RETURN_IF_ERROR(check_types());
    SUNDOG_RETURN_IF_ERROR(sort_axes(reduce.axes));
    SUNDOG_RETURN_IF_ERROR(arrange());
    return gemm_;
  }

 private:
  std::string where() const { return "kernel '" + kernel_.name + "': it is the library's, and "; }
  const std::string& name_of(uint32_t tensor) const { return graph_.tensors[tensor].decl.name; }

  Status check_statements() const {
    const std::string form =
        "such a kernel is one sum of products of two device tensors, kept in reg f32, and its "
        "store";
    const auto refuse = [&](const std::string& what) { return bad_input(where() + what, form); };
    if (kernel_.via != Via::kKernel) return refuse("no blocks before it could run it");
    if (!kernel_.grid.empty()) return refuse("it has no grid of its own");
    if (kernel_.warps != Kernel().warps) return refuse("it has no warps of its own");
    if (kernel_.body.size() != 2 || kernel_.computations.size() != 1 ||
        !std::holds_alternative<Compute>(kernel_.body[0].node) ||
        !std::holds_alternative<Store>(kernel_.body[1].node)) {
      return refuse("it has more or other statements than one computation and its store");
    }
    const Computation& c = kernel_.computations[0];
    const auto* reduce = std::get_if<ReduceTerm>(&kernel_.terms[c.value]);
    const auto* product =
        reduce == nullptr ? nullptr : std::get_if<ApplyTerm>(&kernel_.terms[reduce->operand]);
    if (product == nullptr || reduce->kind != ReduceKind::kSum ||
        !std::holds_alternative<op::Mul>(product->op)) {
      return refuse("computation '" + c.name + "' is no sum of products");
    }
    for (const TermId side : product->operands) {
      if (std::holds_alternative<InputTerm>(kernel_.terms[side])) continue;
      return refuse("computation '" + c.name + "' multiplies what is no device tensor");
    }
    if (c.storage != Storage::kReg || c.dtype != DType::kF32 || c.mma != MmaAtom::kNoAtom ||
        !c.warps.empty() || c.rescale != kNone || c.accumulate_into != kNone) {
      return refuse("computation '" + c.name + "' has another place than reg f32");
    }
    return {};
  }

  Status check_factors() const {
    for (const Factor& factor : kernel_.factors) {
      const MuAxis& axis = graph_.axes[factor.axis];
      if (factor.extent != axis.extent || factor.stride != 1) {
        return bad_input(where() + "axis '" + axis.name + "' is split",
                         "the library cuts axes as it likes");
      }
      if (factor.extent < 1) {
        return unsupported(where() + "axis '" + axis.name + "' is empty");
      }
    }
    return {};
  }

  // Strides of a matrix along each factor, all inside of the tensor.
  Status access(Matrix which, uint32_t tensor, const std::vector<IndexExpr>& index,
                GemmMatrix& matrix) {
    if (!tensor_bounds(graph_, kernel_, tensor, index).empty()) {
      return bad_input(where() + "tensor '" + name_of(tensor) + "' is not read inside of it");
    }
    const Affine at = element_offset(graph_, kernel_, tensor, index);
    matrix.tensor = tensor;
    matrix.offset = at.constant;
    strides_[which] = at.coefficients;
    for (AxisId f = 0; f < kernel_.factors.size(); ++f) {
      if (at.coefficients[f] < 0) {
        return unsupported(where() + "tensor '" + name_of(tensor) + "' is read backwards along '" +
                           kernel_.factors[f].name + "'");
      }
    }
    for (const IndexExpr& e : index) runs_along_[which] |= e.axis_set();
    return {};
  }

  Status check_types() {
    const DType a = graph_.tensors[gemm_.a.tensor].decl.dtype;
    const DType b = graph_.tensors[gemm_.b.tensor].decl.dtype;
    const DType c = graph_.tensors[gemm_.c.tensor].decl.dtype;
    const bool known = a == DType::kF16 || a == DType::kBF16 || a == DType::kF32;
    if (!known || a != b || (c != a && c != DType::kF32)) {
      return unsupported(where() + std::string(name(a)) + " times " + std::string(name(b)) +
                             " stored as " + std::string(name(c)) + " is none of its products",
                         "operands of one type of f16, bf16 and f32, stored as that or f32");
    }
    gemm_.operands = a;
    gemm_.result = c;
    return {};
  }

  // Which of m, n, k and the batch each axis is.
  Status sort_axes(AxisSet reduced) {
    for (AxisId f = 0; f < kernel_.factors.size(); ++f) {
      if (kernel_.factors[f].extent == 1) continue;
      const bool in_a = runs_along_[kA].has(f), in_b = runs_along_[kB].has(f);
      const std::string axis = "axis '" + kernel_.factors[f].name + "' ";
      if (!in_a && !in_b) return bad_input(where() + axis + "is in neither operand");
      const Run run{kernel_.factors[f].extent, {strides_[kA][f], strides_[kB][f], strides_[kC][f]}};
      if (reduced.has(f)) {
        if (!in_a || !in_b)
          return bad_input(where() + axis + "is reduced and not in both operands");
        k_.push_back(run);
      } else if (in_a && in_b) {
        batch_.push_back(run);
      } else {
        (in_a ? m_ : n_).push_back(run);
      }
    }
    return {};
  }

  // Finds rows and columns under which all matrices are what the library takes.
  Status arrange() {
    m_ = joined(std::move(m_), kC);
    n_ = joined(std::move(n_), kC);
    k_ = joined(std::move(k_), kA);
    if (k_.size() > 1) {
      return unsupported(where() + "the axes that it reduces do not step through memory as one");
    }
    const Run k = k_.empty() ? Run() : k_[0];
    std::optional<LibraryGemm> best;
    for (size_t row = 0; row < std::max<size_t>(m_.size(), 1); ++row) {
      for (size_t column = 0; column < std::max<size_t>(n_.size(), 1); ++column) {
        const std::optional<LibraryGemm> found = with_rows(row, column, k);
        if (found && (!best || found->batch < best->batch)) best = found;
      }
    }
    if (best) gemm_ = *best;
    if (best) return {};
    return unsupported(where() +
                       "its tensors are not laid out as rows or columns of matrices of "
                       "one batch");
  }

  // All rows and columns but those are taken as a batch.  Nothing: the library has no such call.
  std::optional<LibraryGemm> with_rows(size_t row, size_t column, const Run& k) const {
    std::vector<Run> batch = batch_;
    const Run m = m_.empty() ? Run() : m_[row], n = n_.empty() ? Run() : n_[column];
    for (size_t i = 0; i < m_.size(); ++i) {
      if (i != row) batch.push_back(m_[i]);
    }
    for (size_t i = 0; i < n_.size(); ++i) {
      if (i != column) batch.push_back(n_[i]);
    }
    batch = joined(std::move(batch), kC);
    if (batch.size() > 1) return {};
    const Run all = batch.empty() ? Run() : batch[0];
    LibraryGemm found = gemm_;
    found.batch = all.extent;
    found.m = m.extent;
    found.n = n.extent;
    found.k = k.extent;
    if (std::max({found.batch, found.m, found.n, found.k}) > kMostExtent) return {};
    if (!set_matrix(m, k, kA, found.a) || !set_matrix(k, n, kB, found.b) ||
        !set_matrix(m, n, kC, found.c)) {
      return {};
    }
    found.a.batch_stride = all.stride[kA];
    found.b.batch_stride = all.stride[kB];
    found.c.batch_stride = all.stride[kC];
    // Of a result by columns its transpose is one by rows: c' = b' a'.
    if (found.c.transposed) {
      std::swap(found.a, found.b);
      std::swap(found.m, found.n);
      for (GemmMatrix* each : {&found.a, &found.b, &found.c}) each->transposed ^= true;
    }
    return found;
  }

  const MuGraph& graph_;
  const Kernel& kernel_;
  LibraryGemm gemm_;
  std::array<std::vector<int64_t>, 3> strides_;  // by matrix and factor
  std::array<AxisSet, 3> runs_along_;
  std::vector<Run> m_, n_, k_, batch_;
};

}  // namespace

Result<LibraryGemm> library_gemm(const MuGraph& graph, const Kernel& kernel) {
  return Reader(graph, kernel).run();
}

}  // namespace sundog
