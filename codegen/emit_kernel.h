// The text of one kernel.  emit_kernel() walks the statements of the µGraph along its plan
// (core/schedule/kernel_plan.h); each file emit_*.cpp writes one sort of code.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/cuda_text.h"
#include "codegen/emit_slots.h"
#include "codegen/emit_sync.h"
#include "core/dependence.h"
#include "core/schedule/cluster.h"
#include "core/schedule/kernel_plan.h"
#include "core/schedule/kernel_scan.h"
#include "core/via.h"

namespace sundog::codegen {

// One launch of a µGraph: a kernel, and the one that its blocks run when those of a group have
// arrived, if there is one (core/via.h).
struct Launch {
  uint32_t kernel = 0;
  uint32_t joined = kNone;
};

// Blocks of a cluster of the launch; 1: there are none.
int64_t cluster_blocks(const MuGraph& graph, const Launch& launch);

// The launches of the µGraph, in order; kernels without blocks are left out.
std::vector<Launch> launches_of(const MuGraph& graph);

// Where a launch stands among those of its plan.
struct LaunchPlace {
  bool dependent = false;       // it may start before those before it are done
  bool followed = false;        // the one behind it may
  std::set<uint32_t> before;    // tensors that those before it write
  std::set<uint32_t> changing;  // tensors that are written while the launch may run
  std::set<uint32_t> passing;   // tensors that the L2 need not keep: they are large, and not read
  // Tensors that stay in the cluster, and the grid factors of the kernel that its blocks share.
  std::map<uint32_t, ClusterTensor> kept;
  AxisSet group;
};

// The whole kernel, `extern "C" __global__ void NAME(...)`: its parameters are the tensors of
// launch_parameters, in order, the counters of arrivals if a kernel is joined by last blocks, and
// tensor maps.
// `graph`: as placed_in_clusters() gives it.
// `plans`: of the kernel and, if there is one, of the joined one, whose loads are no bulk copies.
std::string emit_kernel(const MuGraph& graph, const Launch& launch,
                        const std::vector<KernelPlan>& plans, const std::string& name,
                        CudaTextOptions options, LaunchPlace place);

// Tensors that a kernel stores to; that a launch does.
std::set<uint32_t> stored_tensors(const Kernel& kernel);
std::set<uint32_t> stored_tensors(const MuGraph& graph, const Launch& launch);

// Tensors that a launch reads or writes, in the order of the µGraph's tensors: inputs, outputs,
// intermediates.
std::vector<uint32_t> launch_parameters(const MuGraph& graph, const Launch& launch);

// The computations whose loads are bulk copies: behind its pointers a kernel takes a tensor map for
// each, in this order.
std::vector<uint32_t> bulk_loads(const KernelPlan& plan);

// The type of the tensor map of a bulk load: "sd::TensorMap<sd::f16, 128, 2, ...>".
std::string tensor_map_type(const MuGraph& graph, const ComputationPlan& plan);

// An array in the registers of a thread: `count` elements of `type`, in groups of `inner`
// neighbours (Vec<type, inner>, or float[inner]); inner 1 is a plain array.
struct RegisterArray {
  std::string name;
  DType dtype = DType::kF32;
  int64_t count = 1;
  int64_t inner = 1;
  bool vector = false;  // groups are sd::Vec

  // "acc[r0][v]" for a flat index whose unit-1 part, if grouped, lies within one group.
  std::string element(const Linear& index) const;
  std::string group(const Linear& index) const;  // without the index within the group
  std::string any() const;                       // element i
  std::string declaration() const;
};

// What blocks of a group run when all `count` have arrived: the last one, or in a cluster the first
// `shares`.
struct Joined {
  Via via = Via::kLastBlock;
  std::string group, rank;  // index of the group, of the block in it
  int64_t count = 1, shares = 1;
  std::string name, body;
};

class KernelEmitter {
 public:
  KernelEmitter(const MuGraph& graph, const Kernel& kernel, const KernelPlan& plan,
                CudaTextOptions options, const LaunchPlace& place);
  // The kernel; `parameters` are their texts.
  std::string run(const std::string& name, const std::vector<std::string>& parameters,
                  const std::optional<Joined>& joined);
  // The statements of a kernel that a block of another one runs: `block` is its index as a text,
  // and its tiles begin at `arena` in the shared memory.
  std::string run_joined(const std::string& block, int64_t arena);
  // The parameters for these tensors, and for the tensor maps.
  std::vector<std::string> pointer_parameters(const std::vector<uint32_t>& tensors,
                                              const std::set<uint32_t>& stored) const;
  std::vector<std::string> map_parameters() const;
  // The index of a block among those of these grid factors: of a group, or in it.
  std::string index_text(const std::vector<AxisId>& factors) const;

