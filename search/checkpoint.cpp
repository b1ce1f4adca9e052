// The file is a line for people, a checksum, the length, and a protobuf message.  Everything that
// decides how the search goes on is in it: the tasks that are due, the structures kept, and the
// tables, prices included.  Prices could be worked out again, but the tiles that they start from
// were those known at the time, and a price that comes out a little better than it did would make
// a resumed search differ from an unbroken one.
//
// What follows from the program alone (banks, shapes of kernels) is made again and compared by a
// fingerprint.
#include "search/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "core/proto.h"
#include "core/search.pb.h"
#include "core/text.h"
#include "search/library_kernel.h"
#include "search/lower.h"
#include "search/space_text.h"

namespace sundog::search {
namespace {

constexpr std::string_view kMagic = "sundog search checkpoint 1\n";
constexpr size_t kHead = kMagic.size() + 2 * sizeof(uint64_t);

uint64_t hash_bytes(std::string_view bytes) {
  uint64_t h = bytes.size();
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    h = mix(h, word);
  }
  return h;
}

uint64_t hash_double(uint64_t h, double value) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  return mix(h, word);
}

uint64_t hash_device(const Device& d) {
  const Machine m = machine_of(d);
  uint64_t h = hash_bytes(d.name + " " + d.arch);
  for (double x : {m.sms, m.shared_per_block, m.shared_per_sm, m.registers_per_sm, m.threads_per_sm,
                   m.blocks_per_sm, m.l2_bytes, m.l2_rate, m.shared_rate, m.tensor_rate, m.alu_rate,
                   m.sfu_rate, m.launch_us, m.fill_us, m.sync_us, m.arrive_us, m.overlap_us}) {
    h = hash_double(h, x);
  }
  for (const auto& [bytes, rate] : m.hbm) h = hash_double(hash_double(h, bytes), rate);
  return h;
}

uint64_t hash_bank(uint64_t h, const BankRun& run) {
  h = mix(h, run.bank->options().parts.bits());
  for (const RankedTerm& t : run.table.terms) {
    h = mix(h, t.axes.bits());
    h = hash_double(mix(h, (t.storable ? 2 : 0) + (t.inline_only ? 1 : 0)), t.total_bytes);
    for (const RankedNode& n : t.nodes) {
      h = mix(mix(h, static_cast<uint64_t>(n.node.kind)), n.node.axis);
      for (int o : n.operands) h = mix(h, static_cast<uint64_t>(o));
      h = hash_double(hash_double(hash_double(h, n.work.tensor), n.work.alu), n.work.sfu);
    }
  }
  for (int o : run.table.outputs) h = mix(h, static_cast<uint64_t>(o));
  return h;
}

template <class Numbers, class Field>
void put(const Numbers& numbers, Field* field) {
  field->Assign(numbers.begin(), numbers.end());
}

using AllTiles = google::protobuf::RepeatedPtrField<proto::Checkpoint::Tiles>;

void put_tiles(const std::vector<std::vector<int64_t>>& tiles, AllTiles* field) {
  for (const auto& t : tiles) put(t, field->Add()->mutable_extents());
}

std::vector<std::vector<int64_t>> tiles_of(const AllTiles& field) {
  std::vector<std::vector<int64_t>> tiles;
  for (const auto& t : field) tiles.emplace_back(t.extents().begin(), t.extents().end());
  return tiles;
}

void put_structure(const Incumbents::Entry& entry, proto::Checkpoint::Structure* to) {
  const Structure& s = entry.structure;
  to->set_bank(entry.bank);
  to->set_choice(static_cast<uint32_t>(s.choice));
  to->set_us(s.us);
  to->set_kind(s.kind);
  to->set_key(s.key);
  for (const PlacedKernel& k : s.kernels) {
    proto::Checkpoint::Kernel& kernel = *to->add_kernels();
    for (const BodyItem& i : k.body.items) {
      kernel.add_terms(static_cast<uint32_t>(i.term));
      kernel.add_nodes(i.node);
    }
    for (int o : k.body.outputs) kernel.add_outputs(static_cast<uint32_t>(o));
    kernel.set_shape(k.shape_number);
    put(k.us, kernel.mutable_us());
    put_tiles(k.tiles, kernel.mutable_tiles());
  }
}

