#include "core/device.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cctype>

#include "core/device.pb.h"
#include "core/device_rows.h"

namespace sundog {
namespace {

// Collects the first message instead of printing it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) {
      text = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " +
             message;
    }
  }
  std::string text;
};

Status check_complete(const Device& d) {
  const double positive[] = {static_cast<double>(d.sms),
                             d.clock_mhz,
                             static_cast<double>(d.shared_per_block),
                             static_cast<double>(d.shared_per_sm),
                             static_cast<double>(d.registers_per_sm),
                             static_cast<double>(d.max_registers_per_thread),
                             static_cast<double>(d.max_threads_per_block),
                             static_cast<double>(d.max_threads_per_sm),
                             static_cast<double>(d.max_blocks_per_sm),
                             static_cast<double>(d.l2_bytes),
                             static_cast<double>(d.memory_bytes),
                             d.l2_gb_per_s,
                             d.shared_bytes_per_clock_per_sm,
                             d.fma_per_clock_per_sm,
                             d.alu_per_clock_per_sm,
                             d.sfu_per_clock_per_sm,
                             d.launch_us,
                             d.graph_node_us,
                             d.dependent_node_us,
                             d.fill_us,
                             d.block_sync_us,
                             d.grid_sync_us};
  const bool complete =
      std::all_of(std::begin(positive), std::end(positive), [](double x) { return x > 0; });
  if (!complete || d.name.empty() || d.arch.empty() || d.hbm.empty()) {
    return bad_input("the row of device '" + d.name + "' lacks a limit or a rate");
  }
  for (size_t i = 0; i < d.hbm.size(); ++i) {
    const auto before = i == 0 ? std::pair(0.0, 0.0) : d.hbm[i - 1];
    if (d.hbm[i].first > before.first && d.hbm[i].second > before.second) continue;
    return bad_input("the bandwidths of device '" + d.name + "' do not increase");
  }
  return {};
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::vector<Result<Device>> all_rows() {
  return {parse_device(device_rows::h200), parse_device(device_rows::h100),
          parse_device(device_rows::a100)};
}

}  // namespace

Result<Device> parse_device(std::string_view textproto) {
  device_row::Device row;
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (!parser.ParseFromString(std::string(textproto), &row)) {
    return bad_input("not the row of a device: " + errors.text);
  }
  Device d;
  d.name = row.name();
  d.full_name = row.full_name();
  d.arch = row.arch();
  d.sms = row.sms();
  d.clock_mhz = row.clock_mhz();
  d.shared_per_block = row.shared_per_block();
  d.shared_per_sm = row.shared_per_sm();
  d.shared_reserved_per_block = row.shared_reserved_per_block();
  d.registers_per_sm = row.registers_per_sm();
  d.max_registers_per_thread = row.max_registers_per_thread();
  d.max_threads_per_block = row.max_threads_per_block();
  d.max_threads_per_sm = row.max_threads_per_sm();
  d.max_blocks_per_sm = row.max_blocks_per_sm();
  d.l2_bytes = row.l2_bytes();
  d.memory_bytes = row.memory_bytes();
  for (const auto& entry : row.hbm()) {
    d.hbm.emplace_back(entry.bytes_in_flight_per_sm(), entry.gb_per_s());
  }
  d.l2_gb_per_s = row.l2_gb_per_s();
  d.shared_bytes_per_clock_per_sm = row.shared_bytes_per_clock_per_sm();
  for (const auto& entry : row.tensor()) {
    const std::optional<DType> dtype = parse_dtype(entry.dtype());
    if (!dtype) return bad_input("device '" + d.name + "': no such dtype: " + entry.dtype());
    d.tensor_tflop_per_s.emplace_back(*dtype, entry.tflop_per_s());
  }
  d.fma_per_clock_per_sm = row.fma_per_clock_per_sm();
  d.alu_per_clock_per_sm = row.alu_per_clock_per_sm();
  d.sfu_per_clock_per_sm = row.sfu_per_clock_per_sm();
  d.launch_us = row.launch_us();
  d.graph_node_us = row.graph_node_us();
  d.dependent_node_us = row.dependent_node_us();
  d.fill_us = row.fill_us();
  d.block_sync_us = row.block_sync_us();
  d.grid_sync_us = row.grid_sync_us();
  SUNDOG_RETURN_IF_ERROR(check_complete(d));
  return d;
}

