// Kernels that the last block of a group runs behind another one's.
//
// Every block stores its part, and behind a barrier of its threads one of them publishes that
// (fence_device) and counts the block in at its group's counter; the block that comes last, which
// the counter tells it, goes on.  What it reads of the others was published before they counted
// themselves in.  So the order is right if the stores come before the barrier, the fence before the
// count, and what is read was written by blocks of the same group; and of each group one block
// goes on if the counter turns round after as many blocks as a group has.
//
// In a cluster blocks read one another's shared memory, at the same offsets as their own.  Behind a
// barrier of the cluster all have started and what they wrote is there; what is read since then
// must not be written, by any block, and the block must not end before the next one.  Which blocks
// meet is not asked: no two do in the same bytes.
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

// The body of the function is a statement, and the barrier one of it.
void KernelWalk::cluster_barrier() {
  if (depth_ > 2) fault("a barrier of the cluster that not all of its threads come to");
  barrier();
  all_started_ = true;
  cluster_reads_.clear();
  cluster_writes_.clear();
}

// load_cluster(to, at, rank), read_cluster(at, rank)
void KernelWalk::read_of_cluster(const Expression& at, const Expression& rank, int64_t bytes) {
  const std::optional<Address> from = address_of(at);
  const std::optional<SymbolicInt> block = integer(rank);
  if (!from || !block || bytes == 0 || pointers_[from->name].memory != "shared") {
    return problem("a read of another block of the cluster");
  }
  if (!all_started_) fault("a block reads of others before all of the cluster have started");
  const Pointer& pointer = pointers_[from->name];
  MemoryAccess a;
  a.memory = pointer.memory;
  a.what = "a read of " + from->name + " in the cluster";
  a.address = plus(number(pointer.base), times(from->offset, number(bytes_of(types_[from->name]))));
  a.size = bytes;
  a.end = pointer.end;
  a.conditions = conditions_;
  MemoryAccess of{a};
  of.what = "the block of the cluster in " + a.what;
  of.address = *block;
  of.size = 1;
  of.end = kernel_.cluster;
  if (!repeating_) ask_bounds(a);
  if (!repeating_) ask_bounds(of);
  for (const MemoryAccess& write : cluster_writes_) ask_cluster(write, a);
  cluster_reads_.push_back(std::move(a));
}

void KernelWalk::ask_cluster(const MemoryAccess& write, const MemoryAccess& read) {
  const size_t before = questions.size();
  ask_race(write, read, true, true);
  if (questions.size() > before) {
    questions.back().what = write.what + " and " + read.what.substr(2) + " by another block";
  }
}

}  // namespace sundog::verify