// A body that placement could have built: ranks fall, and what is computed has its operands.
bool is_sound(const KernelBody& body, const TermTable& table) {
  RankSet here;
  for (size_t i = body.items.size(); i-- > 0;) {
    const BodyItem& item = body.items[i];
    if (item.term < 0 || item.term >= table.size() || here.top() >= item.term) return false;
    const RankedTerm& t = table.terms[static_cast<size_t>(item.term)];
    if (item.node < -1 || item.node >= static_cast<int>(t.nodes.size())) return false;
    if (item.node >= 0) {
      for (int o : t.nodes[static_cast<size_t>(item.node)].operands) {
        const bool constant = table.terms[static_cast<size_t>(o)].leaf == LeafKind::kConstant;
        if (!constant && !here.has(o)) return false;
      }
    }
    here.insert(item.term);
  }
  return !body.outputs.empty() && std::all_of(body.outputs.begin(), body.outputs.end(), [&](int o) {
    return o >= 0 && o < table.size() && here.has(o);
  });
}

std::optional<PlacedKernel> kernel_of(const proto::Checkpoint::Kernel& from, const BankRun& run,
                                      size_t choices) {
  PlacedKernel k;
  if (from.terms_size() != from.nodes_size()) return std::nullopt;
  for (int i = 0; i < from.terms_size(); ++i) {
    k.body.items.push_back({static_cast<int>(from.terms(i)), from.nodes(i)});
  }
  for (uint32_t o : from.outputs()) k.body.outputs.push_back(static_cast<int>(o));
  if (!is_sound(k.body, run.table)) return std::nullopt;
  const auto shapes = kernel_shapes(*run.bank, run.table, k.body);
  if (from.shape() >= shapes.size()) return std::nullopt;
  k.shape_number = from.shape();
  k.shape = shapes[from.shape()];
  k.us.assign(from.us().begin(), from.us().end());
  k.tiles = tiles_of(from.tiles());
  if (k.us.size() != choices || k.tiles.size() != choices) return std::nullopt;
  Lowerer lowerer(*run.bank, run.table);
  lowerer.add_kernel(k.body, k.shape, {});
  const KernelPlan& plan = lowerer.plan().kernels[0];
  const size_t lengths = plan.splits.size() + 1;
  const bool offered = as_library(lowerer.plan().graph, plan).has_value();
  for (size_t c = 0; c < choices; ++c) {
    const bool fits = k.us[c] < std::numeric_limits<float>::infinity();
    const bool right = is_library(k.tiles[c]) ? offered : k.tiles[c].size() == lengths;
    if (fits && !right) return std::nullopt;
  }
  return k;
}

std::optional<Structure> structure_of(const proto::Checkpoint::Structure& from, const BankRun& run,
                                      size_t choices) {
  Structure s;
  s.choice = from.choice();
  s.us = from.us();
  s.kind = from.kind();
  s.key = from.key();
  if (s.choice >= choices || from.kernels().empty()) return std::nullopt;
  for (const auto& k : from.kernels()) {
    auto kernel = kernel_of(k, run, choices);
    if (!kernel) return std::nullopt;
    s.kernels.push_back(std::move(*kernel));
  }
  return s;
}

void put_counts(const PlacementCounts& c, proto::Checkpoint::Counts* to) {
  to->set_states(c.states);
  to->set_kernels_priced(c.kernels_priced);
  to->set_structures(c.structures);
  to->set_cut_by_bound(c.cut_by_bound);
  to->set_cut_as_duplicate(c.cut_as_duplicate);
  to->set_cut_as_dominated(c.cut_as_dominated);
  to->set_cut_unfit(c.cut_unfit);
  to->set_cut_as_outclassed(c.cut_as_outclassed);
}

