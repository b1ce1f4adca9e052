// The memory accesses of an emitted kernel, and which of them may meet: a walk over its text with
// symbolic thread, block and loop indices (verify/smt_safety.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "verify/emitted_syntax.h"
#include "verify/smt_safety.h"

namespace sundog::verify {

// An integer of the text, as SMT-LIB over bit vectors as wide as the device's, and between which
// numbers it lies.
struct SymbolicInt {
  std::string text;
  int64_t low = 0, high = 0;
  bool is_constant() const { return low == high; }
};

// Whether a statement, or one in it, is a barrier of the block.
bool has_barrier(const EmittedStatement& s);
// Whether it waits for bytes, or starts copies that count them.
bool has_stages(const EmittedStatement& s);
// Bytes of an element type, 0 if it is none.
int64_t bytes_of(const std::string& type);

struct MemoryAccess {
  // kCopy: a write by cp.async; kBulk: one by a bulk copy; kProduct: a read by a warp group's
  // product.  The last two go past the threads.
  enum Kind : uint8_t { kRead, kWrite, kCopy, kBulk, kProduct };
  Kind kind = kRead;
  std::string what;                     // for messages: "the read of xs"
  std::string memory;                   // "shared", or the parameter
  SymbolicInt address;                  // shared: in bytes of the arena; else in elements
  int64_t size = 0;                     // likewise
  int64_t end = 0;                      // it must stay in [0, end)
  std::vector<std::string> conditions;  // under which it happens
  std::string group;                    // of a bulk copy: the barriers at which it counts in
  bool joined = false;                  // by the last block of a group alone
  bool fenced = false;                  // shown to what goes past the threads
};

// Ends in `problems` if the text has what the walk does not understand.
class KernelWalk {
 public:
  KernelWalk(const EmittedFunction& function, const EmittedKernel& kernel);
  void run();

  struct Question {
    std::string what, text;
    bool race = false;
  };
  std::vector<Question> questions;
  std::vector<std::string> problems;  // not understood
  std::vector<std::string> faults;    // wrong whatever the values are

 private:
  struct Pointer {
    std::string memory;   // "shared" or the parameter
    int64_t base = 0;     // bytes in the arena
    int64_t element = 1;  // bytes
    int64_t end = 0;      // bytes of the arena, elements of the parameter
  };
  struct Address {
    std::string name;
    SymbolicInt offset;  // in elements
  };
  struct Lambda {
    std::vector<std::string> parameters;
    const EmittedStatement* body = nullptr;
  };
  // `for (v = b; v < e; ++v) { wait; barrier; if (v + A < e) load(v + A, ...); commit; ... }`
  struct Ring {
    std::string loader;
    int64_t ahead = 0;
    const EmittedStatement* issue = nullptr;  // of the copy that many iterations ahead
    bool fenced = false;                      // what has come is shown to products
  };

  // --- statements
  void statements(const std::vector<EmittedStatement>& list, size_t from = 0);
  void statement(const EmittedStatement& s);
  void declaration(const EmittedStatement& s);
  void loop(const EmittedStatement& s);
  void own_loop(const EmittedStatement& s, const SymbolicInt& begin, const SymbolicInt& end,
                const SymbolicInt& step);
  void uniform_loop(const EmittedStatement& s, const SymbolicInt& begin, const SymbolicInt& end);
  void ring_loop(const EmittedStatement& s, const Ring& ring, const SymbolicInt& begin,
                 const SymbolicInt& end);
  std::optional<Ring> ring_of(const EmittedStatement& s);
  void note_prologue(const EmittedStatement& s, const SymbolicInt& begin, const SymbolicInt& end);
  void branch(const EmittedStatement& s);
  void call_lambda(const std::string& name, const std::vector<SymbolicInt>& arguments);
  void barrier();
  // What all threads of a block must run alike: a fault if a condition around it, or one of these
  // integers, is another one in another thread.
  void run_alike(const std::string& what, const std::vector<SymbolicInt>& integers);

  // --- what happens behind the threads' backs (kernel_walk_async.cpp)
  struct TensorMap {
    int64_t element = 0, bytes = 0;  // of an element, of a box
  };
  struct Barriers {
    int64_t count = 0, arrivals = 0;  // how many there are; after how many a phase is complete
  };
  // The copies before a loop: of which tile each of them is.
  struct FirstCopies {
    int64_t ahead = 0;
    SymbolicInt at, tile;  // the tile of copy `at`, a symbol
    SymbolicInt end;       // of the tiles that there are
  };
  struct MatrixTile {
    std::string name;
    SymbolicInt start;  // bytes of the arena
    int64_t across = 0, row = 0;
  };
  struct StageLoop;
  void fault(const std::string& what);
  void add_map(const std::string& name, const std::string& type, int64_t elements);
  void bulk_copy(const Expression& e);
  std::optional<int64_t> bytes_of_copies(const std::vector<EmittedStatement>& list,
                                         const Expression& barrier);
  void set_up_barriers(const EmittedStatement& s);
  void init_barriers(const EmittedStatement& s);
  void first_copies(const EmittedStatement& s);
  void check_bytes(const std::vector<EmittedStatement>& list, const Expression& expect);
  bool find_stages(const EmittedStatement& s, StageLoop& form);
  void check_waits(const EmittedStatement& s, StageLoop& form, const std::string& where);
  void check_stage_numbers(const EmittedStatement& s, StageLoop& form, const SymbolicInt& begin,
                           const SymbolicInt& end);
  bool is_of_form(const EmittedStatement& s, const StageLoop& form) const;
  void stage_loop(const EmittedStatement& s, const SymbolicInt& begin, const SymbolicInt& end);
  void copies_of_stage(const EmittedStatement& s, const StageLoop& form, const SymbolicInt& u,
                       const SymbolicInt& begin);
  void iteration(const EmittedStatement& s, const StageLoop& form, const SymbolicInt& v,
                 const SymbolicInt& begin);
  std::optional<MatrixTile> matrix_tile(const Expression& e);
  void read_tile(const MatrixTile& tile, bool across, int64_t count);
  void product(const Expression& e);
  bool asynchronous_call(const Expression& e);
  void arrive_of_block(const Expression& e);
  void note_last(const Expression& to, const Expression& value);
  void last_block(const EmittedStatement& s);
  // --- clusters (kernel_walk_blocks.cpp)
  void cluster_barrier();
  void read_of_cluster(const Expression& at, const Expression& rank, int64_t bytes);
  void ask_cluster(const MemoryAccess& write, const MemoryAccess& read);
  void ask_joined();
  void record_shared(MemoryAccess a);

