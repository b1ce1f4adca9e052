#include "core/device.h"

#include <gtest/gtest.h>

#include "core/device_rows.h"

namespace sundog {
namespace {

TEST(DeviceTest, EveryRowIsComplete) {
  EXPECT_EQ(device_names(), (std::vector<std::string>{"h200", "h100", "a100"}));
  for (const std::string& name : device_names()) {
    const Result<Device> device = find_device(name);
    ASSERT_TRUE(device.ok());
    EXPECT_LE(device->shared_per_block + device->shared_reserved_per_block, device->shared_per_sm);
    EXPECT_GT(tensor_tflop_per_s(*device, DType::kF16), 0);
    EXPECT_EQ(tensor_tflop_per_s(*device, DType::kI8), 0);
  }
}

TEST(DeviceTest, NamesAreFoundInAnyCase) {
  EXPECT_EQ(find_device("H200")->arch, "sm_90a");
  const Result<Device> none = find_device("tpu");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().hint.find("h100"), std::string::npos);
}

TEST(DeviceTest, TheDriversNameOrItsArchitectureDecides) {
  EXPECT_EQ(find_device_of_driver("NVIDIA H200", 9, 0)->name, "h200");
  EXPECT_EQ(find_device_of_driver("NVIDIA H100 80GB HBM3", 9, 0)->name, "h100");
  EXPECT_EQ(find_device_of_driver("NVIDIA A100-PCIE-40GB", 8, 0)->name, "a100");
  EXPECT_FALSE(find_device_of_driver("Tesla V100", 7, 0).ok());
}

TEST(DeviceTest, BandwidthGrowsWithBytesInFlight) {
  const Result<Device> device = find_device("h200");
  double before = 0;
  for (double bytes = 0; bytes < 2e5; bytes += 500) {
    const double now = hbm_gb_per_s(*device, bytes);
    EXPECT_GE(now, before);
    before = now;
  }
  EXPECT_EQ(hbm_gb_per_s(*device, 0), 0);
  EXPECT_EQ(hbm_gb_per_s(*device, 1e9), device->hbm.back().second);
  EXPECT_NEAR(hbm_gb_per_s(*device, device->hbm[2].first), device->hbm[2].second, 1e-9);
}

TEST(DeviceTest, BadRowsAreRefused) {
  EXPECT_TRUE(parse_device(device_rows::h200).ok());
  const std::string row(device_rows::h200);
  const Result<Device> unknown = parse_device(row + "colour: 3\n");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("line"), std::string::npos);
  EXPECT_FALSE(parse_device("name: \"x\"").ok());
  EXPECT_FALSE(parse_device(row + "hbm { bytes_in_flight_per_sm: 1 gb_per_s: 1 }").ok());
  EXPECT_FALSE(parse_device(row + "tensor { dtype: \"f12\" tflop_per_s: 1 }").ok());
}

TEST(DeviceTest, APrintedRowReadsBackAsItWas) {
  for (const std::string& name : device_names()) {
    const Result<Device> row = find_device(name);
    ASSERT_TRUE(row.ok());
    const Result<Device> again = parse_device(print_device(*row));
    ASSERT_TRUE(again.ok()) << to_string(again.error());
    EXPECT_EQ(print_device(*again), print_device(*row));
    EXPECT_EQ(again->hbm, row->hbm);
    EXPECT_EQ(again->tensor_tflop_per_s, row->tensor_tflop_per_s);
    EXPECT_EQ(again->dependent_node_us, row->dependent_node_us);
    EXPECT_EQ(again->memory_bytes, row->memory_bytes);
  }
}

}  // namespace
}  // namespace sundog
