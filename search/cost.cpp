// A roofline over six resources with what small kernels are made of on top: launch, the latency
// until data arrives, too few bytes in flight to fill the memory system, unfilled waves, and the
// dependent steps of an iteration.  Rates are the device's; the handful of constants below were set
// so that measured kernels (weight streaming with 2 to 14 stages, one block a row, split attention)
// come out in the right order and within a fifth.  Tried and dropped: adding all resources up
// (punishes overlap that does happen), and taking the plain maximum (ranks a kernel that saturates
// everything with one that saturates one unit).
#include "search/cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "search/merge_repeats.h"

namespace sundog::search {
namespace {

constexpr double kInFlightWanted =
    48e3;  // bytes an SM: more stages gain nothing, and cost their fill
constexpr double kLeastInFlight = 0.25;  // of a stage, where there is but one
constexpr int kMostStages = 8;
constexpr double kOverlapLoss = 0.08;  // share of the other resources' time that does not overlap
constexpr double kComputeLoss = 0.2;   // likewise of loading and computing, whichever is shorter
constexpr double kStepShare = 0.5;     // of the dependent steps that add to the units' time
constexpr double kStepUs = 0.09;       // one dependent step of an iteration, latency bound
constexpr double kStepUsBulk = 0.12;   // without a barrier of the block in each iteration
constexpr double kComputeLossBulk = 0.05;
constexpr double kTurnUsBulk = 0.011;  // of an iteration, until its stage is free again
constexpr double kIdleShareBulk = 0.9;
constexpr double kL2GainBulk = 1.25;  // whole lines, and no threads in between
constexpr double kJoinUs = 0.52;      // adding the parts of warps that share a reduced axis
constexpr double kJoinWarps = 8;      // up to that many; of more in proportion
constexpr double kLoadUs =
    0.32;  // until a load to registers in a loop is there: nothing runs ahead
constexpr double kJoinLoopUs =
    0.29;                           // as kJoinUs, in each iteration: two barriers and the way there
constexpr double kLoadSlots = 4.4;  // instructions an element that a thread loads itself
constexpr double kStoreSlots = 13;  // of one that it rounds, masks and puts into shared memory
constexpr double kConvertSlots = 0.24;
constexpr double kOddTile = 3;        // times that, where indices are not just bits
constexpr double kReduceUs = 0.2;     // a reduction over the threads of a block, outside loops
constexpr double kSingleShot = 40e3;  // bytes a block asks for at once; the rest queues
constexpr double kBlockUs = 0.08;     // of an SM, to start a block
constexpr double kMostShareOfSm = 3;  // of an SM's even share of the memory rate, that it can draw
constexpr double kReservedShared = 1024;  // bytes a block that the runtime keeps
constexpr double kRegistersKept = 48;     // a thread: addresses, indices, temporaries
constexpr double kRegistersKeptScalar = 16;
constexpr double kRegistersKeptGroups = 30;  // operands of warp groups are not among them
constexpr double kLoadedLate =
    0.5;  // of what is loaded to registers flat, that is not held at once
constexpr double kMostRegisters = 255;
constexpr double kMostRegistersScalar =
    112;                                // without tensor cores more data a thread gains nothing
constexpr double kMeetsShare = 0.44;    // of the units' time that threads which meet do not overlap
constexpr double kWarpsToOverlap = 16;  // on an SM, for its units to work side by side
constexpr double kWarpsToFill = 8;      // on an SM, for full instruction rate
constexpr double kShortRunLoss = 3.5;   // exponent of what shorter ones lose, of bulk copies
constexpr double kShortestRun = 64;     // bytes in a row that memory gives at its full rate
constexpr double kIdleShare = 0.4;    // of the memory rate that is left however few SMs ask for it
constexpr double kOwnCache = 32e3;    // bytes of an SM's first-level cache that last
constexpr double kMostL2Share = 0.7;  // of the L2 that data survives in between two passes
// An instruction that reads its operands from shared memory moves this many bytes a multiply-add.
constexpr double kSharedBytesFma = 3;

// Factors that an index runs along in the dimension whose neighbours are neighbours in memory.
AxisSet contiguous(const TensorDecl& decl, const std::vector<IndexExpr>& index) {
  const std::vector<int64_t> strides = strides_of(decl);
  for (size_t d = index.size(); d-- > 0;) {
    if (strides[d] == 1) return index[d].axis_set();
  }
  return {};
}

void add_stores(const MuGraph& graph, const Kernel& kernel, const std::vector<Statement>& body,
                AxisSet around, KernelProfile& out) {
  for (const Statement& s : body) {
    if (const auto* loop = std::get_if<Loop>(&s.node)) {
      AxisSet inside = around;
      inside.insert(loop->factor);
      out.loop_sets.push_back(inside);
      out.loops |= inside;
      add_stores(graph, kernel, loop->body, inside, out);
    } else if (const auto* store = std::get_if<Store>(&s.node)) {
      Traffic t;
      t.tensor = store->tensor;
      t.computation = store->computation;
      for (const IndexExpr& e : store->index) t.index |= e.axis_set();
      t.times = around;
      t.run = contiguous(graph.tensors[store->tensor].decl, store->index) - around - out.grid;
      t.element_bytes = bytes(graph.tensors[store->tensor].decl.dtype);
      t.is_store = true;
      out.traffic.push_back(t);
    }
  }
}

Traffic read_of(const MuGraph& graph, const Role& role, uint32_t computation, uint32_t tensor,
                const std::vector<IndexExpr>& index, AxisSet grid) {
  Traffic t;
  t.tensor = tensor;
  t.computation = computation;
  for (const IndexExpr& e : index) t.index |= e.axis_set();
  t.times = role.loops;
  t.run = contiguous(graph.tensors[tensor].decl, index) - role.loops - grid;
  const DeviceTensor& device = graph.tensors[tensor];
  t.element_bytes = bytes(device.decl.dtype);
  if (device.role == TensorRole::kInput) {
    t.tensor_bytes = t.element_bytes * static_cast<double>(element_count(device.decl));
  }
  return t;
}

}  // namespace

double hbm_rate(const Machine& machine, double in_flight) {
  std::pair<double, double> last{0, 0};
  for (const auto& row : machine.hbm) {
    if (in_flight < row.first) {
      const double share = (in_flight - last.first) / (row.first - last.first);
      return last.second + share * (row.second - last.second);
    }
    last = row;
  }
  return last.second;
}

KernelProfile profile(const MuGraph& graph, const Kernel& kernel,
                      const std::set<std::string>& wide) {
  KernelProfile out;
  out.roles = roles_of(graph, kernel, wide);
  for (AxisId f : kernel.grid) out.grid.insert(f);
  out.load_of.assign(out.roles.size(), kNone);
  for (uint32_t i = 0; i < out.roles.size(); ++i) {
    const Role& role = out.roles[i];
    if (role.is_load) {
      out.load_of[i] = static_cast<uint32_t>(out.traffic.size());
      const auto& in = std::get<InputTerm>(kernel.terms[kernel.computations[i].value]);
      out.traffic.push_back(read_of(graph, role, i, role.tensor, in.index, out.grid));
    }
    for (const InputTerm& in : role.inline_reads) {
      out.traffic.push_back(read_of(graph, role, i, in.tensor, in.index, out.grid));
    }
  }
  add_stores(graph, kernel, kernel.body, {}, out);
  // Within one body equal terms are one computation.
  out.repeats = out.loop_sets.size() > 1 ? repeats(kernel)
                                         : std::vector<uint32_t>(kernel.computations.size(), kNone);
  return out;
}

namespace {

// One evaluation of a profile: everything is a product of extents.
class Pricer {
 public:
  Pricer(const KernelProfile& profile, const Kernel& kernel, const std::vector<int64_t>& extents,
         const Machine& machine, int warp_choice, ThreadLevel& level)
      : p_(profile), extents_(extents), m_(machine), level_(level) {
    choose_thread_level(kernel, profile.roles, extents, machine, warp_choice, level_);
    blocks_ = count(profile.grid);
  }