  // --- expressions
  void visit(const Expression& e);
  void visit_under(const std::optional<std::string>& condition, const Expression& e);
  void assignment(const Expression& e);
  bool call(const Expression& e);
  std::optional<Address> address_of(const Expression& e);
  std::optional<SymbolicInt> integer(const Expression& e);
  std::optional<SymbolicInt> binary_integer(const Expression& e);
  std::optional<std::string> condition(const Expression& e);
  int64_t vector_bytes(const Expression& e);
  void read_where(const Expression& call, int64_t bytes);
  void access(MemoryAccess::Kind kind, const Expression& at, int64_t bytes);
  void record(MemoryAccess a);

  // --- arithmetic
  SymbolicInt number(int64_t value) const;
  SymbolicInt plus(const SymbolicInt& a, const SymbolicInt& b) const;
  SymbolicInt minus(const SymbolicInt& a, const SymbolicInt& b) const;
  SymbolicInt times(const SymbolicInt& a, const SymbolicInt& b) const;
  SymbolicInt rest(const SymbolicInt& a, const SymbolicInt& b) const;
  std::string less(const SymbolicInt& a, const SymbolicInt& b) const;
  // A symbol in [low, high]; `uniform`: the same for all threads of a block.
  SymbolicInt symbol(int64_t low, int64_t high, bool uniform);
  void require(const SymbolicInt& symbol, const std::string& fact);

  // --- questions
  void ask_bounds(const MemoryAccess& a);
  void ask_race(const MemoryAccess& a, const MemoryAccess& b, bool same_thread_too, bool grid);
  // That two integers are always the same.
  void ask_same(const std::string& what, const SymbolicInt& a, const SymbolicInt& b);
  // That the copies before a loop are those of its first iterations.
  void ask_first(const FirstCopies& first, const SymbolicInt& begin, const SymbolicInt& end);
  std::string question(const std::vector<std::string>& assertions) const;
  void problem(const std::string& what);

  const EmittedFunction& function_;
  const EmittedKernel& kernel_;
  std::map<std::string, SymbolicInt> integers_;
  std::map<std::string, std::string> truths_;  // variables that say whether a condition holds
  std::map<std::string, Pointer> pointers_;
  std::map<std::string, Lambda> lambdas_;
  std::map<std::string, std::string> types_;               // of other variables
  std::map<std::string, std::vector<std::string>> facts_;  // of symbols
  std::vector<std::string> conditions_;
  std::vector<MemoryAccess> pending_;                        // since the last barrier
  std::vector<MemoryAccess> copies_;                         // under way
  std::map<std::string, std::vector<MemoryAccess>> stores_;  // to parameters
  using Prologues = std::map<std::string, FirstCopies>;
  Prologues prologues_;  // of rings that are still to come, by loader
  // Behind what may not have run: forgets the prologues that were not there `before` it.
  void forget_prologues(const Prologues& before);
  std::map<std::string, TensorMap> maps_;
  std::map<std::string, Barriers> barriers_;
  std::map<std::string, FirstCopies> first_copies_;  // by the barriers at which they count in
  std::map<std::string, MatrixTile> tiles_;
  std::vector<MemoryAccess> barrier_memory_;  // from when the barriers are made
  std::vector<MemoryAccess> bulk_;            // bulk copies under way
  std::vector<MemoryAccess> products_;        // what products under way read
  std::vector<MemoryAccess> unseen_;          // writes not yet shown to what goes past the threads
  struct Arrival {
    std::string group;  // of a block, as a term
    int64_t limit = 0;  // blocks of a group but one
    std::string last;   // the variable that tells the last one
  };
  std::optional<Arrival> arrival_;
  bool all_started_ = false;  // the blocks of the cluster have
  // Since the last barrier of the cluster: what blocks read of others, and wrote.
  std::vector<MemoryAccess> cluster_reads_, cluster_writes_;
  bool joining_ = false;  // in what the last block of a group runs
  std::vector<MemoryAccess> joined_reads_;
  bool stored_ = false;            // to a parameter, since the last barrier
  bool published_ = false;         // a fence of the device since then
  std::string bulk_of_;            // barriers of the copies that are walked over
  std::set<std::string> running_;  // accumulators of products under way
  std::set<std::string> changed_;  // registers written since the last warpgroup_fence
  bool closed_ = true;             // all products belong to a group that is closed
  int branches_ = 0;               // conditions around the statement
  bool is_waiting_ = false;        // in an iteration, before it waits for its stage
  bool repeating_ = false;         // a second pass over a loop: what was asked is not asked again
  int width_ = 32;
  int next_symbol_ = 0;
  int depth_ = 0;
};

}  // namespace sundog::verify
