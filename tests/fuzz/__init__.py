"""Whatever the command line and the Python functions are given, they end as they say."""
