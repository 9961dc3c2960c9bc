"""The main loop of a matrix core: software pipelining of an annotated loop."""
