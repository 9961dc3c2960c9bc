"""What each instruction does to waves."""
