// Who touched which byte of shared memory last, and what is ordered with what.
//
// The order is happens-before with one vector clock a warp: clock(w, v) is the epoch of warp v up
// to which warp w has seen everything.  A warp's own epoch grows at each of its synchronisations,
// so an earlier access is ordered before one of mine if its warp's epoch then is below the epoch
// that my warp has seen; within a warp, if a sync_warp or barrier lay between, or it was the same
// lane.  The clocks give the same answer for every order in which the emulator happens to run the
// threads, so a missing barrier is found even where the numbers come out right.
//
// Other blocks of a cluster read, and never write.  They see what was written before the last
// barrier of the cluster, and what they have read since then must not be written.
//
// A cell describes one byte, or 16 aligned bytes for as long as all accesses cover them whole
// (copies and ldmatrix do): last write, the reads since (FastTrack, Flanagan and Freund 2009: one
// reader while readers are ordered, one slot a warp when not), and an asynchronous copy in flight.
#ifndef SUNDOG_EMULATOR_SHADOW_H
#define SUNDOG_EMULATOR_SHADOW_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace sd::emulator {

// A thread, or a warp as a whole: warp * 64 + lane.
using Actor = uint16_t;
inline constexpr Actor kAllLanes = 32;   // a collective: every lane took part
inline constexpr Actor kSomeLanes = 33;  // several lanes, each for itself
inline constexpr Actor kNobody = 0xffff;
inline constexpr Actor kCrowd = 0xfffe;  // readers of several warps: epoch is an index

enum class Conflict {
  kNone,
  kWriteWrite,
  kReadAfterWrite,
  kWriteAfterRead,
  kInFlight,
  kUninitialised,
  kUnfenced,
  kWriteUnderRemoteRead
};

class Shadow {
 public:
  // Empties it for a block of `warps` warps with an arena of `bytes`.
  void reset(uint64_t bytes, int warps) {
    const std::size_t cells = (bytes + 15) / 16;
    whole_.assign(cells, Cell{});
    split_.assign(cells, 0);
    if (bytes_.size() < cells * 16) bytes_.resize(cells * 16);
    crowds_.clear();
    free_crowds_.clear();
    warps_ = warps;
    tick_ = 1;
    for (int w = 0; w < warps; ++w) std::fill_n(clock_[w], warps, 1u);
    fences_.assign(static_cast<std::size_t>(warps) * 32, 0);
    remote_.clear();
    released_ = 0;
  }

  // A barrier of the cluster: everything so far is ordered before everything from now on.
  void cluster_barrier() {
    const uint32_t all = warps_ == 32 ? ~0u : (1u << warps_) - 1;
    join(all, all, nullptr);
    released_ = tick_;
    remote_.clear();
  }

  // Notes a read of [offset, offset + bytes) by another block.
  Conflict remote_read(uint64_t offset, int bytes, Actor& other) {
    if (remote_.empty()) remote_.assign(whole_.size() * 16, 0);
    for (uint64_t i = offset; i < offset + static_cast<uint64_t>(bytes); ++i) {
      remote_[i] = 1;
      const Cell& cell = split_[i / 16] ? bytes_[i] : whole_[i / 16];
      other = cell.writer;
      if (cell.in_flight) return Conflict::kInFlight;
      if (cell.writer == kNobody) return Conflict::kUninitialised;
      if (cell.write_epoch >= released_) return Conflict::kReadAfterWrite;
    }
    return Conflict::kNone;
  }

  // What the thread wrote so far may be read past the threads.
  void fence(Actor me) { ++fences_[thread_of(me)]; }

  uint32_t tick() { return ++tick_; }
  uint32_t* clock(int warp) { return clock_[warp]; }
  const uint32_t* clock(int warp) const { return clock_[warp]; }
  void advance(int warp) { clock_[warp][warp] = ++tick_; }

