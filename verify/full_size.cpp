// Sampling blocks instead of output elements: a µGraph is interpreted as it is, with nothing
// inferred from its terms, so the least that can be run is a block of its last kernel and what that
// block reads.  Going backwards, a block of an earlier kernel runs if it stores something within
// the box of what the blocks after it read.
#include "verify/full_size.h"

#include <algorithm>
#include <cmath>

#include "core/interpret.h"
#include "verify/float64_errors.h"
#include "verify/prime_field.h"
#include "verify/run_candidate.h"

namespace sundog::verify {
namespace {

constexpr double kMostElements = 1 << 26;  // of all inputs, in memory
constexpr int64_t kMostBlocks = 1 << 22;   // of one kernel, of which a sample is chosen

// Uniform around 0 with variance 1: far cheaper than normal values, for millions of them.
std::vector<FloatTensor> inputs_of(const Program& program, uint64_t seed, double scale) {
  std::vector<FloatTensor> inputs;
  for (size_t t = 0; t < program.inputs.size(); ++t) {
    const TensorDecl& tensor = program.inputs[t];
    FloatTensor values{tensor.extents, {}, {}};
    values.f64.reserve(static_cast<size_t>(element_count(tensor)));
    const uint64_t key = prf(seed, t, 0x66);
    for_each_element(tensor, [&](int64_t, int64_t offset) {
      const uint64_t word = prf(key, static_cast<uint64_t>(offset)) >> 11;
      double x = (static_cast<double>(word) * 0x1p-53 - 0.5) * 3.4641 * scale;
      if (tensor.low) x = std::max(x, tensor.low->to_double());
      if (tensor.high) x = std::min(x, tensor.high->to_double());
      values.f64.push_back(round_to(tensor.dtype, x));
    });
    inputs.push_back(std::move(values));
  }
  return inputs;
}

double elements_of(const Program& program) {
  double elements = 0;
  for (const TensorDecl& t : program.inputs) elements += static_cast<double>(element_count(t));
  for (const Output& o : program.outputs) elements += static_cast<double>(element_count(o.tensor));
  return elements;
}

// Values in float64 and, for the measure of rounding, with every operation rounded to float32.
struct Both {
  std::vector<std::vector<double>> wide, narrow;
};

Result<Both> evaluated(const Program& program, std::span<const FloatTensor> inputs,
                       Rounding rounding, const std::vector<AxisRange>& region) {
  Evaluation evaluation;
  evaluation.rounding = rounding;
  evaluation.region = region;
  evaluation.threads = 1;
  auto wide = evaluate(program, inputs, evaluation);
  if (!wide.ok()) return wide.error();
  evaluation.precision = Precision::kF32;
  std::vector<FloatTensor> single;
  for (const FloatTensor& t : inputs) {
    single.push_back({t.extents, {}, std::vector<float>(t.f64.begin(), t.f64.end())});
  }
  auto narrow = evaluate(program, single, evaluation);
  if (!narrow.ok()) return narrow.error();
  return Both{std::move(*wide), std::move(*narrow)};
}

Witness witness_of(const Program& program, size_t output, size_t element, double expected,
                   double actual, uint64_t seed) {
  Witness w;
  const TensorDecl& tensor = program.outputs[output].tensor;
  w.output = tensor.name;
  w.element.assign(tensor.extents.size(), 0);
  auto rest = static_cast<int64_t>(element);
  for (size_t d = tensor.extents.size(); d-- > 0;) {
    w.element[d] = rest % tensor.extents[d];
    rest /= tensor.extents[d];
  }
  w.expected = expected;
  w.actual = actual;
  w.seed = seed;
  w.sizes = sizes_text(program);
  w.inputs = "uniform";
  w.precision = "f64";
  return w;
}

// Output axes restricted to their last indices until the rest is no more work than allowed.
std::vector<AxisRange> region_of(const Program& program, double most_work) {
  std::vector<AxisRange> region;
  Program part = program;
  std::vector<AxisId> axes;
  for (const Output& output : program.outputs) {
    for (const IndexExpr& dim : output.tensor.dims) {
      for (const AxisId axis : dim.axis_set()) {
        if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
      }
    }
  }
  for (const AxisId axis : axes) {
    const double now = work(part);
    if (now <= most_work) break;
    const int64_t extent = program.axes[axis].extent;
    const auto kept = std::clamp<int64_t>(
        static_cast<int64_t>(static_cast<double>(extent) * most_work / now), 1, extent);
    region.push_back({axis, extent - kept, extent});
    part.axes[axis].extent = kept;
  }
  return region;
}

// The same elements as axes of the candidate, where its outputs have one axis wherever the
// program's have one; else nothing, and it is evaluated whole.
std::vector<AxisRange> region_of_candidate(const Program& program, const Program& candidate,
                                           const std::vector<AxisRange>& region) {
  std::vector<AxisRange> theirs;
  for (const AxisRange& range : region) {
    std::optional<AxisId> other;
    for (const Output& output : program.outputs) {
      const TensorDecl& mine = output.tensor;
      const auto at = std::find_if(candidate.outputs.begin(), candidate.outputs.end(),
                                   [&](const Output& c) { return c.tensor.name == mine.name; });
      for (size_t d = 0; d < mine.dims.size(); ++d) {
        AxisId axis;
        if (!mine.dims[d].axis_set().has(range.axis)) continue;
        const bool plain = mine.dims[d].is_axis() && at->tensor.dims[d].is_axis(&axis);
        if (!plain || (other && *other != axis)) return {};
        other = axis;
      }
    }
    if (other) theirs.push_back({*other, range.begin, range.end});
  }
  return theirs;
}

double work_of_region(Program part, const std::vector<AxisRange>& region) {
  for (const AxisRange& range : region) part.axes[range.axis].extent = range.end - range.begin;
  return work(part);
}

// The roundings of float64 on either side, looked at once two values differ, if that is in reach.
class Doubt {
 public:
  Doubt(const Program& program, Candidate candidate, Rounding rounding, double most_work)
      : small_{program, std::move(candidate), ""}, rounding_(rounding) {
    const auto* other = std::get_if<Program>(&small_.candidate);
    asked_ = work(program) <= most_work && (other == nullptr || work(*other) <= most_work);
  }

