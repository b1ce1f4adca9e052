// Inputs are drawn by position in memory, not by logical index: a broadcast dimension (stride 0)
// must show one value everywhere.  Sampled references always hold the first and the last rows,
// where ragged tiles and guards go wrong, beside some drawn in between.
#include "codegen/kernel_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>
#include <variant>

#include "core/arithmetic.h"

namespace sundog::codegen {
namespace {

double unit_interval(uint64_t key) { return static_cast<double>(scramble(key) >> 11) * 0x1p-53; }

// Whether element after element lies in memory, without gaps and each by itself.
bool is_contiguous(const TensorDecl& tensor) {
  const std::vector<int64_t> strides = strides_of(tensor);
  int64_t dense = 1;
  for (size_t d = strides.size(); d-- > 0; dense *= tensor.extents[d]) {
    if (tensor.extents[d] > 1 && strides[d] != dense) return false;
  }
  return tensor.offset == 0 && span_elements(tensor) == dense;
}

// Calls visit(logical element, position in memory) for elements `begin` to `end` in logical order.
template <class Visit>
void visit_elements(const TensorDecl& tensor, int64_t begin, int64_t end, Visit visit) {
  const std::vector<int64_t> strides = strides_of(tensor);
  std::vector<int64_t> index(tensor.extents.size(), 0);
  int64_t position = tensor.offset;
  int64_t rest = begin;
  for (size_t d = index.size(); d-- > 0 && rest > 0; rest /= tensor.extents[d]) {
    index[d] = rest % tensor.extents[d];
    position += strides[d] * index[d];
  }
  for (int64_t element = begin; element < end; ++element) {
    visit(element, position);
    for (size_t d = index.size(); d-- > 0;) {
      position += strides[d];
      if (++index[d] < tensor.extents[d]) break;
      position -= strides[d] * tensor.extents[d];
      index[d] = 0;
    }
  }
}

template <class Visit>
void for_each_element(const TensorDecl& tensor, Visit visit) {
  visit_elements(tensor, 0, element_count(tensor), visit);
}

int hardware_threads() {
  return static_cast<int>(std::max(2U, std::thread::hardware_concurrency()));
}

// Calls work(begin, end) for shares of [0, count), each on a thread of its own where there is
// enough to do; what each gives, in order.
template <class Work>
auto in_shares(int64_t count, Work work) {
  constexpr int64_t kWorthAThread = 1 << 16;
  const int64_t shares = std::clamp<int64_t>(count / kWorthAThread, 1, hardware_threads());
  std::vector<decltype(work(count, count))> results(static_cast<size_t>(shares));
  const auto run = [&](int64_t share) {
    results[static_cast<size_t>(share)] =
        work(count * share / shares, count * (share + 1) / shares);
  };
  {
    std::vector<std::jthread> threads;  // joined at the end of the block
    for (int64_t share = 1; share < shares; ++share) threads.emplace_back(run, share);
    run(0);
  }
  return results;
}

// All of them, divided among threads where no two lie in one place.
template <class Visit>
void for_each_element_in_parallel(const TensorDecl& tensor, Visit visit) {
  if (!is_contiguous(tensor)) return for_each_element(tensor, visit);  // some may share memory
  in_shares(element_count(tensor), [&](int64_t begin, int64_t end) {
    visit_elements(tensor, begin, end, visit);
    return end - begin;
  });
}

double load(const TensorDecl& tensor, const TensorMemory& memory, int64_t position) {
  const auto size = static_cast<size_t>(bytes(tensor.dtype));
  uint64_t bits = 0;
  std::memcpy(&bits, memory.data() + static_cast<size_t>(position) * size, size);
  return decode(tensor.dtype, bits);
}

// Multiplications, more or less: the volume of every reduction, and of every output.
double work_of(const Program& program, const std::vector<double>& extent_of) {
  const auto volume = [&](AxisSet axes) {
    double product = 1;
    for (const AxisId axis : axes) product *= extent_of[axis];
    return product;
  };
  std::vector<TermId> roots;
  for (const Output& output : program.outputs) roots.push_back(output.value);
  double work = 0;
  for (const TermId id : reachable(program.terms, roots)) {
    if (const auto* reduce = std::get_if<ReduceTerm>(&program.terms[id])) {
      work += volume(program.terms.axes(reduce->operand) | reduce->axes);
    }
  }
  for (const Output& output : program.outputs) work += volume(program.terms.axes(output.value));
  return work;
}

// Axes that index an output, outermost first: what a sample may restrict.  The last dimension comes
// last.
std::vector<AxisId> output_axes(const Program& program) {
  std::vector<AxisId> axes;
  for (const Output& output : program.outputs) {
    for (const IndexExpr& dim : output.tensor.dims) {
      for (const AxisId axis : dim.axis_set()) {
        if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
      }
    }
  }
  return axes;
}

enum class Corner { kFirst, kLast, kDrawn };

// A box of output indices at the given corner with at most max_work of work, if restricting outputs
// can achieve that.
std::vector<AxisRange> sample(const Program& program, Corner corner, double max_work,
                              uint64_t seed) {
  std::vector<double> extent_of;
  for (const Axis& axis : program.axes) extent_of.push_back(static_cast<double>(axis.extent));
  std::vector<AxisRange> region;
  for (const AxisId axis : output_axes(program)) {
    const double work = work_of(program, extent_of);
    if (work <= max_work) break;
    const int64_t extent = program.axes[axis].extent;
    const auto wanted = static_cast<int64_t>(static_cast<double>(extent) * max_work / work);
    const int64_t size = std::clamp<int64_t>(wanted, 1, extent);
    const int64_t room = extent - size;
    int64_t begin = corner == Corner::kLast ? room : 0;
    if (corner == Corner::kDrawn && room > 0) {
      begin = static_cast<int64_t>(scramble(seed + axis) % static_cast<uint64_t>(room + 1));
    }
    region.push_back({axis, begin, begin + size});
    extent_of[axis] = static_cast<double>(size);
  }
  return region;
}

bool is_plain_load(const Kernel& kernel, const Computation& computation) {
  return std::holds_alternative<InputTerm>(kernel.terms[computation.value]);
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";  // of either sign
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string element_name(const TensorDecl& tensor, int64_t element) {
  std::string text;
  for (size_t d = tensor.extents.size(); d-- > 0;) {
    text = std::to_string(element % tensor.extents[d]) + (text.empty() ? "" : ", " + text);
    element /= tensor.extents[d];
  }
  return tensor.name + "[" + text + "]";
}

// The least distance of two values: below it no relative statement holds.
double spacing_at_zero(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-24;
    case DType::kBF16:
      return 0x1p-133;
    case DType::kF32:
      return 0x1p-149;
    case DType::kF64:
      return 0;
    case DType::kF8E4M3:
      return 0x1p-9;
    case DType::kF8E5M2:
      return 0x1p-16;
    case DType::kI8:
      return 1;
  }
  return 0;
}

// |x - reference| less the slack, over scale; infinite where no tolerance can excuse x.
double relative_error(DType dtype, double x, double reference, double slack, double scale,
                      double tolerance) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  if (std::isnan(x) || std::isnan(reference))
    return std::isnan(x) == std::isnan(reference) ? 0 : kWrong;
  const double stored = round_to(dtype, reference);
  if (std::isinf(x) || std::isinf(stored)) {
    if (x == stored) return 0;
    // At the edge of the range one rounding may overflow where another does not.
    const bool edge = std::isfinite(reference) && (x < 0) == (reference < 0) &&
                      std::abs(reference) * (1 + tolerance) >= max_finite(dtype) &&
                      std::abs(reference) * (1 - tolerance) <= max_finite(dtype);
    return edge ? 0 : kWrong;
  }
  const double difference = std::max(std::abs(x - reference) - slack, 0.0);
  if (is_integer(dtype)) {
    const double reach = tolerance * scale + slack;
    const bool near_tie =
        x >= round_to(dtype, reference - reach) && x <= round_to(dtype, reference + reach);
    return near_tie ? 0 : std::max(difference, 0.5) / scale;
  }
  return difference <= spacing_at_zero(dtype) ? 0 : difference / scale;
}

// The largest finite |reference| of each row, and of all, and the largest noise of each row.
struct Scales {
  std::vector<double> rows, noise;
  double all = 0;
};

int64_t row_length(const TensorDecl& tensor) {
  return tensor.extents.empty() ? 1 : std::max<int64_t>(tensor.extents.back(), 1);
}

template <class Element>
Scales scales_of(const TensorDecl& tensor, const ExpectedTensor& expected, Element element) {
  Scales scales;
  const int64_t length = row_length(tensor);
  scales.rows.assign(static_cast<size_t>(element_count(tensor) / length), 0.0);
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double size = std::abs(expected.values[i]);
    if (!std::isfinite(size)) continue;
    double& row = scales.rows[static_cast<size_t>(element(i) / length)];
    row = std::max(row, size);
    scales.all = std::max(scales.all, size);
  }
  scales.noise.assign(scales.rows.size(), 0.0);
  for (size_t i = 0; i < expected.noise.size(); ++i) {
    double& row = scales.noise[static_cast<size_t>(element(i) / length)];
    row = std::max(row, expected.noise[i]);
  }
  // A short row may cancel to almost nothing by chance.
  if (length < 32) {
    for (double& row : scales.rows) row = std::max(row, 0.1 * scales.all);
  }
  return scales;
}

