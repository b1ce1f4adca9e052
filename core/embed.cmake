# Rows of devices that the library carries with it (core/device_rows.h).
foreach(row IN ITEMS h200 h100 a100)
  sundog_embed(sundog_core ${row} core/devices/${row}.textproto NAMESPACE sundog::device_rows)
endforeach()
