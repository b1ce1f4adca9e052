// Statements: loops, branches, barriers.
//
// A loop without a barrier inside is run by each thread at its own pace: its variable is a symbol
// of the thread, and one pass covers every pair of iterations.  A loop with a barrier is uniform:
// its variable is one symbol of the block, and a second pass with the next value meets what the
// first one left behind.  The ring of copies (see ring_loop) has rules of its own.  What may or may
// not happen is taken both ways: too many accesses pending, never too few.
#include "verify/kernel_walk.h"

#include <algorithm>

namespace sundog::verify {
namespace {

bool is_call(const EmittedStatement& s, const std::string& name) {
  return s.kind == EmittedStatement::kExpression && s.expressions[0].kind == Expression::kCall &&
         s.expressions[0].text == name;
}

void add_to(std::vector<MemoryAccess>& list, const std::vector<MemoryAccess>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

bool has_call(const EmittedStatement& s, const std::string& name) {
  if (is_call(s, name)) return true;
  return std::any_of(s.body.begin(), s.body.end(),
                     [&](const EmittedStatement& each) { return has_call(each, name); });
}

// The call of a loader in `if (...) load(...)`.
const Expression* guarded_call(const EmittedStatement& s) {
  if (s.kind != EmittedStatement::kIf || s.body.size() != 1 || s.body[0].body.size() != 1)
    return {};
  const EmittedStatement& inner = s.body[0].body[0];
  const bool call =
      inner.kind == EmittedStatement::kExpression && inner.expressions[0].kind == Expression::kCall;
  return call ? &inner.expressions[0] : nullptr;
}

}  // namespace

bool has_barrier(const EmittedStatement& s) { return has_call(s, "sd::sync_threads"); }

KernelWalk::KernelWalk(const EmittedFunction& function, const EmittedKernel& kernel)
    : function_(function), kernel_(kernel) {}

void KernelWalk::problem(const std::string& what) {
  if (std::find(problems.begin(), problems.end(), what) == problems.end()) {
    problems.push_back(what);
  }
}

void KernelWalk::run() {
  integers_["threadIdx"] = symbol(0, kernel_.threads - 1, false);
  integers_["blockIdx"] = symbol(0, std::max<int64_t>(kernel_.blocks, 1) - 1, true);
  if (function_.parameters.size() != kernel_.elements.size()) {
    return problem("the kernel has other parameters");
  }
  for (size_t i = 0; i < function_.parameters.size(); ++i) {
    const auto& parameter = function_.parameters[i];
    if (parameter.type.starts_with("sd::TensorMap<")) {
      add_map(parameter.name, parameter.type, kernel_.elements[i]);
      continue;
    }
    types_[parameter.name] = parameter.type;
    pointers_[parameter.name] = {parameter.name, 0, 1, kernel_.elements[i]};
  }
  if (function_.cluster != std::to_string(kernel_.cluster)) {
    fault("the clusters of the text are not those of its launch");
  }
  if (kernel_.blocks % kernel_.cluster != 0) fault("the grid is not made of clusters");
  for (const EmittedStatement& s : function_.body) statement(s);
  if (!cluster_reads_.empty()) fault("a block may end while others of its cluster read its memory");
  for (const auto& [parameter, stores] : stores_) {
    for (size_t i = 0; i < stores.size(); ++i) {
      for (size_t j = i; j < stores.size(); ++j) ask_race(stores[i], stores[j], false, true);
    }
  }
  ask_joined();
}

void KernelWalk::statements(const std::vector<EmittedStatement>& list, size_t from) {
  const auto integers = integers_;
  const auto truths = truths_;
  const auto pointers = pointers_;
  for (size_t i = from; i < list.size(); ++i) statement(list[i]);
  integers_ = integers;
  truths_ = truths;
  pointers_ = pointers;
}

void KernelWalk::statement(const EmittedStatement& s) {
  if (++depth_ > 100) problem("statements nested too deep");
  if (problems.empty()) {
    switch (s.kind) {
      case EmittedStatement::kBlock:
        statements(s.body);
        break;
      case EmittedStatement::kFor:
        loop(s);
        break;
      case EmittedStatement::kIf:
        branch(s);
        break;
      case EmittedStatement::kDeclaration:
        declaration(s);
        break;
      case EmittedStatement::kLambda:
        lambdas_[s.name] = {s.parameters, &s.body[0]};
        prologues_.erase(s.name);  // of another loop's
        break;
      case EmittedStatement::kExpression:
        visit(s.expressions[0]);
        break;
      case EmittedStatement::kContinue:
        problem("a loop that skips iterations");
        break;
    }
  }
  --depth_;
}

void KernelWalk::declaration(const EmittedStatement& s) {
  types_[s.name] = s.type;
  integers_.erase(s.name);
  truths_.erase(s.name);
  pointers_.erase(s.name);
  tiles_.erase(s.name);
  if (s.type == "float") changed_.insert(s.name);
  if (s.expressions.empty()) return;
  const Expression& value = s.expressions[0];
  if (s.type.ends_with("*")) {
    // T* const tile = reinterpret_cast<T*>(arena + bytes), and the arena itself.
    const bool arena = value.kind == Expression::kCall && value.text == "sd::shared_arena";
    if (arena) {
      pointers_[s.name] = {"shared", 0, 1, kernel_.shared_bytes};
      return;
    }
    const bool cast = value.kind == Expression::kCall && value.text == "reinterpret_cast" &&
                      value.parts.size() == 1;
    std::optional<Address> at = address_of(cast ? value.parts[0] : value);
    if (at && !cast) at->offset = times(at->offset, number(bytes_of(types_[at->name])));
    if (!at || pointers_[at->name].memory != "shared" || !at->offset.is_constant()) {
      return problem("the pointer '" + s.name + "'");
    }
    pointers_[s.name] = {"shared", pointers_[at->name].base + at->offset.low, 1,
                         kernel_.shared_bytes};
    types_[s.name] = s.type.substr(0, s.type.size() - 1);
    return;
  }
  if (s.type == "uint64_t") {
    const std::optional<MatrixTile> tile = matrix_tile(value);
    if (!tile) return problem("the tile '" + s.name + "'");
    tiles_[s.name] = *tile;
    return;
  }
  visit(value);
  // What starts as a literal is there to be changed.
  const bool literal =
      value.kind == Expression::kName && (value.text == "true" || value.text == "false");
  if (s.type == "bool" && !literal) {
    if (const auto holds = condition(value)) truths_[s.name] = *holds;
  }
  if (s.type == "int" || s.type == "int64_t" || s.type == "bool") {
    if (const std::optional<SymbolicInt> integer = this->integer(value)) {
      integers_[s.name] = *integer;
    } else if (s.type != "bool") {
      problem("the integer '" + s.name + "'");
    }
  }
}

void KernelWalk::branch(const EmittedStatement& s) {
  if (has_call(s, "sd::mbarrier_init")) return set_up_barriers(s);
  const Expression& asked = s.expressions[0];
  if (asked.kind == Expression::kCall && asked.text == "sd::sync_threads_any") {
    return last_block(s);
  }
  visit(s.expressions[0]);
  const std::optional<std::string> taken = condition(s.expressions[0]);
  const auto pending = pending_, copies = copies_;
  const bool barriers = has_barrier(s);
  if (barriers && !taken) return problem("a condition of a barrier");
  const Prologues before = prologues_;
  for (size_t i = 0; i < s.body.size(); ++i) {
    if (taken) conditions_.push_back(i == 0 ? *taken : "(not " + *taken + ")");
    ++branches_;
    statements(s.body[i].body);
    --branches_;
    if (taken) conditions_.pop_back();
    forget_prologues(before);
  }
  if (!barriers) return;  // barriers on one way only
  add_to(pending_, pending);
  add_to(copies_, copies);
}

// --- loops

void KernelWalk::loop(const EmittedStatement& s) {
  const Expression& until = s.expressions[1];
  const bool plain = until.kind == Expression::kBinary && until.text == "<" &&
                     until.parts[0].kind == Expression::kName && until.parts[0].text == s.name;
  const std::optional<SymbolicInt> begin = integer(s.expressions[0]);
  const std::optional<SymbolicInt> end = plain ? integer(until.parts[1]) : std::nullopt;
  if (!begin || !end) return problem("the range of a loop over '" + s.name + "'");
  const Expression& by = s.expressions[2];
  std::optional<SymbolicInt> step;
  if (by.kind == Expression::kUnary && by.text == "++") step = number(1);
  if (by.kind == Expression::kBinary && by.text == "+=") step = integer(by.parts[1]);
  if (!step || !step->is_constant() || step->low < 1) {
    return problem("the step of a loop over '" + s.name + "'");
  }
  if (begin->low >= end->high) return;
  const auto outer = integers_.find(s.name);
  const auto saved = outer == integers_.end() ? std::nullopt : std::optional(outer->second);
  if (has_stages(s)) {
    if (step->low != 1) problem("the step of a loop over '" + s.name + "'");
    stage_loop(s, *begin, *end);
  } else if (!has_barrier(s)) {
    note_prologue(s, *begin, *end);
    own_loop(s, *begin, *end, *step);
  } else if (step->low != 1) {
    problem("the step of a loop over '" + s.name + "'");
  } else if (const std::optional<Ring> ring = ring_of(s)) {
    ring_loop(s, *ring, *begin, *end);
  } else {
    uniform_loop(s, *begin, *end);
  }
  integers_.erase(s.name);
  if (saved) integers_[s.name] = *saved;
}

void KernelWalk::own_loop(const EmittedStatement& s, const SymbolicInt& begin,
                          const SymbolicInt& end, const SymbolicInt& step) {
  // v = begin + step * turn < end
  const SymbolicInt turn = symbol(0, (end.high - 1 - begin.low) / step.low, false);
  SymbolicInt v = plus(begin, times(turn, step));
  v.high = std::min(v.high, end.high - 1);
  conditions_.push_back(less(v, end));
  integers_[s.name] = v;
  const Prologues before = prologues_;
  statements(s.body[0].body);
  forget_prologues(before);
  conditions_.pop_back();
}

void KernelWalk::uniform_loop(const EmittedStatement& s, const SymbolicInt& begin,
                              const SymbolicInt& end) {
  run_alike("a loop with a barrier", {begin, end});
  const auto pending = pending_, copies = copies_;
  const Prologues prologues = prologues_;
  const SymbolicInt first = symbol(begin.low, end.high - 1, true);
  require(first, "(bvsle " + begin.text + " " + first.text + ")");
  require(first, less(first, end));
  integers_[s.name] = first;
  statements(s.body[0].body);
  const auto pending_once = pending_, copies_once = copies_;
  // Another iteration after it.
  const SymbolicInt second = symbol(begin.low, end.high - 1, true);
  const auto& body = s.body[0].body;
  const bool parted = std::any_of(body.begin(), body.end(), [](const EmittedStatement& each) {
    return is_call(each, "sd::sync_threads");
  });
  const SymbolicInt next = plus(first, number(1));
  require(second, parted ? "(= " + second.text + " " + next.text + ")" : less(first, second));
  require(second, less(second, end));
  integers_[s.name] = second;
  const bool repeating = repeating_;
  repeating_ = true;
  statements(body);
  repeating_ = repeating;
  forget_prologues(prologues);
  // It may have been the only one, or there is none.
  add_to(pending_, pending_once);
  add_to(copies_, copies_once);
  if (begin.high < end.low) return;
  add_to(pending_, pending);
  add_to(copies_, copies);
}

// `for (ahead = 0; ahead < A; ++ahead) { if (...) load(..., ahead); commit; }`
void KernelWalk::note_prologue(const EmittedStatement& s, const SymbolicInt& begin,
                               const SymbolicInt& end) {
  const auto& body = s.body[0].body;
  if (body.size() != 2 || !is_call(body[1], "sd::cp_async_commit")) return;
  const Expression* load = guarded_call(body[0]);
  if (load == nullptr || !lambdas_.contains(load->text)) return;
  if (!begin.is_constant() || begin.low != 0 || !end.is_constant()) return;
  const Expression& guard = body[0].expressions[0];
  const bool form = load->parts.size() == 2 && load->parts[1].kind == Expression::kName &&
                    load->parts[1].text == s.name && guard.kind == Expression::kBinary &&
                    guard.text == "<";
  if (!form || end.low < 1) return;
  const SymbolicInt which = symbol(0, end.low - 1, false);
  integers_[s.name] = which;
  const std::optional<SymbolicInt> tile = integer(load->parts[0]), asked = integer(guard.parts[0]),
                                   last = integer(guard.parts[1]);
  integers_.erase(s.name);
  if (!tile || !asked || !last) return;
  ask_same("the copies before a loop are of the tiles that there are", *asked, *tile);
  prologues_[load->text] = {end.low, which, *tile, *last};
}

std::optional<KernelWalk::Ring> KernelWalk::ring_of(const EmittedStatement& s) {
  const auto& body = s.body[0].body;
  // With products of warp groups there is a fence behind the wait.
  const size_t fence = body.size() > 4 && is_call(body[1], "sd::fence_async_proxy") ? 1 : 0;
  const bool head = body.size() > 3 + fence && is_call(body[0], "sd::cp_async_wait") &&
                    is_call(body[1 + fence], "sd::sync_threads") &&
                    is_call(body[3 + fence], "sd::cp_async_commit");
  const Expression* load = head ? guarded_call(body[2 + fence]) : nullptr;
  if (load == nullptr || !prologues_.contains(load->text)) return {};
  const int64_t ahead = prologues_[load->text].ahead;
  if (body[0].expressions[0].arguments != std::to_string(ahead - 1)) return {};
  const bool others = std::any_of(body.begin() + 4 + static_cast<std::ptrdiff_t>(fence), body.end(),
                                  [](const EmittedStatement& each) {
                                    return is_call(each, "sd::cp_async_commit") ||
                                           is_call(each, "sd::cp_async_wait");
                                  });
  if (others || ahead < 1 || load->parts.size() != 2) return {};
  return Ring{load->text, ahead, &body[2 + fence], fence == 1};
}

// Before iteration v: A + v - begin groups were committed, one a tile in order, empty ones at the
// end included; waiting until at most A - 1 are under way leaves tiles v + 1 ... v + A - 1.  The
// barrier makes tile v visible and ends what iteration v - 1 read.  So inside the iteration the
// copies of tiles u with v < u < v + A are under way, and that of v + A once it is issued; the
// stage of u is (u - begin) % (A + 1), in the prologue too.
void KernelWalk::ring_loop(const EmittedStatement& s, const Ring& ring, const SymbolicInt& begin,
                           const SymbolicInt& end) {
  run_alike("a loop with a barrier", {begin, end});
  const auto before = pending_;
  if (ring.fenced) {
    for (MemoryAccess& a : unseen_) a.fenced = true;
  }
  barrier();
  copies_.clear();
  const SymbolicInt v = symbol(begin.low, end.high - 1, true);
  require(v, "(bvsle " + begin.text + " " + v.text + ")");
  require(v, less(v, end));
  const SymbolicInt u = symbol(begin.low, end.high - 1, true);
  require(u, less(v, u));
  require(u, less(u, plus(v, number(ring.ahead))));
  require(u, less(u, end));
  const bool repeating = repeating_;
  repeating_ = true;  // the same copy as the one that is issued below, which is asked about
  const Expression& load = *guarded_call(*ring.issue);
  integers_[s.name] = minus(u, number(ring.ahead));  // the iteration that issued it
  std::vector<SymbolicInt> arguments;
  for (const Expression& part : load.parts) {
    if (const auto value = integer(part)) arguments.push_back(*value);
  }
  if (arguments.size() == 2) {
    // The text's stage at that iteration, which the prologue's must agree with.
    const SymbolicInt stage = rest(minus(u, begin), number(ring.ahead + 1));
    if (!ring.fenced) {  // what this iteration reads has been written by threads
      call_lambda(ring.loader, {v, rest(minus(v, begin), number(ring.ahead + 1))});
      copies_.clear();
    }
    const auto unseen = unseen_;
    call_lambda(ring.loader, {u, stage});
    if (ring.fenced) unseen_ = unseen;  // those are under way, which is worse
    integers_[s.name] = v;
    const std::optional<SymbolicInt> issued = integer(load.parts[1]);
    const SymbolicInt expected =
        rest(plus(minus(v, begin), number(ring.ahead)), number(ring.ahead + 1));
    const std::optional<SymbolicInt> tile = integer(load.parts[0]);
    if (!issued || !tile) return problem("a ring of copies");
    ask_same("the stage of a copy is that of its tile", *issued, expected);
    ask_same("a copy is of the tile that many iterations ahead", *tile,
             plus(v, number(ring.ahead)));
    ask_first(prologues_[ring.loader], begin, end);
    prologues_.erase(ring.loader);
  } else {
    problem("a ring of copies");
  }
  repeating_ = repeating;
  pending_.clear();
  integers_[s.name] = v;
  const auto unseen = unseen_;
  statements(s.body[0].body, ring.fenced ? 3 : 2);
  if (ring.fenced) unseen_ = unseen;  // each iteration begins with a fence
  copies_.clear();
  if (begin.high >= end.low) add_to(pending_, before);
}

void KernelWalk::forget_prologues(const Prologues& before) {
  std::erase_if(prologues_, [&](const auto& prologue) {
    const auto known = before.find(prologue.first);
    return known == before.end() || known->second.at.text != prologue.second.at.text;
  });
}

void KernelWalk::run_alike(const std::string& what, const std::vector<SymbolicInt>& integers) {
  const auto of_thread = [](const std::string& text) {
    return text.find("v!") != std::string::npos;
  };
  const bool apart = std::any_of(conditions_.begin(), conditions_.end(), of_thread) ||
                     std::any_of(integers.begin(), integers.end(),
                                 [&](const SymbolicInt& x) { return of_thread(x.text); });
  if (apart) fault(what + " that not all threads of a block run alike");
}

void KernelWalk::barrier() {
  run_alike("a barrier", {});
  pending_.clear();
  stored_ = published_ = false;
  std::erase_if(unseen_, [](const MemoryAccess& a) { return a.fenced; });
}

void KernelWalk::call_lambda(const std::string& name, const std::vector<SymbolicInt>& arguments) {
  const Lambda& lambda = lambdas_[name];
  if (lambda.body == nullptr || arguments.size() != lambda.parameters.size()) {
    return problem("a call of '" + name + "'");
  }
  const auto integers = integers_;
  for (size_t i = 0; i < arguments.size(); ++i) integers_[lambda.parameters[i]] = arguments[i];
  statement(*lambda.body);
  integers_ = integers;
}

}  // namespace sundog::verify