constexpr double kNoiseWork = 1e8;  // of programs whose noise is measured
constexpr int kNoiseDraws = 3;
constexpr double kMostNoise = 4;  // times what was measured

// How far single precision is from float64.  The inputs are moved by an ulp or so, so that nothing
// comes out exact by luck.
Status measure_noise(const Program& program, std::span<const FloatTensor> inputs, Rounding rounding,
                     uint64_t seed, std::vector<ExpectedTensor>& expected) {
  Evaluation exact, single;
  exact.rounding = single.rounding = rounding;
  single.precision = Precision::kF32;
  for (int draw = 0; draw < kNoiseDraws; ++draw) {
    std::vector<FloatTensor> moved(inputs.begin(), inputs.end()), narrow = moved;
    for (size_t t = 0; t < moved.size(); ++t) {
      const uint64_t key = scramble(seed + 64 * static_cast<uint64_t>(draw) + t + 1);
      std::vector<double>& values = moved[t].f64;
      narrow[t].f64.clear();
      for (size_t e = 0; e < values.size(); ++e) {
        const double u = unit_interval(key ^ scramble(e));
        const auto value = static_cast<float>(values[e] * (1 + (u - 0.5) * 0x1p-20));
        values[e] = value;
        narrow[t].f32.push_back(value);
      }
    }
    const auto want = evaluate(program, moved, exact), have = evaluate(program, narrow, single);
    if (!want.ok()) return want.error();
    if (!have.ok()) return have.error();
    for (size_t o = 0; o < expected.size(); ++o) {
      expected[o].noise.resize((*want)[o].size(), 0);
      for (size_t e = 0; e < (*want)[o].size(); ++e) {
        const double off = std::abs((*have)[o][e] - (*want)[o][e]);
        if (std::isfinite(off)) expected[o].noise[e] = std::max(expected[o].noise[e], off);
      }
    }
  }
  return {};
}

