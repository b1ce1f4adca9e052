// A program with its bank and everything that placement needs to work on it.
#pragma once

#include <memory>

#include "search/make_bank.h"
#include "tests/search/programs.h"

namespace sundog::search {

struct BankFixture {
  explicit BankFixture(Program p, AxisSet parts = {}, SearchSpace s = {})
      : program(std::move(p)), space(s), machine(machine_of(*find_device("h200"))) {
    MadeBank made = make_bank(program, parts, 1, space, machine, [] { return false; });
    EXPECT_TRUE(made.usable);
    run = std::move(made.run);
  }

  const Bank& bank() const { return *run.bank; }
  const TermTable& table() const { return run.table; }
  PlacementTables& tables() { return *run.tables; }

  // Structures of at most `kernels` kernels, all of them.
  PlacementOutcome place(int kernels, double best_us = 1e30) {
    Limits limits({}, 0, 0, nullptr);
    Quantum quantum(1 << 24, 1 << 28, limits);
    PlacementTask task;
    task.kernels = kernels;
    return Placement(bank(), table(), machine, space, tables()).run(task, best_us, quantum);
  }

  Program program;
  SearchSpace space;
  Machine machine;
  BankRun run;
};

}  // namespace sundog::search