  // Everything that the warps of `mask` did is ordered before everything that those of `acquire` do
  // from now on; `extra` holds released clocks, or is nullptr.
  void join(uint32_t mask, uint32_t acquire, const uint32_t* extra) {
    uint32_t joined[32] = {};
    if (extra) std::copy_n(extra, warps_, joined);
    for (int w = 0; w < warps_; ++w) {
      if (!(mask >> w & 1)) continue;
      for (int v = 0; v < warps_; ++v) joined[v] = std::max(joined[v], clock_[w][v]);
    }
    const uint32_t now = ++tick_;
    for (int w = 0; w < warps_; ++w) {
      if (mask >> w & 1) joined[w] = now;
    }
    for (int w = 0; w < warps_; ++w) {
      if (acquire >> w & 1) std::copy_n(joined, warps_, clock_[w]);
    }
  }

  // An earlier access of `earlier` at `epoch` is ordered before what `me` does now.
  bool ordered(Actor earlier, uint32_t epoch, Actor me) const {
    const int warp = me >> 6, other = earlier >> 6;
    if (epoch < clock_[warp][other]) return true;
    return other == warp && ((earlier & 63) == kAllLanes || (earlier == me && (me & 63) < 32));
  }

  // Notes an access to [offset, offset + bytes); `other` becomes whom it conflicts with.
  // kAsyncRead: by a unit that does not see what threads wrote before they fence it.
  // kBulkStart, kBulkLand: a copy by such a unit; what it wrote needs no fence.
  enum class Kind { kRead, kAsyncRead, kWrite, kCopyStart, kCopyLand, kBulkStart, kBulkLand };
  Conflict access(uint64_t offset, int bytes, Kind kind, Actor me, Actor& other) {
    Conflict worst = Conflict::kNone;
    const uint64_t end = offset + static_cast<uint64_t>(bytes);
    if (!reads(kind) && !remote_.empty() &&
        std::any_of(&remote_[offset], &remote_[end - 1] + 1, [](uint8_t r) { return r != 0; })) {
      worst = Conflict::kWriteUnderRemoteRead;
      other = me;
    }
    while (offset < end) {
      const uint64_t cell = offset / 16;
      const uint64_t stop = std::min(end, cell * 16 + 16);
      if (stop - offset == 16 && !split_[cell]) {
        note(whole_[cell], kind, me, other, worst);
        offset = stop;
        continue;
      }
      if (!split_[cell]) {
        split_[cell] = 1;
        std::fill_n(&bytes_[cell * 16], 16, whole_[cell]);
        if (whole_[cell].reader == kCrowd) copy_crowd(cell);
      }
      for (; offset < stop; ++offset) note(bytes_[offset], kind, me, other, worst);
    }
    return worst;
  }

 private:
  struct Cell {
    uint32_t write_epoch = 0;
    uint32_t read_epoch = 0;
    Actor writer = kNobody;
    Actor reader = kNobody;
    uint8_t in_flight : 1 = 0;
    uint8_t is_bulk : 1 = 0;  // written by a bulk copy
    uint8_t fences = 0;       // of the writer, when it wrote (modulo 256)
  };
  struct Crowd {
    uint32_t epoch[32];  // 0: no read by this warp
    Actor reader[32];
  };

  static std::size_t thread_of(Actor a) {
    return static_cast<std::size_t>((a >> 6) * 32 + (a & 31));
  }

  void note(Cell& cell, Kind kind, Actor me, Actor& other, Conflict& worst) {
    if (kind == Kind::kBulkLand) {
      cell.in_flight = 0;
      return;
    }
    if (kind == Kind::kCopyLand) {
      cell.in_flight = 0;
      cell.fences = fences_[thread_of(me)];
      cell.writer = me;
      cell.write_epoch = clock_[me >> 6][me >> 6];
      return;
    }
    if (cell.in_flight) {
      worst = Conflict::kInFlight;
      other = cell.writer;
    } else if (cell.writer != kNobody && !ordered(cell.writer, cell.write_epoch, me)) {
      worst = reads(kind) ? Conflict::kReadAfterWrite : Conflict::kWriteWrite;
      other = cell.writer;
    } else if (past_threads(kind) && cell.writer != kNobody && worst == Conflict::kNone &&
               !cell.is_bulk && cell.fences == fences_[thread_of(cell.writer)]) {
      worst = Conflict::kUnfenced;
      other = cell.writer;
    }
    if (reads(kind)) {
      if (cell.writer == kNobody && worst == Conflict::kNone) worst = Conflict::kUninitialised;
      note_read(cell, me);
      return;
    }
    if (worst == Conflict::kNone && conflicts_with_read(cell, me, other)) {
      worst = Conflict::kWriteAfterRead;
    }
    if (cell.reader == kCrowd) free_crowds_.push_back(cell.read_epoch);
    cell.reader = kNobody;
    cell.writer = me;
    cell.write_epoch = clock_[me >> 6][me >> 6];
    cell.fences = fences_[thread_of(me)];
    cell.is_bulk = kind == Kind::kBulkStart;
    if (kind == Kind::kCopyStart || kind == Kind::kBulkStart) cell.in_flight = 1;
  }

