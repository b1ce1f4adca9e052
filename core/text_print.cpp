#include "core/text_print.h"

#include <algorithm>
#include <cstdlib>

#include "core/text_terms.h"

namespace sundog::text {
namespace {

// Ranks of the grammar: what stands inside a context of a higher rank needs parentheses.
enum Rank { kSumRank = 1, kProductRank = 2, kUnaryRank = 3, kPrimaryRank = 4 };

// A term this deep or, when shared, this large is named by a let.
constexpr int kMaxHeight = 60;
constexpr int kMinShared = 4;

std::string item_text(int64_t coefficient, const std::string& what) {
  return coefficient == 1 ? what : std::to_string(coefficient) + " * " + what;
}

// The summands of an index expression: sign apart, each text without sign.
std::vector<std::pair<bool, std::string>> summands(const IndexExpr& e, const Names& names) {
  std::vector<std::pair<bool, std::string>> parts;
  for (const auto& item : e.axes) {
    parts.push_back(
        {item.coefficient < 0, item_text(std::abs(item.coefficient), names.axis(item.axis))});
  }
  for (const auto& item : e.sizes) {
    parts.push_back({item.coefficient < 0, item_text(std::abs(item.coefficient),
                                                     "size(" + names.sized(item.axis) + ")")});
  }
  if (e.constant != 0) parts.push_back({e.constant < 0, std::to_string(std::abs(e.constant))});
  return parts;
}

std::string sum_text(const std::vector<std::pair<bool, std::string>>& parts, bool flip) {
  std::vector<std::pair<bool, std::string>> ordered = parts;
  for (auto& [negative, part] : ordered) negative = negative != flip;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string result;
  for (const auto& [negative, part] : ordered) {
    if (result.empty()) {
      result = (negative ? "-" : "") + part;
    } else {
      result += (negative ? " - " : " + ") + part;
    }
  }
  return result.empty() ? "0" : result;
}

std::string relation_text(Relation relation) {
  switch (relation) {
    case Relation::kLess:
      return " < ";
    case Relation::kLessEqual:
      return " <= ";
    case Relation::kEqual:
      return " == ";
    case Relation::kNotEqual:
      return " != ";
  }
  return {};
}

std::string attribute_text(const Number& number) { return number_text(number); }
std::string attribute_text(DType dtype) { return std::string(name(dtype)); }

// How an operator is written: its symbol, whether it stands between or before, and its attributes.
struct Written {
  op::Notation notation = op::Notation::kFunction;
  std::string symbol;
  std::vector<std::string> attributes;
};

Written written(const Op& op) {
  return std::visit(
      []<class O>(const O& o) {
        Written result;
        result.symbol = O::name;
        if constexpr (requires { O::notation; }) {
          result.notation = O::notation;
          result.symbol = O::symbol;
        }
        std::apply([&](const auto&... a) { (result.attributes.push_back(attribute_text(a)), ...); },
                   o.attributes());
        return result;
      },
      op);
}

}  // namespace

std::string number_text(const Number& number) {
  const std::string text = number.to_text();
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return text;
  return "ratio(" + text.substr(0, slash) + ", " + text.substr(slash + 1) + ")";
}

std::string index_text(const IndexExpr& e, const Names& names) {
  return sum_text(summands(e, names), false);
}

std::string condition_text(const IndexCondition& c, const Names& names) {
  std::vector<std::pair<bool, std::string>> left, right;
  for (const auto& part : summands(c.expr, names)) (part.first ? right : left).push_back(part);
  return sum_text(left, false) + relation_text(c.relation) + sum_text(right, true);
}

std::vector<std::string> TermPrinter::lets(TermId root) {
  const TermId roots[] = {root};
  const std::vector<TermId> order = reachable(terms_, roots);
  // What lies below a name is not printed, so it does not count.
  std::map<TermId, int> uses;
  std::set<TermId> printed = {root};
  for (size_t i = order.size(); i-- > 0;) {
    if (!printed.contains(order[i]) || (order[i] != root && named_.contains(order[i]))) continue;
    for (TermId operand : operands(terms_[order[i]])) {
      ++uses[operand];
      printed.insert(operand);
    }
  }
  std::map<TermId, int> height, weight;
  std::vector<std::string> lines;
  for (TermId id : order) {
    if (id != root && (!printed.contains(id) || named_.contains(id))) continue;
    int h = 1, w = 1;
    for (TermId operand : operands(terms_[id])) {
      const bool leaf = named_.contains(operand);
      h = std::max(h, 1 + (leaf ? 0 : height[operand]));
      w += leaf ? 1 : weight[operand];
    }
    height[id] = h;
    weight[id] = std::min(w, 1000);
    if (id == root || (h < kMaxHeight && (uses[id] < 2 || w < kMinShared))) continue;
    std::string name;
    do {
      name = "t" + std::to_string(++lets_);
    } while (names_.taken.contains(name));
    lines.push_back("let " + name + "[" + list(terms_.axes(id)) + "] = " + text(id));
    named_.emplace(id, name);
  }
  return lines;
}

std::string TermPrinter::list(const AxisSet& axes) const {
  std::string result;
  for (AxisId axis : axes) result += (result.empty() ? "" : ", ") + names_.axis(axis);
  return result;
}

std::string TermPrinter::text(TermId term, bool force) { return print(term, 0, force); }

std::string TermPrinter::short_text(TermId term, size_t limit, bool force) {
  written_ = 0;
  limit_ = limit;
  std::string result = print(term, 0, force);
  limit_ = ~size_t{0};
  return result;
}

std::string TermPrinter::print(TermId id, int context, bool force) {
  if (written_ > limit_) return "...";
  written_ += 4;  // every operator and leaf writes about that much
  if (const auto known = named_.find(id); known != named_.end() && !force) return known->second;
  const Term& term = terms_[id];
  if (const auto* input = std::get_if<InputTerm>(&term)) {
    const std::string tensor = names_.tensor(input->tensor);
    if (input->index == names_.default_index(input->tensor)) return tensor;
    std::string index;
    for (const IndexExpr& e : input->index) {
      index += (index.empty() ? "" : ", ") + index_text(e, names_);
    }
    return tensor + "[" + index + "]";
  }
  if (const auto* local = std::get_if<LocalTerm>(&term)) {
    return names_.computation(local->computation);
  }
  if (const auto* constant = std::get_if<ConstantTerm>(&term)) {
    const std::string number = number_text(constant->value);
    return number[0] == '-' && context > kUnaryRank ? "(" + number + ")" : number;
  }
  if (const auto* size = std::get_if<SizeTerm>(&term))
    return "size(" + names_.sized(size->axis) + ")";
  if (const auto* index = std::get_if<IndexTerm>(&term)) {
    return "index(" + index_text(index->index, names_) + ")";
  }
  if (const auto* apply_term = std::get_if<ApplyTerm>(&term)) return apply(*apply_term, context);
  if (const auto* reduce = std::get_if<ReduceTerm>(&term)) {
    return (reduce->kind == ReduceKind::kSum ? "sum[" : "max[") + list(reduce->axes) + "](" +
           argument(reduce->operand) + ")";
  }
  if (const auto* select = std::get_if<SelectTerm>(&term)) {
    return "select(" + condition_text(select->condition, names_) + ", " + argument(select->then) +
           ", " + argument(select->otherwise) + ")";
  }
  return compare(std::get<CompareTerm>(term));
}

std::string TermPrinter::apply(const ApplyTerm& t, int context) {
  const Written how = written(t.op);
  std::string result;
  int rank = kPrimaryRank;
  switch (how.notation) {
    case op::Notation::kFunction:
      result = how.symbol + "(";
      for (size_t i = 0; i < t.operands.size(); ++i) {
        result += (i > 0 ? ", " : "") + argument(t.operands[i]);
      }
      for (const std::string& attribute : how.attributes) result += ", " + attribute;
      result += ")";
      break;
    case op::Notation::kInfix:
      rank = how.symbol == "+" || how.symbol == "-" ? kSumRank : kProductRank;
      result = print(t.operands[0], rank, false);
      result += " " + how.symbol + " " + print(t.operands[1], rank + 1, false);
      break;
    case op::Notation::kPrefix: {
      rank = kUnaryRank;
      const std::string operand = print(t.operands[0], rank, false);
      const bool number = operand[0] >= '0' && operand[0] <= '9';  // -(3) is no literal
      result = how.symbol + (number || operand == "inf" ? "(" + operand + ")" : operand);
      break;
    }
  }
  return rank < context ? "(" + result + ")" : result;
}

std::string TermPrinter::compare(const CompareTerm& t) {
  std::string left = argument(t.left);
  const std::string right = argument(t.right);
  // Sides that would be read as indices say that they are values.
  Diagnostics scratch("");
  const std::string test = left + relation_text(t.relation) + right;
  Cursor cursor(test, scratch);
  const Expr condition = parse_argument(cursor);
  if (is_index_condition(condition, names_.is_index_name)) left = "value(" + left + ")";
  return "select(" + left + relation_text(t.relation) + right + ", " + argument(t.then) + ", " +
         argument(t.otherwise) + ")";
}

}  // namespace sundog::text
