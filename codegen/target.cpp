#include "codegen/target.h"

#include <charconv>
#include <string_view>

namespace sundog::codegen {

Result<Target> target_of(const Device& device) {
  constexpr std::string_view kPrefix = "sm_";
  Target target;
  const std::string_view arch = device.arch;
  if (arch.starts_with(kPrefix)) {
    const std::string_view digits = arch.substr(kPrefix.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), target.architecture);
  } else {
    target.architecture = 0;
  }
  if (target.architecture < 80) {
    return unsupported("device " + device.name + " is " + device.arch + "; kernels need sm_80");
  }
  target.warpgroups = arch == "sm_90a";
  target.dependent_launch = target.architecture >= 90;
  const std::string number(arch.substr(kPrefix.size()));
  target.nvcc_flags = "-gencode=arch=compute_" + number + ",code=sm_" + number;
  return target;
}

}  // namespace sundog::codegen
