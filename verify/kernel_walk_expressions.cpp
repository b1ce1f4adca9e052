// Expressions: integers as bit vectors with ranges, and the memory that an expression touches.
//
// Ranges settle most bounds and most pairs without a question.  An integer that may exceed 32 bits
// is a fault by itself unless the text computes in 64.
#include <algorithm>
#include <charconv>

#include "verify/kernel_walk.h"

namespace sundog::verify {
namespace {

int64_t up_to_mask(int64_t value) {
  int64_t mask = 1;
  while (mask <= value) mask *= 2;
  return mask - 1;
}

constexpr int64_t kWide = int64_t{1} << 50;

}  // namespace

int64_t bytes_of(const std::string& type) {
  if (type == "sd::f16" || type == "sd::bf16" || type == "uint16_t") return 2;
  if (type == "float" || type == "uint32_t" || type == "int") return 4;
  if (type == "double" || type == "int64_t" || type == "uint64_t") return 8;
  if (type.starts_with("sd::f8") || type == "sd::i8" || type == "int8_t") return 1;
  return 0;
}

// --- arithmetic

SymbolicInt KernelWalk::number(int64_t value) const {
  std::string text;
  if (value < 0) {
    text = "(bvneg (_ bv" + std::to_string(-value) + " " + std::to_string(width_) + "))";
  } else {
    text = "(_ bv" + std::to_string(value) + " " + std::to_string(width_) + ")";
  }
  return {text, value, value};
}

SymbolicInt KernelWalk::plus(const SymbolicInt& a, const SymbolicInt& b) const {
  if (a.is_constant() && b.is_constant()) return number(a.low + b.low);
  return {"(bvadd " + a.text + " " + b.text + ")", a.low + b.low, a.high + b.high};
}

SymbolicInt KernelWalk::minus(const SymbolicInt& a, const SymbolicInt& b) const {
  if (a.is_constant() && b.is_constant()) return number(a.low - b.low);
  return {"(bvsub " + a.text + " " + b.text + ")", a.low - b.high, a.high - b.low};
}

SymbolicInt KernelWalk::times(const SymbolicInt& a, const SymbolicInt& b) const {
  int64_t low = kWide, high = -kWide;
  for (const int64_t x : {a.low, a.high}) {
    for (const int64_t y : {b.low, b.high}) {
      int64_t product = 0;
      if (__builtin_mul_overflow(x, y, &product)) product = (x < 0) == (y < 0) ? kWide : -kWide;
      low = std::min(low, std::max(product, -kWide));
      high = std::max(high, std::min(product, kWide));
    }
  }
  if (a.is_constant() && b.is_constant() && low == high) return number(low);
  return {"(bvmul " + a.text + " " + b.text + ")", low, high};
}

SymbolicInt KernelWalk::rest(const SymbolicInt& a, const SymbolicInt& b) const {
  if (a.low >= 0 && a.high < b.low) return a;
  const std::string op = a.low >= 0 ? "(bvurem " : "(bvsrem ";
  return {op + a.text + " " + b.text + ")", a.low >= 0 ? 0 : 1 - b.high,
          std::min(std::max<int64_t>(a.high, 0), b.high - 1)};
}

std::string KernelWalk::less(const SymbolicInt& a, const SymbolicInt& b) const {
  return "(bvslt " + a.text + " " + b.text + ")";
}

SymbolicInt KernelWalk::symbol(int64_t low, int64_t high, bool uniform) {
  const std::string name = (uniform ? "u!" : "v!") + std::to_string(next_symbol_++) + "!";
  SymbolicInt result{name, low, high};
  require(result, "(bvsle " + number(low).text + " " + name + ")");
  require(result, "(bvsle " + name + " " + number(high).text + ")");
  return result;
}

void KernelWalk::require(const SymbolicInt& symbol, const std::string& fact) {
  facts_[symbol.text].push_back(fact);
}

std::optional<SymbolicInt> KernelWalk::binary_integer(const Expression& e) {
  const auto a = integer(e.parts[0]), b = integer(e.parts[1]);
  if (!a || !b) return {};
  if (e.text == "+") return plus(*a, *b);
  if (e.text == "-") return minus(*a, *b);
  if (e.text == "*") return times(*a, *b);
  if (e.text == "%" && b->low > 0) return rest(*a, *b);
  if (e.text == "/" && b->is_constant() && b->low > 0) {
    if (b->low == 1) return a;
    const std::string op = a->low >= 0 ? "(bvudiv " : "(bvsdiv ";
    return SymbolicInt{op + a->text + " " + b->text + ")", a->low / b->low, a->high / b->low};
  }
  if (a->low < 0 || b->low < 0) return {};
  if (e.text == ">>" && b->is_constant() && b->low < 31) {
    return SymbolicInt{"(bvlshr " + a->text + " " + b->text + ")", a->low >> b->low,
                       a->high >> b->low};
  }
  if (e.text == "<<" && b->is_constant() && b->low < 31) {
    return times(*a, number(int64_t{1} << b->low));
  }
  if (e.text == "&") {
    return SymbolicInt{"(bvand " + a->text + " " + b->text + ")", 0, std::min(a->high, b->high)};
  }
  if (e.text == "^" || e.text == "|") {
    const std::string op = e.text == "^" ? "(bvxor " : "(bvor ";
    return SymbolicInt{op + a->text + " " + b->text + ")", 0,
                       up_to_mask(std::max(a->high, b->high))};
  }
  return {};
}

std::optional<SymbolicInt> KernelWalk::integer(const Expression& e) {
  switch (e.kind) {
    case Expression::kNumber: {
      int64_t value = 0;
      const char* end = e.text.data() + e.text.size();
      const auto [at, error] = std::from_chars(e.text.data(), end, value);
      if (error != std::errc() || (at != end && *at != 'u' && *at != 'L' && *at != 'l')) return {};
      return number(value);
    }
    case Expression::kName: {
      const auto at = integers_.find(e.text);
      return at == integers_.end() ? std::nullopt : std::optional(at->second);
    }
    case Expression::kUnary:
      if (e.text == "-") {
        if (const auto x = integer(e.parts[0])) return minus(number(0), *x);
      }
      if (e.text == ".x" && e.parts[0].kind == Expression::kName) {
        const bool index = e.parts[0].text == "threadIdx" || e.parts[0].text == "blockIdx";
        if (index) return integers_[e.parts[0].text];
      }
      return {};
    case Expression::kBinary:
      return binary_integer(e);
    case Expression::kTernary: {
      const auto c = condition(e.parts[0]);
      const auto a = integer(e.parts[1]), b = integer(e.parts[2]);
      if (!c || !a || !b) return {};
      return SymbolicInt{"(ite " + *c + " " + a->text + " " + b->text + ")",
                         std::min(a->low, b->low), std::max(a->high, b->high)};
    }
    case Expression::kCall: {
      if (e.text == "static_cast" && e.parts.size() == 1 &&
          (e.arguments == "int" || e.arguments == "int64_t")) {
        return integer(e.parts[0]);
      }
      const bool least = e.text == "sd::min_int", most = e.text == "sd::max_int";
      if ((!least && !most) || e.parts.size() != 2) return {};
      const auto a = integer(e.parts[0]), b = integer(e.parts[1]);
      if (!a || !b) return {};
      const SymbolicInt &x = least ? *a : *b, &y = least ? *b : *a;
      return SymbolicInt{"(ite " + less(*a, *b) + " " + x.text + " " + y.text + ")",
                         least ? std::min(a->low, b->low) : std::max(a->low, b->low),
                         least ? std::min(a->high, b->high) : std::max(a->high, b->high)};
    }
    case Expression::kIndex:
      return {};
  }
  return {};
}

// As a truth value; nothing if it is about more than integers.
std::optional<std::string> KernelWalk::condition(const Expression& e) {
  if (e.kind == Expression::kName) {
    if (e.text == "true" || e.text == "false") return e.text;
    const auto known = truths_.find(e.text);
    return known == truths_.end() ? std::nullopt : std::optional(known->second);
  }
  if (e.kind == Expression::kUnary && e.text == "!") {
    const auto x = condition(e.parts[0]);
    return x ? std::optional("(not " + *x + ")") : std::nullopt;
  }
  if (e.kind != Expression::kBinary) return {};
  if (e.text == "&&" || e.text == "||") {
    const auto a = condition(e.parts[0]), b = condition(e.parts[1]);
    if (!a || !b) return {};
    return (e.text == "&&" ? "(and " : "(or ") + *a + " " + *b + ")";
  }
  const auto a = integer(e.parts[0]), b = integer(e.parts[1]);
  if (!a || !b) return {};
  if (e.text == "<") return less(*a, *b);
  if (e.text == ">") return less(*b, *a);
  if (e.text == "<=") return "(not " + less(*b, *a) + ")";
  if (e.text == ">=") return "(not " + less(*a, *b) + ")";
  if (e.text == "==") return "(= " + a->text + " " + b->text + ")";
  if (e.text == "!=") return "(not (= " + a->text + " " + b->text + "))";
  return {};
}

// --- memory

std::optional<KernelWalk::Address> KernelWalk::address_of(const Expression& e) {
  if (e.kind == Expression::kName && pointers_.contains(e.text)) return Address{e.text, number(0)};
  if (e.kind == Expression::kBinary && e.text == "-") {
    const std::optional<Address> at = address_of(e.parts[0]);
    const std::optional<SymbolicInt> less = integer(e.parts[1]);
    return at && less ? std::optional(Address{at->name, minus(at->offset, *less)}) : std::nullopt;
  }
  if (e.kind != Expression::kBinary || e.text != "+") return {};
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const std::optional<Address> at = address_of(e.parts[side]);
    if (!at) continue;
    const std::optional<SymbolicInt> more = integer(e.parts[1 - side]);
    if (!more) return {};
    return Address{at->name, plus(at->offset, *more)};
  }
  return {};
}