  KernelPrice run() {
    out_.warps = level_.warps;
    out_.warps_vary = level_.warps_vary;
    if (!memory()) return out_;
    out_.fits = true;
    arithmetic();
    transfers();
    out_.us = total();
    return out_;
  }

 private:
  double count(AxisSet f) const { return tile_count(f, extents_); }

  double storage_bytes(uint32_t i) const {
    return count(p_.roles[i].tile) * static_cast<double>(bytes(level_.dtype[i]));
  }

  // Made before, and still there.
  bool repeated(uint32_t i) const {
    const uint32_t first = p_.repeats[i];
    return first != kNone && count(p_.roles[i].loops) == 1 && count(p_.roles[first].loops) == 1;
  }

  // Loads that a loop's pipeline keeps ahead.
  bool staged(uint32_t i) const {
    return p_.roles[i].is_load && level_.storage[i] == Storage::kShared &&
           count(p_.roles[i].loops) > 1;
  }

  bool memory() {
    const bool groups = uses_warpgroups();
    double fixed = 0, held = 0;
    std::array<double, 8> fleeting{};  // by loop
    for (uint32_t i = 0; i < p_.roles.size(); ++i) {
      if (repeated(i)) continue;
      const Role& role = p_.roles[i];
      const double size = storage_bytes(i);
      if (staged(i)) {
        stage_bytes_ += size;
      } else if (level_.storage[i] == Storage::kShared) {
        fixed += size;
        if (role.is_load) prologue_bytes_ += size;
      } else if (role.loop >= 0 || role.is_load || role.is_reduction || !role.users.empty()) {
        // Temporaries of an iteration die with it; a result that is only stored takes no registers
        // of its own.
        if (count(role.loops) > 1 && role.accumulated.empty()) {
          // Beside a warp group's product the steps that follow it take over its registers.
          if (groups && !role.is_reduction && !role.is_load) continue;
          fleeting[static_cast<size_t>(role.loop) % fleeting.size()] += size;
        } else {
          held += role.is_load ? kLoadedLate * size : size;
        }
        if (role.is_load) note_register_load(role, size);
      }
      if (level_.mma[i].use && count(role.reduced) > 16) note_join(i);
    }
    const double budget = m_.shared_per_block - fixed;
    if (budget < stage_bytes_) return false;
    const double threads = 32.0 * level_.warps;
    const double most = *std::max_element(fleeting.begin(), fleeting.end());
    const double kept = groups       ? kRegistersKeptGroups
                        : uses_mma() ? kRegistersKept
                                     : kRegistersKeptScalar;
    const double registers = (held + most) / 4 / threads + kept;
    if (registers > (uses_mma() ? kMostRegisters : kMostRegistersScalar)) return false;
    if (registers * threads > m_.registers_per_sm) return false;
    const double others = std::min({m_.registers_per_sm / (registers * threads),
                                    m_.threads_per_sm / threads, m_.blocks_per_sm});
    const auto resident = [&](double stages) {
      const double shared = fixed + stage_bytes_ * stages + kReservedShared;
      return std::max(1.0, std::floor(std::min(m_.shared_per_sm / shared, others)));
    };
    if (stage_bytes_ > 0) {
      // Bulk copies fill the stage that was read last but one.
      const double wanted = std::ceil(kInFlightWanted / stage_bytes_ + (m_.bulk ? 2 : 1));
      const double stages = std::min({budget / stage_bytes_, count(p_.loops), double{kMostStages}});
      out_.stages = static_cast<int>(std::clamp(wanted, std::min(2.0, stages), stages));
      // Blocks side by side on an SM hide more than stages do.
      const double useful = std::ceil(blocks_ / m_.sms);
      const double best = std::min(useful, resident(std::min(2, out_.stages)));
      while (out_.stages > 2 && std::min(useful, resident(out_.stages)) < best) --out_.stages;
    }
    out_.shared_bytes = fixed + stage_bytes_ * out_.stages;
    out_.resident = static_cast<int>(resident(out_.stages));
    return true;
  }