 private:
  // One place in which terms are evaluated: the current element, and names of vectors loaded.
  struct Scope {
    uint32_t computation = 0;
    const Slots* slots = nullptr;
    std::map<TermId, Text> values;  // evaluated under no select
    // Name and width of the vectors loaded, by term and the branches (as in `Branch`) it stands in.
    std::map<std::pair<TermId, std::string>, std::pair<std::string, int>> vectors = {};
    std::string branches = {};              // in which a value is asked for
    std::map<TermId, TermId> instead = {};  // terms that are evaluated in place of others
    const std::pair<std::string, int>* vector_of(TermId term) const;
  };
  // A term that is evaluated only where a condition on indices holds, or does not.
  struct Branch {
    TermId select = kNone;
    bool taken = true;
    std::string key() const { return std::to_string(select) + (taken ? "+" : "-"); }
  };
  static std::string branch_key(const std::vector<Branch>& branches);
  // A maximum of products with one positive factor, a scalar: the factor is taken out.
  struct MaxOfMultiples {
    TermId product = kNoTerm, rest = kNoTerm;  // the product and its other factor
    std::string factor;
  };
  // Selects of a computation that take their first branch all over the tile where `test` holds.
  struct SettledMasks {
    std::string test;
    std::map<TermId, TermId> branches;
  };
  // How threads write the elements they hold into a tile.
  struct TileWriter {
    std::string test;  // of the threads that write
    int width = 1;     // elements written at once, collected in `vec`
    int pieces = 1;    // of that width, of a thread's run of neighbours
    AxisSet edges;     // axes along which a thread may hold padding
    std::string declaration(DType dtype) const;
    std::string element() const;  // of `vec`, at `v`
  };

  // emit_kernel.cpp: signature, grid, statements, loops
  void declare_names();
  void signature(const std::string& name, const std::vector<std::string>& parameters,
                 int64_t cluster);
  std::string blocks_wanted() const;
  bool blocks_grow_along(AxisId f) const;
  void grid_indices(bool reversed);
  void declare_arena(bool kept);
  void statements(const std::vector<Statement>& body);
  void loop(const Loop& loop);
  bool loop_range(const Loop& loop, std::string& begin, std::string& end);
  void ring_prologue(const Loop& loop, const std::vector<uint32_t>& ring, const std::string& begin,
                     const std::string& end);
  void compute(uint32_t id);
  bool is_register_load(uint32_t id) const;
  void end_loads();
  void start_loads(const Loop& loop);
  void start_accumulators(const Loop& loop);
  std::vector<uint32_t> ring_of(const Loop& loop) const;
  bool never_empty(const Loop& loop) const;
  void finish_before(int position);

  // emit_launch.cpp: the order of kernels
  void run_last(const Joined& joined);
  void run_shares(const Joined& joined);
  void write_lines(const std::string& text);
  bool reads_before(uint32_t id) const;
  bool touches_before(const std::vector<Statement>& body) const;
  void await_loads(const std::vector<uint32_t>& ids);
  void await_kernels();

  // emit_expression.cpp: terms at one element
  Text value(Scope& scope, TermId term, const std::string& guard);
  Text read_input(Scope& scope, TermId term, const InputTerm& input, const std::string& guard);
  static Text fetched_element(const Slots& slots, const std::pair<std::string, int>& vectors);
  Text read_local(Scope& scope, TermId term, const LocalTerm& local, const std::string& guard);
  std::string condition_text(const Coordinates& at, const IndexCondition& condition,
                             bool holds = true) const;
  void prepare_vectors(Scope& scope, TermId root);
  void prepare_input(Scope& scope, TermId term, const InputTerm& input,
                     const std::vector<Branch>& branches);
  bool read_once(const Slots& slots, TermId term, const InputTerm& input) const;
  void guarded_load(const std::string& element, const std::string& load,
                    const std::vector<std::string>& tests);
  void prepare_local(Scope& scope, TermId term, const LocalTerm& local);
  std::string presence(const Slots& slots, uint32_t id, bool operand, AxisSet edges);
  std::vector<std::string> bound_tests(const Coordinates& at,
                                       const std::vector<Bound>& bounds) const;
  Linear to_linear(const Coordinates& at, const Affine& e) const;
  std::string element_address(uint32_t tensor, const std::vector<IndexExpr>& index,
                              const Coordinates& at);
  std::string element_index(uint32_t tensor, const std::vector<IndexExpr>& index,
                            const Coordinates& at);
  Coordinates run_start(const Slots& slots, int64_t element) const;
  std::vector<std::string> run_tests(const Slots& slots, TermId term, const Coordinates& at,
                                     const std::vector<Bound>& bounds) const;
  bool kept(uint32_t tensor) const { return place_.kept.contains(tensor); }
  // Of a tensor that stays in the cluster: the block that has the element, where in its memory.
  std::array<std::string, 2> cluster_place(uint32_t tensor, const std::vector<IndexExpr>& index,
                                           const Coordinates& at);