PlacementCounts counts_of(const proto::Checkpoint::Counts& c) {
  PlacementCounts counts;
  counts.states = c.states();
  counts.kernels_priced = c.kernels_priced();
  counts.structures = c.structures();
  counts.cut_by_bound = c.cut_by_bound();
  counts.cut_as_duplicate = c.cut_as_duplicate();
  counts.cut_as_dominated = c.cut_as_dominated();
  counts.cut_unfit = c.cut_unfit();
  counts.cut_as_outclassed = c.cut_as_outclassed();
  return counts;
}

// The first difference of two identities in words; nothing if there is none.
std::string difference(const CheckpointIdentity& a, const CheckpointIdentity& b) {
  if (a.version != b.version) return "another version of the tool";
  if (a.program != b.program) return "another program or other sizes";
  if (a.device != b.device) return "another device";
  if (a.space != b.space) return "another search space";
  if (a.options != b.options) return "another seed or limit of memory";
  if (a.banks != b.banks) return "another build of the tool";
  return "";
}

// The message in the bytes, if they are whole.
Status open(std::string_view bytes, proto::Checkpoint* message) {
  if (!is_checkpoint(bytes)) return bad_input("it is no checkpoint of a search");
  uint64_t checksum = 0, size = 0;
  if (bytes.size() >= kHead) {
    std::memcpy(&checksum, bytes.data() + kMagic.size(), sizeof checksum);
    std::memcpy(&size, bytes.data() + kMagic.size() + sizeof checksum, sizeof size);
  }
  const std::string_view body = bytes.substr(std::min(kHead, bytes.size()));
  if (bytes.size() < kHead || body.size() != size || hash_bytes(body) != checksum ||
      !parse_message(body, message)) {
    return bad_input("it is damaged");
  }
  return {};
}

}  // namespace

// What a bank's tables hold, as messages and back; a friend of the tables.
class TableStore {
 public:
  static void put(const PlacementTables& tables, proto::Checkpoint::Tables* to) {
    to->set_round(tables.round_);
    tables.prices_.for_each([&](uint64_t key, const Price& p) {
      if (p.round >= tables.round_) return;
      proto::Checkpoint::Price& price = *to->add_prices();
      price.set_kernel(key);
      search::put(p.us, price.mutable_us());
      put_tiles(p.tiles, price.mutable_tiles());
      price.set_cut(p.cut);
      price.set_rivals(p.rivals);
      price.set_outclassed(p.outclassed);
      price.set_round(p.round);
    });
    tables.completions_.for_each([&](uint64_t key, const LeastTime& t) {
      if (t.round >= tables.round_) return;
      proto::Checkpoint::LeastTime& least = *to->add_completions();
      least.set_terms(key);
      least.set_us(t.us);
      least.set_round(t.round);
    });
    for (const auto& [key, list] : tables.known_.efforts) {
      proto::Checkpoint::Efforts& efforts = *to->add_efforts();
      efforts.set_key(key);
      for (const Effort& e : list) {
        proto::Checkpoint::Effort& effort = *efforts.add_efforts();
        effort.set_tensor(e.work.tensor);
        effort.set_alu(e.work.alu);
        effort.set_sfu(e.work.sfu);
        effort.set_items(e.items);
        effort.set_owner(e.owner);
      }
    }
    for (const auto& [key, list] : tables.known_.reached) {
      proto::Checkpoint::Costs& costs = *to->add_reached();
      costs.set_key(key);
      for (const auto& us : list) search::put(us, costs.add_costs()->mutable_us());
    }
    for (const auto& [key, sizes] : tables.known_.good_sizes) {
      proto::Checkpoint::GoodTiles& good = *to->add_good_tiles();
      good.set_cut(key);
      search::put(sizes.tiles, good.mutable_extents());
      good.set_choice(sizes.choice);
      good.set_us(sizes.us);
    }
  }