  void note_register_load(const Role& role, double size) {
    const double times = count(role.loops);
    if (times <= 1) {
      prologue_bytes_ += size;
      return;
    }
    register_stage_ += size;
    double& turns = loaded_[static_cast<size_t>(role.loop) % loaded_.size()];
    turns = std::max(turns, times);
  }

  // Parts of warps are added when a value is finished: behind the loops that it accumulates over,
  // and in each iteration of the others.
  void note_join(uint32_t i) {
    const double warps = joined(i);
    if (warps <= 1) return;
    const double times = count(p_.roles[i].loops - p_.roles[i].accumulated);
    if (times <= 1) {
      joined_ = std::max(joined_, warps);
      return;
    }
    join_us_ += times * kJoinLoopUs;
    shared_ += 2 * times * blocks_ * warps * 4 * count(p_.roles[i].tile);
  }

  bool uses_warpgroups() const {
    return std::any_of(level_.mma.begin(), level_.mma.end(),
                       [](const MmaChoice& m) { return m.warpgroup; });
  }

  bool uses_mma() const {
    return std::any_of(level_.mma.begin(), level_.mma.end(),
                       [](const MmaChoice& m) { return m.use; });
  }

  // Warps that share the reduced axis of a product: 1 if it is not shared.
  double joined(uint32_t i) const {
    double warps = 1;
    for (const WarpSplit& s : level_.splits[i]) {
      if (p_.roles[i].reduced.has(s.factor)) warps *= s.count;
    }
    return warps;
  }