  static bool past_threads(Kind kind) {
    return kind == Kind::kAsyncRead || kind == Kind::kBulkStart;
  }

  static bool reads(Kind kind) { return kind == Kind::kRead || kind == Kind::kAsyncRead; }

  uint32_t new_crowd() {
    if (free_crowds_.empty()) {
      crowds_.emplace_back();
      return static_cast<uint32_t>(crowds_.size() - 1);
    }
    const uint32_t index = free_crowds_.back();
    free_crowds_.pop_back();
    return index;
  }

  // The bytes of a split cell need a crowd each; the first keeps that of the whole.
  void copy_crowd(uint64_t cell) {
    for (int i = 1; i < 16; ++i) {
      const uint32_t index = new_crowd();
      crowds_[index] = crowds_[whole_[cell].read_epoch];
      bytes_[cell * 16 + static_cast<uint64_t>(i)].read_epoch = index;
    }
  }

  // Two reads by one warp.  One by the warp as a whole is ordered with all that its lanes do later,
  // so it needs no place beside one by a lane.
  static void merge(Actor& reader, uint32_t& epoch, Actor me, uint32_t now) {
    if (epoch == now && reader != me && (reader & 63) != kAllLanes) {
      if ((me & 63) != kAllLanes) reader = static_cast<Actor>((me & ~63) | kSomeLanes);
    } else {
      reader = me;
    }
    epoch = now;
  }

  void note_read(Cell& cell, Actor me) {
    const uint32_t now = clock_[me >> 6][me >> 6];
    if (cell.reader == kCrowd) {
      Crowd& crowd = crowds_[cell.read_epoch];
      merge(crowd.reader[me >> 6], crowd.epoch[me >> 6], me, now);
    } else if (cell.reader == kNobody || ordered(cell.reader, cell.read_epoch, me)) {
      cell.reader = me;
      cell.read_epoch = now;
    } else if (cell.reader >> 6 == me >> 6) {
      merge(cell.reader, cell.read_epoch, me, now);
    } else {
      Crowd crowd{};
      crowd.epoch[cell.reader >> 6] = cell.read_epoch;
      crowd.reader[cell.reader >> 6] = cell.reader;
      crowd.epoch[me >> 6] = now;
      crowd.reader[me >> 6] = me;
      cell.reader = kCrowd;
      cell.read_epoch = new_crowd();
      crowds_[cell.read_epoch] = crowd;
    }
  }

  bool conflicts_with_read(const Cell& cell, Actor me, Actor& other) const {
    if (cell.reader == kNobody) return false;
    if (cell.reader != kCrowd) {
      if (ordered(cell.reader, cell.read_epoch, me)) return false;
      other = cell.reader;
      return true;
    }
    const Crowd& crowd = crowds_[cell.read_epoch];
    for (int w = 0; w < warps_; ++w) {
      if (crowd.epoch[w] && !ordered(crowd.reader[w], crowd.epoch[w], me)) {
        other = crowd.reader[w];
        return true;
      }
    }
    return false;
  }

  int warps_ = 0;
  uint32_t tick_ = 0;
  uint32_t clock_[32][32];
  std::vector<Cell> whole_, bytes_;
  std::vector<uint8_t> split_;
  std::vector<uint8_t> fences_;  // of each thread, modulo 256
  std::vector<uint8_t> remote_;  // bytes that other blocks read since the last cluster_barrier
  uint32_t released_ = 0;        // epochs below it are before that
  std::vector<Crowd> crowds_;
  std::vector<uint32_t> free_crowds_;
};

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_SHADOW_H
