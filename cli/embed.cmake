# The baselines of `sundog bench`, which the tool carries with it (cli/bench_baselines.cpp).
foreach(part IN ITEMS __main__ attention clock methods terms writer)
  sundog_embed(sundog_cli bench_${part} python/bench/${part}.py NAMESPACE sundog::cli)
endforeach()
