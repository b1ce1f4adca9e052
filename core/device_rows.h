// The texts of core/devices/*.textproto, embedded by core/embed.cmake.
#pragma once

#include <string_view>

namespace sundog::device_rows {

extern const std::string_view h200;
extern const std::string_view h100;
extern const std::string_view a100;

}  // namespace sundog::device_rows