// The first element of a gap that is no longer poison, as a message.
std::string written_gap(const TensorDecl& tensor, const TensorMemory& memory) {
  const auto size = static_cast<size_t>(bytes(tensor.dtype));
  if (is_contiguous(tensor)) return {};
  std::vector<bool> used(memory.size() / size, false);
  for_each_element(tensor,
                   [&](int64_t, int64_t position) { used[static_cast<size_t>(position)] = true; });
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    for (size_t b = 0; b < size; ++b) {
      if (memory[i * size + b] != kPoison) {
        return "position " + std::to_string(i) + " of " + tensor.name +
               ", which belongs to no element, was written";
      }
    }
  }
  return {};
}

}  // namespace

FloatTensor draw_input(const TensorDecl& tensor, uint64_t seed, uint32_t number) {
  const double reach = tensor.dtype == DType::kI8 ? 8 : 1;
  const auto bound = [](const std::optional<Number>& limit, double otherwise) {
    return limit && !limit->is_infinite() ? limit->to_double() : otherwise;
  };
  double low = bound(tensor.low, -reach), high = bound(tensor.high, reach);
  if (low > high) {  // one end was declared, beyond the usual other one
    const bool low_declared = tensor.low && !tensor.low->is_infinite();
    (low_declared ? high : low) = low_declared ? low + 2 * reach : high - 2 * reach;
  }
  FloatTensor values{
      tensor.extents, std::vector<double>(static_cast<size_t>(element_count(tensor))), {}};
  const uint64_t key = scramble(seed * 0x9e3779b97f4a7c15u + number);
  for_each_element_in_parallel(tensor, [&](int64_t element, int64_t position) {
    const double u = unit_interval(key ^ scramble(static_cast<uint64_t>(position)));
    // Rounding may step outside of a range whose ends the type does not have.
    double value = round_to(tensor.dtype, low + (high - low) * u);
    if (value < low || value > high) value = round_to(tensor.dtype, (low + high) / 2);
    values.f64[static_cast<size_t>(element)] = value;
  });
  return values;
}

std::vector<FloatTensor> draw_inputs(const Program& program, uint64_t seed) {
  std::vector<FloatTensor> inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    inputs.push_back(draw_input(program.inputs[i], seed, static_cast<uint32_t>(i)));
  }
  return inputs;
}

