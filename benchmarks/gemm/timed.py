"""How often what is timed is run; beside TVM and Triton, which one process cannot have both."""

RUNS = 3