void KernelWalk::access(MemoryAccess::Kind kind, const Expression& e, int64_t bytes) {
  const std::optional<Address> at = address_of(e);
  if (!at) return problem("an address");
  const Pointer& pointer = pointers_[at->name];
  const int64_t element = bytes_of(types_[at->name]);
  if (element == 0) return problem("the type '" + types_[at->name] + "'");
  if (bytes == 0) bytes = element;
  MemoryAccess a;
  a.kind = kind;
  a.memory = pointer.memory;
  a.what = (kind == MemoryAccess::kRead ? "a read of " : "a write of ") + at->name;
  a.end = pointer.end;
  a.conditions = conditions_;
  if (pointer.memory == "shared") {
    a.address = plus(number(pointer.base), times(at->offset, number(element)));
    a.size = bytes;
  } else {
    if (bytes % element != 0) return problem("a vector of parts of elements");
    a.address = at->offset;
    a.size = bytes / element;
  }
  record(std::move(a));
}

void KernelWalk::record(MemoryAccess a) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  if (width_ == 32 && (a.address.high > kMost || a.address.low < -kMost)) {
    return problem(a.what + " at an index that may exceed 32 bits");
  }
  if (!repeating_) ask_bounds(a);
  if (a.memory != "shared") {
    a.joined = joining_;
    if (a.kind == MemoryAccess::kRead) {
      if (joining_ && !repeating_) joined_reads_.push_back(std::move(a));
    } else {
      stored_ = true;
      published_ = false;
      if (!repeating_) stores_[a.memory].push_back(std::move(a));
    }
    return;
  }
  record_shared(std::move(a));
}