  // Bytes of an operand that the warps read from shared memory: those that differ only along the
  // other operand's axes read the same.
  double operand_bytes(uint32_t i, uint32_t operand, AxisSet others) const {
    if (level_.storage[operand] == Storage::kReg) return 0;
    double readers = 1;
    for (const WarpSplit& s : level_.splits[i]) {
      if (others.has(s.factor)) readers *= s.count;
    }
    return storage_bytes(operand) * readers * conflicts(operand);
  }

  // Turns that eight rows of 16 bytes of a loaded tile take: one where the rows are swizzled, else
  // as many as start at the same bank.
  double conflicts(uint32_t operand) const {
    if (p_.load_of[operand] == kNone) return 1;
    const Traffic& t = p_.traffic[p_.load_of[operand]];
    const auto row = static_cast<int64_t>(count(t.run) * t.element_bytes);
    if (row == 32 || row == 64 || row % 128 == 0 || row % 16 != 0) return 1;
    return static_cast<double>(std::gcd(row / 16, int64_t{8}));
  }

  void arithmetic() {
    for (uint32_t i = 0; i < p_.roles.size(); ++i) {
      if (repeated(i)) continue;
      const Role& role = p_.roles[i];
      const double times = blocks_ * count(role.loops);
      const double elements = times * count(role.tile | role.reduced);
      if (level_.mma[i].warpgroup) {
        tensor_ += times * level_.mma[i].padded / m_.warpgroup_gain;
      } else if (level_.mma[i].use) {
        tensor_ += times * level_.mma[i].padded;
        shared_ += times * (operand_bytes(i, role.contraction->left, role.contraction->n) +
                            operand_bytes(i, role.contraction->right, role.contraction->m));
      } else {
        alu_ += elements * (role.work.alu + converted(i));
        sfu_ += elements * role.work.sfu;
        if (role.contraction) shared_ += elements * kSharedBytesFma;
      }
      if (level_.storage[i] == Storage::kShared) {
        shared_ += times * storage_bytes(i);
        meets_ = meets_ || !role.is_load;
      }
      if (!role.is_load && count(role.loops) > 1) steps_ += count(role.loops);
      const bool alone = count(role.loops) == 1 && !level_.mma[i].use;
      if (alone && count(role.reduced) > 32) serial_us_ += kReduceUs;
    }
  }

  bool whole_bits(AxisSet tile) const {
    return std::has_single_bit(static_cast<uint64_t>(count(tile)));
  }

