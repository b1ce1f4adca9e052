// A roofline over six resources with what small kernels are made of on top: launch, the latency
// until data arrives, too few bytes in flight to fill the memory system, unfilled waves, and the
// dependent steps of an iteration.  Rates are the device's; the constants (search/cost_constants.h)
// were set so that measured kernels (weight streaming with 2 to 14 stages, one block a row, split
// attention) come out in the right order and within a fifth.  Tried and dropped: adding all
// resources up (punishes overlap that does happen), and taking the plain maximum (ranks a kernel
// that saturates everything with one that saturates one unit).
#include "search/cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "search/cost_constants.h"
#include "search/operand_cost.h"

namespace sundog::search {
namespace {

// One evaluation of a profile: everything is a product of extents.
class Pricer {
 public:
  Pricer(const KernelProfile& profile, const Kernel& kernel, const std::vector<int64_t>& extents,
         const Machine& machine, int warp_choice, ThreadLevel& level, const Known& known)
      : p_(profile), extents_(extents), m_(machine), level_(level), known_(known) {
    choose_thread_level(kernel, profile.roles, extents, machine, warp_choice, level_);
    blocks_ = count(profile.grid);
    if (!p_.trims.trimmed.empty()) note_trims();
    // Copies of a loop within a loop are made by threads, and so are those of rows that begin
    // anywhere.
    pipelines_ = pipelines();
    bulk_ = m_.bulk && pipelines_ == 1;
    for (uint32_t i = 0; i < p_.roles.size(); ++i) {
      bulk_ = bulk_ && (!staged(i) || load(i).aligned >= kCopyWord);
    }
  }

  KernelPrice run() {
    out_.warps = level_.warps;
    out_.warps_vary = level_.warps_vary;
    if (!memory()) return out_;
    out_.fits = true;
    arithmetic();
    spill();
    use_stages(known_.stages > 0 && stage_bytes_ > 0 ? known_.stages : least_stages_);
    transfers();
    out_.us = total();
    if (known_.stages == 0) choose_stages();
    return out_;
  }

 private:
  double count(AxisSet f) const { return tile_count(f, extents_); }

  void note_trims() {
    iterations_ = iterations_at(p_.trims, extents_);
    double all = 0, run = 0;
    for (size_t l = 0; l < p_.loop_sets.size(); ++l) {
      all += count(p_.loop_sets[l]);
      run += count(p_.loop_sets[l]) * iterations_.share[l];
    }
    out_.trimmed_mean = run / std::max(all, 1.0);
    out_.trimmed_most = out_.trimmed_mean * iterations_.longest;
  }

  // What of the iterations of a loop, and of those around it, a block runs in the mean.
  double share(int loop) const {
    return loop < 0 || iterations_.share.empty() ? 1 : iterations_.share[static_cast<size_t>(loop)];
  }
  double turns(const Role& role) const { return count(role.loops) * share(role.loop); }

  double storage_bytes(uint32_t i) const {
    return count(p_.roles[i].tile) * static_cast<double>(bytes(level_.dtype[i]));
  }

  // Made before, and still there.
  bool repeated(uint32_t i) const {
    const uint32_t first = p_.repeats[i];
    return first != kNone && count(p_.roles[i].loops) == 1 && count(p_.roles[first].loops) == 1;
  }

  // How often a block starts its pipelines anew: each runs along its own loop.
  double pipelines() const {
    double most = 1;
    for (uint32_t i = 0; i < p_.roles.size(); ++i) {
      if (!staged(i)) continue;
      const AxisId own = p_.loop_factors[static_cast<size_t>(p_.roles[i].loop)];
      most = std::max(most, count(p_.roles[i].loops) / static_cast<double>(extents_[own]));
    }
    return most;
  }

  // Into shared memory, in each iteration.
  bool looped(uint32_t i) const {
    return p_.roles[i].is_load && level_.storage[i] == Storage::kShared &&
           count(p_.roles[i].loops) > 1;
  }

