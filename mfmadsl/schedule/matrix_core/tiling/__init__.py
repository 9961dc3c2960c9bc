"""Tilings: the value, its limits, those offered, their cost, and the choice."""