  bool explains(const std::vector<FloatTensor>& inputs, size_t output, size_t element,
                double expected, double actual) {
    if (!asked_) return false;
    if (!errors_) {
      std::vector<TensorValues<double>> values;
      for (const FloatTensor& t : inputs) values.push_back({t.extents, t.f64});
      errors_.emplace(small_, rounding_, values);
    }
    return errors_->explain(output, element, expected, actual);
  }

 private:
  SmallCase small_;
  Rounding rounding_;
  bool asked_ = false;
  std::optional<Float64Errors> errors_;
};

FullSizeResult check_program(const Program& program, const Program& candidate, Rounding rounding,
                             uint64_t seed, double most_work, double scale) {
  FullSizeResult result;
  const std::vector<AxisRange> region = region_of(program, most_work);
  const std::vector<AxisRange> other = region_of_candidate(program, candidate, region);
  if (work_of_region(candidate, other) > most_work) {
    result.skipped = "the candidate is too large to evaluate";
    return result;
  }
  const std::vector<FloatTensor> inputs = inputs_of(program, seed, scale);
  std::vector<FloatTensor> theirs;
  for (const TensorDecl& input : candidate.inputs) {
    theirs.push_back(inputs[*find_input(program, input.name)]);
  }
  const auto expected = evaluated(program, inputs, rounding, region);
  const auto actual = evaluated(candidate, theirs, rounding, other);
  if (!expected.ok() || !actual.ok()) {
    result.skipped = expected.ok() ? actual.error().message : expected.error().message;
    return result;
  }
  result.ran = true;
  Doubt doubt(program, candidate, rounding, most_work);
  for (size_t o = 0; o < program.outputs.size(); ++o) {
    const auto at = std::find_if(
        candidate.outputs.begin(), candidate.outputs.end(),
        [&](const Output& c) { return c.tensor.name == program.outputs[o].tensor.name; });
    const auto theirs_at = static_cast<size_t>(at - candidate.outputs.begin());
    for (size_t i = 0; i < expected->wide[o].size(); ++i) {
      const double x = expected->wide[o][i], y = actual->wide[theirs_at][i];
      result.compared += std::isfinite(x);
      if (!beyond_rounding(x, y, expected->narrow[o][i], actual->narrow[theirs_at][i])) continue;
      if (doubt.explains(inputs, o, i, x, y)) continue;
      result.witness = witness_of(program, o, i, x, y, seed);
      return result;
    }
  }
  return result;
}

// ---- µGraphs

struct Range {
  int64_t first = 0, last = 0;
};

// Index values that one block of a kernel visits, more or less.
double block_work(const Kernel& kernel) {
  const std::vector<std::vector<AxisId>> loops = enclosing_loops(kernel);
  double sum = 0;
  for (uint32_t c = 0; c < kernel.computations.size(); ++c) {
    AxisSet axes;
    for (const AxisId f : kernel.computations[c].axes) axes.insert(f);
    for (const AxisId f : loops[c]) axes.insert(f);
    const Term& term = kernel.terms[kernel.computations[c].value];
    if (const auto* reduce = std::get_if<ReduceTerm>(&term)) axes |= reduce->axes;
    double volume = 1;
    for (const AxisId f : axes) volume *= static_cast<double>(kernel.factors[f].extent);
    sum += volume;
  }
  return sum;
}

bool is_in_grid(const Kernel& kernel, AxisId factor) {
  return std::find(kernel.grid.begin(), kernel.grid.end(), factor) != kernel.grid.end();
}

// Values of an index expression within the block at these grid indices.
Range range_of(const Kernel& kernel, const IndexExpr& e, const std::vector<int64_t>& index,
               const std::vector<int64_t>& sizes) {
  Range range{e.constant, e.constant};
  for (const auto& item : e.sizes) {
    range.first += item.coefficient * sizes[item.axis];
    range.last += item.coefficient * sizes[item.axis];
  }
  for (const auto& item : e.axes) {
    const bool fixed = is_in_grid(kernel, item.axis);
    const int64_t at = fixed ? index[item.axis] : 0;
    const int64_t to = fixed ? at : kernel.factors[item.axis].extent - 1;
    range.first += std::min(item.coefficient * at, item.coefficient * to);
    range.last += std::max(item.coefficient * at, item.coefficient * to);
  }
  return range;
}

// The blocks that run together with one block of the last kernel.
class Sample {
 public:
  // `last`: the index of each factor of the last kernel.
  Sample(const MuGraph& graph, std::vector<int64_t> last)
      : graph_(graph), sizes_(axis_extents(graph)), last_(std::move(last)) {
    for (const DeviceTensor& tensor : graph.tensors) {
      needed_.emplace_back(tensor.decl.dims.size(), Range{int64_t{1} << 60, -1});
    }
    runs_.resize(graph.kernels.size());
    for (size_t k = graph.kernels.size(); k-- > 0;) choose(k);
  }