  // emit_load.cpp: shared tiles
  void copy_async(uint32_t id, const std::string& base);
  void async_load(uint32_t id);
  std::string tile_base(uint32_t id) const;  // pointer to the current copy
  Linear tile_index(const SharedTile& tile, const Coordinates& at) const;
  void fill_padding(uint32_t id);
  void write_tile(uint32_t id, const Layout& layout);
  int tile_vector(const SharedTile& tile, const Slots& slots) const;
  std::vector<Coordinates> run_pieces(const Slots& slots, int width) const;
  TileWriter tile_writer(uint32_t id, const Slots& slots) const;
  static std::string rounded(const std::string& text, DType dtype);
  void write_element(uint32_t id, const Slots& slots, const TileWriter& writer,
                     const std::string& text);
  void flush_vector(uint32_t id, const Slots& slots, const TileWriter& writer);
  void barrier(Hazards::Need need);
  void sync_threads();
  void read_barrier(const std::vector<uint32_t>& ids);
  void write_barrier(uint32_t id);

  // emit_window.cpp: rows that begin anywhere
  std::string window_of(uint32_t id, const Slots& slots, int64_t part) const;
  void declare_windows(uint32_t id);
  void fetch_windows(uint32_t id);
  void take_windows(Scope& scope, TermId term, const InputTerm& input);
  void start_first_windows();
  void fetch_next_windows(uint32_t id);

  // emit_elementwise.cpp
  void elementwise(uint32_t id);
  void element_loops(uint32_t id, const Slots& slots, const TileWriter& writer,
                     const std::map<TermId, TermId>& instead);
  std::string element_mask(uint32_t id, const Slots& slots);
  std::string raw_vector(uint32_t id, const Scope& scope) const;

  // emit_mask.cpp
  std::optional<SettledMasks> settled_masks(uint32_t id, TermId root, AxisSet tile) const;
  void with_settled_masks(uint32_t id, TermId root, AxisSet tile,
                          const std::function<void(const std::map<TermId, TermId>&)>& emit);
  // emit_softmax.cpp
  std::optional<MaxOfMultiples> max_of_multiples(uint32_t id);
  Text folded(TermId term);
  Layout rescaled_rows(uint32_t id) const;
  uint32_t rescaled_first(uint32_t id) const;
  RegisterArray row_array(uint32_t id, const std::string& suffix) const;
  void declare_scale(uint32_t id);
  void rescale(uint32_t id, const RegisterArray& array);
  void find_scale(uint32_t id);
  std::string exp_difference(const std::string& x, const std::string& y);
  // emit_reduce.cpp
  void reduction(uint32_t id);
  void reduce_loops(uint32_t id, const RegisterArray& into, const std::string& only,
                    const std::optional<MaxOfMultiples>& multiples);
  void finish(const std::vector<uint32_t>& ids, bool add);
  void finish_values(uint32_t id, bool add);
  void combine_lanes(uint32_t id);
  std::vector<std::string> edge_tests(uint32_t id, const Slots& slots, const Coordinates& at) const;
  void scatter_parts(uint32_t id);
  std::string gather_by_lanes(uint32_t id, int width, int words);
  std::string gather_run(uint32_t id, const Slots& slots);
  Text gathered(uint32_t id, const Slots& slots);
  void add_into(uint32_t id);
  void fill(const RegisterArray& array, double value);
  void for_all(const RegisterArray& array, const std::string& statement);  // of array.any()
  std::string target_extra_test(uint32_t id) const;

