"""Passes that any kernel gets."""
