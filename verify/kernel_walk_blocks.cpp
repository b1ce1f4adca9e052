// Kernels that the last block of a group runs behind another one's.
//
// Every block stores its part, and behind a barrier of its threads one of them publishes that
// (fence_device) and counts the block in at its group's counter; the block that comes last, which
// the counter tells it, goes on.  What it reads of the others was published before they counted
// themselves in.  So the order is right if the stores come before the barrier, the fence before the
// count, and what is read was written by blocks of the same group; and of each group one block
// goes on if the counter turns round after as many blocks as a group has.
#include "verify/kernel_walk.h"
#include "verify/kernel_walk_syntax.h"

namespace sundog::verify {

// atomic_increment(arrivals + group, blocks of a group - 1)
void KernelWalk::arrive_of_block(const Expression& e) {
  const auto at = e.parts.size() == 2 ? address_of(e.parts[0]) : std::nullopt;
  const auto limit = at ? integer(e.parts[1]) : std::nullopt;
  if (!limit || !limit->is_constant() || arrival_) return problem("how blocks count themselves in");
  if (stored_) fault("a block counts itself in before all its threads have stored");
  if (!published_) fault("a block counts itself in before it has published what it stored");
  const int64_t groups = pointers_[at->name].end;
  if (groups * (limit->low + 1) != kernel_.blocks) {
    fault("the blocks that are waited for are not those of the groups");
  }
  MemoryAccess a;
  a.what = "a count in " + at->name;
  a.memory = at->name;
  a.address = at->offset;
  a.size = 1;
  a.end = groups;
  a.conditions = conditions_;
  ask_bounds(a);
  arrival_ = {at->offset.text, limit->low, {}};
}

// `last = atomic_increment(...) == blocks of a group - 1`
void KernelWalk::note_last(const Expression& to, const Expression& value) {
  const bool counts = is_binary(value, "==") && value.parts[0].kind == Expression::kCall &&
                      value.parts[0].text == "sd::atomic_increment";
  if (!counts || !arrival_) return;
  const auto count = integer(value.parts[1]);
  if (!count || !count->is_constant() || count->low != arrival_->limit) {
    fault("another block than the last of its group goes on");
  }
  arrival_->last = to.text;
}

// `if (sync_threads_any(last)) { ... }`
void KernelWalk::last_block(const EmittedStatement& s) {
  const auto& asked = s.expressions[0].parts;
  const bool last = arrival_ && asked.size() == 1 && is_name(asked[0], arrival_->last);
  if (!last || s.body.size() != 1) return problem("what the last block runs");
  barrier();
  joining_ = true;
  ++branches_;
  statements(s.body[0].body);
  --branches_;
  joining_ = false;
}

}  // namespace sundog::verify