  // emit_mma.cpp
  struct Fragments;  // names and loop variables of one product
  void mma_loops(uint32_t id, const RegisterArray& into, const std::string& only);
  void mma_step(const Fragments& x);
  void fragment_origin(Fragments& x, bool a_side);
  void load_fragment(const Fragments& x, bool a_side, bool pair, const std::string& atom);
  void load_matrix(const Fragments& x, bool a_side, bool pair, const std::string& atom);
  void load_columns(const Fragments& x, bool a_side, const std::string& at);
  std::string fragment_word(const Fragments& x, bool a_side, const std::string& atom,
                            int word) const;
  void row_sum(uint32_t id, const RegisterArray& into);
  void multiply(const Fragments& x, bool second, const std::string& b0, const std::string& b1);

  // emit_bulk.cpp
  const BulkLoop* bulk_loop(const Loop& loop) const;
  std::string ring_name(const BulkLoop& bulk) const;
  std::string map_name(uint32_t id) const;
  void start_copies();
  void copy_stage(const Loop& loop, const BulkLoop& bulk, const std::string& index);
  void bulk_copies(uint32_t id, const std::string& full);
  void start_stages(const BulkLoop& bulk);
  void await_stage(const Loop& loop, const BulkLoop& bulk, const std::string& begin,
                   const std::string& end);
  void release_stage(const BulkLoop& bulk);

  // emit_warpgroup.cpp
  void warpgroup_product(uint32_t id, const RegisterArray& into, bool fresh);
  void warpgroup_step(uint32_t id, const RegisterArray& into,
                      const std::array<std::string, 2>& tiles, int64_t group, bool fresh);
  std::string matrix_tile(uint32_t operand, AxisId k, const std::string& first_row);
  std::string step_text(uint32_t operand, AxisId k) const;
  std::vector<std::string> register_words(uint32_t id, int64_t group) const;
  void settle_products();
  void settle_products_for(uint32_t id);

  // emit_store.cpp
  struct StoreAccess;  // bounds and width of one store
  void store(const Store& store, const StorePlan& how);
  StoreAccess store_access(const Store& store, const StorePlan& how, const Slots& slots) const;
  std::string store_threads(const Store& store, const StorePlan& how) const;
  std::string store_tests(const StoreAccess& access, const Coordinates& at);
  void store_loops(const StoreAccess& access, const Slots& slots);
  std::string raw_source(const std::string& text, uint32_t id, DType dtype,
                         bool from_registers) const;

  // names and plans
  const Computation& computation(uint32_t id) const { return kernel_.computations[id]; }
  const ComputationPlan& plan(uint32_t id) const { return plan_.computations[id]; }
  int64_t extent(AxisId f) const { return kernel_.factors[f].extent; }
  AxisSet tile_axes(uint32_t id) const;
  AxisSet bound(uint32_t id) const;
  std::vector<Bound> read_bounds(uint32_t id, const InputTerm& input) const;
  const ReduceTerm* reduce_of(uint32_t id) const;
  RegisterArray result_array(uint32_t id) const;
  RegisterArray part_array(uint32_t id) const;
  bool separate_part(uint32_t id) const;
  bool fresh_each_time(uint32_t id) const;  // no accumulator, or combined at each evaluation
  Region region(const SharedTile& tile) const;
  std::string describe(uint32_t id) const;

  const MuGraph& graph_;
  const Kernel& kernel_;
  const KernelPlan& plan_;
  const LaunchPlace& place_;
  KernelScan scan_;
  std::vector<Dependence> dependences_;
  AxisSet grid_, looped_;
  Writer out_;
  CudaText text_;
  Hazards hazards_;
  std::vector<std::string> names_, factors_, tensors_;  // computations, factors, tensors
  std::vector<const Loop*> open_;                       // loops around, outermost first
  int position_ = 0;
  size_t next_store_ = 0;
  int64_t arena_ = 0;                       // where the tiles begin in the block's shared memory
  bool waited_ = false;                     // for the kernels before
  bool warpgroups_ = false;                 // some product is one of a warp group
  std::vector<uint32_t> in_flight_;         // products started and not yet waited for
  std::set<uint32_t> started_;              // loads ahead of their place in the statements
  int64_t loads_ = 0;                       // of a thread, since the last use of one
  std::map<AxisId, std::string> loop_end_;  // of the loops around
  std::map<AxisId, std::string> stage_of_;  // loops with a ring: the variable of its stage
};

}  // namespace sundog::codegen
