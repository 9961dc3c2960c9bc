"""Workloads: what a schedule is made of, written for those who have no own."""