  const std::vector<int64_t>& last() const { return last_; }
  bool runs(size_t k, const std::vector<int64_t>& index) const {
    return runs_[k][number_of(graph_.kernels[k], index)] != 0;
  }
  // Index values that all of it visits.
  double work() const {
    double sum = 0;
    for (size_t k = 0; k < runs_.size(); ++k) {
      const auto blocks = std::count(runs_[k].begin(), runs_[k].end(), 1);
      sum += static_cast<double>(blocks) * block_work(graph_.kernels[k]);
    }
    return sum;
  }

 private:
  static size_t number_of(const Kernel& kernel, const std::vector<int64_t>& index) {
    int64_t number = 0;
    for (const AxisId f : kernel.grid) number = number * kernel.factors[f].extent + index[f];
    return static_cast<size_t>(number);
  }

  void choose(size_t k) {
    const Kernel& kernel = graph_.kernels[k];
    const std::vector<const Store*> stores = stores_of(kernel);
    std::vector<int64_t> index(kernel.factors.size(), 0);
    for (int64_t b = 0; b < block_count(kernel); ++b) {
      int64_t rest = b;
      for (size_t d = kernel.grid.size(); d-- > 0;) {
        index[kernel.grid[d]] = rest % kernel.factors[kernel.grid[d]].extent;
        rest /= kernel.factors[kernel.grid[d]].extent;
      }
      const bool is_end = k + 1 == graph_.kernels.size();
      const bool chosen = is_end
                              ? std::all_of(kernel.grid.begin(), kernel.grid.end(),
                                            [&](AxisId f) { return index[f] == last_[f]; })
                              : std::any_of(stores.begin(), stores.end(), [&](const Store* store) {
                                  return stores_needed(kernel, *store, index);
                                });
      runs_[k].push_back(chosen ? 1 : 0);
      if (chosen) add_reads(kernel, index);
    }
  }