// What it may meet: what is under way, and what others do before the next barrier.
void KernelWalk::record_shared(MemoryAccess a) {
  if (is_waiting_) return problem("shared memory before an iteration waits: " + a.what);
  const bool reads = a.kind == MemoryAccess::kRead || a.kind == MemoryAccess::kProduct;
  if (!reads && kernel_.cluster > 1) {
    for (const MemoryAccess& read : cluster_reads_) ask_cluster(a, read);
    cluster_writes_.push_back(a);
  }
  for (const auto* under_way : {&copies_, &bulk_}) {
    for (const MemoryAccess& copy : *under_way) ask_race(copy, a, true, false);
  }
  if (!reads) {
    for (const MemoryAccess& read : products_) ask_race(read, a, true, false);
    for (const MemoryAccess& made : barrier_memory_) ask_race(made, a, true, false);
  }
  if (a.kind == MemoryAccess::kProduct || a.kind == MemoryAccess::kBulk) {
    for (const MemoryAccess& write : unseen_) ask_race(write, a, true, false);
  }
  if (a.kind == MemoryAccess::kCopy || a.kind == MemoryAccess::kBulk) {
    for (const MemoryAccess& other : pending_) ask_race(other, a, false, false);
    ask_race(a, a, false, false);
    if (a.kind == MemoryAccess::kCopy) {
      unseen_.push_back(a);
      copies_.push_back(std::move(a));
    } else {
      a.group = bulk_of_;
      bulk_.push_back(std::move(a));
    }
    return;
  }
  if (a.kind == MemoryAccess::kWrite) unseen_.push_back(a);
  if (a.kind == MemoryAccess::kProduct) products_.push_back(a);
  pending_.push_back(a);  // with itself: two threads at one statement
  for (const MemoryAccess& other : std::vector<MemoryAccess>(pending_)) {
    const bool both = other.kind == MemoryAccess::kRead || other.kind == MemoryAccess::kProduct;
    if (!reads || !both) ask_race(other, a, false, false);
  }
}

