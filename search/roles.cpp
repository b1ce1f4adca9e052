// Cost, storage and warp layout all ask the same questions of a kernel: which computations load,
// which are matrix products and which of their axes belong to which side, what is read again and
// again.  The answers depend on the structure alone, so they are found once and used for every
// size.
#include "search/roles.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "core/check.h"
#include "search/term_copy.h"

namespace sundog::search {
namespace {

const ReduceTerm* root_reduction(const Kernel& kernel, const Computation& c) {
  return std::get_if<ReduceTerm>(&kernel.terms[c.value]);
}

// The two factors of a sum of products of computations.
std::optional<std::pair<LocalTerm, LocalTerm>> product_of_locals(const Kernel& kernel,
                                                                 const Computation& c) {
  const ReduceTerm* reduce = root_reduction(kernel, c);
  if (reduce == nullptr || reduce->kind != ReduceKind::kSum) return {};
  const auto* apply = std::get_if<ApplyTerm>(&kernel.terms[reduce->operand]);
  if (apply == nullptr || !std::holds_alternative<op::Mul>(apply->op)) return {};
  const auto* left = std::get_if<LocalTerm>(&kernel.terms[apply->operands[0]]);
  const auto* right = std::get_if<LocalTerm>(&kernel.terms[apply->operands[1]]);
  if (left == nullptr || right == nullptr || left->computation == right->computation) return {};
  return std::make_pair(*left, *right);
}

std::optional<Contraction> contraction_of(const Kernel& kernel, const Computation& c) {
  const auto locals = product_of_locals(kernel, c);
  if (!locals) return {};
  const auto& [left, right] = *locals;
  const AxisSet reduced = root_reduction(kernel, c)->axes;
  Contraction out;
  out.left = left.computation;
  out.right = right.computation;
  out.m = left.axes - right.axes;
  out.n = right.axes - left.axes;
  const AxisSet both = left.axes & right.axes;
  out.k = both & reduced;
  out.batch = both - reduced;
  if (out.k.empty() || (out.m.empty() && out.n.empty())) return {};
  if (!((out.m | out.n) & reduced).empty()) return {};
  return out;
}

void number_loops(const std::vector<Statement>& body, int inside, int& next,
                  std::vector<Role>& roles) {
  for (const Statement& s : body) {
    if (const auto* compute = std::get_if<Compute>(&s.node)) {
      roles[compute->computation].loop = inside;
    } else if (const auto* loop = std::get_if<Loop>(&s.node)) {
      const int number = next++;
      number_loops(loop->body, number, next, roles);
    }
  }
}

void collect_reads(const Kernel& kernel, Role& role, std::vector<uint32_t>& locals, TermId value) {
  const TermId roots[] = {value};
  for (TermId t : reachable(kernel.terms, roots)) {
    if (const auto* local = std::get_if<LocalTerm>(&kernel.terms[t])) {
      locals.push_back(local->computation);
    } else if (const auto* in = std::get_if<InputTerm>(&kernel.terms[t]); in && t != value) {
      role.inline_reads.push_back(*in);
    }
  }
}

// What each product is read by, what is made of that element by element, and so on.
void find_followers(std::vector<Role>& roles) {
  for (Role& from : roles) {
    if (!from.contraction) continue;
    std::vector<uint32_t> made = from.users;
    for (size_t i = 0; i < made.size(); ++i) {
      std::vector<uint32_t>& known = from.followers;
      if (std::find(known.begin(), known.end(), made[i]) != known.end()) continue;
      known.push_back(made[i]);
      const Role& role = roles[made[i]];
      if (role.is_reduction || !(role.tile == from.tile)) continue;
      made.insert(made.end(), role.users.begin(), role.users.end());
    }
  }
}

// The 16-bit type of what the kernel loads, if it is one.
DType common_dtype(const std::vector<Role>& roles) {
  DType common = DType::kF32;
  for (const Role& role : roles) {
    if (!role.is_load || bytes(role.operand_dtype) != 2) continue;
    if (common != DType::kF32 && common != role.operand_dtype) return DType::kF32;
    common = role.operand_dtype;
  }
  return common;
}

// What is narrowed to meet a load of that type.  For one of 8 bits any of 16 will do: the kernel's
// own, else the one whose range loses nothing.
DType to_meet(DType load, DType common) {
  if (bytes(load) != 1) return load;
  return common == DType::kF32 ? DType::kBF16 : common;
}

}  // namespace

AxisSet innermost(const TensorDecl& decl, const std::vector<IndexExpr>& index) {
  const std::vector<int64_t> strides = strides_of(decl);
  for (size_t d = index.size(); d-- > 0;) {
    if (strides[d] == 1) return index[d].axis_set();
  }
  return {};
}

int aligned_bytes(const TensorDecl& decl, const std::vector<IndexExpr>& index) {
  constexpr int64_t kMost = 16;
  const int64_t size = bytes(decl.dtype);
  const std::vector<int64_t> strides = strides_of(decl);
  int64_t aligned = std::gcd(std::gcd(kMost, int64_t{decl.alignment}), decl.offset * size);
  for (size_t d = 0; d < index.size(); ++d) {
    const bool moves = !index[d].axis_set().empty() && decl.extents[d] > 1;
    if (strides[d] != 1 && moves) aligned = std::gcd(aligned, strides[d] * size);
    aligned = std::gcd(aligned, strides[d] * index[d].constant * size);
  }
  return static_cast<int>(aligned);
}

std::vector<Role> roles_of(const MuGraph& graph, const Kernel& kernel,
                           const std::set<std::string>& wide) {
  const size_t count = kernel.computations.size();
  std::vector<Role> roles(count);
  const auto loops = enclosing_loops(kernel);
  int next_loop = 0;
  number_loops(kernel.body, -1, next_loop, roles);
  AxisSet outside;
  for (AxisId f : kernel.grid) outside.insert(f);
  for (uint32_t i = 0; i < count; ++i) {
    const Computation& c = kernel.computations[i];
    Role& role = roles[i];
    role.tile = AxisSet::of(c.axes);
    role.loops = AxisSet::of(loops[i]);
    role.contraction = contraction_of(kernel, c);
    if (const auto* in = std::get_if<InputTerm>(&kernel.terms[c.value])) {
      role.is_load = true;
      role.tensor = in->tensor;
      const TensorDecl& decl = graph.tensors[in->tensor].decl;
      role.row = innermost(decl, in->index);
      role.aligned = aligned_bytes(decl, in->index);
      if (bytes(decl.dtype) <= 2) role.operand_dtype = decl.dtype;
    } else if (const ReduceTerm* reduce = root_reduction(kernel, c)) {
      role.is_reduction = true;
      role.accumulated = reduce->axes & role.loops;
      role.reduced = reduce->axes - role.loops - outside;
    }
    role.work =
        role.contraction ? Work{1, 0} : work_of(kernel.terms, c.value, role.tile | role.reduced);
    std::vector<uint32_t> locals;
    collect_reads(kernel, role, locals, c.value);
    for (uint32_t l : locals) {
      roles[l].users.push_back(i);
      if (role.is_reduction)
        roles[l].reuse |= (role.tile | role.reduced) - AxisSet::of(kernel.computations[l].axes);
    }
    if (role.contraction) {
      roles[role.contraction->left].is_operand = true;
      roles[role.contraction->right].is_operand = true;
    }
  }
  find_followers(roles);
  const DType common = common_dtype(roles);
  // A computed operand can be narrowed to the type of the operand it meets, if its range allows.
  for (uint32_t i = 0; i < count; ++i) {
    if (!roles[i].contraction) continue;
    Role& l = roles[roles[i].contraction->left];
    Role& r = roles[roles[i].contraction->right];
    const auto narrows = [&](uint32_t operand, const Role& other) {
      return !roles[operand].is_load && !roles[operand].is_reduction &&
             (other.is_load || !other.is_reduction) &&
             !wide.contains(kernel.computations[operand].name);
    };
    const bool left = narrows(roles[i].contraction->left, r);
    const bool right = narrows(roles[i].contraction->right, l);
    if (left && right) {
      l.operand_dtype = r.operand_dtype = common;
    } else if (left && r.is_load) {
      l.operand_dtype = to_meet(r.operand_dtype, common);
    } else if (right && l.is_load) {
      r.operand_dtype = to_meet(l.operand_dtype, common);
    }
  }
  return roles;
}

namespace {

// Puts `statement` after the one that finishes `computation`: its own, or the outermost loop that
// it accumulates over.
bool insert_after(std::vector<Statement>& body, uint32_t computation, AxisSet accumulated,
                  const Statement& statement, const Kernel& kernel) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (const auto* compute = std::get_if<Compute>(&body[i].node)) {
      if (compute->computation != computation) continue;
      body.insert(body.begin() + static_cast<std::ptrdiff_t>(i) + 1, statement);
      return true;
    }
    auto* loop = std::get_if<Loop>(&body[i].node);
    if (loop == nullptr) continue;
    if (!insert_after(loop->body, computation, accumulated, statement, kernel)) continue;
    if (!accumulated.has(loop->factor)) return true;
    // It was put inside a loop that the operand accumulates over: move it out.
    std::erase_if(loop->body, [&](const Statement& s) { return s == statement; });
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(i) + 1, statement);
    return true;
  }
  return false;
}

}  // namespace

void separate_operands(Kernel& kernel) {
  const uint32_t count = static_cast<uint32_t>(kernel.computations.size());
  for (uint32_t i = 0; i < count; ++i) {
    const auto contraction = contraction_of(kernel, kernel.computations[i]);
    if (!contraction) continue;
    for (uint32_t operand : {contraction->left, contraction->right}) {
      const Computation source = kernel.computations[operand];
      if (root_reduction(kernel, source) == nullptr) continue;
      const AxisSet accumulated = accumulated_loops(kernel, operand);
      const uint32_t copy = static_cast<uint32_t>(kernel.computations.size());
      Computation c;
      c.name = source.name + "c";
      c.axes = source.axes;
      c.value = kernel.terms.local(operand, AxisSet::of(source.axes));
      kernel.computations.push_back(std::move(c));
      SUNDOG_CHECK(insert_after(kernel.body, operand, accumulated, {Compute{copy}}, kernel));
      read_instead(kernel, i, operand, copy);
    }
  }
}

}  // namespace sundog::search