std::vector<int64_t> element_positions(const TensorDecl& tensor) {
  std::vector<int64_t> positions(static_cast<size_t>(element_count(tensor)));
  for_each_element_in_parallel(tensor, [&](int64_t element, int64_t position) {
    positions[static_cast<size_t>(element)] = position;
  });
  return positions;
}

TensorMemory poisoned_memory(const TensorDecl& tensor) {
  return TensorMemory(
      static_cast<size_t>(span_elements(tensor)) * static_cast<size_t>(bytes(tensor.dtype)),
      kPoison);
}

TensorMemory to_memory(const TensorDecl& tensor, const FloatTensor& values) {
  TensorMemory memory = poisoned_memory(tensor);
  const auto size = static_cast<size_t>(bytes(tensor.dtype));
  for_each_element_in_parallel(tensor, [&](int64_t element, int64_t position) {
    const auto e = static_cast<size_t>(element);
    const double value = values.f64.empty() ? values.f32[e] : values.f64[e];
    const uint64_t bits = encode(tensor.dtype, value);
    std::memcpy(memory.data() + static_cast<size_t>(position) * size, &bits, size);
  });
  return memory;
}

namespace {

// All outputs, and the slack of each element.
Result<std::vector<ExpectedTensor>> evaluated(const Program& program,
                                              std::span<const FloatTensor> inputs,
                                              Evaluation evaluation) {
  constexpr double kLastBits =
      0x1p-18;  // of an argument that float32 computed in a few dozen steps
  auto values = evaluate(program, inputs, evaluation);
  if (!values.ok()) return values.error();
  std::vector<ExpectedTensor> outputs(values->size());
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].values = std::move((*values)[i]);
  if (!casts_to_integers(program)) return outputs;
  for (const double nudge : {kLastBits, -kLastBits}) {
    evaluation.nudge = nudge;
    values = evaluate(program, inputs, evaluation);
    if (!values.ok()) return values.error();
    for (size_t i = 0; i < outputs.size(); ++i) {
      ExpectedTensor& output = outputs[i];
      output.slack.resize(output.values.size(), 0.0);
      for (size_t e = 0; e < output.values.size(); ++e) {
        const double moved = std::abs((*values)[i][e] - output.values[e]);
        if (std::isfinite(moved)) output.slack[e] += moved;
      }
    }
  }
  return outputs;
}

}  // namespace

Result<std::vector<ExpectedTensor>> expected_outputs(const Program& program,
                                                     std::span<const FloatTensor> inputs,
                                                     Rounding rounding, double max_work,
                                                     uint64_t seed) {
  Evaluation evaluation;
  evaluation.rounding = rounding;
  evaluation.threads = hardware_threads();
  // Where nothing can be left out, all of it is evaluated, however long it takes.
  if (sample(program, Corner::kFirst, max_work / 3, seed).empty() ||
      program_work(program) <= max_work) {
    auto whole = evaluated(program, inputs, evaluation);
    // Steps are no noise: their slack is that of each element.
    if (whole.ok() && !casts_to_integers(program) &&
        program_work(program) <= std::min(max_work, kNoiseWork)) {
      SUNDOG_RETURN_IF_ERROR(measure_noise(program, inputs, rounding, seed, *whole));
    }
    return whole;
  }
  std::vector<ExpectedTensor> expected(program.outputs.size());
  for (const Corner corner : {Corner::kFirst, Corner::kLast, Corner::kDrawn}) {
    evaluation.region = sample(program, corner, max_work / 3, seed);
    const auto sampled = evaluated(program, inputs, evaluation);
    if (!sampled.ok()) return sampled.error();
    for (size_t i = 0; i < expected.size(); ++i) {
      const ExpectedTensor& from = (*sampled)[i];
      for (size_t e = 0; e < from.values.size(); ++e) {
        if (std::isnan(from.values[e])) continue;  // outside of the region
        expected[i].elements.push_back(static_cast<int64_t>(e));
        expected[i].values.push_back(from.values[e]);
        if (!from.slack.empty()) expected[i].slack.push_back(from.slack[e]);
      }
    }
  }
  return expected;
}

double program_work(const Program& program) {
  std::vector<double> extent_of;
  for (const Axis& axis : program.axes) extent_of.push_back(static_cast<double>(axis.extent));
  return work_of(program, extent_of);
}

