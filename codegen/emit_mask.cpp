// Masks of tiles.  A causal mask cuts through few of the tiles that its loop has left; over all
// others its condition holds everywhere, which loop and grid indices tell.  Statements of tiles
// that masks may cut are written twice, with the masks and without.
#include <algorithm>

#include "codegen/emit_kernel.h"

namespace sundog::codegen {

std::optional<KernelEmitter::SettledMasks> KernelEmitter::settled_masks(uint32_t id, TermId root,
                                                                        AxisSet tile) const {
  if (scan_.computations[id].around.empty()) return std::nullopt;
  SettledMasks masks;
  std::vector<std::string> tests;
  const TermId roots[] = {root};
  for (TermId term : reachable(kernel_.terms, roots)) {
    const Term& t = kernel_.terms[term];
    // What is loaded under a condition is prepared under it.
    if (std::holds_alternative<InputTerm>(t)) return std::nullopt;
    const auto* local = std::get_if<LocalTerm>(&t);
    if (local != nullptr && !plan(local->computation).in_registers) return std::nullopt;
    const auto* select = std::get_if<SelectTerm>(&t);
    if (select == nullptr) continue;
    const Relation relation = select->condition.relation;
    if (relation != Relation::kLess && relation != Relation::kLessEqual) continue;
    Affine greatest = affine(graph_, kernel_, select->condition.expr);
    bool varies = false;
    for (AxisId f : tile) {
      int64_t& coefficient = greatest.coefficients[f];
      varies |= coefficient != 0;
      if (coefficient > 0) greatest.constant += coefficient * (extent(f) - 1);
      coefficient = 0;
    }
    const Linear e = to_linear({}, greatest);
    if (!varies || e.items.empty()) continue;
    tests.push_back(e.text() + " " + std::string(relation_text(relation)) + " 0");
    masks.branches[term] = select->then;
  }
  if (tests.empty()) return std::nullopt;
  masks.test = join(tests, " && ");
  return masks;
}

void KernelEmitter::with_settled_masks(
    uint32_t id, TermId root, AxisSet tile,
    const std::function<void(const std::map<TermId, TermId>&)>& emit) {
  const std::optional<SettledMasks> masks = settled_masks(id, root, tile);
  if (!masks) return emit({});
  const std::string whole = out_.fresh("whole_");
  out_.line("const bool " + whole + " = " + masks->test + ";");
  out_.open("if (" + whole + ")");
  emit(masks->branches);
  out_.close();
  out_.open("if (!" + whole + ")");
  emit({});
  out_.close();
}

}  // namespace sundog::codegen