int64_t KernelWalk::vector_bytes(const Expression& e) {
  const Expression& base = e.kind == Expression::kIndex ? e.parts[0] : e;
  if (base.kind != Expression::kName) return 0;
  const std::string& type = types_[base.text];
  const size_t open = type.find('<'), comma = type.find(',');
  if (!type.starts_with("sd::Vec<") || comma == std::string::npos) return 0;
  int64_t count = 0;
  std::from_chars(type.data() + comma + 1, type.data() + type.size(), count);
  return count * bytes_of(type.substr(open + 1, comma - open - 1));
}

// --- expressions

void KernelWalk::visit_under(const std::optional<std::string>& condition, const Expression& e) {
  if (condition) conditions_.push_back(*condition);
  visit(e);
  if (condition) conditions_.pop_back();
}

void KernelWalk::assignment(const Expression& e) {
  const Expression& to = e.parts[0];
  visit(e.parts[1]);
  const bool element = to.kind == Expression::kIndex && to.parts[0].kind == Expression::kName &&
                       pointers_.contains(to.parts[0].text);
  const bool pointed = to.kind == Expression::kUnary && to.text == "*";
  if (!element && !pointed) {
    if (to.kind == Expression::kName &&
        (integers_.contains(to.text) || truths_.contains(to.text))) {
      problem("the variable '" + to.text + "' that changes");
    }
    const Expression* base = &to;
    while (base->kind == Expression::kIndex) base = &base->parts[0];
    note_last(*base, e.parts[1]);
    visit(*base);
    changed_.insert(base->text);
    return;
  }
  if (e.text != "=") visit(to);
  const Expression at = element ? Expression{Expression::kBinary, "+", {}, to.parts} : to.parts[0];
  access(MemoryAccess::kWrite, at, 0);
}

// What a copy or load (to, from, test) reads, which is nothing where its test, if it has one,
// fails.
void KernelWalk::read_where(const Expression& call, int64_t bytes) {
  const auto present = call.parts.size() == 3 ? condition(call.parts[2]) : std::nullopt;
  if (present) conditions_.push_back(*present);
  access(MemoryAccess::kRead, call.parts[1], bytes);
  if (present) conditions_.pop_back();
}

