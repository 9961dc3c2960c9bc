"""Programs that are run on the emulated GPU."""