  const Traffic& load(uint32_t i) const { return p_.traffic[p_.load_of[i]]; }
  static bool unaligned(const Traffic& t) { return t.aligned < kWord && t.element_bytes < kWord; }

  // Loads that a loop's pipeline keeps ahead.
  bool staged(uint32_t i) const { return looped(i) && !unaligned(load(i)); }
  // Those whose next tile is in registers meanwhile: rows of an input that begin anywhere.
  bool windowed(uint32_t i) const {
    return looped(i) && unaligned(load(i)) && load(i).tensor_bytes > 0;
  }

  bool memory() {
    const bool groups = uses_warpgroups();
    double fixed = known_.kept_bytes, held = 0;
    std::array<double, 8> fleeting{};  // by loop
    for (uint32_t i = 0; i < p_.roles.size(); ++i) {
      if (repeated(i)) continue;
      const Role& role = p_.roles[i];
      const double size = storage_bytes(i);
      if (staged(i)) {
        stage_bytes_ += size;
      } else if (level_.storage[i] == Storage::kShared) {
        fixed += size;
        if (windowed(i)) {
          window_bytes_ += size;
          windowed_turns_ = std::max(windowed_turns_, turns(role));
          held += kWindowRegisters * size;
        } else if (looped(i)) {
          note_register_load(role, size);
        } else if (role.is_load && !load(i).in_cluster) {
          prologue_bytes_ += size;
        }
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
        if (role.is_load && !load(i).in_cluster) note_register_load(role, size);
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
    const double guessed = (held + most) / 4 / threads + kept;
    const double allowed = std::min<double>(uses_mma() ? kMostRegisters : kMostRegistersScalar,
                                            m_.registers_per_sm / threads);
    if (guessed > allowed && known_.registers == 0) {
      if (!known_.finished) return false;
      spilled_bytes_ = 4 * (guessed - allowed);
    }
    const double registers = known_.registers > 0 ? known_.registers : std::min(guessed, allowed);
    others_ = std::min({m_.registers_per_sm / (registers * threads), m_.threads_per_sm / threads,
                        m_.blocks_per_sm});
    fixed_ = fixed;
    if (stage_bytes_ > 0) {
      const double limit = std::min({budget / stage_bytes_, count(p_.loops), double{kMostStages}});
      most_stages_ = std::max(1, static_cast<int>(limit));
      least_stages_ = std::min(2, most_stages_);
    }
    return true;
  }

  // What does not fit registers goes through the first-level cache, in each iteration.
  void spill() {
    const double run = count(p_.loops) * out_.trimmed_mean;
    shared_ += spilled_bytes_ * 32.0 * level_.warps * blocks_ * run;
  }

  void use_stages(int stages) {
    out_.stages = stages;
    out_.shared_bytes = fixed_ + stage_bytes_ * stages;
    const double shared = out_.shared_bytes + kReservedShared;
    out_.resident = std::max(1, static_cast<int>(std::min(m_.shared_per_sm / shared, others_)));
  }

  // More stages put more bytes in flight, and may leave an SM room for fewer blocks.
  void choose_stages() {
    KernelPrice best = out_;
    for (int stages = least_stages_ + 1; stages <= most_stages_; ++stages) {
      use_stages(stages);
      out_.us = total();
      if (out_.us < kStagesGain * best.us) best = out_;
    }
    out_ = best;
  }

  void note_register_load(const Role& role, double size) {
    if (count(role.loops) <= 1) {
      prologue_bytes_ += size;
      return;
    }
    register_stage_ += size;
    double& most = loaded_[static_cast<size_t>(role.loop) % loaded_.size()];
    most = std::max(most, turns(role));
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

  void add(const OperandCost& operands, double times) {
    shared_ += times * operands.shared_bytes;
    alu_ += times * operands.instructions;
  }

  void arithmetic() {
    for (uint32_t i = 0; i < p_.roles.size(); ++i) {
      if (repeated(i)) continue;
      const Role& role = p_.roles[i];
      const double times = blocks_ * turns(role);
      const double elements = times * count(role.tile | role.reduced);
      if (level_.mma[i].warpgroup) {
        tensor_ += times * level_.mma[i].padded / m_.warpgroup_gain;
      } else if (level_.mma[i].use) {
        tensor_ += times * level_.mma[i].padded;
        add(operands_of_warps(p_, level_, extents_, i), times);
      } else {
        alu_ += elements * (role.work.alu + converted(i));
        sfu_ += elements * role.work.sfu;
        add(operands_of_threads(p_, level_, extents_, i), times);
        if (role.contraction) shared_ += elements * scalar_bytes(role);
      }
      if (level_.storage[i] == Storage::kShared) {
        shared_ += times * storage_bytes(i);
        meets_ = meets_ || !role.is_load;
      }
      if (in_turn(i) && count(role.loops) > 1) steps_ += turns(role);
      const bool alone = !level_.mma[i].use && count(role.reduced) > 32;
      if (alone && count(role.loops) == 1) serial_us_ += reduce_us();
      if (alone && count(role.loops) > 1 && !role.accumulated.empty()) ended_ = true;
      if (level_.mma[i].use && !level_.mma[i].warpgroup) {
        const double atoms = level_.mma[i].padded / kAtom / level_.warps;
        chain_us_ += turns(role) * atoms * kAtomUs;
      }
      add_rows(i);
    }
  }

  // Waited for by what reads it: not a value that a thread makes of others as they come.
  bool in_turn(uint32_t i) const {
    const Role& role = p_.roles[i];
    const bool computes = role.is_reduction || role.work.alu + role.work.sfu > 0;
    return !role.is_load && computes && !level_.fragment[i];
  }

  // Sums over the rows of what a product leaves in registers: eight lanes and all warps have rows,
  // so that each thread shuffles a partial sum for each of its columns and passes it on, which
  // takes the wires of shared memory, 128 bytes at a time.
  void add_rows(uint32_t i) {
    const Role& role = p_.roles[i];
    if (!role.is_reduction || level_.mma[i].use) return;
    for (uint32_t j = 0; j < p_.roles.size(); ++j) {
      if (!level_.mma[j].use) continue;
      const auto& users = p_.roles[j].users;
      if (std::find(users.begin(), users.end(), i) == users.end()) continue;
      const Contraction& c = *p_.roles[j].contraction;
      const AxisSet rows = level_.mma[j].swap ? c.n : c.m;
      if ((rows & role.reduced).empty()) continue;
      const double held = count(role.tile) / kLanesOfRow;  // columns of a thread
      const double times = blocks_ * count(role.loops - role.accumulated) * level_.warps;
      shared_ += times * held * kRowTurns * kLine;
    }
  }

  // What a multiply-add without tensor cores reads from shared memory: an element of either
  // operand, one of them once for all the sums of a row that a thread holds.
  double scalar_bytes(const Role& role) const {
    const double held = std::max(1.0, count(role.tile) / (32.0 * level_.warps));
    double least = 0, most = 0;
    for (uint32_t operand : {role.contraction->left, role.contraction->right}) {
      if (level_.storage[operand] == Storage::kReg) continue;
      const auto size = static_cast<double>(bytes(level_.dtype[operand]));
      least = least == 0 ? size : std::min(least, size);
      most = std::max(most, size);
    }
    return kScalarConflict * (least + most / held);
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
      const Traffic& t = load(i);
      if (unaligned(t)) return kWindowSlots;
      if (staged(i) && t.aligned < kCopyWord) return kCopySlots * t.element_bytes / t.aligned;
      return shared || count(p_.roles[i].loops) == 1 ? 0 : kLoadSlots * odd;
    }
    return shared && narrow ? kStoreSlots * odd : kConvertSlots;
  }

  // Results that threads hold along another axis than the one in which they are stored are turned
  // in shared memory, where a column is read by as many lanes as it has vectors, all in one bank.
  void turn(const Traffic& store) {
    constexpr double kFew = 4, kVectorBytes = 16;
    const double tile = count(p_.roles[store.computation].tile);
    if (uses_mma() || store.element_bytes >= 4 || tile <= kFew * 32 * level_.warps) return;
    const Traffic* most = nullptr;
    for (const Traffic& t : p_.traffic) {
      const bool held = !t.is_store && level_.storage[t.computation] == Storage::kReg;
      if (held && (most == nullptr || bytes_of(t) > bytes_of(*most))) most = &t;
    }
    if (most == nullptr || most->row.empty() || !(most->row & store.row).empty()) return;
    const double lanes =
        std::clamp(count(store.row) * store.element_bytes / kVectorBytes, 1.0, 32.0);
    shared_ += blocks_ * tile * 4 * lanes;
  }

  double bytes_of(const Traffic& t) const { return count(t.index - p_.grid) * t.element_bytes; }

  // Blocks that can run at once.
  double places() const {
    return known_.cluster > 1 ? cluster_places(m_, known_.cluster, out_.resident)
                              : m_.sms * out_.resident;
  }

  void transfers() {
    const double busy = std::min(blocks_, places());
    for (size_t i = 0; i < p_.traffic.size(); ++i) {
      const Traffic& t = p_.traffic[i];
      if (!t.is_store && repeated(t.computation)) continue;
      if (t.is_store) turn(t);
      if (t.is_store && unaligned(t)) {
        // One by one.
        const double elements = blocks_ * count((t.index | t.times) - p_.grid) * share(t.loop);
        alu_ += elements * kStoreSlots;
      }
      const double accesses = blocks_ * count((t.index | t.times) - p_.grid) * share(t.loop);
      const double moved = accesses * t.element_bytes;
      if (t.in_cluster) {
        shared_ += moved * (t.is_store ? 1 : kRemoteTurns);
        continue;
      }
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
      // Those that begin anywhere lie in one burst more.
      const double cut = unaligned(t) && !t.is_store ? 1 + kBurst / run : 1;
      const double line = 1 + kPartOfLine * std::max(0.0, kLine / run - 1);
      const bool copied = bulk_ && !t.is_store && staged(t.computation);
      const double waste =
          std::max(line, std::pow(std::max(1.0, kShortestRun / run), copied ? kShortRunLoss : 1));
      const double slice = unique / std::max(1.0, count(t.index & p_.grid));
      if (!again || slice * busy > kMostL2Share * m_.l2_bytes) {
        (t.is_store ? written_ : read_) += unique * (unique > 1e5 ? waste * cut : 1);
      }
      if (t.is_store) continue;
      loaded_unique_ += std::min(unique, moved);
      loaded_again_ += std::max(0.0, moved - unique);
    }
  }

  // Bytes that a block has asked for and not yet got, of its pipeline.  One stage is being read;
  // with more of them the next load is issued sooner after that.  Bulk copies fill a stage as soon
  // as it was read, which takes a `share` of an iteration.
  double staged_ahead(double share) const {
    if (!bulk_) {
      const double ahead = out_.stages - 1 + 0.5 * (out_.stages - 2.0) / out_.stages;
      return stage_bytes_ * std::max(ahead, kLeastInFlight);
    }
    return stage_bytes_ * std::max(out_.stages - kHeldBulk - kReadBulk * share, kLeastInFlight);
  }

  // What the last of several waves adds to the time of memory: fewer blocks ask for less at once,
  // and so for a lower rate.  Where they are enough for the full one it adds nothing, since blocks
  // start as others end.
  double last_wave_loss(double in_flight) const {
    const double all = blocks_ / places(), last = all - std::floor(all);
    // The blocks of a cluster leave together, and others come when all of their places are free.
    if (known_.cluster > 1) return std::ceil(all) / all - 1;
    const double rate = hbm_rate(m_, in_flight), late = hbm_rate(m_, in_flight * last);
    return last > 0 && late > 0 ? last / all * (rate / late - 1) : 0;
  }

  // Parts that blocks keep for one another are there when they have met.
  bool waits_for_memory() const {
    bool near = false, far = false;
    for (const Traffic& t : p_.traffic) {
      if (!t.is_store) (t.in_cluster ? near : far) = true;
    }
    return far || !near;
  }

  // Blocks that the busiest of some places works through, in those of the mean: `even` where all
  // are alike.
  double busiest(double of, double even) const {
    return iterations_.longest > 1 ? busiest_place(iterations_, blocks_, of) : even;
  }

  double reduce_us() const { return kReduceUs + kReduceWarpUs * level_.warps; }

  // Behind the loops, what warps have of the same sums is added up; all sums at one barrier.
  double end() const {
    if (joined_ > 1) return kJoinUs * std::max(1.0, joined_ / kJoinWarps);
    return ended_ ? reduce_us() : 0;
  }

  double total() {
    const double busy = std::min(blocks_, places());
    const double per_sm = std::ceil(blocks_ / places() * out_.resident);
    const bool queue_up = blocks_ > places();
    const double waves = busiest(places(), std::max(1.0, std::ceil(blocks_ / places())));
    // The busiest SM works through its blocks; too few warps on it leave issue slots empty.
    const double load = busiest(m_.sms, per_sm) * m_.sms / std::max(blocks_, 1.0);
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
    const double steps = steps_ * (bulk_ ? kStepUsBulk : kStepUs) * waves;
    // A warp issues one product after the other, however idle the tensor cores are.
    const double chain = chain_us_ * waves;
    double computing = std::max(longest + apart * (all - longest), chain) + kStepShare * steps;
    const double least = (read_ + written_) / hbm_peak(m_);
    const double staged = staged_ahead(std::min(1.0, computing / std::max(least, 1e-9)));
    const double unstaged = std::min(kSingleShot, register_stage_ + prologue_bytes_);
    // What the L2 has is under way for a shorter time, and leaves less of a stage for memory.
    const double from_memory = loaded_unique_ / (loaded_unique_ + kHitTime * loaded_again_ + 1);
    const double in_flight =
        std::max({staged * from_memory + window_bytes_, unstaged, 512.0}) * busy / m_.sms;
    const double used = std::min(1.0, blocks_ / m_.sms);
    // What is loaded at once by blocks that all run at once waits for memory once, which is the
    // fill.
    const double looped = stage_bytes_ + window_bytes_;
    const bool streams = queue_up || looped + register_stage_ > 0;
    const double idle = bulk_ && stage_bytes_ > 0 ? kIdleShareBulk : kIdleShare;
    // Requests of all SMs that queue for long get in each other's way.
    const double queue = std::max(0.0, staged * busy / m_.sms / kLongQueue - 1);
    const double rate =
        streams ? hbm_rate(m_, in_flight) * (idle + (1 - idle) * used) / (1 + kQueueLoss * queue)
                : hbm_peak(m_) * std::min(1.0, kMostShareOfSm * used);
    // Writes need no bytes in flight to be waited for, but they share the wires.
    const double moved = std::max(read_ / rate, (read_ + written_) / hbm_peak(m_));
    double queued = 0;
    if (!streams) {
      const double rest = std::max(0.0, prologue_bytes_ * busy / m_.sms - kSingleShot);
      queued = rest * m_.sms / hbm_rate(m_, kSingleShot);
    }
    double hbm = std::max(moved, queued) * (queue_up ? 1 + last_wave_loss(in_flight) : 1);
    // The more of them there are, the more SMs have more than their share and others none.
    if (known_.cluster > 1) hbm *= 1 + kClusterSpread * used;
    // Without stages windows are not fetched ahead either.
    const double window_us = kWindowUs + (out_.stages > 1 ? 0 : kLoadUs);
    double waited = (join_us_ + windowed_turns_ * window_us) * waves;
    for (double turns : loaded_) waited += turns * kLoadUs * waves;
    waited += (pipelines_ - 1) * m_.fill_us * waves;
    double loading = hbm;
    if (looped == 0) {
      // A block computes when it has loaded; only other blocks on the SM load meanwhile.
      loading += computing / std::min<double>(out_.resident, per_sm);
    }
    const double l2_rate = m_.l2_rate * (bulk_ && stage_bytes_ > 0 ? kL2GainBulk : 1);
    const std::array<double, 5> t = {loading, l2_ / l2_rate, computing, steps,
                                     (per_sm - 1) * kBlockUs};
    out_.by_resource = {loading, t[1], units[0], units[1], units[2], units[3], t[3], t[4]};
    double sum = 0, most = 0;
    for (double x : t) sum += x, most = std::max(most, x);
    // Where blocks queue one starts while others run, if these keep the memory busy.
    const double share = rate / hbm_peak(m_);
    if (queue_up && most > t[4]) sum -= share * t[4];
    // Of a bulk stage the first rows come long before the last.
    const double pipeline_fill = looped * busy / rate * (bulk_ ? 0.5 : 1);
    // With few stages the copies of the next wait until all threads have read the last.
    const double apart_loss = out_.stages == 2   ? kComputeLossTwo
                              : out_.stages == 3 ? kComputeLossThree
                                                 : kComputeLossBulk;
    const double compute_loss = bulk_ ? apart_loss : kComputeLoss;
    return m_.launch_us + (waits_for_memory() ? m_.fill_us : 0) + most +
           kOverlapLoss * (sum - most) +
           (compute_loss - kOverlapLoss) * std::min(loading, computing) + pipeline_fill + waited +
           serial_us_ + end();
  }

  const KernelProfile& p_;
  const std::vector<int64_t>& extents_;
  const Machine& m_;
  ThreadLevel& level_;
  const Known& known_;
  KernelPrice out_;
  Iterations iterations_;  // none where all blocks run all
  int least_stages_ = 1, most_stages_ = 1;
  double pipelines_ = 1;
  bool bulk_ = false;
  double fixed_ = 0;   // bytes of shared memory besides the stages
  double others_ = 1;  // blocks that an SM holds as far as registers and threads go
  double blocks_ = 1;
  double stage_bytes_ = 0, window_bytes_ = 0, register_stage_ = 0, prologue_bytes_ = 0;
  double read_ = 0, written_ = 0, l2_ = 0, shared_ = 0, tensor_ = 0, alu_ = 0, sfu_ = 0, steps_ = 0;
  double chain_us_ = 0;  // of a warp, through its products
  double loaded_unique_ = 0, loaded_again_ = 0;
  double serial_us_ = 0, join_us_ = 0, windowed_turns_ = 0;
  double spilled_bytes_ = known_.spilled_bytes;  // of a thread
  std::array<double, 8> loaded_{};  // by loop: iterations that wait for loads to registers
  double joined_ = 1;               // warps
  bool ended_ = false;              // sums by threads are complete behind a loop
  bool meets_ = false;              // threads of a block pass values on through shared memory
};

}  // namespace

KernelPrice price(const KernelProfile& profile, const Kernel& kernel,
                  const std::vector<int64_t>& extents, const Machine& machine, int warp_choice,
                  ThreadLevel& level, const Known& known) {
  return Pricer(profile, kernel, extents, machine, warp_choice, level, known).run();
}

KernelPrice price(const KernelProfile& profile, const Kernel& kernel,
                  const std::vector<int64_t>& extents, const Machine& machine, int warp_choice,
                  const Known& known) {
  ThreadLevel level;
  return price(profile, kernel, extents, machine, warp_choice, level, known);
}

}  // namespace sundog::search