  bool stores_needed(const Kernel& kernel, const Store& store,
                     const std::vector<int64_t>& index) const {
    AxisSet used;
    for (const IndexExpr& e : store.index) used |= e.axis_set();
    for (const AxisId f : kernel.grid) {  // of blocks that compute the same the first one stores
      if (index[f] != 0 && !used.has(f)) return false;
    }
    for (size_t d = 0; d < store.index.size(); ++d) {
      const Range mine = range_of(kernel, store.index[d], index, sizes_);
      const Range& wanted = needed_[store.tensor][d];
      if (mine.last < wanted.first || wanted.last < mine.first) return false;
    }
    return true;
  }

  void add_reads(const Kernel& kernel, const std::vector<int64_t>& index) {
    for (TermId id = 0; id < kernel.terms.size(); ++id) {
      const auto* read = std::get_if<InputTerm>(&kernel.terms[id]);
      if (read == nullptr || graph_.tensors[read->tensor].role == TensorRole::kInput) continue;
      for (size_t d = 0; d < read->index.size(); ++d) {
        const Range range = range_of(kernel, read->index[d], index, sizes_);
        Range& needed = needed_[read->tensor][d];
        needed.first = std::min(needed.first, range.first);
        needed.last = std::max(needed.last, range.last);
      }
    }
  }

  const MuGraph& graph_;
  const std::vector<int64_t> sizes_, last_;
  std::vector<std::vector<Range>> needed_;  // of each tensor: the box that is read
  std::vector<std::vector<uint8_t>> runs_;  // of each kernel: its blocks, the last factor fastest
};

// The last block and one that is drawn, as far as the work allows.
std::vector<Sample> samples_of(const MuGraph& graph, uint64_t seed, double most_work) {
  const Kernel& end = graph.kernels.back();
  std::vector<Sample> samples;
  for (const bool at_end : {true, false}) {
    std::vector<int64_t> last(end.factors.size(), 0);
    for (const AxisId f : end.grid) {
      const int64_t extent = end.factors[f].extent;
      const uint64_t drawn = prf(seed, f, 0x62) % static_cast<uint64_t>(extent);
      last[f] = at_end ? extent - 1 : static_cast<int64_t>(drawn);
    }
    if (!samples.empty() && samples[0].last() == last) continue;
    Sample sample(graph, std::move(last));
    most_work -= sample.work();
    if (most_work < 0) break;
    samples.push_back(std::move(sample));
  }
  return samples;
}

// The box of the program's axes in which the elements of an output lie that were written; nothing
// if a dimension is no plain axis.
std::optional<std::vector<AxisRange>> written_region(const TensorDecl& tensor,
                                                     const Array<double>& got) {
  std::vector<Range> box(tensor.extents.size(), {int64_t{1} << 60, -1});
  std::vector<int64_t> index(tensor.extents.size(), 0);
  for (size_t i = 0; i < got.values.size(); ++i) {
    for (size_t d = 0; d < index.size() && got.defined[i] != 0; ++d) {
      box[d].first = std::min(box[d].first, index[d]);
      box[d].last = std::max(box[d].last, index[d]);
    }
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < tensor.extents[d]) break;
      index[d] = 0;
    }
  }
  std::vector<AxisRange> region;
  for (size_t d = 0; d < box.size(); ++d) {
    AxisId axis = 0;
    if (!tensor.dims[d].is_axis(&axis) || box[d].last < 0) return std::nullopt;
    region.push_back({axis, box[d].first, box[d].last + 1});
  }
  return region;
}

