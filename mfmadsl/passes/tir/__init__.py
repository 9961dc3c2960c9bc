"""What every pass asks of TIR and says in it: expressions, annotations, the device's functions."""