std::string print_device(const Device& d) {
  device_row::Device row;
  row.set_name(d.name);
  row.set_full_name(d.full_name);
  row.set_arch(d.arch);
  row.set_sms(d.sms);
  row.set_clock_mhz(d.clock_mhz);
  row.set_shared_per_block(d.shared_per_block);
  row.set_shared_per_sm(d.shared_per_sm);
  row.set_shared_reserved_per_block(d.shared_reserved_per_block);
  row.set_registers_per_sm(d.registers_per_sm);
  row.set_max_registers_per_thread(d.max_registers_per_thread);
  row.set_max_threads_per_block(d.max_threads_per_block);
  row.set_max_threads_per_sm(d.max_threads_per_sm);
  row.set_max_blocks_per_sm(d.max_blocks_per_sm);
  row.set_l2_bytes(d.l2_bytes);
  row.set_memory_bytes(d.memory_bytes);
  for (const auto& [bytes_in_flight, rate] : d.hbm) {
    auto* entry = row.add_hbm();
    entry->set_bytes_in_flight_per_sm(bytes_in_flight);
    entry->set_gb_per_s(rate);
  }
  row.set_l2_gb_per_s(d.l2_gb_per_s);
  row.set_shared_bytes_per_clock_per_sm(d.shared_bytes_per_clock_per_sm);
  for (const auto& [dtype, rate] : d.tensor_tflop_per_s) {
    auto* entry = row.add_tensor();
    entry->set_dtype(std::string(name(dtype)));
    entry->set_tflop_per_s(rate);
  }
  row.set_fma_per_clock_per_sm(d.fma_per_clock_per_sm);
  row.set_alu_per_clock_per_sm(d.alu_per_clock_per_sm);
  row.set_sfu_per_clock_per_sm(d.sfu_per_clock_per_sm);
  row.set_launch_us(d.launch_us);
  row.set_graph_node_us(d.graph_node_us);
  row.set_fill_us(d.fill_us);
  row.set_block_sync_us(d.block_sync_us);
  row.set_grid_sync_us(d.grid_sync_us);
  row.set_dependent_node_us(d.dependent_node_us);
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  SUNDOG_CHECK(printer.PrintToString(row, &text));
  return text;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Result<Device>& row : all_rows()) {
    SUNDOG_CHECK(row.ok());  // our own rows
    names.push_back(row->name);
  }
  return names;
}

Result<Device> find_device(std::string_view name) {
  std::string known;
  for (const Result<Device>& row : all_rows()) {
    SUNDOG_CHECK(row.ok());
    if (row->name == lower(name)) return row;
    known += (known.empty() ? "" : ", ") + row->name;
  }
  return bad_input("there is no device '" + std::string(name) + "'", "known are " + known);
}

Result<Device> find_device_of_driver(std::string_view full_name, int major, int minor) {
  const std::string arch = "sm_" + std::to_string(major) + std::to_string(minor);
  const std::vector<Result<Device>> rows = all_rows();
  for (const Result<Device>& row : rows) {
    SUNDOG_CHECK(row.ok());
    if (row->full_name == full_name) return row;
  }
  for (const Result<Device>& row : rows) {
    if (row->arch.substr(0, arch.size()) == arch) return row;
  }
  return unsupported("device '" + std::string(full_name) + "' (" + arch + ") has no row",
                     "add one to core/devices");
}

double hbm_gb_per_s(const Device& device, double bytes_in_flight_per_sm) {
  std::pair<double, double> before(0, 0);
  for (const auto& entry : device.hbm) {
    if (bytes_in_flight_per_sm <= entry.first) {
      const double part = (bytes_in_flight_per_sm - before.first) / (entry.first - before.first);
      return before.second + part * (entry.second - before.second);
    }
    before = entry;
  }
  return before.second;
}

double tensor_tflop_per_s(const Device& device, DType dtype) {
  for (const auto& [type, rate] : device.tensor_tflop_per_s) {
    if (type == dtype) return rate;
  }
  return 0;
}

}  // namespace sundog