// Runs the blocks of one sample and compares what they write.
Status compare_sample(const Program& program, const MuGraph& graph, Rounding rounding,
                      const Sample& sample, const std::vector<FloatTensor>& inputs,
                      std::span<const TensorValues<double>> in, uint64_t seed, Doubt* doubt,
                      FullSizeResult* result) {
  Float64 algebra({false, rounding});
  const auto actual = interpret_blocks(
      algebra, graph, program, in,
      [&](uint32_t k, const std::vector<int64_t>& index) { return sample.runs(k, index); });
  if (!actual.ok()) return actual.error();
  for (size_t o = 0; o < program.outputs.size(); ++o) {
    const Array<double>& got = (*actual)[o];
    const auto region = written_region(program.outputs[o].tensor, got);
    if (!region) continue;  // another sample, or the split of an axis in the program
    const auto expected = evaluated(program, inputs, rounding, *region);
    if (!expected.ok()) return expected.error();
    for (size_t i = 0; i < got.values.size(); ++i) {
      if (got.defined[i] == 0) continue;
      const double x = expected->wide[o][i], y = got.values[i];
      result->compared += std::isfinite(x);
      if (!beyond_rounding(x, y, expected->narrow[o][i], y)) continue;
      if (doubt->explains(inputs, o, i, x, y)) continue;
      result->witness = witness_of(program, o, i, x, y, seed);
      return {};
    }
  }
  return {};
}

FullSizeResult check_graph(const Program& program, const MuGraph& graph, Rounding rounding,
                           uint64_t seed, double most_work, double scale) {
  FullSizeResult result;
  const bool empty = std::any_of(graph.kernels.begin(), graph.kernels.end(),
                                 [](const Kernel& kernel) { return block_count(kernel) == 0; });
  if (graph.kernels.empty() || empty) {
    result.skipped = "it has a kernel without blocks";
    return result;
  }
  if (std::any_of(graph.kernels.begin(), graph.kernels.end(),
                  [](const Kernel& kernel) { return block_count(kernel) > kMostBlocks; })) {
    result.skipped = "it has too many blocks";
    return result;
  }
  const std::vector<Sample> samples = samples_of(graph, seed, most_work);
  if (samples.empty()) {
    result.skipped = "one of its blocks is too large to interpret";
    return result;
  }
  const std::vector<FloatTensor> inputs = inputs_of(program, seed, scale);
  std::vector<TensorValues<double>> values;
  for (const FloatTensor& t : inputs) values.push_back({t.extents, t.f64});
  Doubt doubt(program, graph, rounding, most_work);
  for (const Sample& sample : samples) {
    const Status status =
        compare_sample(program, graph, rounding, sample, inputs, values, seed, &doubt, &result);
    if (!status.ok()) result.skipped = status.error().message;
    if (!status.ok() || result.witness) break;
  }
  result.ran = result.compared > 0;
  if (!result.ran && result.skipped.empty()) result.skipped = "nothing was comparable";
  return result;
}

}  // namespace

bool beyond_rounding(double expected, double actual, double expected32, double actual32) {
  if (!std::isfinite(expected) || !std::isfinite(expected32)) return false;
  if (!std::isfinite(actual)) return true;
  if (!std::isfinite(actual32)) return false;  // float32 alone overflows: no measure
  const double rounding = std::fabs(expected - expected32) + std::fabs(actual - actual32);
  const double allowed =
      0x1p-20 * rounding + 1e-9 * (std::fabs(expected) + std::fabs(actual)) + 1e-30;
  return std::fabs(expected - actual) > allowed;
}

FullSizeResult full_size_check(const Program& program, const Candidate& candidate,
                               Rounding rounding, uint64_t seed, double most_work, double scale) {
  if (elements_of(program) > kMostElements) {
    FullSizeResult result;
    result.skipped = "its tensors are too large";
    return result;
  }
  if (const auto* graph = std::get_if<MuGraph>(&candidate)) {
    return check_graph(program, *graph, rounding, seed, most_work, scale);
  }
  return check_program(program, std::get<Program>(candidate), rounding, seed, most_work, scale);
}

}  // namespace sundog::verify
