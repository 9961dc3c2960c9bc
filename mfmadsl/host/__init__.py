"""The CPU that this process runs on: features, caches, and permissions."""
