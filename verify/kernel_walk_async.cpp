// What happens behind the threads' backs: bulk copies that count their bytes in at barriers in
// shared memory.
//
// A loop over stages that are filled so is known by its form (see StageLoop); each part of the form
// is looked for in the text, and one that is missing or has another number is a fault.  Why the
// form is right, for tiles u = 0, 1, ... of stages u % S, with copies A < S tiles ahead:
//
//   - "full" of a stage has one arrival a tile, that of the thread that starts the copies, and
//     expects exactly their bytes: its phase u / S is complete when tile u has come.  Iteration u
//     waits for it, by parity; it cannot be two phases ahead, since tile u + S is not started
//     before all warps have given stage u % S back.
//   - "empty" has one arrival of each warp an iteration, behind all that the warp reads of the
//     stage.  Tile u is started behind phase u / S - 1 of it: tile u - S was read by all.  (The
//     first S tiles wait for the phase before the first, which counts as complete.)
//   - So while a warp is in iteration v, tiles v + 1 ... v + S - 1 may be under way and no others:
//     tile v + S waits for this warp.  A copy of those, and whatever the iteration touches, must
//     not meet: that is asked, with the stage of each from the text.
//   - With A < S nobody waits for itself: tile v + A needs the arrivals of iteration v + A - S < v.
//   - The last tile started is that of the last iteration, so nothing is under way behind the loop.
//
// Warps drift apart inside, so two threads may be in any two iterations, unless there is a barrier
// of the block in the body.
#include <algorithm>

#include "verify/kernel_walk.h"
#include "verify/kernel_walk_syntax.h"