// Whether the call is one of memory or synchronisation.
bool KernelWalk::call(const Expression& e) {
  const std::string& f = e.text;
  const size_t count = e.parts.size();
  if (f == "sd::sync_threads") {
    barrier();
  } else if (f == "sd::cluster_sync") {
    cluster_barrier();
  } else if (f == "sd::load_cluster" && count == 3) {
    read_of_cluster(e.parts[1], e.parts[2], vector_bytes(e.parts[0]));
  } else if (f == "sd::read_cluster" && count == 2) {
    read_of_cluster(e.parts[0], e.parts[1], 4);
  } else if (f == "sd::cp_async_wait") {
    if (e.arguments == "0") {  // the thread's own copies are writes of its own now
      for (MemoryAccess& copy : copies_) copy.kind = MemoryAccess::kWrite;
      pending_.insert(pending_.end(), copies_.begin(), copies_.end());
      copies_.clear();
    }
  } else if (f == "sd::cp_async_commit") {
    // groups are counted where it matters, in ring_loop
  } else if (f == "sd::cp_async" && (count == 2 || count == 3)) {
    int64_t bytes = 0;
    std::from_chars(e.arguments.data(), e.arguments.data() + e.arguments.size(), bytes);
    if (bytes == 0) problem("the size of a copy");
    read_where(e, bytes);
    access(MemoryAccess::kCopy, e.parts[0], bytes);
  } else if (f.starts_with("sd::ldmatrix_") && count == 2) {
    // Of the lanes, 8 a matrix give addresses that are looked at.
    const int64_t lanes = f.starts_with("sd::ldmatrix_x4")   ? 32
                          : f.starts_with("sd::ldmatrix_x2") ? 16
                                                             : 8;
    conditions_.push_back(less(rest(integers_["threadIdx"], number(32)), number(lanes)));
    access(MemoryAccess::kRead, e.parts[1], 16);
    conditions_.pop_back();
  } else if (f == "sd::widened_pair" && count == 1) {
    access(MemoryAccess::kRead, e.parts[0], 2);
  } else if (f == "sd::load_window" && count == 4) {
    // It reads no further than the tensor goes, if it is told so, and begins in the word of its
    // first element.
    const Expression first{Expression::kBinary, "+", {}, {e.parts[1], e.parts[2]}};
    const std::optional<Address> at = address_of(first);
    const std::optional<SymbolicInt> end = integer(e.parts[3]);
    if (!at || !end || !end->is_constant()) return problem("a window"), true;
    if (pointers_[at->name].memory == "shared") fault("a window into shared memory");
    if (end->low != pointers_[at->name].end) fault("a window that goes beyond " + at->name);
    access(MemoryAccess::kRead, first, 0);
  } else if (f.starts_with("sd::load_") && (count == 2 || count == 3)) {
    const int64_t bytes = vector_bytes(e.parts[0]);
    if (bytes == 0) problem("the size of a load");
    read_where(e, bytes);
  } else if (f.starts_with("sd::store_") && count == 2) {
    const int64_t bytes = vector_bytes(e.parts[1]);
    if (bytes == 0) problem("the size of a store");
    access(MemoryAccess::kWrite, e.parts[0], bytes);
  } else if (lambdas_.contains(f)) {
    std::vector<SymbolicInt> arguments;
    for (const Expression& part : e.parts) {
      if (const auto value = integer(part)) arguments.push_back(*value);
    }
    call_lambda(f, arguments);
  } else {
    return false;
  }
  return true;
}

void KernelWalk::visit(const Expression& e) {
  if (!problems.empty()) return;
  switch (e.kind) {
    case Expression::kNumber:
      return;
    case Expression::kName:
      if (running_.contains(e.text))
        fault(e.text + " is used before the product that makes it ends");
      return;
    case Expression::kCall:
      if (asynchronous_call(e) || call(e)) return;
      for (const Expression& part : e.parts) {
        // A pointer handed to what is not known could be used for anything.
        if (address_of(part)) problem("the call of '" + e.text + "'");
        visit(part);
      }
      return;
    case Expression::kIndex:
      if (e.parts[0].kind == Expression::kName && pointers_.contains(e.parts[0].text)) {
        access(MemoryAccess::kRead, {Expression::kBinary, "+", {}, e.parts}, 0);
      }
      visit(e.parts[0]);
      visit(e.parts[1]);
      return;
    case Expression::kUnary:
      if (e.text == "*") return access(MemoryAccess::kRead, e.parts[0], 0);
      return visit(e.parts[0]);
    case Expression::kBinary:
      if (e.text.back() == '=' && e.text != "==" && e.text != "<=" && e.text != ">=" &&
          e.text != "!=") {
        return assignment(e);
      }
      visit(e.parts[0]);
      if (e.text == "&&") return visit_under(condition(e.parts[0]), e.parts[1]);
      return visit(e.parts[1]);
    case Expression::kTernary: {
      visit(e.parts[0]);
      const auto c = condition(e.parts[0]);
      visit_under(c, e.parts[1]);
      visit_under(c ? std::optional("(not " + *c + ")") : std::nullopt, e.parts[2]);
      return;
    }
  }
}

}  // namespace sundog::verify
