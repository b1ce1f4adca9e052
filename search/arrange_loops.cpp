#include "search/arrange_loops.h"

#include <algorithm>
#include <set>

#include "core/schedule/kernel_scan.h"
#include "search/term_copy.h"

namespace sundog::search {
namespace {

// Puts a statement in front of the first that computes one of `readers`.
bool insert_before(std::vector<Statement>& body, const std::vector<uint32_t>& readers,
                   const Statement& statement) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (auto* loop = std::get_if<Loop>(&body[i].node)) {
      if (insert_before(loop->body, readers, statement)) return true;
    }
    const auto* compute = std::get_if<Compute>(&body[i].node);
    if (compute == nullptr) continue;
    if (std::find(readers.begin(), readers.end(), compute->computation) == readers.end()) continue;
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(i), statement);
    return true;
  }
  return false;
}

std::string fresh_name(const Kernel& kernel, const std::string& of) {
  std::string name = of + "r";
  const auto taken = [&](const Computation& c) { return c.name == name; };
  while (std::any_of(kernel.computations.begin(), kernel.computations.end(), taken)) name += "r";
  return name;
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
    const auto copy = static_cast<uint32_t>(kernel.computations.size());
    Computation c;
    c.name = fresh_name(kernel, kernel.computations[i].name);
    c.axes = kernel.computations[i].axes;
    c.value = kernel.terms.local(i, AxisSet::of(c.axes));
    c.storage = Storage::kReg;
    c.dtype = kernel.computations[i].dtype;
    kernel.computations.push_back(std::move(c));
    insert_before(kernel.body, role.users, {Compute{copy}});
    for (uint32_t reader : role.users) read_instead(kernel, reader, i, copy);
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
