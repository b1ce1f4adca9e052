#include "search/arrange_loops.h"

#include <algorithm>
#include <set>

#include "core/schedule/kernel_scan.h"
#include "search/term_copy.h"

namespace sundog::search {
namespace {

bool computes(const Statement& s, const std::vector<uint32_t>& ids) {
  const auto* compute = std::get_if<Compute>(&s.node);
  return compute != nullptr && std::find(ids.begin(), ids.end(), compute->computation) != ids.end();
}

// Puts a statement in front of the first that computes one of `readers`.
bool insert_before(std::vector<Statement>& body, const std::vector<uint32_t>& readers,
                   const Statement& statement) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (auto* loop = std::get_if<Loop>(&body[i].node)) {
      if (insert_before(loop->body, readers, statement)) return true;
    }
    if (!computes(body[i], readers)) continue;
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(i), statement);
    return true;
  }
  return false;
}

std::string fresh_name(const Kernel& kernel, const std::string& of, const std::string& suffix) {
  std::string name = of + suffix;
  const auto taken = [&](const Computation& c) { return c.name == name; };
  while (std::any_of(kernel.computations.begin(), kernel.computations.end(), taken)) name += suffix;
  return name;
}

// A copy of `of` in registers.
uint32_t add_copy(Kernel& kernel, uint32_t of, const std::string& suffix) {
  Computation c;
  c.name = fresh_name(kernel, kernel.computations[of].name, suffix);
  c.axes = kernel.computations[of].axes;
  c.value = kernel.terms.local(of, AxisSet::of(c.axes));
  c.storage = Storage::kReg;
  c.dtype = kernel.computations[of].dtype;
  kernel.computations.push_back(std::move(c));
  return static_cast<uint32_t>(kernel.computations.size() - 1);
}

// Moves the statements of `ids` that follow the one of `first` in its body in front of it.
void move_before(std::vector<Statement>& body, const std::vector<uint32_t>& ids, uint32_t first) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (auto* loop = std::get_if<Loop>(&body[i].node)) move_before(loop->body, ids, first);
    if (!computes(body[i], {first})) continue;
    std::stable_partition(body.begin() + static_cast<std::ptrdiff_t>(i), body.end(),
                          [&](const Statement& s) { return computes(s, ids); });
    return;
  }
}

bool is_product_of_warpgroup(const Kernel& kernel, const Statement& s) {
  const auto* compute = std::get_if<Compute>(&s.node);
  return compute != nullptr && kernel.computations[compute->computation].mma == MmaAtom::kM64N8K16;
}

}  // namespace

void keep_in_registers(const std::vector<Role>& roles, Kernel& kernel) {
  for (uint32_t i = 0; i < roles.size(); ++i) {
    const Role& role = roles[i];
    const bool staged = role.is_load && kernel.computations[i].storage == Storage::kShared &&
                        !role.loops.empty() && role.reuse.empty();
    if (!staged || role.is_operand || role.users.size() < 2) continue;
    const uint32_t copy = add_copy(kernel, i, "r");
    insert_before(kernel.body, role.users, {Compute{copy}});
    for (uint32_t reader : role.users) read_instead(kernel, reader, i, copy);
  }
}

void separate_sums(const std::vector<Role>& roles, Kernel& kernel) {
  for (uint32_t product = 0; product < roles.size(); ++product) {
    if (kernel.computations[product].mma != MmaAtom::kM64N8K16) continue;
    const Contraction& contraction = *roles[product].contraction;
    for (uint32_t operand : {contraction.left, contraction.right}) {
      const Role& role = roles[operand];
      if (role.is_load || role.is_reduction) continue;
      if (kernel.computations[operand].storage != Storage::kReg) continue;
      std::vector<uint32_t> sums;
      for (uint32_t user : role.users) {
        if (roles[user].is_reduction && !roles[user].contraction) sums.push_back(user);
      }
      if (sums.empty()) continue;
      const uint32_t copy = add_copy(kernel, operand, "c");
      kernel.computations[operand].dtype = DType::kF32;
      insert_before(kernel.body, {product}, {Compute{copy}});
      read_instead(kernel, product, operand, copy);
      move_before(kernel.body, sums, copy);
    }
  }
}

void overlap_products(Kernel& kernel) {
  const std::vector<std::vector<uint32_t>> reads = scan(kernel).locals;
  const auto arrange = [&](auto& self, std::vector<Statement>& body) -> void {
    for (size_t i = 0; i < body.size(); ++i) {
      if (auto* loop = std::get_if<Loop>(&body[i].node)) self(self, loop->body);
      if (!is_product_of_warpgroup(kernel, body[i])) continue;
      const auto begin = body.begin() + static_cast<std::ptrdiff_t>(i) + 1;
      const auto end = std::find_if(begin, body.end(), [&](const Statement& s) {
        return !std::holds_alternative<Compute>(s.node) || is_product_of_warpgroup(kernel, s);
      });
      std::set<uint32_t> behind = {std::get<Compute>(body[i].node).computation};
      std::stable_partition(begin, end, [&](const Statement& s) {
        const uint32_t id = std::get<Compute>(s.node).computation;
        const Computation& c = kernel.computations[id];
        const bool depends = behind.contains(c.rescale) || behind.contains(c.accumulate_into) ||
                             std::any_of(reads[id].begin(), reads[id].end(),
                                         [&](uint32_t local) { return behind.contains(local); });
        if (!depends) return true;
        behind.insert(id);
        if (c.accumulate_into != kNone) behind.insert(c.accumulate_into);
        return false;
      });
    }
  };
  arrange(arrange, kernel.body);
}

}  // namespace sundog::search
