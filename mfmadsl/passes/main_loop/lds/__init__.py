"""Where tiles lie in the LDS: swizzles, and the addresses of reads and writes."""