  // Instructions an element for what comes narrow or goes so.
  double converted(uint32_t i) const {
    const bool narrow = bytes(level_.dtype[i]) < 4;
    const bool shared = level_.storage[i] == Storage::kShared;
    const double odd = whole_bits(p_.roles[i].tile) ? 1 : kOddTile;
    if (p_.roles[i].is_load) {
      return shared || count(p_.roles[i].loops) == 1 ? 0 : kLoadSlots * odd;
    }
    return shared && narrow ? kStoreSlots * odd : kConvertSlots;
  }

  void transfers() {
    const double busy = std::min(blocks_, m_.sms * out_.resident);
    for (size_t i = 0; i < p_.traffic.size(); ++i) {
      const Traffic& t = p_.traffic[i];
      if (!t.is_store && repeated(t.computation)) continue;
      const double moved = blocks_ * count((t.index | t.times) - p_.grid) * t.element_bytes;
      double unique = count(t.index) * t.element_bytes;
      if (t.tensor_bytes > 0) unique = std::min(unique, t.tensor_bytes);
      // What every block reads into registers stays in the SM's own cache from block to block.
      const bool cached = !t.is_store && (t.index & p_.grid).empty() && unique <= kOwnCache &&
                          level_.storage[t.computation] == Storage::kReg;
      l2_ += std::max(unique, cached ? std::min(moved, unique * m_.sms) : moved);
      bool again = false;
      for (size_t j = 0; j < i; ++j) again |= !t.is_store && p_.traffic[j].tensor == t.tensor;
      // Rows shorter than what memory moves at once waste the rest of it.
      const double run = count(t.run) * t.element_bytes;
      const double waste = std::pow(std::max(1.0, kShortestRun / run), m_.bulk ? kShortRunLoss : 1);
      const double slice = unique / std::max(1.0, count(t.index & p_.grid));
      if (!again || slice * busy > kMostL2Share * m_.l2_bytes) {
        (t.is_store ? written_ : read_) += unique * (unique > 1e5 ? waste : 1);
      }
    }
  }

