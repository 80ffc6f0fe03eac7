"""A whole workload placed pod by pod: how many of its pods fit, where, and what stops the next one."""
