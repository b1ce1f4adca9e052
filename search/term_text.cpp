// Coefficients are written as c: which number it is seldom matters to a reader of a trace, and the
// µGraph has it in full.
#include "search/term_text.h"

#include "core/join.h"

namespace sundog::search {
namespace {

std::string axis_name(const Bank& bank, AxisId a) {
  const BankAxis& axis = bank.axes()[a];
  const std::string& base = bank.program().axes[axis.base].name;
  switch (axis.level) {
    case Level::kWhole:
      return base;
    case Level::kPart:
      return base + ".s";
    case Level::kStep:
      return base + ".o";
    case Level::kTile:
      return base + ".i";
  }
  return base;
}

std::string opaque_name(const Bank& bank, const Node& node) {
  const Term& term = bank.opaque(node.opaque).term;
  if (std::holds_alternative<SelectTerm>(term)) return "select";
  if (std::holds_alternative<CompareTerm>(term)) return "compare";
  return std::visit([](const auto& op) { return std::string(op.name); },
                    std::get<ApplyTerm>(term).op);
}

}  // namespace

std::string term_name(const Bank& bank, const TermTable& table, int rank) {
  const RankedTerm& t = table.terms[static_cast<size_t>(rank)];
  const TermClass& c = bank[t.id];
  if (!c.name.empty()) return c.name;
  if (t.leaf == LeafKind::kInput) {
    const auto& in = std::get<InputTerm>(bank.program().terms[c.term]);
    return bank.program().inputs[in.tensor].name;
  }
  if (t.leaf == LeafKind::kConstant) return "c" + std::to_string(rank);
  for (size_t o = 0; o < table.outputs.size(); ++o) {
    if (table.outputs[o] == rank) return bank.program().outputs[o].tensor.name;
  }
  return "t" + std::to_string(rank);
}

std::string node_text(const Bank& bank, const TermTable& table, const RankedNode& node) {
  std::vector<std::string> names;
  for (int o : node.operands) names.push_back(term_name(bank, table, o));
  const std::string all = join(names, ", ");
  const Node& n = node.node;
  switch (n.kind) {
    case NodeKind::kProduct:
      return join(names, " * ");
    case NodeKind::kLinear:
      return "c * " + names[0] + " + c * " + names[1];
    case NodeKind::kScale:
      return "c * " + names[0];
    case NodeKind::kExp:
      return "exp(" + all + ")";
    case NodeKind::kReciprocal:
      return "1 / " + all;
    case NodeKind::kOpaque:
      return opaque_name(bank, n) + "(" + all + ")";
    case NodeKind::kSum:
      return "sum[" + axis_name(bank, n.axis) + "](" + all + ")";
    case NodeKind::kMax:
      return "max[" + axis_name(bank, n.axis) + "](" + all + ")";
    case NodeKind::kOnlineSum:
      return "online sum[" + axis_name(bank, n.axis) + "](" + all + ")";
  }
  return all;
}

std::vector<TermText> term_texts(const Bank& bank, const TermTable& table) {
  std::vector<TermText> texts;
  for (int rank = 0; rank < table.size(); ++rank) {
    const RankedTerm& t = table.terms[static_cast<size_t>(rank)];
    TermText text;
    text.name = term_name(bank, table, rank);
    text.storable = t.storable;
    std::vector<std::string> axes;
    for (AxisId a : t.axes) axes.push_back(axis_name(bank, a));
    text.axes = join(axes, ", ");
    for (const RankedNode& n : t.nodes) text.nodes.push_back(node_text(bank, table, n));
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace sundog::search