  double total() {
    const double busy = std::min(blocks_, m_.sms * out_.resident);
    const double per_sm = std::ceil(blocks_ / m_.sms);
    const double waves = std::max(1.0, std::ceil(blocks_ / (m_.sms * out_.resident)));
    // One stage is being read; with more of them the next load is issued sooner after that.
    const double full = m_.bulk && out_.stages >= 3 ? out_.stages - 2 : out_.stages - 1;
    const double ahead = full + 0.5 * (out_.stages - 2.0) / out_.stages;
    const double staged_ahead = stage_bytes_ * std::max(ahead, kLeastInFlight);
    const double unstaged = std::min(kSingleShot, register_stage_ + prologue_bytes_);
    const double in_flight = std::max({staged_ahead, unstaged, 512.0}) * busy / m_.sms;
    const double used = std::min(1.0, blocks_ / m_.sms);
    // What is loaded at once by blocks that all run at once waits for memory once, which is the
    // fill.
    const bool streams = waves > 1 || stage_bytes_ + register_stage_ > 0;
    const double idle = m_.bulk && stage_bytes_ > 0 ? kIdleShareBulk : kIdleShare;
    const double rate = streams ? hbm_rate(m_, in_flight) * (idle + (1 - idle) * used)
                                : hbm_peak(m_) * std::min(1.0, kMostShareOfSm * used);
    const double ragged = waves / std::max(blocks_ / (m_.sms * out_.resident), 1e-9);
    // Writes need no bytes in flight to be waited for, but they share the wires.
    const double moved = std::max(read_ / rate, (read_ + written_) / hbm_peak(m_));
    double queued = 0;
    if (!streams) {
      const double rest = std::max(0.0, prologue_bytes_ * busy / m_.sms - kSingleShot);
      queued = rest * m_.sms / hbm_rate(m_, kSingleShot);
    }
    const double hbm = std::max(moved, queued) * (waves > 1 ? 1 + 0.5 * (ragged - 1) : 1);
    // The busiest SM works through its blocks; too few warps on it leave issue slots empty.
    const double load = per_sm * m_.sms / std::max(blocks_, 1.0);
    const double warps = level_.warps * std::min<double>(out_.resident, per_sm);
    const double slow = load * std::max(1.0, kWarpsToFill / warps);
    // Warps of a block go through products, exponentials and sums one after the other: with few of
    // them on an SM its units take turns.
    const std::array<double, 4> units = {shared_ / m_.shared_rate * load,
                                         tensor_ / m_.tensor_rate * slow, alu_ / m_.alu_rate * slow,
                                         sfu_ / m_.sfu_rate * slow};
    double all = 0, longest = 0;
    for (double x : units) all += x, longest = std::max(longest, x);
    // Where they meet at barriers in between only other blocks fill the gaps.
    const double beside = std::min<double>(out_.resident, per_sm);
    const double apart =
        std::max(meets_ ? kMeetsShare / beside : 0, 1 - std::min(0.9, warps / kWarpsToOverlap));
    // What an iteration cannot overlap with itself: barriers, shuffles, the latency of a product.
    const double steps = steps_ * (m_.bulk ? kStepUsBulk : kStepUs) * waves;
    double waited = join_us_ * waves;
    for (double turns : loaded_) waited += turns * kLoadUs * waves;
    double computing = longest + apart * (all - longest) + kStepShare * steps, loading = hbm;
    if (stage_bytes_ == 0) {
      // A block computes when it has loaded; only other blocks on the SM load meanwhile.
      loading += computing / std::min<double>(out_.resident, per_sm);
    }
    const double l2_rate = m_.l2_rate * (m_.bulk && stage_bytes_ > 0 ? kL2GainBulk : 1);
    const std::array<double, 5> t = {loading, l2_ / l2_rate, computing, steps,
                                     (per_sm - 1) * kBlockUs};
    out_.by_resource = {loading, t[1], units[0], units[1], units[2], units[3], t[3], t[4]};
    double sum = 0, most = 0;
    for (double x : t) sum += x, most = std::max(most, x);
    // Of a bulk stage the first rows come long before the last.
    const double pipeline_fill = stage_bytes_ * busy / rate * (m_.bulk ? 0.5 : 1);
    const double turns = m_.bulk && stage_bytes_ > 0 ? count(p_.loops) * waves * kTurnUsBulk : 0;
    const double compute_loss = m_.bulk ? kComputeLossBulk : kComputeLoss;
    return m_.launch_us + m_.fill_us + most + kOverlapLoss * (sum - most) +
           (compute_loss - kOverlapLoss) * std::min(loading, computing) + pipeline_fill + turns +
           waited + serial_us_ + (joined_ > 1 ? kJoinUs * std::max(1.0, joined_ / kJoinWarps) : 0);
  }

  const KernelProfile& p_;
  const std::vector<int64_t>& extents_;
  const Machine& m_;
  ThreadLevel& level_;
  KernelPrice out_;
  double blocks_ = 1;
  double stage_bytes_ = 0, register_stage_ = 0, prologue_bytes_ = 0;
  double read_ = 0, written_ = 0, l2_ = 0, shared_ = 0, tensor_ = 0, alu_ = 0, sfu_ = 0, steps_ = 0;
  double serial_us_ = 0, join_us_ = 0;
  std::array<double, 8> loaded_{};  // by loop: iterations that wait for loads to registers
  double joined_ = 1;               // warps
  bool meets_ = false;              // threads of a block pass values on through shared memory
};

}  // namespace

KernelPrice price(const KernelProfile& profile, const Kernel& kernel,
                  const std::vector<int64_t>& extents, const Machine& machine, int warp_choice,
                  ThreadLevel& level) {
  return Pricer(profile, kernel, extents, machine, warp_choice, level).run();
}

KernelPrice price(const KernelProfile& profile, const Kernel& kernel,
                  const std::vector<int64_t>& extents, const Machine& machine, int warp_choice) {
  ThreadLevel level;
  return price(profile, kernel, extents, machine, warp_choice, level);
}

}  // namespace sundog::search