namespace sundog::verify {
namespace {

using Kind = EmittedStatement;

// The statement as a call of that name, with so many arguments at least.
const Expression* call_in(const Kind& s, const std::string& name) {
  const size_t arguments = name == "sd::mbarrier_wait" || name == "sd::mbarrier_expect" ? 2
                           : name == "sd::mbarrier_arrive"                              ? 1
                                                                                        : 0;
  const bool is = s.kind == Kind::kExpression && s.expressions[0].kind == Expression::kCall &&
                  s.expressions[0].text == name && s.expressions[0].parts.size() >= arguments;
  return is ? &s.expressions[0] : nullptr;
}

// The first call of that name in the statement or one inside of it.
const Expression* find_call(const Kind& s, const std::string& name) {
  if (const Expression* call = call_in(s, name)) return call;
  for (const Kind& each : s.body) {
    if (const Expression* call = find_call(each, name)) return call;
  }
  return nullptr;
}

bool mentions(const Expression& e, const std::string& name) {
  if (e.kind == Expression::kName && e.text == name) return true;
  return std::any_of(e.parts.begin(), e.parts.end(),
                     [&](const Expression& part) { return mentions(part, name); });
}

bool mentions(const Kind& s, const std::string& name) {
  return std::any_of(s.expressions.begin(), s.expressions.end(),
                     [&](const Expression& e) { return mentions(e, name); }) ||
         std::any_of(s.body.begin(), s.body.end(),
                     [&](const Kind& each) { return mentions(each, name); });
}

// barrier + index
struct BarrierAt {
  std::string barrier, index;
};
std::optional<BarrierAt> barrier_at(const Expression& e) {
  if (!is_binary(e, "+") || e.parts[0].kind != Expression::kName) return {};
  if (e.parts[1].kind != Expression::kName) return {};
  return BarrierAt{e.parts[0].text, e.parts[1].text};
}

// `if (++x == S) { x = 0; phase ^= 1; }`
struct StageStep {
  std::string variable, phase;
  int64_t stages = 0;
};
std::optional<StageStep> stage_step(const Kind& s) {
  if (s.kind != Kind::kIf || s.body.size() != 1 || s.body[0].body.size() != 2) return {};
  const Expression& e = s.expressions[0];
  if (!is_binary(e, "==") || e.parts[0].kind != Expression::kUnary || e.parts[0].text != "++") {
    return {};
  }
  const std::optional<int64_t> stages = literal(e.parts[1]);
  const Kind &zero = s.body[0].body[0], &flip = s.body[0].body[1];
  if (zero.kind != Kind::kExpression || flip.kind != Kind::kExpression || !stages) return {};
  const Expression &z = zero.expressions[0], &f = flip.expressions[0];
  const std::string& variable = e.parts[0].parts[0].text;
  const bool resets =
      is_binary(z, "=") && is_name(z.parts[0], variable) && literal(z.parts[1]) == 0;
  const bool flips = is_binary(f, "^=") && literal(f.parts[1]) == 1;
  if (!resets || !flips) return {};
  return StageStep{variable, f.parts[0].text, *stages};
}

}  // namespace

bool has_stages(const EmittedStatement& s) {
  return find_call(s, "sd::mbarrier_wait") != nullptr ||
         find_call(s, "sd::mbarrier_arrive") != nullptr ||
         find_call(s, "sd::mbarrier_expect") != nullptr;
}

void KernelWalk::fault(const std::string& what) {
  if (std::find(faults.begin(), faults.end(), what) == faults.end()) faults.push_back(what);
}

// --- tensor maps and copies

// `sd::TensorMap<type, offset, swizzle, sd::Dim<extent, stride, box>, ...>` of a tensor with that
// many elements.
void KernelWalk::add_map(const std::string& name, const std::string& type, int64_t elements) {
  const size_t open = type.find('<'), comma = type.find(',');
  if (open == std::string::npos || comma == std::string::npos)
    return problem("the map '" + name + "'");
  TensorMap map;
  map.element = bytes_of(type.substr(open + 1, comma - open - 1));
  const std::vector<int64_t> numbers = integers_of(std::string_view(type).substr(comma));
  if (map.element == 0 || numbers.size() < 5 || (numbers.size() - 2) % 3 != 0) {
    return problem("the map '" + name + "'");
  }
  int64_t last = numbers[0];
  map.bytes = map.element;
  for (size_t i = 2; i < numbers.size(); i += 3) {
    last += (numbers[i] - 1) * numbers[i + 1];
    map.bytes *= numbers[i + 2];
  }
  if (last >= elements) fault("the map " + name + " is of more than its tensor");
  questions.push_back({"the map " + name + " stays inside its tensor", {}, false});
  maps_[name] = map;
}

// bulk_copy(dst, map, full + stage, coordinates...)
void KernelWalk::bulk_copy(const Expression& e) {
  const auto map = e.parts.size() > 3 ? maps_.find(e.parts[1].text) : maps_.end();
  if (map == maps_.end()) return problem("a bulk copy");
  access(MemoryAccess::kBulk, e.parts[0], map->second.bytes);
}

// Bytes of all copies in a list of statements, each at `barrier`; nothing if that is not known.
std::optional<int64_t> KernelWalk::bytes_of_copies(const std::vector<EmittedStatement>& list,
                                                   const Expression& barrier) {
  int64_t bytes = 0;
  for (const EmittedStatement& s : list) {
    if (const Expression* copy = call_in(s, "sd::bulk_copy")) {
      const auto map = copy->parts.size() > 3 ? maps_.find(copy->parts[1].text) : maps_.end();
      if (map == maps_.end() || !same(copy->parts[2], barrier)) return {};
      bytes += map->second.bytes;
    } else if (find_call(s, "sd::bulk_copy") != nullptr) {
      const bool loop = s.kind == Kind::kFor;
      if (!loop && s.kind != Kind::kBlock) return {};
      const auto inside = bytes_of_copies(loop ? s.body[0].body : s.body, barrier);
      int64_t turns = 1;
      if (loop) {
        const Expression& until = s.expressions[1];
        const auto begin = literal(s.expressions[0]);
        const auto end = is_binary(until, "<") ? literal(until.parts[1]) : std::nullopt;
        if (begin != 0 || !end || s.expressions[2].text != "++") return {};
        turns = *end;
      }
      if (!inside) return {};
      bytes += turns * *inside;
    }
  }
  return bytes;
}

// --- setting up

// `if (tid == 0) { init ...; fence; { for (ahead ...) if (...) { expect; copies } } }`
void KernelWalk::set_up_barriers(const EmittedStatement& s) {
  const Expression& who = s.expressions[0];
  if (!is_binary(who, "==") || !is_name(who.parts[0], "tid") || literal(who.parts[1]) != 0) {
    return problem("barriers that are not made by one thread");
  }
  if (branches_ > 0) return problem("barriers that are made under a condition");
  const auto integers = integers_;
  if (const auto taken = condition(who)) conditions_.push_back(*taken);
  bool fenced = false;
  for (const EmittedStatement& each : s.body[0].body) {
    if (find_call(each, "sd::mbarrier_init") != nullptr) {
      init_barriers(each);
      fenced = false;
    } else if (call_in(each, "sd::mbarrier_init_fence") != nullptr) {
      fenced = true;
    } else if (find_call(each, "sd::mbarrier_expect") != nullptr) {
      if (!fenced) fault("copies start before their barriers are seen: no mbarrier_init_fence");
      first_copies(each);
    } else {
      statement(each);
    }
  }
  if (!fenced) fault("barriers that are made without mbarrier_init_fence");
  conditions_.pop_back();
  integers_ = integers;
}

void KernelWalk::init_barriers(const EmittedStatement& s) {
  const Expression* until = s.kind == Kind::kFor ? &s.expressions[1] : nullptr;
  const auto count =
      until != nullptr && is_binary(*until, "<") ? literal(until->parts[1]) : std::nullopt;
  if (!count || literal(s.expressions[0]) != 0) return problem("how many barriers there are");
  for (const EmittedStatement& each : s.body[0].body) {
    const Expression* call = call_in(each, "sd::mbarrier_init");
    const auto at =
        call != nullptr && call->parts.size() == 2 ? barrier_at(call->parts[0]) : std::nullopt;
    const auto arrivals = at ? literal(call->parts[1]) : std::nullopt;
    if (!arrivals || at->index != s.name || !pointers_.contains(at->barrier)) {
      return problem("the making of a barrier");
    }
    barriers_[at->barrier] = {*count, *arrivals};
    integers_[s.name] = symbol(0, *count - 1, false);
    access(MemoryAccess::kWrite, call->parts[0], 8);
    integers_.erase(s.name);
    MemoryAccess all;
    all.what = "a read of " + at->barrier;
    all.address = number(pointers_[at->barrier].base);
    all.size = 8 * *count;
    barrier_memory_.push_back(std::move(all));
  }
}

// The copies of the first tiles of a loop; they are under way until the loop.
void KernelWalk::first_copies(const EmittedStatement& s) {
  if (s.kind == Kind::kBlock) {
    const auto integers = integers_;
    for (const EmittedStatement& each : s.body) {
      if (find_call(each, "sd::mbarrier_expect") != nullptr) {
        first_copies(each);
      } else {
        statement(each);
      }
    }
    integers_ = integers;
    return;
  }
  const bool loop = s.kind == Kind::kFor && s.body[0].body.size() == 1 &&
                    s.body[0].body[0].kind == Kind::kIf && is_binary(s.expressions[1], "<");
  const auto ahead = loop ? literal(s.expressions[1].parts[1]) : std::nullopt;
  if (!ahead || literal(s.expressions[0]) != 0 || s.expressions[2].text != "++") {
    return problem("the first copies of a loop");
  }
  const EmittedStatement& guarded = s.body[0].body[0];
  const auto& list = guarded.body[0].body;
  if (list.empty() || list[0].kind != Kind::kDeclaration || list[0].expressions.size() != 1 ||
      !is_binary(guarded.expressions[0], "<")) {
    return problem("the first copies of a loop");
  }
  if (!same(list[0].expressions[0], guarded.expressions[0].parts[0])) {
    fault("the copies before a loop are not of the tiles that there are");
  }
  const Expression* expect = find_call(guarded, "sd::mbarrier_expect");
  const auto at = barrier_at(expect->parts[0]);
  if (!at || at->index != s.name) return problem("the barrier of the first copies");
  if (*ahead < 1) return fault("no tiles are copied before a loop");
  const SymbolicInt which = symbol(0, *ahead - 1, false);
  integers_[s.name] = which;
  const auto tile = integer(list[0].expressions[0]);
  const auto end = integer(guarded.expressions[0].parts[1]);
  if (!tile || !end) return problem("the first copies of a loop");
  first_copies_[at->barrier] = {*ahead, which, *tile, *end};
  check_bytes(list, *expect);
  if (const auto taken = condition(guarded.expressions[0])) conditions_.push_back(*taken);
  bulk_of_ = at->barrier;
  statements(list);
  conditions_.pop_back();
  integers_.erase(s.name);
}

void KernelWalk::check_bytes(const std::vector<EmittedStatement>& list, const Expression& expect) {
  const auto bytes = bytes_of_copies(list, expect.parts[0]);
  const auto expected = literal(expect.parts[1]);
  if (!bytes) return fault("a copy counts in at another barrier than the one that expects it");
  if (bytes != expected) {
    fault("a barrier expects " + expect.parts[1].text + " bytes, and " + std::to_string(*bytes) +
          " are copied");
  }
  questions.push_back({"a barrier expects the bytes that are copied", {}, false});
}

// --- loops over stages

// The parts of the loop, found in its body.
struct KernelWalk::StageLoop {
  const EmittedStatement* issue = nullptr;  // `if (tid == 0 && v + A < end) { wait; ... copies }`
  const Expression* expect = nullptr;
  size_t wait = 0, release = 0;  // positions in the body; 0: missing
  std::optional<StageStep> next, stage;
  std::string full, empty;
  int64_t ahead = 0;
};

// Looks for the parts; what is missing is a fault.
bool KernelWalk::find_stages(const EmittedStatement& s, StageLoop& form) {
  const auto& body = s.body[0].body;
  const std::string where = " (loop over " + s.name + ")";
  const size_t before = faults.size();
  for (size_t i = 0; i < body.size(); ++i) {
    const EmittedStatement& each = body[i];
    if (each.kind == Kind::kIf && find_call(each, "sd::mbarrier_expect") != nullptr) {
      form.issue = &each;
      form.expect = find_call(each, "sd::mbarrier_expect");
    } else if (call_in(each, "sd::mbarrier_wait") != nullptr) {
      form.wait = i;
    } else if (each.kind == Kind::kIf && find_call(each, "sd::mbarrier_arrive") != nullptr) {
      form.release = i;
    } else if (const auto step = stage_step(each)) {
      (form.wait == 0 ? form.next : form.stage) = step;
    }
  }
  if (form.issue == nullptr) fault("no copies are started" + where);
  if (form.wait == 0) fault("a stage is read without waiting for its bytes" + where);
  if (form.release == 0) fault("a stage is not given back" + where);
  if (!form.next || !form.stage) fault("the stages do not go round" + where);
  if (faults.size() > before) return false;
  check_waits(s, form, where);
  return faults.size() == before;
}

// Which barriers are waited for and given back, by which variables.
void KernelWalk::check_waits(const EmittedStatement& s, StageLoop& form, const std::string& where) {
  const auto& body = s.body[0].body;
  const Expression& wait = body[form.wait].expressions[0];
  const auto full = barrier_at(wait.parts[0]);
  if (!full || full->index != form.stage->variable || !is_name(wait.parts[1], form.stage->phase)) {
    return fault("a stage waits for another one's bytes" + where);
  }
  form.full = full->barrier;
  const EmittedStatement& release = body[form.release];
  const Expression* arrive = find_call(release, "sd::mbarrier_arrive");
  const auto empty = barrier_at(arrive->parts[0]);
  const bool by_warp = is_binary(release.expressions[0], "==") &&
                       is_name(release.expressions[0].parts[0], "lane") &&
                       literal(release.expressions[0].parts[1]) == 0;
  if (!empty || empty->index != form.stage->variable || !by_warp) {
    return fault("a stage is given back for another one" + where);
  }
  form.empty = empty->barrier;
  if (call_in(body[form.release - 1], "sd::sync_warp") == nullptr) {
    fault("a stage is given back before all lanes have read it: no sync_warp" + where);
  }
  if (form.release + 2 != body.size() || !stage_step(body[form.release + 1])) {
    fault("a stage is given back before the end of an iteration" + where);
  }
  const auto& issue = form.issue->body[0].body;
  const Expression* free = issue.empty() ? nullptr : call_in(issue[0], "sd::mbarrier_wait");
  if (free == nullptr) return fault("a stage is filled before it was read" + where);
  const auto waited = barrier_at(free->parts[0]);
  if (!waited || waited->barrier != form.empty || waited->index != form.next->variable ||
      !is_name(free->parts[1], form.next->phase)) {
    fault("a stage is filled when another one was read" + where);
  }
  const auto filled = barrier_at(form.expect->parts[0]);
  if (!filled || filled->barrier != form.full || filled->index != form.next->variable) {
    fault("the bytes of a stage are expected at another barrier" + where);
  }
}

// The numbers of the form.
void KernelWalk::check_stage_numbers(const EmittedStatement& s, StageLoop& form,
                                     const SymbolicInt& begin, const SymbolicInt& end) {
  const std::string where = " (loop over " + s.name + ")";
  // tid == 0 && v + A < end
  const Expression& guard = form.issue->expressions[0];
  const bool shape = is_binary(guard, "&&") && is_binary(guard.parts[0], "==") &&
                     is_name(guard.parts[0].parts[0], "tid") &&
                     literal(guard.parts[0].parts[1]) == 0 && is_binary(guard.parts[1], "<") &&
                     is_binary(guard.parts[1].parts[0], "+") &&
                     is_name(guard.parts[1].parts[0].parts[0], s.name);
  const auto ahead = shape ? literal(guard.parts[1].parts[0].parts[1]) : std::nullopt;
  if (!ahead) return problem("who starts the copies" + where);
  form.ahead = *ahead;
  const int64_t stages = form.stage->stages;
  const auto last = integer(guard.parts[1].parts[1]);
  if (!last) return problem("which copies are started" + where);
  ask_same("copies are started for the iterations that there are" + where, *last, end);
  const auto first = first_copies_.find(form.full);
  if (first == first_copies_.end() || first->second.ahead != form.ahead) {
    return fault("other tiles are copied before the loop" + where);
  }
  ask_first(first->second, begin, end);
  first_copies_.erase(first);
  if (form.next->stages != stages) fault("the stages do not go round together" + where);
  if (form.ahead < 1 || form.ahead >= stages) fault("too few stages" + where);
  const auto is = [&](const std::string& variable, int64_t value) {
    const auto at = integers_.find(variable);
    return at != integers_.end() && at->second.is_constant() && at->second.low == value;
  };
  if (!is(form.stage->variable, 0) || !is(form.stage->phase, 0)) {
    fault("the loop does not start with its first stage and phase" + where);
  }
  if (!is(form.next->variable, form.ahead) || !is(form.next->phase, 1)) {
    fault("the copies do not start with their own stage and phase" + where);
  }
  const Barriers full = barriers_[form.full], empty = barriers_[form.empty];
  if (full.count != stages || empty.count != stages) fault("too few barriers" + where);
  if (full.arrivals != 1) fault("bytes count as come after another number of arrivals" + where);
  if (empty.arrivals != kernel_.threads / 32) {
    fault("a stage is free after another number of arrivals than there are warps" + where);
  }
  const int64_t f = pointers_[form.full].base, e = pointers_[form.empty].base;
  if (f < e + 8 * stages && e < f + 8 * stages) fault("barriers overlap" + where);
  questions.push_back({"stages, phases and arrivals of the loop over " + s.name, {}, true});
  check_bytes(form.issue->body[0].body.back().body, *form.expect);
}

// What may stand before the wait of an iteration beside what the thread computes for itself.
bool KernelWalk::is_of_form(const EmittedStatement& s, const StageLoop& form) const {
  return &s == form.issue || stage_step(s) || call_in(s, "sd::sync_warp") != nullptr;
}

void KernelWalk::stage_loop(const EmittedStatement& s, const SymbolicInt& begin,
                            const SymbolicInt& end) {
  StageLoop form;
  run_alike("a loop over stages", {begin, end});
  if (!find_stages(s, form)) return;
  check_stage_numbers(s, form, begin, end);
  if (!problems.empty() || !faults.empty()) return;
  const auto& body = s.body[0].body;
  for (size_t i = 0; i < form.release; ++i) {
    if (i == form.wait || is_of_form(body[i], form)) continue;
    bool counts = mentions(body[i], form.stage->phase) || mentions(body[i], form.next->phase);
    if (i < form.wait) {
      counts |= mentions(body[i], form.stage->variable) || mentions(body[i], form.next->variable) ||
                has_barrier(body[i]);
    }
    if (counts) return problem("what an iteration does with its stages");
  }
  const auto before = pending_;
  std::erase_if(bulk_, [&](const MemoryAccess& a) { return a.group == form.full; });
  // What is under way while a thread is in iteration v.
  const SymbolicInt v = symbol(begin.low, end.high - 1, true);
  require(v, "(bvsle " + begin.text + " " + v.text + ")");
  require(v, less(v, end));
  const SymbolicInt u = symbol(begin.low, end.high - 1, true);
  require(u, less(v, u));
  require(u, less(u, plus(v, number(form.stage->stages))));
  require(u, less(u, end));
  copies_of_stage(s, form, u, begin);
  pending_.clear();
  iteration(s, form, v, begin);
  std::erase_if(bulk_, [&](const MemoryAccess& a) { return a.group == form.full; });
  if (!has_barrier(s)) pending_.clear();
  // Another iteration, of another thread or the next one.
  const bool repeating = repeating_;
  repeating_ = true;
  SymbolicInt other = symbol(begin.low, end.high - 1, has_barrier(s));
  require(other, less(has_barrier(s) ? v : minus(begin, number(1)), other));
  require(other, less(other, end));
  iteration(s, form, other, begin);
  repeating_ = repeating;
  pending_.insert(pending_.end(), before.begin(), before.end());
}

// The copies of tile u, which the thread starts A iterations before.
void KernelWalk::copies_of_stage(const EmittedStatement& s, const StageLoop& form,
                                 const SymbolicInt& u, const SymbolicInt& begin) {
  const auto integers = integers_;
  const auto taken = condition(form.issue->expressions[0].parts[0]);
  if (taken) conditions_.push_back(*taken);
  integers_[s.name] = minus(u, number(form.ahead));
  integers_[form.next->variable] = rest(minus(u, begin), number(form.stage->stages));
  bulk_of_ = form.full;
  // The tile that the text names is u.
  const auto& issue = form.issue->body[0].body;
  for (size_t i = 1; i + 1 < issue.size(); ++i) statement(issue[i]);
  const auto& copies = issue.back().body;
  for (const EmittedStatement& each : copies) {
    statement(each);
    if (each.kind != Kind::kDeclaration || each.name != s.name) continue;
    const auto tile = integers_.find(s.name);
    if (tile == integers_.end()) continue;
    questions.push_back({"a copy is of the tile of its stage",
                         question({"(not (= " + tile->second.text + " " + u.text + "))"}), true});
  }
  if (taken) conditions_.pop_back();
  integers_ = integers;
}

void KernelWalk::iteration(const EmittedStatement& s, const StageLoop& form, const SymbolicInt& v,
                           const SymbolicInt& begin) {
  const auto& body = s.body[0].body;
  const auto integers = integers_;
  const auto pointers = pointers_;
  integers_[s.name] = v;
  integers_[form.stage->variable] = rest(minus(v, begin), number(form.stage->stages));
  // Shared memory may be another stage's before the wait: what comes first keeps to registers.
  is_waiting_ = true;
  for (size_t i = 0; i < form.wait; ++i) {
    if (!is_of_form(body[i], form)) statement(body[i]);
  }
  is_waiting_ = false;
  access(MemoryAccess::kRead, body[form.wait].expressions[0].parts[0], 8);
  for (size_t i = form.wait + 1; i + 1 < form.release; ++i) statement(body[i]);
  if (!products_.empty()) fault("a stage is given back while a product reads it");
  integers_ = integers;
  pointers_ = pointers;
}

// Whether the call is one of this file.
bool KernelWalk::asynchronous_call(const Expression& e) {
  const std::string& f = e.text;
  if (f == "sd::bulk_copy") {
    bulk_copy(e);
  } else if (f == "sd::mbarrier_expect" || f == "sd::sync_warp") {
    // looked at where the form is
  } else if (f.starts_with("sd::mbarrier_")) {
    problem("the call of '" + f + "'");
  } else if (f == "sd::fence_async_proxy") {
    if (branches_ == 0) {
      for (MemoryAccess& a : unseen_) a.fenced = true;
    }
  } else if (f == "sd::fence_device") {
    published_ = true;
  } else if (f == "sd::atomic_increment") {
    arrive_of_block(e);
  } else if (f == "sd::warpgroup_fence") {
    changed_.clear();
  } else if (f == "sd::warpgroup_commit") {
    closed_ = true;
  } else if (f == "sd::warpgroup_wait") {
    if (!closed_) fault("products are waited for whose group was never closed");
    products_.clear();
    running_.clear();
  } else if (f == "sd::warpgroup_mma") {
    product(e);
  } else {
    return false;
  }
  return true;
}

}  // namespace sundog::verify