  static void take(const proto::Checkpoint::Tables& from, size_t choices, PlacementTables* tables) {
    tables->clear();
    tables->round_ = from.round();
    for (const auto& p : from.prices()) {
      Price price{{p.us().begin(), p.us().end()},
                  tiles_of(p.tiles()),
                  p.cut(),
                  p.rivals(),
                  p.round(),
                  p.outclassed()};
      if (price.us.size() != choices || price.tiles.size() != choices) continue;
      tables->prices_.insert(p.kernel(), std::move(price));
    }
    for (const auto& t : from.completions()) {
      tables->completions_.insert(t.terms(), {t.us(), t.round(), 0, {}});
    }
    for (const auto& list : from.efforts()) {
      auto& efforts = tables->known_.efforts[list.key()];
      for (const auto& e : list.efforts()) {
        efforts.push_back({{e.tensor(), e.alu(), e.sfu()}, e.items(), e.owner()});
      }
    }
    for (const auto& list : from.reached()) {
      auto& reached = tables->known_.reached[list.key()];
      for (const auto& cost : list.costs()) {
        if (static_cast<size_t>(cost.us_size()) != choices) continue;
        reached.emplace_back(cost.us().begin(), cost.us().end());
      }
    }
    for (const auto& good : from.good_tiles()) {
      if (good.choice() >= choices) continue;
      tables->known_.good_sizes[good.cut()] = {
          {good.extents().begin(), good.extents().end()}, good.choice(), good.us()};
    }
  }
};

CheckpointIdentity checkpoint_identity(const Program& program, const Device& device,
                                       const SearchSpace& space, uint64_t seed,
                                       uint64_t memory_bytes,
                                       const std::vector<std::unique_ptr<BankRun>>& banks) {
  CheckpointIdentity id;
  id.program = hash_bytes(print(program));
  id.device = hash_device(device);
  id.space = mix(hash_bytes(print(space)), static_cast<uint64_t>(space.rounding));
  id.options = mix(seed, memory_bytes);
  for (const auto& run : banks) id.banks = hash_bank(id.banks, *run);
  return id;
}

bool is_checkpoint(std::string_view bytes) { return bytes.starts_with(kMagic); }

namespace {

void put_parts(const PartsState& parts, proto::Checkpoint::Parts* to) {
  to->set_states_of_a_part(parts.states_of_a_part);
  to->set_states(parts.states);
  to->set_searches(parts.searches);
  for (const FoundPart& p : parts.found) {
    proto::Checkpoint::Part& part = *to->add_found();
    part.set_program(p.program);
    part.set_most_us(p.most_us);
    part.set_us(p.us);
    part.set_graph(p.graph);
  }
  to->set_program(parts.underway);
  to->set_search(parts.checkpoint);
}

PartsState parts_of(const proto::Checkpoint::Parts& from) {
  PartsState parts;
  parts.states_of_a_part = from.states_of_a_part();
  parts.states = from.states();
  parts.searches = from.searches();
  for (const auto& p : from.found()) {
    parts.found.push_back({p.program(), p.most_us(), p.us(), p.graph()});
  }
  parts.underway = from.program();
  parts.checkpoint = from.search();
  return parts;
}

void put_rounds(const RoundState& state, proto::Checkpoint* to) {
  proto::Checkpoint& message = *to;
  for (const PlacementTask& t : state.tasks) {
    proto::Checkpoint::Task& task = *message.add_tasks();
    task.set_bank(t.bank);
    task.set_kernels(t.kernels);
    for (const Subtree& s : t.subtrees) {
      proto::Checkpoint::Subtree& subtree = *task.add_subtrees();
      put(s.path, subtree.mutable_path());
      subtree.set_first(s.first);
    }
  }
  message.set_best_us(state.incumbents.best_us());
  for (const auto& entry : state.incumbents.sorted()) {
    put_structure(entry, message.add_structures());
  }
  put_counts(state.counts, message.mutable_counts());
  message.set_rounds(state.rounds);
  message.set_width(state.width);
  message.set_emptied(state.emptied);
  message.set_kernels(state.kernels);
  message.set_few(state.few);
  message.set_turn(state.turn);
  message.set_turns(state.turns);
  message.set_cut(state.cut);
}

}  // namespace