double kernel_tolerance(const Program& program, const MuGraph& graph) {
  double unit = 0;
  const auto consider = [&unit](DType dtype) {
    if (!is_integer(dtype)) unit = std::max(unit, unit_roundoff(dtype));
  };
  for (const Output& output : program.outputs) consider(output.tensor.dtype);
  for (const DeviceTensor& tensor : graph.tensors) {
    if (tensor.role == TensorRole::kIntermediate) consider(tensor.decl.dtype);
  }
  for (const Kernel& kernel : graph.kernels) {
    for (const Computation& computation : kernel.computations) {
      if (!is_plain_load(kernel, computation)) consider(computation.dtype);
    }
  }
  double longest = 64;
  for (TermId id = 0; id < program.terms.size(); ++id) {
    const auto* reduce = std::get_if<ReduceTerm>(&program.terms[id]);
    if (reduce == nullptr || reduce->kind != ReduceKind::kSum) continue;
    double length = 1;
    for (const AxisId axis : reduce->axes) length *= static_cast<double>(program.axes[axis].extent);
    longest = std::max(longest, length);
  }
  // Eight roundings to a type of eight bits could be anything: two of them may be off.
  constexpr double kCoarse = 0.03;
  const double rounded = std::min(8 * unit, std::max(2 * unit, kCoarse));
  return rounded + std::min(longest * 0x1p-24, 2e-3);
}

namespace {

// What a share of the comparison found.
struct Compared {
  double max_rel_error = 0;
  int64_t wrong = 0;
  size_t first = 0;  // that is wrong
};

}  // namespace

OutputCheck check_output(const TensorDecl& tensor, const TensorMemory& memory,
                         const ExpectedTensor& expected, double tolerance) {
  OutputCheck check;
  if (memory.size() != poisoned_memory(tensor).size()) {
    check.failure = tensor.name + " has " + std::to_string(memory.size()) + " bytes";
    return check;
  }
  check.failure = written_gap(tensor, memory);
  if (!check.failure.empty()) return check;
  const bool whole = expected.elements.empty();
  const auto element = [&](size_t i) {
    return whole ? static_cast<int64_t>(i) : expected.elements[i];
  };
  const std::vector<int64_t> position_of = element_positions(tensor);
  SUNDOG_CHECK(!whole || expected.values.size() == position_of.size());
  const Scales scales = scales_of(tensor, expected, element);
  const int64_t length = row_length(tensor);
  const bool whole_number = is_integer(tensor.dtype);
  const auto value = [&](size_t i) {
    return load(tensor, memory, position_of[static_cast<size_t>(element(i))]);
  };
  const auto compare = [&](int64_t begin, int64_t end) {
    Compared share;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const auto row = static_cast<size_t>(element(i) / length);
      const double x = value(i);
      const double slack = expected.slack.empty() ? 0 : expected.slack[i];
      const double error =
          relative_error(tensor.dtype, x, expected.values[i], slack, scales.rows[row], tolerance);
      const double noise = kMostNoise * scales.noise[row];
      if (!whole_number && error > tolerance && std::abs(x - expected.values[i]) <= noise) continue;
      share.max_rel_error = std::max(share.max_rel_error, error);
      if (whole_number ? error == 0 : error <= tolerance) continue;
      if (share.wrong++ == 0) share.first = i;
    }
    return share;
  };
  check.compared = static_cast<int64_t>(expected.values.size());
  int64_t wrong = 0;
  for (const Compared& share : in_shares(check.compared, compare)) {
    check.max_rel_error = std::max(check.max_rel_error, share.max_rel_error);
    if (wrong == 0 && share.wrong > 0) {
      check.failure = element_name(tensor, element(share.first)) + " is " +
                      number(value(share.first)) + ", expected " +
                      number(expected.values[share.first]);
    }
    wrong += share.wrong;
  }
  if (wrong > 0) {
    check.failure += " (" + std::to_string(wrong) + " of " + std::to_string(check.compared) +
                     " elements are off by more than " + number(tolerance) + " of their row)";
  }
  check.passed = wrong == 0;
  return check;
}

OutputCheck check_outputs(const Program& program, std::span<const TensorMemory> memory,
                          std::span<const ExpectedTensor> expected, double tolerance) {
  SUNDOG_CHECK(memory.size() == program.outputs.size() && expected.size() == memory.size());
  OutputCheck all;
  all.passed = true;
  for (size_t i = 0; i < memory.size(); ++i) {
    const OutputCheck one =
        check_output(program.outputs[i].tensor, memory[i], expected[i], tolerance);
    all.max_rel_error = std::max(all.max_rel_error, one.max_rel_error);
    all.compared += one.compared;
    if (!one.passed && all.passed) all.failure = one.failure;
    all.passed &= one.passed;
  }
  return all;
}

}  // namespace sundog::codegen