std::string write_checkpoint(const CheckpointIdentity& identity, const Checkpoint& checkpoint,
                             const std::vector<std::unique_ptr<BankRun>>& banks) {
  proto::Checkpoint message;
  proto::Checkpoint::Identity& id = *message.mutable_identity();
  id.set_version(identity.version);
  id.set_program(identity.program);
  id.set_device(identity.device);
  id.set_space(identity.space);
  id.set_options(identity.options);
  id.set_banks(identity.banks);
  put_parts(checkpoint.parts, message.mutable_parts());
  message.set_begun(checkpoint.begun);
  put_rounds(checkpoint.rounds, &message);
  for (const auto& run : banks) TableStore::put(*run->tables, message.add_tables());
  message.set_seconds(checkpoint.times.seconds);
  message.set_seconds_to_best(checkpoint.times.to_best);
  const std::string body = message.SerializeAsString();
  std::string bytes(kMagic);
  for (uint64_t word : {hash_bytes(body), static_cast<uint64_t>(body.size())}) {
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return bytes + body;
}

namespace {

// The state of the rounds; nothing if it names what there is not.
std::optional<RoundState> rounds_of(const proto::Checkpoint& message, int kept_per_kind,
                                    const std::vector<std::unique_ptr<BankRun>>& banks,
                                    const std::vector<size_t>& choices) {
  RoundState found;
  for (const auto& t : message.tasks()) {
    if (t.bank() < 0 || static_cast<size_t>(t.bank()) >= banks.size() || t.kernels() < 1) {
      return std::nullopt;
    }
    PlacementTask task{t.bank(), t.kernels(), {}};
    for (const auto& s : t.subtrees()) {
      task.subtrees.push_back({{s.path().begin(), s.path().end()}, s.first()});
    }
    found.tasks.push_back(std::move(task));
  }
  found.incumbents = Incumbents(kept_per_kind, message.best_us());
  for (const auto& s : message.structures()) {
    if (s.bank() < 0 || static_cast<size_t>(s.bank()) >= banks.size()) return std::nullopt;
    const auto bank = static_cast<size_t>(s.bank());
    const auto structure = structure_of(s, *banks[bank], choices[bank]);
    if (!structure) return std::nullopt;
    found.incumbents.offer(s.bank(), *structure);
  }
  found.counts = counts_of(message.counts());
  found.rounds = message.rounds();
  found.width = std::max<uint32_t>(1, message.width());
  found.emptied = message.emptied();
  found.kernels = message.kernels();
  found.few = message.few();
  found.turn = message.turn();
  found.turns = message.turns();
  found.cut = message.cut();
  return found;
}

}  // namespace

Status read_checkpoint(std::string_view bytes, const CheckpointIdentity& identity,
                       const Machine& machine, Checkpoint* checkpoint,
                       std::vector<std::unique_ptr<BankRun>>& banks) {
  proto::Checkpoint message;
  SUNDOG_RETURN_IF_ERROR(open(bytes, &message));
  const proto::Checkpoint::Identity& id = message.identity();
  const std::string other = difference(
      identity, {id.version(), id.program(), id.device(), id.space(), id.options(), id.banks()});
  if (!other.empty()) return bad_input("it was made for " + other);
  const Error unsound = bad_input("it is damaged: it names what there is not");
  if (static_cast<size_t>(message.tables_size()) != banks.size()) return unsound;
  std::vector<size_t> choices;
  for (const auto& run : banks) {
    choices.push_back(part_choices(*run->bank, machine).size());
  }
  std::optional<RoundState> rounds =
      rounds_of(message, checkpoint->rounds.incumbents.kept_per_kind(), banks, choices);
  if (!rounds) return unsound;
  for (size_t i = 0; i < banks.size(); ++i) {
    TableStore::take(message.tables(static_cast<int>(i)), choices[i], banks[i]->tables.get());
  }
  checkpoint->parts = parts_of(message.parts());
  checkpoint->begun = message.begun();
  checkpoint->rounds = std::move(*rounds);
  checkpoint->times = {message.seconds(), message.seconds_to_best()};
  return {};
}

}  // namespace sundog::search
